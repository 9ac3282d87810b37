"""Convolutions and pools: found by where their elements come from.

Between an input and the product (or the maximum, or the sum) there are only movements: padding, windows, reshapes and
permutations, in whatever order passes have left them. They are evaluated on the positions of the input's elements, 0 in
the padding. From these positions stride, dilation and padding are read off; and the rule holds only if a convolution
with these reads the very same element for every product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ... import primitives as P
from ...graph.build import apply, literal
from ...graph.values import is_splat
from ...ir import Node, Shape
from ...primitives import operators as O
from ...primitives.contraction import BYTES
from ...primitives.operators.layers import Pads, places, windows
from ...primitives.reductions import lowest
from .matching import Found, channel_vector, either, scaled_sum

Array = np.ndarray[Any, Any]

MOVEMENTS = frozenset((P.reshape, P.permute, P.pad, P.unfold, P.slice_))
MOST = 1 << 27  # elements; the positions of larger arrays are not looked at


def _chain(node: Node, value: float | None) -> list[Node]:
    """A node, and what it is moved from, as far as only movements are between; padding is of one value."""
    found = [node]
    while node.primitive in MOVEMENTS:
        if node.primitive is P.pad and (value is None or node.params["value"] != value):
            break
        (node,) = node.inputs
        found.append(node)
    return found


def _positions(chain: Sequence[Node]) -> Array:
    """For each element of the first node of a chain, its position in the last one, from 1; 0 in the padding."""
    last = chain[-1]
    found: Array = np.arange(1, last.spec.size + 1, dtype=np.int32).reshape(last.shape)
    for node in reversed(chain[:-1]):
        params = {**node.params, "value": 0} if node.primitive is P.pad else node.params
        found = np.asarray(node.primitive.evaluate(found, **params))
    return found


def _geometry(x: Shape, seen: Array, n: int) -> tuple[Shape, Pads, Shape] | None:
    """Strides, padding and dilations of windows: [batch, channels, *places, *size], the positions that they read."""
    lengths, where, size = x[2:], seen.shape[2 : 2 + n], seen.shape[2 + n :]
    first = seen[0, 0]
    strides, pads, dilations = [], [], []
    usual = 1  # the stride of the dimensions before, for those with one place
    for axis in range(n):
        coordinates = (first - 1) // math.prod(lengths[axis + 1 :]) % lengths[axis]
        valid = first > 0
        by = _step(coordinates, valid, axis)
        apart = _step(coordinates, valid, n + axis)
        if by is None or apart is None or min(by, apart) < 1:
            return None
        at = np.argwhere(valid)
        if not len(at):
            return None
        one = tuple(at[0])
        before = by * int(one[axis]) + apart * int(one[n + axis]) - int(coordinates[one])
        reach = (size[axis] - 1) * apart + 1
        after = max((where[axis] - 1) * by + reach - lengths[axis] - before, 0)
        if before < 0:
            return None
        if where[axis] == 1:
            by = usual if lengths[axis] + before - reach < usual else lengths[axis] + before
        usual = by
        strides.append(by)
        dilations.append(apart)
        pads.append((before, after))
    return tuple(strides), tuple(pads), tuple(dilations)


def _step(coordinates: Array, valid: Array, axis: int) -> int | None:
    """How far the next element along an axis is; 1 if there is none."""
    if coordinates.shape[axis] == 1:
        return 1
    along = [slice(None)] * coordinates.ndim
    low, high = list(along), list(along)
    low[axis], high[axis] = slice(None, -1), slice(1, None)
    both = valid[tuple(low)] & valid[tuple(high)]
    if not both.any():
        return 1
    difference = coordinates[tuple(high)] - coordinates[tuple(low)]
    return int(difference[both][0])


def _reads(x: Shape, seen: Array, n: int) -> tuple[Shape, Pads, Shape] | None:
    """The geometry of windows, if windows of that geometry read these positions and no others."""
    found = _geometry(x, seen, n)
    if found is None:
        return None
    strides, pads, dilations = found
    size = seen.shape[2 + n :]
    even = tuple([(before, before) for before, _ in pads])
    if places(x[2:], size, strides, even, dilations) == seen.shape[2 : 2 + n]:
        pads = even  # what is behind the last window is read by none, and a model says it as its author has
    if places(x[2:], size, strides, pads, dilations) != seen.shape[2 : 2 + n]:
        return None
    positions = np.arange(1, math.prod(x) + 1, dtype=np.int32).reshape(x)
    same = np.array_equal(windows(positions, size, strides, pads, dilations, 0), seen)
    return (strides, pads, dilations) if same else None


# Convolutions ---------------------------------------------------------------------------------------------


def conv(node: Node, single: set[Node]) -> Found:
    """A product of filters and windows, brought into the order [batch, filters, *places]."""
    if node.primitive not in (P.reshape, P.permute) or len(node.shape) < 3 or not node.dtype.is_floating_point:
        return None
    chain = _chain(node, None)
    product = chain[-1]
    if product.primitive is not P.dot or product.params["dtype"] is not product.inputs[0].dtype:
        return None
    if len(product.shape) != 3 or any(each.spec.size > MOST for each in product.inputs):
        return None
    rows, columns = product.inputs
    n = len(node.shape) - 2
    batch, filters, *where = node.shape
    groups, per_group, count = product.shape
    if groups * per_group != filters or count != batch * math.prod(where):
        return None
    order = np.arange(1, node.spec.size + 1, dtype=np.int32).reshape(groups, per_group, batch, *where)
    expected = order.transpose(2, 0, 1, *range(3, 3 + n)).reshape(node.shape)
    if not np.array_equal(_positions(chain), expected):
        return None
    for weight in (*_weights(rows, filters, n), *_guessed(rows, columns, filters, where)):
        size = weight.shape[2:]
        depth = weight.shape[1]
        if depth * math.prod(size) != rows.shape[2]:
            continue
        for sources in _sources(columns, n, batch, depth * groups, 0.0):
            seen = _positions(sources).reshape(groups, depth, *size, batch, *where)
            seen = seen.transpose(2 + n, 0, 1, *range(3 + n, 3 + 2 * n), *range(2, 2 + n))
            seen = seen.reshape(batch, groups * depth, *where, *size)
            found = _reads(sources[-1].shape, seen, n)
            if found is not None:
                strides, pads, dilations = found
                options = {"strides": strides, "pads": pads, "dilations": dilations, "groups": groups}
                return apply(O.conv, sources[-1], weight, source=node.source, **options)
    return None


def _weights(rows: Node, filters: int, n: int) -> Iterator[Node]:
    """The filters that rows may be a reshape of, farthest first."""
    chain = _chain(rows, None)
    for end in range(len(chain), 0, -1):
        last = chain[end - 1]
        if len(last.shape) == n + 2 and last.shape[0] == filters:
            found = _positions(chain[:end])
            if np.array_equal(found, np.arange(1, found.size + 1).reshape(found.shape)):
                yield last


def _guessed(rows: Node, columns: Node, filters: int, where: Sequence[int]) -> Iterator[Node]:
    """Filters that are there as rows alone, such as constants: their size is that of the windows."""
    chain = _chain(columns, 0.0)
    unfolded = [each.params["size"] for each in reversed(chain) if each.primitive is P.unfold]
    n = len(where)
    sizes = [tuple(unfolded)] if len(unfolded) == n else []
    sizes += [
        tuple(a // b for a, b in zip(each.shape[2:], where, strict=True)) for each in chain if len(each.shape) == n + 2
    ]
    for size in dict.fromkeys([*sizes, (1,) * n]):
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
    chain = _chain(node, value)
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
    if len(x.shape) != 2 + 2 * n or dims != tuple(range(2 + n, 2 + 2 * n)) or x.spec.size > MOST or 0 in x.shape:
        return None
    for sources in _sources(x, n, x.shape[0], x.shape[1], value):
        found = _reads(sources[-1].shape, _positions(sources), n)
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
