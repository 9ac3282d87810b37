"""Convolutions, pools and matrix products as operators.

Windows are described as in ONNX: for each dimension that they slide over a stride, a pair of paddings (before, after),
and a dilation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minitorch.dtypes import BY_NUMPY
from minitorch.ir import Shape, Spec
from minitorch.primitives.reductions import lowest

from .declaring import Array, declare, refuse, widened

Pads = tuple[tuple[int, int], ...]


def places(lengths: Sequence[int], size: Sequence[int], strides: Shape, pads: Pads, dilations: Shape) -> Shape:
    """How many places a window has in each dimension."""
    return tuple(
        [
            (length + sum(pair) - (count - 1) * apart - 1) // by + 1
            for length, count, by, pair, apart in zip(lengths, size, strides, pads, dilations, strict=True)
        ]
    )


def windows(x: Array, size: Sequence[int], strides: Shape, pads: Pads, dilations: Shape, value: Any) -> Array:
    """[batch, channels, *places, *size]: the elements of the padded array in every window."""
    x = np.pad(x, ((0, 0), (0, 0), *pads), constant_values=value)
    reach = [(count - 1) * apart + 1 for count, apart in zip(size, dilations, strict=True)]
    found = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, x.ndim)))
    every = [slice(None), slice(None), *[slice(None, None, by) for by in (*strides, *dilations)]]
    return found[tuple(every)]


def _check(name: str, x: Spec, size: Sequence[int], strides: Shape, pads: Pads, dilations: Shape) -> Shape:
    n = x.ndim - 2
    if n < 1 or not n == len(size) == len(strides) == len(pads) == len(dilations):
        refuse(name, x)
    if min((*size, *strides, *dilations), default=1) < 1 or any(min(pair) < 0 for pair in pads):
        refuse(name, x)
    found = places(x.shape[2:], size, strides, pads, dilations)
    if min(found) < 1:
        refuse(name, x)
    return found


def _infer_conv(x: Spec, weight: Spec, *bias: Spec, strides: Shape, pads: Pads, dilations: Shape, groups: int) -> Spec:
    found = _check("conv", x, weight.shape[2:], strides, pads, dilations)
    filters, depth = weight.shape[:2]
    if groups < 1 or filters % groups or x.shape[1] != depth * groups or any(b.shape != (filters,) for b in bias):
        refuse("conv", x, weight, *bias)
    return Spec((x.shape[0], filters, *found), x.dtype)


def _conv(x: Array, weight: Array, *bias: Array, strides: Shape, pads: Pads, dilations: Shape, groups: int) -> Array:
    filters, depth, *size = weight.shape
    n = len(size)
    seen = windows(widened(x), size, strides, pads, dilations, 0)
    parts = []
    for group in range(groups):
        channels = seen[:, group * depth : (group + 1) * depth]
        rows = widened(weight)[group * filters // groups : (group + 1) * filters // groups]
        axes = [1, *range(2 + n, 2 + 2 * n)]
        parts.append(np.tensordot(channels, rows, (axes, [1, *range(2, 2 + n)])))
    found = np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)
    for each in bias:
        found = found + each.reshape(-1, *(1,) * n)
    return np.asarray(found, order="C").astype(x.dtype)


conv = declare(
    "conv",
    _infer_conv,
    _conv,
    "[batch, channels, ...] under filters [filters, channels / groups, ...], and + bias",
)


def _infer_pool(x: Spec, *, lengths: Shape, strides: Shape, pads: Pads, dilations: Shape) -> Spec:
    return Spec((*x.shape[:2], *_check("a pool", x, lengths, strides, pads, dilations)), x.dtype)


def _max_pool(x: Array, *, lengths: Shape, strides: Shape, pads: Pads, dilations: Shape) -> Array:
    seen = windows(x, lengths, strides, pads, dilations, lowest(BY_NUMPY[x.dtype]))
    found: Array = np.max(seen, axis=tuple(range(x.ndim, seen.ndim)))
    return found


def _avg_pool(x: Array, *, lengths: Shape, strides: Shape, pads: Pads, dilations: Shape) -> Array:
    seen = windows(widened(x), lengths, strides, pads, dilations, 0)
    found = np.sum(seen, axis=tuple(range(x.ndim, seen.ndim))) / widened(x).dtype.type(math.prod(lengths))
    return np.asarray(found).astype(x.dtype)


max_pool = declare("max_pool", _infer_pool, _max_pool, "the largest element of every window")
avg_pool = declare("avg_pool", _infer_pool, _avg_pool, "the mean of every window, the padding counted")


# Matrix products ------------------------------------------------------------------------------------------


def _infer_matmul(a: Spec, b: Spec) -> Spec:
    if a.ndim < 1 or b.ndim != 2 or a.shape[-1] != b.shape[0] or a.dtype is not b.dtype:
        refuse("matmul", a, b)
    return Spec((*a.shape[:-1], b.shape[1]), a.dtype)


def _matmul(a: Array, b: Array) -> Array:
    found: Array = np.matmul(widened(a), widened(b)).astype(a.dtype)
    return found


matmul = declare("matmul", _infer_matmul, _matmul, "[..., k] times [k, n] gives [..., n]")


def _infer_gemm(a: Spec, b: Spec, *bias: Spec, transposed: bool) -> Spec:
    k, n = b.shape[::-1] if transposed else b.shape
    if a.ndim != 2 or a.shape[1] != k or any(each.shape != (n,) for each in bias):
        refuse("gemm", a, b, *bias)
    return Spec((a.shape[0], n), a.dtype)


def _gemm(a: Array, b: Array, *bias: Array, transposed: bool) -> Array:
    found = np.matmul(widened(a), widened(b.T if transposed else b))
    for each in bias:
        found = found + each
    return np.asarray(found).astype(a.dtype)


gemm = declare("gemm", _infer_gemm, _gemm, "[m, k] times [k, n], or times the transpose of [n, k]; and + bias [n]")
