"""Activations, softmax and normalisations: the rules that look at a few nodes in a row."""

from __future__ import annotations

import math

import minitorch_operators as O
from minitorch import primitives as P
from minitorch.graph.build import apply, literal
from minitorch.ir import Node, Spec

from .matching import (
    Found,
    before_expand,
    channel_vector,
    either,
    is_contiguous_tail,
    is_number,
    last,
    mean,
    operands,
    plus,
    reduced,
    scaled_sum,
    times,
)


def relu(node: Node, single: set[Node]) -> Found:
    """0 where x is 0 or less, x elsewhere."""
    if node.primitive is not P.where or node.inputs[0].primitive is not P.less_equal:
        return None
    condition, zero, x = node.inputs
    fits = is_number(zero, 0) and condition.inputs[0] is x and is_number(condition.inputs[1], 0)
    return apply(O.relu, x, source=node.source) if fits and node.dtype.is_floating_point else None


def signbit(node: Node, single: set[Node]) -> Found:
    """Whether the bits of a float are a negative integer."""
    if node.primitive is not P.less or not is_number(node.inputs[1], 0) or node.inputs[0].primitive is not P.bitcast:
        return None
    (x,), integers = node.inputs[0].inputs, node.inputs[0].dtype
    fits = x.dtype.is_floating_point and integers.category == "int" and integers.is_signed
    return apply(O.signbit, x, source=node.source) if fits else None


def sigmoid(node: Node, single: set[Node]) -> Found:
    """1 / (1 + e**-x), or e**x / (e**x + 1) for a negative x."""
    if node.primitive is not P.div or node.inputs[0].primitive is not P.where:
        return None
    negative, z, one = node.inputs[0].inputs
    total = plus(node.inputs[1])
    if total is None or total[0] is not z or total[1] != 1 or not is_number(one, 1) or z.primitive is not P.exp:
        return None
    (exponent,) = z.inputs
    if exponent.primitive is not P.where or exponent.inputs[0] is not negative or negative.primitive is not P.less:
        return None
    _, x, other = exponent.inputs
    fits = other.primitive is P.neg and other.inputs[0] is x and negative.inputs[0] is x
    return apply(O.sigmoid, x, source=node.source) if fits and is_number(negative.inputs[1], 0) else None


def silu(node: Node, single: set[Node]) -> Found:
    """x * sigmoid(x)."""
    for x, bent in either(node, P.mul):
        if bent.primitive is O.sigmoid and bent.inputs[0] is x:
            return apply(O.silu, x, source=node.source)
    return None


def gelu(node: Node, single: set[Node]) -> Found:
    """x / 2 * (1 + erf(x / sqrt(2))), or its approximation with tanh."""
    for half, bent in either(node, P.mul):
        x, total = times(half, 0.5), plus(bent)
        if x is None or total is None or total[1] != 1:
            continue
        for name, inner in (("none", operands(total[0], P.erf)), ("tanh", operands(total[0], P.tanh))):
            if inner and (_is_root_half(inner[0], x) if name == "none" else _is_cubic(inner[0], x)):
                return apply(O.gelu, x, source=node.source, approximate=name)
    return None


def _is_root_half(node: Node, x: Node) -> bool:
    return times(node, math.sqrt(0.5)) is x


def _is_cubic(node: Node, x: Node) -> bool:
    """sqrt(2 / pi) * (x + 0.044715 * x * x * x)."""
    total = times(node, math.sqrt(2 / math.pi))
    for one, other in either(total, P.add) if total is not None else []:
        cube = times(other, 0.044715) if one is x else None
        if cube is not None and any(
            last is x and square.primitive is P.mul and square.inputs == (x, x) for square, last in either(cube, P.mul)
        ):
            return True
    return False


# Over a dimension -----------------------------------------------------------------------------------------


def _shifted(node: Node) -> tuple[Node, tuple[int, ...], Found] | None:
    """What a node is, less its largest element over a dimension; the dimension; and where 0 is taken from it instead.

    In attention that is where a row is -inf throughout, so that it has zeros in place of NaN.
    """
    if node.primitive is not P.sub:
        return None
    x, largest = node.inputs[0], before_expand(node.inputs[1])
    guarded = operands(largest, P.where)
    if guarded and is_number(guarded[1], 0) and _is_nowhere(guarded[0], guarded[2]):
        dims = reduced(guarded[2], x, P.reduce_max)
        return (x, dims, guarded[0]) if len(dims) == 1 else None
    dims = reduced(largest, x, P.reduce_max)
    return (x, dims, None) if len(dims) == 1 else None


def _is_nowhere(node: Node, largest: Node) -> bool:
    return any(one is largest and is_number(other, -math.inf) for one, other in either(node, P.equal))


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


def _softmax(node: Node) -> tuple[Node, int, bool] | None:
    """What a node is the softmax of; over which dimension; and whether a row that is -inf throughout has zeros."""
    if node.primitive is not P.div or node.inputs[0].primitive is not P.exp:
        return None
    z, total = node.inputs[0], before_expand(node.inputs[1])
    found = _shifted(z.inputs[0])
    if found is None:
        return None
    x, dims, nowhere = found
    if nowhere is not None:
        guarded = operands(total, P.where)
        if not guarded or guarded[0] is not nowhere or not is_number(guarded[1], 1):
            return None
        total = guarded[2]
    return (x, dims[0], nowhere is not None) if reduced(total, z, P.reduce_sum) == dims else None


def softmax(node: Node, single: set[Node]) -> Found:
    """e**(x - max(x)), divided by its sum."""
    found = _softmax(node)
    if found is None:
        return None
    x, dim, guarded = found
    return apply(O.softmax, x, source=node.source, dim=dim) if not guarded or _can_see(x) else None


def masked_scores(weights: Node) -> Found:
    """The scores of a softmax over the last dimension that has zeros where a row is -inf throughout."""
    found = _softmax(weights)
    return found[0] if found is not None and found[1:] == (len(weights.shape) - 1, True) else None


def log_softmax(node: Node, single: set[Node]) -> Found:
    """x - max(x), less the logarithm of the sum of its exponentials."""
    if node.primitive is not P.sub:
        return None
    shifted, logarithm = node.inputs[0], before_expand(node.inputs[1])
    found = _shifted(shifted)
    if found is None or found[2] is not None or logarithm.primitive is not P.log:
        return None
    (total,) = logarithm.inputs
    sums = operands(total, P.reshape)
    z = sums[0].inputs[0] if sums and sums[0].primitive is P.reduce_sum else None
    fits = z is not None and z.primitive is P.exp and z.inputs[0] is shifted and reduced(total, z, P.reduce_sum)
    return apply(O.log_softmax, found[0], source=node.source, dim=found[1][0]) if fits == found[1] else None


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
