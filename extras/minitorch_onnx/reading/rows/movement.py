"""Elements put elsewhere: shapes, slices, padding, repetition, and arrays made of numbers.

What ONNX passes as a tensor of numbers (a shape, axes, bounds) has to be known when a graph is made.
"""

from __future__ import annotations

import math
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

from ...common import TYPES
from ..decoding.limits import MOST_DIMS, check_numbers, refuse, shape_of
from ..program import Row
from ..running import Call
from .checks import check_ndim, dimension, ints, item, padded, whole

Array = np.ndarray[Any, Any]


# Shapes -----------------------------------------------------------------------------------------------------


def _reshape(call: Call, x: Tensor, shape: Array) -> Tensor:
    """A length of 0 is that of the operand, unless ``allowzero``; -1 follows from the others."""
    lengths = ints(shape)
    if len(lengths) > MOST_DIMS:
        refuse(f"a shape of {len(lengths)} dimensions, more than {MOST_DIMS}")
    if not call["allowzero"]:
        if any(length == 0 and at >= x.ndim for at, length in enumerate(lengths)):
            refuse(f"the shape {lengths} takes a length over that {x.spec} does not have")
        lengths = [x.shape[at] if length == 0 else length for at, length in enumerate(lengths)]
    return mt.reshape(x, lengths)


def _flatten(call: Call, x: Tensor) -> Tensor:
    axis = call["axis"] + x.ndim if call["axis"] < 0 else call["axis"]
    if not 0 <= axis <= x.ndim:
        refuse(f"{x.spec} has no axis {call['axis']}")
    return mt.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _squeeze(call: Call, x: Tensor, axes: Array | None = None) -> Tensor:
    if axes is None:
        return mt.squeeze(x)
    dims = [dimension(axis, x.ndim) for axis in ints(axes)]
    if any(x.shape[dim] != 1 for dim in dims):
        refuse(f"{x.spec} has lengths other than 1 along the axes {dims}")
    return mt.squeeze(x, dims)


def _unsqueeze(call: Call, x: Tensor, axes: Array) -> Tensor:
    new = x.ndim + axes.size
    shape_of(call.op, [1] * new)
    dims = {dimension(axis, new) for axis in ints(axes)}
    if len(dims) < axes.size:
        refuse(f"the axes {ints(axes)} name one twice")
    lengths = iter(x.shape)
    return mt.reshape(x, [1 if dim in dims else next(lengths) for dim in range(new)])


def _transpose(call: Call, x: Tensor) -> Tensor:
    order = call["perm"] or list(range(x.ndim))[::-1]
    if sorted(order) != list(range(x.ndim)):
        refuse(f"{order} is no order of the dimensions of {x.spec}")
    return mt.permute(x, order)


def _expand(call: Call, x: Tensor, shape: Array) -> Tensor:
    return mt.broadcast_to(x, mt.broadcast_shapes(x.shape, shape_of(call.op, ints(shape))))


def _tile(call: Call, x: Tensor, repeats: Array) -> Tensor:
    times = ints(repeats)
    if len(times) != x.ndim:
        refuse(f"{len(times)} repetitions for {x.spec}")
    shape_of(call.op, [length * count for length, count in zip(x.shape, times, strict=True)])
    return repeat(x, times)


# Parts ------------------------------------------------------------------------------------------------------


def _split(call: Call, x: Tensor, sizes: Array | None = None) -> tuple[Tensor, ...]:
    axis = dimension(call["axis"], x.ndim)
    length, count = x.shape[axis], len(call.outputs)
    if sizes is not None:
        parts = ints(sizes)
    else:
        size = -(-length // count)
        parts = [max(min(size, length - at * size), 0) for at in range(count)]
    if len(parts) != count or sum(parts) != length or min(parts, default=0) < 0:
        refuse(f"{x.spec} is split into {parts}, for {count} results")
    return mt.split(x, parts, axis)


def _slice(
    call: Call, x: Tensor, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None
) -> Tensor:
    """Python's slices, with negative steps, too."""
    count = starts.size
    dims = [dimension(axis, x.ndim) for axis in (range(count) if axes is None else ints(axes))]
    strides = [1] * count if steps is None else ints(steps)
    if not len(dims) == len(strides) == ends.size == count or len(set(dims)) < count or 0 in strides:
        refuse(f"{count} starts, {ends.size} ends, the axes {dims} and the steps {strides}")
    for dim, start, end, step in zip(dims, ints(starts), ints(ends), strides, strict=True):
        if step > 0:
            x = part(x, dim, *slice_bounds(slice(start, end, step), x.shape[dim]))
            continue
        places = range(x.shape[dim])[start:end:step]
        x = mt.flip(part(x, dim, places[-1], places[0] + 1, -step), dim) if places else part(x, dim, 0, 0)
    return contiguous(x)


def _pad(call: Call, x: Tensor, pads: Array, value: Array | None = None, axes: Array | None = None) -> Tensor:
    """Negative amounts cut off; ``edge``, ``reflect`` and ``wrap`` take what they add from the tensor itself."""
    dims = list(range(x.ndim)) if axes is None else [dimension(axis, x.ndim) for axis in ints(axes)]
    amounts = ints(pads)
    if len(amounts) != 2 * len(dims) or len(set(dims)) < len(dims):
        refuse(f"{len(amounts)} amounts for {len(dims)} axes")
    pairs = [(0, 0)] * x.ndim
    for at, dim in enumerate(dims):
        pairs[dim] = (amounts[at], amounts[at + len(dims)])
    if call["mode"] == "constant":
        return padded(call, x, pairs, 0 if value is None or not value.size else value.reshape(-1)[0].item())
    if call["mode"] not in ("edge", "reflect", "wrap"):
        refuse(f"{call['mode']!r} is no way to pad")
    x = padded(call, x, [(min(before, 0), min(after, 0)) for before, after in pairs])
    for dim, (before, after) in enumerate(pairs):
        if before > 0 or after > 0:
            if not x.shape[dim]:
                refuse(f"{x.spec} has nothing to be padded with")
            pair = max(before, 0), max(after, 0)
            check_numbers("what is padded", x.shape[dim] + sum(pair))
            places = np.pad(np.arange(x.shape[dim], dtype=np.int64), pair, mode=call["mode"])
            x = mt.index_select(x, dim, from_array(places))
    return x


def _center_crop_pad(call: Call, x: Tensor, shape: Array) -> Tensor:
    """Cut or padded with zeros on both sides; where the difference is odd, one more at the end."""
    dims = [dimension(axis, x.ndim) for axis in call["axes"]] if call["axes"] else list(range(x.ndim))
    lengths = shape_of(call.op, ints(shape))
    if len(lengths) != len(dims):
        refuse(f"{len(lengths)} lengths for {len(dims)} axes")
    pairs = [(0, 0)] * x.ndim
    for dim, wanted in zip(dims, lengths, strict=True):
        more = wanted - x.shape[dim]
        small = -(-more // 2) if more < 0 else more // 2
        pairs[dim] = (small, more - small)
    return padded(call, x, pairs)


# Channels and places ----------------------------------------------------------------------------------------


def _depth_to_space(call: Call, x: Tensor) -> Tensor:
    size = call["blocksize"]
    check_ndim("its input", x, 3, MOST_DIMS)
    batch, channels, *lengths = x.shape
    n = len(lengths)
    deep = channels // size**n if size > 0 else 0
    if size < 1 or deep * size**n != channels:
        refuse(f"{x.spec} does not divide into blocks of {size}")
    if call["mode"] == "CRD":
        x, places = mt.reshape(x, (batch, deep, *(size,) * n, *lengths)), range(2, 2 + n)
        order = [0, 1, *(axis for k in range(n) for axis in (2 + n + k, places[k]))]
    else:
        x = mt.reshape(x, (batch, *(size,) * n, deep, *lengths))
        order = [0, 1 + n, *(axis for k in range(n) for axis in (2 + n + k, 1 + k))]
    return mt.reshape(mt.permute(x, order), (batch, deep, *(length * size for length in lengths)))


def _space_to_depth(call: Call, x: Tensor) -> Tensor:
    size = call["blocksize"]
    check_ndim("its input", x, 3, MOST_DIMS)
    batch, channels, *lengths = x.shape
    n = len(lengths)
    if size < 1 or any(length % size for length in lengths):
        refuse(f"{x.spec} does not divide into blocks of {size}")
    x = mt.reshape(x, (batch, channels, *(each for length in lengths for each in (length // size, size))))
    inside = [3 + 2 * k for k in range(n)]
    places = [2 + 2 * k for k in range(n)]
    order = [0, 1, *inside, *places] if call["mode"] == "CRD" else [0, *inside, 1, *places]
    return mt.reshape(mt.permute(x, order), (batch, channels * size**n, *(length // size for length in lengths)))


# Numbers ----------------------------------------------------------------------------------------------------


def _constant(call: Call) -> Tensor:
    given = {name: value for name, value in call.step.attributes.items() if value is not None}
    if len(given) != 1:
        refuse(f"it has {len(given)} values")
    ((name, value),) = given.items()
    if name == "value":
        return from_array(value)
    kind = _OF_LITERALS.get(name)
    if kind is None:
        refuse(f"it has a {name}, and there are no such elements")
    return from_array(np.array(value, kind.numpy))


_OF_LITERALS: dict[str, DType] = {
    "value_float": float32, "value_floats": float32, "value_int": int64, "value_ints": int64,
}  # fmt: skip


def _shape(call: Call, x: Tensor) -> Tensor:
    end = call["end"]
    return from_array(np.array(x.shape[call["start"] : x.ndim if end is None else end], np.int64))


def _constant_of_shape(call: Call, shape: Array) -> Tensor:
    value = call["value"]
    lengths = shape_of(call.op, ints(shape))
    if value is None:
        return mt.full(lengths, 0.0)
    if value.size != 1:
        refuse(f"its value has {value.size} elements")
    return mt.full(lengths, value.reshape(-1)[0].item(), dtype=BY_NUMPY[value.dtype])


def _eye_like(call: Call, x: Tensor) -> Tensor:
    if x.ndim != 2:
        refuse(f"it takes a matrix, and is given {x.spec}")
    rows, columns = x.shape
    found = mt.eq(mt.unsqueeze(mt.arange(rows), 1) + call["k"], mt.arange(columns))
    return to_dtype(found, TYPES[call["dtype"]] if call["dtype"] else x.dtype)


def _range(call: Call, start: Array, limit: Array, delta: Array) -> Tensor:
    first, end, step = (item("a bound or the step", each) for each in (start, limit, delta))
    if step == 0 or not all(np.isfinite(hint_of((first, end, step)))):
        refuse(f"a range from {first} to {end} in steps of {step}")
    count = larger(-(-(end - first) // step), 0) if start.dtype.kind == "i" else max(math.ceil((end - first) / step), 0)
    shape_of(call.op, [count])
    dtype = BY_NUMPY[start.dtype]
    steps = to_dtype(mt.arange(count), dtype)
    return steps * number(step, dtype) + number(first, dtype)


def _trilu(call: Call, x: Tensor, k: Array | None = None) -> Tensor:
    if x.ndim < 2:
        refuse(f"it takes matrices, and is given {x.spec}")
    rows, columns = x.shape[-2:]
    diagonal = 0 if k is None else smaller(larger(whole("the diagonal", k), -rows - 1), columns + 1)
    return (mt.triu if call["upper"] else mt.tril)(x, diagonal)


def _one_hot(call: Call, indices: Tensor, depth: Array, values: Tensor) -> Tensor:
    """``values[1]`` at the place that an index says (from the end, if it is negative), ``values[0]`` elsewhere."""
    count = whole("the depth", depth)
    places = to_dtype(indices, int64)
    axis = dimension(call["axis"], places.ndim + 1)
    shape_of(call.op, [*places.shape, count])
    places = mt.where(places < 0, places + count, places)
    hit = mt.eq(mt.unsqueeze(places, axis), mt.reshape(mt.arange(count), (count, *(1,) * (places.ndim - axis))))
    if values.shape != (2,):
        refuse(f"its values are {values.spec}, and have to be two")
    off, on = part(values, 0, 0, 1), part(values, 0, 1, 2)
    return mt.where(hit, mt.reshape(on, ()), mt.reshape(off, ()))


ROWS: dict[str, Row] = {
    "CenterCropPad": Row(_center_crop_pad, known=(1,)),
    "Concat": Row(lambda call, *xs: mt.cat(xs, call["axis"])),
    "Constant": Row(_constant),
    "ConstantOfShape": Row(_constant_of_shape, known=(0,)),
    "DepthToSpace": Row(_depth_to_space),
    "Expand": Row(_expand, known=(1,)),
    "EyeLike": Row(_eye_like, of_shape=True, types=("dtype",)),
    "Flatten": Row(_flatten),
    "OneHot": Row(_one_hot, known=(1,)),
    "Pad": Row(_pad, known=(1, 2, 3)),
    "Range": Row(_range, known=(0, 1, 2)),
    "Reshape": Row(_reshape, known=(1,)),
    "Shape": Row(_shape, of_shape=True),
    "Size": Row(lambda call, x: from_array(np.array(x.numel(), np.int64)), of_shape=True),
    "Slice": Row(_slice, known=(1, 2, 3, 4)),
    "SpaceToDepth": Row(_space_to_depth),
    "Split": Row(_split, known=(1,)),
    "Squeeze": Row(_squeeze, known=(1,)),
    "Tile": Row(_tile, known=(1,)),
    "Transpose": Row(_transpose),
    "Trilu": Row(_trilu, known=(1,)),
    "Unsqueeze": Row(_unsqueeze, known=(1,)),
}
