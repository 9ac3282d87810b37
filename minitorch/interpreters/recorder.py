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
from .eager import Eager, settled
from .views import shares_memory

Array = np.ndarray[Any, Any]
Layout = tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]  # shape, type, strides

# Begin and end in nanoseconds, what kind of thing it was, and which one:
#   "operation"  a primitive computed eagerly: what `Operation.of` takes
#   "node"       a primitive of a graph, run by NumPy: its `Node`
#   "kernel"     a kernel of a schedule: its `Kernel`
#   "call"       what surrounds these: a jitted call, or the run of a graph
#   "trace", "passes", "compile"   making a graph, optimising it, making it run: the graph's name
Event = tuple[int, int, str, Any]


MANY = 20_000  # events, of half a kilobyte each
NOTED_BY = 4  # calls from `bind` to `Recorder.operation`: a frame that is looked at has to be made


class Operation(NamedTuple):
    """A primitive that was computed eagerly: all that its costs depend on, without the arrays.

    Attributes:
        dim: the parameter of that name.
        file, line: who asked for it.
        owns: whether the result has memory of its own.
        different: how many of the inputs are different arrays.
        shape, dtype: of the result.
        inputs: of each input.
    """

    primitive: Primitive
    dim: Any
    file: str
    line: int
    owns: bool
    different: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    inputs: tuple[Layout, ...]

    @classmethod
    def of(cls, noted: tuple[Any, ...]) -> Operation:
        """From the fields as they are noted: in one flat tuple, which is made in half the time of nested ones."""
        layouts = tuple(zip(noted[8::3], noted[9::3], noted[10::3], strict=True))
        primitive, dim, file, line, owns, different, shape, dtype = noted[:8]
        return cls(primitive, dim, file, line, owns, different, shape, dtype, layouts)


class Recorder:
    """Notes what one thread runs.

    Attributes:
        events: what was run, in the order in which it ended.
        changes: of the memory that what was run takes: when, and by how many bytes.
        before: nanoseconds from `bind` to the beginning of eager operations, of all of them.
        graphs: those that were run node by node.
        thread: the system's number of the thread.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.changes: list[tuple[int, int]] = []
        self.before = 0
        self.graphs: dict[int, Any] = {}
        self.thread = threading.get_native_id()
        self.begin = self.end = perf_counter_ns()
        self._alive: dict[int, tuple[ref[Array], int]] | None = {}
        self._different: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._shared = 0  # events before this one have what they note in common with others

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
        self, begin: int, primitive: Primitive, inputs: Sequence[Array], dim: Any, output: Array, is_new: bool = True
    ) -> None:
        """Note an eager operation which has just ended.

        What is noted is compared with nothing: that would bring into the cache what an operation on large arrays has
        just driven out of it.
        """
        end = perf_counter_ns()
        frame = user_frame(skip=NOTED_BY if is_new else 0)
        file, line = ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        memory = output
        if primitive.name == "reshape" and output.base is not None and not shares_memory(inputs[0], output):
            memory = output.base  # it could not be a view: NumPy has made a copy, and a view of that
        count, owns = len(inputs), memory.base is None
        different = (
            count if count < 2 else 1 + (inputs[0] is not inputs[1]) if count == 2 else len(set(map(id, inputs)))
        )
        noted = [primitive, dim, file, line, owns, different, output.shape, output.dtype]
        for each in inputs:
            noted += (each.shape, each.dtype, each.strides)
        self.events.append((begin, end, "operation", tuple(noted)))
        if owns and is_new:
            self.made(memory)
        if len(self.events) - self._shared >= MANY:
            self._share()

    def _share(self) -> None:
        """Keep operations that are alike once: a program that runs for long runs few different ones."""
        for number, (begin, end, kind, what) in enumerate(self.events[self._shared :], self._shared):
            if kind == "operation":
                self.events[number] = begin, end, kind, self._different.setdefault(what, what)
        self._shared = len(self.events)

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
        self._bound: tuple[Primitive, int] | None = None

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate now; `run` notes when."""
        self._bound = primitive, perf_counter_ns()
        return super().bind(primitive, inputs, params)

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function silently; if it evaluates a primitive, note when."""
        bound, self._bound = self._bound, None
        begin = perf_counter_ns()
        value = self._run(function, *args, **kwargs)
        if bound is not None:
            primitive, entered = bound
            self.recorder.before += begin - entered
            value = settled(value, primitive)
            self.recorder.operation(begin, primitive, args, kwargs.get("dim"), value)
        return value

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Write into the memory, and note when."""
        begin = perf_counter_ns()
        super().assign(tensor, value)
        self.recorder.operation(begin, COPY, (value._value,), None, tensor._value, is_new=False)


def _infer_copy() -> Any:
    raise TypeError("an in-place write is in no graph")


# What an in-place write counts as: it reads one value and writes another, and computes nothing.
COPY = Primitive("copy_", "movement", _infer_copy, lambda: None, doc="an in-place write")
