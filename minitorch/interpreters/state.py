"""What belongs to a thread: which interpreter is current, whether the tape records, who watches the values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ..dtypes import DType
from ..errors import ObserverError
from ..ir import Primitive, user_place
from ..tensor import Tensor
from .eager import Eager, Observed, Observer
from .recorder import Recorder, Timed

if TYPE_CHECKING:
    from .staging import Handle, Staging

F = TypeVar("F", bound=Callable[..., Any])


class Interpreter(Protocol):
    """Says when an operation happens."""

    records: bool  # whether operations are written down rather than computed
    intercepts: bool  # whether it wants to know of the calls of compiled functions, too

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Apply a primitive to tensors."""
        ...

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """A constant of no dimensions."""
        ...

    def assign(self, tensor: Tensor, value: Tensor) -> Handle | None:
        """Write a value of the same shape and type into a tensor; a write that is only noted gives a handle."""
        ...


class _ThreadState(threading.local):
    """What belongs to one thread: its interpreter, whether the tape records, and who watches the values."""

    def __init__(self) -> None:
        self.eager = Eager()
        self.interpreter: Interpreter = self.eager
        self.grad_enabled = True
        self.observer: Observer | None = None


thread = _ThreadState()


def current() -> Interpreter:
    """The interpreter of this thread."""
    return thread.interpreter


def current_staging() -> Staging | None:
    """The recording that is under way in this thread, if there is one."""
    interpreter = thread.interpreter
    return cast("Staging", interpreter) if interpreter.records else None


@contextmanager
def interpreting(interpreter: Interpreter | None) -> Iterator[None]:
    """Make an interpreter current for a `with` block; None stands for the thread's eager one."""
    state = thread
    previous = state.interpreter
    state.interpreter = interpreter or state.eager
    if interpreter is None or not interpreter.records:
        try:
            yield
        finally:
            state.interpreter = previous
        return
    trace = cast("Staging", interpreter).trace
    owner, trace.thread = trace.thread, threading.current_thread()
    try:
        yield
    finally:
        state.interpreter = previous
        trace.thread = owner


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Tell an observer about every value that this thread computes, in eager mode and in graphs.

    Raises:
        ObserverError: if there is one already, and one of the two is a recorder (``MT503``).
    """
    state = thread
    if state.observer is not None and Recorder in (type(observer), type(state.observer)):
        raise ObserverError(
            "MT503",
            f"{_watcher(observer)} inside of {_watcher(state.observer)}",
            why="only one can watch what this thread runs, and the outer one would miss all of it",
            fix="leave the outer block first, or run the program twice",
        )
    previous = state.observer, state.eager, state.interpreter
    state.observer = observer
    if isinstance(observer, Recorder):
        state.eager = Timed(previous[1], observer)
    else:
        state.eager = Observed(previous[1], observer)
    if state.interpreter is previous[1]:
        state.interpreter = state.eager
    try:
        yield
    finally:
        state.observer, state.eager, state.interpreter = previous


def _watcher(observer: Observer) -> str:
    return "mt.profile" if isinstance(observer, Recorder) else "mt.debug.check_nan"


def current_observer() -> Observer | None:
    """Who watches the values that this thread computes."""
    return thread.observer


def current_recorder() -> Recorder | None:
    """Who wants to know what this thread runs, and when."""
    observer = thread.observer
    return observer if isinstance(observer, Recorder) else None


def for_one_line(function: F) -> F:
    """A function that is called again and again on behalf of one line of the user's: recorders look for it once.

    The function must be this package's, and call nothing of the user's, which has lines of its own.
    """
    recorder = current_recorder()
    if recorder is None:
        return function
    place = user_place()

    def placed(*args: Any) -> Any:
        previous, recorder.place = recorder.place, place
        try:
            return function(*args)
        finally:
            recorder.place = previous

    return cast("F", placed)


def run_silently(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function with NumPy's floating-point warnings off, in this thread's own context."""
    return thread.eager.run(function, *args)


def is_grad_enabled() -> bool:
    """Whether operations are being recorded for `backward` in this thread."""
    return thread.grad_enabled


def set_grad_enabled(enabled: bool) -> bool:
    """Switch recording for `backward` on or off in this thread; returns what it was."""
    previous = thread.grad_enabled
    thread.grad_enabled = enabled
    return previous
