"""Elements put elsewhere: shapes, slices, padding, repetition, and arrays made of numbers.

What ONNX passes as a tensor of numbers (a shape, axes, bounds) has to be known when a graph is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import minitorch as mt
from minitorch.dtypes import BY_NUMPY, DType, float32, int64
from minitorch.functional.movement.arranging import repeat
from minitorch.functional.movement.indexing import slice_bounds
from minitorch.functional.movement.parts import part
from minitorch.functional.operands import from_array, number, to_dtype
from minitorch.functional.pointwise.casting import contiguous
from minitorch.sizes import hint_of, larger, smaller
from minitorch.tensor import Tensor

from ..decoding.limits import MOST_DIMS, check_numbers, require, shape_of
from ..program import Row
from ..running import Call
from .checks import check_ndim, dimension, dimensions, ints, item, padded, whole

Array = np.ndarray[Any, Any]


# Shapes -----------------------------------------------------------------------------------------------------


def Reshape(x: Tensor, shape: Array, *, allowzero: int) -> Tensor:
    """A length of 0 is that of the operand, unless ``allowzero``; -1 follows from the others."""
    lengths = ints(shape)
    require(len(lengths) <= MOST_DIMS, "a shape of {} dimensions, more than {}", len(lengths), MOST_DIMS)
    if not allowzero:
        fits = not any(length == 0 for length in lengths[x.ndim :])
        require(fits, "the shape {} takes a length over that {} does not have", lengths, x.spec)
        lengths = [x.shape[at] if length == 0 else length for at, length in enumerate(lengths)]
    return mt.reshape(x, lengths)


def Flatten(x: Tensor, axis: int) -> Tensor:
    """Return a matrix: the dimensions before the axis are the rows, the others the columns."""
    start = axis + x.ndim if axis < 0 else axis
    require(0 <= start <= x.ndim, "{} has no axis {}", x.spec, axis)
    return mt.reshape(x, (math.prod(x.shape[:start]), math.prod(x.shape[start:])))


def Squeeze(x: Tensor, axes: Array | None = None) -> Tensor:
    if axes is None:
        return mt.squeeze(x)
    dims = [dimension(axis, x.ndim) for axis in ints(axes)]
    require(all(x.shape[dim] == 1 for dim in dims), "{} has lengths other than 1 along the axes {}", x.spec, dims)
    return mt.squeeze(x, dims)


def Unsqueeze(x: Tensor, axes: Array) -> Tensor:
    new = x.ndim + axes.size
    shape_of([1] * new)
    dims, lengths = dimensions(ints(axes), new), iter(x.shape)
    return mt.reshape(x, [1 if dim in dims else next(lengths) for dim in range(new)])


def Tile(x: Tensor, repeats: Array) -> Tensor:
    times = ints(repeats)
    require(len(times) == x.ndim, "{} repetitions for {}", len(times), x.spec)
    shape_of([length * count for length, count in zip(x.shape, times, strict=True)])
    return repeat(x, times)


# Parts ------------------------------------------------------------------------------------------------------


def Split(x: Tensor, sizes: Array | None = None, *, axis: int, call: Call) -> tuple[Tensor, ...]:
    axis, count = dimension(axis, x.ndim), len(call.step.outputs)
    length = x.shape[axis]
    size = -(-length // count)
    parts = [max(min(size, length - at * size), 0) for at in range(count)] if sizes is None else ints(sizes)
    fits = len(parts) == count and sum(parts) == length and min(parts, default=0) >= 0
    require(fits, "{} is split into {}, for {} results", x.spec, parts, count)
    return mt.split(x, parts, axis)


def Slice(x: Tensor, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Tensor:
    """Python's slices, with negative steps, too."""
    count = starts.size
    dims = dimensions(range(count) if axes is None else ints(axes), x.ndim)
    strides = [1] * count if steps is None else ints(steps)
    fits = len(dims) == len(strides) == ends.size == count and 0 not in strides
    require(fits, "{} starts, {} ends, the axes {} and the steps {}", count, ends.size, dims, strides)
    for dim, start, end, step in zip(dims, ints(starts), ints(ends), strides, strict=True):
        if step > 0:
            x = part(x, dim, *slice_bounds(slice(start, end, step), x.shape[dim]))
            continue
        places = range(x.shape[dim])[start:end:step]
        x = mt.flip(part(x, dim, places[-1], places[0] + 1, -step), dim) if places else part(x, dim, 0, 0)
    return contiguous(x)


def Pad(x: Tensor, pads: Array, value: Array | None = None, axes: Array | None = None, *, mode: str) -> Tensor:
    """Negative amounts cut off; ``edge``, ``reflect`` and ``wrap`` take what they add from the tensor itself."""
    dims, amounts = dimensions(None if axes is None else ints(axes), x.ndim), ints(pads)
    require(len(amounts) == 2 * len(dims), "{} amounts for {} axes", len(amounts), len(dims))
    pairs = [(0, 0)] * x.ndim
    for at, dim in enumerate(dims):
        pairs[dim] = (amounts[at], amounts[at + len(dims)])
    shape_of([n + max(before, 0) + max(after, 0) for n, (before, after) in zip(x.shape, pairs, strict=True)])
    if mode == "constant":
        return padded(x, pairs, 0 if value is None or not value.size else value.reshape(-1)[0].item())
    require(mode in ("edge", "reflect", "wrap"), "{!r} is no way to pad", mode)
    x = padded(x, [(min(before, 0), min(after, 0)) for before, after in pairs])
    for dim, (before, after) in enumerate(pairs):
        if before > 0 or after > 0:
            require(x.shape[dim], "{} has nothing to be padded with", x.spec)
            pair = max(before, 0), max(after, 0)
            check_numbers("what is padded", x.shape[dim] + sum(pair))
            places = np.pad(np.arange(x.shape[dim], dtype=np.int64), pair, mode=mode)  # type: ignore[call-overload]
            x = mt.index_select(x, dim, from_array(places))
    return x


def CenterCropPad(x: Tensor, shape: Array, *, axes: list[int] | None) -> Tensor:
    """Cut or padded with zeros on both sides; where the difference is odd, one more at the end."""
    dims, lengths = dimensions(axes or None, x.ndim), shape_of(ints(shape))
    require(len(lengths) == len(dims), "{} lengths for {} axes", len(lengths), len(dims))
    pairs = [(0, 0)] * x.ndim
    for dim, wanted in zip(dims, lengths, strict=True):
        more = wanted - x.shape[dim]
        small = -(-more // 2) if more < 0 else more // 2
        pairs[dim] = (small, more - small)
    return padded(x, pairs)


# Channels and places ----------------------------------------------------------------------------------------


def DepthToSpace(x: Tensor, blocksize: int, mode: str) -> Tensor:
    """Channels become the places of a block; they are before the other channels, or after them (``CRD``)."""
    check_ndim("its input", x, 3)
    batch, channels, *lengths = x.shape
    n = len(lengths)
    deep = channels // blocksize**n if blocksize > 0 else 0
    require(
        blocksize > 0 and deep * blocksize**n == channels, "{} does not divide into blocks of {}", x.spec, blocksize
    )
    block, first = [blocksize] * n, mode == "CRD"
    x = mt.reshape(x, (batch, *([deep, *block] if first else [*block, deep]), *lengths))
    order = [0, 1 if first else 1 + n, *(axis for k in range(n) for axis in (2 + n + k, 1 + first + k))]
    return mt.reshape(mt.permute(x, order), (batch, deep, *(length * blocksize for length in lengths)))


def SpaceToDepth(x: Tensor, blocksize: int, mode: str | None = None) -> Tensor:
    check_ndim("its input", x, 3)
    batch, channels, *lengths = x.shape
    n = len(lengths)
    fits = blocksize >= 1 and not any(length % blocksize for length in lengths)
    require(fits, "{} does not divide into blocks of {}", x.spec, blocksize)
    new = [length // blocksize for length in lengths]
    x = mt.reshape(x, (batch, channels, *(each for length in new for each in (length, blocksize))))
    inside, places = range(3, 3 + 2 * n, 2), range(2, 2 + 2 * n, 2)
    order = [0, 1, *inside, *places] if mode == "CRD" else [0, *inside, 1, *places]
    return mt.reshape(mt.permute(x, order), (batch, channels * blocksize**n, *new))


# Numbers ----------------------------------------------------------------------------------------------------


def Constant(call: Call) -> Tensor:
    given = [(name, value) for name, value in call.step.attributes.items() if value is not None]
    require(len(given) == 1, "it has {} values", len(given))
    ((name, value),) = given
    require(name in _OF_LITERALS, "it has a {}, and there are no such elements", name)
    dtype = _OF_LITERALS[name]
    return from_array(value if dtype is None else np.array(value, dtype.numpy))


_OF_LITERALS: dict[str, DType | None] = {
    "value": None, "value_float": float32, "value_floats": float32, "value_int": int64, "value_ints": int64,
}  # fmt: skip


def ConstantOfShape(shape: Array, *, value: Any) -> Tensor:
    lengths = shape_of(ints(shape))
    if value is None:
        return mt.full(lengths, 0.0)
    return mt.full(lengths, item("its value", value), dtype=BY_NUMPY[value.dtype])


def _eye_like(x: Tensor, k: int, dtype: DType | None) -> Tensor:
    check_ndim("its input", x, 2, 2)
    rows, columns = x.shape
    return to_dtype(mt.eq(mt.unsqueeze(mt.arange(rows), 1) + k, mt.arange(columns)), dtype or x.dtype)


def Range(start: Array, limit: Array, delta: Array) -> Tensor:
    first, end, step = (item("a bound or the step", each) for each in (start, limit, delta))
    is_finite = step != 0 and all(np.isfinite(hint_of((first, end, step))))
    require(is_finite, "a range from {} to {} in steps of {}", first, end, step)
    count = larger(-(-(end - first) // step), 0) if start.dtype.kind == "i" else max(math.ceil((end - first) / step), 0)
    shape_of([count])
    dtype = BY_NUMPY[start.dtype]
    steps = to_dtype(mt.arange(count), dtype)
    return steps * number(step, dtype) + number(first, dtype)


def Trilu(x: Tensor, k: Array | None = None, *, upper: int) -> Tensor:
    require(x.ndim >= 2, "it takes matrices, and is given {}", x.spec)
    rows, columns = x.shape[-2:]
    diagonal = 0 if k is None else smaller(larger(whole("the diagonal", k), -rows - 1), columns + 1)
    return (mt.triu if upper else mt.tril)(x, diagonal)


def OneHot(indices: Tensor, depth: Array, values: Tensor, *, axis: int) -> Tensor:
    """``values[1]`` at the place that an index says (from the end, if it is negative), ``values[0]`` elsewhere."""
    count = whole("the depth", depth)
    places = to_dtype(indices, int64)
    axis = dimension(axis, places.ndim + 1)
    shape_of([*places.shape, count])
    require(values.shape == (2,), "its values are {}, and have to be two", values.spec)
    places = mt.where(places < 0, places + count, places)
    hit = mt.eq(mt.unsqueeze(places, axis), mt.reshape(mt.arange(count), (count, *(1,) * (places.ndim - axis))))
    return mt.where(hit, values[1], values[0])


ROWS: dict[str, Row | Callable[..., Any]] = {
    "Concat": lambda *xs, axis: mt.cat(xs, axis),
    "Expand": Row(lambda x, shape: mt.broadcast_to(x, mt.broadcast_shapes(x.shape, shape_of(ints(shape)))), known=(1,)),
    "EyeLike": Row(_eye_like, of_shape=True),
    "Shape": Row(lambda x, start=0, end=None: from_array(np.array(x.shape[start:end], np.int64)), of_shape=True),
    "Size": Row(lambda x: from_array(np.array(x.numel(), np.int64)), of_shape=True),
    "Transpose": lambda x, perm: mt.permute(x, perm or list(range(x.ndim))[::-1]),
}
