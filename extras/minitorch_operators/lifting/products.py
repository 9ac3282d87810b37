"""Matrix products with their bias, and values in Q/DQ form."""

from __future__ import annotations

import numpy as np

import minitorch_operators as O
from minitorch import dtypes
from minitorch import primitives as P
from minitorch.dtypes import DType
from minitorch.graph.build import apply, literal
from minitorch.graph.values import is_splat
from minitorch.ir import Node, Spec
from minitorch.passes.constant_folding import fold
from minitorch.passes.patterns import op, wildcard

from .matching import Found, before_expand, either, is_number, last, matched, operands


def matmul(node: Node, single: set[Node]) -> Found:
    """A product whose rows are joined before it, and taken apart after it."""
    made = operands(node, P.reshape)
    if not made or len(made[0].shape) != 2 or not node.dtype.is_floating_point:
        return None
    product = made[0]
    is_plain = product.primitive is P.dot and product.params["dtype"] is product.inputs[0].dtype
    is_turned = product.primitive is O.gemm and len(product.inputs) == 2 and product.params["transposed"]
    joined = operands(product.inputs[0], P.reshape) if is_plain or is_turned else ()
    if not joined or joined[0].shape[-1:] != product.inputs[0].shape[1:]:
        return None
    x, matrix = joined[0], product.inputs[1]
    if node.shape != (*x.shape[:-1], product.shape[1]) or matrix.dtype is not x.dtype:
        return None
    if is_turned:
        matrix = apply(P.permute, matrix, dims=(1, 0), source=product.source)
    return apply(O.matmul, x, matrix, source=node.source)


def gemm(node: Node, single: set[Node]) -> Found:
    """A product with a transposed matrix, as that of a linear layer."""
    if node.primitive is not P.dot or len(node.shape) != 2 or node.params["dtype"] is not node.inputs[0].dtype:
        return None
    a, b = node.inputs
    turned = operands(b, P.permute)
    if not turned or not node.dtype.is_floating_point or a.dtype is not b.dtype:
        return None
    return apply(O.gemm, a, turned[0], source=node.source, transposed=True)


def gemm_bias(node: Node, single: set[Node]) -> Found:
    """A vector that is added to a product, or to one whose rows are taken apart."""
    for product, parameter in either(node, P.add):
        small = last(parameter, 1)
        if product not in single or small is None:
            continue
        if product.primitive is P.reshape and product.inputs[0].shape[-1:] == small.shape:
            (rows,) = product.inputs
            wide = apply(P.expand, small, shape=rows.shape, source=node.source)
            whole = gemm_bias(apply(P.add, rows, wide, source=node.source), single)
            return whole and apply(P.reshape, whole, shape=node.shape, source=node.source)
        if len(node.shape) != 2:
            continue
        if product.primitive is O.gemm and len(product.inputs) == 2:
            return apply(O.gemm, *product.inputs, small, source=node.source, **product.params)
        plain = product.primitive is P.dot and product.params["dtype"] is product.inputs[0].dtype
        if plain and node.dtype.is_floating_point and product.inputs[0].dtype is product.inputs[1].dtype:
            return apply(O.gemm, *product.inputs, small, source=node.source, transposed=False)
    return None


# Q/DQ -----------------------------------------------------------------------------------------------------

TO_WHOLE = 12582912.0  # added and subtracted, it rounds (`minitorch.quantization.affine`)


def _parameter(node: Node, like: Node) -> tuple[Node, int] | None:
    """A scalar, or a value along one dimension, that is repeated; and the dimension."""
    small = before_expand(node)
    if not small.shape:
        return small, 0
    padded = (1,) * (len(like.shape) - len(small.shape)) + small.shape
    long = [axis for axis, length in enumerate(padded) if length != 1]
    return (small, long[0]) if len(padded) == len(like.shape) and len(long) == 1 else None


def _vector(node: Node) -> Node:
    """A value along one dimension as a vector; a scalar as it is."""
    if len(node.shape) <= 1:
        return node
    if is_splat(node):
        return literal(node.params["value"], Spec((node.spec.size,), node.dtype), node.source)
    if node.primitive is P.reshape and len(node.inputs[0].shape) == 1:
        return node.inputs[0]
    return apply(P.reshape, node, shape=(node.spec.size,), source=node.source)


def _integers(node: Node, kind: DType) -> Found:
    """The integers that a zero point in float32 was made of, as a vector or a scalar of a type."""
    found = operands(node, P.cast)
    if not found or found[0].dtype.category != "int":
        return None
    whole = _vector(found[0])
    if whole.dtype is kind:
        return whole
    converted = apply(P.cast, whole, dtype=kind, source=node.source)
    return (is_splat(whole) and fold(converted)) or converted


def dequantize(node: Node, single: set[Node]) -> Found:
    """(q - zero point) * scale."""
    for centered, scale in either(node, P.mul):
        q, offset = centered.inputs if centered.primitive is P.sub else (centered, None)
        given, by = operands(q, P.cast), _parameter(scale, node)
        if node.dtype is not dtypes.float32 or not given or by is None:
            continue
        (integers,) = given
        is_bias = integers.dtype is dtypes.int32 and offset is None and len(node.shape) == 1 and by[0] is scale
        if integers.dtype not in (dtypes.int8, dtypes.uint8) and not (is_bias and scale.shape):
            continue
        factor, kind = _vector(by[0]), integers.dtype
        if offset is None:
            zero: Found = literal(0, Spec(factor.shape, kind), node.source)
        else:
            found = _parameter(offset, node)
            zero = _integers(found[0], kind) if found is not None and found[1] == by[1] else None
        if zero is not None and zero.shape == factor.shape:
            return apply(O.dequantize, integers, factor, zero, source=node.source, dim=by[1])
    return None


_x, _inverse, _low, _high, _same, _offset = map(wildcard, ("x", "inverse", "low", "high", "same", "offset"))
_above = op.maximum((_x * _inverse + TO_WHOLE) - TO_WHOLE, _low)
_QUANTISED = op.cast(op.where(op.less(_above, _high), _above, _same) + _offset)


def quantize(node: Node, single: set[Node]) -> Found:
    """cast(clamp(round(x / scale), qmin - zero point, qmax - zero point) + zero point)."""
    if node.dtype not in (dtypes.int8, dtypes.uint8):
        return None
    ends = np.iinfo(node.dtype.numpy)
    for found in matched(_QUANTISED, node, {}):
        x, high = found["x"], found["high"]
        zero, inverse = _parameter(found["offset"], node), _parameter(found["inverse"], node)
        if zero is None or inverse is None or before_expand(high) is not before_expand(found["same"]):
            continue
        if not (_is_end(found["low"], zero, ends.min, node) and _is_end(high, zero, ends.max, node)):
            continue
        quotient, whole = operands(inverse[0], P.div), _integers(zero[0], node.dtype)
        if not quotient or not is_number(before_expand(quotient[0]), 1) or whole is None:
            continue
        scale = _vector(before_expand(quotient[1]))
        if x.dtype is dtypes.float32 and inverse[1] == zero[1] and scale.shape == whole.shape:
            return apply(O.quantize, x, scale, whole, source=node.source, dim=inverse[1])
    return None


def _is_end(node: Node, zero: tuple[Node, int], end: int, like: Node) -> bool:
    """Whether a node is an end of the integers, less the zero point."""
    found = _parameter(node, like)
    if found is None or found[1] != zero[1]:
        return False
    difference = operands(found[0], P.sub)
    return bool(difference) and is_number(before_expand(difference[0]), end) and before_expand(difference[1]) is zero[0]
