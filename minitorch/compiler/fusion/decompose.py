"""Primitives that are library calls by themselves, but can be loops in special cases that matter.

The one case so far: adding one number per row of a matrix at a column that is data, which is what the gradient of
cross-entropy does with the labels. Every element of the result asks whether it is the one: a comparison instead of a
scatter, which fuses with whatever is around it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ... import primitives as P
from ...graph import Graph
from ...graph.build import apply, literal
from ...ir import Node, Spec
from ...primitives import Literal


def decompose(graph: Graph) -> Graph:
    """The graph with such cases written as pointwise operations."""
    moved: dict[Node, Node] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        operands = tuple(moved.get(operand, operand) for operand in node.inputs)
        if node.primitive is P.scatter_add and _one_per_row(*operands):
            x, updates, _, columns = operands
            made = list(_one_hot(x, updates, columns, node))
            nodes += made
            moved[node] = made[-1]
        elif operands != node.inputs:
            moved[node] = Node(node.primitive, operands, node.params, node.spec, node.source)
            nodes.append(moved[node])
        else:
            nodes.append(node)
    if not moved:
        return graph
    return Graph(graph.inputs, [moved.get(node, node) for node in graph.outputs], nodes, graph.name, verify=False)


def _is_zero(node: Node) -> bool:
    while node.primitive is P.expand:
        node = node.inputs[0]
    return node.primitive is P.constant and not isinstance(node.params["value"], Literal) and not node.params["value"]


def _one_per_row(x: Node, updates: Node, *indices: Node) -> bool:
    """Whether the first index of a matrix's element is the number of the update itself."""
    rows = indices[0]
    return x.spec.ndim == len(indices) == 2 and _is_zero(x) and rows.primitive is P.iota and rows.shape == x.shape[:1]


def _one_hot(x: Node, updates: Node, columns: Node, source: Node) -> Iterator[Node]:
    """``where(arange(columns) == index, update, 0)``, an index below 0 counted from the end."""
    height, width = x.shape

    def make(primitive: P.Primitive, *operands: Node, **params: object) -> Node:
        made.append(apply(primitive, *operands, source=source.source, **params))
        return made[-1]

    def splat(value: float, spec: Spec) -> Node:
        made.append(literal(value, spec))
        return made[-1]

    made: list[Node] = []
    below = make(P.less, columns, splat(0, columns.spec))
    columns = make(P.where, below, make(P.add, columns, splat(width, columns.spec)), columns)
    wanted = make(P.expand, make(P.reshape, columns, shape=(height, 1)), shape=x.shape)
    own = make(P.expand, make(P.iota, size=width, dtype=columns.dtype), shape=x.shape)
    value = make(P.expand, make(P.reshape, updates, shape=(height, 1)), shape=x.shape)
    make(P.where, make(P.equal, wanted, own), value, splat(0, x.spec))
    yield from made
