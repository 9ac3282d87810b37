"""Dependence analysis: whether two iterations of loops may need each other's results.

Two iterations depend on each other if both access the same element of an array and one of them writes it. Statements
may be run in another order only where that cannot be (Allen and Kennedy, "Optimizing Compilers for Modern
Architectures", 2001, chapter 2). The test here is for indices that are sums of loop variables times constants, like the
places of digits in a number: ``100 * i + 10 * j + k`` is another element for every ``(i, j, k)`` with digits below 10.
The quotient and the remainder of one sum are two digits of it. Where digits do not show it, the indices, the loops'
extents and all guards around the accesses are linear constraints on two iterations, which may contradict each other
(`constraints`). Accesses that neither test can show to be independent count as dependent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement

from ...loop_ir.expressions import Choose, Expression, Load
from ...loop_ir.index import Atom, Division, Index, Remainder, Variable
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
    free = a.inner | b.inner
    if a.index == b.index and len(apart) == 1 and not free and a.index.is_affine:
        return not a.index.coefficient(*apart)
    common = [bound for bound in a.bounds if bound in b.bounds]
    common += [_divided(bound, divisor) for bound in common for divisor in _divisors(a.index)]
    difference = _Difference(a, b, apart)
    if difference.shows_equal(common) or difference.impossible(common):
        return False
    from .constraints import Iterations

    return Iterations(a, b, apart | free).may_differ(_in_order(apart, a.index))


def _divisors(index: Index) -> set[int]:
    """The divisors in an index."""
    atoms = [atom for atom, _ in index.terms if isinstance(atom, Division)]
    return {atom.divisor for atom in atoms}.union(*(_divisors(atom.index) for atom in atoms))


def _divided(bound: Bound, divisor: int) -> Bound:
    """The condition on a quotient that follows from one on its index."""
    low, index, high = bound
    return low // divisor, index // divisor, (high - 1) // divisor + 1


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
    low, index, high = bound
    variables = ({*variables_of(index), *variables_of(write.index)}) - {*around}
    if read.index == write.index and bound in read.bounds and is_one_to_one(write.index, variables):
        return True
    # The condition's index as a digit of the element's place, which differs: beyond the bounds here, within them there.
    guarded = Index(tuple((atom, factor) for atom, factor in index.terms if atom not in around))
    factor = _multiple(write.index, guarded)
    if not factor:
        return False
    outer = index - guarded
    within = [part - outer for first, part, last in read.bounds if low <= first and last <= high]
    same = (part for part in within if not part.constant and _multiple(read.index, part) == factor)
    other = next((part for part in same if part.terms and not {*variables_of(part)} & {*around}), None)
    if other is None:
        others = [abs(by) for atom, by in (write.index - guarded * factor).terms if atom not in around]
        place = min((by for by in others if by > abs(factor)), default=0)  # of the next digit
        terms = [(atom, by) for atom, by in read.index.terms if atom not in around and not 0 < place <= abs(by)]
        other = Index(tuple((atom, by // factor) for atom, by in terms if by % factor == 0))
        lowest, highest = other.bounds
        if outer.terms or lowest < low - outer.constant or highest >= high - outer.constant:
            return False
    step = math.gcd(*(by for _, by in (*guarded.terms, *other.terms)))  # they differ by multiples of it
    factor, guarded, other = (
        factor * step,
        *(Index(tuple((atom, by // step) for atom, by in each.terms)) for each in (guarded, other)),
    )
    least, most = min(guarded.bounds[0], other.bounds[0]), max(guarded.bounds[1], other.bounds[1])
    digits: dict[int, list[int]] = {factor: [least - most, most - least]}
    for sign, rest in ((1, write.index - guarded * factor), (-1, read.index - other * factor)):
        for atom, by in rest.terms:
            if atom in around:
                continue
            if by in (factor, -factor):
                return False
            lowest, highest = sorted(sign * (by // abs(by)) * end for end in atom.bounds)
            digit = digits.setdefault(abs(by), [0, 0])
            digit[0] += lowest
            digit[1] += highest
    below = [(by * least, by * most) for by, (least, most) in digits.items() if 0 < by < abs(factor)]
    smaller = max(-sum(least for least, _ in below), sum(most for _, most in below))
    smaller += abs(write.index.constant - read.index.constant)
    larger = [abs(by) for by in digits if abs(by) > abs(factor)]
    if smaller >= abs(factor):
        return False
    if not larger or smaller + _reach(digits, lambda by: by == abs(factor)) < math.gcd(*larger):
        return True
    left = smaller + _reach(digits, lambda by: by >= abs(factor))
    for by in sorted(larger, reverse=True):
        left -= by * max(map(abs, digits[by]))
        if by <= left:
            return False
    return True


def _reach(digits: Mapping[int, list[int]], which: Callable[[int], bool]) -> int:
    """How far some digits can move a sum."""
    return sum(abs(by) * max(map(abs, ends)) for by, ends in digits.items() if which(abs(by)))


def variables_of(index: Index) -> Iterator[Variable]:
    """The loop variables in an index, but for those in data."""
    for atom, _ in index.terms:
        if isinstance(atom, Variable):
            yield atom
        elif isinstance(atom, Division):
            yield from variables_of(atom.index)


@dataclass(frozen=True)
class _Term:
    """A multiple of how much something differs between the two iterations, which is at most `most`, either way.

    Attributes:
        factor: that it is multiplied by.
        most: the largest difference.
        inside: what it is the sum of, if it is a condition's index.
        atom: what it is, otherwise.
    """

    factor: int
    most: int
    inside: tuple[_Term, ...] = ()
    atom: Atom | None = None


class _Difference:
    """The difference between two indices, as a sum of terms that are zero if the iterations are the same."""

    def __init__(self, a: Access, b: Access, apart: frozenset[Variable]) -> None:
        self.a, self.b, self.apart = a, b, apart
        self.free = a.inner | b.inner

    def impossible(self, common: Iterable[Bound]) -> bool:
        """Whether the two are never equal in different iterations: by the digits that they share, or what is below."""
        for bounds in ((), tuple(bound for bound in common if not bound[1].is_data)):
            terms, low, high = self._terms(self.a.index, self.b.index, bounds)
            reach = sum(abs(term.factor) * term.most for term in terms)
            if low - reach > 0 or high + reach < 0:
                return True
        a, b = self.a.index, self.b.index
        equal = set[Atom]()
        shared = [(atom, factor) for atom, factor in a.terms if b.coefficient(atom) == factor]
        for atom, factor in sorted(shared, key=lambda term: -abs(term[1])):
            own = Index(((atom, factor),))
            a, b = a - own, b - own
            (least, most), (lowest, highest) = bounds_where(a, self.a.bounds), bounds_where(b, self.b.bounds)
            if not self._same(atom) and max(most - lowest, highest - least) >= abs(factor):
                break
            if most < lowest or highest < least:
                return True
            equal.add(atom)
        return self.apart <= equal

    def _same(self, atom: Atom) -> bool:
        """Whether an atom has one value for both accesses."""
        return not self._changes(atom)

    def shows_equal(self, common: Iterable[Bound]) -> bool:
        """Whether the elements are the same only if all variables are."""
        usable = [bound for bound in common if not bound[1].is_data]
        return any(
            self.apart <= self._equal(*self._terms(self.a.index, self.b.index, chosen))
            for chosen in [(), *((bound,) for bound in usable), tuple(usable)]
        )

    def _terms(self, a: Index, b: Index, bounds: Iterable[Bound] = ()) -> tuple[list[_Term], int, int]:
        """``a - b`` as terms, and the smallest and largest value of what is left."""
        found: list[_Term] = []
        for low, index, high in bounds:
            factor = _multiple(a, index)
            if factor and factor == _multiple(b, index):
                inside, lowest, highest = self._terms(index, index)
                if not lowest and not highest:
                    most = min(high - low - 1, index.bounds[1] - index.bounds[0])
                    found.append(_Term(factor, max(most, 0), tuple(inside)))
                    a, b = a - index * factor, b - index * factor
        low = high = a.constant - b.constant
        ours, theirs = dict(a.terms), dict(b.terms)
        for one in [each for each in ours if isinstance(each, Variable) and each not in theirs]:
            # The same digit by another name: a multiple of the difference of the two.
            other = next((each for each, by in theirs.items() if by == ours[one] and each not in ours), None)
            if isinstance(other, Variable):
                found.append(_Term(ours.pop(one), max(one.extent, other.extent) - 1))
                del theirs[other]
        for atom in dict.fromkeys((*ours, *theirs)):
            x, y = ours.get(atom, 0), theirs.get(atom, 0)
            bottom, top = atom.bounds
            if x == y and not self._changes(atom):
                continue
            if x == y and not Index(((atom, 1),)).is_data:
                found.append(_Term(x, top - bottom, (), atom))
            else:
                low += min(x * bottom, x * top) - max(y * bottom, y * top)
                high += max(x * bottom, x * top) - min(y * bottom, y * top)
        return found, low, high

    def _equal(self, terms: Iterable[_Term], low: int, high: int) -> set[Atom]:
        """The atoms that do not differ if the sum of the terms is zero: the largest digits first."""
        rest = sorted(terms, key=lambda term: -abs(term.factor))
        left = sum(abs(term.factor) * term.most for term in rest) + max(abs(low), abs(high))
        found: set[Atom] = set()
        for term in rest:
            left -= abs(term.factor) * term.most
            if not term.most:
                pass
            elif abs(term.factor) <= left:
                break
            if term.atom is not None:
                found.add(term.atom)
            found |= self._equal(term.inside, 0, 0)
        while True:  # a sum whose quotient and remainder do not differ does not either
            wholes = (atom.index for atom in found if isinstance(atom, Remainder) and self._is_one_of(atom, found))
            more = set().union(*(self._equal(*self._terms(index, index)) for index in wholes))
            if more <= found:
                return found
            found |= more

    def _is_one_of(self, remainder: Remainder, equal: set[Atom]) -> bool:
        """Whether the quotient that belongs to a remainder is made of atoms that do not differ."""
        quotient = remainder.index // remainder.divisor
        return all(atom in equal or not self._changes(atom) for atom, _ in quotient.terms)

    def _changes(self, atom: Atom) -> bool:
        """Whether an atom may differ between the iterations."""
        index = Index(((atom, 1),))
        return index.is_data or any(index.depends_on(variable) for variable in self.apart | self.free)


def bounds_where(index: Index, bounds: Iterable[Bound]) -> tuple[int, int]:
    """The smallest and the largest value of an index where some conditions hold on the sums that it is made of."""
    low = high = index.constant
    terms = dict(index.terms)
    for least, place, end in sorted(bounds, key=lambda bound: -len(bound[1].terms)):
        times = _multiple(Index(tuple(terms.items())), place)
        if times:
            smallest, largest = place.bounds
            ends = [(max(least, smallest) - place.constant) * times, (min(end - 1, largest) - place.constant) * times]
            low, high = low + min(ends), high + max(ends)
            for atom, _ in place.terms:
                del terms[atom]
    rest = Index(tuple(terms.items()))
    return low + rest.bounds[0], high + rest.bounds[1]


def _multiple(index: Index, part: Index) -> int:
    """How often a sum is contained in an index; 0 if it is not."""
    if not part.terms:
        return 0
    atom, factor = part.terms[0]
    have = index.coefficient(atom)
    if not have or have % factor:
        return 0
    times = have // factor
    return times if all(index.coefficient(atom) == factor * times for atom, factor in part.terms) else 0
