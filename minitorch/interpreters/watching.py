"""Layers: interpreters on top of another one, which computes or records; and watchers, which are told of all values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import attrgetter
from time import perf_counter_ns
from typing import Any, TypeVar, cast

import numpy as np

from ..errors import ObserverError
from ..ir import Primitive, Source, pinned, user_place, user_source
from ..tensor import Tensor
from .eager import Eager
from .state import Interpreter, thread

Base: Any = object  # for type checkers, a layer has all methods
F = TypeVar("F", bound=Callable[..., Any])
Array = np.ndarray[Any, Any]


class Layer(Base):  # type: ignore[misc]
    """An interpreter that passes everything on to the one below it, unless a subclass overrides it.

    Attributes:
        below: that interpreter, while the layer is on top of it.
    """

    below: Interpreter = None  # type: ignore[assignment]  # until then


for _name in vars(Interpreter):
    if not _name.startswith("_"):  # a method or an attribute: that of the interpreter below
        setattr(Layer, _name, property(attrgetter(f"below.{_name}")))


class Watcher(Layer):
    """A layer that is told of every value, in eager mode and in compiled code; its own methods do nothing.

    Compiled code looks up the thread's watcher. For a watcher of values, it runs node by node, or kernel by kernel and
    recomputes the values inside a suspected kernel; for a watcher of times, kernel by kernel.

    Attributes:
        name: as the user wrote it, for messages.
        times: whether it is told what runs, and when (`ran`, `made`), rather than which values are computed.
    """

    name = "an observer"
    times = False

    @property
    def watcher(self) -> Watcher:
        """The watcher itself."""
        return self

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Have a primitive applied below, and look at the value."""
        output = self.below.bind(primitive, inputs, params)
        self.computed(primitive, [tensor._value for tensor in inputs], output._value, user_source())
        return output

    def computed(self, primitive: Primitive, operands: Sequence[Array], value: Array, source: Source | None) -> None:
        """Handle a computed value; `source` is the user's line."""

    def suspects(self, array: Array) -> bool:
        """Return whether to be told the values inside a compiled kernel with this result."""
        return True

    def ran(self, begin: int, kind: str, what: Any) -> None:
        """Handle the end of something that ran from `begin`, in nanoseconds, until now.

        Args:
            kind: ``"node"`` of a graph that NumPy runs, or ``"kernel"`` of compiled code; around these ``"call"`` of a
                compiled function; ``"trace"``, ``"passes"`` and ``"compile"``, which make one.
            what: the node, the kernel, the graph that NumPy runs, or the name of the function.
        """

    def made(self, array: Array) -> None:
        """Handle the allocation of an array by compiled code."""

    @contextmanager
    def span(self, kind: str, what: Any) -> Iterator[None]:
        """Tell the watcher how long the `with` block ran."""
        begin = perf_counter_ns()
        try:
            yield
        finally:
            self.ran(begin, kind, what)


@contextmanager
def on_top(layer: Layer, below: Interpreter | None = None) -> Iterator[None]:
    """Put a layer on this thread's interpreter, or on another one, for a `with` block."""
    state = thread
    previous = state.interpreter, state.eager
    layer.below = below or state.interpreter
    state.interpreter = layer
    if layer.recording is None:
        state.eager = layer
    try:
        yield
    finally:
        state.interpreter, state.eager = previous


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell a watcher about all that this thread computes in a `with` block, also about graphs that a recording runs.

    It takes the place of another watcher.

    Raises:
        ObserverError: if there is one already, and one of the two measures times (``MT503``).
    """
    state = thread
    outer = state.eager.watcher
    if outer is not None and (outer.times or watcher.times):
        raise ObserverError(
            "MT503",
            f"{watcher.name} inside of {outer.name}",
            why="only one can watch what this thread runs, and the outer one would miss all of it",
            fix="leave the outer block first, or run the program twice",
        )
    previous = state.eager, state.interpreter
    watcher.below = outer.below if outer is not None and outer is state.eager else state.eager
    state.eager = watcher
    if state.interpreter is previous[0]:
        state.interpreter = watcher
    try:
        yield
    finally:
        state.eager, state.interpreter = previous


def observing(look: Callable[..., None]) -> AbstractContextManager[None]:
    """Call a function with every value that this thread computes in a `with` block: see `Watcher.computed`."""
    watcher = Watcher()
    watcher.computed = look  # type: ignore[method-assign]
    return watching(watcher)


def for_one_line(function: F) -> F:
    """Look up the user's line once for all calls of a function made on behalf of that line.

    The function must be this package's, and must not call the user's functions, which have their own lines.
    """
    if type(thread.interpreter) is Eager:  # which needs no lines
        return function
    place = user_place()

    def placed(*args: Any) -> Any:
        previous, pinned.place = pinned.place, place
        try:
            return function(*args)
        finally:
            pinned.place = previous

    return cast("F", placed)


def current_watcher() -> Watcher | None:
    """Return this thread's watcher, or None, for runners of compiled code."""
    return thread.eager.watcher


def span(kind: str, what: Any) -> AbstractContextManager[None]:
    """Tell this thread's watcher, if any, how long a `with` block runs: see `Watcher.ran`."""
    watcher = thread.eager.watcher
    return nullcontext() if watcher is None else watcher.span(kind, what)
