"""The rules of kernels and their iteration spaces: given to the student, and used by the checks."""

from __future__ import annotations

from .... import primitives as P
from ....graph import Graph
from ....ir import Node, Shape

REDUCTIONS = (P.reduce_sum, P.reduce_max)


def operations(graph: Graph) -> list[Node]:
    """The nodes that belong into kernels: all but the constants."""
    return [node for node in graph.nodes if node.primitive is not P.constant]


def loop_shape(node: Node) -> Shape:
    """The shape over which a node runs: that of its operand for a reduction, its own otherwise."""
    return node.inputs[0].shape if node.primitive in REDUCTIONS else node.shape
