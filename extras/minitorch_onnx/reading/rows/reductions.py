"""Reductions, and running sums and products.

The axes are an input (of ReduceSum since opset 13, of the others since 18) or an attribute. Without axes, all are
reduced, or none with ``noop_with_empty_axes``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import minitorch as mt
from minitorch.dtypes import bool_
from minitorch.functional.movement.parts import part
from minitorch.functional.operands import to_dtype, widened
from minitorch.functional.pointwise.casting import contiguous
from minitorch.tensor import Tensor

from ..program import Row
from .checks import dimension, dimensions, ints, whole

Reduction = Callable[[Tensor, tuple[int, ...], bool], Tensor]


def _reduction(function: Reduction) -> Row:
    """A reduction. Where nothing is reduced, it is one of a new dimension of length 1."""

    def apply(x: Tensor, axes: Any = None, *, keepdims: int, noop_with_empty_axes: int = 0) -> Tensor:
        given = [] if axes is None else ints(axes)
        if not given and noop_with_empty_axes:
            return function(mt.unsqueeze(x, x.ndim), (x.ndim,), False)
        return function(x, tuple(dimensions(given or None, x.ndim)), bool(keepdims))

    return Row(apply, known=(1,))


def _sum(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    return mt.sum(x, dims, keep, dtype=x.dtype)


def _mean(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    if x.dtype.is_floating_point:
        return mt.mean(x, dims, keep)
    count = math.prod([x.shape[dim] for dim in dims])
    return to_dtype(mt.div(_sum(x, dims, keep), count, rounding_mode="trunc"), x.dtype)


def _prod(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    for dim in sorted(dims, reverse=True):
        x = mt.prod(x, dim, keep, dtype=x.dtype)
    return x


def _extreme(function: Callable[..., Tensor], end: int) -> Row:
    """The largest or the least number; of nothing, one end of the type's range."""

    def reduce(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
        if all(x.shape[dim] for dim in dims):
            return function(x, dims, keep)
        shape = [1 if axis in dims else length for axis, length in enumerate(x.shape) if keep or axis not in dims]
        if x.dtype.is_floating_point or x.dtype is bool_:
            return mt.full(shape, (-math.inf, math.inf)[end] if x.dtype.is_floating_point else bool(end), dtype=x.dtype)
        bounds = mt.iinfo(x.dtype)
        return mt.full(shape, (bounds.min, bounds.max)[end], dtype=x.dtype)

    return _reduction(reduce)


def _widened(function: Reduction) -> Row:
    """A reduction of floats that is computed in float32 at least."""
    return _reduction(lambda x, dims, keep: to_dtype(widened(lambda each: function(each, dims, keep))(x), x.dtype))


def _place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The place of the largest or least element: the first one, or the last with ``select_last_index``."""

    def apply(x: Tensor, axis: int, keepdims: int, select_last_index: int = 0) -> Tensor:
        axis = dimension(axis, x.ndim)
        if select_last_index:
            return x.shape[axis] - 1 - function(mt.flip(x, axis), axis, bool(keepdims))
        return function(x, axis, bool(keepdims))

    return apply


def _scan(function: Callable[..., Tensor], neutral: int) -> Row:
    """Running sums or products, from the front or the back, with or without the element itself."""

    def apply(x: Tensor, axis: Any, *, reverse: int, exclusive: int) -> Tensor:
        dim = dimension(whole("the axis", axis), x.ndim)
        turned = mt.flip(x, dim) if reverse else x
        if exclusive:
            length = x.shape[dim]
            first = mt.full_like(part(turned, dim, 0, min(1, length)), neutral)
            turned = mt.cat([first, part(turned, dim, 0, max(length - 1, 0))], dim)
        found = function(contiguous(turned), dim, dtype=x.dtype)
        return mt.flip(found, dim) if reverse else found

    return Row(apply, known=(1,))


ROWS: dict[str, Row | Callable[..., Any]] = {
    "ArgMax": _place(mt.argmax),
    "ArgMin": _place(mt.argmin),
    "CumProd": _scan(mt.cumprod, 1),
    "CumSum": _scan(mt.cumsum, 0),
    "ReduceL1": _reduction(lambda x, dims, keep: _sum(mt.abs(x), dims, keep)),
    "ReduceL2": _widened(lambda x, dims, keep: mt.sqrt(_sum(mt.square(x), dims, keep))),
    "ReduceLogSum": _widened(lambda x, dims, keep: mt.log(_sum(x, dims, keep))),
    "ReduceLogSumExp": _reduction(lambda x, dims, keep: to_dtype(mt.logsumexp(x, dims, keep), x.dtype)),
    "ReduceMax": _extreme(mt.amax, 0),
    "ReduceMean": _reduction(_mean),
    "ReduceMin": _extreme(mt.amin, 1),
    "ReduceProd": _reduction(_prod),
    "ReduceSum": _reduction(_sum),
    "ReduceSumSquare": _reduction(lambda x, dims, keep: _sum(mt.square(x), dims, keep)),
}
