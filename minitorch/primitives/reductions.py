"""Reductions and scans: sum, max and prod over several dimensions, argmax and running sums and products over one.

`dims` is always a sorted tuple of non-negative ints. The type stays as it is: PyTorch's habit of summing
small integers in int64 is a `cast` in `minitorch.functional`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..ir import Primitive, Shape, Spec
from ..tensor import Tensor
from .declare import axis_error, declare
from .elementwise import add, bitwise_not, bitwise_or, cast, div, equal, mul, scalar, where
from .movement import concatenate, expand, flip, pad, reshape, slice_

Array = np.ndarray[Any, Any]

_HALF_TYPES = (dtypes.float16.numpy, dtypes.bfloat16.numpy)


def _without(x: Spec, dims: tuple[int, ...], name: str) -> Shape:
    if list(dims) != sorted(set(dims)) or not all(0 <= dim < x.ndim for dim in dims):
        raise axis_error(name, dims, x)
    return tuple(length for axis, length in enumerate(x.shape) if axis not in dims)


def _back(reduced: Tensor, x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Repeat a reduced value over the dimensions that were reduced."""
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


# NumPy sums pairwise only along the dimension whose elements lie next to each other; along any other, it adds row by
# row, and float32 loses 4 % of 4 million equal rows. More rows than two blocks are therefore summed by blocks.
_BLOCK = 256


def _reduce_sum(x: Array, *, dims: tuple[int, ...]) -> Any:
    if x.dtype.kind in "biu":
        return np.add.reduce(x, axis=dims, dtype=x.dtype)
    if x.dtype in _HALF_TYPES:  # sums of 16-bit floats are carried in float32
        return _summed(x, dims, np.dtype(np.float32)).astype(x.dtype)
    return _summed(x, dims, x.dtype)


def _summed(x: Array, dims: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return the sum of floats over dims, with an error that grows with the logarithm of the number of rows."""
    if x.ndim == 1 or not x.size or math.prod([x.shape[dim] for dim in dims]) <= 2 * _BLOCK:
        return np.add.reduce(x, axis=dims, dtype=dtype)
    while len(dims) > 1 and dims[-2:] == (x.ndim - 2, x.ndim - 1) and x.flags.c_contiguous:
        x, dims = np.reshape(x, (*x.shape[:-2], -1)), dims[:-1]
    innermost = min(range(x.ndim), key=lambda axis: abs(x.strides[axis]) or np.inf)
    outer = [dim for dim in dims if dim != innermost]
    if math.prod([x.shape[dim] for dim in outer]) <= 2 * _BLOCK:
        return np.add.reduce(x, axis=dims, dtype=dtype)
    axis = max(outer, key=lambda dim: x.shape[dim])
    if x.shape[axis] <= 2 * _BLOCK:
        rest = tuple([dim - (dim > axis) for dim in dims if dim != axis])
        return _summed(np.add.reduce(x, axis=axis, dtype=dtype), rest, dtype)
    by_block, tail = _blocks(x, axis)
    total = _summed(np.add.reduce(by_block, axis=axis + 1, dtype=dtype), dims, dtype)
    return total + _summed(tail, dims, dtype) if tail.size else total


def _blocks(x: Array, axis: int) -> tuple[Array, Array]:
    """Split an axis: return a view with blocks and places in a block, and the elements left over."""
    count = x.shape[axis] // _BLOCK
    before: tuple[Any, ...] = (slice(None),) * axis
    cut = count * _BLOCK
    shape = (*x.shape[:axis], count, _BLOCK, *x.shape[axis + 1 :])
    return np.reshape(x[(*before, slice(cut))], shape), x[(*before, slice(cut, None))]


def _reduce_prod(x: Array, *, dims: tuple[int, ...]) -> Any:
    if x.dtype in _HALF_TYPES:
        return np.multiply.reduce(x.astype(np.float32), axis=dims).astype(x.dtype)
    return np.multiply.reduce(x, axis=dims, dtype=x.dtype)


def lowest(dtype: dtypes.DType) -> Any:
    """Return the number below all others of a type: the maximum over nothing."""
    if dtype.is_floating_point:
        return -float("inf")
    return False if dtype is dtypes.bool_ else int(np.iinfo(dtype.numpy).min)


def _reduce_max(x: Array, *, dims: tuple[int, ...]) -> Any:
    if x.size == 0:
        return np.maximum.reduce(x, axis=dims, initial=np.array(lowest(dtypes.BY_NUMPY[x.dtype]), x.dtype))
    return np.maximum.reduce(x, axis=dims)


reduce_sum: Primitive = _reduction(
    "reduce_sum",
    _reduce_sum,
    lambda g, y, x, dims: _back(g, x, dims),
    reorders=True,
    doc="the sum over dims; of bools, or",
)


def _max_rule(g: Tensor, y: Tensor, x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Divide the cotangent among equal maxima, as PyTorch's amax does; where the result is NaN, among the NaNs."""
    hit = bitwise_or(equal(x, _back(y, x, dims)), bitwise_not(equal(x, x)))
    count = reduce_sum(cast(hit, dtype=x.dtype), dims=dims)
    return where(hit, _back(div(g, count), x, dims), scalar(0, x))


reduce_max: Primitive = _reduction(
    "reduce_max",
    _reduce_max,
    _max_rule,
    saves=(0,),
    saves_output=True,
    doc="the largest over dims, NaN if any is NaN; the lowest number over nothing",
)


def _products_of_others(x: Tensor, dim: int) -> Tensor:
    """Return for each element the product of all the others along a dimension, right where some are zero."""
    before = cumprod(_shifted(x, dim, 1), dim=dim)
    after = flip(cumprod(_shifted(flip(x, dims=(dim,)), dim, 1), dim=dim), dims=(dim,))
    return mul(before, after)


def _shifted(x: Tensor, dim: int, by: int) -> Tensor:
    """Shift the elements forwards by some places along a dimension, with ones coming in."""
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


reduce_prod: Primitive = _reduction(
    "reduce_prod", _reduce_prod, _prod_rule, saves=(0,), reorders=True, doc="the product over dims"
)


def _infer_argmax(x: Spec, *, dim: int) -> Spec:
    shape = _without(x, (dim,), "argmax")
    if x.shape[dim] == 0:
        raise axis_error("argmax of nothing", dim, x)
    return Spec(shape, dtypes.int64)


argmax: Primitive = declare(
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
        return _running_sum(x, dim, np.dtype(np.float32)).astype(x.dtype)
    return np.cumsum(x, axis=dim, dtype=x.dtype) if x.dtype.kind in "biu" else _running_sum(x, dim, x.dtype)


def _running_sum(x: Array, dim: int, dtype: np.dtype[Any]) -> Array:
    """Return the running sum of floats, within blocks and over the blocks' totals, to bound rounding errors."""
    if x.shape[dim] <= 2 * _BLOCK:
        return np.cumsum(x, axis=dim, dtype=dtype)
    result = np.empty(x.shape, dtype)
    (blocks, tail), (into, into_tail) = _blocks(x, dim), _blocks(result, dim)
    np.cumsum(blocks, axis=dim + 1, dtype=dtype, out=into)
    np.cumsum(tail, axis=dim, dtype=dtype, out=into_tail)
    before: tuple[Any, ...] = (slice(None),) * dim
    sums = np.expand_dims(_running_sum(into[(*before, slice(None), -1)], dim, dtype), dim + 1)
    into[(*before, slice(1, None))] += sums[(*before, slice(-1))]
    into_tail += sums[(*before, -1)]
    return result


cumsum: Primitive = declare(
    "cumsum",
    "scan",
    _infer_cumsum,
    _cumsum,
    gradient=(lambda g, y, x, dim: flip(cumsum(flip(g, dims=(dim,)), dim=dim), dims=(dim,)),),
    reorders=True,
    doc="the sum of the elements up to and including each one, along a dimension",
)


def _infer_cumprod(x: Spec, *, dim: int) -> Spec:
    _without(x, (dim,), "cumprod")
    return x


def _cumprod(x: Array, *, dim: int) -> Any:
    if x.dtype in _HALF_TYPES:
        return np.cumprod(x, axis=dim, dtype=np.float32).astype(x.dtype)
    return np.cumprod(x, axis=dim, dtype=x.dtype)


def _cumprod_rule(g: Tensor, y: Tensor, x: Tensor, dim: int) -> Tensor:
    """Differentiate the parallel scan, which is right at zeros (Hillis and Steele, "Data parallel algorithms", 1986).

    After the step that multiplies by the products 2**k places back, each element is the product of the last 2**(k+1).
    """
    products, step = [x], 1
    while 2 * step < x.shape[dim]:
        products.append(mul(products[-1], _shifted(products[-1], dim, step)))
        step *= 2
    for each in reversed(products):
        g = add(mul(g, _shifted(each, dim, step)), _shifted_back(mul(g, each), dim, step))
        step //= 2
    return g


def _shifted_back(x: Tensor, dim: int, by: int) -> Tensor:
    """Shift the elements back by some places along a dimension, with zeros coming in."""
    by = min(by, x.shape[dim])
    start = tuple(by if axis == dim else 0 for axis in range(x.ndim))
    kept = slice_(x, start=start, stop=x.shape, step=(1,) * x.ndim)
    return pad(kept, padding=tuple((0, by if axis == dim else 0, 0) for axis in range(x.ndim)), value=0)


cumprod: Primitive = declare(
    "cumprod",
    "scan",
    _infer_cumprod,
    _cumprod,
    gradient=(_cumprod_rule,),
    saves=(0,),
    reorders=True,
    doc="the product of the elements up to and including each one, along a dimension",
)
