"""Resampling: images made larger or smaller by interpolation, and channels exchanged for places (pixel shuffle).

Along each dimension, an element of the result is a weighted sum of a few elements of the input. Their places and
weights depend on lengths alone, and are computed in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from ... import primitives as P
from ...autograd import Context, Function
from ...errors import ShapeError
from ...functional.movement.gathering import index_select
from ...functional.movement.shaping import transpose
from ...functional.operands import from_array, to_dtype, widened
from ...functional.options import real, require_float, whole
from ...functional.pointwise.casting import own
from ...functional.reducing.linalg import matmul
from ...tensor import Tensor
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, per_dim

Array = np.ndarray[Any, Any]
Kernel = Callable[[Array, float], Array]


class Resampled(Function):
    """Weighted sum of some places along a dimension. Its gradient is a product with the matrix of the weights."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, dim: int, places: Array, weights: Array) -> Tensor:
        """Gather: element i is the sum over k of ``weights[i, k] * x[places[i, k]]``."""
        ctx.dim, ctx.length, ctx.places, ctx.weights = dim, x.shape[dim], places, weights  # type: ignore[attr-defined]
        shape = (-1, *(1,) * (x.ndim - dim - 1))
        total: Tensor | None = None
        for at, weight in zip(places.T, weights.T, strict=True):
            part = index_select(x, dim, from_array(np.ascontiguousarray(at)))
            if (weight != 1).any():
                part = part * to_dtype(from_array(weight.reshape(shape)), x.dtype)
            total = part if total is None else total + part
        assert total is not None
        return total

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        """Multiply the cotangent by the weights."""
        dim, places, weights, (g,) = ctx.dim, ctx.places, ctx.weights, cotangents  # type: ignore[attr-defined]
        array = np.zeros((places.shape[0], ctx.length), weights.dtype)  # type: ignore[attr-defined]
        np.add.at(array, (np.arange(places.shape[0])[:, None], places), weights)
        matrix = to_dtype(from_array(array), g.dtype)
        return transpose(matmul(transpose(g, dim, -1), matrix), dim, -1), None, None, None


def linear(distance: Array, a: float) -> Array:
    """Return the weights of linear interpolation, by the distance in elements."""
    return np.where(distance < 1, 1 - distance, 0)


def cubic(distance: Array, a: float) -> Array:
    """Return those of the kernel of Keys, "Cubic convolution interpolation" (1981), with this slope."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance < 1, near, np.where(distance < 2, far, 0))


# Of each mode, the number of dimensions it is for (None: any), the kernel, and how far this reaches.
_MODES: dict[str, tuple[int | None, Kernel | None, int]] = {
    "nearest": (None, None, 0), "nearest-exact": (None, None, 0), "area": (None, None, 0),
    "linear": (1, linear, 1), "bilinear": (2, linear, 1), "trilinear": (3, linear, 1), "bicubic": (2, cubic, 2),
}  # fmt: skip


def _nearest(x: Tensor, dim: int, length: int, scale: float, middle: float) -> Tensor:
    """Return the nearest elements. Where each is repeated equally often, this is an expansion."""
    old = x.shape[dim]
    times = length // old if old else 0
    if times * old == length and scale * times == 1:
        wide = P.reshape(x, shape=(*x.shape[: dim + 1], 1, *x.shape[dim + 1 :]))
        wide = P.expand(wide, shape=(*x.shape[: dim + 1], times, *x.shape[dim + 1 :]))
        return P.reshape(wide, shape=(*x.shape[:dim], length, *x.shape[dim + 1 :]))
    places = np.floor((np.arange(length, dtype=np.float32) + np.float32(middle)) * np.float32(scale))
    places = np.minimum(places.astype(np.int64), index(old) - 1)[:, None]
    result: Tensor = Resampled.apply(x, dim, places, np.ones(places.shape, np.float32))
    return result


def weighted(
    x: Tensor, dim: int, middle: Array, kernel: Kernel, reach: int, slope: float, wide: float, inside: bool
) -> Tensor:
    """Interpolate along a dimension.

    Args:
        x: what is interpolated.
        dim: the dimension.
        middle: the positions in it, in elements.
        kernel: the weight of an element by its distance.
        reach: the distance beyond which that is 0.
        slope: of a cubic kernel.
        wide: how much wider the kernel is made; it then averages what is left out.
        inside: whether what lies outside has no weight; otherwise it is as the first or the last element.
    """
    old, kind = index(x.shape[dim]), middle.dtype.type
    places = np.floor(middle)[:, None] + np.arange(math.floor(-reach * wide) + 1, math.ceil(reach * wide) + 1)
    weights = kernel(np.abs(places - middle[:, None]) / kind(wide), slope)
    if inside:
        weights = np.where((places < 0) | (places >= old), 0, weights)
    if inside or wide > 1:
        weights = weights / weights.sum(1, keepdims=True)
    result: Tensor = Resampled.apply(x, dim, np.clip(places, 0, old - 1).astype(np.int64), weights)
    return result


def _resized(x: Tensor, dim: int, length: int, scale: float, mode: str, align_corners: bool, antialias: bool) -> Tensor:
    """Interpolate by the kernel of a mode along a dimension."""
    old, (_, kernel, reach) = index(x.shape[dim]), _MODES[mode]
    assert kernel is not None
    kind: Any = x.dtype.numpy.type
    if align_corners:
        middle = np.arange(length, dtype=kind) * kind((old - 1) / (length - 1) if length > 1 else 0)
    else:
        middle = (np.arange(length, dtype=kind) + kind(0.5)) * kind(scale) - kind(0.5)
    if reach == 1 and not antialias:
        middle = np.maximum(middle, 0)
    wide = max(scale, 1.0) if antialias else 1.0
    return weighted(x, dim, middle, kernel, reach, -0.5 if antialias else -0.75, wide, antialias)


def _lengths(old: Sequence[int], size: Any, scale_factor: Any, recompute: bool) -> tuple[Sequence[int], list[float]]:
    """Return the new lengths, and the distance of two neighbours in elements of the input."""
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give either size or scale_factor")
    if size is not None:
        new: Sequence[int] = per_dim(size, len(old), "size")
        return new, [length / by for length, by in zip(old, new, strict=True)]
    factors = scale_factor if isinstance(scale_factor, (list, tuple)) else (scale_factor,) * len(old)
    if len(factors) != len(old):
        raise ValueError(f"interpolate: scale_factor is one number, or one for each of {len(old)} dimensions")
    for by in factors:
        if not 0 < real("interpolate: scale_factor", by) < math.inf:
            raise ValueError(f"interpolate: scale_factor is above 0, not {by}")
    new = [n * int(by) if by == int(by) else math.floor(n * by) for n, by in zip(old, factors, strict=True)]
    if recompute:
        return new, [length / by for length, by in zip(old, new, strict=True)]
    return new, [1 / by for by in factors]


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Make the last dimensions of [batch, channels, ...] longer or shorter, by interpolation.

    Args:
        input: [batch, channels, ...] of one to three further dimensions.
        size: their new lengths, or one for all.
        scale_factor: in place of `size`, a factor for each, or one for all; lengths are rounded down.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"area"`` (means), ``"linear"``, ``"bilinear"``, ``"trilinear"`` or
            ``"bicubic"``.
        align_corners: whether first and last elements stay the same, rather than the outer edges of their pixels.
        recompute_scale_factor: whether distances follow from the rounded lengths.
        antialias: whether a smaller image is smoothed by a wider kernel, if bilinear or bicubic.

    Raises:
        ShapeError: if the mode is for another number of dimensions (``MT201``).
        ValueError: for other modes and options that do not go together.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.interpolate(mt.tensor([[[1.0, 3.0]]]), scale_factor=2, mode="linear")
        tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    if mode not in _MODES:
        raise ValueError(f"interpolate: mode is one of {', '.join(_MODES)}, not {mode!r}")
    dims, kernel, _ = _MODES[mode]
    count = input.ndim - 2
    if count not in ((1, 2, 3) if dims is None else (dims,)):
        takes = "3 to 5" if dims is None else dims + 2
        raise ShapeError("MT201", f"interpolate: {input.spec} has {input.ndim} dimensions", why=f"{mode} takes {takes}")
    if align_corners is not None and kernel is None:
        raise ValueError(f"interpolate: align_corners has no meaning for mode={mode!r}")
    if antialias and (mode not in ("bilinear", "bicubic") or align_corners):
        raise ValueError("interpolate: antialias is for bilinear and bicubic modes, without align_corners")
    new, scales = _lengths(input.shape[2:], size, scale_factor, bool(recompute_scale_factor))
    if mode == "area":
        if count == 3:
            raise NotImplementedError("interpolate: mode='area' is available for one and two dimensions")
        pooled: Tensor = (adaptive_avg_pool1d, adaptive_avg_pool2d)[count - 1](input, new)
        return pooled
    if kernel is None:
        for dim, (length, scale) in enumerate(zip(new, scales, strict=True), 2):
            input = _nearest(input, dim, length, scale, 0.5 if mode == "nearest-exact" else 0.0)
        return own(input)
    require_float(input, "interpolate")
    return own(_interpolated(input, new, scales, mode, bool(align_corners), antialias))


@widened
def _interpolated(x: Tensor, new: Sequence[int], scales: list[float], mode: str, *options: bool) -> Tensor:
    for dim, (length, scale) in enumerate(zip(new, scales, strict=True), 2):
        if (length, scale) != (x.shape[dim], 1):
            x = _resized(x, dim, length, scale, mode, *options)
    return x


def _factor(name: str, x: Tensor, factor: int) -> int:
    if whole(f"{name}: the factor", factor) < 1:
        raise ValueError(f"{name}: the factor is 1 or more, not {factor}")
    if x.ndim < 3:
        raise ShapeError("MT201", f"{name}: {x.spec} is not [..., channels, height, width]")
    return factor


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Make r x r channels one of r times the height and width (Shi et al., arXiv:1609.05158).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.pixel_shuffle(mt.arange(4).reshape(4, 1, 1), 2)
        tensor([[[0, 1],
                 [2, 3]]])
    """
    by = _factor("pixel_shuffle", input, upscale_factor)
    *batch, channels, height, width = input.shape
    if channels % (by * by):
        raise ShapeError("MT201", f"pixel_shuffle: {channels} channels are no multiple of {by} * {by}")
    n = len(batch)
    parts = P.reshape(input, shape=(*batch, channels // (by * by), by, by, height, width))
    parts = P.permute(parts, dims=(*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return own(P.reshape(parts, shape=(*batch, channels // (by * by), height * by, width * by)))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Make r x r places one of r * r times the channels: the inverse of `pixel_shuffle`.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.pixel_unshuffle(mt.arange(4).reshape(1, 2, 2), 2).flatten()
        tensor([0, 1, 2, 3])
    """
    by = _factor("pixel_unshuffle", input, downscale_factor)
    *batch, channels, height, width = input.shape
    if height % by or width % by:
        raise ShapeError("MT201", f"pixel_unshuffle: {height} x {width} are no multiples of {by}")
    n = len(batch)
    parts = P.reshape(input, shape=(*batch, channels, height // by, by, width // by, by))
    parts = P.permute(parts, dims=(*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return own(P.reshape(parts, shape=(*batch, channels * by * by, height // by, width // by)))
