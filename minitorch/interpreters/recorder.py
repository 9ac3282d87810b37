"""`Recorder`, the event log of a thread: filled while a program runs, and read by `minitorch.profile`.

It is an observer like any other (`observing`), so a program that is not profiled pays nothing beyond the usual check
for observers. A run notes as little as it can; counts are computed afterwards.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from time import perf_counter_ns
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from ..ir import Place, Primitive, user_place
from ..tensor import Tensor, on_host
from .eager import Eager, explained, settled
from .views import shares_memory

Array = np.ndarray[Any, Any]
ArrayMeta = tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]  # shape, type, strides

# Begin and end in nanoseconds, the kind of event, and its object:
#   "operation"  a primitive computed eagerly: the arguments of `Operation.of`
#   "node"       a primitive of a graph, run by NumPy: its `Node`
#   "kernel"     a kernel of a schedule: its `Kernel`
#   "call"       a jitted call, or the run of a graph, around these
#   "trace", "passes", "compile"   making a graph, optimising it, making it run: the graph's name
Event = tuple[int, int, str, Any]


MANY = 20_000  # events, of half a kilobyte each
NOTED_BY = 3  # frames from `Recorder.operation` to the caller of `bind`; a frame object costs time to make

described: Callable[[Array], ArrayMeta] = attrgetter("shape", "dtype", "strides")


class Operation(NamedTuple):
    """A primitive that was computed eagerly: the metadata that its costs depend on, without the arrays.

    Attributes:
        dim: the parameter of that name.
        place: who asked for it.
        owns: whether the result has memory of its own.
        different: how many of the inputs are different arrays.
        shape, dtype: of the result.
        inputs: of each input.
    """

    primitive: Primitive
    dim: Any
    place: Place
    owns: bool
    different: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    inputs: tuple[ArrayMeta, ...]

    @classmethod
    def of(cls, noted: tuple[Any, ...]) -> Operation:
        """An operation from the tuple in which it is noted."""
        primitive, dim, place, owns, different, shape, dtype, *inputs = noted
        return cls(primitive, dim, place, owns, different, shape, dtype, tuple(inputs))


class Alive(ref[Array]):
    """A weak reference that is a good key even when its array is dead: it equals itself only."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class Recorder:
    """Notes the events of one thread.

    Attributes:
        events: everything that ran, in the order in which it ended.
        before: nanoseconds from `bind` to the beginning of the evaluation, of all eager operations together.
        place: the user's line for all present operations; None if each operation has to look for its own.
        graphs: those that were run node by node.
        thread: the system's number of the thread.
        begin, end: when it began and stopped; the end is 0 until then.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.before = 0
        self.place: Place | None = None
        self.graphs: dict[int, Any] = {}
        self.thread = threading.get_native_id()
        self.begin, self.end = perf_counter_ns(), 0
        self._made: list[Any] = []  # for each array with new memory: reference, time, bytes
        self._freed: dict[Alive, int] = defaultdict(perf_counter_ns)
        self._note_freed = self._freed.__getitem__  # the callback: no Python code runs for it
        self._different: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._shared = 0  # events before this one share equal notes

    def __reduce__(self) -> Any:
        raise TypeError(
            "a profile cannot be copied or pickled: it watches the arrays of this process; keep profile.rows(), "
            "str(profile), or profile.chrome_trace(path)"
        )

    def __call__(self, *observed: Any) -> None:
        """Ignored: the engine asks for a recorder before it asks for an observer of values."""

    def add(self, begin: int, kind: str, what: Any) -> None:
        """Note an event that began then and ends now."""
        self.events.append((begin, perf_counter_ns(), kind, what))

    @contextmanager
    def span(self, kind: str, what: Any) -> Iterator[None]:
        """Note the duration of the `with` block."""
        begin = perf_counter_ns()
        try:
            yield
        finally:
            self.add(begin, kind, what)

    def operation(
        self,
        begin: int,
        end: int,
        primitive: Primitive,
        inputs: Sequence[Array],
        dim: Any,
        output: Array,
        is_new: bool = True,
    ) -> None:
        """Note an eager operation.

        What is noted is compared with nothing: that would bring into the cache what an operation on large arrays has
        just driven out of it.
        """
        place = self.place
        if place is None:
            place = user_place(NOTED_BY)
        memory = output
        if memory.base is not None and primitive.name == "reshape" and not shares_memory(inputs[0], output):
            memory = memory.base  # it could not be a view: NumPy has made a copy, and a view of that
        count, owns = len(inputs), memory.base is None
        different = (
            count if count < 2 else 1 + (inputs[0] is not inputs[1]) if count == 2 else len(set(map(id, inputs)))
        )
        noted = (primitive, dim, place, owns, different, output.shape, output.dtype, *map(described, inputs))
        self.events.append((begin, end, "operation", noted))
        if owns and is_new:
            self.made(memory, end)
        if len(self.events) - self._shared >= MANY:
            self._share()

    def _share(self) -> None:
        """Keep equal notes once: a long program runs few different operations."""
        for number, (begin, end, kind, what) in enumerate(self.events[self._shared :], self._shared):
            if kind == "operation":
                self.events[number] = begin, end, kind, self._different.setdefault(what, what)
        self._shared = len(self.events)

    def made(self, array: Array, when: int | None = None) -> None:
        """Note that an array has new memory, since now or since a given time; its end is noted automatically."""
        self._made += Alive(array, self._note_freed), when or perf_counter_ns(), array.nbytes

    @property
    def changes(self) -> list[tuple[int, int]]:
        """The changes of the memory in use: times and bytes."""
        made = [each for each in zip(*[iter(self._made)] * 3, strict=True) if each[2]]
        end = self.end or perf_counter_ns()
        freed = [(self._freed.get(array, end), -size) for array, _, size in made]
        return sorted([each[1:] for each in made] + [each for each in freed if each[0] < end])

    def stop(self) -> None:
        """Stop noting."""
        self.end = perf_counter_ns()


class Timed(Eager):
    """Eager mode, with the time of each operation noted."""

    intercepts = True

    def __init__(self, eager: Eager, recorder: Recorder) -> None:
        self.plain = eager
        self.recorder = recorder
        self.run = eager.run

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate now, and note when: the method of `Eager`, with a look at the clock between its lines."""
        entered = perf_counter_ns()
        arrays = list(map(on_host, inputs))
        begin = perf_counter_ns()
        try:
            value = self.run(primitive.evaluate, *arrays, **params)
        except Exception as error:
            raise explained(error, primitive, inputs, params) from None
        if type(value) is not np.ndarray or not value.flags.c_contiguous:
            value = settled(value, primitive)
        recorder = self.recorder
        recorder.operation(begin, perf_counter_ns(), primitive, arrays, params.get("dim"), value)
        recorder.before += begin - entered
        return Tensor(value)

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Write into the memory, and note when."""
        begin = perf_counter_ns()
        super().assign(tensor, value)
        end = perf_counter_ns()
        self.recorder.operation(begin, end, COPY, (value._value,), None, tensor._value, is_new=False)


def _infer_copy() -> Any:
    raise TypeError("an in-place write is in no graph")


# The pseudo-primitive of an in-place write: it reads one value, writes another, and computes nothing.
COPY = Primitive("copy_", "movement", _infer_copy, lambda: None, doc="an in-place write")
