"""Requantisation with the same parameters: what was dequantised becomes the integers that it was made of.

    clamp(round((q - z) * s / s) + z, 0, 255)  =  q           if the clamp leaves the type's whole range

In floats, ``(q - z) * s * (1 / s)`` is off by three roundings of a number up to 255, which is far less than the half
that rounding takes. So the law is exact, for every scale whose inverse and products neither overflow nor are denormal.
Of a constant this is looked at. A scale that is an input has to be that, as quantising with any other has no meaning,
and is equal to another one if both are the same value of the graph; so is a zero point. Equal scales alone are not
enough: another zero point is another clamp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import DType, float32
from minitorch.graph.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.ir import Node
from minitorch.passes.patterns import matches, op, wildcard

from .dequantized import BYTES, Dequantized, Found, rewrite_dequantized
from .early_quantisation import shifted

TO_WHOLE = 12582912.0  # adding and subtracting 1.5 * 2**23 rounds
SCALES = (2.0**-100, 2.0**100)  # between which three roundings are all that goes wrong
_REPEATS = (P.expand, P.reshape)


_x, _inverse, _low, _high, _zero, _a, _b = map(wildcard, ("x", "inverse", "low", "high", "zero", "a", "b"))
_above = op.maximum((_x * _inverse + _a) - _b, _low)
_ROUNDED = op.where(op.less(_above, _high), _above, _high) + _zero  # a quantisation before its cast


def requantised(node: Node, found: Found) -> Node | None:
    """The integers behind a quantisation of a dequantised value with its own scale and zero point; None of others.

    Args:
        node: any node.
        found: the values that are dequantised integers.
    """
    if node.primitive is not P.cast or node.dtype not in BYTES or node.inputs[0].dtype is not float32:
        return None
    parts: dict[str, Any] = {}
    if not matches(_ROUNDED, node.inputs[0], parts) or {_number(parts[name]) for name in "ab"} != {TO_WHOLE}:
        return None
    x, inverse, low, high, zero = (parts[name] for name in ("x", "inverse", "low", "high", "zero"))
    value, limits = found.get(x), np.iinfo(node.dtype.numpy)
    if value is None or value.integers.dtype is not node.dtype:
        return None
    is_whole = shifted(low, zero) == limits.min and shifted(high, zero) == limits.max
    same = is_whole and _is_inverse(inverse, value) and _is_zero(zero, value)
    return value.integers if same else None


def _root(node: Node) -> Node:
    """A repeated value, as it is before it is repeated."""
    while node.primitive in _REPEATS and (node.primitive is P.expand or node.spec.size == 1):
        node = node.inputs[0]
    return node


def _number(node: Node | None) -> float | None:
    """The one number that a constant repeats; None of another value."""
    if node is None:
        return None
    node = _root(node)
    if node.primitive is not P.constant:
        return None
    array = np.asarray(node.params["value"] if is_splat(node) else node.params["value"].array)
    return float(array.reshape(-1)[0]) if array.size == 1 else None


def _is_inverse(inverse: Node, value: Dequantized) -> bool:
    """Whether a factor is 1 / scale."""
    scale, number = 1.0 if value.scale is None else _number(value.scale), _number(inverse)
    if scale is not None and not SCALES[0] < scale < SCALES[1]:
        return False
    if scale is not None and number is not None:
        return bool(np.float32(1) / np.float32(scale) == np.float32(number))
    root = _root(inverse)
    if value.scale is None or root.primitive is not P.div or root.spec.size != 1 or _number(root.inputs[0]) != 1:
        return False
    return _root(root.inputs[1]) is _root(value.scale)


def _is_zero(zero: Node, value: Dequantized) -> bool:
    """Whether a summand is the zero point."""
    known, number = 0.0 if value.zero is None else _number(value.zero), _number(zero)
    if known is not None and number is not None:
        return known == number
    if value.zero is None:
        return False
    return all(each.spec.size == 1 for each in (_root(zero), _root(value.zero))) and _uncast(zero) is _uncast(
        value.zero
    )


def _uncast(node: Node) -> Node:
    """An integer, before it is repeated and cast to a type that holds it."""
    node = _root(node)
    while node.primitive is P.cast and _holds(node.dtype, node.inputs[0].dtype):
        node = _root(node.inputs[0])
    return node


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether a type has all integers of another one; a float is taken to have those that a zero point can be."""
    if narrow.is_floating_point:
        return False
    return wide.is_floating_point or bool(np.can_cast(narrow.numpy, wide.numpy))


def drop_requantisation(graph: Graph) -> Graph:
    """The graph without quantisations of what was dequantised with the same parameters.

    Example:
        >>> import minitorch as mt
        >>> given = mt.quantization.QParams(mt.tensor(0.5), mt.tensor(7, dtype=mt.int32), mt.uint8, 0, 255)
        >>> def function(q):
        ...     return mt.quantization.quantize(mt.quantization.dequantize(q, given), given)
        >>> graph = mt.passes.run_pipeline(mt.jit(function).graph(mt.tensor([1, 2], dtype=mt.uint8))).graph
        >>> [node.primitive.name for node in (*graph.outputs, *drop_requantisation(graph).outputs)]
        ['cast', 'input']
    """

    def rule(node: Node, found: Found) -> tuple[Node, Dequantized | None] | None:
        integers = requantised(node, found)
        return None if integers is None else (integers, None)

    return rewrite_dequantized(graph, rule)
