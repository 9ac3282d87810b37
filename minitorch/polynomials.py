"""Polynomials with integer coefficients over symbolic lengths: formulas of sizes, and their bounds.

The atoms of a polynomial are symbols, quotients rounded down, and the smaller or larger of two polynomials. Polynomials
have a normal form, so that ``2 * (n + 1) - n`` and ``n + 2`` are equal. Bounds of the atoms give bounds of a polynomial
(interval arithmetic), which decide most comparisons for all lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any


@dataclass(frozen=True)
class Atom:
    """A symbol named `kind`; or two polynomials under "//", "min" or "max", which are no ring operations."""

    kind: str
    sides: tuple[Polynomial, ...] = ()
    least: int = 0  # of a symbol

    @cached_property
    def text(self) -> str:
        """Its text."""
        sides = [text_of(each) for each in self.sides]
        if self.kind == "//":
            return f"({inside(sides[0])} // {inside(sides[1])})"
        return f"{self.kind}({', '.join(sides)})" if sides else self.kind

    @cached_property
    def bound(self) -> Any:
        """A lower bound of its values."""
        if not self.sides:
            return self.least
        left, right = map(least, self.sides)
        if self.kind != "//":
            return min(left, right) if self.kind == "min" else max(left, right)
        divisor = constant_of(self.sides[1])
        return left // divisor if divisor and left > -math.inf else 0 if left >= 0 and right > 0 else -math.inf


Monomial = tuple[Atom, ...]
Polynomial = frozenset[tuple[Monomial, Any]]
"""Products of atoms, each with its coefficient, which is not 0."""

ZERO: Polynomial = frozenset()
ONE: Polynomial = frozenset([((), 1)])


def symbol(name: str, least: int = 0) -> Polynomial:
    """Return the polynomial of one symbol, whose values are at least `least`."""
    return frozenset([((Atom(name, (), least),), 1)])


def number(value: Any) -> Polynomial:
    """Return a constant polynomial."""
    return frozenset([((), value)]) if value else ZERO


def inside(operand: Any) -> str:
    """Return an operand as text, in brackets if it is a sum."""
    text = str(operand)
    return f"({text})" if " " in text and not text.startswith("(") else text


def sum_of(terms: Iterable[tuple[Monomial, Any]]) -> Polynomial:
    """Return the sum of some terms."""
    found: dict[Monomial, Any] = {}
    for monomial, factor in terms:
        found[monomial] = found.get(monomial, 0) + factor
    return frozenset([term for term in found.items() if term[1]])


def plus(left: Polynomial, right: Polynomial, factor: Any = 1) -> Polynomial:
    """Add a polynomial, times a number."""
    return sum_of([*left, *[(monomial, factor * each) for monomial, each in right]])


def times(left: Polynomial, right: Polynomial) -> Polynomial:
    """Multiply two polynomials; the factors of a product have a fixed order."""
    return sum_of([(tuple(sorted((*a, *b), key=lambda atom: atom.text)), m * n) for a, m in left for b, n in right])


def one_of(kind: str, left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the smaller ("min") or the larger ("max") of two."""
    for one, other in ((left, right), (right, left)):
        if least(plus(one, other, -1)) > -1:  # `one` is never smaller
            return other if kind == "min" else one
    return frozenset([((Atom(kind, (left, right)),), 1)])


def constant_of(polynomial: Polynomial) -> Any:
    """Return the number that a polynomial equals for all sizes, or None."""
    return 0 if not polynomial else next((m for a, m in polynomial if len(polynomial) == 1 and not a), None)


def value_of(polynomial: Polynomial, sizes: Mapping[str, int]) -> int:
    """Return a polynomial's value for values of the symbols."""

    def of(atom: Atom) -> int:
        if not atom.sides:
            return sizes[atom.kind]
        left, right = (value_of(each, sizes) for each in atom.sides)
        return left // right if atom.kind == "//" else min(left, right) if atom.kind == "min" else max(left, right)

    return sum(factor * math.prod(map(of, monomial)) for monomial, factor in polynomial)


def terms_of(polynomial: Polynomial) -> list[tuple[Monomial, Any]]:
    """Return a polynomial's terms in a fixed order, long products first."""
    return sorted(polynomial, key=lambda term: (-len(term[0]), [atom.text for atom in term[0]]))


def text_of(polynomial: Polynomial) -> str:
    """Return a polynomial as text."""
    parts = []
    for monomial, factor in terms_of(polynomial):
        parts.append(" * ".join([str(factor)] * (factor != 1 or not monomial) + [atom.text for atom in monomial]))
    return " + ".join(parts).replace("+ -", "- ") or "0"


def quotient(left: Polynomial, right: Polynomial) -> Polynomial:
    """Divide, rounding down; the part that does not divide evenly becomes an atom."""
    divisor = constant_of(right)
    if divisor:
        sign = -1 if divisor < 0 else 1
        split = [(monomial, divmod(factor * sign, abs(divisor))) for monomial, factor in left]
        whole, rest = (sum_of([(monomial, parts[at]) for monomial, parts in split]) for at in (0, 1))
        if constant_of(rest) is not None:  # below the divisor, so that it is 0 rounded down
            return whole
        common = math.gcd(divisor, *[factor for monomial, factor in rest if monomial])
        rest = sum_of([(monomial, factor // common) for monomial, factor in rest])
        right = number(abs(divisor) // common)
        return plus(whole, rest if right == ONE else frozenset([((Atom("//", (rest, right)),), 1)]))
    if least(right) > 0:
        if least(left) > -1 and least(plus(right, left, -1)) > 0:
            return ZERO
        if least(plus(right, left)) > -1 and least(plus(ZERO, left, -1)) > 0:
            return number(-1)
    whole, rest = ZERO, left
    lead, by = terms_of(right)[0]
    while True:  # long division
        found = [(_without(monomial, lead), factor) for monomial, factor in terms_of(rest)]
        part = next(((each, factor // by) for each, factor in found if each is not None and not factor % by), None)
        if part is None:
            return plus(whole, frozenset([((Atom("//", (rest, right)),), 1)])) if rest else whole
        whole, rest = plus(whole, frozenset([part])), plus(rest, times(frozenset([part]), right), -1)


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """Return the other factors of a monomial, or None if it lacks these."""
    found = list(monomial)
    for atom in part:
        if atom not in found:
            return None
        found.remove(atom)
    return tuple(found)


@lru_cache(1 << 14)
def least(polynomial: Polynomial) -> Any:
    """Return a lower bound of a polynomial; minus infinity if none is found.

    Each atom is its bound plus a remainder of at least 0: if all coefficients of the remainders are positive, the
    constant is a bound. An atom alone in a term is bounded by its sides, too: ``a - d < d * (a // d) <= a``.
    """
    bounds = [-math.inf]
    if all(atom.bound > -math.inf for monomial, _ in polynomial for atom in monomial):
        shifted = ZERO
        for monomial, factor in polynomial:
            term = number(factor)
            for atom in monomial:
                term = times(term, sum_of([((), atom.bound), ((atom,), 1)]))
            shifted = plus(shifted, term)
        if all(factor > 0 for monomial, factor in shifted if monomial):
            bounds.append(dict(shifted).get((), 0))
    for monomial, factor in polynomial:
        if len(monomial) != 1 or not monomial[0].sides or sum(monomial[0] in other for other, _ in polynomial) > 1:
            continue
        (atom,), rest = monomial, polynomial - {(monomial, factor)}
        if atom.kind != "//":
            both = [least(plus(rest, side, factor)) for side in atom.sides]
            bounds.append(min(both) if (atom.kind == "min") == (factor > 0) else max(both))
        elif divisor := constant_of(atom.sides[1]):
            part = Fraction(factor, divisor)
            above = plus(rest, atom.sides[0], part)
            bounds.append(least(plus(above, ONE, -part * (divisor - 1)) if factor > 0 else above))
        break
    return max(bounds)
