"""Polynomials of sizes, in whole numbers: the lengths and bounds of a graph whose sizes are symbols.

A polynomial is a sum of monomials, each a coefficient and a product of *atoms*: a symbol, a quotient rounded down, the
smaller or the larger of two polynomials. Equal polynomials are equal objects as far as the ring's laws go, so that
``2 * (n + 1) - n`` and ``n + 2`` are one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

MOST_TERMS = 64  # monomials; a longer polynomial is not looked at


@dataclass(frozen=True)
class Atom:
    """Two polynomials under an operation that is none of the ring's: "//", "min" or "max"."""

    kind: str
    left: Polynomial
    right: Polynomial

    def __str__(self) -> str:
        return f"{self.kind}({self.left}, {self.right})" if self.kind != "//" else f"({self.left}) // ({self.right})"


Factor = str | Atom
Monomial = tuple[Factor, ...]


@dataclass(frozen=True)
class Polynomial:
    """A sum of monomials, the same for all ways in which it was computed.

    Attributes:
        terms: the coefficient of each monomial, none of them 0, in a fixed order.
    """

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Polynomial:
        """The polynomial with these coefficients."""
        found = [(monomial, factor) for monomial, factor in terms.items() if factor]
        return Polynomial(tuple(sorted(found, key=lambda term: (-len(term[0]), [*map(str, term[0])]))))

    @cached_property
    def constant(self) -> int | None:
        """The number that it is for all sizes, if it is one."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () else None

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbols in it."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for factor in monomial:
                found |= {factor} if isinstance(factor, str) else factor.left.symbols | factor.right.symbols
        return frozenset(found)

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    def __call__(self, sizes: Mapping[str, int]) -> int:
        """Its value for some sizes.

        Raises:
            ZeroDivisionError: if a quotient's divisor is 0 for these.
        """
        total = 0
        for monomial, factor in self.terms:
            for each in monomial:
                factor *= sizes[each] if isinstance(each, str) else _value(each, sizes)
            total += factor
        return total

    def __str__(self) -> str:
        parts = []
        for monomial, factor in self.terms:
            named = [f"({each})" if isinstance(each, Atom) and each.kind == "//" else str(each) for each in monomial]
            parts.append(" * ".join([*([] if factor == 1 and named else [str(factor)]), *named]))
        return " + ".join(parts).replace("+ -", "- ") or "0"

    # Arithmetic -----------------------------------------------------------------------------------------

    def __add__(self, other: Polynomial | int) -> Polynomial:
        terms = dict(self.terms)
        for monomial, factor in as_polynomial(other).terms:
            terms[monomial] = terms.get(monomial, 0) + factor
        return Polynomial.of(terms)

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple([(monomial, -factor) for monomial, factor in self.terms]))

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for mine, one in self.terms:
            for theirs, another in as_polynomial(other).terms:
                monomial = tuple(sorted((*mine, *theirs), key=str))
                terms[monomial] = terms.get(monomial, 0) + one * another
        return Polynomial.of(terms)

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, other: Polynomial) -> Polynomial:
        """The quotient rounded down; as far as it is exact, without an atom."""
        if other.constant:
            return self._by_number(other.constant)
        whole, rest = self._divided(other)
        common = math.gcd(*(factor for _, factor in (*rest.terms, *other.terms)))
        if rest.constant == 0 or common == 0:
            return whole
        left, right = (Polynomial(tuple([(m, factor // common) for m, factor in p.terms])) for p in (rest, other))
        return whole + Polynomial((((Atom("//", left, right),), 1),))

    def _by_number(self, number: int) -> Polynomial:
        sign = -1 if number < 0 else 1
        whole, rest = {}, {}
        for monomial, factor in self.terms:
            whole[monomial], rest[monomial] = divmod(factor * sign, number * sign)
        left = Polynomial.of(rest)
        if left.constant is not None:  # below the divisor, so that it is 0 rounded down
            return Polynomial.of(whole)
        varying = [factor for monomial, factor in left.terms if monomial]
        common = math.gcd(number, *varying)
        left = Polynomial.of({monomial: factor // common for monomial, factor in left.terms})
        if number * sign == common:
            return Polynomial.of(whole) + left
        return Polynomial.of(whole) + Polynomial((((Atom("//", left, as_polynomial(number * sign // common)),), 1),))

    def _divided(self, other: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Quotient and rest, by the first monomial of the divisor, as long as it divides one."""
        whole, rest = as_polynomial(0), self
        lead, by = other.terms[0] if other.terms else ((), 0)
        for _ in range(MOST_TERMS):
            for monomial, factor in rest.terms:
                left = _without(monomial, lead)
                if left is not None and by and factor % by == 0:
                    part = Polynomial.of({left: factor // by})
                    whole, rest = whole + part, rest - part * other
                    break
            else:
                break
        return whole, rest


def _value(atom: Atom, sizes: Mapping[str, int]) -> Any:
    left: Any = atom.left(sizes)
    right: Any = atom.right(sizes)
    if atom.kind == "//":
        return left // right
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):  # of many sizes
        return np.minimum(left, right) if atom.kind == "min" else np.maximum(left, right)
    return min(left, right) if atom.kind == "min" else max(left, right)


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """The other factors of a monomial, if it has these."""
    found = list(monomial)
    for factor in part:
        if factor not in found:
            return None
        found.remove(factor)
    return tuple(found)


def as_polynomial(value: Polynomial | int) -> Polynomial:
    """A number as the polynomial of no symbol."""
    return value if isinstance(value, Polynomial) else Polynomial.of({(): value})


def symbol(name: str) -> Polynomial:
    """The polynomial that is a symbol."""
    return Polynomial((((name,), 1),))


def bounded(kind: str, left: Polynomial, right: Polynomial) -> Polynomial:
    """The smaller ("min") or the larger ("max") of two."""
    difference = (left - right).constant
    if difference is not None:
        return left if (difference <= 0) == (kind == "min") else right
    return Polynomial((((Atom(kind, left, right),), 1),))
