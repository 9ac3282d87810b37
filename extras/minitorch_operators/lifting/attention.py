"""Attention: a softmax between two products.

    query * scale ─┐
                   ▼      mask                ▼─ value
        key.mT ► dot ► where / add ► softmax ► dot

A row that may look nowhere has zeros in the operator, so a mask is taken up only from a softmax that gives zeros there,
or if it is the causal one, which leaves each row a position.
"""

from __future__ import annotations

import math

import minitorch_operators as O
from minitorch import primitives as P
from minitorch.graph.build import apply
from minitorch.ir import Node

from .matching import Found, before_expand, either, is_number, number_of
from .pointwise import is_causal, masked_scores


def attention(node: Node, single: set[Node]) -> Found:
    """``softmax(query @ key.mT * scale + mask) @ value``."""
    if node.primitive is not P.dot or not _is_plain(node) or node.inputs[0] not in single:
        return None
    weights, value = node.inputs
    scores, zeros = masked_scores(weights), True
    if scores is None and weights.primitive is O.softmax and weights.params["dim"] == len(node.shape) - 1:
        scores, zeros = weights.inputs[0], False
    masked = _masked(scores) if scores is not None and 0 not in (*node.shape, *scores.shape) else None
    if masked is None:
        return None
    product, mask, causal = masked
    scaled = _scaled(product)
    if scaled is None or (mask is not None and not zeros):
        return None
    query, key, scale = scaled
    if not (math.isfinite(scale) and scale != 0):  # of 0, ONNX Runtime says that it is no scale
        return None
    given = () if mask is None else (mask,)
    return apply(O.attention, query, key, value, *given, source=node.source, scale=scale, causal=causal)


def _is_plain(node: Node) -> bool:
    """Whether a product is of floats of one type, summed in that type."""
    types = {node.params["dtype"], *(each.dtype for each in node.inputs)}
    return len(types) == 1 and node.dtype.is_floating_point


def _masked(scores: Node) -> tuple[Node, Found, bool] | None:
    """The scores before a mask; the mask, and whether it is the causal one instead."""
    if scores.primitive is P.where:
        seen, product, low = scores.inputs
        if not is_number(low, -math.inf):
            return None
        mask = before_expand(seen)
        return (product, None, True) if is_causal(mask) else (product, mask, False)
    if scores.primitive is P.add:
        for product, mask in (scores.inputs, scores.inputs[::-1]):
            if _scaled(product) is not None:
                return product, before_expand(mask), False
        return None
    return scores, None, False


def _scaled(node: Node) -> tuple[Node, Node, float] | None:
    """Queries, keys, and the factor of their products, which is applied before or after."""
    product, after = _factor(node)
    if product.primitive is O.gemm and len(product.inputs) == 2 and product.params["transposed"]:
        queries, keys = product.inputs
    elif product.primitive is P.dot and _is_plain(product):
        queries, keys = product.inputs[0], _transposed(product.inputs[1])
    else:
        return None
    query, before = _factor(queries)
    return query, keys, before * after


def _factor(node: Node) -> tuple[Node, float]:
    """A value before it was multiplied with a number, or divided by one; and the factor."""
    for one, other in either(node, P.mul):
        number = number_of(other)
        if number is not None:
            return one, float(number)
    number = number_of(node.inputs[1]) if node.primitive is P.div else None
    return (node.inputs[0], 1 / number) if number else (node, 1.0)


def _transposed(x: Node) -> Node:
    """The last two dimensions exchanged; of a permutation, another one."""
    rank = len(x.shape)
    swap = (*range(rank - 2), rank - 1, rank - 2)
    if x.primitive is P.expand and x.inputs[0].shape[-2:] == x.shape[-2:]:
        return apply(
            P.expand, _transposed(x.inputs[0]), shape=(*x.shape[:-2], x.shape[-1], x.shape[-2]), source=x.source
        )
    if x.primitive is not P.permute:
        return apply(P.permute, x, dims=swap, source=x.source)
    (before,), given = x.inputs, x.params["dims"]
    dims = tuple([given[axis] for axis in swap])
    return before if dims == tuple(range(rank)) else apply(P.permute, before, dims=dims, source=x.source)
