"""Positions as constants: what depends on `iota` alone is evaluated, such as a mask below a diagonal.

A compiler makes such elements where they are used, so constant folding leaves them alone. A model that others read is
shorter with the array itself.
"""

from __future__ import annotations

import numpy as np

from minitorch.graph.build import literal, with_inputs
from minitorch.graph.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.ir import Node
from minitorch.passes.constant_folding import MOST_ELEMENTS, fold
from minitorch.passes.dead_code import DEAD_CODE
from minitorch.passes.pipeline import Pass
from minitorch.primitives import iota


def fold_positions(graph: Graph) -> Graph:
    """A graph with arrays in place of what is computed of positions."""
    done = {node: node for node in graph.inputs}
    known: set[Node] = set()
    for node in graph.nodes:
        now = with_inputs(node, tuple([done[operand] for operand in node.inputs]))
        found = None
        if node.primitive is iota and node.spec.size <= MOST_ELEMENTS:
            found = literal(np.arange(node.spec.size, dtype=node.dtype.numpy), source=node.source)
        elif known.intersection(now.inputs) and all(each in known or is_splat(each) for each in now.inputs):
            found = fold(now)
        if found is not None:
            known.add(found)
        done[node] = now if found is None else found
    if not known:
        return graph
    return DEAD_CODE(
        graph.with_nodes(dict.fromkeys(done[node] for node in graph.nodes), [done[node] for node in graph.outputs])
    )


POSITIONS = Pass("positions", fold_positions, "Evaluate what depends on positions alone.")
