"""Reductions, and running sums and products.

The axes are an input (of ReduceSum since opset 13, of the others since 18) or an attribute. Without axes, all are
reduced, or none with ``noop_with_empty_axes``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from minitorch.dtypes import bool_
from minitorch.functional import elementwise as E
from minitorch.functional.arithmetic import div
from minitorch.functional.arranging import cat, flip
from minitorch.functional.casting import contiguous, iinfo
from minitorch.functional.creation import full, full_like
from minitorch.functional.extremes import amax, amin, argmax, argmin
from minitorch.functional.operands import to_dtype, widened
from minitorch.functional.parts import part
from minitorch.functional.reductions import logsumexp, prod, sum
from minitorch.functional.scans import cumprod, cumsum
from minitorch.functional.shaping import unsqueeze
from minitorch.functional.statistics import mean
from minitorch.tensor import Tensor

from ..limits import refuse
from ..program import Row
from ..running import Call
from .checks import dimension, ints, whole

Reduction = Callable[[Tensor, tuple[int, ...], bool], Tensor]


def _reduction(function: Reduction) -> Row:
    """A reduction. Where nothing is reduced, it is one of a new dimension of length 1."""

    def apply(call: Call, x: Tensor, axes: Any = None) -> Tensor:
        given = [] if axes is None else ints(axes)
        if not given and call["noop_with_empty_axes"]:
            return function(unsqueeze(x, x.ndim), (x.ndim,), False)
        dims = tuple([dimension(axis, x.ndim) for axis in given]) if given else tuple(range(x.ndim))
        if len(set(dims)) < len(dims):
            refuse(f"an axis comes twice among its {len(dims)}")
        return function(x, dims, bool(call["keepdims"]))

    return Row(apply, known=(1,))


def _sum(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    return sum(x, dims, keep, dtype=x.dtype)


def _mean(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    if x.dtype.is_floating_point:
        return mean(x, dims, keep)
    count = math.prod([x.shape[dim] for dim in dims])
    return to_dtype(div(_sum(x, dims, keep), count, rounding_mode="trunc"), x.dtype)


def _prod(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    for dim in sorted(dims, reverse=True):
        x = prod(x, dim, keep, dtype=x.dtype)
    return x


def _largest(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    """Of nothing, the least number of the type."""
    return amax(x, dims, keep) if math.prod([x.shape[dim] for dim in dims]) else _of_nothing(x, dims, keep, 0)


def _least(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    """Of nothing, the largest number of the type."""
    return amin(x, dims, keep) if math.prod([x.shape[dim] for dim in dims]) else _of_nothing(x, dims, keep, 1)


def _of_nothing(x: Tensor, dims: tuple[int, ...], keep: bool, end: int) -> Tensor:
    """One end of the type's range, in the shape that a reduction has."""
    shape = [1 if axis in dims else length for axis, length in enumerate(x.shape) if keep or axis not in dims]
    if x.dtype.is_floating_point:
        return full(shape, (-math.inf, math.inf)[end], dtype=x.dtype)
    if x.dtype is bool_:
        return full(shape, bool(end), dtype=x.dtype)
    bounds = iinfo(x.dtype)
    return full(shape, (bounds.min, bounds.max)[end], dtype=x.dtype)


def _l1(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    return _sum(E.abs(x), dims, keep)


def _sum_square(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    return _sum(E.square(x), dims, keep)


def _l2(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    return to_dtype(widened(lambda each: E.sqrt(_sum_square(each, dims, keep)))(x), x.dtype)


def _log_sum(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    return to_dtype(widened(lambda each: E.log(_sum(each, dims, keep)))(x), x.dtype)


def _log_sum_exp(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    return to_dtype(logsumexp(x, dims, keep), x.dtype)


def _place(function: Callable[..., Tensor]) -> Row:
    """The place of the largest or least element: the first one, or the last with ``select_last_index``."""

    def apply(call: Call, x: Tensor) -> Tensor:
        axis = dimension(call["axis"], x.ndim)
        if call["select_last_index"]:
            found = x.shape[axis] - 1 - function(flip(x, axis), axis)
        else:
            found = function(x, axis)
        return unsqueeze(found, axis) if call["keepdims"] else found

    return Row(apply)


def _scan(function: Callable[..., Tensor], neutral: int) -> Row:
    """Running sums or products, from the front or the back, with or without the element itself."""

    def apply(call: Call, x: Tensor, axis: Any) -> Tensor:
        dim = dimension(whole("the axis", axis), x.ndim)
        turned = flip(x, dim) if call["reverse"] else x
        if call["exclusive"]:
            length = x.shape[dim]
            first = full_like(part(turned, dim, 0, min(1, length)), neutral)
            turned = cat([first, part(turned, dim, 0, max(length - 1, 0))], dim)
        found = function(contiguous(turned), dim, dtype=x.dtype)
        return flip(found, dim) if call["reverse"] else found

    return Row(apply, known=(1,))


ROWS: dict[str, Row] = {
    "ArgMax": _place(argmax),
    "ArgMin": _place(argmin),
    "CumProd": _scan(cumprod, 1),
    "CumSum": _scan(cumsum, 0),
    "ReduceL1": _reduction(_l1),
    "ReduceL2": _reduction(_l2),
    "ReduceLogSum": _reduction(_log_sum),
    "ReduceLogSumExp": _reduction(_log_sum_exp),
    "ReduceMax": _reduction(_largest),
    "ReduceMean": _reduction(_mean),
    "ReduceMin": _reduction(_least),
    "ReduceProd": _reduction(_prod),
    "ReduceSum": _reduction(_sum),
    "ReduceSumSquare": _reduction(_sum_square),
}
