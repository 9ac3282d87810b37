"""A program of XLA as one row of a profile, where our own programs have a row for each kernel.

Bytes are those of its inputs and outputs, once each, and the arithmetic is that of the graph. What XLA's own kernels
exchange through memory is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from minitorch.graph import Graph
from minitorch.graph.cost import flops, transcendentals
from minitorch.ir import Node


@dataclass(frozen=True)
class Whole:
    """The work of one run of a program, with the attributes that a profile asks of a kernel."""

    name: str
    nodes: tuple[Node, ...]
    bytes_read: int
    bytes_written: int
    flops: int
    transcendentals: int
    kind: str = "XLA"


def whole(graph: Graph) -> Whole:
    """A graph as one kernel."""
    used = {operand for node in graph.nodes for operand in node.inputs} | set(graph.outputs)
    return Whole(
        graph.name,
        tuple(graph.nodes),
        sum(node.spec.nbytes for node in graph.inputs if node in used),
        sum(node.spec.nbytes for node in graph.outputs),
        sum(map(flops, graph.nodes)),
        sum(map(transcendentals, graph.nodes)),
    )
