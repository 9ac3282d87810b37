"""Linear constraints on integers, and whether any integers satisfy all of them: Fourier-Motzkin elimination.

An unknown is eliminated by adding every inequality that bounds it from below to every one that bounds it from above.
What is left at last has no unknowns, and is false if there is no solution. As the unknowns are integers, every
inequality is divided by the common divisor of its coefficients and its constant rounded (Pugh, "The Omega test", 1991).
A solution may be a fraction all the same, so "may be satisfied" can be wrong, and "contradictory" cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import gcd
from typing import TYPE_CHECKING

from ...loop_ir.index import Atom, Division, Index, Looked, Quotient, Remainder, Variable

if TYPE_CHECKING:
    from .dependences import Access

Form = Mapping[int, int]  # a sum of unknowns, which are numbered, times coefficients
ONE = 0  # the number of the unknown that is 1: its coefficient is a constant

Terms = tuple[tuple[int, int], ...]

MOST = 300  # inequalities at a time; with more, more contradictions are found, in longer compile time


def plus(*parts: tuple[Form, int]) -> Form:
    """The sum of some forms times factors."""
    found: dict[int, int] = {}
    for form, factor in parts:
        for unknown, by in form.items():
            found[unknown] = found.get(unknown, 0) + by * factor
    return found


def are_contradictory(zero: Iterable[Form], positive: Iterable[Form]) -> bool:
    """Whether no integers make some forms zero, and others at least zero.

    Example:
        >>> i, j = 1, 2
        >>> are_contradictory([{i: 2, j: -2, ONE: -1}], [])  # 2 * i == 2 * j + 1
        True
        >>> digit = [{j: 1, ONE: 9}, {j: -1, ONE: 9}]  # -9 <= j <= 9
        >>> are_contradictory([{i: 10, j: 1}], [*digit, {i: 1, ONE: -1}])  # 10 * i == -j and i >= 1
        True
        >>> are_contradictory([{i: 9, j: 1}], [*digit, {i: 1, ONE: -1}])
        False
    """
    equations, least = list(zero), list(positive)
    while equations:
        equation = equations.pop()
        unknowns = {unknown: by for unknown, by in equation.items() if by and unknown != ONE}
        if equation.get(ONE, 0) % gcd(*unknowns.values()) if unknowns else equation.get(ONE, 0):
            return True
        if unknowns:
            chosen = min(unknowns, key=lambda unknown: abs(unknowns[unknown]))
            equations, least = ([_without(chosen, each, equation) for each in forms] for forms in (equations, least))
    inequalities = _rounded(least, {})
    return inequalities is None or any(_is_false(dict(inequalities), order) for order in (_few, _small))


def _is_false(inequalities: dict[Terms, int] | None, order: Callable[[list[int], list[int]], int]) -> bool:
    """Whether eliminating all unknowns shows that some inequalities are false.

    First come the eliminations that lose no integers, as all coefficients on a side are 1; then those that `order` puts
    first: of none of the two orders is the other one as good everywhere.
    """
    while inequalities:
        below: dict[int, list[int]] = {}
        above: dict[int, list[int]] = {}
        for terms in inequalities:
            for unknown, by in terms:
                (below if by > 0 else above).setdefault(unknown, []).append(abs(by))
        sides = {each: (below.get(each, [1]), above.get(each, [1])) for each in {**below, **above}}
        costs = ((1 not in map(max, both), order(*both), each) for each, both in sides.items())
        chosen = min(costs)[-1]
        if len(inequalities) + len(below.get(chosen, [])) * len(above.get(chosen, [])) > MOST:
            return False
        touched = [terms for terms in inequalities if any(unknown == chosen for unknown, _ in terms)]
        forms = [{**dict(terms), ONE: inequalities.pop(terms)} for terms in touched]
        inequalities = _rounded(_eliminated(chosen, forms), inequalities)
    return inequalities is None


def _few(below: list[int], above: list[int]) -> int:
    """By how many inequalities an elimination leaves more than before."""
    return len(below) * len(above) - len(below) - len(above)


def _small(below: list[int], above: list[int]) -> int:
    """How many inequalities an elimination makes, and how large their coefficients become."""
    return len(below) * len(above) * max(*below, *above)


def _without(unknown: int, form: Form, equation: Form) -> Form:
    """A positive multiple of a form, in which an equation takes the place of an unknown."""
    by, own = form.get(unknown, 0), equation[unknown]
    return plus((form, abs(own)), (equation, -by if own > 0 else by)) if by else form


def _eliminated(unknown: int, forms: Sequence[Form]) -> Iterator[Form]:
    """What follows from inequalities with an unknown for all others."""
    below = [each for each in forms if each[unknown] > 0]
    above = [each for each in forms if each[unknown] < 0]
    for low in below:
        for high in above:
            yield plus((low, -high[unknown]), (high, low[unknown]))


def _rounded(forms: Iterable[Form], found: dict[Terms, int]) -> dict[Terms, int] | None:
    """Inequalities without common divisors beside others, the strictest of the same terms; None if one is false."""
    for form in forms:
        unknowns = {unknown: by for unknown, by in form.items() if by and unknown != ONE}
        divisor = gcd(*unknowns.values())
        constant = form.get(ONE, 0)
        if divisor:
            terms = tuple((unknown, by // divisor) for unknown, by in sorted(unknowns.items()))
            found[terms] = min(constant // divisor, found.get(terms, constant // divisor))
        elif constant < 0:
            return None
    return found


class Iterations:
    """Two iterations in which two accesses are to one element, as linear constraints.

    The unknowns are the loop variables (and quotients of them) in the first iteration, and by how much they are greater
    in the second.
    """

    def __init__(self, a: Access, b: Access, changing: frozenset[Variable]) -> None:
        self.changing, self.is_symmetric = changing, (a.index, a.bounds) == (b.index, b.bounds)
        self.numbers = count(ONE + 1)
        self.unknowns: dict[tuple[Atom, bool], int] = {}
        self.forms: dict[tuple[Atom, bool], Form] = {}
        self.positive: list[Form] = []
        self.zero: list[Form] = []
        self.index = a.index
        parts = dict.fromkeys(atom for index in (a.index, b.index) for atom, _ in index.terms)
        self.digits = [atom for atom in parts if not Index(((atom, 1),)).is_data]
        for access, is_second in ((a, False), (b, True)):
            for low, index, end in access.bounds:
                for by in {1, *_divisors(access.index)}:  # and what follows for quotients
                    self._between(low // by, self._form(index // by, is_second), (end - 1) // by + 1)
        self.zero.append(plus((self._form(a.index, False), 1), (self._form(b.index, True), -1)))

    def may_differ(self, apart: Iterable[Variable]) -> bool:
        """Whether one of some variables may have another value in the second iteration."""
        digits = [atom for atom in self.digits if self.index.coefficient(atom)]
        for atom in digits:  # by themselves first: what they are made of would be many constraints more
            self._is_fixed(atom, alone=True)
        left = [each for each in apart if not self._is_fixed(each)]
        if left:  # quotients and remainders may fix the variables that they are made of
            for atom in digits:
                self._is_fixed(atom)
        return not all(map(self._is_fixed, left))

    def keep(self, low: int, index: Index, end: int) -> bool:
        """Whether an index is from `low` on and below `end` in the first iteration."""
        form = self._form(index, False)
        outside = plus((form, -1), ({ONE: low - 1}, 1)), plus((form, 1), ({ONE: end}, -1))
        return all(are_contradictory(self.zero, [*self.positive, each]) for each in outside)

    def _is_fixed(self, atom: Atom, alone: bool = False) -> bool:
        """Whether something has the same value in both iterations; if so, this is known from then on.

        If `alone`, only what is known of the digits is used.
        """
        self._atom(atom, False), self._atom(atom, True)
        change, zero, positive = self._unknown(atom, True), self.zero, self.positive
        if {change: 1} in zero:
            return True
        if alone:
            own = {ONE, *(self._unknown(each, is_change) for each in self.digits for is_change in (False, True))}
            zero, positive = (
                [each for each in forms if own >= {unknown for unknown, by in each.items() if by}]
                for forms in (zero, positive)
            )
        for sign in (1,) if self.is_symmetric else (1, -1):
            if not are_contradictory(zero, [*positive, {change: sign, ONE: -1}]):
                return False
        self.zero.append({change: 1})
        return True

    def _form(self, index: Index, is_second: bool) -> Form:
        """An index in one of the iterations."""
        terms = ((self._atom(atom, is_second), factor) for atom, factor in index.terms)
        return plus(({ONE: index.constant}, 1), *terms)

    def _atom(self, atom: Atom, is_second: bool) -> Form:
        """A part of an index in one of the iterations. Data may be anything."""
        if isinstance(atom, Looked) or (not isinstance(atom, Variable) and atom.index.is_data):
            return self._bounded({next(self.numbers): 1}, atom)
        if (atom, is_second) not in self.forms:
            self.forms[atom, is_second] = self._made(atom, is_second)
        return self.forms[atom, is_second]

    def _made(self, atom: Atom, is_second: bool) -> Form:
        changes = is_second and not self.changing.isdisjoint(atom.variables)
        form = {self._unknown(atom, each): 1 for each in ((False, True) if changes else (False,))}
        if isinstance(atom, Remainder):
            quotient = self._atom(Quotient(atom.index, atom.divisor), is_second)
            self.zero.append(plus((self._form(atom.index, is_second), 1), (quotient, -atom.divisor), (form, -1)))
        elif isinstance(atom, Quotient):
            whole = self._form(atom.index, is_second)
            self._between(0, plus((whole, 1), (form, -atom.divisor)), atom.divisor)
        return self._bounded(form, atom)

    def _unknown(self, atom: Atom, is_change: bool) -> int:
        """The number of a variable, of a quotient, or of its change."""
        if (atom, is_change) not in self.unknowns:
            self.unknowns[atom, is_change] = next(self.numbers)
        return self.unknowns[atom, is_change]

    def _bounded(self, form: Form, atom: Atom) -> Form:
        low, high = atom.bounds
        self._between(low, form, high + 1)
        return form

    def _between(self, low: int, form: Form, end: int) -> None:
        self.positive += [plus((form, 1), ({ONE: low}, -1)), plus((form, -1), ({ONE: end - 1}, 1))]


def _divisors(index: Index) -> set[int]:
    """The divisors in an index."""
    atoms = [atom for atom, _ in index.terms if isinstance(atom, Division)]
    return {atom.divisor for atom in atoms}.union(*(_divisors(atom.index) for atom in atoms))
