"""What a thread ran, and when: `Recorder` is filled in while a program runs, and read by `minitorch.profile`.

It is an observer like any other (`observing`), so that a program that nobody times looks for it where it looks for
observers anyway. Only what has to be noted at once is noted; everything else is worked out afterwards.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..ir import Primitive, Source, user_source
from ..tensor import Tensor
from .eager import Eager

Array = np.ndarray[Any, Any]
Layout = tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...], int]  # shape, type, strides, which array it was

# Begin and end in nanoseconds, what kind of thing it was, and which one:
#   "operation"  a primitive computed eagerly: an `Operation`
#   "node"       a primitive of a graph, run by NumPy: its `Node`
#   "kernel"     a kernel of a schedule: its `Kernel`
#   "call"       what surrounds these: a jitted call, the run of a graph, an eager operation with all that it takes
#   "trace", "passes", "compile"   making a graph, optimising it, making it run: the graph's name
Event = tuple[int, int, str, Any]


class Operation:
    """A primitive that was computed eagerly: all that its costs depend on, without the arrays."""

    __slots__ = ("inputs", "output", "owns", "params", "primitive", "source")

    def __init__(
        self, primitive: Primitive, inputs: Sequence[Array], params: Mapping[str, Any], output: Array, source: Any
    ) -> None:
        self.primitive, self.params = primitive, params
        self.inputs: list[Layout] = [(each.shape, each.dtype, each.strides, id(each)) for each in inputs]
        self.output = output.shape, output.dtype
        self.owns = output.base is None
        self.source: Source | None = source


class _Alive(weakref.ref[Array]):
    """An array that has not been freed yet."""

    __slots__ = ("nbytes",)
    nbytes: int


class Recorder:
    """Notes what one thread runs.

    Attributes:
        events: what was run, in the order in which it ended.
        changes: of the memory that what was run takes: when, and by how many bytes.
        graphs: those that were run node by node.
        thread: the system's number of the thread.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.changes: list[tuple[int, int]] = []
        self.graphs: dict[int, Any] = {}
        self.thread = threading.get_native_id()
        self.begin = self.end = perf_counter_ns()
        self._alive: dict[int, _Alive] | None = {}

    def __call__(self, *observed: Any) -> None:
        """Values are of no interest: what runs asks for a recorder before it asks for an observer."""

    def add(self, begin: int, kind: str, what: Any) -> None:
        """Note that something which began then has just ended."""
        self.events.append((begin, perf_counter_ns(), kind, what))

    @contextmanager
    def span(self, kind: str, what: Any) -> Iterator[None]:
        """Note how long the `with` block takes."""
        begin = perf_counter_ns()
        try:
            yield
        finally:
            self.add(begin, kind, what)

    def made(self, array: Array) -> None:
        """Note that an array has new memory; when it is freed is noted by itself."""
        if self._alive is None or not array.nbytes:
            return
        alive = _Alive(array, self._freed)
        alive.nbytes = array.nbytes
        self._alive[id(alive)] = alive
        self.changes.append((perf_counter_ns(), array.nbytes))

    def _freed(self, alive: _Alive) -> None:
        if self._alive is not None:
            del self._alive[id(alive)]
            self.changes.append((perf_counter_ns(), -alive.nbytes))

    def stop(self) -> None:
        """Note nothing any more."""
        self.end = perf_counter_ns()
        self._alive = None


class Timed(Eager):
    """Eager, noting how long each operation takes."""

    intercepts = True

    def __init__(self, eager: Eager, recorder: Recorder) -> None:
        self.plain = eager
        self.recorder = recorder
        self._run = eager.run
        self._begin = 0

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function silently, noting when."""
        self._begin = perf_counter_ns()
        return self._run(function, *args, **kwargs)

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate now, and note when."""
        entered = perf_counter_ns()
        output = super().bind(primitive, inputs, params)
        ended = perf_counter_ns()
        array = output._value
        operation = Operation(primitive, [tensor._value for tensor in inputs], params, array, user_source())
        recorder = self.recorder
        recorder.events.append((self._begin, ended, "operation", operation))
        recorder.events.append((entered, ended, "call", primitive.name))
        if operation.owns:
            recorder.made(array)
        return output

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Write into the memory, and note when."""
        begin = perf_counter_ns()
        super().assign(tensor, value)
        ended = perf_counter_ns()
        operation = Operation(COPY, [value._value], {}, tensor._value, user_source())
        self.recorder.events.append((begin, ended, "operation", operation))


def _infer_copy() -> Any:
    raise TypeError("an in-place write is in no graph")


# What an in-place write counts as: it reads one value and writes another, and computes nothing.
COPY = Primitive("copy_", "movement", _infer_copy, lambda: None, doc="an in-place write")
