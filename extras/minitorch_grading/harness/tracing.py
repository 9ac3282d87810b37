"""Drivers of exercise 04: functions to trace, calls to compare, and a small jit that counts traces."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .driver import Driver, call_purely, driver, refused, within
from .garbage import young
from .limit import Limited
from .needs import EAGER as NEEDS
from .plain import Array
from .recording import operators, refusal

# --- what the notebook works with, too --------------------------------------------------------------------------

ARRAYS = (np.ndarray, np.generic)

Operand = Any  # ``(place,)`` of a value of the program, or a number or array that is written into it
# ``(rows, result)``: of each row the operation and its operands; the result is an operand, or a list of them. The
# values of a program are its arguments, and then those of its rows.
Program = tuple[list[tuple[str, list[Operand]]], Operand]

# Of each operation, by its name in NumPy, the methods that write it down; those of the second place turn the operands.
METHODS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "power": ("__pow__",),
    "negative": ("__neg__",),
    "greater": ("__gt__",),
    "less": ("__lt__",),
    "greater_equal": ("__ge__",),
    "less_equal": ("__le__",),
    "equal": ("__eq__",),
    **{name: (name,) for name in ("sum", "sqrt", "exp")},
}
OPERATIONS: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name in (*METHODS, "where")}


def _applied(operation: str, *operands: Any) -> StandIn:
    rows: list[Any] = next(each._rows for each in operands if isinstance(each, StandIn))
    rows.append((operation, [_operand(each, rows) for each in operands]))
    return StandIn(rows, len(rows) - 1)


@operators(_applied, METHODS)
class StandIn:
    """Stands for an array while a function is traced: it can be computed with (`METHODS`), and has no value."""

    __array_ufunc__ = None  # so that NumPy leaves `array * stand_in` to us
    __hash__ = object.__hash__
    __slots__ = ("__weakref__", "_place", "_rows")

    def __init__(self, rows: list[Any], place: int) -> None:
        self._rows, self._place = rows, place
        _made.append(weakref.ref(self))

    __bool__ = __float__ = __int__ = __len__ = __iter__ = refusal(
        "this is a stand-in: the program runs later, and there is no value now"
    )


def _operand(value: Any, rows: list[Any]) -> Operand:
    """A value as an operand of a program."""
    if not isinstance(value, StandIn):
        if isinstance(value, (*ARRAYS, bool, int, float)):
            return np.asarray(value) if isinstance(value, np.generic) else value
        raise TypeError(f"a jitted function computes with arrays and numbers, and this is a {type(value).__name__}")
    if value._rows is not rows:
        raise TypeError("this stand-in has leaked from another trace: it will never have a value")
    return (value._place,)


_made: list[weakref.ref[StandIn]] = []  # the stand-ins of the last trace


def where(condition: Any, a: Any, b: Any) -> Any:
    """Elements of `a` where the condition is true, and of `b` elsewhere; both are computed."""
    if any(isinstance(each, StandIn) for each in (condition, a, b)):
        return _applied("where", condition, a, b)
    return np.where(condition, a, b)


def traced(function: Callable[..., Any], args: tuple[Any, ...]) -> Program:
    """The program that a function writes down for arguments like these: arrays are its arguments, numbers are not."""
    _made.clear()
    places = iter(range(len(args)))
    rows: list[Any] = [("argument", []) for each in args if isinstance(each, ARRAYS)]
    count = len(rows)
    result = function(*[StandIn(rows, next(places)) if isinstance(each, ARRAYS) else each for each in args])
    several = isinstance(result, (tuple, list))
    return rows[count:], [_operand(each, rows) for each in result] if several else _operand(result, rows)


def run_program(program: Program, arrays: Sequence[Array]) -> list[Array] | Array:
    """The results of a program, as many as it has."""
    rows, result = program
    values: list[Any] = list(arrays)

    def value(operand: Operand) -> Any:
        return values[operand[0]] if type(operand) is tuple else operand

    for operation, operands in rows:
        values.append(OPERATIONS[operation](*map(value, operands)))
    return [np.asarray(value(each)) for each in result] if type(result) is list else np.asarray(value(result))


class Jit:
    """A jitted function: traced when it is called in a new way, and run as a program when it is called in a known one.

    It takes arrays and numbers. An array is known by its shape, a number by its value.

    Args:
        function: the function.
        compiled: from a program to a function of its arrays.

    Example:
        >>> double = Jit(lambda x: x * 2)
        >>> double(np.ones(2)).tolist(), double(np.zeros(2)).tolist(), double.traces
        ([2.0, 2.0], [0.0, 0.0], 1)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        compiled: Callable[[Program], Callable[[list[Array]], Any]] = lambda program: partial(run_program, program),
    ) -> None:
        self._function, self._compiled = function, compiled
        self._programs: dict[Any, Callable[[list[Array]], Any]] = {}

    @property
    def traces(self) -> int:
        """How often the function was traced."""
        return len(self._programs)

    def __call__(self, *args: Any) -> Any:
        """Run the program, traced before if need be."""
        if not all(isinstance(each, (*ARRAYS, bool, int, float)) for each in args):
            raise TypeError("a jitted function takes arrays and numbers")
        key = tuple(each.shape if isinstance(each, ARRAYS) else repr(each) for each in args)
        if key not in self._programs:
            self._programs[key] = self._compiled(traced(self._function, args))
        found = self._programs[key]([np.asarray(each) for each in args if isinstance(each, ARRAYS)])
        return tuple(found) if isinstance(found, list) else found


# --- trace ------------------------------------------------------------------------------------------------------

REFUSED = "a decision is refused"  # the part of the task


@driver("tracing.trace", NEEDS)
def trace(call: Limited, case: tuple[str, tuple[str, int]]) -> Any:
    """The source of a function, and its arguments; where it decides by a value, what is raised is the answer."""
    part, (source, count) = case
    answer = call(eval(source, {}), count)
    return refused(answer, part == REFUSED)


# --- signature --------------------------------------------------------------------------------------------------


def _is_taken(signature: Any, one: Any, other: Any) -> bool:
    """Whether a dict takes the second of two calls' signatures for the first."""
    return signature(other) in {signature(one): 0}


signature = Driver("tracing.signature", within(_is_taken), NEEDS)


# --- train ------------------------------------------------------------------------------------------------------


@driver("tracing.train", NEEDS)
def train(call: Limited, case: tuple[str, Any]) -> Any:
    """An array, and the rate of each step; programs of jitted functions are run by the judge."""
    x, rates = case[1]

    def compiled(program: Program) -> Callable[[list[Array]], Any]:
        number = call.consult(("compile", program))
        return lambda arrays: call.consult(("run", number, arrays))

    return call(lambda function: Jit(function, compiled), x, rates)


# --- clipped ----------------------------------------------------------------------------------------------------


def _clipped(function: Any, length: int, limit: float) -> Any:
    """The program of a function, and how many stand-ins are still alive afterwards."""
    with young() as collect:
        program = traced(function, (np.empty(length), limit))
        collect()
    return program, sum(each() is not None for each in _made)


clipped = Driver("tracing.clipped", within(_clipped), NEEDS)


# --- buckets ----------------------------------------------------------------------------------------------------

buckets = Driver("tracing.buckets", call_purely, NEEDS)
