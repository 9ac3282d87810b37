"""Positions: for each element of a value that is moved from another one, its place in that, from 1; 0 in the padding.

All images of a batch are moved alike, as long as their number stays a digit of the index: then one of them is looked
at. A digit is a coordinate that was joined with others by a reshape: ``index // inner % length`` of a dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import primitives as P
from ...ir import Node, Primitive

Array = np.ndarray[Any, Any]
Step = tuple[Primitive, dict[str, Any]]
Digit = tuple[int, int]
"""A digit of an index: the dimension, and ``inner``, the number of consecutive indices that share it."""

MOVEMENTS = frozenset((P.reshape, P.permute, P.pad, P.unfold, P.slice_))
MOST = 1 << 27  # elements; larger arrays of positions are not looked at


def chain_of(node: Node, value: float | None) -> list[Node]:
    """A node, and what it is moved from, as far as only movements are between; padding is of one value."""
    found = [node]
    while node.primitive in MOVEMENTS:
        if node.primitive is P.pad and (value is None or node.params["value"] != value):
            break
        (node,) = node.inputs
        found.append(node)
    return found


def positions(chain: Sequence[Node]) -> Array:
    """The positions of the first node of a chain in the last one."""
    return _moved(chain[-1].shape, [(node.primitive, dict(node.params)) for node in reversed(chain[:-1])])


def positions_of_one(chain: Sequence[Node], digit: Digit, length: int, wanted: Digit) -> Array | None:
    """The same for the first index of a batch; None if the others are not moved alike, or the array would be too large.

    Args:
        chain: from the moved value to where it is from.
        digit: where the index of the batch is in the last node.
        length: of the batch.
        wanted: where it has to be in the first node.
    """
    if any(node.spec.size // length > MOST for node in chain):
        return None
    if length == 1:
        return positions(chain)
    shape = _shortened(chain[-1].shape, digit, length)
    steps: list[Step] = []
    for before, node in zip(reversed(chain[1:]), reversed(chain[:-1]), strict=True):
        params = dict(node.params)
        found = _carried(digit, length, before, node)
        if found is None:
            return None
        digit = found
        if node.primitive is P.reshape:
            params["shape"] = _shortened(node.shape, digit, length)
        if node.primitive is P.slice_:
            params["stop"] = _shortened(params["stop"], digit, length)
        steps.append((node.primitive, params))
    return _moved(shape, steps) if digit == wanted else None


def _shortened(shape: Sequence[int], digit: Digit, length: int) -> tuple[int, ...]:
    return tuple([size // length if dim == digit[0] else size for dim, size in enumerate(shape)])


def _carried(digit: Digit, length: int, before: Node, node: Node) -> Digit | None:
    """Where a movement takes a digit; None if it takes it apart, pads it or windows it."""
    dim, inner = digit
    match node.primitive:
        case P.permute:
            return node.params["dims"].index(dim), inner
        case P.pad:
            return digit if node.params["padding"][dim] == (0, 0, 0) else None
        case P.unfold:
            return digit if node.params["dim"] != dim else None
        case P.slice_:
            whole = (0, before.shape[dim], 1)
            return digit if tuple(node.params[name][dim] for name in ("start", "stop", "step")) == whole else None
    stride = inner * math.prod(before.shape[dim + 1 :])
    behind = 1
    for place in reversed(range(len(node.shape))):
        if stride < behind * node.shape[place]:
            is_whole = stride % behind == 0 and behind * node.shape[place] % (stride * length) == 0
            return (place, stride // behind) if is_whole else None
        behind *= node.shape[place]
    return None


def _moved(shape: Sequence[int], steps: Sequence[Step]) -> Array:
    found: Array = np.arange(1, math.prod(shape) + 1, dtype=np.int32).reshape(shape)
    for primitive, params in steps:
        given = {**params, "value": 0} if primitive is P.pad else params
        found = np.asarray(primitive.evaluate(found, **given))
    return found
