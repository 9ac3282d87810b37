"""Dead code elimination: nodes that no output depends on are removed. Inputs stay."""

from __future__ import annotations

from ..graph.build import topological_order
from ..graph.graph import Graph
from .pipeline import Pass


def remove_dead_code(graph: Graph) -> Graph:
    """Remove the nodes that no output needs."""
    needed = set(topological_order(graph.outputs))
    if all(node in needed for node in graph.nodes):
        return graph
    return graph.with_nodes([node for node in graph.nodes if node in needed], graph.outputs)


DEAD_CODE = Pass("dead code", remove_dead_code, "Remove nodes that no output depends on.")
