"""The cost of a graph run as kernels, beside its cost node by node."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ...graph import Cost, Graph
from ...graph.cost import Traffic, in_units
from ...ir import Node
from ...tables import Table, Tabular
from ..fusion.roots import is_stored_already, output_base
from .kernel import Kernel
from .ledger import Ledger
from .placement import place


@dataclass(frozen=True, repr=False)
class FusedCost(Tabular, Traffic):
    """The counts of a graph's kernels.

    Attributes:
        kernels: units of work, including library calls.
        bytes_read, bytes_written: from and to memory, of all kernels.
        flops: arithmetic on elements of any type.
        transcendentals: elements of exp, log, sqrt and the like.
        peak_bytes: the most memory alive at once, kernel by kernel: inputs and array constants always, a value until
            the last kernel that reads it, outputs until the end. Memory that is used in place counts twice.
        arena_bytes: bytes of intermediate values, where values with disjoint live ranges share memory.
        intermediate_bytes: their bytes if they shared no memory.
        peak_in_arena: inputs, array constants, and the most that a call takes: the arena and outputs, but for those
            that are written over an input.
        unfused: the same counts of the function as it is written, every operation by itself, as eager mode runs them:
            of the graph before the passes, which drop operations, and before the compiler rewrites any for itself.
    """

    kernels: int
    bytes_read: int
    bytes_written: int
    flops: int
    transcendentals: int
    peak_bytes: int
    arena_bytes: int
    intermediate_bytes: int
    peak_in_arena: int
    unfused: Cost

    def _parts(self) -> list[Table]:
        unfused = self.unfused
        rows = [
            ("kernels", str(self.kernels), str(unfused.nodes)),
            ("read", in_units(self.bytes_read, "B"), in_units(unfused.bytes_read, "B")),
            ("written", in_units(self.bytes_written, "B"), in_units(unfused.bytes_written, "B")),
            ("peak", in_units(self.peak_bytes, "B"), in_units(unfused.peak_bytes, "B")),
            ("peak with the arena", in_units(self.peak_in_arena, "B"), ""),
            ("intermediates", in_units(self.intermediate_bytes, "B"), ""),
            ("their arena", in_units(self.arena_bytes, "B"), ""),
            ("arithmetic", in_units(self.flops), in_units(unfused.flops)),
            ("exp, log and the like", in_units(self.transcendentals), in_units(unfused.transcendentals)),
        ]
        return [Table("{:<22}{:>12}{:>16}", rows, ("", "fused", "node by node"), ())]


def fused_cost(
    ledger: Ledger, written: Graph, updates: Mapping[int, int] | None = None, donated: Collection[int] = ()
) -> FusedCost:
    """Return the cost of a graph's kernels, beside that of the graph as it was written.

    Outputs that replace an input, and inputs that are given away, are as for `place`.
    """
    kernels, placement = ledger.kernels, place(ledger.graph, ledger.kernels, updates, donated)
    nodes = (*ledger.graph.inputs, *ledger.graph.nodes)
    there = sum(node.spec.nbytes for node in nodes if is_stored_already(node))
    return FusedCost(
        len(kernels),
        sum(kernel.bytes_read for kernel in kernels),
        sum(kernel.bytes_written for kernel in kernels),
        sum(kernel.flops for kernel in kernels),
        sum(kernel.transcendentals for kernel in kernels),
        _peak(ledger, there),
        placement.arena_bytes,
        placement.intermediate_bytes,
        there + placement.peak_bytes,
        written.cost(),
    )


def _peak(ledger: Ledger, there: int) -> int:
    end = len(ledger.kernels)
    last: dict[Node, int] = {}
    for number, kernel in enumerate(ledger.kernels):
        last |= dict.fromkeys(_in_memory(kernel), number)
    last |= dict.fromkeys(map(output_base, ledger.graph.outputs), end)
    alive = peak = there
    for number, kernel in enumerate(ledger.kernels):
        alive += sum(node.spec.nbytes for node in kernel.made)
        peak = max(peak, alive)
        alive -= sum(node.spec.nbytes for node in _in_memory(kernel) if last[node] == number)
    return peak


def _in_memory(kernel: Kernel) -> set[Node]:
    return {node for node in (*kernel.reads, *kernel.made) if not is_stored_already(node)}
