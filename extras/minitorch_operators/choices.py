"""Smallest elements, means, and elements at places, as operators: ONNX has them, and primitives are fewer."""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.ir import Shape, Spec
from minitorch.primitives.indexing import argsort

from .declaring import Array, declare, refuse, widened


def _reduced(x: Spec, dims: Shape, keepdims: bool = False) -> Shape:
    if not all(0 <= dim < x.ndim for dim in dims) or len(set(dims)) < len(dims):
        refuse("a reduction", x)
    kept = [1 if dim in dims else length for dim, length in enumerate(x.shape)]
    return tuple([length for dim, length in enumerate(kept) if keepdims or dim not in dims])


def _infer_mean(x: Spec, *, dims: Shape, keepdims: bool) -> Spec:
    if not x.dtype.is_floating_point:
        refuse("mean", x)
    return Spec(_reduced(x, dims, keepdims), x.dtype)


def _mean(x: Array, *, dims: Shape, keepdims: bool) -> Array:
    return np.asarray(np.mean(widened(x), axis=dims, keepdims=keepdims)).astype(x.dtype)


def _infer_alike(a: Spec, b: Spec) -> Spec:
    if a != b:
        refuse("minimum", a, b)
    return a


def _infer_take_along(x: Spec, index: Spec, *, dim: int) -> Spec:
    shapes = zip(x.shape, index.shape, strict=False)
    fits = x.ndim == index.ndim and 0 <= dim < x.ndim and index.dtype.category == "int"
    if not fits or any(few > many for at, (many, few) in enumerate(shapes) if at != dim):
        refuse("take_along", x, index)
    return Spec(index.shape, x.dtype)


def _take_along(x: Array, index: Array, *, dim: int) -> Array:
    here = tuple([slice(None) if at == dim else slice(length) for at, length in enumerate(index.shape)])
    found: Array = np.take_along_axis(x[here], index, dim)
    return found


def _infer_topk(x: Spec, *, dim: int, k: int, descending: bool, gives: str) -> Spec:
    if not 0 <= dim < x.ndim or not 0 <= k <= x.shape[dim] or gives not in ("values", "indices"):
        refuse("topk", x)
    return Spec((*x.shape[:dim], k, *x.shape[dim + 1 :]), x.dtype if gives == "values" else dtypes.int64)


def _topk(x: Array, *, dim: int, k: int, descending: bool, gives: str) -> Array:
    index = argsort.evaluate(x, dim=dim, descending=descending)
    index = np.take(index, np.arange(k), axis=dim)
    found: Array = np.take_along_axis(x, index, dim) if gives == "values" else index
    return found


def _argmin(x: Array, *, dim: int) -> Any:
    return np.argmin(x, axis=dim)


argmin = declare(
    "argmin",
    lambda x, *, dim: Spec(_reduced(x, (dim,)), dtypes.int64),
    _argmin,
    "the place of the first smallest element along a dimension",
)
ceil = declare("ceil", lambda x: x, np.ceil, "the next whole number from below")
isnan = declare("isnan", lambda x: Spec(x.shape, dtypes.bool_), np.isnan, "whether a number is NaN")
mean = declare("mean", _infer_mean, _mean, "the mean over dimensions")
minimum = declare("minimum", _infer_alike, np.minimum, "the smaller of two numbers")
reduce_min = declare(
    "reduce_min",
    lambda x, *, dims: Spec(_reduced(x, dims), x.dtype),
    lambda x, *, dims: np.min(x, axis=dims),
    "the smallest element over dimensions",
)
take_along = declare(
    "take_along", _infer_take_along, _take_along, "the elements at places along a dimension, as torch.gather"
)
topk = declare("topk", _infer_topk, _topk, "the first elements of a sorted dimension, or their places")
