"""Scatter to select: a `scatter_add` of one number per row becomes a comparison with one-hot columns.

The gradient of cross-entropy scatters a number into each row of a matrix of zeros, at a column given by data. This is
a library call. Written as ``where(arange(columns) == index, number, 0)`` it is pointwise, and fuses with its
neighbours.
"""

from __future__ import annotations

import math

import numpy as np

from ... import primitives as P
from ...graph.build import apply, literal, with_inputs
from ...graph.graph import Graph
from ...graph.values import is_splat
from ...ir import Node, Spec
from ...primitives import Literal


def scatter_to_select(graph: Graph) -> Graph:
    """Replace such additions by selections."""
    moved: dict[Node, Node] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        operands = tuple(moved.get(operand, operand) for operand in node.inputs)
        if node.primitive is P.scatter_add and _is_one_per_row(*operands):
            nodes += _selection(node, operands)
        else:
            nodes.append(with_inputs(node, operands))
        if nodes[-1] is not node:
            moved[node] = nodes[-1]
    return graph.with_nodes(nodes, [moved.get(node, node) for node in graph.outputs]) if moved else graph


def _is_one_per_row(x: Node, updates: Node, *indices: Node) -> bool:
    """Return whether update number i goes to row i of a matrix."""
    rows = indices[0]
    is_matrix = x.spec.ndim == len(indices) == 2 and _zero(x) is not None
    return is_matrix and rows.shape == x.shape[:1] and _counts(rows)


def _counts(rows: Node) -> bool:
    """Return whether a vector is 0, 1, 2, ...: an `iota`, or in graphs made elsewhere a constant."""
    if rows.primitive is P.constant and isinstance(rows.params["value"], Literal):
        return bool(np.array_equal(rows.params["value"].array, np.arange(len(rows.params["value"].array))))
    return rows.primitive is P.iota


def _zero(node: Node) -> float | None:
    """Return the zero (0 or -0) that fills a value, or None."""
    while node.primitive is P.expand:
        node = node.inputs[0]
    value = node.params["value"] if is_splat(node) else None
    return None if value is None or value else value


def _selection(scatter: Node, operands: tuple[Node, ...]) -> list[Node]:
    """Build ``where(arange(width) == index, zero + update, zero)``, an index below 0 counted from the end."""
    x, updates, _, columns = operands
    height, width = x.shape
    made: list[Node] = []

    def make(primitive: P.Primitive, *operands: Node, **params: object) -> Node:
        made.append(apply(primitive, *operands, source=scatter.source, **params))
        return made[-1]

    def splat(value: float, spec: Spec) -> Node:
        made.append(literal(value, spec))
        return made[-1]

    def every_column(node: Node) -> Node:
        return make(P.expand, make(P.reshape, node, shape=(height, 1)), shape=x.shape)

    zero = _zero(x)
    assert zero is not None
    if updates.dtype.is_floating_point and math.copysign(1, zero) > 0:  # 0 + -0 is 0, and -0 + update the update
        updates = make(P.add, updates, splat(zero, updates.spec))
    below = make(P.less, columns, splat(0, columns.spec))
    columns = make(P.where, below, make(P.add, columns, splat(width, columns.spec)), columns)
    wanted = every_column(columns)
    own = make(P.expand, make(P.iota, size=width, dtype=columns.dtype), shape=x.shape)
    value = every_column(updates)
    make(P.where, make(P.equal, wanted, own), value, splat(zero, x.spec))
    return made
