"""How the tasks of exercise 04 ask: functions to trace, calls to compare, and a small jit that counts traces."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np

from .ask import Ask, asks, call_with_arguments
from .garbage import young
from .limit import Limited, limited
from .needs import Needs
from .plain import TIMEOUT, Array, Fault

NEEDS = Needs(engine=("interpreters", "primitives", "tensor"))

# --- what the notebook works with, too --------------------------------------------------------------------------

ARRAYS = (np.ndarray, np.generic)

Run = Callable[[dict[Any, Any]], Any]  # from the values of a call to the value of a stand-in


class StandIn:
    """Stands for an array while a function is traced: it can be computed with, and has no value."""

    __array_ufunc__ = None  # so that NumPy leaves `array * stand_in` to us
    __hash__ = object.__hash__
    __slots__ = ("__weakref__", "_run")

    def __init__(self, run: Run) -> None:
        self._run = run

    def _made(self, function: Callable[..., Any], *others: Any) -> StandIn:
        return _applied(function, self, *others)

    def _refuse(self) -> NoReturn:
        raise TypeError("this is a stand-in: the program runs later, and there is no value now")

    __bool__ = __float__ = __int__ = __len__ = __iter__ = _refuse

    def __add__(self, other: Any) -> StandIn:
        return self._made(np.add, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> StandIn:
        return self._made(np.multiply, other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> StandIn:
        return self._made(np.subtract, other)

    def __rsub__(self, other: Any) -> StandIn:
        return _applied(np.subtract, other, self)

    def __truediv__(self, other: Any) -> StandIn:
        return self._made(np.divide, other)

    def __rtruediv__(self, other: Any) -> StandIn:
        return _applied(np.divide, other, self)

    def __pow__(self, other: Any) -> StandIn:
        return self._made(np.power, other)

    def __neg__(self) -> StandIn:
        return self._made(np.negative)

    def __gt__(self, other: Any) -> StandIn:
        return self._made(np.greater, other)

    def __lt__(self, other: Any) -> StandIn:
        return self._made(np.less, other)

    def __ge__(self, other: Any) -> StandIn:
        return self._made(np.greater_equal, other)

    def __le__(self, other: Any) -> StandIn:
        return self._made(np.less_equal, other)

    def __eq__(self, other: object) -> StandIn:  # type: ignore[override]
        return self._made(np.equal, other)

    def sum(self) -> StandIn:
        """The sum of all elements."""
        return self._made(np.sum)

    def sqrt(self) -> StandIn:
        """The square root of each element."""
        return self._made(np.sqrt)


def _applied(function: Callable[..., Any], *operands: Any) -> StandIn:
    runs: list[Run] = [_run_of(each) for each in operands]
    key = object()

    def run(values: dict[Any, Any]) -> Any:
        if key not in values:
            values[key] = function(*[each(values) for each in runs])
        return values[key]

    made = StandIn(run)
    _made.append(weakref.ref(made))
    return made


def _run_of(operand: Any) -> Run:
    if isinstance(operand, StandIn):
        return operand._run
    return lambda values: operand


_made: list[weakref.ref[StandIn]] = []  # the stand-ins of the last trace


def where(condition: Any, a: Any, b: Any) -> Any:
    """Elements of `a` where the condition is true, and of `b` elsewhere; both are computed."""
    if any(isinstance(each, StandIn) for each in (condition, a, b)):
        return _applied(np.where, condition, a, b)
    return np.where(condition, a, b)


class Jit:
    """A jitted function: traced when it is called in a new way, and run as a program when it is called in a known one.

    It takes arrays and numbers. An array is known by its shape, a number by its value.

    Example:
        >>> double = Jit(lambda x: x * 2)
        >>> double(np.ones(2)).tolist(), double(np.zeros(2)).tolist(), double.traces
        ([2.0, 2.0], [0.0, 0.0], 1)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._programs: dict[Any, Callable[..., Any]] = {}
        self._calls = 0

    @property
    def traces(self) -> int:
        """How often the function was traced."""
        return len(self._programs)

    @property
    def calls(self) -> int:
        """How often it was called."""
        return self._calls

    def __call__(self, *args: Any) -> Any:
        """Run the program, traced before if need be."""
        if not all(isinstance(each, (*ARRAYS, bool, int, float)) for each in args):
            raise TypeError("a jitted function takes arrays and numbers")
        key = tuple(each.shape if isinstance(each, ARRAYS) else repr(each) for each in args)
        self._calls += 1
        if key not in self._programs:
            self._programs[key] = self._traced(args)
        return self._programs[key](*args)

    def _traced(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        _made.clear()
        inputs = [_input(place) if isinstance(each, ARRAYS) else each for place, each in enumerate(args)]
        result = self._function(*inputs)
        several = isinstance(result, (tuple, list))
        runs = [_run_of(each) for each in (result if several else [result])]

        def program(*given: Any) -> Any:
            values = dict(enumerate(given))
            found = [np.asarray(run(values)) for run in runs]
            return tuple(found) if several else found[0]

        return program


def _input(place: int) -> StandIn:
    made = StandIn(lambda values: values[place])
    _made.append(weakref.ref(made))
    return made


# --- trace ------------------------------------------------------------------------------------------------------


def _loop(x: Any) -> Any:
    y = x
    for _ in range(3):
        y = y * x
    return y


def _twice(x: Any, y: Any) -> Any:
    z = x * y
    return z * z + z


def _unused(x: Any, y: Any) -> Any:
    x * y
    return x + y


def _again(x: Any) -> Any:
    return x * x + x * x


def _decides(x: Any) -> Any:
    return x * 2 if x - 1 else x


def _decides_by_a_number(x: Any) -> Any:
    return x * 2 if x * 3 == 0 else x


REFUSED = "a decision is refused"  # the part of the task
# Of each function: the part, the number of arguments, and what it computes.
FUNCTIONS: dict[str, tuple[str, int, Callable[..., Any]]] = {
    "x * 2 + x": ("operators", 1, lambda x: x * 2 + x),
    "(-x).exp() - 1": ("operators", 1, lambda x: (-x).exp() - 1),
    "y = x; three times y = y * x": ("operators", 1, _loop),
    "2 - x": ("numbers on the left", 1, lambda x: 2 - x),
    "1 - 3 * x": ("numbers on the left", 1, lambda x: 1 - 3 * x),
    "0.5 + x": ("numbers on the left", 1, lambda x: 0.5 + x),
    "(x + y) * (x - y)": ("several values", 2, lambda x, y: (x + y) * (x - y)),
    "z = x * y; z * z + z": ("several values", 2, _twice),
    "x * x + x * x": ("several values", 1, _again),
    "x * y, which nobody uses; x + y": ("several values", 2, _unused),
    "y": ("several values", 2, lambda x, y: y),
    "x * 2 if x - 1 else x": (REFUSED, 1, _decides),
    "x * 2 if x * 3 == 0 else x": (REFUSED, 1, _decides_by_a_number),
}


def _traced(trace: Any, name: str) -> Any:
    """What a student's tracer writes down, and how often it called the function."""
    _, count, function = FUNCTIONS[name]
    calls = []

    def called(*args: Any) -> Any:
        calls.append(len(args))
        return function(*args)

    return trace(called, count), len(calls)


@asks("tracing.trace", NEEDS)
def trace(call: Limited, case: tuple[str, Any]) -> Any:
    """The name of a function; where it decides by a value, what is raised is the answer."""
    part, (name,) = case
    answer = limited(partial(_traced, call.function, name), call.seconds)
    refused = isinstance(answer, Fault) and part == REFUSED
    expected = refused and answer.kind not in (TIMEOUT, "NotImplementedError", "NameError", "WithheldError")
    return (answer.kind, answer.text) if expected else answer


# --- signature --------------------------------------------------------------------------------------------------


@asks("tracing.signature", NEEDS)
def signature(call: Limited, case: tuple[str, Any]) -> Any:
    """The arguments of two calls; the answer says whether a dict takes the second signature for the first."""
    one, other = case[1]
    return limited(lambda: call.function(other) in {call.function(one): 0}, call.seconds)


# --- train ------------------------------------------------------------------------------------------------------


class _Watched(np.ndarray[Any, Any]):
    """An array that counts the operations that are done with it outside of jitted functions."""

    done = 0
    counts = False  # for copies, and arrays of ones like this one

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        _Watched.done += any(isinstance(each, _Watched) and each.counts for each in inputs)
        if "out" in options:
            options["out"] = tuple(map(_bare, options["out"]))
        return getattr(ufunc, method)(*[_bare(each) for each in inputs], **options)


def _bare(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, _Watched) else value


def _watched(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_watched, value))
    watched = np.asarray(value).view(_Watched)
    watched.counts = True
    return watched


class _WatchedJit(Jit):
    """A jitted function whose results are watched."""

    def __call__(self, *args: Any) -> Any:
        return _watched(super().__call__(*map(_bare, args)))


def _trained(train: Any, x: Array, rates: list[float]) -> Any:
    """The result, how often everything that was jitted was traced and called, and operations outside of it."""
    made: list[Jit] = []

    def jit(function: Callable[..., Any]) -> Jit:
        made.append(_WatchedJit(function))
        return made[-1]

    _Watched.done = 0
    answer = train(jit, _watched(x.copy()), list(rates))
    return _bare(answer), sum(each.traces for each in made), sum(each.calls for each in made), _Watched.done


@asks("tracing.train", NEEDS)
def train(call: Limited, case: tuple[str, Any]) -> Any:
    """An array, and the rate of each step."""
    return limited(partial(_trained, call.function, *case[1]), call.seconds)


# --- clipped ----------------------------------------------------------------------------------------------------


def _clipped(function: Any, arrays: list[Array], limit: float) -> Any:
    """The results of a jitted function for some arrays, its traces, and stand-ins that are still alive afterwards."""
    jitted = Jit(function)
    with young() as collect:
        answers = [jitted(array, limit) for array in arrays]
        collect()
    return answers, jitted.traces, sum(each() is not None for each in _made)


@asks("tracing.clipped", NEEDS)
def clipped(call: Limited, case: tuple[str, Any]) -> Any:
    """Arrays for one jitted function, and the limit."""
    return limited(partial(_clipped, call.function, *case[1]), call.seconds)


# --- buckets ----------------------------------------------------------------------------------------------------

buckets = Ask("tracing.buckets", call_with_arguments, NEEDS)
