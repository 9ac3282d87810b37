"""Resize and its predecessor Upsample: along each axis, every element is a weighted sum of a few.

Lengths are known when a graph is made, and so are the positions and the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import minitorch as mt
from minitorch.functional.movement.shaping import expand
from minitorch.functional.operands import from_array, to_dtype, widen
from minitorch.tensor import Tensor

from ..decoding.limits import check_numbers, refuse, shape_of
from ..program import Row
from ..running import Call
from .checks import dimension, ints

Array = np.ndarray[Any, Any]
Region = tuple[float, float]  # the part of an axis that tf_crop_and_resize looks at

# What a position in the result is in the operand: of positions i, the scale s, the lengths n before and m afterwards.
COORDINATES: dict[str, Callable[[Array, float, int, int, Region], Any]] = {
    "align_corners": lambda i, s, n, m, roi: i * (n - 1) / max(m - 1, 1),
    "asymmetric": lambda i, s, n, m, roi: i / s,
    "half_pixel": lambda i, s, n, m, roi: (i + 0.5) / s - 0.5,
    "half_pixel_symmetric": lambda i, s, n, m, roi: n / 2 * (1 - m / (s * n)) + (i + 0.5) / s - 0.5,
    "pytorch_half_pixel": lambda i, s, n, m, roi: (i + 0.5) / s - 0.5 if m > 1 else i * 0.0,
    "tf_crop_and_resize": lambda i, s, n, m, roi: (
        (n - 1) * (roi[0] + i * (roi[1] - roi[0]) / (m - 1) if m > 1 else i + (roi[0] + roi[1]) / 2)
    ),
    "tf_half_pixel_for_nn": lambda i, s, n, m, roi: (i + 0.5) / s,
}
NEAREST: dict[str, Callable[[Array], Array]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
}


def _linear(distance: Array, a: float) -> Array:
    found: Array = np.maximum(1 - distance, 0)
    return found


def _cubic(distance: Array, a: float) -> Array:
    """Keys' kernel (IEEE Transactions on Acoustics, Speech, and Signal Processing 29, 1981)."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = a * (((distance - 5) * distance + 8) * distance - 4)
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


KERNELS = {"cubic": (_cubic, 2), "linear": (_linear, 1)}  # with the distance beyond which they are 0


def _resize(call: Call, x: Tensor, *given: Array | None) -> Tensor:
    """The row; before opset 11, positions are those of ``asymmetric``, rounded down, or up where an axis shrinks."""
    is_old = call.version < 11
    roi, factors, sizes = (*((None, *given) if is_old else given), None, None, None)[:3]
    dims = [dimension(axis, x.ndim) for axis in call["axes"]] if call["axes"] else list(range(x.ndim))
    way = COORDINATES.get("asymmetric" if is_old else call["coordinate_transformation_mode"])
    nearest = NEAREST.get("floor" if is_old else call["nearest_mode"])
    if way is None or nearest is None or call["mode"] not in (*KERNELS, "nearest"):
        refuse(f"it resizes by {call['mode']}, {call['coordinate_transformation_mode']}, {call['nearest_mode']}")
    lengths = [x.shape[dim] for dim in dims]
    scales = _scales(call, lengths, factors, sizes)
    if sizes is not None and sizes.size and call["keep_aspect_ratio_policy"] in (None, "stretch"):
        new = ints(sizes)
    else:
        round = math.floor if sizes is None or not sizes.size else lambda length: math.floor(length + 0.5)
        new = [round(length * scale) for length, scale in zip(lengths, scales, strict=True)]
    ends = [0.0] * len(dims) + [1.0] * len(dims) if roi is None or not roi.size else roi.tolist()
    if len(ends) != 2 * len(dims):
        refuse(f"its region has {len(ends)} numbers, for {len(dims)} axes")
    whole = dict(zip(dims, new, strict=True))
    shape_of(call.op, [whole.get(dim, length) for dim, length in enumerate(x.shape)])
    found = x if call["mode"] == "nearest" else widen(x)
    for at, (dim, n, m, scale) in enumerate(zip(dims, lengths, new, scales, strict=True)):
        region = ends[at], ends[at + len(dims)]
        if (n, scale) == (m, 1) and region == (0, 1):
            continue
        check_numbers("its positions", m)
        # As in runtimes, the nearest element is found in float32: 3 / 0.6 is 5 there, and less in float64.
        kind: Any = np.float32 if call["mode"] == "nearest" else np.float64
        places = np.broadcast_to(way(np.arange(m, dtype=kind), kind(scale), n, m, region), m)
        if call["mode"] == "nearest":
            rounded = np.ceil(places) if is_old and scale < 1 else nearest(places)
            found = _selected(found, dim, np.clip(rounded, 0, max(n - 1, 0)).astype(np.int64))
        else:
            found = _weighted(call, found, dim, places, scale)
        if call["coordinate_transformation_mode"] == "tf_crop_and_resize":
            outside = from_array(((places < 0) | (places > n - 1)).reshape(-1, *(1,) * (x.ndim - dim - 1)))
            found = mt.where(outside, call["extrapolation_value"], found)
    return to_dtype(found, x.dtype)


def _scales(call: Call, lengths: list[int], factors: Array | None, sizes: Array | None) -> list[float]:
    """By how much each axis grows."""
    if sizes is not None and sizes.size:
        found = [m / max(n, 1) for n, m in zip(lengths, ints(sizes), strict=False)]
        policy = {"not_larger": min, "not_smaller": max}.get(call["keep_aspect_ratio_policy"])
        found = [policy(found)] * len(found) if policy else found
        count = sizes.size
    else:
        found = [] if factors is None else factors.astype(np.float64).tolist()
        count = len(found)
    if count != len(lengths) or not all(math.isfinite(scale) and scale > 0 for scale in found):
        refuse(f"{count} lengths or scales for {len(lengths)} axes: {found}")
    return found


def _weighted(call: Call, x: Tensor, dim: int, places: Array, scale: float) -> Tensor:
    """Along one axis, the sum of the elements around each position by their distance from it."""
    kernel, reach = KERNELS[call["mode"]]
    narrow = min(scale, 1.0) if call["antialias"] else 1.0
    around = np.arange(math.floor(-reach / narrow) + 1, math.ceil(reach / narrow) + 1)
    check_numbers("its weights", len(places) * len(around))
    at = np.floor(places)[:, None] + around
    weights = kernel(np.abs(at - places[:, None]) * narrow, call["cubic_coeff_a"])
    if call["exclude_outside"]:
        weights = np.where((at < 0) | (at >= x.shape[dim]), 0, weights)
    if call["exclude_outside"] or call["antialias"]:
        weights = weights / weights.sum(1, keepdims=True)
    rows = np.clip(at, 0, x.shape[dim] - 1).astype(np.int64)
    shape = (-1, *(1,) * (x.ndim - dim - 1))
    total: Tensor | None = None
    for row, weight in zip(rows.T, weights.T, strict=True):
        if weight.any():
            part = _selected(x, dim, row)
            part = part * to_dtype(from_array(weight.reshape(shape)), x.dtype) if (weight != 1).any() else part
            total = part if total is None else total + part
    return _selected(x, dim, rows[:, 0]) if total is None else total


def _selected(x: Tensor, dim: int, places: Array) -> Tensor:
    """The elements at some places of an axis, which may be each of them several times in order."""
    n = x.shape[dim]
    times = len(places) // n if n else 0
    if times and np.array_equal(places, np.arange(n).repeat(times)):
        shape = (*x.shape[: dim + 1], times, *x.shape[dim + 1 :])
        return mt.reshape(expand(mt.unsqueeze(x, dim + 1), shape), (*x.shape[:dim], n * times, *x.shape[dim + 1 :]))
    return mt.index_select(x, dim, from_array(places))


ROWS: dict[str, Row] = {"Resize": Row(_resize, known=(1, 2, 3))}
