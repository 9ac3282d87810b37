"""Sampling images at places given by data: `grid_sample`, and `affine_grid`, which makes such places.

From Jaderberg et al., "Spatial transformer networks", arXiv:1506.02025. Places are from -1 to 1 along each dimension.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence

from ... import primitives as P
from ...dtypes import int64
from ...errors import ShapeError
from ...functional.creation.creation import linspace
from ...functional.movement.arranging import stack
from ...functional.options import require_float
from ...functional.pointwise.casting import contiguous
from ...functional.reducing.contraction import check_types
from ...functional.reducing.linalg import matmul
from ...primitives.elementwise import scalar
from ...tensor import Tensor
from .activations import hardtanh

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
Taps = list[tuple[Tensor, Tensor | None]]  # of each element that is read, its place and its weight


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the places at which `grid_sample` reads an image under affine maps.

    Args:
        theta: [batch, 2, 3] for images, [batch, 3, 4] for volumes.
        size: the shape of the result of `grid_sample`: [batch, channels, ...].
        align_corners: as in `grid_sample`.

    Returns:
        [batch, height, width, 2] or [batch, depth, height, width, 3], coordinates in the order x, y, z.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.affine_grid(mt.eye(2, 3)[None], (1, 1, 1, 2)).flatten()
        tensor([-0.5000,  0.0000,  0.5000,  0.0000])
    """
    lengths = tuple(size[2:])
    dims = len(lengths)
    require_float(theta, "affine_grid")
    if dims not in (2, 3) or theta.shape != (size[0], dims, dims + 1):
        raise ShapeError("MT201", f"affine_grid: {theta.spec} is not [{size[0]}, {dims}, {dims + 1}], for {list(size)}")
    axes = []
    for dim, length in enumerate(lengths):
        axis = (
            linspace(-1, 1, length, dtype=theta.dtype)
            if length > 1
            else P.constant(value=0, shape=(length,), dtype=theta.dtype)
        )
        axis = axis if align_corners else axis * (length - 1) / max(length, 1)
        axes.append(P.expand(P.reshape(axis, shape=(length, *(1,) * (dims - 1 - dim))), shape=lengths))
    base = stack([*reversed(axes), P.constant(value=1, shape=lengths, dtype=theta.dtype)], -1)
    return matmul(base.reshape(-1, dims + 1), theta.mT).reshape(size[0], *lengths, dims)


def _brought_inside(at: Tensor, length: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Return places, in elements, as a padding mode moves them into an image."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, span = (0.0, length - 1) if align_corners else (-0.5, length)
        if not span:
            return at * 0
        away = (at - low).abs()
        extra, odd = away.fmod(span), (away / span).floor().remainder(2).ne(0)
        at = P.where(odd, span - extra, extra) + low
    return hardtanh(at, 0, length - 1)


def _cubic(distance: Tensor, near: bool) -> Tensor:
    """Return the weights of Keys' kernel of slope -0.75, for distances up to 1, or from 1 to 2."""
    if near:
        return (distance * 1.25 - 2.25) * distance * distance + 1
    return ((distance * -0.75 + 3.75) * distance - 6) * distance + 3


def _taps(at: Tensor, length: int, mode: str, padding_mode: str, align_corners: bool) -> Taps:
    if mode == "bicubic":
        low = at.floor().detach()
        t = at - low
        weights = (_cubic(t + 1, False), _cubic(t, True), _cubic(1 - t, True), _cubic(2 - t, False))
        places = (_brought_inside(low + each, length, padding_mode, align_corners) for each in range(-1, 3))
        return [*zip(places, weights, strict=True)]
    at = _brought_inside(at, length, padding_mode, align_corners)
    if mode == "nearest":
        return [(at.round().detach(), None)]
    low = at.floor().detach()
    return [(low, low + 1 - at), (low + 1, at - low)]


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Read images at places: each element of the result is interpolated between the elements around its place.

    Args:
        input: [batch, channels, height, width], or [batch, channels, depth, height, width].
        grid: [batch, ..., 2] or [batch, ..., 3]: places in the order x, y, z; -1 and 1 are the ends of a dimension.
        mode: ``"bilinear"`` (of volumes, trilinear), ``"nearest"``, or ``"bicubic"`` for images.
        padding_mode: what lies outside: ``"zeros"``, ``"border"`` (the nearest element) or ``"reflection"``.
        align_corners: whether -1 and 1 are the centers of the first and last elements, rather than their outer edges.

    Raises:
        ShapeError: if the shapes do not fit (``MT201``).
        ValueError: for another mode.

    Example:
        >>> import minitorch as mt
        >>> image, places = mt.tensor([[[[1.0, 3.0]]]]), mt.tensor([[[[0.0, 0.0], [0.5, 0.0]]]])
        >>> mt.nn.functional.grid_sample(image, places)
        tensor([[[[2., 3.]]]])
    """
    if mode not in _MODES or padding_mode not in _PADDINGS:
        raise ValueError(
            f"grid_sample: mode is one of {_MODES}, padding_mode of {_PADDINGS}, not {mode!r} and {padding_mode!r}"
        )
    check_types("grid_sample", input, grid)
    require_float(input, "grid_sample")
    batch, channels, *lengths = input.shape
    dims = len(lengths)
    if (
        dims not in ((2,) if mode == "bicubic" else (2, 3))
        or grid.ndim != dims + 2
        or grid.shape[:: dims + 1] != (batch, dims)
    ):
        raise ShapeError("MT201", f"grid_sample: the input is {input.spec}, the grid {grid.spec}, the mode {mode}")
    taps = []
    for dim, length in enumerate(lengths):
        at = grid[..., dims - 1 - dim] + 1
        at = (at * (length - 1) if align_corners else at * length - 1) / 2
        taps.append(_taps(at, length, mode, padding_mode, bool(align_corners)))
    size = functools.reduce(operator.mul, lengths)
    rows = P.reshape(P.permute(input, dims=(0, *range(2, dims + 2), 1)), shape=(batch * size, channels))
    first = P.reshape(P.iota(size=batch, dtype=int64) * size, shape=(batch, *(1,) * dims))
    total: Tensor | None = None
    for corner in itertools.product(*taps):
        index = scalar(0, first)
        inside: Tensor | None = None
        weight: Tensor | None = None
        for (place, share), length in zip(corner, lengths, strict=True):
            here = place.ge(0) & place.le(length - 1)
            inside = here if inside is None else inside & here
            index = index * length + P.cast(P.where(here, place, scalar(0, place)), dtype=int64)
            weight = share if weight is None or share is None else weight * share
        value = P.gather(rows, index + first)
        value = value if weight is None else value * weight.unsqueeze(-1)
        assert inside is not None
        value = P.where(inside.unsqueeze(-1), value, scalar(0, value))
        total = value if total is None else total + value
    assert total is not None
    return contiguous(P.permute(total, dims=(0, dims + 1, *range(1, dims + 1))))
