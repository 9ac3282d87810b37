"""Numbers per channel, and how they commute with movements.

A scale or a shift of an affine map is an array with as many dimensions as the value that it belongs to, and of length 1
along every axis that it does not vary along: ``[1, C, 1, 1]`` for a value ``[N, C, H, W]``. It is never made as large
as the value. For a movement `M` there are two laws, and a table of each:

- `FORWARD`: ``M(x * s) = M(x) * s'`` and ``M(x + s) = M(x) + s'``;
- `BACKWARD`: ``M(x) * s = M(x * s')``.

A rule gives ``s'``, or None where there is none of such a shape. A padding keeps scales, since ``0 * s`` is 0, and no
shift: ``0 + t`` is not 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.ir import Node, Primitive, Shape
from minitorch.primitives.movement import inverse_permutation
from minitorch_inference.variation import Axes, reshape_groups

Array = np.ndarray[Any, Any]
Rule = Callable[[Array, Node], Array | None]


def narrowed(array: Array, axes: Axes) -> Array:
    """The first slice along all axes but these."""
    return array[tuple(slice(None) if axis in axes else slice(0, 1) for axis in range(array.ndim))]


def reshaped(numbers: Array, old: Shape, new: Shape) -> Array:
    """The numbers of a reshaped value: full along the runs of axes in which they vary, and of length 1 along others.

    Example:
        >>> reshaped(np.arange(6.0).reshape(1, 6, 1, 1), (2, 6, 5, 5), (2, 3, 2, 25)).shape
        (1, 3, 2, 1)
    """
    before, after = [1] * len(old), [1] * len(new)
    for one, other in reshape_groups(old, new):
        if any(numbers.shape[axis] > 1 for axis in one):
            for axis in one:
                before[axis] = old[axis]
            for axis in other:
                after[axis] = new[axis]
    return np.broadcast_to(numbers, before).reshape(after)


def _permute(numbers: Array, node: Node) -> Array:
    return numbers.transpose(node.params["dims"])


def _unpermute(numbers: Array, node: Node) -> Array:
    return numbers.transpose(inverse_permutation(node.params["dims"]))


def _expand(numbers: Array, node: Node) -> Array:
    return numbers.reshape((1,) * (node.spec.ndim - numbers.ndim) + numbers.shape)


def _unexpand(numbers: Array, node: Node) -> Array | None:
    """Copies have one scale."""
    shape = node.inputs[0].shape
    added = node.spec.ndim - len(shape)
    repeated = [axis for axis in range(node.spec.ndim) if axis < added or shape[axis - added] != node.shape[axis]]
    return None if any(numbers.shape[axis] > 1 for axis in repeated) else numbers.reshape(numbers.shape[added:])


def _part(numbers: Array, node: Node) -> tuple[slice, ...]:
    bounds = zip(node.params["start"], node.params["stop"], node.params["step"], numbers.shape, strict=True)
    return tuple(slice(low, high, by) if length > 1 else slice(None) for low, high, by, length in bounds)


def _slice(numbers: Array, node: Node) -> Array:
    return numbers[_part(numbers, node)]


def _unslice(numbers: Array, node: Node) -> Array:
    """Of elements that are cut off, the scale is 1."""
    lengths = zip(numbers.shape, node.inputs[0].shape, strict=True)
    result = np.ones([before if own > 1 else 1 for own, before in lengths])
    result[_part(numbers, node)] = numbers
    return result


def _flip(numbers: Array, node: Node) -> Array:
    return np.flip(numbers, node.params["dims"])


def _is_zero(node: Node) -> bool:
    return bool(node.params["value"] == 0)


def _pad(numbers: Array, node: Node) -> Array | None:
    """A scale of zeros may be any: 1."""
    if not _is_zero(node):
        return None
    amounts = [each if own > 1 else (0, 0, 0) for own, each in zip(numbers.shape, node.params["padding"], strict=True)]
    padded: Array = P.pad.evaluate(numbers, padding=tuple(amounts), value=1)
    return padded


def _unpad(numbers: Array, node: Node) -> Array | None:
    if not _is_zero(node):
        return None
    part = []
    for own, (before, _, between), length in zip(
        numbers.shape, node.params["padding"], node.inputs[0].shape, strict=True
    ):
        part.append(slice(before, before + (length - 1) * (between + 1) + 1, between + 1) if own > 1 else slice(None))
    return numbers[tuple(part)]


def _unfold(numbers: Array, node: Node) -> Array:
    if numbers.shape[node.params["dim"]] == 1:
        return numbers[..., None]
    windows: Array = P.unfold.evaluate(numbers, **node.params)
    return windows


def _fold(numbers: Array, node: Node) -> Array | None:
    """An element in several windows has one scale."""
    if numbers.shape[node.params["dim"]] > 1 or numbers.shape[-1] > 1:
        return None
    return numbers[..., 0]


FORWARD: dict[Primitive, Rule] = {
    P.reshape: lambda numbers, node: reshaped(numbers, node.inputs[0].shape, node.shape),
    P.permute: _permute,
    P.expand: _expand,
    P.slice_: _slice,
    P.flip: _flip,
    P.pad: _pad,
    P.unfold: _unfold,
}
BACKWARD: dict[Primitive, Rule] = {
    P.reshape: lambda numbers, node: reshaped(numbers, node.shape, node.inputs[0].shape),
    P.permute: _unpermute,
    P.expand: _unexpand,
    P.slice_: _unslice,
    P.flip: _flip,
    P.pad: _unpad,
    P.unfold: _fold,
}
