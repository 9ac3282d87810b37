"""The backend that fuses: kernels of generated machine code, run one after another.

Outputs and large intermediates come from a pool of memory, because fresh pages cost more than the arithmetic on them.
Each call works on memory of its own, so several threads may call one executable at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler import cache, threads
from ..compiler.kernel import Kernel
from ..compiler.memory import address, pool
from ..compiler.roots import is_stored_already, output_base
from ..compiler.schedule import Schedule, schedule
from ..graph import Graph
from ..interpreters import current_observer, run_silently
from ..ir import INPUT, Node
from .interpret import Interpreted

Array = np.ndarray[Any, Any]

WORDS = ctypes.c_int64 * 2  # behind a kernel's buffers: whether an index was out of range; how many units are done
GRAIN = 1 << 17  # what a thread must have to do, in bytes moved and weighted operations


class Compiled:
    """A graph as machine code; call it with one array per input.

    Attributes:
        schedule: the kernels and the ledger.
    """

    def __init__(self, graph: Graph) -> None:
        self.schedule: Schedule = schedule(graph)
        self.graph = graph = self.schedule.graph
        self._slots: dict[Node, int] = {node: slot for slot, node in enumerate(graph.inputs)}
        self._initial: list[Array | None] = [None] * len(graph.inputs)
        for node in graph.nodes:
            if node.primitive is not INPUT and is_stored_already(node):
                self._slot(node)
                self._initial[-1] = node.params["value"].array
        loops = [kernel for kernel in self.schedule.kernels if kernel.units]
        libraries = cache.libraries([kernel.llvm for kernel in loops], "kernel")
        functions = {id(kernel): library.function("kernel") for kernel, library in zip(loops, libraries, strict=True)}
        self._steps = [
            _LoopStep(self, kernel, functions.get(id(kernel))) if kernel.loops is not None else _CallStep(self, kernel)
            for kernel in self.schedule.kernels
        ]
        self._release(self._last_uses())
        self._outputs = [_Output(self, node, graph.outputs[:place]) for place, node in enumerate(graph.outputs)]
        self._interpreted: Interpreted | None = None

    def _slot(self, node: Node) -> int:
        if node not in self._slots:
            self._slots[node] = len(self._initial)
            self._initial.append(None)
        return self._slots[node]

    def _last_uses(self) -> dict[int, int]:
        """After which step a slot is needed no more; what an output shows is needed to the end."""
        kept = set(map(output_base, self.graph.outputs))
        last: dict[int, int] = {}
        for number, kernel in enumerate(self.schedule.kernels):
            for node in (*kernel.reads, *kernel.writes):
                if node.primitive is not INPUT and not is_stored_already(node) and node not in kept:
                    last[self._slots[node]] = number
        return last

    def _release(self, last: dict[int, int]) -> None:
        for slot, number in last.items():
            self._steps[number].dead.append(slot)

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Run the kernels."""
        if current_observer() is not None:  # somebody wants to see every value: run node by node
            self._interpreted = self._interpreted or Interpreted(self.graph)
            return self._interpreted(arrays)
        values: list[Any] = list(self._initial)
        values[: len(arrays)] = [array if array.flags.c_contiguous else np.ascontiguousarray(array) for array in arrays]
        for step in self._steps:
            step.run(values)
            for slot in step.dead:
                values[slot] = None
        return [output.of(values) for output in self._outputs]


class _LoopStep:
    """A kernel of machine code: where its buffers are, and how much there is to do."""

    def __init__(self, program: Compiled, kernel: Kernel, function: Any) -> None:
        self.function = function
        self.units = kernel.units
        self.cost = float(kernel.bytes_read + kernel.bytes_written + kernel.flops)
        self.slots = [program._slot(node) for node in kernel.buffers]
        self.made = [(program._slot(node), node.shape, node.dtype.numpy) for node in kernel.made]
        self.table = ctypes.c_void_p * (len(self.slots) + 1)
        self.has_words = kernel.loops is not None and (kernel.loops.looks_up or kernel.loops.has_tail)
        self.kernel = kernel
        self.dead: list[int] = []

    def run(self, values: list[Any]) -> None:
        """Make room for the results, and call the function."""
        for slot, shape, dtype in self.made:
            values[slot] = pool.array(shape, dtype)
        if self.units:
            words = WORDS() if self.has_words else None
            table = self.table(
                *[address(values[slot]) for slot in self.slots], None if words is None else ctypes.addressof(words)
            )
            threads.run(self.function, ctypes.addressof(table), self.units, cost=self.cost, grain=GRAIN)
            if words is not None and words[0]:
                self._out_of_range()

    def _out_of_range(self) -> None:
        gathers = [node for node in self.kernel.nodes if node.primitive.name == "gather"]
        where = ", ".join(dict.fromkeys(str(node.source) for node in gathers))
        shapes = ", ".join(dict.fromkeys(str(node.inputs[0].spec) for node in gathers))
        raise IndexError(f"an index is out of bounds for {shapes}, asked for at {where}")


class _CallStep:
    """A node that NumPy runs; its operands may be views of what is in memory."""

    def __init__(self, program: Compiled, kernel: Kernel) -> None:
        (self.node,) = kernel.nodes
        self.operands = [_View(program, operand) for operand in self.node.inputs]
        self.slot = program._slot(self.node)
        self.dead: list[int] = []

    def run(self, values: list[Any]) -> None:
        """Evaluate the primitive."""
        operands = [operand.of(values) for operand in self.operands]
        try:
            result = run_silently(lambda: self.node.primitive.evaluate(*operands, **self.node.params))
        except Exception as error:
            error.add_note(f"in {self.node.primitive.name}: {self.node.spec}, recorded at {self.node.source}")
            raise
        values[self.slot] = np.ascontiguousarray(result).reshape(self.node.shape)


class _View:
    """A value in memory, or a chain of views of one."""

    def __init__(self, program: Compiled, node: Node) -> None:
        self.chain: list[Node] = []
        while node.primitive.is_view and node not in program._slots:
            self.chain.append(node)
            node = node.inputs[0]
        self.chain.reverse()
        self.slot = program._slot(node)

    def of(self, values: list[Any]) -> Array:
        """The array."""
        array = values[self.slot]
        for node in self.chain:
            array = node.primitive.evaluate(array, **node.params)
        return np.asarray(array)


class _Output:
    """A result for the caller: an array of its own, copied if it lies in an input, a constant or another output."""

    def __init__(self, program: Compiled, node: Node, earlier: Sequence[Node]) -> None:
        base = output_base(node)
        self.slot = program._slot(base)
        self.shape = node.shape
        self.copied = is_stored_already(base) or base in map(output_base, earlier)

    def of(self, values: list[Any]) -> Array:
        """The array."""
        array: Array = np.array(values[self.slot]) if self.copied else values[self.slot]
        return array if array.shape == self.shape else array.reshape(self.shape)


def compile(graph: Graph) -> Compiled:
    """Make a graph run as fused machine code."""
    return Compiled(graph)
