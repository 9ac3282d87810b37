"""Resize and its predecessor Upsample: along each axis, every element is a weighted sum of a few.

Lengths are known when a graph is made, and so are the positions and the weights.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

import minitorch as mt
from minitorch.functional.movement.shaping import expand
from minitorch.functional.operands import from_array, to_dtype, widen
from minitorch.nn.functional.resampling import cubic, linear, weighted
from minitorch.tensor import Tensor

from ..decoding.limits import check_numbers, require, shape_of
from ..program import Row
from ..running import Call
from .checks import dimensions, ints

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


KERNELS = {"cubic": (cubic, 2), "linear": (linear, 1)}  # with the distance beyond which they are 0


def _resize(x: Tensor, *given: Array | None, mode: str, call: Call) -> Tensor:
    """The row; before opset 11, positions are those of ``asymmetric``, rounded down, or up where an axis shrinks."""
    is_old, options = call.version < 11, defaultdict[str, Any](lambda: None, call.step.attributes)
    coordinates = "asymmetric" if is_old else options["coordinate_transformation_mode"]
    rounding, policy = "floor" if is_old else options["nearest_mode"], options["keep_aspect_ratio_policy"]
    roi, factors, wanted = (*((None, *given) if is_old else given), None, None, None)[:3]
    dims = dimensions(options["axes"] or None, x.ndim)
    fits = coordinates in COORDINATES and rounding in NEAREST and mode in (*KERNELS, "nearest")
    require(fits, "it resizes by {}, {}, {}", mode, coordinates, rounding)
    sizes = None if wanted is None or not wanted.size else ints(wanted)
    lengths = [x.shape[dim] for dim in dims]
    scales = _scales(lengths, factors, sizes, policy)
    if sizes is not None and policy in (None, "stretch"):
        new = sizes
    else:
        half = 0.0 if sizes is None else 0.5
        new = [math.floor(length * scale + half) for length, scale in zip(lengths, scales, strict=True)]
    ends = [0.0] * len(dims) + [1.0] * len(dims) if roi is None or not roi.size else roi.tolist()
    require(len(ends) == 2 * len(dims), "its region has {} numbers, for {} axes", len(ends), len(dims))
    shape_of([dict(zip(dims, new, strict=True)).get(dim, length) for dim, length in enumerate(x.shape)])
    found = x if mode == "nearest" else widen(x)
    for at, (dim, n, m, scale) in enumerate(zip(dims, lengths, new, scales, strict=True)):
        region = ends[at], ends[at + len(dims)]
        if (n, scale) == (m, 1) and region == (0, 1):
            continue
        check_numbers("its positions", m)
        # As in runtimes, the nearest element is found in float32: 3 / 0.6 is 5 there, and less in float64.
        kind: Any = np.float32 if mode == "nearest" else np.float64
        places = np.broadcast_to(COORDINATES[coordinates](np.arange(m, dtype=kind), kind(scale), n, m, region), m)
        if mode == "nearest":
            rounded = np.ceil(places) if is_old and scale < 1 else NEAREST[rounding](places)
            found = _selected(found, dim, np.clip(rounded, 0, max(n - 1, 0)).astype(np.int64))
        else:
            wide, (kernel, reach) = max(1 / scale, 1.0) if options["antialias"] else 1.0, KERNELS[mode]
            check_numbers("its weights", math.ceil(2 * m * (reach * wide + 1)))
            found = weighted(
                found, dim, places, kernel, reach, options["cubic_coeff_a"], wide, bool(options["exclude_outside"])
            )
        if coordinates == "tf_crop_and_resize":
            outside = from_array(((places < 0) | (places > n - 1)).reshape(-1, *(1,) * (x.ndim - dim - 1)))
            found = mt.where(outside, options["extrapolation_value"], found)
    return to_dtype(found, x.dtype)


def _scales(lengths: list[int], factors: Array | None, sizes: list[int] | None, policy: str | None) -> list[float]:
    """By how much each axis grows."""
    if sizes is not None:
        found = [m / max(n, 1) for n, m in zip(lengths, sizes, strict=False)]
        choose = {"not_larger": min, "not_smaller": max}.get(policy or "")
        found = [choose(found)] * len(found) if choose and found else found
        count = len(sizes)
    else:
        found = [] if factors is None else factors.astype(np.float64).tolist()
        count = len(found)
    is_right = count == len(lengths) and all(math.isfinite(scale) and scale > 0 for scale in found)
    require(is_right, "{} lengths or scales for {} axes: {}", count, len(lengths), found)
    return found


def _selected(x: Tensor, dim: int, places: Array) -> Tensor:
    """The elements at some places of an axis, which may be each of them several times in order."""
    n = x.shape[dim]
    times = len(places) // n if n else 0
    if times and np.array_equal(places, np.arange(n).repeat(times)):
        shape = (*x.shape[: dim + 1], times, *x.shape[dim + 1 :])
        return mt.reshape(expand(mt.unsqueeze(x, dim + 1), shape), (*x.shape[:dim], n * times, *x.shape[dim + 1 :]))
    return mt.index_select(x, dim, from_array(places))


ROWS = {"Resize": Row(_resize, known=(1, 2, 3))}
