"""Sorting and functions based on it: `sort`, `topk`, `median`, `searchsorted`, `unique`.

One primitive, `argsort`, compares; the values and their gradient follow by `gather`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import primitives as P
from ...dtypes import int64
from ...errors import ShapeError
from ...interpreters import concrete
from ...primitives.elementwise import scalar
from ...primitives.indexing import sortable
from ...tensor import Tensor
from ..movement.gathering import gather
from ..movement.parts import dim_with_places, part
from ..movement.shaping import ravel, squeeze, unsqueeze
from ..operands import from_array, operand, promote
from ..options import wrap_dim
from ..pointwise.casting import contiguous


class Ordered(NamedTuple):
    """Elements in some order, and their former positions."""

    values: Tensor
    indices: Tensor


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return the positions that put the elements along a dimension in order.

    The order is always stable: equal elements stay in theirs. NaN counts as the largest.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([3, 1, 2]).argsort()
        tensor([1, 2, 0])
    """
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        return P.constant(value=0, shape=(), dtype=int64)
    return P.argsort(input, dim=dim, descending=bool(descending))


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Ordered:
    """Return the elements along a dimension in order, and their former positions.

    Example:
        >>> import minitorch as mt
        >>> values, indices = mt.tensor([3, 1, 2]).sort(descending=True)
        >>> values, indices
        (tensor([3, 2, 1]), tensor([0, 2, 1]))
    """
    order = argsort(input, dim, descending)
    return Ordered(gather(input, dim, order), order)


def msort(input: Tensor) -> Tensor:
    """Return the elements in order along the first dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.msort(mt.tensor([[2, 1], [0, 3]]))
        tensor([[0, 1],
                [2, 3]])
    """
    return sort(input, 0).values


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Ordered:
    """Return the `k` largest (or smallest) elements along a dimension, in order, and their positions.

    Raises:
        ShapeError: if there are fewer than k (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1, 5, 3, 4]).topk(2).values
        tensor([5, 4])
    """
    dim = wrap_dim(dim, input.ndim)
    length = input.shape[dim] if input.ndim else 1
    if not 0 <= k <= length:
        raise ShapeError("MT201", f"topk: {k} elements of {input.spec} along dimension {dim}, which has {length}")
    order = argsort(input, dim, descending=largest)
    best = contiguous(part(order, dim, 0, k)) if input.ndim else order
    return Ordered(gather(input, dim, best), best)


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the element in the middle, the lower one of two; with a dimension, also its position. NaN if there is
    any.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([4.0, 1.0, 3.0, 2.0]).median()
        tensor(2.)
        >>> mt.tensor([[3, 1, 2]]).median(dim=1)
        Ordered(values=tensor([2]), indices=tensor([2]))
    """
    if dim is None:
        nothing = input.dtype.is_floating_point and not input.numel()
        return P.constant(value=math.nan, shape=(), dtype=input.dtype) if nothing else median(ravel(input), 0).values
    dim = wrap_dim(dim, input.ndim)
    x = input if input.ndim else ravel(input)
    if not x.shape[dim]:
        raise ShapeError("MT201", f"median of nothing: dimension {dim} of {input.spec} is empty")
    order = argsort(x, dim)
    # NaN comes last in the order; the position of the first one is the number of the others.
    numbers = P.reduce_sum(P.cast(P.equal(x, x), dtype=int64), dims=(dim,))
    length = scalar(x.shape[dim], numbers)
    middle = P.where(P.less(numbers, length), numbers, scalar((x.shape[dim] - 1) // 2, numbers))
    at = gather(order, dim, unsqueeze(middle, dim))
    value = gather(x, dim, at)
    gone = keepdim and input.ndim > 0
    return Ordered(value, at) if gone else Ordered(squeeze(value, dim), squeeze(at, dim))


def searchsorted(sorted_sequence: Tensor, input: Any, *, right: bool = False, side: str | None = None) -> Tensor:
    """Return, for each value, the number of elements of a sorted sequence before it: its place of insertion.

    `right` (or ``side="right"``) counts equal elements, too. The last dimension of the sequence is
    searched; its other dimensions are those of the values, unless it has only one. All pairs are compared. NaN comes
    after every number, and a NaN to insert after every element.

    Example:
        >>> import minitorch as mt
        >>> mt.searchsorted(mt.tensor([1, 3, 5]), mt.tensor([0, 3, 9]))
        tensor([0, 1, 3])
    """
    sequence, values = promote(sorted_sequence, input)
    is_before = P.less_equal if right or side == "right" else P.less
    rows = unsqueeze(sequence, -2) if sequence.ndim > 1 else sequence
    values = unsqueeze(values, -1)
    before = P.bitwise_or(is_before(rows, values), P.bitwise_not(P.equal(values, values)))
    return P.reduce_sum(P.cast(before, dtype=int64), dims=(before.ndim - 1,))


def bucketize(input: Any, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """Return, for each value, the number of its bucket between sorted boundaries.

    Raises:
        ShapeError: if the boundaries do not have just one dimension (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.bucketize(mt.tensor([0.5, 1.5]), mt.tensor([0.0, 1.0, 2.0]))
        tensor([1, 2])
    """
    if (limits := operand(boundaries)).ndim != 1:
        raise ShapeError(
            "MT201",
            f"bucketize: the boundaries are {limits.spec}, not of one dimension",
            fix="searchsorted takes a row of boundaries for each row of values",
        )
    return searchsorted(boundaries, input, right=right)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the different elements (or slices along a dimension), in order; their number depends on data.

    Args:
        input: the tensor.
        sorted: they are sorted in any case.
        return_inverse: also give, for each element, its position in the result.
        return_counts: also give how often each occurs.
        dim: compare slices along this dimension; by default all elements.

    Raises:
        TracedValueError: while a graph is recorded: the shape depends on data (``MT103``).

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([3, 1, 3]).unique(return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    fix = "look for the different elements outside of the traced function, or sort, which keeps the shape"
    array = concrete(input, "unique", "MT103", fix)
    axis = None if dim is None else dim_with_places("unique", input, dim)
    found = np.unique(sortable(array), return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    inverse = np.reshape(found[1], array.shape if axis is None else -1)
    rows = ((True, found[0].astype(array.dtype)), (return_inverse, inverse), (return_counts, found[2]))
    results = tuple([from_array(np.array(result, order="C")) for wanted, result in rows if wanted])
    return results if len(results) > 1 else results[0]
