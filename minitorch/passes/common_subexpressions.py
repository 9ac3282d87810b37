"""Common subexpression elimination: a value that two nodes compute is computed once.

Two nodes are the same if primitive, operands and parameters are; constants and parameters are compared by bits, so that
0.0 and -0.0 stay apart and NaN is found again. Draws of `random_bits` are no exception: they are a function of their
state, and equal states mean equal bits. Operands of primitives whose result does not depend on their order are sorted
first; `maximum` is not one of them, as the order may decide which of 0.0 and -0.0 it returns.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..graph.build import with_inputs
from ..graph.graph import Graph
from ..graph.values import is_splat, params_key, splat_key
from ..ir import Node
from ..primitives import maximum
from .pipeline import Pass


def merge_common_subexpressions(graph: Graph) -> Graph:
    """Merge nodes so that every value is computed once."""
    done = {node: node for node in graph.inputs}
    first: dict[Hashable, Node] = {}
    program = []
    for node in graph.nodes:
        operands = tuple([done[operand] for operand in node.inputs])
        key: Hashable
        if is_splat(node):
            key = splat_key(node)
        else:
            places: tuple[int, ...] = tuple(map(id, operands))
            if node.primitive.commutes and node.primitive is not maximum:
                places = tuple(sorted(places))
            key = node.primitive, places, params_key(node.params)
        if key in first:
            done[node] = first[key]
            continue
        done[node] = first[key] = with_inputs(node, operands)
        program.append(done[node])
    if len(program) == len(graph.nodes):
        return graph
    return graph.with_nodes(program, [done[node] for node in graph.outputs])


COMMON_SUBEXPRESSIONS = Pass("common subexpressions", merge_common_subexpressions, "Compute equal expressions once.")
