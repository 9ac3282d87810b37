"""Primitives that take dimensions away: sum, max and prod over several, argmax and the running sum over one.

`dims` is always a sorted tuple of non-negative ints. The type stays as it is: PyTorch's habit of summing
small integers in int64 is a `cast` in `minitorch.functional`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..ir import Primitive, Shape, Spec
from ..tensor import Tensor
from .declare import axis_error, declare
from .elementwise import cast, div, equal, mul, scalar
from .movement import concatenate, expand, flip, reshape, slice_

Array = np.ndarray[Any, Any]

_HALF_TYPES = (dtypes.float16.numpy, dtypes.bfloat16.numpy)


def _without(x: Spec, dims: tuple[int, ...], name: str) -> Shape:
    if list(dims) != sorted(set(dims)) or not all(0 <= dim < x.ndim for dim in dims):
        raise axis_error(name, dims, x)
    return tuple(length for axis, length in enumerate(x.shape) if axis not in dims)


def _back(reduced: Tensor, x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """A reduced value, repeated over the dimensions that were reduced."""
    kept = tuple(1 if axis in dims else length for axis, length in enumerate(x.shape))
    return expand(reshape(reduced, shape=kept), shape=x.shape)


def _reduction(name: str, evaluate: Any, rule: Any, **fields: Any) -> Primitive:
    return declare(
        name,
        "reduction",
        lambda x, *, dims: Spec(_without(x, dims, name), x.dtype),
        evaluate,
        gradient=(rule,),
        **fields,
    )


def _reduce_sum(x: Array, *, dims: tuple[int, ...]) -> Any:
    if x.dtype in _HALF_TYPES:  # sums of 16-bit floats are carried in float32
        return np.add.reduce(x, axis=dims, dtype=np.float32).astype(x.dtype)
    return np.add.reduce(x, axis=dims, dtype=x.dtype)


def _reduce_prod(x: Array, *, dims: tuple[int, ...]) -> Any:
    if x.dtype in _HALF_TYPES:
        return np.multiply.reduce(x.astype(np.float32), axis=dims).astype(x.dtype)
    return np.multiply.reduce(x, axis=dims, dtype=x.dtype)


def lowest(dtype: dtypes.DType) -> Any:
    """The number below all others of a type: what a maximum over nothing gives."""
    if dtype.is_floating_point:
        return -float("inf")
    return False if dtype is dtypes.bool_ else int(np.iinfo(dtype.numpy).min)


def _reduce_max(x: Array, *, dims: tuple[int, ...]) -> Any:
    if x.size == 0:
        return np.maximum.reduce(x, axis=dims, initial=np.array(lowest(dtypes.BY_NUMPY[x.dtype]), x.dtype))
    return np.maximum.reduce(x, axis=dims)


reduce_sum = _reduction(
    "reduce_sum",
    _reduce_sum,
    lambda g, y, x, dims: _back(g, x, dims),
    doc="the sum over dims; of bools, or",
)


def _max_rule(g: Tensor, y: Tensor, x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Equal maxima share the cotangent, as in PyTorch's amax."""
    hit = cast(equal(x, _back(y, x, dims)), dtype=x.dtype)
    count = reduce_sum(hit, dims=dims)
    return mul(hit, _back(div(g, count), x, dims))


reduce_max = _reduction(
    "reduce_max",
    _reduce_max,
    _max_rule,
    saves=(0,),
    saves_output=True,
    doc="the largest over dims, NaN if any is NaN; the lowest number over nothing",
)


def _products_of_others(x: Tensor, dim: int) -> Tensor:
    """For each element, the product of all the others along a dimension, right where some are zero."""
    before = _running_product(x, dim)
    after = flip(_running_product(flip(x, dims=(dim,)), dim), dims=(dim,))
    return mul(before, after)


def _running_product(x: Tensor, dim: int) -> Tensor:
    """The product of the elements before each one: shift by 1, then multiply by itself shifted by 1, 2, 4, ..."""
    y, step = _shifted(x, dim, 1), 1
    while step < x.shape[dim]:
        y, step = mul(y, _shifted(y, dim, step)), step * 2
    return y


def _shifted(x: Tensor, dim: int, by: int) -> Tensor:
    """The elements moved on by some places along a dimension, with ones coming in."""
    by = min(by, x.shape[dim])
    edge = tuple(by if axis == dim else length for axis, length in enumerate(x.shape))
    stop = tuple(length - by if axis == dim else length for axis, length in enumerate(x.shape))
    kept = slice_(x, start=(0,) * x.ndim, stop=stop, step=(1,) * x.ndim)
    return concatenate(expand(scalar(1, x), shape=edge), kept, dim=dim)


def _prod_rule(g: Tensor, y: Tensor, x: Tensor, dims: tuple[int, ...]) -> Tensor:
    others = expand(scalar(1, x), shape=x.shape)
    rest = x
    for dim in dims:
        others = mul(others, _products_of_others(rest, dim))
        rest = _back(reduce_prod(rest, dims=(dim,)), x, (dim,))
    return mul(others, _back(g, x, dims))


reduce_prod = _reduction("reduce_prod", _reduce_prod, _prod_rule, saves=(0,), doc="the product over dims")


def _infer_argmax(x: Spec, *, dim: int) -> Spec:
    shape = _without(x, (dim,), "argmax")
    if x.shape[dim] == 0:
        raise axis_error("argmax of nothing", dim, x)
    return Spec(shape, dtypes.int64)


argmax = declare(
    "argmax",
    "argreduction",
    _infer_argmax,
    lambda x, *, dim: np.argmax(x, axis=dim),
    doc="the position of the first largest element along a dimension; of the first NaN if there is one",
)


def _infer_cumsum(x: Spec, *, dim: int) -> Spec:
    _without(x, (dim,), "cumsum")
    return x


def _cumsum(x: Array, *, dim: int) -> Any:
    if x.dtype in _HALF_TYPES:
        return np.cumsum(x, axis=dim, dtype=np.float32).astype(x.dtype)
    return np.cumsum(x, axis=dim, dtype=x.dtype)


cumsum: Primitive = declare(
    "cumsum",
    "scan",
    _infer_cumsum,
    _cumsum,
    gradient=(lambda g, y, x, dim: flip(cumsum(flip(g, dims=(dim,)), dim=dim), dims=(dim,)),),
    doc="the sum of the elements up to and including each one, along a dimension",
)
