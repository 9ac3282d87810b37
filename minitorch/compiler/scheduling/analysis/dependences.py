"""Dependence analysis: whether two iterations of loops may need each other's results.

Two iterations depend on each other if both access the same element of an array and one of them writes it. Statements
may be run in another order only where that cannot be (Allen and Kennedy, "Optimizing Compilers for Modern
Architectures", 2001, chapter 2). The indices, the extents of the loops and all guards around the accesses are linear
constraints on two iterations, which may contradict each other (`constraints`). One case is told at a glance: the sum
``100 * i + 10 * j + k`` is another element for every ``(i, j, k)`` with digits below 10 (`_digits_of`). Accesses that
are not shown to be independent count as dependent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement

from ...loop_ir.expressions import Choose, Expression, Load
from ...loop_ir.index import Atom, Division, Index, Quotient, Remainder, Variable
from ...loop_ir.tree import Accumulate, Block, For, If, Local, Read, Store, allocated

Bound = tuple[int, Index, int]


@dataclass(frozen=True)
class Access:
    """An element that a statement reads or writes.

    Attributes:
        array: an argument, or local.
        index: of the element.
        writes: whether it is stored to.
        reduction: how it is updated, if it is accumulated into.
        inner: the loops between the block that is looked at and the statement.
        bounds: conditions that hold where the access is made.
        number: of the statement of the block that it is in.
    """

    array: int | Local
    index: Index
    writes: bool
    reduction: str | None
    inner: frozenset[Variable]
    bounds: tuple[Bound, ...]
    number: int

    @property
    def name(self) -> str:
        """The name of the array."""
        return self.array.name if isinstance(self.array, Local) else f"argument{self.array}"

    def __str__(self) -> str:
        kind = "the sum into" if self.reduction else "the store to" if self.writes else "the read of"
        return f"{kind} {self.name}[{self.index}]"


def accesses_of(block: Block, held: tuple[Bound, ...] = ()) -> list[Access]:
    """All accesses in a block, but for those of arrays that are allocated in it: each iteration has its own.

    Args:
        block: the body of some loops.
        held: conditions that hold for all of it.
    """
    own = allocated(block)
    return [each for each in all_accesses(block, held) if each.array not in own]


def all_accesses(block: Block, held: tuple[Bound, ...] = ()) -> list[Access]:
    """All accesses in a block where some conditions hold."""
    found: list[Access] = []

    def within(block: Block, inner: frozenset[Variable], bounds: tuple[Bound, ...], number: int | None) -> None:
        for place, each in enumerate(block):
            at = place if number is None else number
            match each:
                case For():
                    within(each.body, inner | {each.variable}, bounds, at)
                case If():
                    within(each.body, inner, (*bounds, *each.inside.bounds), at)
                case Store() | Accumulate():
                    reduction = each.reduction if isinstance(each, Accumulate) else None
                    found.append(Access(each.array, each.index, True, reduction, inner, bounds, at))
                    for array, index, own in _reads(each.value):
                        found.append(Access(array, index, False, None, inner, (*bounds, *own), at))

    within(block, frozenset(), held, None)
    return found


@lru_cache(1024)
def _reads(value: Expression) -> list[tuple[int | Local, Index, tuple[Bound, ...]]]:
    """The elements that a value is computed from, each with the conditions under which it is read."""
    found: list[tuple[int | Local, Index, tuple[Bound, ...]]] = []
    pending: list[tuple[Expression, tuple[Bound, ...]]] = [(value, ())]
    seen = set()
    while pending:
        at, held = pending.pop()
        if (at, held) in seen:
            continue
        seen.add((at, held))
        match at:
            case Load():
                held = (*held, *at.inside.bounds)
                found.append((at.buffer, at.index, held))
            case Read():
                found.append((at.local, at.index, held))
            case Choose():
                pending += [(at.here, (*held, *at.inside.bounds)), (at.elsewhere, held)]
        if not isinstance(at, Choose):
            pending += [(part, held) for part in at.parts()]
        pending += [(part, held) for part in at.values]
    return found


def conflicts(
    found: Iterable[Access], apart: Collection[Variable], sums: bool = False
) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses that may meet in two different iterations of the loops `apart`, where one of them writes.

    Args:
        found: all accesses of the loops' body.
        apart: the variables of the loops.
        sums: whether terms of a sum (of a product, of a maximum) may be taken in any order, as long as nothing reads
            the total in between.
    """
    by_array: dict[int | Local, list[Access]] = {}
    for each in found:
        by_array.setdefault(each.array, []).append(each)
    wanted = frozenset(variable for variable in apart if variable.extent > 1)
    for own in by_array.values():
        reductions = {each.reduction for each in own}
        if not any(each.writes for each in own) or (sums and len(reductions) == 1 and None not in reductions):
            continue
        for a, b in combinations_with_replacement(dict.fromkeys(own), 2):
            if (a.writes or b.writes) and may_meet(a, b, wanted):
                yield a, b


@lru_cache(4096)
def may_meet(a: Access, b: Access, apart: frozenset[Variable]) -> bool:
    """Whether two accesses may be to one element in iterations that differ in one of the variables `apart`."""
    if not apart:
        return False
    changing = apart | a.inner | b.inner
    held = tuple(bound for bound in a.bounds if bound in b.bounds)
    if any(apart <= _digits_of(a.index, b.index, bounds, changing) for bounds in dict.fromkeys(((), held))):
        return False
    if (a.index, a.bounds) == (b.index, b.bounds):
        known = (a.index, *(index for _, index, _ in held))
        if not all(any(each in index.variables for index in known) for each in apart):
            return True
    from .constraints import Iterations

    return Iterations(a, b, changing).may_differ(_in_order(apart, a.index))


def _digits_of(a: Index, b: Index, bounds: tuple[Bound, ...], changing: frozenset[Variable]) -> set[Atom]:
    """The parts of two indices that are the same wherever these are, as those of equal numbers with digits are.

    Each digit is worth more than all below it, and than what the indices do not share. A sum that a condition keeps
    within a range may be a digit, and has digits of its own. So has a sum whose quotient and remainder are digits.

    Args:
        a, b: the indices.
        bounds: the conditions.
        changing: the variables that may differ.
    """

    def parts(index: Index) -> dict[Atom, int]:
        return {atom: factor for atom, factor in index.terms if not changing.isdisjoint(atom.variables)}

    left, below = parts(a), 0
    if a != b:
        shared = Index(tuple((atom, factor) for atom, factor in a.terms if b.coefficient(atom) == factor))
        left = parts(shared)
        (low, high), (least, most) = (a - shared).bounds, (b - shared).bounds
        below = max(high - least, most - low)
    digits: list[tuple[int, int, set[Atom]]] = []  # worth, largest difference, and what is told with it
    for bound in sorted(bounds, key=lambda bound: -len(bound[1].terms)):
        low, place, end = bound
        own = parts(place)
        factors = {divmod(left.get(atom, 0), factor) for atom, factor in own.items()}
        if len(factors) == 1 and (factor := min(factors))[0] and not factor[1] and not place.is_data:
            whole = Index(tuple(own.items()))
            within = _digits_of(whole, whole, tuple(each for each in bounds if each != bound), changing)
            digits.append((abs(factor[0]), min(end - 1, place.bounds[1]) - max(low, place.bounds[0]), within))
            left = {atom: by for atom, by in left.items() if atom not in own}
    digits += [(abs(factor), _spread(atom, bounds), {atom}) for atom, factor in left.items()]
    below += sum(worth * most for worth, most, _ in digits)
    found: set[Atom] = set()
    for worth, most, told in sorted(digits, key=lambda digit: -digit[0]):
        below -= worth * most
        if most > 0 and worth <= below:
            break
        found |= told
    known = 0
    while known < len(found):  # what is told by a remainder and its quotient may itself be the quotient of another one
        known = len(found)
        remainders = [each for each in found if isinstance(each, Remainder)]
        wholes = [each.index for each in remainders if parts(each.index // each.divisor).keys() <= found]
        found = found.union(*(_digits_of(whole, whole, bounds, changing) for whole in wholes))
    return found


def _spread(atom: Atom, bounds: Iterable[Bound]) -> int:
    """The largest difference of an atom's values, where conditions hold for what it divides."""
    low, high = atom.bounds
    for begin, place, end in bounds:
        if isinstance(atom, Quotient) and atom.index == place:
            low, high = max(low, begin // atom.divisor), min(high, (end - 1) // atom.divisor)
    return high - low


def _in_order(variables: Iterable[Variable], index: Index) -> list[Variable]:
    """Variables, those with the largest coefficients first."""
    return sorted(variables, key=lambda one: (-abs(index.coefficient(one)), one))


def is_one_to_one(index: Index, variables: Collection[Variable], bounds: tuple[Bound, ...] = ()) -> bool:
    """Whether an index is another element for all values of some variables."""
    access = Access(0, index, True, None, frozenset(), bounds, 0)
    return not may_meet(access, access, frozenset(variable for variable in variables if variable.extent > 1))


def are_elements(index: Index, array: Local, variables: Collection[Variable]) -> bool:
    """Whether an index is another element of an array, and one that is there, for all values of some variables."""
    low, high = index.bounds
    return low >= 0 and high < array.size and is_one_to_one(index, variables)


def is_beyond(write: Access, bound: Bound, read: Access, around: Collection[Variable]) -> bool:
    """Whether an element that is stored to where a condition does not hold is never one that is read.

    Args:
        write: an access under the condition, which is left out.
        bound: the condition.
        read: an access of the same array.
        around: the variables of loops around both, which are the same for both.
    """
    indices = (write.index, bound[1], read.index, *(index for _, index, _ in read.bounds))
    changing = frozenset(v for index in indices for v in index.variables if v.place is None) - {*around}
    if read.index == write.index and bound in read.bounds and not bound[1].is_data:  # in one iteration it would hold
        asked = changing & bound[1].variables
        if asked <= _digits_of(write.index, write.index, (), changing):
            return True
    from .constraints import Iterations

    return Iterations(replace(write, bounds=()), read, changing).keep(*bound)


def variables_of(index: Index) -> Iterator[Variable]:
    """The loop variables in an index, but for those in data."""
    for atom, _ in index.terms:
        if isinstance(atom, Variable):
            if atom.place is None:
                yield atom
        elif isinstance(atom, Division):
            yield from variables_of(atom.index)
