"""Isolated execution: kernels one at a time, each value in its own array; no arena, no memory reuse.

This serves debugging, not speed: the `loops` backend, and the search for the kernel that made a NaN or a wrong number.
A kernel runs as machine code or, a hundred thousand times slower, as loops in Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from ...graph import Graph, topological_order
from ...graph.evaluation import value_of
from ...interpreters import Watcher, current_watcher
from ...ir import Node
from ..fusion.roots import is_stored_already, output_base
from ..kernels.kernel import Kernel
from ..kernels.ledger import Ledger
from ..kernels.steps import Call
from ..loop_ir.source import compiled
from . import cache, threads
from .filling import filled
from .memory_pool import Guards, address, pool
from .program_steps import GRAIN, out_of_range

Array = np.ndarray[Any, Any]
Known = dict[Node, Array]  # the values of nodes
Runner = Callable[[Kernel, Known], None]  # adds the kernel's results


class OutOfBoundsError(Exception):
    """A kernel that writes outside of its arrays."""


def by_machine(kernel: Kernel, known: Known) -> None:
    """Run a kernel's machine code on the caller's thread.

    Raises:
        IndexError: if an index is out of range.
        OutOfBoundsError: if it writes outside of its arrays.
    """
    guards = Guards()
    if not _prepare(kernel, known, guards):
        return
    if kernel.units:
        native = _Native(kernel, known)
        native.function(ctypes.addressof(native.table), 0, kernel.units)
        native.check()
    if guards.broken():
        raise OutOfBoundsError(f"{kernel.name} writes outside of its arrays")


class _Native:
    """A kernel's machine code, and the table of addresses that it is called with."""

    def __init__(self, kernel: Kernel, known: Known) -> None:
        self.kernel, self.known = kernel, known
        (library,) = cache.libraries([kernel.llvm], "kernel")
        self.function = library.function("kernel")
        self.notes = (ctypes.c_int64 * 2)()  # whether an index was out of range; the number of units done
        moved = zip(kernel.buffers, kernel.compiled[1], strict=True)
        where = [address(known[node]) + offset for node, offset in moved]
        self.filled = filled(kernel, where)
        where += [there for each in self.filled for there in each.addresses]
        where += [ctypes.addressof(self.notes), ctypes.addressof(self.notes) + 8]
        self.table = (ctypes.c_int64 * len(where))(*where)

    def check(self) -> None:
        """Raise IndexError if an index was out of range."""
        if self.notes[0]:
            raise out_of_range(self.kernel)


def prepared(kernel: Kernel, inputs: Sequence[Array]) -> Call:
    """Return a call of a kernel, on the threads that kernels run on.

    Args:
        kernel: made of loops.
        inputs: the arrays that it reads, in order, without constants.

    Returns:
        A function that runs the kernel and returns the arrays that it writes, the same ones every time.
    """
    given = iter(inputs)
    known: dict[Any, Array] = {
        node: np.ascontiguousarray(node.params["value"].array) if node.primitive.name == "constant" else next(given)
        for node in kernel.reads
    }
    known |= {node: pool.array(node.shape, node.dtype.numpy) for node in kernel.made}
    native = _Native(kernel, known)
    table, cost = ctypes.addressof(native.table), float(kernel.bytes_read + kernel.bytes_written + kernel.flops)

    def call() -> list[Array]:
        native.notes[:] = [0, 0]
        watcher = current_watcher()
        begin = perf_counter_ns()
        if kernel.units:
            threads.run(native.function, table, kernel.units, cost=cost, grain=GRAIN)
        if watcher is not None:
            watcher.ran(begin, "kernel", kernel)
        native.check()
        return [known[node] for node in kernel.writes]

    return call


def by_python(kernel: Kernel, known: Known) -> None:
    """Run the text of a kernel in Python, element by element."""
    if _prepare(kernel, known, Guards()):
        compiled(kernel.steps[-1].source if kernel.own else kernel.source)(
            *(known[node].reshape(-1) for node in kernel.buffers)
        )


def _prepare(kernel: Kernel, known: Known, guards: Guards) -> bool:
    """Allocate the arrays that a kernel writes; run it, if it is a library call."""
    if kernel.loops is not None:
        known |= {node: guards.array(node.shape, node.dtype.numpy) for node in kernel.made}
        return True
    operands = [_viewed(operand, known) for operand in kernel.nodes[0].inputs]
    for node in kernel.nodes:
        known[node] = np.array(value_of(node, operands), order="C")
    return False


def _viewed(node: Node, known: Mapping[Node, Array]) -> Array:
    """Return a value in memory, or a view of one."""
    chain = []
    while node not in known:
        chain.append(node)
        node = node.inputs[0]
    array = known[node]
    for view in reversed(chain):
        array = np.asarray(view.primitive.evaluate(array, **view.params))
    return array


def given(graph: Graph, arrays: Sequence[Array]) -> Known:
    """Return the values known before the run: inputs, and array constants."""
    known = {node: np.asarray(array, order="C") for node, array in zip(graph.inputs, arrays, strict=True)}
    constants = (node for node in graph.nodes if is_stored_already(node))
    return known | {node: np.asarray(node.params["value"].array, order="C") for node in constants}


def run_alone(
    ledger: Ledger, arrays: Sequence[Array], run: Runner, look: Callable[[Kernel, Known], None] | None = None
) -> list[Array]:
    """Run a graph kernel by kernel.

    Args:
        run: runs one kernel.
        look: called after each kernel with all values so far.
    """
    known = given(ledger.graph, arrays)
    for kernel in ledger.kernels:
        run(kernel, known)
        if look is not None:
            look(kernel, known)
    return [np.array(known[output_base(node)]).reshape(node.shape) for node in ledger.graph.outputs]


def replayed(
    wanted: Iterable[Node], known: Mapping[Node, Array], order: Mapping[Node, int]
) -> Iterator[tuple[Node, list[Array], Array]]:
    """Compute some nodes from known values, one by one in program order, as eager mode would.

    Args:
        order: the places of the nodes in their program.

    Returns:
        Each node on the way, with its operands and its value.
    """
    values = dict(known)
    for node in sorted(topological_order(wanted, values), key=order.__getitem__):
        operands = [values[operand] for operand in node.inputs]
        values[node] = value_of(node, operands)
        yield node, operands, values[node]


def run_watched(ledger: Ledger, arrays: Sequence[Array], run: Runner, watcher: Watcher) -> list[Array]:
    """Run a graph kernel by kernel, and node by node in kernels whose results the watcher suspects.

    Args:
        watcher: told about every value of these kernels.
    """
    order = {node: place for place, node in enumerate(ledger.graph.nodes)}

    def look(kernel: Kernel, known: Known) -> None:
        if any(watcher.suspects(known[node]) for node in kernel.writes):
            others = {node: array for node, array in known.items() if node not in kernel.writes}
            for node, operands, value in replayed(kernel.writes, others, order):
                watcher.computed(node.primitive, operands, value, node.source)

    return run_alone(ledger, arrays, run, look)
