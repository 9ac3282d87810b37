"""Functions that a rewritten function calls in place of control flow: Python's own, or `cond`, `while_loop`, `scan`.

Each decides when it runs. A condition that is a Python value, or a tensor with a value, is Python's own, as written. A
traced one makes a branch or a loop of the recording, which computes the variables that the statement assigns
(`variables`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

from ..control import scan, while_loop
from ..dtypes import int64
from ..functional.creation.creation import arange
from ..functional.creation.data import as_tensor
from ..interpreters import current_staging
from ..sizes import smaller
from ..tensor import Tensor
from ..tree import flatten
from .rewriting import RETURN
from .variables import Names, Variables, as_number, is_number, is_traced, refused

Thunk = Callable[[], Any]

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
    if is_recorded(source):
        source = Rows(source)
    if not isinstance(source, Rows):
        for item in source:
            step(item)
            if going is not None and not is_traced(more := going()) and not more:
                return
        return
    first_row = 0
    if source.length and variables.missing(or_none=True):
        step(source.slice(source.xs, 0))
        first_row = 1
    if source.length > first_row:
        xs = source.slice(source.xs, slice(first_row, None))
        variables.loop(
            lambda enter, leave, first: scan(
                lambda state, item: (enter(state) or step(item) or leave(), None), first, xs
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


def is_number_tensor(value: Any) -> bool:
    """Return whether ``+=`` makes something new of a tensor, as it does of a number."""
    return isinstance(value, Tensor) and is_number(value)


def anew(compute: Callable[[Any, Any], Any], value: Tensor, operand: Any) -> Any:
    """``value += operand`` of what stands for a number."""
    found = compute(value, operand)
    return as_number(found) if is_number(operand) else found


# What is iterated over ------------------------------------------------------------------------------------


def is_recorded(value: Any) -> bool:
    """Return whether a value is a tensor of a recording, which `scan` keeps a loop over."""
    return current_staging() is not None and is_traced(value) and value.ndim > 0


class Counter:
    """``range`` of traced numbers: a loop that counts."""

    def __init__(self, start: Any, stop: Any = None, step: Any = 1) -> None:
        start, self.stop = (0, start) if stop is None else (start, stop)
        if is_traced(step):
            raise refused("range with a traced step", "its sign decides which way the loop counts", "give it a number")
        range(0, 0, step)  # which refuses 0
        self.start, self.step = as_tensor(start, dtype=int64).reshape(()), step

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
    """Slices of traced tensors, of which ``zip`` and ``enumerate`` make tuples.

    Args:
        xs: a tensor, or nested tuples of some.
        plain: what Python iterates over.
    """

    def __init__(self, xs: Any, plain: Any = None) -> None:
        self.plain = plain
        self.length: int = reduce(smaller, [tensor.shape[0] for tensor in flatten(xs)[0]])
        self.xs = self.slice(xs, slice(self.length))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.plain)

    def slice(self, xs: Any, index: Any) -> Any:
        """Return one row of all tensors, or some."""
        return tuple([self.slice(each, index) for each in xs]) if isinstance(xs, tuple) else xs[index]


def rows(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``function(*args)`` for a ``for`` to iterate over; of traced values what `each` keeps as a loop."""
    are_whole = all(not each.dtype.is_floating_point and each.numel() == 1 for each in filter(is_traced, args))
    if function is range and are_whole and any(map(is_traced, args)):  # for others Python has an error
        return Counter(*args)
    found = function(*args, **kwargs)
    xs = tuple(
        [each.xs if isinstance(each, Rows) else each for each in args if is_recorded(each) or type(each) is Rows]
    )
    if kwargs or not xs or len(xs) < len(args):
        return found
    if function is enumerate:
        return Rows((arange(Rows(xs[0]).length), xs[0]), found)
    return Rows(xs, found) if function is zip else found


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


def compared(left: Any, right: Thunk, compare: Callable[[Any, Any], Any], *rest: Any) -> Any:
    """``left < right() < ...``; each operand is computed once."""
    middle = right()
    found = compare(left, middle)
    return both(found, lambda: compared(middle, *rest)) if rest else found
