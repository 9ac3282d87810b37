"""Products of integers: a product of two dequantised operands becomes one of 8-bit integers with 32-bit sums.

With a = (p - y) * r and b = (q - z) * s, where neither scales nor zero points vary along k:

    sum_k a*b  =  r * s * (sum_k p*q  -  y * sum_k q  -  z * sum_k p  +  K * y * z)

The bracket is a whole number, computed modulo 2**32, and so exact as long as K * max|p - y| * max|q - z| is less than
2**31. The bytes bound p and q, and `intervals` bounds y and z: a zero point that is an input counts as anything that
its type holds, unless it is clamped or cast from a byte. Where a product stays one of floats, `kept_in_floats` has the
reason, and the ledger shows it. One rounding to float32 follows, where the product of floats rounds every term and
every sum: the result is at least as near to the true one, as long as r * s neither overflows nor is denormal. Sums over
a weight alone are constants of a frozen graph.

The law is that of Jacob et al. (arXiv:1712.05877), equation 7. A scale that varies along k cannot be taken out: weights
in groups of k stay as they are.
"""

from __future__ import annotations

import math

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import float32, int32
from minitorch.graph.build import apply, literal
from minitorch.graph.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.ir import Node, Primitive, Shape, Spec
from minitorch.passes.intervals import interval, of_type
from minitorch.passes.lowering.contract import contract, labels_of

from .dequantized import BYTES, Dequantized, Found, moved, reshaped, rewrite_dequantized
from .requantised import requantised

# Movements that sums go through as integers, so that they stay next to the product and are part of its indices.
STAYING = frozenset((P.reshape, P.permute, P.slice_, P.flip))

# Why a product of dequantised operands stays one of floats.
UNKNOWN_ZERO = "a zero point may be outside of its bytes, and 32 bits would not hold the sum: clamp it, or give a byte"
TOO_LONG = "the sum is too long for 32 bits"
VARIES = "a scale or a zero point varies along the axis that is summed"


def integer_products(graph: Graph) -> Graph:
    """The graph with products of dequantised operands as products of integers.

    Example:
        >>> graph = Graph.parse('''
        ... graph(p: u8[2,3], q: i8[3,4], s: f32[4]):
        ...   %0 = cast(p, dtype=f32)
        ...   %1 = sub(%0, 7.0)
        ...   %2 = cast(q, dtype=f32)
        ...   %3 = expand(s, shape=[3,4])
        ...   %4 = mul(%2, %3)
        ...   %5 = dot(%1, %4, dtype=f32)
        ...   return %5
        ... ''')
        >>> from minitorch.passes.dead_code import remove_dead_code
        >>> print(remove_dead_code(integer_products(graph)))
        graph(p: u8[2,3], q: i8[3,4], s: f32[4]):
          %0 = dot(p, q, dtype=i32)     : i32[2,4]
          %1 = cast(q, dtype=i32)       : i32[3,4]
          %2 = reduce_sum(%1, dims=[0]) : i32[4]
          %3 = reshape(%2, shape=[1,4]) : i32[1,4]
          %4 = mul(7, %3)               : i32[1,4]
          %5 = expand(%4, shape=[2,4])  : i32[2,4]
          %6 = sub(%0, %5)              : i32[2,4]
          %7 = cast(%6, dtype=f32)      : f32[2,4]
          %8 = reshape(s, shape=[1,4])  : f32[1,4]
          %9 = expand(%8, shape=[2,4])  : f32[2,4]
          %10 = mul(%7, %9)             : f32[2,4]
          return %10
    """
    return rewrite_dequantized(graph, _integer_product)


def _integer_product(node: Node, found: Found) -> tuple[Node, Dequantized | None] | None:
    integers = requantised(node, found)
    if integers is not None:
        return integers, None
    value = None
    if node.primitive is P.dot and node.dtype is float32:
        a, b = (found.get(operand) for operand in node.inputs)
        if a and b and _are_bytes(a, b) and node.spec.size * a.integers.spec.size and not _reason(node, a, b):
            value = _product(node, a, b)
    elif node.primitive in STAYING and node.inputs[0] in found and found[node.inputs[0]].integers.dtype is int32:
        value = moved(node, found[node.inputs[0]])
    return None if value is None else (_as_floats(value, node), value)


def _reason(node: Node, a: Dequantized, b: Dequantized) -> str | None:
    """Why the law does not hold for a contraction; None if it does."""
    kept = node.params.get("kept", node.spec.ndim)
    terms = 1
    for value, labels in zip((a, b), labels_of(node), strict=True):
        summed = [axis for axis, dim in enumerate(labels) if any(label >= kept for label in dim)]
        if not all(_is_uniform(value, axis) for axis in summed):
            return VARIES
        terms = math.prod(value.integers.shape[axis] for axis in summed)
    if terms * _largest(a) * _largest(b) < 1 << 31:
        return None
    return TOO_LONG if _has_byte(a) and _has_byte(b) else UNKNOWN_ZERO


def kept_in_floats(graph: Graph) -> tuple[tuple[Node, str], ...]:
    """The contractions of dequantised bytes that stay products of floats, and why; also of a lowered graph."""
    refused: list[tuple[Node, str]] = []

    def look(node: Node, found: Found) -> None:
        if node.primitive in (P.dot, contract) and node.dtype is float32:
            a, b = (found.get(operand) for operand in node.inputs)
            reason = _reason(node, a, b) if a and b and _are_bytes(a, b) else None
            refused.extend([(node, reason)] if reason else [])

    rewrite_dequantized(graph, look)
    return tuple(refused)


def _are_bytes(a: Dequantized, b: Dequantized) -> bool:
    return a.integers.dtype in BYTES and b.integers.dtype in BYTES


def _largest(value: Dequantized) -> int:
    """The largest absolute difference of an integer and the zero point."""
    limits, (least, most) = of_type(value.integers.dtype), (0, 0) if value.zero is None else interval(value.zero)
    return int(max(limits.high - least, most - limits.low))


def _has_byte(value: Dequantized) -> bool:
    """Whether the zero point is known to be a number of the integers' type."""
    limits, (least, most) = of_type(value.integers.dtype), (0, 0) if value.zero is None else interval(value.zero)
    return limits.low <= least and most <= limits.high


def _is_uniform(value: Dequantized, axis: int) -> bool:
    """Whether neither the scale nor the zero point varies along an axis."""
    return all(each is None or each.shape[axis] == 1 for each in (value.scale, value.zero))


def _product(node: Node, a: Dequantized, b: Dequantized) -> Dequantized:
    """The product as integers: what is subtracted from the sums is their zero point."""
    total = apply(P.dot, a.integers, b.integers, dtype=int32, source=node.source)
    zero = scale = None
    if a.zero is not None:
        zero = combined(P.mul, a.zero, _sum(b.integers, -2))
    if b.zero is not None:
        other = combined(P.mul, b.zero, _sum(a.integers, -1))
        zero = other if zero is None else combined(P.add, zero, other)
    if a.zero is not None and b.zero is not None and zero is not None:
        both = combined(P.mul, a.zero, b.zero)
        terms = literal(node.inputs[0].shape[-1], both.spec, node.source)
        zero = combined(P.sub, zero, apply(P.mul, both, terms, source=node.source))
    for each in (a, b):
        if each.scale is not None:
            scale = each.scale if scale is None else combined(P.mul, scale, each.scale)
    return Dequantized(total, scale, zero)


def _as_floats(value: Dequantized, node: Node) -> Node:
    """``(integers - zero) * scale``, with both expanded."""

    def expanded(x: Node) -> Node:
        return x if x.shape == node.shape else apply(P.expand, x, shape=node.shape, source=node.source)

    total = value.integers
    if value.zero is not None:
        total = apply(P.sub, total, expanded(value.zero), source=node.source)
    result = apply(P.cast, total, dtype=float32, source=node.source)
    return result if value.scale is None else apply(P.mul, result, expanded(value.scale), source=node.source)


def _sum(integers: Node, axis: int) -> Node:
    """The sum over an axis, in int32, of length 1 along it."""
    at = integers.spec.ndim + axis
    wide = apply(P.cast, integers, dtype=int32, source=integers.source)
    short = apply(P.reduce_sum, wide, dims=(at,), source=integers.source)
    return reshaped(short, (*integers.shape[:at], 1, *integers.shape[at + 1 :]))


def combined(primitive: Primitive, a: Node, b: Node) -> Node:
    """A sum, difference or product of two values in compact form: of the longer length along every axis."""
    shape: Shape = tuple(np.maximum(a.shape, b.shape).tolist())

    def fitted(x: Node) -> Node:
        if x.shape == shape:
            return x
        if is_splat(x):
            return literal(x.params["value"], Spec(shape, x.dtype), x.source)
        return apply(P.expand, x, shape=shape, source=x.source)

    return apply(primitive, fitted(a), fitted(b), source=a.source)
