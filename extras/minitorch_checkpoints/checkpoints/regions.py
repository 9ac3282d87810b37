"""Slices of arrays as boxes: from where to where in each dimension; and which bytes of a file a box has.

A box is a tuple of pairs ``(start, stop)``, one for each dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from minitorch.ir import Shape

Array = np.ndarray[Any, Any]
Box = tuple[tuple[int, int], ...]

GAP = 4096
"""Bytes: what is not wanted between two wanted parts is read along if it is less, since a disk has pages of this size.
Raising it makes fewer and larger reads."""

MOST_SCRATCH = 1 << 20  # bytes of memory for what is read along; raising it makes fewer reads


def box_of(index: Sequence[Any], shape: Shape) -> Box:
    """The box of slices; dimensions that are not given are whole.

    Raises:
        IndexError: for more slices than dimensions.
        TypeError: for what is no slice, or has a step.

    Example:
        >>> box_of([slice(1, None)], (4, 3))
        ((1, 4), (0, 3))
    """
    if len(index) > len(shape):
        raise IndexError(f"{len(index)} slices for a tensor of {len(shape)} dimensions")
    for each in index:
        if not isinstance(each, slice) or each.step not in (None, 1):
            raise TypeError(f"a slice without a step is wanted for each dimension, not {each!r}")
    given = [each.indices(length)[:2] for each, length in zip(index, shape, strict=False)]
    return tuple([(start, max(start, stop)) for start, stop in given]) + whole(shape[len(given) :])


def whole(shape: Shape) -> Box:
    """The box of all elements."""
    return tuple([(0, length) for length in shape])


def shape_of(box: Box) -> Shape:
    """The lengths of a box."""
    return tuple([stop - start for start, stop in box])


def read_box(read: Callable[[int, memoryview], None], shape: Shape, box: Box, out: Array) -> None:
    """Read a box of an array that lies in C order.

    Args:
        read: ``read(begin, memory)`` fills the memory with the bytes from there on.
        shape: of the whole array.
        box: the part that is wanted; it has elements.
        out: takes them: of the box's shape.
    """
    size = out.dtype.itemsize
    strides = [size * math.prod(shape[place + 1 :]) for place in range(len(shape))]
    # From this dimension on, the wanted elements lie together, or nearly.
    depth = len(shape)
    while depth and (
        strides[depth - 1] - _span(box[depth:], strides[depth:], size) < GAP
        or (box[depth - 1][1] - box[depth - 1][0] == 1)
    ):
        depth -= 1
    for outer in product(*[range(start, stop) for start, stop in box[:depth]]):
        begin = sum(place * stride for place, stride in zip(outer, strides, strict=False))
        at: tuple[Any, ...] = tuple([place - start for place, (start, _) in zip(outer, box, strict=False)])
        target = out[(*at, ...)]  # an array, also of no dimensions
        _read_near(read, begin, shape[depth:], box[depth:], strides[depth:], target)


def _span(box: Box, strides: Sequence[int], size: int) -> int:
    """Bytes from the first to the last element of a box."""
    return size + sum((stop - start - 1) * stride for (start, stop), stride in zip(box, strides, strict=True))


def _read_near(
    read: Callable[[int, memoryview], None], begin: int, shape: Shape, box: Box, strides: Sequence[int], out: Array
) -> None:
    """Read a box whose elements lie near to each other: with what lies between them, in parts of bounded size."""
    first = begin + sum(start * stride for (start, _), stride in zip(box, strides, strict=True))
    size = out.dtype.itemsize
    span = _span(box, strides, size)
    if span == out.size * size and out.flags.c_contiguous:
        read(first, out.reshape(-1).view(np.uint8).data)
        return
    if span > MOST_SCRATCH and out.shape[0] > 1:
        half = max(1, out.shape[0] * MOST_SCRATCH // span)
        for start in range(0, out.shape[0], half):
            stop = min(start + half, out.shape[0])
            rows = (box[0][0] + start, box[0][0] + stop)
            _read_near(read, begin, shape, (rows, *box[1:]), strides, out[start:stop])
        return
    if span > MOST_SCRATCH and out.ndim > 1:
        _read_near(read, begin + box[0][0] * strides[0], shape[1:], box[1:], strides[1:], out[0])
        return
    scratch = np.empty(span, np.uint8)
    read(first, scratch.data)
    out[...] = np.ndarray(out.shape, out.dtype, scratch.data, strides=tuple(strides))
