"""Attention in a graph, found by its structure: a softmax between two contractions.

    query ─┐
           ▼      mask        exp     / sum     dropout     ▼─ value
    key ► scores ─────► exponentials ─────────────────► product

`scaled_dot_product_attention` gives a row that may look nowhere zeros: where its largest score is -inf, the sum is
taken to be 1. No softmax has that but attention's, so the search goes by it. `minitorch.passes.autocast` asks, since
attention rounds its operands and its result, and nothing between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from minitorch import primitives as P
from minitorch.graph.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.ir import Node

_MOVEMENTS = frozenset((P.reshape, P.permute, P.expand))


@dataclass(frozen=True)
class Attention:
    """One attention of a graph.

    Attributes:
        scores: the contraction of queries with keys.
        product: that of weights with values.
        value: the operand of `product` that is not the weights.
        masked: the addition of a mask to the scores, if there is one.
        mask: what it adds.
    """

    scores: Node
    product: Node
    value: Node
    masked: Node | None = None
    mask: Node | None = None


def attentions(graph: Graph) -> list[Attention]:
    """The attentions of a graph, in program order.

    Example:
        >>> import minitorch as mt
        >>> q, k, v = mt.ones(5, 4), mt.ones(6, 4), mt.ones(6, 3)
        >>> graph = mt.jit(mt.nn.functional.scaled_dot_product_attention).graph(q, k, v)
        >>> [found] = attentions(graph)
        >>> found.scores.shape, found.product.shape
        ((5, 6), (5, 3))
    """
    products = (node for node in graph.nodes if node.primitive is P.dot)
    return [found for node in products if (found := _attention(node)) is not None]


def _attention(product: Node) -> Attention | None:
    weights, value = product.inputs
    quotient = _quotient(weights)
    exponential = _top(quotient.inputs[0]) if quotient else weights
    if exponential.primitive is not P.exp or _top(exponential.inputs[0]).primitive is not P.sub:
        return None
    scores, masked, mask = _top(_top(exponential.inputs[0]).inputs[0]), None, None
    if scores.primitive is P.where:
        scores = _top(scores.inputs[1])
    elif scores.primitive is P.add:
        masked = scores
        is_first = _top(masked.inputs[0]).primitive is P.dot
        added, mask = masked.inputs if is_first else masked.inputs[::-1]
        scores = _top(added)
    return Attention(scores, product, value, masked, mask) if scores.primitive is P.dot else None


def _quotient(weights: Node) -> Node | None:
    """The division that makes weights of exponentials; between, they may be dropped out."""
    node = _top(weights)
    while (data := _dropped(node)) is not None:
        node = _top(data)
    return node if node.primitive is P.div and _is_total(_top(node.inputs[1])) else None


def _dropped(node: Node) -> Node | None:
    """What a selection or a multiplication of dropout reads."""
    if node.primitive is P.where and is_splat(node.inputs[2]):
        return node.inputs[1]
    return node.inputs[0] if node.primitive is P.mul and is_splat(node.inputs[1]) else None


def _is_total(node: Node) -> bool:
    """Whether a node is a sum, but 1 where a row has no score above -inf."""
    return (
        node.primitive is P.where
        and _is_number(node.inputs[1], 1.0)
        and _top(node.inputs[2]).primitive is P.reduce_sum
        and (nowhere := _top(node.inputs[0])).primitive is P.equal
        and any(_is_number(each, -math.inf) for each in nowhere.inputs)
    )


def _is_number(node: Node, number: float) -> bool:
    return is_splat(node) and node.params["value"] == number


def _top(node: Node) -> Node:
    """A value before it was moved."""
    while node.primitive in _MOVEMENTS:
        node = node.inputs[0]
    return node
