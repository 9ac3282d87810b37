"""Linear constraints on integers, and whether any integers satisfy all of them: Fourier-Motzkin elimination.

An unknown is eliminated by adding every inequality that bounds it from below to every one that bounds it from above.
What is left at last has no unknowns, and is false if there is no solution. As the unknowns are integers, every
inequality is divided by the common divisor of its coefficients and its constant rounded (Pugh, "The Omega test", 1991).
A solution may be a fraction all the same, so "may be satisfied" can be wrong, and "contradictory" cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import gcd

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
    inequalities: dict[Terms, int] | None = _rounded(least)
    while inequalities:
        below: dict[int, list[int]] = {}
        above: dict[int, list[int]] = {}
        for terms in inequalities:
            for unknown, by in terms:
                (below if by > 0 else above).setdefault(unknown, []).append(abs(by))
        chosen = min((_cost(below.get(each, []), above.get(each, [])), each) for each in {**below, **above})[1]
        if len(inequalities) + len(below.get(chosen, [])) * len(above.get(chosen, [])) > MOST:
            return False
        inequalities = _rounded(_eliminated(chosen, [{**dict(terms), ONE: by} for terms, by in inequalities.items()]))
    return inequalities is None


def _cost(below: list[int], above: list[int]) -> tuple[bool, int]:
    """First the eliminations that lose no integers, as all coefficients on a side are 1; of those, few inequalities."""
    is_exact = max(below, default=1) == 1 or max(above, default=1) == 1
    return not is_exact, len(below) * len(above) - len(below) - len(above)


def _without(unknown: int, form: Form, equation: Form) -> Form:
    """A positive multiple of a form, in which an equation takes the place of an unknown."""
    by, own = form.get(unknown, 0), equation[unknown]
    return plus((form, abs(own)), (equation, -by if own > 0 else by)) if by else form


def _eliminated(unknown: int, forms: list[Form]) -> Iterator[Form]:
    """What follows from some inequalities for all other unknowns."""
    below = [each for each in forms if each.get(unknown, 0) > 0]
    above = [each for each in forms if each.get(unknown, 0) < 0]
    yield from (each for each in forms if not each.get(unknown, 0))
    for low in below:
        for high in above:
            yield plus((low, -high[unknown]), (high, low[unknown]))


def _rounded(forms: Iterable[Form]) -> dict[Terms, int] | None:
    """Inequalities without common divisors, the strictest of those with the same terms; None if one is false."""
    found: dict[Terms, int] = {}
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
