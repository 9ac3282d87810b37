"""Thread-local state: the stack of interpreters, whether the tape records, and a handler above it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..dtypes import DType
from ..ir import Node, Primitive
from ..tensor import Tensor
from .eager import Eager

if TYPE_CHECKING:
    from .staging import Staging
    from .watching import Watcher

# The handle of an in-place write that is carried out when it is fetched: made from the target and its new node.
Handle = Callable[[Tensor, Node], Tensor]


class Interpreter(Protocol):
    """An interpreter, which decides when a primitive is computed; on a stack, each handles a call or passes it on.

    At the bottom are `Eager`, which computes, or `Staging`, which records; a `Layer` is on top of another interpreter.

    Attributes:
        recording: the recording under way here or below, if any.
        watcher: the topmost `Watcher` here or below, if any; it is told what compiled code does.
        mapped: the topmost layer of `func.vmap` here or below, if any.
        call: called with a compiled function and its arguments in place of running it; None if it simply runs.
        called: called with a module and the function that runs it; None if it simply runs.
        operands: called with a primitive and its inputs before the tape sees them; returns inputs to use instead.
    """

    @property
    def recording(self) -> Staging | None: ...
    @property
    def watcher(self) -> Watcher | None: ...
    @property
    def mapped(self) -> Any: ...
    @property
    def call(self) -> Callable[..., Any] | None: ...
    @property
    def called(self) -> Callable[..., Any] | None: ...
    @property
    def operands(self) -> Callable[[Primitive, tuple[Tensor, ...]], tuple[Tensor, ...]] | None: ...

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Apply a primitive to tensors."""
        ...

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """Return a constant of no dimensions."""
        ...

    def assign(self, tensor: Tensor, value: Tensor) -> Handle | None:
        """Write a value of the same shape and type into a tensor; a write that is only noted gives a handle."""
        ...

    def concrete(self, tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> np.ndarray[Any, Any]:
        """Return the array of a tensor, or raise an error that says why there is none."""
        ...

    def grad_of(self, tensor: Tensor) -> Tensor | None:
        """Return ``tensor.grad``, at this point of the program."""
        ...

    def set_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """Assign ``tensor.grad``."""
        ...

    def callback(self, function: Callable[[list[np.ndarray[Any, Any]]], None], tensors: Sequence[Tensor]) -> None:
        """Call a function with the values of tensors, whenever these are computed."""
        ...


class Handler(Protocol):
    """A mode above the tape, see `minitorch.interpreters.handling`."""

    @property
    def key(self) -> Hashable:
        """The cache key, equal for handlers under which a function is recorded alike."""
        ...

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a marked function."""
        ...

    def again(self) -> Handler:
        """Return the same mode without what this one remembers."""
        ...


class _ThreadState(threading.local):
    """The state of one thread.

    Attributes:
        interpreter: the top of the stack.
        eager: the interpreter in its place where nothing is recorded: the thread's `Eager`, and the layers on it.
        run: calls a function with NumPy's floating-point warnings off.
        grad_enabled: whether the tape records.
        handler: decides how marked functions are called.
    """

    def __init__(self) -> None:
        eager = Eager()
        self.run = eager.run
        self.interpreter: Interpreter = eager
        self.eager: Interpreter = eager
        self.grad_enabled = True
        self.handler: Handler | None = None


thread = _ThreadState()


def current() -> Interpreter:
    """Return the interpreter of this thread."""
    return thread.interpreter


def current_staging() -> Staging | None:
    """Return the recording under way in this thread, or None."""
    return thread.interpreter.recording


@contextmanager
def interpreting(interpreter: Interpreter | None) -> Iterator[None]:
    """Make an interpreter current for a `with` block; None means the thread's eager one."""
    state = thread
    previous, handler = state.interpreter, state.handler
    state.interpreter = interpreter or state.eager
    recording = None if interpreter is None else interpreter.recording
    if recording is None:
        try:
            yield
        finally:
            state.interpreter = previous
        return
    trace = recording.trace
    owner, trace.thread = trace.thread, threading.current_thread()
    state.handler = handler and handler.again()
    try:
        yield
    finally:
        state.interpreter, state.handler = previous, handler
        trace.thread = owner


def run_silently(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function with NumPy's floating-point warnings off, in this thread's own context."""
    return thread.run(function, *args)


def is_grad_enabled() -> bool:
    """Return whether operations are being recorded for `backward` in this thread."""
    return thread.grad_enabled


def set_grad_enabled(enabled: bool) -> bool:
    """Switch recording for `backward` on or off in this thread; returns what it was."""
    previous = thread.grad_enabled
    thread.grad_enabled = enabled
    return previous
