"""Removal of nodes: of those that no output depends on (dead code elimination), and of identities. Inputs stay."""

from __future__ import annotations

from ..graph.build import topological_order, with_inputs
from ..graph.graph import Graph
from ..ir import Node
from .pipeline import Pass


def remove_dead_code(graph: Graph) -> Graph:
    """Remove the nodes that no output needs."""
    needed = set(topological_order(graph.outputs))
    if all(node in needed for node in graph.nodes):
        return graph
    return graph.with_nodes([node for node in graph.nodes if node in needed], graph.outputs)


def drop_identities(graph: Graph) -> Graph:
    """Put the operand in the place of each node that is one with a remark, which the backend does not read."""
    now: dict[Node, Node] = {}
    for node in graph.nodes:
        operands = tuple([now.get(operand, operand) for operand in node.inputs])
        now[node] = operands[0] if node.primitive.is_identity else with_inputs(node, operands)
    if not any(node.primitive.is_identity for node in graph.nodes):
        return graph
    kept = [now[node] for node in graph.nodes if not node.primitive.is_identity]
    return graph.with_nodes(kept, [now.get(node, node) for node in graph.outputs])


DEAD_CODE = Pass("dead code", remove_dead_code, "Remove nodes that no output depends on.")
IDENTITIES = Pass("identities", drop_identities, "Drop remarks that are for other backends.")
