"""Dependence analysis: whether two iterations of loops may need each other's results.

Two iterations depend on each other if both access the same element of an array and one of them writes it. Statements
may be run in another order only where that cannot be (Allen and Kennedy, "Optimizing Compilers for Modern
Architectures", 2001, chapter 2). The indices, the loops' extents and all guards around the accesses are linear
constraints on two iterations, which may contradict each other (`constraints`). Accesses that cannot be shown to be
independent count as dependent.

Most indices are sums of loop variables times constants, like the places of digits in a number: ``100 * i + 10 * j + k``
is another element for every ``(i, j, k)`` with digits below 10. The quotient and the remainder of one sum are two
digits of it. A digit that is larger than all below it together does not differ; this is looked at first, as it is
quick.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement, count

from ...loop_ir.expressions import Choose, Expression, Load
from ...loop_ir.index import Atom, Index, Looked, Quotient, Remainder, Variable
from ...loop_ir.tree import Accumulate, Block, For, If, Local, Read, Store, allocated
from .constraints import ONE, Form, are_contradictory, plus

Bound = tuple[int, Index, int]
Bounded = tuple[int, Form, int]


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
    """Return all accesses in a block, but for those of arrays allocated in it: each iteration has its own.

    Args:
        block: the body of some loops.
        held: conditions that hold for all of it.
    """
    own = allocated(block)
    return [each for each in all_accesses(block, held) if each.array not in own]


def all_accesses(block: Block, held: tuple[Bound, ...] = ()) -> list[Access]:
    """Return all accesses in a block where some conditions hold."""
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
    """Return the elements that a value is computed from, each with the conditions under which it is read."""
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
    """Yield pairs of accesses, one a write, that may meet in two different iterations of the loops `apart`.

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
    """Return whether two accesses may be to one element in iterations that differ in one of the variables `apart`."""
    if not apart:
        return False
    free = a.inner | b.inner
    if a.index == b.index and len(apart) == 1 and not free and a.index.is_affine:
        return not a.index.coefficient(*apart)
    return _Iterations(a, b, apart | free).may_differ(_in_order(apart, a.index))


def _in_order(variables: Iterable[Variable], index: Index) -> list[Variable]:
    """Sort variables, those with the largest coefficients first."""
    return sorted(variables, key=lambda one: (-abs(index.coefficient(one)), one))


def is_one_to_one(index: Index, variables: Collection[Variable], bounds: tuple[Bound, ...] = ()) -> bool:
    """Return whether an index is another element for all values of some variables."""
    access = Access(0, index, True, None, frozenset(), bounds, 0)
    return not may_meet(access, access, frozenset(variable for variable in variables if variable.extent > 1))


def are_elements(index: Index, array: Local, variables: Collection[Variable]) -> bool:
    """Return whether an index is another existing element of an array for all values of some variables."""
    low, high = index.bounds
    return low >= 0 and high < array.size and is_one_to_one(index, variables)


def is_beyond(write: Access, bound: Bound, read: Access, around: Collection[Variable]) -> bool:
    """Return whether an element stored to where a condition does not hold is never one that is read.

    Args:
        write: an access under the condition, which is left out.
        bound: the condition.
        read: an access of the same array.
        around: the variables of loops around both, which are the same for both.
    """
    low, index, high = bound
    places = (write.index, read.index, *(each[1] for each in (*write.bounds, *read.bounds)))
    changing = frozenset(each for place in places for each in variables_of(place)) - {*around}
    held = tuple(each for each in write.bounds if each != bound)
    for outside in ((index.bounds[0], index, low), (high, index, index.bounds[1] + 1)):
        if outside[0] < outside[2]:
            beyond = replace(write, bounds=(*held, outside))
            if _Iterations(beyond, read, changing).may_be():
                return False
    return True


def variables_of(index: Index) -> Iterator[Variable]:
    """Yield the loop variables in an index, but for those in data."""
    for atom, _ in index.terms:
        if isinstance(atom, Variable):
            yield atom
        elif isinstance(atom, (Quotient, Remainder)):
            yield from variables_of(atom.index)


class _Iterations:
    """Two iterations in which two accesses are to one element, as linear constraints.

    The unknowns are the loop variables (and quotients of them) in the first iteration, and by how much they are greater
    in the second.

    Attributes:
        equal, bounds: forms that are zero, and forms with the numbers that they lie between.
        definitions, parts: the same, for the sums that quotients and remainders are made of.
        ends: the least and the largest number that an unknown can be.
        fixed: the unknowns that are known to be zero.
    """

    def __init__(self, a: Access, b: Access, changing: frozenset[Variable]) -> None:
        self.changing, self.is_symmetric = changing, (a.index, a.bounds) == (b.index, b.bounds)
        self.numbers = count(ONE + 1)
        self.unknowns: dict[tuple[Atom, bool], int] = {}
        self.forms: dict[tuple[Atom, bool], Form] = {}
        self.equal, self.definitions = list[Form](), list[Form]()
        self.bounds, self.parts = list[Bounded](), list[Bounded]()
        self.ends, self.fixed = {ONE: (1, 1)}, set[int]()
        self.a, self.b = a, b
        self.equal.append(plus((self._form(a.index, False), 1), (self._form(b.index, True), -1)))

    def may_differ(self, apart: Iterable[Variable]) -> bool:
        """Return whether one of some variables may have another value in the second iteration."""
        if not self._may_be_by_digits():
            return False
        left = [each for each in apart if self.unknowns.get((each, True)) not in self.fixed]
        if not left:
            return False
        self._add_conditions()
        left = [each for each in left if not self._is_fixed(each)]
        if left:  # the digits of the index first: these may fix the variables that they are made of
            for atom, _ in sorted(self.a.index.terms, key=lambda term: -abs(term[1])):
                if isinstance(atom, (Quotient, Remainder)) and not atom.index.is_data:
                    self._is_fixed(atom)
        return not all(map(self._is_fixed, left))

    def may_be(self) -> bool:
        """Return whether two such iterations may exist."""
        if not self._may_be_by_digits():
            return False
        self._add_conditions()
        zero, between = [*self.definitions, *self.equal], [*self.bounds, *self.parts]
        return not are_contradictory(zero, _not_negative(between))

    def _add_conditions(self) -> None:
        for access, is_second in ((self.a, False), (self.b, True)):
            self.bounds += [(low, self._form(index, is_second), end) for low, index, end in access.bounds]

    def _may_be_by_digits(self) -> bool:
        """Fix the digits of the place that do not differ: each that is larger than all below it together."""
        equation, ends = dict(self.equal[0]), dict(self.ends)
        forms: dict[int, Form] = {unknown: {unknown: 1} for unknown in equation}
        for (atom, is_change), unknown in self.unknowns.items():
            first = self.unknowns.get((atom, False), ONE)
            if is_change and first in equation and equation[first] == equation.get(unknown):  # of the second place
                forms[unknown], ends[unknown] = {first: 1, unknown: 1}, atom.bounds
                del equation[first]
        digits = sorted(((by, unknown) for unknown, by in equation.items() if by), key=lambda digit: -abs(digit[0]))
        reach = [sorted(by * end for end in ends[unknown]) for by, unknown in digits]
        low, high = sum(least for least, _ in reach), sum(most for _, most in reach)
        for (by, unknown), (least, most) in zip(digits, reach, strict=True):
            low, high = low - least, high - most  # of all below it
            if abs(by) <= max(-low, high):
                break
            if unknown == ONE:
                return False
            self.equal.append(forms[unknown])
            self.fixed |= {unknown} if len(forms[unknown]) == 1 else set()
        return True

    def _is_fixed(self, atom: Atom) -> bool:
        """Return whether an atom has the same value in both iterations, and if so, record it."""
        self._atom(atom, False), self._atom(atom, True)
        change = self._unknown(atom, True)
        if change in self.fixed:
            return True
        for sign in (1,) if self.is_symmetric else (1, -1):
            bounds = [*_not_negative(self.bounds), {change: sign, ONE: -1}]
            if not are_contradictory(self.equal, bounds) and not are_contradictory(
                [*self.definitions, *self.equal], [*bounds, *_not_negative(self.parts)]
            ):
                return False
        self.equal.append({change: 1})
        self.fixed.add(change)
        return True

    def _form(self, index: Index, is_second: bool) -> Form:
        """Return an index in one of the iterations."""
        terms = ((self._atom(atom, is_second), factor) for atom, factor in index.terms)
        return plus(({ONE: index.constant}, 1), *terms)

    def _atom(self, atom: Atom, is_second: bool) -> Form:
        """Return a part of an index in one of the iterations. Data may be anything."""
        if isinstance(atom, Looked) or (not isinstance(atom, Variable) and atom.index.is_data):
            unknown = next(self.numbers)
            self.ends[unknown] = atom.bounds
            return self._bounded({unknown: 1}, atom)
        if (atom, is_second) not in self.forms:
            self.forms[atom, is_second] = self._made(atom, is_second)
        return self.forms[atom, is_second]

    def _made(self, atom: Atom, is_second: bool) -> Form:
        changes = is_second and not self.changing.isdisjoint(atom.variables)
        form = {self._unknown(atom, each): 1 for each in ((False, True) if changes else (False,))}
        if isinstance(atom, Remainder):
            quotient = self._atom(Quotient(atom.index, atom.divisor), is_second)
            self.definitions.append(plus((self._form(atom.index, is_second), 1), (quotient, -atom.divisor), (form, -1)))
        elif isinstance(atom, Quotient):
            whole = self._form(atom.index, is_second)
            self.parts.append((0, plus((whole, 1), (form, -atom.divisor)), atom.divisor))
        return self._bounded(form, atom)

    def _unknown(self, atom: Atom, is_change: bool) -> int:
        """Return the number of a variable, of a quotient, or of its change."""
        if (atom, is_change) not in self.unknowns:
            number = self.unknowns[atom, is_change] = next(self.numbers)
            low, high = atom.bounds
            self.ends[number] = (low - high, high - low) if is_change else (low, high)
        return self.unknowns[atom, is_change]

    def _bounded(self, form: Form, atom: Atom) -> Form:
        low, high = atom.bounds
        self.bounds.append((low, form, high + 1))
        return form


def _not_negative(bounds: Iterable[Bounded]) -> Iterator[Form]:
    """Yield the forms that are not negative where others lie between two numbers."""
    for low, form, end in bounds:
        yield plus((form, 1), ({ONE: low}, -1))
        yield plus((form, -1), ({ONE: end - 1}, 1))
