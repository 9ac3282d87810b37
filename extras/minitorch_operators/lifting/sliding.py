"""Convolutions and pools: found by where their elements come from.

Between an input and the product (or the maximum, or the sum) there are only movements: padding, windows, reshapes and
permutations, in whatever order passes have left them. `coordinates` says where each element comes from. Stride,
dilation and padding are read off that, and the rule holds only if a convolution with these reads the very same element
for every product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import minitorch_operators as O
from minitorch import primitives as P
from minitorch.graph.build import apply, literal
from minitorch.graph.values import is_splat
from minitorch.ir import Node, Shape
from minitorch.primitives.contraction import BYTES
from minitorch.primitives.reductions import lowest
from minitorch.sizes import is_symbolic, larger

from ..layers import Pads, places
from .coordinates import Coordinates, chain_of, coordinates
from .matching import Found, channel_vector, either, scaled_sum

Array = np.ndarray[Any, Any]


def _geometry(x: Shape, seen: Coordinates | None, shape: Shape) -> tuple[Shape, Pads, Shape] | None:
    """Strides, padding and dilations, if these elements of x are those of windows.

    Args:
        x: [batch, channels, *lengths].
        seen: of a value of the shape.
        shape: [batch, channels, *places, *size].
    """
    n = len(x) - 2
    seen = None if seen is None else seen.reshaped(shape)
    if seen is None or any(_step(seen, axis, axis) != 1 for axis in (0, 1)) or any(seen.offsets[:2]):
        return None
    if seen.inside != tuple([(0, length) for length in x]):
        return None
    lengths, where, size = x[2:], shape[2 : 2 + n], shape[2 + n :]
    strides, pads, dilations = [], [], []
    usual = 1  # the stride of the dimensions before, for those with one place
    for axis in range(n):
        by, apart = _step(seen, 2 + axis, 2 + axis), _step(seen, 2 + n + axis, 2 + axis)
        before = -seen.offsets[2 + axis]
        if by is None or apart is None or min(by, apart) < 1 or before < 0:
            return None
        reach = (size[axis] - 1) * apart + 1
        after = larger((where[axis] - 1) * by + reach - lengths[axis] - before, 0)
        if where[axis] == 1:
            by = usual if lengths[axis] + before - reach < usual else lengths[axis] + before
        usual = by
        strides.append(by)
        dilations.append(apart)
        pads.append((before, after))
    even = [(before, before) for before, _ in pads]  # what is behind the last window is read by none
    for ends in (even, pads):  # and a model says it as its author has
        if places(lengths, size, tuple(strides), tuple(ends), tuple(dilations)) == where:
            return tuple(strides), tuple(ends), tuple(dilations)
    return None


def _step(seen: Coordinates, dim: int, axis: int) -> int | None:
    """How far apart in an axis the elements along a dimension are; 1 if there is one; None if that is no number."""
    if not any(digit.length != 1 for digit in seen.dims[dim]):
        return 1
    digit = seen.single(dim)
    return digit.stride if digit is not None and digit.axis == axis else None


# Convolutions ---------------------------------------------------------------------------------------------


def conv(node: Node, single: set[Node]) -> Found:
    """A product of filters and windows, brought into the order [batch, filters, *places]."""
    return _conv(node, node.shape) if len(node.shape) >= 3 else None


def reshaped_conv(node: Node, single: set[Node]) -> Found:
    """The same in another shape: [batch, groups, filters / groups, *places], or [filters, 1, *places] of one image."""
    if len(node.shape) < 3:
        return None
    first, second, *rest = node.shape
    shapes = [(first, second * rest[0], *rest[1:])] if len(rest) > 1 else []
    shapes += [(1, first, *rest)] if second == 1 else []
    found = next((found for shape in shapes if (found := _conv(node, shape)) is not None), None)
    return apply(P.reshape, found, shape=node.shape, source=node.source) if found is not None else None


def _conv(node: Node, shape: Shape) -> Found:
    """The convolution whose result of this shape has the elements of a node, in their order."""
    if node.primitive not in (P.reshape, P.permute) or not node.dtype.is_floating_point:
        return None
    chain = chain_of(node, None)
    product = chain[-1]
    if product.primitive is not P.dot or product.params["dtype"] is not product.inputs[0].dtype:
        return None
    if len(product.shape) != 3 or 0 in (*product.inputs[0].shape, *product.inputs[1].shape):
        return None
    rows, columns = product.inputs
    n = len(shape) - 2
    batch, filters, *where = shape
    groups, per_group, count = product.shape
    area = math.prod(where)
    if groups * per_group != filters or count != batch * area or 0 in node.shape:
        return None
    whole = (groups, per_group, batch, *where)
    expected = Coordinates.of(whole).permuted((2, 0, 1, *range(3, 3 + n))).reshaped(node.shape)
    if not _are_same(coordinates(chain, whole), expected):
        return None
    for weight in (*_weights(rows, filters, n), *_guessed(rows, columns, filters, where)):
        size = weight.shape[2:]
        depth = weight.shape[1]
        if depth * math.prod(size) != rows.shape[2]:
            continue
        for sources in _sources(columns, n, batch, depth * groups, 0.0):
            seen = coordinates(sources)
            seen = None if seen is None else seen.reshaped((groups, depth, *size, batch, *where))
            if seen is None:
                continue
            seen = seen.permuted((2 + n, 0, 1, *range(3 + n, 3 + 2 * n), *range(2, 2 + n)))
            found = _geometry(sources[-1].shape, seen, (batch, groups * depth, *where, *size))
            if found is not None:
                strides, pads, dilations = found
                options = {"strides": strides, "pads": pads, "dilations": dilations, "groups": groups}
                return apply(O.conv, sources[-1], weight, source=node.source, **options)
    return None


def _weights(rows: Node, filters: int, n: int) -> Iterator[Node]:
    """The filters that rows may be a reshape of, farthest first."""
    chain = chain_of(rows, None)
    for end in range(len(chain), 0, -1):
        last = chain[end - 1]
        if len(last.shape) != n + 2 or last.shape[0] != filters:
            continue
        if _are_same(coordinates(chain[:end]), Coordinates.of(last.shape).reshaped(rows.shape)):
            yield last


def _are_same(one: Coordinates | None, other: Coordinates | None) -> bool:
    """Whether two values of one shape have the same elements of a source."""
    if one is None or other is None:
        return False
    digits = [[[digit for digit in dim if digit.length != 1] for dim in each.dims] for each in (one, other)]
    return digits[0] == digits[1] and (one.offsets, one.inside) == (other.offsets, other.inside)


def _guessed(rows: Node, columns: Node, filters: int, where: Sequence[int]) -> Iterator[Node]:
    """Filters that are there as rows alone, such as constants: their size is that of the windows."""
    chain = chain_of(columns, 0.0)
    unfolded = [each.params["size"] for each in reversed(chain) if each.primitive is P.unfold]
    n = len(where)
    sizes = [tuple(unfolded)] if len(unfolded) == n else []
    sizes += [
        tuple(a // b for a, b in zip(each.shape[2:], where, strict=True)) for each in chain if len(each.shape) == n + 2
    ]
    for size in dict.fromkeys([*(size for size in sizes if not any(map(is_symbolic, size))), (1,) * n]):
        depth, rest = divmod(rows.shape[2], max(math.prod(size), 1))
        if not rest and min(size) > 0:
            shape = (filters, depth, *size)
            array = rows.params["value"].array if rows.primitive is P.constant and not is_splat(rows) else None
            yield (
                apply(P.reshape, rows, shape=shape, source=rows.source)
                if array is None
                else literal(array.reshape(shape), source=rows.source)
            )


def _sources(node: Node, n: int, batch: int, channels: int, value: float) -> Iterator[list[Node]]:
    """The chains from a node to inputs that windows may slide over, those with the farthest first."""
    chain = chain_of(node, value)
    for end in range(len(chain), 1, -1):
        last = chain[end - 1]
        if len(last.shape) == n + 2 and last.shape[:2] == (batch, channels) and 0 not in last.shape:
            yield chain[:end]


def conv_bias(node: Node, single: set[Node]) -> Found:
    """The bias of a convolution, which follows it."""
    for convolved, parameter in either(node, P.add):
        if convolved.primitive is O.conv and len(convolved.inputs) == 2 and convolved in single:
            vector = channel_vector(parameter, node)
            if vector is not None:
                return apply(O.conv, *convolved.inputs, vector, source=node.source, **convolved.params)
    return None


# Pools ----------------------------------------------------------------------------------------------------


def _pooled(x: Node, dims: Shape, value: float) -> tuple[Node, dict[str, Any]] | None:
    """The input of a pool, and its geometry: x has the windows, in its last dimensions."""
    n = len(dims)
    if len(x.shape) != 2 + 2 * n or dims != tuple(range(2 + n, 2 + 2 * n)) or 0 in x.shape:
        return None
    for sources in _sources(x, n, x.shape[0], x.shape[1], value):
        found = _geometry(sources[-1].shape, coordinates(sources), x.shape)
        if found is not None:
            strides, pads, dilations = found
            size = x.shape[2 + n :]
            # ONNX's kernels refuse padding that a window could lie in.
            if all(max(pair) < length for pair, length in zip(pads, size, strict=True)):
                return sources[-1], {"lengths": size, "strides": strides, "pads": pads, "dilations": dilations}
    return None


def max_pool(node: Node, single: set[Node]) -> Found:
    """The maximum of windows."""
    if node.primitive is not P.reduce_max or not (node.dtype.is_floating_point or node.dtype in BYTES):
        return None
    found = _pooled(node.inputs[0], node.params["dims"], lowest(node.dtype))
    return apply(O.max_pool, found[0], source=node.source, **found[1]) if found else None


def avg_pool(node: Node, single: set[Node]) -> Found:
    """The mean of windows, with zeros in the padding."""
    x, dims = scaled_sum(node)
    if x is None or not node.dtype.is_floating_point:
        return None
    found = _pooled(x, dims, 0.0)
    if found is None or set(found[1]["dilations"]) != {1}:
        return None
    return apply(O.avg_pool, found[0], source=node.source, **found[1])
