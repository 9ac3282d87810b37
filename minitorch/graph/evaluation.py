"""Evaluate a graph node by node, each by the NumPy definition of its primitive, as eager mode does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..interpreters import run_silently, settled
from ..ir import Node
from .graph import Graph

Array = np.ndarray[Any, Any]


def value_of(node: Node, operands: Sequence[Array]) -> Array:
    """Return the value of a node, from those of its operands."""
    return run_silently(_value, node, operands)  # type: ignore[no-any-return]


def _value(node: Node, operands: Sequence[Array]) -> Array:
    return settled(node.primitive.evaluate(*operands, **node.params), node.primitive)


def values_of(nodes: Iterable[Node], known: Mapping[Node, Array]) -> dict[Node, Array]:
    """Return the known values and those of further nodes, which are given in program order."""
    return run_silently(_values, nodes, known)  # type: ignore[no-any-return]


def _values(nodes: Iterable[Node], known: Mapping[Node, Array]) -> dict[Node, Array]:
    values = dict(known)
    for node in nodes:
        if node not in values:
            values[node] = _value(node, [values[operand] for operand in node.inputs])
    return values


def evaluate(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """Return the outputs of a graph, from an array for each of its inputs.

    Example:
        >>> graph = Graph.parse('''
        ... graph(x: f32[2]):
        ...   %0 = add(x, 1.0)
        ...   return %0
        ... ''')
        >>> evaluate(graph, [np.float32([1, 2])])
        [array([2., 3.], dtype=float32)]
    """
    return run_silently(run_body, graph, arrays)  # type: ignore[no-any-return]


def run_body(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """Return the same inside of an evaluation, whose NumPy is silent already."""
    values = _values(graph.nodes, dict(zip(graph.inputs, arrays, strict=True)))
    return [values[node] for node in graph.outputs]
