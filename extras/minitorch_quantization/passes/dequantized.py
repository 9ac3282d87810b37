"""Dequantised values: the analysis of which floats of a graph are 8-bit integers, up to a scale and a zero point.

    x = (q - z) * s        q: uint8 or int8, of the shape of x; s and z vary along some axes only

This form is passed on by movements, which change places only:

    movement((q - z) * s)   =  (movement(q) - movement(z)) * movement(s)
    pad((q - z) * s, 0.0)   =  (pad(q, z) - z) * s          if neither s nor z varies along a padded axis

A zero that pads the float is the integer z, not 0, and so z has to be a number of q's type: where `intervals` cannot
show that, padded values are left as floats. Every law is exact: the floats have the same bits. Scale and zero point are
kept in *compact* form: of as many dimensions as x, and of length 1 along every axis that they do not vary along. So
they need not be repeated, and their shape says whether they vary along the axis that a product sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import bool_, float32, int8, int32, uint8
from minitorch.graph.build import apply, literal, topological_order, with_inputs
from minitorch.graph.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.ir import INPUT, Node, Shape, Spec
from minitorch.passes.intervals import interval, of_type
from minitorch_inference.variation import RULES, variation

BYTES = (uint8, int8)


@dataclass(frozen=True)
class Dequantized:
    """A float value as integers.

    Attributes:
        integers: q, uint8 or int8; int32 for a product.
        scale: s, float32 and compact; None for 1.
        zero: z, int32 and compact; None for 0.
    """

    integers: Node
    scale: Node | None = None
    zero: Node | None = None


Found = dict[Node, Dequantized]
Rule = Callable[[Node, Found], tuple[Node, Dequantized | None] | None]


def rewrite_dequantized(graph: Graph, rule: Rule) -> Graph:
    """Rewrite nodes by what is known of their operands, in program order.

    Args:
        graph: any graph.
        rule: from a node, whose operands are rewritten already, and the values that are dequantised integers so far, to
            another node of the same shape and type, and what it is made of; None to leave it. The integers of a value
            may be new nodes.

    Example:
        >>> graph = Graph.parse('''
        ... graph(q: u8[2,3], s: f32[], z: i32[]):
        ...   %0 = cast(q, dtype=f32)
        ...   %1 = cast(z, dtype=f32)
        ...   %2 = expand(%1, shape=[2,3])
        ...   %3 = sub(%0, %2)
        ...   %4 = expand(s, shape=[2,3])
        ...   %5 = mul(%3, %4)
        ...   %6 = permute(%5, dims=[1,0])
        ...   %7 = neg(%6)
        ...   return %7
        ... ''')
        >>> def show(node, found):
        ...     for operand in node.inputs:
        ...         if node.primitive is P.neg:
        ...             print(found[operand].integers, found[operand].scale)
        >>> _ = rewrite_dequantized(graph, show)
        <permute: u8[3,2]> <permute: f32[1,1]>
    """
    if not any(node.primitive is P.cast and node.inputs[0].dtype in BYTES for node in graph.nodes):
        return graph
    axes = variation(graph)
    found: Found = {}
    done = {node: node for node in graph.inputs}
    emitted = dict.fromkeys(graph.inputs)
    for node in graph.nodes:
        now = with_inputs(node, tuple([done[operand] for operand in node.inputs]))
        value = _value(now, [axes[operand] for operand in node.inputs], found)
        done[node], value = rule(now, found) or (now, value)
        emitted |= dict.fromkeys(topological_order((done[node],), emitted))
        if value is not None:
            found[done[node]] = value
    if all(new is old for old, new in done.items()):
        return graph
    outputs = [done[node] for node in graph.outputs]
    needed = set(topological_order(outputs))
    return graph.with_nodes([node for node in emitted if node in needed and node.primitive is not INPUT], outputs)


def _value(node: Node, axes: list[frozenset[int]], found: Found) -> Dequantized | None:
    """A node as integers; `axes` are those along which its operands may vary."""
    if node.primitive is P.cast and node.dtype is float32 and node.inputs[0].dtype in BYTES:
        return Dequantized(node.inputs[0])
    if node.primitive in MOVEMENTS and node.inputs[0] in found:
        return moved(node, found[node.inputs[0]])
    if node.primitive in _ARITHMETIC and node.dtype is float32:
        for at in (0, 1) if node.primitive is P.mul else (0,):
            if node.inputs[at] in found:
                compact = _compact(node.inputs[1 - at], axes[1 - at])
                return None if compact is None else _ARITHMETIC[node.primitive](found[node.inputs[at]], compact)
    return None


def _without_zero(value: Dequantized, zero: Node) -> Dequantized | None:
    whole = _whole(zero)
    if whole is None or value.zero is not None or value.scale is not None:
        return None
    is_none = is_splat(whole) and whole.params["value"] == 0  # then products need no correction for it
    return value if is_none else replace(value, zero=whole)


def _scaled(value: Dequantized, scale: Node) -> Dequantized | None:
    return replace(value, scale=scale) if value.scale is None else None


_ARITHMETIC: dict[Any, Callable[[Dequantized, Node], Dequantized | None]] = {P.sub: _without_zero, P.mul: _scaled}


def _compact(node: Node, axes: frozenset[int]) -> Node | None:
    """A value in compact form; None if that is not known."""
    shape = tuple([length if axis in axes else 1 for axis, length in enumerate(node.shape)])
    if node.primitive is P.constant:
        if is_splat(node):
            return literal(node.params["value"], Spec(shape, node.dtype), node.source)
        array = node.params["value"].array
        return literal(np.ascontiguousarray(array[tuple([slice(0, length) for length in shape])]), source=node.source)
    while node.primitive is P.expand and node.spec.size != np.prod(shape):
        node = node.inputs[0]
    return reshaped(node, shape) if node.spec.size == np.prod(shape) else None


def reshaped(node: Node, shape: Shape) -> Node:
    """A value in another shape; itself if it has that."""
    return node if node.shape == shape else apply(P.reshape, node, shape=shape, source=node.source)


def _whole(node: Node) -> Node | None:
    """A float value that is an integer in every element, as int32; None if that is not known."""
    shapes = []
    while node.primitive is P.reshape:
        shapes.append(node.shape)
        node = node.inputs[0]
    if node.primitive is P.cast and node.inputs[0].dtype in (*BYTES, int32):
        found = node.inputs[0]
        found = found if found.dtype is int32 else apply(P.cast, found, dtype=int32, source=node.source)
    elif node.primitive is P.constant:
        array = np.asarray(node.params["value"] if is_splat(node) else node.params["value"].array)
        if not (np.isfinite(array).all() and (array == np.rint(array)).all() and np.abs(array).max(initial=0) < 2**24):
            return None
        if is_splat(node):
            found = literal(int(array), Spec(node.shape, int32), node.source)
        else:
            found = literal(array.astype(np.int32), source=node.source)
    else:
        return None
    for shape in shapes[:1]:
        found = reshaped(found, shape)
    return found


# Movements ------------------------------------------------------------------------------------------------------

MOVEMENTS = frozenset((P.reshape, P.permute, P.expand, P.slice_, P.flip, P.unfold, P.pad))


def moved(node: Node, value: Dequantized) -> Dequantized | None:
    """The integers moved, and scale and zero point with them; None where these do not allow it."""
    scale, zero = value.scale, value.zero
    if node.primitive is P.pad:
        return _padded(node, value)
    result = Dequantized(apply(node.primitive, value.integers, source=node.source, **node.params))
    for name, compact in (("scale", scale), ("zero", zero)):
        if compact is None:
            continue
        long = frozenset(axis for axis, length in enumerate(compact.shape) if length > 1)
        touched = _changes(node)
        if not long.isdisjoint(touched):
            return None
        axes = RULES[node.primitive](node, [long])
        shape = tuple([length if axis in axes else 1 for axis, length in enumerate(node.shape)])
        if np.prod(shape) != compact.spec.size:
            return None
        if node.primitive is P.permute:
            compact = apply(P.permute, compact, source=node.source, **node.params)
        result = replace(result, **{name: reshaped(compact, shape)})
    return result


def _changes(node: Node) -> frozenset[int]:
    """The axes of the operand that a movement shortens, repeats or turns around."""
    if node.primitive is P.slice_:
        lengths = zip(node.inputs[0].shape, node.shape, strict=True)
        return frozenset(axis for axis, (old, new) in enumerate(lengths) if old != new)
    if node.primitive is P.flip:
        return frozenset(node.params["dims"])
    if node.primitive is P.unfold:
        return frozenset((node.params["dim"],))
    return frozenset()


def _padded(node: Node, value: Dequantized) -> Dequantized | None:
    """Padding with 0.0 is padding with the zero point: where that is no number of the graph, by a mask."""
    if node.params["value"] != 0:
        return None
    padded = {axis for axis, amounts in enumerate(node.params["padding"]) if any(amounts)}
    for compact in (value.scale, value.zero):
        if compact is not None and any(compact.shape[axis] > 1 for axis in padded):
            return None
    q, zero = value.integers, value.zero
    limits, (least, largest) = of_type(q.dtype), (0, 0) if zero is None else interval(zero)
    if not limits.low <= least <= largest <= limits.high:
        return None

    def pad(x: Node, number: int) -> Node:
        return apply(P.pad, x, source=node.source, padding=node.params["padding"], value=number)

    if zero is None:
        return replace(value, integers=pad(q, 0))
    if is_splat(zero):
        return replace(value, integers=pad(q, least))
    inside = pad(literal(True, Spec(q.shape, bool_), node.source), False)
    zeros = apply(P.expand, apply(P.cast, zero, dtype=q.dtype, source=node.source), shape=node.shape)
    return replace(value, integers=apply(P.where, inside, pad(q, 0), zeros, source=node.source))
