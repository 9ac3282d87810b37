"""Symbolic sizes: dimensions whose length differs from call to call, as polynomials with integer coefficients.

A `Size` has the length of the example, its *hint*, and a polynomial of symbols. Arithmetic of sizes gives sizes.
Wherever Python needs a plain answer (a branch, ``range(n)``, an index), the hint gives it. If other lengths could have
another answer, the question is kept as a `Guard`, with the user's line: a recorded program is right for all
lengths that answer its guards alike. `torch.SymInt` works in the same way.

Most comparisons are decided for all lengths, by the bounds of polynomials (`minitorch.polynomials`).
"""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from .ir import Source, is_ours, user_source
from .polynomials import (
    ZERO,
    Polynomial,
    constant_of,
    inside,
    least,
    number,
    one_of,
    plus,
    quotient,
    symbol,
    text_of,
    times,
    value_of,
)  # fmt: skip

BEYOND = 1 << 40  # elements; no length is larger, so comparisons with larger numbers are the same for all
_ROOT = os.path.dirname(os.path.abspath(__file__)) + os.sep
# The code that compares shapes which have to agree, and raises an error if they do not.
_RULES = tuple(_ROOT + place for place in ("primitives", "interpreters", "graph/verify.py", "passes/rewrite.py"))
N = TypeVar("N", int, float)

_COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "min": min, "max": max, "<": operator.lt, "<=": operator.le,
    "==": operator.eq, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


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

    @property
    def condition(self) -> str:
        """What other lengths have to keep, as text."""
        return str(self) if self.outcome else f"not {self}"

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether other lengths, given by symbol, have the same answer."""
        left, right = (value_at(each, sizes) for each in (self.left, self.right))
        return bool(_COMPUTED[self.kind](left, right)) == self.outcome


class UndecidedError(Exception):
    """The error for a pass that would decide by a size: it has to leave the program as it is there."""


class Guards:
    """The questions that a recording has asked about its sizes, each once.

    Attributes:
        found: in the order of asking.
        is_settled: whether the recording has ended, so that nothing is added.
    """

    def __init__(self) -> None:
        self.found: dict[Any, Guard] = {}
        self.is_settled = False

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Treat sizes that are equal by coincidence as different, and allow no other question: for passes."""
        self.is_settled = True
        try:
            yield
        finally:
            self.is_settled = False

    def symbol(self, name: str, hint: int, least: int = 0) -> Any:
        """Return a new symbol, whose lengths are at least `least`."""
        return Size(symbol(name, least), hint, self)

    def ask(self, key: Any, left: Any, kind: str, right: Any, asker: str = "") -> bool:
        """Answer a question.

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
    """Return the asker, by the file of the asking function; a function that checks or requires is a rule, too."""
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
    """A number computed from symbols, with the operators of Python's numbers.

    Attributes:
        hint: the number for the lengths of the example.
        guards: those of its recording.
    """

    hint: Any
    guards: Guards
    _key: Any  # equal for numbers equal for all sizes

    def __index__(self) -> Any:
        if not _compared("==", self, self.hint):  # after the recording, for an unknown answer
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
    """Symbolic integer: computed from symbols; ``isinstance(n, int)`` holds, and C functions get the hint.

    Attributes:
        polynomial: its formula.
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
    """Symbolic float: an operation on two numbers, symbolic or not."""

    __class__ = property(lambda self: float)
    __hash__ = Symbolic.__hash__

    def __init__(self, kind: str, left: Any, right: Any, hint: float, guards: Guards) -> None:
        self.kind, self.left, self.right, self.hint, self.guards = kind, left, right, hint, guards
        self._key = kind, key_of(left), key_of(right)

    def __int__(self) -> int:
        return int(self.__index__())

    def __repr__(self) -> str:
        return f"({inside(self.left)} {self.kind} {inside(self.right)})"


def _operators(kind: str, function: Callable[[str, Any, Any], Any]) -> tuple[Callable[[Any, Any], Any], ...]:
    def straight(self: Any, other: Any) -> Any:
        return function(kind, self, other) if isinstance(other, (int, float)) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return function(kind, other, self) if isinstance(other, (int, float)) else NotImplemented

    return straight, reflected


def _plainly(name: str) -> Callable[..., Any]:
    """Return an operation of plain ints that has no polynomial."""
    return lambda self, *others: getattr(self.__index__(), name)(*map(hint_of, others))


def _computed(kind: str, left: Any, right: Any) -> Any:
    """Return the result of an operation with its formula."""
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
    "+": plus,
    "-": lambda a, b: plus(a, b, -1),
    "*": times,
    "//": quotient,
    "%": lambda a, b: plus(a, times(quotient(a, b), b), -1),
    "min": lambda a, b: one_of("min", a, b),
    "max": lambda a, b: one_of("max", a, b),
}


def _is_beyond(number: Any) -> bool:
    return not is_symbolic(number) and not abs(number) < BEYOND


def _compared(kind: str, left: Any, right: Any) -> bool:
    """Return the outcome of a comparison, if it is the same for all sizes, or the answer to a question."""
    guards = next(each.guards for each in (left, right) if is_symbolic(each))
    if not isinstance(left, int) or not isinstance(right, int):
        if key_of(left) == key_of(right) or _is_beyond(left) or _is_beyond(right):
            return bool(_COMPUTED[kind](hint_of(left), hint_of(right)))
        return bool(guards.ask((kind, key_of(left), key_of(right)), left, kind, right))
    difference = plus(key_of(left), key_of(right), -1)
    below, above = least(difference), least(plus(ZERO, difference, -1))  # of left - right, of right - left
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
    """Return whether a number is computed from symbols."""
    return issubclass(type(value), Symbolic)


def is_int(value: object) -> bool:
    """Return whether a value is an int, plain or symbolic, and no bool."""
    return type(value) is int or type(value) is Size


def hint_of(value: Any) -> Any:
    """Return the value of a number, or of each in a tuple, for the example's lengths; other values unchanged."""
    if type(value) is tuple:
        return tuple(map(hint_of, value))
    return value.hint if is_symbolic(value) else value


def key_of(value: Any) -> Any:
    """Return a key that is equal for numbers equal for all sizes; for an int, its polynomial."""
    if is_symbolic(value):
        return value._key
    return number(int(value)) if isinstance(value, int) else value


def same(left: Any, right: Any) -> bool:
    """Return whether two numbers, or tuples of them, are equal for all sizes, without adding a question."""
    return bool(_structure(left) == _structure(right))


def _structure(value: Any) -> Any:
    return tuple(map(_structure, value)) if type(value) is tuple else value._key if is_symbolic(value) else value


def is_multiple(size: int, of: int) -> bool:
    """Return whether a length is a multiple of another one; a recording requires it of all lengths."""
    rest: Any = size % of
    return bool(rest.guards.ask(("==", rest._key), rest, "==", 0, "rest") if is_symbolic(rest) else rest == 0)


def smaller(left: N, right: N) -> N:
    """Return the smaller of two numbers, for all sizes."""
    if type(left) is type(right) is int:
        return left if left < right else right
    found: N = _computed("min", left, right) if is_symbolic(left) or is_symbolic(right) else min(left, right)
    return found


def larger(left: N, right: N) -> N:
    """Return the larger of two numbers, for all sizes."""
    if type(left) is type(right) is int:
        return left if left > right else right
    found: N = _computed("max", left, right) if is_symbolic(left) or is_symbolic(right) else max(left, right)
    return found


def value_at(value: Any, sizes: Mapping[str, int]) -> Any:
    """Return the value of a number for other lengths, given by symbol."""
    if type(value) is Real:
        return _COMPUTED[value.kind](value_at(value.left, sizes), value_at(value.right, sizes))
    return value_of(value.polynomial, sizes) if type(value) is Size else value
