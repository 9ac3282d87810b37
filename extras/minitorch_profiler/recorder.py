"""`Recorder`, the event log of a thread: a watcher that is filled while a program runs, and read by `profile`.

A run notes as little as it can; counts are computed afterwards.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from time import perf_counter_ns
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from minitorch.interpreters import Handle, Watcher, explained, interpreting, settled, shares_memory
from minitorch.interpreters.state import thread
from minitorch.ir import Place, Primitive, user_place
from minitorch.tensor import Tensor, fetched, with_value

Array = np.ndarray[Any, Any]
ArrayMeta = tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]  # shape, type, strides

# Begin and end in nanoseconds, the kind of event, and its object:
#   "operation"  a primitive computed eagerly: the arguments of `Operation.of`
#   others       as `Watcher.ran` is told
Event = tuple[int, int, str, Any]


MANY = 20_000  # events, of half a kilobyte each
NOTED_BY = 3  # frames from `Recorder._note` to the caller of `bind`; a frame object costs time to make

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


class Recorder(Watcher):
    """Notes the events of one thread.

    Attributes:
        events: everything that ran, in the order in which it ended.
        before: nanoseconds from `bind` to the beginning of the evaluation, of all eager operations together.
        thread: the system's number of the thread.
        begin, end: when it began and stopped; the end is 0 until then.
    """

    name = "mt.profile"
    times = True

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.before = 0
        self.thread = threading.get_native_id()
        self.run = thread.run
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

    def ran(self, begin: int, kind: str, what: Any) -> None:
        """Note an event that began then and ends now."""
        self.events.append((begin, perf_counter_ns(), kind, what))

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate a primitive, and note when: as `Eager` does, with a look at the clock between its lines."""
        entered = perf_counter_ns()
        arrays = list(map(fetched, inputs))
        begin = perf_counter_ns()
        try:
            value = self.run(primitive.evaluate, *arrays, **params)
        except Exception as error:
            raise explained(error, primitive, inputs, params) from None
        if type(value) is not np.ndarray or not value.flags.c_contiguous:
            value = settled(value, primitive)
        self._note(begin, perf_counter_ns(), primitive, arrays, params.get("dim"), value)
        self.before += begin - entered
        return with_value(value)

    def assign(self, tensor: Tensor, value: Tensor) -> Handle | None:
        """Write into the memory, and note when."""
        begin = perf_counter_ns()
        handle = self.below.assign(tensor, value)
        self._note(begin, perf_counter_ns(), COPY, (value._value,), None, tensor._value, is_new=False)
        return handle

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a compiled function, in a span."""
        with self.span("call", function.__name__), interpreting(self.below):
            return function(*args, **kwargs)

    def _note(
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
            self._made += Alive(memory, self._note_freed), end, memory.nbytes
        if len(self.events) - self._shared >= MANY:
            self._share()

    def _share(self) -> None:
        """Keep equal notes once: a long program runs few different operations."""
        for number, (begin, end, kind, what) in enumerate(self.events[self._shared :], self._shared):
            if kind == "operation":
                self.events[number] = begin, end, kind, self._different.setdefault(what, what)
        self._shared = len(self.events)

    def made(self, array: Array) -> None:
        """Note that an array has new memory; its end is noted automatically."""
        self._made += Alive(array, self._note_freed), perf_counter_ns(), array.nbytes

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


def _infer_copy() -> Any:
    raise TypeError("an in-place write is in no graph")


# The pseudo-primitive of an in-place write: it reads one value, writes another, and computes nothing.
COPY = Primitive("copy_", "movement", _infer_copy, lambda: None, doc="an in-place write")
