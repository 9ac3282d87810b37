"""Sizes that remember how they were computed: concolic execution (Sen, Marinov and Agha, 2005) of a function's sizes.

While a function is traced for a model with dynamic sizes, the lengths of its arguments are `Size` objects: ints, each
with its polynomial. Arithmetic gives sizes and, where it leaves the whole numbers, `Ratio` objects. Comparing one is a
*decision*, which is noted with the user's line. Decisions say which other sizes have to be tried: those for which one
of them falls otherwise.

A size is lost where Python takes an int for what it is: in ``range(n)``, as an index of a list, and in NumPy. It is a
plain number then, and only the lengths that are tried say what is done with it. Of ``int(n)``, ``float(n)`` and
``hash(n)`` we are told: comparisons with the numbers that are written in the same function count as made.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minitorch.errors import TranslationError
from minitorch.ir import Length, Source, is_ours, user_source

from .polynomials import MOST_TERMS, Polynomial, as_polynomial

BEYOND = 1 << 40  # elements; no length is so large, and comparisons with larger numbers are the same for all sizes
MOST_DEPTH = 32  # operations inside each other in a ratio; a longer computation becomes a plain float

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}


@dataclass(frozen=True)
class Quotient:
    """A float that is computed from sizes: an operation on two numbers, of `Polynomial`, `Quotient`, int or float."""

    kind: str
    left: Formula
    right: Formula
    depth: int = field(compare=False, default=1)

    def __call__(self, sizes: Mapping[str, int]) -> float:
        """Its value for some sizes."""
        found: Any = _COMPUTED[self.kind](value(self.left, sizes), value(self.right, sizes))
        return found if isinstance(found, np.ndarray) else float(found)  # type: ignore[return-value]  # of many sizes

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols in it."""
        sides = (self.left, self.right)
        return frozenset().union(*(each.symbols for each in sides if isinstance(each, (Polynomial, Quotient))))

    def __str__(self) -> str:
        return f"({self.left} {self.kind} {self.right})"


Formula = Polynomial | Quotient | int | float


def value(formula: Formula, sizes: Mapping[str, int]) -> Any:
    """The value of a formula for some sizes."""
    return formula(sizes) if isinstance(formula, (Polynomial, Quotient)) else formula


@dataclass(frozen=True)
class Decision:
    """A comparison of two numbers that are computed from sizes.

    Attributes:
        kind: "<", "==" and so on.
        left, right: the numbers.
        source: the user's line.
        is_users: whether the comparison is in the user's function, and not in one of ours that it calls.
    """

    kind: str
    left: Formula
    right: Formula
    source: Source | None = field(compare=False, default=None)
    is_users: bool = field(compare=False, default=True)

    def __call__(self, sizes: Mapping[str, int]) -> bool | None:
        """How it falls for some sizes; None if it cannot be computed for these."""
        try:
            return _COMPARED[self.kind](value(self.left, sizes), value(self.right, sizes))
        except ArithmeticError:
            return None

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that it depends on."""
        sides = (self.left, self.right)
        return frozenset().union(*(each.symbols for each in sides if isinstance(each, (Polynomial, Quotient))))

    def __str__(self) -> str:
        return f"{self.left} {self.kind} {self.right}"


def falling(decision: Decision, outcome: bool, sizes: Mapping[str, Any]) -> Any:
    """Whether a decision has an outcome for many sizes, given as an array of floats for each symbol; nearly always."""
    with np.errstate(all="ignore"):
        found = _COMPARED[decision.kind](value(decision.left, sizes), value(decision.right, sizes))
    return np.broadcast_to(found, len(next(iter(sizes.values())))) == outcome


_NOTED: ContextVar[dict[Decision, None] | None] = ContextVar("decisions", default=None)

_IS_CHECK: ContextVar[bool] = ContextVar("checking", default=False)


@contextmanager
def deciding(noted: dict[Decision, None] | None = None) -> Iterator[dict[Decision, None]]:
    """Note the decisions that are made inside, each once, in order."""
    found: dict[Decision, None] = {} if noted is None else noted
    before = _NOTED.set(found)
    try:
        yield found
    finally:
        _NOTED.reset(before)


@contextmanager
def checking() -> Iterator[None]:
    """Note no decisions inside: a rule of shapes refuses what does not fit, and does not choose between operations."""
    before = _IS_CHECK.set(True)
    try:
        yield
    finally:
        _IS_CHECK.reset(before)


def formula_of(number: Any) -> Formula:
    """How a number was computed, or the number itself."""
    if isinstance(number, (Size, Ratio)):
        return number.formula
    return number if isinstance(number, float) else int(number)


def polynomial_of(number: int) -> Polynomial:
    """The same for an int."""
    return number.formula if isinstance(number, Size) else as_polynomial(int(number))


def sized(number: int, formula: Polynomial) -> int:
    """An int with its polynomial; a plain one if that is a constant, or too long."""
    if formula.constant is not None or len(formula.terms) > MOST_TERMS:
        return number
    found = Size(number)
    found.formula = formula
    return found


def _computed(kind: str, left: Any, right: Any) -> Any:
    """A number and how it was computed."""
    if _NOTED.get() is None:  # it has outlived its export
        return _COMPUTED[kind](_plain(left), _plain(right))
    if kind == "**" and isinstance(right, int) and 0 <= right <= 4 and isinstance(left, int):
        return math.prod([left] * right)
    plain = _COMPUTED[kind](_plain(left), _plain(right))
    if isinstance(plain, int):
        a, b = polynomial_of(left), polynomial_of(right)
        if kind == "%":
            return sized(plain, a - (a // b) * b)
        return sized(plain, _COMPUTED[kind](a, b)) if kind in ("+", "-", "*", "//") else plain
    if not isinstance(plain, float):
        return plain
    one, other = formula_of(left), formula_of(right)
    depth = 1 + max([each.depth for each in (one, other) if isinstance(each, Quotient)], default=0)
    if depth > MOST_DEPTH:
        return plain
    ratio = Ratio(plain)
    ratio.formula = Quotient(kind, one, other, depth)
    return ratio


def _plain(number: Any) -> Any:
    if isinstance(number, Size):
        return int.__int__(number)
    return float.__float__(number) if isinstance(number, Ratio) else number


def _compared(kind: str, left: Any, right: Any) -> bool:
    """The outcome of a comparison, which is noted unless it is the same for all sizes."""
    outcome = _COMPARED[kind](_plain(left), _plain(right))
    noted = _NOTED.get()
    if noted is not None and not _IS_CHECK.get():
        decision = _decision(kind, left, right)
        if decision is not None and decision not in noted:
            frame = sys._getframe(1)
            while frame.f_back is not None and frame.f_code.co_filename == __file__:
                frame = frame.f_back
            is_users = not is_ours(frame.f_code.co_filename)
            noted[Decision(decision.kind, decision.left, decision.right, user_source(), is_users)] = None
    return outcome


def _decision(kind: str, left: Any, right: Any) -> Decision | None:
    """A comparison with all symbols on one side, if that is possible; None if it is the same for all sizes."""
    kind = "==" if kind == "!=" else kind  # one decision with two outcomes
    if not isinstance(left, int) or not isinstance(right, int):
        return Decision(kind, formula_of(left), formula_of(right))
    difference = polynomial_of(left) - polynomial_of(right)
    if difference.constant is not None:
        return None
    constant = dict(difference.terms).get((), 0)
    if abs(constant) >= BEYOND:
        return None
    return Decision(kind, difference - as_polynomial(constant), -constant)


def _arithmetic(kind: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    def straight(self: Any, other: Any) -> Any:
        return _computed(kind, self, other) if isinstance(other, (int, float)) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return _computed(kind, other, self) if isinstance(other, (int, float)) else NotImplemented

    return straight, reflected


def _comparison(kind: str) -> Callable[[Any, Any], Any]:
    def compare(self: Any, other: Any) -> Any:
        return _compared(kind, self, other) if isinstance(other, (int, float)) else NotImplemented

    return compare


class _Tracked:
    """The operators of sizes and ratios."""

    __add__, __radd__ = _arithmetic("+")
    __sub__, __rsub__ = _arithmetic("-")
    __mul__, __rmul__ = _arithmetic("*")
    __truediv__, __rtruediv__ = _arithmetic("/")
    __floordiv__, __rfloordiv__ = _arithmetic("//")
    __mod__, __rmod__ = _arithmetic("%")
    __pow__, __rpow__ = _arithmetic("**")
    __lt__, __le__, __gt__, __ge__ = map(_comparison, ("<", "<=", ">", ">="))
    __eq__, __ne__ = map(_comparison, ("==", "!="))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __bool__(self) -> bool:
        return bool(self != 0)

    # Ways out -------------------------------------------------------------------------------------------

    def __int__(self) -> int:
        _escaped(self)
        return int(_plain(self))

    def __float__(self) -> float:
        _escaped(self)
        return float(_plain(self))

    def __hash__(self) -> int:
        _escaped(self)
        return hash(_plain(self))


def _bits(name: str) -> Callable[..., Any]:
    """An operation on the bits of a size, which no formula describes.

    Raises:
        TranslationError: in the user's function, while a model is written (``MT803``).
    """
    plain = getattr(int, name)

    def refuse(self: Any, *others: Any) -> Any:
        if _NOTED.get() is not None and not is_ours(sys._getframe(1).f_code.co_filename):
            raise TranslationError(
                "MT803",
                f"{name.strip('_')} of the bits of a dynamic size",
                where=str(user_source()),
                why="what is computed from sizes in an ONNX model are sums, products and quotients",
                fix="compute it otherwise, or leave the dimension out of dynamic_axes",
            )
        return plain(_plain(self), *map(_plain, others))

    return refuse


def _escaped(number: Any) -> None:
    """Note comparisons with the numbers that are written in the user's function, where a size becomes a plain one."""
    frame = sys._getframe(2)
    if _NOTED.get() is not None and not is_ours(frame.f_code.co_filename):
        for each in frame.f_code.co_consts:
            for constant in each if isinstance(each, (tuple, frozenset)) else (each,):
                if isinstance(constant, (int, float)) and type(constant) is not bool:
                    _compared("<", number, constant)
                    _compared("==", number, constant)


class Size(_Tracked, Length):  # type: ignore[misc]
    """An int that is computed from sizes.

    Attributes:
        formula: how.
    """

    formula: Polynomial

    def __floor__(self) -> Size:
        return self

    __ceil__ = __trunc__ = __floor__
    __and__, __rand__, __or__, __ror__ = map(_bits, ("__and__", "__rand__", "__or__", "__ror__"))
    __xor__, __rxor__, __invert__ = map(_bits, ("__xor__", "__rxor__", "__invert__"))
    __lshift__, __rlshift__, __rshift__ = map(_bits, ("__lshift__", "__rlshift__", "__rshift__"))
    __rrshift__, bit_length, bit_count = map(_bits, ("__rrshift__", "bit_length", "bit_count"))


class Ratio(_Tracked, float):  # type: ignore[misc]
    """A float that is computed from sizes.

    Attributes:
        formula: how.
    """

    formula: Quotient
