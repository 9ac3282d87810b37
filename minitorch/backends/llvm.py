"""The fusing backend: kernels of generated machine code, run one after another.

Outputs and large intermediates come from a pool of memory, because fresh pages cost more than the arithmetic on them.
Each call has separate memory, so several threads may call one executable at once.

A graph of small kernels is one call of native code (`minitorch.compiler.runtime.driver`). Kernels worth
sharing among threads, and library calls, are separate steps.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from functools import cached_property, partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.codegen.host import host
from ..compiler.fusion import ALL_ON
from ..compiler.fusion.roots import is_stored_already, output_base
from ..compiler.kernels.ledger import ledger_of
from ..compiler.kernels.placement import place
from ..compiler.lengths import within_one
from ..compiler.runtime.driver import driver
from ..compiler.runtime.memory_pool import pool
from ..compiler.runtime.program_steps import Access, Call, CallMemory, KernelRun, Memory, NativeProgram, out_of_range
from ..compiler.scheduling.schedules.choice import Own
from ..compiler.target import Target
from ..graph import Graph
from ..interpreters import Watcher
from ..interpreters.state import thread
from ..ir import Node, Shape

if TYPE_CHECKING:
    from ..compiler.runtime.bounded import Bounded, GivenLengths

Array = np.ndarray[Any, Any]


class Compiled:
    """A graph as machine code; call it with one array per input.

    Args:
        graph: the graph to run.
        updates: outputs that replace an input, by position, each with the position of the input. Such an output may
            be written into the memory of the input, and then the result is the input's own array.
        donated: positions of inputs whose memory any output may take.
        without: the classes of fusion to switch off.
        target: of the code, by default all of this machine, which has to be able to run it.
        own: the user's own schedules.

    Attributes:
        ledger: the kernels, and why edges were fused or not.
        written: the shapes of the new arrays that outputs are written to.
        placement: where each value lies, and how many bytes that takes.
    """

    def __init__(
        self,
        graph: Graph,
        updates: Mapping[int, int] | None = None,
        donated: Collection[int] = (),
        without: Set[str] = ALL_ON,
        target: Target | None = None,
        own: Own | None = None,
    ) -> None:
        self._without, self._own = without, own
        self.ledger = ledger_of(graph, target or host(), without, own)
        self.graph = graph = self.ledger.graph
        self.placement = place(graph, self.ledger.kernels, updates, donated)
        self._cautious: Compiled | None = None
        bases = list(map(output_base, graph.outputs))
        over = {bases[output] for output in self.placement.overwritten}
        by_loops = {node for kernel in self.ledger.kernels if kernel.loops for node in kernel.writes} - over
        written: dict[Node, Shape] = {}  # outputs in new arrays, and their shapes
        for base, node in zip(bases, graph.outputs, strict=True):
            if base in by_loops:
                written.setdefault(base, node.shape)
        self._new = [
            (np.empty if node.spec.nbytes < pool.smallest else pool.array, shape, node.dtype.numpy)
            for node, shape in written.items()
        ]
        self.call_memory = call_memory = CallMemory(self.ledger, self.placement, list(written))
        inner = partial(Compiled, without=without, target=self.ledger.target)
        self.program = NativeProgram(self.ledger, call_memory, set(bases), inner)
        self._pack = struct.Struct(f"={1 + call_memory.arrays}q").pack
        self._outputs = [_Output(call_memory, node, bases[:position]) for position, node in enumerate(graph.outputs)]
        # Most results are arrays of the call, unchanged.
        shapes = written | {bases[output]: graph.inputs[at].shape for output, at in self.placement.overwritten.items()}
        self._places: list[int] | None = None
        is_dense = all(within_one(node.shape) for node in graph.outputs)
        if is_dense and all(
            not output.copied and shapes.get(base, base.shape) == output.shape
            for base, output in zip(bases, self._outputs, strict=True)
        ):
            self._places = [output.value.place for output in self._outputs]
        self._as_written = is_dense and bases == list(written)  # the results are the written arrays, in that order
        self.written = tuple(written.values())
        # If there are only small kernels, one native call runs everything.
        self._kernels: KernelRun | None = None
        self._run = driver().run
        if len(self.program.steps) == 1 and isinstance(self.program.steps[0][0], KernelRun):
            self._kernels = self.program.steps[0][0]
            self._run = driver().run_quickly if self._kernels.is_quick else driver().run

    def __call__(
        self,
        arrays: Sequence[Array],
        overwrite: bool = True,
        is_watched: bool = False,
        lengths: GivenLengths | None = None,
    ) -> list[Array]:
        """Run the kernels.

        Args:
            arrays: the inputs.
            overwrite: whether outputs may be written into inputs; not if these share memory with other inputs.
            is_watched: whether the watcher's span of this call has begun.
            lengths: what follows from the lengths that a call gives, if it gives some.
        """
        watcher = thread.eager.watcher
        if watcher is not None and not is_watched:
            if not watcher.times:
                from ..compiler.runtime.isolated import by_machine, run_watched

                return run_watched(self.ledger, arrays, by_machine, watcher)
            with watcher.span("call", self.graph.name):
                return self(arrays, overwrite, True, lengths)
        if self.placement.overwritten and not overwrite:
            return self._careful(arrays, lengths)
        kernels = self._kernels
        if lengths is None:
            written = [make(shape, dtype) for make, shape, dtype in self._new]
        else:
            written = [make(shape, dtype) for (make, _, dtype), shape in zip(self._new, lengths.written, strict=True)]
            kernels = kernels or (lengths.is_small and self.all_kernels) or None
        everything = [*arrays, *written, self.call_memory.make_arena()]
        call = self._pack(self.program.address, *map(id, everything))
        memory: Memory = []
        if kernels is None or watcher is not None:
            memory = self.call_memory.memory(everything)
            trouble = self._step_by_step(call, memory, arrays, watcher)
        else:
            trouble = self._run(call)
            if trouble > 0:
                raise self._refusal(arrays, out_of_range(kernels.kernels[trouble - 1]))
        if trouble:  # an array is not contiguous, or one that will be written is read-only
            return self([np.ascontiguousarray(array) for array in arrays], False, lengths=lengths)
        if self._as_written:
            return written
        memory = memory or self.call_memory.memory(everything)
        if self._places is not None:
            return [memory[place] for place in self._places]
        if lengths is not None:
            return [
                output.in_shape(memory, shape) for output, shape in zip(self._outputs, lengths.results, strict=True)
            ]
        return [output.of(memory) for output in self._outputs]

    @cached_property
    def all_kernels(self) -> KernelRun | None:
        """All kernels as one run, for calls in which none is worth sharing; None if NumPy runs a node."""
        steps = [step for step, _ in self.program.steps]
        if any(isinstance(step, Call) for step in steps):
            return None
        return KernelRun([kernel for step in steps for kernel in step.kernels], [])

    def repetition(self, node: Node) -> Callable[[Sequence[Array]], list[Array]] | None:
        """Return how a scan, whose body this is, repeats it without Python; None if it cannot."""
        from ..compiler.runtime.repetition import repetition_of

        return repetition_of(node, self)

    def _refusal(self, arrays: Sequence[Array], error: Exception) -> Exception:
        from .interpret import refusal

        return refusal(self.graph, arrays, str(error))

    def allocate(self, new: Callable[..., Array]) -> None:
        """Allocate outputs and intermediate values from now on by a function of shape and type."""
        self._new = [(new, shape, dtype) for _, shape, dtype in self._new]
        self.call_memory.new = new
        self._cautious = None

    def _careful(self, arrays: Sequence[Array], lengths: GivenLengths | None) -> list[Array]:
        """Run without writing into inputs."""
        if self._cautious is None:
            target = self.ledger.target
            self._cautious = Compiled(self.graph, without=self._without, target=target, own=self._own)
            if self.call_memory.new != pool.array:
                self._cautious.allocate(self.call_memory.new)
        if lengths is not None:
            lengths = lengths._replace(written=lengths.now(self._cautious.written))
        return self._cautious(arrays, lengths=lengths)

    def _step_by_step(self, call: bytes, memory: Memory, arrays: Sequence[Array], watcher: Watcher | None) -> int:
        """Run the steps; for a watcher kernel by kernel. Nonzero if an array is not as native code needs it."""
        places = (ctypes.c_int64 * len(memory))()
        trouble: int = driver().look(call, places)
        if trouble:
            return trouble
        if watcher is not None:
            for array in memory[len(arrays) + 1 : self.call_memory.arrays + bool(self.placement.arena_bytes)]:
                watcher.made(array)
        try:
            for step, dead in self.program.steps if watcher is None else self.program.one_by_one:
                begin = perf_counter_ns()
                step.run(memory, places)
                if watcher is not None:
                    watcher.ran(begin, "kernel", step.kernels[0])
                    if isinstance(step, Call):
                        for place in step.places:
                            watcher.made(memory[place])
                for place in dead:
                    memory[place] = None
        except (IndexError, ValueError) as error:
            raise self._refusal(arrays, error) from None
        return 0


class _Output:
    """A result for the caller: its own array, copied if it lies in an input, a constant or another output."""

    def __init__(self, call_memory: CallMemory, node: Node, earlier: Sequence[Node]) -> None:
        base = output_base(node)
        self.value = Access(call_memory, base, (base,))
        self.shape = node.shape
        self.copied = is_stored_already(base) or base in earlier

    def of(self, memory: Memory) -> Array:
        """Return the array."""
        array: Array = np.array(self.value.of(memory), order="C") if self.copied else memory[self.value.place]
        return array if array.shape == self.shape else array.reshape(self.shape)

    def in_shape(self, memory: Memory, shape: Shape) -> Array:
        """Return the array in the shape that it has in this call."""
        array: Array = memory[self.value.place] if self.value.constant is None else self.value.constant
        if array.size != math.prod(shape):  # laid out as its bound is
            array = array.reshape(self.shape)[tuple(map(slice, shape))]
        return (np.array(array, order="C") if self.copied else np.ascontiguousarray(array)).reshape(shape)


def compile(
    graph: Graph,
    updates: Mapping[int, int] | None = None,
    donated: Collection[int] = (),
    without: Set[str] = ALL_ON,
    target: Target | None = None,
    own: Own | None = None,
) -> Compiled:
    """Compile a graph to fused machine code: the backend's interface."""
    return Compiled(graph, updates, donated, without, target, own)


def compile_bounded(
    graph: Graph,
    most: Mapping[str, int],
    updates: Mapping[int, int] | None = None,
    donated: Collection[int] = (),
    own: Own | None = None,
) -> Bounded:
    """Compile a graph with symbolic sizes to code for all of them up to a bound.

    Raises:
        UnboundedError: if no kernel is right for all of them.
    """
    from ..compiler.runtime.bounded import Bounded

    return Bounded(graph, most, partial(Compiled, updates=updates, donated=donated, own=own))
