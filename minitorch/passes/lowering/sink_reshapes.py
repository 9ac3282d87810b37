"""Sink reshapes: a reshape of a contraction moves behind the pointwise operations that follow.

A product with more than two dimensions is computed as one of matrices: ``reshape(dot(reshape(x), w))``. Its consumers
then have another shape, and would run over other rows. Here ``f(reshape(y), z)`` becomes
``reshape(f(y, reshape(z)))``, the same numbers at the same places in memory, and `f` can be the epilogue of `y`.

The pass stops where `z` is the result of a reduction: row-resident kernels keep the shape that they reduce.
"""

from __future__ import annotations

from ... import primitives as P
from ...graph.build import apply, with_inputs
from ...graph.graph import Graph
from ...graph.values import is_splat
from ...ir import POINTWISE, Node, Source, Spec
from ..dead_code import remove_dead_code
from ..pipeline import Pass


def sink_reshapes(graph: Graph) -> Graph:
    """Move reshapes of contractions as late as possible."""
    moved: dict[Node, Node] = {}
    behind: dict[Node, Node] = {}  # the operand of each reshape
    reduced: set[Node] = set()  # values computed from the result of a reduction
    nodes: list[Node] = []

    def add(node: Node) -> Node:
        nodes.append(node)
        return node

    def shaped(node: Node, like: Node, source: Source | None) -> Node:
        """Reshape a value to the shape of another one."""
        if node in behind and behind[node].shape == like.shape:
            return behind[node]
        if is_splat(node):
            return add(apply(P.constant, source=source, **{**node.params, "shape": like.shape}))
        return add(apply(P.reshape, node, source=source, shape=like.shape))

    for node in graph.nodes:
        operands = tuple(moved.get(operand, operand) for operand in node.inputs)
        kind = node.primitive.kind
        if kind == "reduction" or (kind in (*POINTWISE, "movement") and reduced.intersection(node.inputs)):
            reduced.add(node)
        core = next((behind[operand] for operand in operands if operand in behind), None)
        if core is not None and kind in POINTWISE and node not in reduced:
            inside = tuple(shaped(operand, core, node.source) for operand in operands)
            result = add(Node(node.primitive, inside, node.params, Spec(core.shape, node.dtype), node.source))
            moved[node] = add(apply(P.reshape, result, source=node.source, shape=node.shape))
            behind[moved[node]] = result
            continue
        now = add(with_inputs(node, operands))
        if now is not node:
            moved[node] = now
        if node.primitive is P.reshape:
            (x,) = operands
            if x in behind or x.primitive.kind == "contraction":
                behind[now] = behind.get(x, x)
    if not moved:
        return graph
    outputs = [moved.get(node, node) for node in graph.outputs]
    return remove_dead_code(Graph(graph.inputs, outputs, nodes, graph.name, verify=False))


SINK_RESHAPES = Pass(
    "sink reshapes",
    sink_reshapes,
    "Move reshapes of products behind the pointwise operations that follow, which then become their epilogue.",
    rearranges=True,
)
