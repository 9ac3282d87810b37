"""`Program`, shared by the three modes: from a finished recording to a compiled graph.

A recording (`Staging`) yields a graph whose inputs are arguments and captured tensors, and whose outputs are results
and the new values of whatever was written in place. `Program` is such a graph, optimised and compiled.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import time
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import backends
from ...graph import Graph
from ...interpreters import (
    Callback,
    Captured,
    callback,
    interpreting,
    is_grad_enabled,
    may_share,
    memory_owner,
    set_grad_enabled,
    span,
)
from ...ir import Node
from ...passes import LOWERING, Run, run_pipeline
from ...sizes import Guards, is_symbolic
from ...tensor import Remote, Tensor, fetched, note_write

if TYPE_CHECKING:
    from ...compiler.kernels.ledger import Ledger
    from .options import Options

Array = np.ndarray[Any, Any]


class _CollectedRarely:
    """A block in which Python looks for garbage after more allocations, in all threads while one is in it.

    A compiler makes many objects that last. Python would go through all that the process holds, several times.
    """

    ALLOCATIONS = 20_000  # Python's own figure is 700; with more, objects of kernels that are complete wait in memory

    def __init__(self) -> None:
        self._lock, self._blocks, self._usual = threading.Lock(), 0, gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._usual = gc.get_threshold()
                gc.set_threshold(max(self._usual[0], self.ALLOCATIONS) * bool(self._usual[0]), *self._usual[1:])
            self._blocks += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                gc.set_threshold(*self._usual)


COLLECTED_RARELY = _CollectedRarely()


def guards_of(graph: Graph) -> Guards | None:
    """Return the guards of the symbolic sizes of a graph's inputs; None without any."""
    sizes: Iterator[Any] = (length for node in graph.inputs for length in node.shape if is_symbolic(length))
    return next((each.guards for each in sizes), None)


class Program:
    """Graph, the pipeline's snapshots of it, and the executable that a backend made of it.

    Args:
        updates: outputs that replace an input, by position, each with the position of the input.
        donated: positions of inputs that are unusable after a call.

    Attributes:
        graph: as recorded.
        updates, donated: as given.
        pipeline: the snapshots before and after each pass; ``pipeline.graph`` is the compiled one.
        compiled: the backend's executable.
        execute: the executable, perhaps wrapped by the policy of the options.
        run: the same, but with values that stay on the backend's device, if it has one of its own.
        is_for_many: whether it has symbolic sizes.
        takes_devices: whether `run` takes and gives values on a device.
    """

    def __init__(
        self,
        graph: Graph,
        options: Options,
        updates: Mapping[int, int] | None = None,
        donated: Collection[int] = (),
    ) -> None:
        start = time.perf_counter()
        self.graph = graph
        self.backend = backend = options.backend
        self.updates, self.donated = updates or {}, donated
        with span("passes", graph.name), COLLECTED_RARELY:
            passes = backends.passes_for(backend) if options.passes is None else options.passes
            guards = guards_of(graph)
            self.is_for_many = guards is not None
            if guards is None:
                self.pipeline: Run = run_pipeline(graph, passes)
            else:
                from .sized import settled_pipeline

                self.pipeline = settled_pipeline(graph, passes, guards)
        with span("compile", graph.name), COLLECTED_RARELY:
            own = {"own": options.own} if options.own else {}
            self.compiled: backends.Executable
            if guards is not None:
                from .sized import Sized

                self.compiled = Sized(graph, self.pipeline.graph, options, self.updates, donated)
            else:
                self.compiled = backends.get(backend)(self.pipeline.graph, self.updates, donated, **own)
        self.execute = options.policy.executable(self)
        self.run: backends.Executable = self.execute
        if self.execute is self.compiled:
            self.run = getattr(self.compiled, "on_device", self.execute)
        self.takes_devices = self.run is not self.execute
        self._compile_time = time.perf_counter() - start

    def __reduce__(self) -> Any:
        raise TypeError(
            "a compiled program cannot be copied or pickled: copy the function that it was made of, which compiles "
            "again, or the graph; of an explanation or of stages, keep the text, str(...)"
        )

    @property
    def compile_time(self) -> float:
        """Seconds that passes and backend took so far. A backend may compile in the first call (`backends.xla`)."""
        own: float = getattr(self.compiled, "compile_time", 0.0)
        return self._compile_time + own

    def values(self, tensors: Sequence[Tensor]) -> list[Any]:
        """Return the values of tensors for `run`: those on a device are copied, unless it computes there."""
        return [tensor._value for tensor in tensors] if self.takes_devices else list(map(fetched, tensors))

    def keep(self, tensors: Sequence[Tensor]) -> None:
        """Keep the values of tensors from outside where the backend computes, as far as nothing else refers to them.

        Values that were divided among devices before Python asked for them are divided in the same way.
        """
        if not self.takes_devices:
            return
        moved: Any = getattr(self.compiled, "moved")  # noqa: B009  of the backends that compute on devices
        for tensor in tensors:
            memory = tensor._value
            if type(memory) is np.ndarray and _is_alone(tensor, sys.getrefcount(memory)):
                there = moved(memory, getattr(tensor, "_home", None))
                if tensor._value is memory:  # no other thread has given it a new value
                    tensor._value = there

    @cached_property
    def lowering(self) -> Run:
        """The passes from `pipeline` to the graph of the kernels: none, if the backend makes these itself."""
        return run_pipeline(self.pipeline.graph, () if backends.row_of(self.backend).lowers else LOWERING)

    @cached_property
    def ledger(self) -> Ledger:
        """The kernels and the ledger, also for backends without kernels."""
        from ...compiler.codegen.host import host
        from ...compiler.kernels.ledger import ledger_of

        found: Ledger | None = getattr(self.compiled, "ledger", None)
        return found or ledger_of(self.lowering.graph, host())


def replay(graph: Graph, tensors: Sequence[Tensor], untaped: Container[Node] = ()) -> list[Tensor]:
    """Apply a graph's primitives to tensors one by one, in the current mode.

    Autograd sees every one, but for those that it did not see when they were recorded, `untaped`.
    """
    if guards_of(graph) is not None:
        from .sized import at_shapes

        graph, untaped = at_shapes(graph, [tensor.shape for tensor in tensors], untaped)
    values: dict[Node, Tensor] = dict(zip(graph.inputs, tensors, strict=True))
    recording = is_grad_enabled()
    try:
        for node in graph.nodes:
            set_grad_enabled(recording and node not in untaped)
            values[node] = node.primitive(*[values[operand] for operand in node.inputs], **node.params)
    finally:
        set_grad_enabled(recording)
    return [values[node] for node in graph.outputs]


class Callbacks:
    """Callbacks of a recording, such as `debug.print`, in program order; called with the arrays of a run, before it.

    The values of callbacks are computed by a program of their own, before the main program. So a callback is no part of
    the graph that passes and fusion rewrite: nothing can drop it, merge it, or change its place among the others, and
    the main program has the same kernels, and gives the same bits, with and without it.

    Args:
        inputs: of the recording's graph.
        compile: compiles a graph.
    """

    def __init__(
        self, inputs: Sequence[Node], callbacks: Sequence[Callback], name: str, compile: Callable[[Graph], Program]
    ) -> None:
        self.callbacks = tuple(callbacks)
        self.graph = Graph(inputs, [node for each in callbacks for node in each.nodes], name=f"{name}.callbacks")
        self._program = compile(self.graph) if self.graph.outputs else None

    def __call__(self, arrays: Sequence[Array]) -> None:
        """Compute the values, and call back."""
        values = iter(self._program.execute(arrays, False) if self._program else ())
        with interpreting(None):
            for each in self.callbacks:
                each.function(list(islice(values, len(each.nodes))))

    def recorded(self, tensors: Sequence[Tensor]) -> None:
        """Return the same inside another recording, whose runs call them."""
        values = iter(replay(self.graph, tensors))
        for each in self.callbacks:
            callback(each.function, list(islice(values, len(each.nodes))))


OWN_REFERENCES = 3  # to an array that only its tensor holds: the tensor's, a local name's, and the argument of the call


def write(tensor: Tensor, array: Array) -> None:
    """Write a computed value into a tensor's memory, as an in-place operation would.

    If the array is the tensor's own, the value is there already.
    """
    put(tensor, array)
    note_write(tensor)


def put(tensor: Tensor, array: Array | Remote) -> None:
    """Write as `write` does, where the write has been counted."""
    if isinstance(array, Remote):
        _replace(tensor, array)
    elif array is not tensor._value:
        np.copyto(fetched(tensor), array)


def _replace(tensor: Tensor, value: Remote) -> None:
    """Give a tensor a value on a device if nothing else shares its memory; else write the value into its memory."""
    memory = tensor._value
    is_own = isinstance(memory, Remote) and not memory.is_fetched
    if not is_own and type(memory) is np.ndarray:
        is_own = _is_alone(tensor, sys.getrefcount(memory))
    if is_own:
        tensor._value = value
    else:
        np.copyto(fetched(tensor), value.fetched)


def _is_alone(tensor: Tensor, references: int) -> bool:
    """Return whether only a tensor has its array."""
    return tensor._view is None and tensor._value.base is None and references <= OWN_REFERENCES


def are_apart(arrays: Sequence[Array], written: Collection[int]) -> bool:
    """Return whether the arrays at these positions, which are written, share no memory with any other."""
    written = set(written)
    neighbours: dict[int, list[int]] = {}
    for place, array in enumerate(arrays) if written else ():
        neighbours.setdefault(memory_owner(array), []).append(place)
    return not any(
        (one in written or other in written) and may_share(arrays[one], arrays[other])
        for places in neighbours.values()
        for one, other in itertools.combinations(places, 2)
    )


def written(captured: Sequence[Captured]) -> list[tuple[Captured, Node]]:
    """Return the captured tensors that the recording wrote to, with their new values."""
    return [(item, item.node) for item in captured if item.node is not item.input]
