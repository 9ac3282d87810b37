"""Activations, softmax and normalisations: the rules that look at a few nodes in a row."""

from __future__ import annotations

import math

import minitorch_operators as O
from minitorch import primitives as P
from minitorch.graph.build import apply, literal
from minitorch.ir import Node, Spec
from minitorch.passes.patterns import Operation, op, param, wildcard

from .matching import (
    Found,
    before_expand,
    channel_vector,
    either,
    is_contiguous_tail,
    is_number,
    kept,
    last,
    matched,
    mean,
    operands,
    plus,
    scaled_sum,
)


def signbit(node: Node, single: set[Node]) -> Found:
    """Whether the bits of a float are a negative integer."""
    if node.primitive is not P.less or not is_number(node.inputs[1], 0) or node.inputs[0].primitive is not P.bitcast:
        return None
    (x,), integers = node.inputs[0].inputs, node.inputs[0].dtype
    fits = x.dtype.is_floating_point and integers.category == "int" and integers.is_signed
    return apply(O.signbit, x, source=node.source) if fits else None


# Over a dimension -----------------------------------------------------------------------------------------


_x, _dims, _kept = wildcard("x"), param("dims"), param("kept")
_largest = op.reshape(op.reduce_max(_x, dims=_dims), shape=_kept)
_nowhere = op.equal(_largest, -math.inf)  # in attention, where a row is -inf throughout, so that it has zeros, not NaN


def _sum(z: Operation) -> Operation:
    return op.reshape(op.reduce_sum(z, dims=_dims), shape=_kept)


SOFTMAX, GUARDED, LOG_SOFTMAX = [], [], []
for _wide in (op.expand, lambda each: each):
    _shifted = _x - _wide(_largest)
    _z, _safe = op.exp(_shifted), op.exp(_x - _wide(op.where(_nowhere, 0, _largest)))
    SOFTMAX.append(_z / _wide(_sum(_z)))
    GUARDED.append(_safe / _wide(op.where(_nowhere, 1, _sum(_safe))))
    LOG_SOFTMAX.append(_shifted - _wide(op.log(_sum(_z))))


def _over_a_dimension(formulas: list[Operation], node: Node) -> tuple[Node, int] | None:
    """What one of some formulas is of, and over which dimension."""
    for found in (found for formula in formulas for found in matched(formula, node, {})):
        x, dims = found["x"], found["dims"]
        if len(dims) == 1 and found["kept"] == kept(x, dims):
            return x, dims[0]
    return None


def _can_see(scores: Node) -> bool:
    """Whether every row has a score that no mask has taken away: there is no mask, or one of the positions before."""
    if scores.primitive is P.where:
        return is_causal(before_expand(scores.inputs[0])) and is_number(scores.inputs[2], -math.inf)
    return scores.primitive in (P.dot, O.gemm)


def is_causal(node: Node) -> bool:
    """Whether a mask is that of the keys at the position of the query and before."""
    if node.primitive is not P.less_equal or len(node.shape) < 2:
        return False
    keys, queries = (before_expand(each) for each in node.inputs)
    column, rows, columns = operands(queries, P.reshape), node.shape[-2], node.shape[-1]
    if keys.primitive is not P.iota or not column or column[0].primitive is not P.iota:
        return False
    return keys.shape == (columns,) and queries.shape == (*(1,) * (len(queries.shape) - 2), rows, 1)


def softmax(node: Node, single: set[Node]) -> Found:
    """e**(x - max(x)), divided by its sum."""
    found = _over_a_dimension(SOFTMAX, node)
    if found is None:
        found = _over_a_dimension(GUARDED, node)
        found = found if found is not None and _can_see(found[0]) else None
    return apply(O.softmax, found[0], source=node.source, dim=found[1]) if found is not None else None


def masked_scores(weights: Node) -> Found:
    """The scores of a softmax over the last dimension that has zeros where a row is -inf throughout."""
    found = _over_a_dimension(GUARDED, weights)
    return found[0] if found is not None and found[1] == len(weights.shape) - 1 else None


def log_softmax(node: Node, single: set[Node]) -> Found:
    """x - max(x), less the logarithm of the sum of its exponentials."""
    found = _over_a_dimension(LOG_SOFTMAX, node)
    return apply(O.log_softmax, found[0], source=node.source, dim=found[1]) if found is not None else None


# Normalisations -------------------------------------------------------------------------------------------


def _root(node: Node) -> tuple[Node, float] | None:
    """What a node is the square root of, less a number that is added before; and the number."""
    found = before_expand(node)
    return plus(found.inputs[0]) if found.primitive is P.sqrt else None


def layer_norm(node: Node, single: set[Node]) -> Found:
    """x less its mean, divided by the root of the mean of its square; of x itself, it is the root mean square."""
    if node.primitive is not P.div:
        return None
    centered, found = node.inputs[0], _root(node.inputs[1])
    if found is None:
        return None
    squares = operands(found[0], P.reshape)
    product = scaled_sum(squares[0])[0] if squares else None
    if product is None or product.primitive is not P.mul or product.inputs != (centered, centered):
        return None
    dims = mean(found[0], product)
    if not is_contiguous_tail(dims, len(centered.shape)):
        return None
    options = {"last": len(dims), "eps": found[1]}
    if centered.primitive is P.sub:
        x, average = centered.inputs
        if mean(before_expand(average), x) == dims:
            return apply(O.layer_norm, x, source=node.source, **options)
    return apply(O.rms_norm, centered, source=node.source, **options)


def layer_norm_parameters(node: Node, single: set[Node]) -> Found:
    """The weight and the bias of a normalisation, which follow it."""
    for normal, parameter in [*either(node, P.mul), *either(node, P.add)]:
        if normal.primitive not in (O.layer_norm, O.rms_norm) or normal not in single:
            continue
        given, dims = len(normal.inputs) - 1, normal.params["last"]
        small = last(parameter, dims)
        if small is None:
            continue
        is_weight = node.primitive is P.mul and given == 0
        is_bias = node.primitive is P.add and normal.primitive is O.layer_norm and given == 1
        if is_weight or is_bias:
            return apply(normal.primitive, *normal.inputs, small, source=node.source, **normal.params)
    return None


def batch_norm(node: Node, single: set[Node]) -> Found:
    """(x - mean) / sqrt(var + eps), with statistics for each channel that are given."""
    if node.primitive is not P.div or node.inputs[0].primitive is not P.sub or len(node.shape) < 2:
        return None
    x, average = node.inputs[0].inputs
    found, mean_ = _root(node.inputs[1]), channel_vector(average, node)
    if found is None or mean_ is None or node.inputs[1].primitive is not P.expand:
        return None
    variance, eps = found
    shape = (1, node.shape[1], *(1,) * (len(node.shape) - 2))
    var = variance if variance.shape == mean_.shape else None
    if variance.primitive is P.reshape and variance.shape == shape and variance.inputs[0].shape == mean_.shape:
        (var,) = variance.inputs
    if var is None or (len(node.shape) > 2 and variance.shape != shape):
        return None
    one, zero = (literal(value, Spec(mean_.shape, node.dtype), node.source) for value in (1, 0))
    return apply(O.batch_norm, x, one, zero, mean_, var, source=node.source, eps=eps)


def batch_norm_parameters(node: Node, single: set[Node]) -> Found:
    """The weight and the bias of a batch normalization, which follow it."""
    for normal, parameter in [*either(node, P.mul), *either(node, P.add)]:
        if normal.primitive is not O.batch_norm or normal not in single:
            continue
        vector = channel_vector(parameter, node)
        x, weight, bias, average, var = normal.inputs
        if vector is None or not is_number(bias, 0) or (node.primitive is P.mul and not is_number(weight, 1)):
            continue
        new = (vector, bias) if node.primitive is P.mul else (weight, vector)
        return apply(O.batch_norm, x, *new, average, var, source=node.source, **normal.params)
    return None
