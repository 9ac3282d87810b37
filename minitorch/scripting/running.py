"""Functions that a rewritten function calls in place of control flow: Python's own, or `cond`, `while_loop`, `scan`.

Each decides when it runs. A condition that is a Python value, or a tensor with a value, is Python's own, as written. A
traced one makes a branch or a loop of the recording, which computes the variables that the statement assigns
(`variables`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from ..control import scan, while_loop
from ..dtypes import int64
from ..functional.creation.creation import arange
from ..functional.creation.data import as_tensor
from ..interpreters import current_staging
from ..tensor import Tensor
from .rewriting import RETURN
from .variables import Names, Variables, as_number, is_number, is_traced, refused

Thunk = Callable[[], Any]

OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {  # by syntax: in place, and not
    "Add": (operator.iadd, operator.add),
    "Sub": (operator.isub, operator.sub),
    "Mult": (operator.imul, operator.mul),
    "MatMult": (operator.imatmul, operator.matmul),
    "Div": (operator.itruediv, operator.truediv),
    "FloorDiv": (operator.ifloordiv, operator.floordiv),
    "Mod": (operator.imod, operator.mod),
    "Pow": (operator.ipow, operator.pow),
    "LShift": (operator.ilshift, operator.lshift),
    "RShift": (operator.irshift, operator.rshift),
    "BitOr": (operator.ior, operator.or_),
    "BitXor": (operator.ixor, operator.xor),
    "BitAnd": (operator.iand, operator.and_),
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda element, container: element in container,
    "NotIn": lambda element, container: element not in container,
}


# Statements -----------------------------------------------------------------------------------------------


def is_one(test: Any) -> bool:
    """Return whether a condition is one traced answer; of several elements Python says that it is ambiguous."""
    return is_traced(test) and test.numel() == 1


def branch(test: Any, then: Thunk, otherwise: Thunk, names: Names) -> None:
    """``if test: then() else: otherwise()``."""
    if not is_one(test):
        (then if test else otherwise)()
    else:
        Variables(names, then, otherwise).branch(test, then, otherwise)


def repeat(test: Thunk, body: Thunk, names: Names) -> None:
    """``while test(): body()``. Repetitions before the condition is traced are written down one by one."""
    while not is_one(going := test()):
        if not going:
            return
        body()
    variables = Variables(names, test, body)
    variables.loop(
        lambda enter, leave, first: while_loop(
            lambda state: enter(state) or test(), lambda state: enter(state) or body() or leave(), first
        )
    )


def each(source: Any, body: Callable[[Any], None], going: Thunk | None, names: Names) -> None:
    """``for item in source: body(item)``, for as long as `going` says so."""
    variables = Variables(names, body)

    def step(item: Any) -> Any:
        more: Any = going is None or going()
        if is_traced(more):
            variables.branch(more, lambda: body(item), lambda: None)
        elif more:
            body(item)

    if isinstance(source, Counter):
        source.repeat(variables, body, going)
        return
    if is_recorded(source) and source.ndim:
        source = Rows(iter, (source,))
    if not isinstance(source, Rows):
        for item in source:
            step(item)
            if going is not None and not is_traced(more := going()) and not more:
                return
        return
    length, xs = source.length, source.xs
    if length and variables.missing():
        step(source.item(_sliced(xs, 0)))
        length, xs = length - 1, _sliced(xs, slice(1, None))
    if length:
        variables.loop(
            lambda enter, leave, first: scan(
                lambda state, item: (enter(state) or step(source.item(item)) or leave(), None), first, xs
            )[0]
        )


def landed(jump: Any) -> Any:
    """Return `jump__` after a loop: only a ``return`` goes on."""
    if is_traced(jump):
        return as_number((jump == RETURN).to(int64) * RETURN)
    return RETURN if jump == RETURN else 0


def plain(test: Any, rule: str) -> Any:
    """Return a condition that only Python can follow.

    Raises:
        TracingError: for a traced one (``MT117``).
    """
    if is_traced(test):
        problem = f"a traced condition of a statement that stays as it is: {rule}"
        raise refused(problem, "Python needs the answer now", "take the statement out of there")
    return test


def augmented(name: str, value: Any, operand: Any) -> Any:
    """``value += operand``, by the name of the operator; what stands for a number is not changed in place."""
    return OPERATORS[name][isinstance(value, Tensor) and is_number(value)](value, operand)


# What is iterated over ------------------------------------------------------------------------------------


def is_recorded(value: Any) -> bool:
    """Return whether a value is a tensor of a recording, which `scan` would keep a loop over."""
    return current_staging() is not None and is_traced(value)


class Counter:
    """``range`` of traced numbers: a loop that counts."""

    def __init__(self, start: Any, stop: Any = None, step: Any = 1) -> None:
        start, self.stop = (0, start) if stop is None else (start, stop)
        if is_traced(step):
            raise refused("range with a traced step", "its sign decides which way the loop counts", "give it a number")
        self.start, self.step = as_tensor(start, dtype=int64), step

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start, self.stop, self.step))

    def repeat(self, variables: Variables, body: Callable[[Any], None], going: Thunk | None) -> None:
        """Run the loop."""

        def test(state: list[Tensor], enter: Callable[..., Any]) -> Any:
            enter(state[1:])
            more = state[0] < self.stop if self.step > 0 else state[0] > self.stop
            return more if going is None else both(more, going)

        def next_state(state: list[Tensor], enter: Callable[..., Any], leave: Thunk) -> list[Tensor]:
            enter(state[1:])
            body(as_number(state[0]))
            return [state[0] + self.step, *leave()]

        variables.loop(
            lambda enter, leave, first: while_loop(
                lambda state: test(state, enter), lambda state: next_state(state, enter, leave), [self.start, *first]
            )[1:]
        )


class Rows:
    """Slices of traced tensors: of one, or what ``zip`` and ``enumerate`` make of some."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args
        xs = tuple([each.xs if isinstance(each, Rows) else each for each in args])
        lengths = [each.length if isinstance(each, Rows) else each.shape[0] for each in args if not is_number(each)]
        self.length: int = min(lengths)
        self.xs: Any = xs if function is zip else xs[0]
        if function is enumerate:
            start = args[1] if len(args) > 1 else 0
            self.xs = (arange(start, start + self.length), xs[0])
        self.xs = _sliced(self.xs, slice(self.length))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.function(*self.args))

    def item(self, slices: Any) -> Any:
        """Return what the loop's variables are assigned, given slices."""
        if self.function is enumerate:
            return as_number(slices[0]), slices[1]
        return slices


def _sliced(xs: Any, index: Any) -> Any:
    return tuple([_sliced(each, index) for each in xs]) if isinstance(xs, tuple) else xs[index]


def rows(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``function(*args)`` for a ``for`` to iterate over; of traced values what `each` keeps as a loop."""
    if function is range and any(map(is_traced, args)):
        return Counter(*args)
    are_slices = [isinstance(each, Rows) or (is_recorded(each) and bool(each.ndim)) for each in args]
    if args and not kwargs and (function is zip and all(are_slices)):
        return Rows(function, args)
    if args and not kwargs and function is enumerate and are_slices[0] and type(args[-1]) in (int, Tensor, Rows):
        return Rows(function, args)
    return function(*args, **kwargs)


# Expressions ----------------------------------------------------------------------------------------------


def chosen(test: Any, then: Thunk, otherwise: Thunk) -> Any:
    """``then() if test else otherwise()``."""
    value = None

    def one() -> None:
        nonlocal value
        value = then()

    def other() -> None:
        nonlocal value
        value = otherwise()

    branch(test, one, other, {"value": "live"})
    return value


def both(first: Any, second: Thunk) -> Any:
    """``first and second()``; the second is computed only if the first holds, in a recording, too."""
    return chosen(first, second, lambda: first) if is_one(first) else first and second()


def either(first: Any, second: Thunk) -> Any:
    """``first or second()``."""
    return chosen(first, lambda: first, second) if is_one(first) else first or second()


def opposite(value: Any) -> Any:
    """``not value``."""
    return as_number(value.reshape(()) == 0) if is_one(value) else not value


def compared(left: Any, name: str, right: Thunk, *rest: Any) -> Any:
    """``left < right() < ...``, by the names of the operators; each operand is computed once."""
    middle = right()
    found = COMPARISONS[name](left, middle)
    return both(found, lambda: compared(middle, *rest)) if rest else found
