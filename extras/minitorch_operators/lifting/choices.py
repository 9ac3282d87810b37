"""Smallest elements, means, and elements at places: what primitives say by way of others."""

from __future__ import annotations

import math

import minitorch_operators as O
from minitorch import primitives as P
from minitorch.graph.build import apply, literal
from minitorch.ir import Node, Shape

from .matching import Found, before_expand, is_number, kept, number_of, operands, scaled_sum


def _negated(node: Node) -> Found:
    """The float that a node is the negative of; of a number that was repeated, too."""
    found = operands(before_expand(node), P.neg)
    if not found or not node.dtype.is_floating_point:
        return None
    return found[0] if found[0].shape == node.shape else apply(P.expand, found[0], shape=node.shape, source=node.source)


def _negative(node: Node) -> Found:
    """The negative of a number."""
    number = number_of(node)
    return literal(-number, node.spec, node.source) if number is not None else None


def minimum(node: Node, single: set[Node]) -> Found:
    """``-max(-a, -b)``."""
    largest = _negated(node)
    if largest is None or largest.primitive is not P.maximum:
        return None
    a, b = (_negated(each) or _negative(each) for each in largest.inputs)
    return apply(O.minimum, a, b, source=node.source) if a is not None and b is not None else None


def reduce_min(node: Node, single: set[Node]) -> Found:
    """``-max(-x)``."""
    largest = _negated(node)
    if largest is None or largest.primitive is not P.reduce_max or node.primitive is not P.neg:
        return None
    x = _negated(largest.inputs[0])
    fits = x is not None and largest.params["dims"] and 0 not in x.shape
    return apply(O.reduce_min, x, source=node.source, dims=largest.params["dims"]) if x is not None and fits else None


def argmin(node: Node, single: set[Node]) -> Found:
    """The place of the largest of the negatives."""
    x = _negated(node.inputs[0]) if node.primitive is P.argmax else None
    return apply(O.argmin, x, source=node.source, dim=node.params["dim"]) if x is not None else None


def ceil(node: Node, single: set[Node]) -> Found:
    """``-floor(-x)``."""
    down = _negated(node)
    x = _negated(down.inputs[0]) if down is not None and down.primitive is P.floor else None
    return apply(O.ceil, x, source=node.source) if x is not None and node.primitive is P.neg else None


def mean(node: Node, single: set[Node]) -> Found:
    """A sum, divided by the number of its elements. It comes after the rules that look for means."""
    x, dims = scaled_sum(node)
    if x is not None and dims and node.dtype.is_floating_point:
        return apply(O.mean, x, source=node.source, dims=dims, keepdims=False)
    if node.primitive is P.div and node.dtype.is_floating_point:  # of a sum whose dimensions were kept
        total = operands(node.inputs[0], P.reshape)
        summed = operands(total[0], P.reduce_sum) if total else ()
        over: Shape = total[0].params["dims"] if summed else ()
        fits = summed and node.shape == kept(summed[0], over)
        if fits and is_number(node.inputs[1], math.prod([summed[0].shape[dim] for dim in over])):
            return apply(O.mean, summed[0], source=node.source, dims=over, keepdims=True)
    return None


def kept_mean(node: Node, single: set[Node]) -> Found:
    """A mean whose dimensions are put back."""
    found = operands(node, P.reshape)
    if not found or found[0].primitive is not O.mean or found[0] not in single:
        return None
    (x,), dims = found[0].inputs, found[0].params["dims"]
    fits = node.shape == kept(x, dims) and not found[0].params["keepdims"]
    return apply(O.mean, x, source=node.source, dims=dims, keepdims=True) if fits else None


# Elements at places ---------------------------------------------------------------------------------------


def unchecked(node: Node, single: set[Node]) -> Found:
    """What is checked: other systems have no such operator, and PyTorch writes none into a file."""
    return node.inputs[0] if node.primitive is P.check else None


def take_along(node: Node, single: set[Node]) -> Found:
    """Elements whose places are their own but in one dimension."""
    if node.primitive is not P.gather or len(node.inputs) != len(node.inputs[0].shape) + 1:
        return None
    x, *indices = node.inputs
    rank = len(x.shape)
    if rank < 2 or len(node.shape) not in (rank, rank - 1) or 0 in node.shape:
        return None
    dropped = len(node.shape) < rank
    for dim in range(rank):
        others = [(at - (dropped and at > dim), each) for at, each in enumerate(indices) if at != dim]
        if all(_is_coordinate(each, axis) for axis, each in others):
            return _dropped(node, x, indices[dim], dim) if dropped else _along(node, x, indices[dim], dim)
    return None


def _along(node: Node, x: Node, index: Node, dim: int) -> Node:
    return apply(O.take_along, x, index, source=node.source, dim=dim)


def _dropped(node: Node, x: Node, index: Node, dim: int) -> Node:
    """One element along a dimension, which the result does not have; the largest one, if that is at its place."""
    kind = {P.argmax: P.reduce_max, O.argmin: O.reduce_min}.get(index.primitive)
    if kind is not None and index.inputs[0] is x and index.params["dim"] == dim:
        return apply(kind, x, source=node.source, dims=(dim,))
    index = apply(P.reshape, index, shape=(*node.shape[:dim], 1, *node.shape[dim:]), source=node.source)
    return apply(P.reshape, _along(node, x, index, dim), shape=node.shape, source=node.source)


def _is_coordinate(index: Node, axis: int) -> bool:
    """Whether an index is the place of each element along an axis."""
    length, behind = index.shape[axis], len(index.shape) - axis - 1
    if length == 1 and is_number(index, 0):
        return True
    small = before_expand(index)
    line = operands(small, P.reshape)
    if line:
        shape = (1,) * (len(index.shape) - len(small.shape)) + small.shape
        return line[0].primitive is P.iota and shape == (*(1,) * axis, length, *(1,) * behind)
    return small.primitive is P.iota and not behind and small.shape == (length,)


def topk(node: Node, single: set[Node]) -> Found:
    """The places of a sorted dimension, all of them or the first ones; and the elements that are there."""
    if node.primitive is P.argsort:
        (x,), dim = node.inputs, node.params["dim"]
        return apply(O.topk, x, source=node.source, k=node.shape[dim], gives="indices", **node.params)
    order = operands(node, P.slice_)
    if order and order[0].primitive is O.topk:
        whole, dim = order[0], order[0].params["dim"]
        rest = [length for at, length in enumerate(whole.shape) if at != dim]
        is_first = not any(node.params["start"]) and set(node.params["step"]) == {1}
        if is_first and [length for at, length in enumerate(node.shape) if at != dim] == rest:
            return apply(O.topk, *whole.inputs, source=node.source, **{**whole.params, "k": node.shape[dim]})
    if node.primitive is O.take_along:
        x, index = node.inputs
        fits = index.primitive is O.topk and index.params["dim"] == node.params["dim"]
        if fits and index.params["gives"] == "indices" and index.inputs[0] is x:
            return apply(O.topk, x, source=node.source, **{**index.params, "gives": "values"})
    return None
