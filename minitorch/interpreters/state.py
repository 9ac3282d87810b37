"""Thread-local state: the current interpreter, whether the tape records, and the observer of values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

from ..dtypes import DType
from ..ir import Node, Primitive
from ..tensor import Tensor
from .eager import Eager, Observer
from .provenance import Trace

# The handle of an in-place write that is carried out when it is fetched: made from the target and its new node.
Handle = Callable[[Tensor, Node], Tensor]
# What takes the place of the operands of a primitive, in the module that is being called.
Operands = Callable[[Primitive, tuple[Tensor, ...]], tuple[Tensor, ...]]


class Interpreter(Protocol):
    """Decides when a primitive is computed."""

    records: bool  # whether operations are recorded rather than computed
    intercepts: bool  # whether it is told of the calls of compiled functions, too

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Apply a primitive to tensors."""
        ...

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """A constant of no dimensions."""
        ...

    def assign(self, tensor: Tensor, value: Tensor) -> Handle | None:
        """Write a value of the same shape and type into a tensor; a write that is only noted gives a handle."""
        ...


class Recording(Interpreter, Protocol):
    """An interpreter that records operations (`Staging`)."""

    trace: Trace
    reads: list[Any]  # the `Reads` that are told of every read

    def name_of(self, tensor: Tensor) -> str:
        """The name of a concrete tensor in messages and listings."""
        ...


@dataclass(frozen=True)
class Autocast:
    """The mode of mixed precision (`minitorch.interpreters.autocast`).

    Attributes:
        dtype: the lower type.
        cache_enabled: whether a weight is cast once in a block.
    """

    dtype: DType
    cache_enabled: bool = True


class Cast(NamedTuple):
    """A weight, which is kept so that its `id` stays its own, and its cast."""

    weight: Tensor
    result: Tensor


class _ThreadState(threading.local):
    """The state of one thread: its interpreter, whether the tape records, its observer, and its autocast.

    Attributes:
        autocast_depth: the number of autocast blocks that are open, also those that switch it off.
        casts: of weights, by the weight's `id` and version, the type, and whether the tape records. They belong to the
            interpreter that made them: a recording begins without any, and leaves none.
        operands: what the module that is being called does to operands of its own operations, if anything; the modules
            that it calls decide for themselves (`minitorch.quantization.operations`).
    """

    def __init__(self) -> None:
        self.eager = Eager()
        self.interpreter: Interpreter = self.eager
        self.grad_enabled = True
        self.observer: Observer | None = None
        self.autocast: Autocast | None = None
        self.autocast_depth = 0
        self.casts: dict[Any, Cast] = {}
        self.operands: Operands | None = None


thread = _ThreadState()


def current() -> Interpreter:
    """The interpreter of this thread."""
    return thread.interpreter


def current_recording() -> Recording | None:
    """The recording that is under way in this thread, if there is one."""
    interpreter = thread.interpreter
    return cast(Recording, interpreter) if interpreter.records else None


@contextmanager
def interpreting(interpreter: Interpreter | None) -> Iterator[None]:
    """Make an interpreter current for a `with` block; None stands for the thread's eager one."""
    state = thread
    previous, casts = state.interpreter, state.casts
    state.interpreter = interpreter or state.eager
    if interpreter is None or not interpreter.records:
        try:
            yield
        finally:
            state.interpreter = previous
        return
    trace = cast(Recording, interpreter).trace
    owner, trace.thread = trace.thread, threading.current_thread()
    state.casts = {}
    try:
        yield
    finally:
        state.interpreter, state.casts = previous, casts
        trace.thread = owner


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
