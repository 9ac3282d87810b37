"""The steps of a compiled graph: runs of small kernels, kernels that threads share, library calls.

All steps of a call see its *memory*, a list of arrays, and their *places*, the addresses of the same arrays for native
code: inputs, outputs, the arena, and the results of library calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby
from typing import Any, Protocol

import numpy as np

from ...graph import Graph
from ...graph.values import bodies, shared
from ...interpreters import run_silently
from ...ir import Node, Shape
from ..fusion.roots import is_stored_already, output_base
from ..kernels.arena import ALIGNMENT
from ..kernels.kernel import Kernel
from ..kernels.ledger import Ledger
from ..kernels.placement import Placement
from ..lengths import Length, at_lengths, in_memory, padded, within_one
from . import cache
from .driver import CONTIGUOUS, WRITEABLE, driver
from .memory_pool import Array, address, pool

Memory = list[Any]

GRAIN = 1 << 17  # bytes moved plus FLOPs that are worth one more thread; raising it uses fewer threads
QUICK = GRAIN // 4  # the same unit: a run of kernels below it keeps the GIL

_NO_ARENA = np.empty(ALIGNMENT, np.uint8)


def work_of(kernel: Kernel) -> float:
    """Return the bytes that a kernel moves plus its FLOPs."""
    return float(kernel.bytes_read + kernel.bytes_written + kernel.flops)


class Program(Protocol):
    """A compiled graph, such as the body of a loop."""

    graph: Graph
    call_memory: CallMemory
    program: NativeProgram

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Run it."""

    def repetition(self, node: Node) -> Callable[[Sequence[Array]], list[Array]] | None:
        """Return how a scan repeats it without Python, or None."""


Compile = Callable[[Graph], Program]


class CallMemory:
    """The memory of a call: for each value the place of an array, and an offset in bytes.

    Args:
        written: the outputs that have arrays of their own; not those that are written over an input.

    Attributes:
        arrays: the number of arrays when a call begins: inputs, outputs, the arena.
        count: of all places.
        lengths: the place of the lengths that a call gives, if it gives some.
        flags: the NumPy flags that each of the arrays must have.
        new: makes the arena.
    """

    def __init__(self, ledger: Ledger, placement: Placement, written: Sequence[Node]) -> None:
        self.arena_bytes = placement.arena_bytes
        self.new: Callable[[tuple[int, ...], type[Any]], Array] = pool.array
        self.arrays = len(ledger.graph.inputs) + len(written) + 1
        self.arena = self.arrays
        self._where = {node: (1 + place, 0) for place, node in enumerate((*ledger.graph.inputs, *written))}
        self._where |= {node: (self.arena, offset) for node, offset in placement.offsets.items()}
        for output, place in placement.overwritten.items():
            self._where[output_base(ledger.graph.outputs[output])] = (1 + place, 0)
        overwritten = placement.overwritten.values()
        self.flags = [CONTIGUOUS | WRITEABLE if place in overwritten else CONTIGUOUS for place in range(self.arrays)]
        self.count = 1 + self.arrays
        inputs = ledger.graph.inputs
        given = next((each.lengths for node in inputs for each in node.shape if isinstance(each, Length)), None)
        self.lengths = None if given is None else 1 + inputs.index(given.node)
        self.constants: dict[Node, Array] = {}
        for kernel in ledger.kernels:
            for node in kernel.nodes if kernel.loops is None else ():
                self._where[node] = (self.count, 0)
                self.count += 1

    def where(self, node: Node) -> tuple[int, int]:
        """Return the place and the offset; of a constant its address, which is an offset from place 0."""
        if node not in self._where:
            array = self.constants[node] = np.ascontiguousarray(node.params["value"].array)
            self._where[node] = (0, address(array))
        return self._where[node]

    def make_arena(self) -> Array:
        """Return memory for the intermediate values of one call."""
        return self.new((self.arena_bytes + ALIGNMENT,), np.uint8) if self.arena_bytes else _NO_ARENA

    def memory(self, arrays: Sequence[Array]) -> Memory:
        """Return the arrays of a call; its arena begins where native code expects it."""
        memory: Memory = [None, *arrays, *[None] * (self.count - 1 - self.arrays)]
        begin = -address(memory[self.arena]) % ALIGNMENT if self.arena_bytes else 0
        if begin:
            memory[self.arena] = memory[self.arena][begin:]
        return memory


class Access:
    """A value as an array of a call: the place of a stored value, and the movements between the two."""

    def __init__(self, call_memory: CallMemory, node: Node, memory: Container[Node]) -> None:
        self.chain: list[Node] = []
        while node not in memory:
            self.chain.append(node)
            node = node.inputs[0]
        self.chain.reverse()
        self.place, self.offset = call_memory.where(node)
        self.shape, self.dtype = node.shape, node.dtype.numpy
        self.constant = call_memory.constants.get(node)
        self.in_arena = self.place == call_memory.arena
        self.lengths = call_memory.lengths

    def of(self, memory: Memory) -> Array:
        """Return the array."""
        shape = self.shape if self.lengths is None else in_memory(self.shape, memory[self.lengths])
        if self.in_arena:
            array = np.ndarray(shape, self.dtype, memory[self.place], self.offset)
        else:
            array = memory[self.place] if self.constant is None else self.constant
            array = array if array.shape == shape else array.reshape(shape)
        if self.lengths is not None:
            array = array[tuple(map(slice, at_lengths(self.shape, memory[self.lengths])))]
        for node in self.chain:
            array = node.primitive.evaluate(array, **_params(node, memory, self.lengths))
        return np.asarray(array)


def _params(node: Node, memory: Memory, lengths: int | None) -> Mapping[str, Any]:
    """Return the parameters of a node in a call."""
    if lengths is None:
        return node.params
    return {name: at_lengths(value, memory[lengths]) for name, value in node.params.items()}


class KernelRun:
    """A run of machine-code kernels, one after another on the caller's thread: one native call.

    Args:
        kernels: in order.
        records: where the driver finds each of them.
    """

    def __init__(self, kernels: Sequence[Kernel], records: Sequence[int]) -> None:
        self.kernels, self.records = kernels, records
        self.is_quick = sum(map(work_of, self.kernels)) <= QUICK

    def run(self, memory: Memory, places: Any) -> None:
        """Call them."""
        trouble = driver().kernels(self.records[0], len(self.kernels), places)
        if trouble:
            raise out_of_range(self.kernels[trouble - 1])

    def repeat(self, places: Any, turns: Array, trips: int) -> None:
        """Call them again and again; after each time the places move by one of the two rows of `turns`, in turn."""
        trouble = driver().repeat(self.records[0], len(self.kernels), places, address(turns), len(places), trips)
        if trouble:
            raise out_of_range(self.kernels[trouble - 1])


class Shared:
    """A kernel of machine code that is worth sharing among threads."""

    def __init__(self, kernels: Sequence[Kernel], records: Sequence[int]) -> None:
        self.kernels, self.records = kernels, records
        self.extent, self.cost = kernels[0].units, work_of(kernels[0])
        from . import threads

        self._run = threads.run

    def run(self, memory: Memory, places: Any) -> None:
        """Call it, on as many threads as pay."""
        context = (ctypes.c_int64 * 4)(self.records[0], ctypes.addressof(places), 0, 0)
        self._run(driver().part, ctypes.addressof(context), self.extent, cost=self.cost, grain=GRAIN)
        if context[2]:
            raise out_of_range(self.kernels[0])


class Call:
    """A node that NumPy runs, or a loop or branch of programs; its operands may be views of stored values."""

    def __init__(
        self, kernels: Sequence[Kernel], call_memory: CallMemory, compile: Compile, kept: Container[Node]
    ) -> None:
        self.kernels, self.kept, self.lengths = kernels, kept, call_memory.lengths
        self.nodes = kernels[0].nodes
        self.operands = [Access(call_memory, operand, kernels[0].reads) for operand in self.nodes[0].inputs]
        self.places = [call_memory.where(node)[0] for node in self.nodes]
        graphs = bodies(self.nodes[0])
        self.bodies = {id(body): compile(body) for body in graphs.values()}
        self._repetition = None
        if self.nodes[0].primitive.name == "scan":
            self._repetition = self.bodies[id(graphs["body"])].repetition(self.nodes[0])

    def run(self, memory: Memory, places: Any) -> None:
        """Evaluate the primitive."""
        operands, node = [operand.of(memory) for operand in self.operands], self.nodes[0]
        try:
            results = self._results(operands, memory)
        except Exception as error:
            error.add_note(f"in {node.primitive.name}: {node.spec}, recorded at {node.source}")
            raise
        for number, (node, place, result) in enumerate(zip(self.nodes, self.places, results, strict=True)):
            others = [*operands, *results[:number]] if node in self.kept else operands
            if any(np.may_share_memory(result, other) for other in others):
                result = np.array(result)  # the operands may be overwritten while the result is needed
            memory[place] = result = self._laid_out(result, node.shape, memory)
            places[place] = address(result)

    def _laid_out(self, result: Array, shape: Shape, memory: Memory) -> Array:
        """Return a result as kernels expect it in memory."""
        if self.lengths is not None:
            if not within_one(shape):
                return padded(result, shape)
            shape = at_lengths(shape, memory[self.lengths])
        return np.ascontiguousarray(result).reshape(shape)

    def _results(self, operands: Sequence[Array], memory: Memory) -> list[Array]:
        node = self.nodes[0]
        if node.primitive.together is None:
            params = _params(node, memory, self.lengths)
            return [run_silently(lambda: node.primitive.evaluate(*operands, **params))]
        if self._repetition is not None:
            found = self._repetition([np.asarray(operand, order="C") for operand in operands])
        else:
            found = node.primitive.together(*operands, run=self._run, **shared(node.params))
        return [found[each.params["result"]] for each in self.nodes]

    def _run(self, body: Graph, arrays: Sequence[Array]) -> list[Array]:
        return self.bodies[id(body)](arrays)


def out_of_range(kernel: Kernel) -> IndexError:
    """Return the error for a kernel that read an index out of range."""
    gathers = [node for node in kernel.nodes if node.primitive.name == "gather"]
    where = ", ".join(dict.fromkeys(str(node.source) for node in gathers))
    shapes = ", ".join(dict.fromkeys(str(node.inputs[0].spec) for node in gathers))
    return IndexError(f"an index is out of bounds for {shapes}, asked for at {where}")


Step = KernelRun | Shared | Call


class NativeProgram:
    """The loaded kernels of a graph, and the steps in which they run.

    Attributes:
        address: of the program that the driver runs.
        steps: each with the places of the values that it uses last.
    """

    def __init__(self, ledger: Ledger, call_memory: CallMemory, kept: Container[Node], compile: Compile) -> None:
        kernels = [kernel for kernel in ledger.kernels if kernel.loops is None or kernel.units]
        loops = [kernel for kernel in kernels if kernel.loops is not None]
        alike: dict[tuple[Any, ...], Kernel] = {}  # of those with the same code, the first is written out
        alike_to = [alike.setdefault(kernel.code, kernel) for kernel in loops]
        texts = (kernel.llvm for kernel in alike_to)
        self._libraries = cache.libraries(texts, "kernel")  # alive as long as the program
        entries = {
            id(kernel): library.address("kernel") for kernel, library in zip(loops, self._libraries, strict=True)
        }
        self.filled: list[Any] = []  # packed weights
        words, starts = [call_memory.count, call_memory.arrays, len(loops), *call_memory.flags], []
        for kernel in kernels:
            starts.append(len(words))
            if kernel.loops is not None:
                moved = zip(map(call_memory.where, kernel.buffers), kernel.compiled[1], strict=True)
                where = [(place, offset + by) for (place, offset), by in moved]
                if kernel.fillings:
                    from .filling import filled

                    held = filled(kernel, [0 if place else offset for place, offset in where])
                    where += [(0, there) for each in held for there in each.addresses]
                    self.filled += held
                words += [entries[id(kernel)], kernel.units, len(where), *chain.from_iterable(where)]
        self._words = (ctypes.c_int64 * len(words))(*words)
        self.address = ctypes.addressof(self._words)
        last = {
            place: number for number, kernel in enumerate(kernels) for place in _places_of(kernel, call_memory, kept)
        }
        self.steps: list[tuple[Step, list[int]]] = []
        for kind, group in groupby(range(len(kernels)), key=lambda number: _kind(kernels[number])):
            numbers = list(group)
            for run in [numbers] if kind is KernelRun else [[number] for number in numbers]:
                records = [self.address + 8 * starts[number] for number in run]
                given = [kernels[number] for number in run]
                step = kind(given, records) if kind is not None else Call(given, call_memory, compile, kept)
                self.steps.append((step, [place for place, number in last.items() if number in run]))

    @cached_property
    def one_by_one(self) -> list[tuple[Step, list[int]]]:
        """The steps, no two kernels in one."""
        found: list[tuple[Step, list[int]]] = []
        for step, dead in self.steps:
            if isinstance(step, KernelRun):
                pairs = zip(step.kernels, step.records, strict=True)
                found += [(KernelRun([kernel], [record]), []) for kernel, record in pairs]
                found[-1][1].extend(dead)
            else:
                found.append((step, dead))
        return found


def _kind(kernel: Kernel) -> type[KernelRun | Shared] | None:
    """Return the kind of step that runs a kernel's machine code; None if it has none."""
    if kernel.loops is None:
        return None
    return Shared if work_of(kernel) >= 2 * GRAIN and kernel.units > 1 else KernelRun


def _places_of(kernel: Kernel, call_memory: CallMemory, kept: Container[Node]) -> list[int]:
    """Return the places of library calls' results that a kernel reads or writes, without the kept ones."""
    used = [node for node in (*kernel.reads, *kernel.writes) if node not in kept and not is_stored_already(node)]
    return [place for place, _ in map(call_memory.where, used) if place > call_memory.arena]
