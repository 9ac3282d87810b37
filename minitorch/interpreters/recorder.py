"""What a thread ran, and when: `Recorder` is filled in while a program runs, and read by `minitorch.profile`.

It is an observer like any other (`observing`), so that a program that nobody times looks for it where it looks for
observers anyway. Only what has to be noted at once is noted; everything else is worked out afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from ..ir import Primitive, user_frame
from ..tensor import Tensor
from .eager import Eager
from .views import shares_memory

Array = np.ndarray[Any, Any]
Layout = tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]  # shape, type, strides

# Begin and end in nanoseconds, what kind of thing it was, and which one:
#   "operation"  a primitive computed eagerly: the number of its `Operation`
#   "node"       a primitive of a graph, run by NumPy: its `Node`
#   "kernel"     a kernel of a schedule: its `Kernel`
#   "call"       what surrounds these: a jitted call, or the run of a graph
#   "trace", "passes", "compile"   making a graph, optimising it, making it run: the graph's name
Event = tuple[int, int, str, Any]


class Operation(NamedTuple):
    """A primitive that was computed eagerly: all that its costs depend on, without the arrays.

    Attributes:
        different: how many of the inputs are different arrays.
        dim: the parameter of that name.
        owns: whether the result has memory of its own.
        file, line: who asked for it.
    """

    primitive: Primitive
    inputs: tuple[Layout, ...]
    different: int
    dim: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    owns: bool
    file: str
    line: int


class Recorder:
    """Notes what one thread runs.

    Attributes:
        events: what was run, in the order in which it ended.
        changes: of the memory that what was run takes: when, and by how many bytes.
        operations: the different ones that were computed eagerly, each as the fields of an `Operation`, and its number.
        before: nanoseconds from `bind` to the beginning of eager operations, of all of them.
        graphs: those that were run node by node.
        thread: the system's number of the thread.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.changes: list[tuple[int, int]] = []
        self.operations: dict[tuple[Any, ...], int] = {}
        self.before = 0
        self.graphs: dict[int, Any] = {}
        self.thread = threading.get_native_id()
        self.begin = self.end = perf_counter_ns()
        self._alive: dict[int, tuple[ref[Array], int]] | None = {}

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

    def operation(
        self, begin: int, primitive: Primitive, inputs: Sequence[Array], dim: Any, output: Array, owns: bool
    ) -> None:
        """Note an eager operation which has just ended. Those that are alike are kept once."""
        end = perf_counter_ns()
        frame = user_frame()
        count = len(inputs)
        operation = (  # the fields of an `Operation`, which takes longer to make
            primitive,
            tuple([(each.shape, each.dtype, each.strides) for each in inputs]),
            count if count < 2 else 1 + (inputs[0] is not inputs[1]) if count == 2 else len(set(map(id, inputs))),
            dim,
            output.shape,
            output.dtype,
            owns,
            "" if frame is None else frame.f_code.co_filename,
            0 if frame is None else frame.f_lineno,
        )
        number = self.operations.setdefault(operation, len(self.operations))
        self.events.append((begin, end, "operation", number))

    def made(self, array: Array) -> None:
        """Note that an array has new memory; when it is freed is noted by itself."""
        size = array.nbytes
        if self._alive is None or not size:
            return
        alive = ref(array, self._freed)
        self._alive[id(alive)] = alive, size
        self.changes.append((perf_counter_ns(), size))

    def _freed(self, dead: ref[Array]) -> None:
        if self._alive is not None:
            _, size = self._alive.pop(id(dead))
            self.changes.append((perf_counter_ns(), -size))

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
        recorder = self.recorder
        entered = perf_counter_ns()
        output = super().bind(primitive, inputs, params)
        array = output._value
        arrays = [tensor._value for tensor in inputs]
        memory = array
        if array.base is not None and primitive.name == "reshape" and not shares_memory(arrays[0], array):
            memory = array.base  # it could not be a view, so NumPy made a copy, and a view of that
        owns = memory.base is None
        recorder.operation(self._begin, primitive, arrays, params.get("dim"), array, owns)
        recorder.before += self._begin - entered
        if owns:
            recorder.made(memory)
        return output

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Write into the memory, and note when."""
        begin = perf_counter_ns()
        super().assign(tensor, value)
        array = tensor._value
        self.recorder.operation(begin, COPY, [value._value], None, array, array.base is None)


def _infer_copy() -> Any:
    raise TypeError("an in-place write is in no graph")


# What an in-place write counts as: it reads one value and writes another, and computes nothing.
COPY = Primitive("copy_", "movement", _infer_copy, lambda: None, doc="an in-place write")
