"""Symbolic sizes: dimensions whose length differs from call to call, as polynomials with integer coefficients.

A `Size` has the length of the example, its *hint*, and a polynomial of symbols. Arithmetic of sizes gives sizes.
Wherever Python needs a plain answer (a branch, ``range(n)``, an index), the hint gives it. If other lengths could have
another answer, the question is remembered as a `Guard`, with the user's line: a recorded program is right for all
lengths that answer its guards alike. `torch.SymInt` works in the same way.

The atoms of a polynomial are symbols, quotients rounded down, and the smaller or larger of two polynomials. Polynomials
have a normal form, so that ``2 * (n + 1) - n`` and ``n + 2`` are equal. Bounds of the atoms give bounds of a polynomial
(interval arithmetic), which decide most comparisons for all lengths.
"""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from .ir import Source, is_ours, user_source

BEYOND = 1 << 40  # elements; no length is larger, so comparisons with larger numbers are the same for all
_ROOT = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Where shapes are compared that have to agree: an error is raised if they do not.
_RULES = tuple(_ROOT + place for place in ("primitives", "interpreters", "graph/verify.py", "graph/rewrite.py"))
N = TypeVar("N", int, float)

_COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "min": min, "max": max, "<": operator.lt, "<=": operator.le,
    "==": operator.eq, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


# Polynomials ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Atom:
    """A symbol, whose name is `kind`; or two polynomials under "//", "min" or "max", which are no ring's operations."""

    kind: str
    sides: tuple[Polynomial, ...] = ()
    least: int = 0  # of a symbol

    @cached_property
    def text(self) -> str:
        """Its listing."""
        sides = [text_of(each) for each in self.sides]
        if self.kind == "//":
            return f"({_inside(sides[0])} // {_inside(sides[1])})"
        return f"{self.kind}({', '.join(sides)})" if sides else self.kind

    @cached_property
    def bound(self) -> Any:
        """A number that it is never below."""
        if not self.sides:
            return self.least
        left, right = map(least, self.sides)
        if self.kind != "//":
            return _COMPUTED[self.kind](left, right)
        divisor = constant_of(self.sides[1])
        return left // divisor if divisor and left > -math.inf else 0 if left >= 0 and right > 0 else -math.inf


Monomial = tuple[Atom, ...]
Polynomial = frozenset[tuple[Monomial, Any]]
"""Products of atoms, each with its coefficient, which is not 0."""

ONE: Polynomial = frozenset([((), 1)])


def _inside(operand: Any) -> str:
    """The listing of an operand, in brackets if it is a sum."""
    text = str(operand)
    return f"({text})" if " " in text and not text.startswith("(") else text


def _polynomial(terms: Iterable[tuple[Monomial, Any]]) -> Polynomial:
    """The sum of some terms."""
    found: dict[Monomial, Any] = {}
    for monomial, factor in terms:
        found[monomial] = found.get(monomial, 0) + factor
    return frozenset([term for term in found.items() if term[1]])


def _plus(left: Polynomial, right: Polynomial, factor: Any = 1) -> Polynomial:
    return _polynomial([*left, *[(monomial, factor * each) for monomial, each in right]])


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    pairs = [(tuple(sorted((*a, *b), key=lambda atom: atom.text)), m * n) for a, m in left for b, n in right]
    return _polynomial(pairs)


def _one_of(kind: str, left: Polynomial, right: Polynomial) -> Polynomial:
    """The smaller ("min") or the larger ("max") of two."""
    for one, other in ((left, right), (right, left)):
        if least(_plus(one, other, -1)) > -1:  # `one` is never smaller
            return other if kind == "min" else one
    return frozenset([((Atom(kind, (left, right)),), 1)])


def constant_of(polynomial: Polynomial) -> Any:
    """The number that a polynomial is for all sizes; None if there is none."""
    return 0 if not polynomial else next((m for a, m in polynomial if len(polynomial) == 1 and not a), None)


def terms_of(polynomial: Polynomial) -> list[tuple[Monomial, Any]]:
    """Its terms in a fixed order, long products first."""
    return sorted(polynomial, key=lambda term: (-len(term[0]), [atom.text for atom in term[0]]))


def text_of(polynomial: Polynomial) -> str:
    """Its listing."""
    parts = []
    for monomial, factor in terms_of(polynomial):
        parts.append(" * ".join([str(factor)] * (factor != 1 or not monomial) + [atom.text for atom in monomial]))
    return " + ".join(parts).replace("+ -", "- ") or "0"


def _quotient(left: Polynomial, right: Polynomial) -> Polynomial:
    """The quotient rounded down; an atom is made of what does not divide evenly."""
    divisor = constant_of(right)
    if divisor:
        sign = -1 if divisor < 0 else 1
        split = [(monomial, divmod(factor * sign, abs(divisor))) for monomial, factor in left]
        whole, rest = (_polynomial([(monomial, parts[at]) for monomial, parts in split]) for at in (0, 1))
        if constant_of(rest) is not None:  # below the divisor, so that it is 0 rounded down
            return whole
        common = math.gcd(divisor, *[factor for monomial, factor in rest if monomial])
        rest = _polynomial([(monomial, factor // common) for monomial, factor in rest])
        right = _polynomial([((), abs(divisor) // common)])
        return _plus(whole, rest if right == ONE else frozenset([((Atom("//", (rest, right)),), 1)]))
    if least(right) > 0:
        if least(left) > -1 and least(_plus(right, left, -1)) > 0:
            return frozenset()
        if least(_plus(right, left)) > -1 and least(_plus(frozenset(), left, -1)) > 0:
            return frozenset([((), -1)])
    whole, rest = frozenset(), left
    lead, by = terms_of(right)[0]
    while True:  # long division
        found = [(_without(monomial, lead), factor) for monomial, factor in terms_of(rest)]
        part = next(((each, factor // by) for each, factor in found if each is not None and not factor % by), None)
        if part is None:
            return _plus(whole, frozenset([((Atom("//", (rest, right)),), 1)])) if rest else whole
        whole, rest = _plus(whole, frozenset([part])), _plus(rest, _times(frozenset([part]), right), -1)


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """The other factors of a monomial, if it has these."""
    found = list(monomial)
    for atom in part:
        if atom not in found:
            return None
        found.remove(atom)
    return tuple(found)


@lru_cache(1 << 14)
def least(polynomial: Polynomial) -> Any:
    """A number that a polynomial is never below; minus infinity if none is found.

    Each atom is its bound plus something that is not negative: if all coefficients of that are positive, the constant
    is a bound. An atom that stands alone in a term is bounded by its sides, too: ``a - d < d * (a // d) <= a``.
    """
    bounds = [-math.inf]
    if all(atom.bound > -math.inf for monomial, _ in polynomial for atom in monomial):
        shifted: Polynomial = frozenset()
        for monomial, factor in polynomial:
            term: Polynomial = frozenset([((), factor)])
            for atom in monomial:
                term = _times(term, _polynomial([((), atom.bound), ((atom,), 1)]))
            shifted = _plus(shifted, term)
        if all(factor > 0 for monomial, factor in shifted if monomial):
            bounds.append(dict(shifted).get((), 0))
    for monomial, factor in polynomial:
        if len(monomial) != 1 or not monomial[0].sides or sum(monomial[0] in other for other, _ in polynomial) > 1:
            continue
        (atom,), rest = monomial, polynomial - {(monomial, factor)}
        if atom.kind != "//":
            both = [least(_plus(rest, side, factor)) for side in atom.sides]
            bounds.append(min(both) if (atom.kind == "min") == (factor > 0) else max(both))
        elif divisor := constant_of(atom.sides[1]):
            part = Fraction(factor, divisor)
            above = _plus(rest, atom.sides[0], part)
            bounds.append(least(_plus(above, ONE, -part * (divisor - 1)) if factor > 0 else above))
        break
    return max(bounds)


# Sizes ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Guard:
    """A question about sizes to which other lengths could have another answer.

    Attributes:
        left, kind, right: the comparison; ``n == 5`` for a size that became a plain number.
        outcome: the answer for the hints.
        asker: "user", for a line of the user's function; "rule", for a rule of shapes, which raises for the other
            answer; or "engine".
        source: the user's line.
    """

    left: Any
    kind: str
    right: Any
    outcome: bool
    asker: str
    source: Source | None

    def __str__(self) -> str:
        return f"{self.left} {self.kind} {self.right}"

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether other lengths, given by symbol, have the same answer."""
        left, right = (value_at(each, sizes) for each in (self.left, self.right))
        return bool(_COMPUTED[self.kind](left, right)) == self.outcome


class UndecidedError(Exception):
    """Raised where a pass would decide by a size: it has to leave undone what it is about to do."""


class Guards:
    """The questions that a recording has asked about its sizes, each once.

    Attributes:
        found: in the order in which they were asked.
        is_settled: whether nothing is added, since the recording has ended.
    """

    def __init__(self) -> None:
        self.found: dict[Any, Guard] = {}
        self.is_settled = False

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Inside, sizes are different that are equal by coincidence, and nothing else may be asked: for passes."""
        self.is_settled = True
        try:
            yield
        finally:
            self.is_settled = False

    def symbol(self, name: str, hint: int, least: int = 0) -> Any:
        """A new symbol; no length of it is below `least`."""
        return Size(frozenset([((Atom(name, (), least),), 1)]), hint, self)

    def ask(self, key: Any, left: Any, kind: str, right: Any, asker: str = "") -> bool:
        """The answer to a question.

        Raises:
            UndecidedError: for a comparison after the recording that no rule of shapes makes.
        """
        outcome = bool(_COMPUTED[kind](hint_of(left), hint_of(right)))
        if key in self.found:
            return outcome
        asker = asker or _asker()
        if not self.is_settled:
            self.found[key] = Guard(left, kind, right, outcome, asker, user_source())
        elif kind == "==":
            return False
        elif asker != "rule":
            raise UndecidedError(f"{left} {kind} {right}")
        return outcome


def _asker() -> str:
    """Who asks, by the file of the function that does; one that checks or requires is a rule, too."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in (__file__, "<string>"):
        frame = frame.f_back
    file = frame.f_code.co_filename
    if not is_ours(file):
        return "user"
    if any(name.lstrip("_").startswith(("check", "require")) for name in frame.f_code.co_qualname.split(".")):
        return "rule"
    return "rule" if file.startswith(_RULES) else "engine"


class Symbolic:
    """A number that is computed from symbols, with the operators of Python's numbers.

    Attributes:
        hint: the number for the lengths of the example.
        guards: of the recording that it belongs to.
    """

    hint: Any
    guards: Guards
    _key: Any  # equal for numbers that are the same for all sizes

    def __index__(self) -> Any:
        if not _compared("==", self, self.hint):  # after the recording, where that is not known
            raise UndecidedError(f"{self} becomes a plain number")
        return self.hint

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __hash__(self) -> int:
        return hash(self.__index__()) if _asker() == "user" else hash(self._key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self.hint, name):
            raise AttributeError(f"{type(self.hint).__name__!r} object has no attribute {name!r}")
        return getattr(self.__index__(), name)

    def __bool__(self) -> bool:
        return not _compared("==", self, 0)

    def __pos__(self) -> Any:
        return self

    def __neg__(self) -> Any:
        return _computed("-", 0, self)

    def __abs__(self) -> Any:
        return self if _compared(">=", self, 0) else -self

    def __divmod__(self, other: Any) -> Any:
        return _computed("//", self, other), _computed("%", self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return _computed("//", other, self), _computed("%", other, self)

    def __ne__(self, other: object) -> Any:
        return not _compared("==", self, other) if isinstance(other, (int, float)) else NotImplemented

    def __format__(self, spec: str) -> str:
        return format(self.hint if spec else repr(self), spec)


class Size(Symbolic):
    """An int that is computed from symbols; ``isinstance(n, int)`` holds, and C functions are given the hint.

    Attributes:
        polynomial: how it is computed.
    """

    __class__ = property(lambda self: int)
    __hash__ = Symbolic.__hash__

    def __init__(self, polynomial: Polynomial, hint: int, guards: Guards) -> None:
        self.polynomial = self._key = polynomial
        self.hint, self.guards = hint, guards

    def __repr__(self) -> str:
        return text_of(self.polynomial)

    def __ceil__(self) -> Size:
        return self

    __floor__ = __round__ = __trunc__ = __ceil__


class Real(Symbolic):
    """A float that is computed from symbols: an operation on two numbers, symbolic or not."""

    __class__ = property(lambda self: float)
    __hash__ = Symbolic.__hash__

    def __init__(self, kind: str, left: Any, right: Any, hint: float, guards: Guards) -> None:
        self.kind, self.left, self.right, self.hint, self.guards = kind, left, right, hint, guards
        self._key = kind, key_of(left), key_of(right)

    def __repr__(self) -> str:
        return f"({_inside(self.left)} {self.kind} {_inside(self.right)})"


def _operators(kind: str, function: Callable[[str, Any, Any], Any]) -> tuple[Callable[[Any, Any], Any], ...]:
    def straight(self: Any, other: Any) -> Any:
        return function(kind, self, other) if isinstance(other, (int, float)) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return function(kind, other, self) if isinstance(other, (int, float)) else NotImplemented

    return straight, reflected


def _plainly(name: str) -> Callable[..., Any]:
    """An operation of plain ints that has no polynomial."""
    return lambda self, *others: getattr(self.__index__(), name)(*map(hint_of, others))


def _computed(kind: str, left: Any, right: Any) -> Any:
    """The result of an operation, with how it is computed."""
    hint = _COMPUTED[kind](hint_of(left), hint_of(right))
    guards = next(each.guards for each in (left, right) if is_symbolic(each))
    if kind == "**" and type(left) is Size and type(right) is int and 0 <= right <= 4:
        return math.prod([left] * right)
    if isinstance(hint, float):
        return Real(kind, left, right, hint, guards)
    if kind == "**":
        return operator.index(left) ** operator.index(right)
    found = _RING[kind](key_of(left), key_of(right))
    constant = constant_of(found)
    return Size(found, hint, guards) if constant is None else constant


_RING: dict[str, Callable[[Polynomial, Polynomial], Polynomial]] = {
    "+": _plus,
    "-": lambda a, b: _plus(a, b, -1),
    "*": _times,
    "//": _quotient,
    "%": lambda a, b: _plus(a, _times(_quotient(a, b), b), -1),
    "min": lambda a, b: _one_of("min", a, b),
    "max": lambda a, b: _one_of("max", a, b),
}


def _is_beyond(number: Any) -> bool:
    return not is_symbolic(number) and not abs(number) < BEYOND


def _compared(kind: str, left: Any, right: Any) -> bool:
    """The outcome of a comparison: what holds for all sizes, or the answer to a question."""
    guards = next(each.guards for each in (left, right) if is_symbolic(each))
    if not isinstance(left, int) or not isinstance(right, int):
        if key_of(left) == key_of(right) or _is_beyond(left) or _is_beyond(right):
            return bool(_COMPUTED[kind](hint_of(left), hint_of(right)))
        return bool(guards.ask((kind, key_of(left), key_of(right)), left, kind, right))
    difference = _plus(key_of(left), key_of(right), -1)
    below, above = least(difference), least(_plus(frozenset(), difference, -1))  # of left - right, of right - left
    holds, fails = {
        "==": (not difference, below > 0 or above > 0),
        "<": (above > 0, below > -1),
        "<=": (above > -1, below > 0),
        ">": (below > 0, above > -1),
        ">=": (below > -1, above > 0),
    }[kind]
    if holds or fails or _is_beyond(dict(difference).get((), 0)):
        return bool(holds) or (not fails and bool(_COMPUTED[kind](hint_of(left), hint_of(right))))
    return bool(guards.ask((kind, difference), left, kind, right))


for _name, _kind in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("floordiv", "//"), ("mod", "%"),
                     ("pow", "**")):  # fmt: skip
    for _prefix, _method in zip(("", "r"), _operators(_kind, _computed), strict=True):
        setattr(Symbolic, f"__{_prefix}{_name}__", _method)
for _name, _kind in (("lt", "<"), ("le", "<="), ("eq", "=="), ("gt", ">"), ("ge", ">=")):
    setattr(Symbolic, f"__{_name}__", _operators(_kind, _compared)[0])
for _name in ("and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift", "invert", "round"):
    setattr(Symbolic, f"__{_name}__", _plainly(f"__{_name}__"))


# For the engine -------------------------------------------------------------------------------------------


def is_symbolic(value: object) -> bool:
    """Whether a number is computed from symbols."""
    return issubclass(type(value), Symbolic)


def is_int(value: object) -> bool:
    """Whether a value is an int, and no bool; a symbolic one is."""
    return type(value) is int or type(value) is Size


def hint_of(value: Any) -> Any:
    """A number for the lengths of the example; a tuple of such numbers; anything else as it is."""
    if type(value) is tuple:
        return tuple(map(hint_of, value))
    return value.hint if is_symbolic(value) else value


def key_of(value: Any) -> Any:
    """Equal for numbers that are the same for all sizes; of an int, its polynomial."""
    if is_symbolic(value):
        return value._key
    return _polynomial([((), int(value))]) if isinstance(value, int) else value


def same(left: Any, right: Any) -> bool:
    """Whether two numbers, or tuples of them, are the same for all sizes; this asks nothing."""
    return bool(_structure(left) == _structure(right))


def _structure(value: Any) -> Any:
    return tuple(map(_structure, value)) if type(value) is tuple else value._key if is_symbolic(value) else value


def is_multiple(size: int, of: int) -> bool:
    """Whether a length is a multiple of another one; a recording requires it of all lengths."""
    rest: Any = size % of
    return bool(rest.guards.ask(("==", rest._key), rest, "==", 0, "rest") if is_symbolic(rest) else rest == 0)


def smaller(left: N, right: N) -> N:
    """The smaller of two numbers, for all sizes."""
    if type(left) is type(right) is int:
        return left if left < right else right
    found: N = _computed("min", left, right) if is_symbolic(left) or is_symbolic(right) else min(left, right)
    return found


def larger(left: N, right: N) -> N:
    """The larger of two numbers, for all sizes."""
    if type(left) is type(right) is int:
        return left if left > right else right
    found: N = _computed("max", left, right) if is_symbolic(left) or is_symbolic(right) else max(left, right)
    return found


def value_at(value: Any, sizes: Mapping[str, int]) -> Any:
    """A number for other lengths, given by symbol."""
    if type(value) is Real:
        return _COMPUTED[value.kind](value_at(value.left, sizes), value_at(value.right, sizes))
    if not is_symbolic(value):
        return value

    def of(polynomial: Polynomial) -> int:
        return sum(factor * math.prod(map(atom_at, monomial)) for monomial, factor in polynomial)

    def atom_at(atom: Atom) -> int:
        return _COMPUTED[atom.kind](*map(of, atom.sides)) if atom.sides else sizes[atom.kind]

    return of(value.polynomial)
