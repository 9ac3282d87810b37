"""Sorting and functions based on it: `sort`, `topk`, `median`, `searchsorted`, `unique`.

One primitive, `argsort`, compares; the values and their gradient follow by `gather`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import primitives as P
from ...autograd import no_grad
from ...dtypes import PYTHON_NUMBERS, float32, float64, int64
from ...errors import DTypeError, ShapeError
from ...interpreters import concrete
from ...primitives.elementwise import scalar
from ...primitives.indexing import sortable
from ...tensor import Tensor
from ..families import member
from ..movement.gathering import gather
from ..movement.parts import dim_with_places, part
from ..movement.selection import where
from ..movement.shaping import ravel, squeeze, unsqueeze
from ..operands import Operand, from_array, number, operand, promote, to_dtype
from ..options import as_int, checked, probability, require_float, whole, wrap_dim
from ..pointwise.casting import contiguous
from .reductions import kept_shape


class Histogram(NamedTuple):
    """Counts, and the ends of the intervals."""

    hist: Tensor
    bin_edges: Tensor


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


def _quantile(name: str, nan: str, last: str, result: str) -> Callable[..., Tensor]:
    @member(name, nan=nan, last=last, result=result)
    def quantile(
        input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """Return the number that a share `q` of the elements lies below; {nan}.

        Args:
            input: the tensor, float32 or float64.
            q: a number from 0 to 1, or a row of them, which is the first dimension of the result.
            dim: the dimension to reduce; all elements by default.
            keepdim: whether it stays, with length 1.
            interpolation: between two elements ``"linear"``, or the ``"lower"``, ``"higher"``, ``"nearest"`` one, or
                their ``"midpoint"``.

        Example:
            >>> import minitorch as mt
            >>> mt.{name}(mt.tensor([1.0, 2.0, 4.0, {last}]), 0.75)
            tensor({result})
        """
        if interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
            raise ValueError(
                f"{name}: interpolation is linear, lower, higher, nearest or midpoint, not {interpolation!r}"
            )
        x = ravel(input) if dim is None or not input.ndim else input
        axis = 0 if dim is None else wrap_dim(dim, x.ndim)
        shares = number(probability(f"{name}: q", q), input.dtype) if isinstance(q, PYTHON_NUMBERS) else q
        if input.dtype not in (float32, float64) or shares.dtype is not input.dtype:
            raise DTypeError(
                "MT202", f"{name}: {input.spec} and q of {shares.dtype}", fix="make both float32, or float64"
            )
        if shares.ndim > 1 or not x.shape[axis]:
            raise ShapeError("MT201", f"{name}: {shares.spec} of {input.spec}", why="a row of shares, of some elements")
        shares = ravel(checked(f"{name}: q", shares, 0, 1))
        ordered = sort(x.movedim(axis, -1)).values
        known = (ordered == ordered).sum(-1, keepdim=True)
        last = (known if name == "nanquantile" else x.shape[axis] + 0 * known) - 1
        rank = (shares * last).clamp(min=0)
        if name == "quantile":
            rank = rank.where(known == x.shape[axis], to_dtype(last, rank.dtype))
        low, high = rank.floor(), rank.ceil()
        if interpolation == "nearest":
            low = high = rank.round()
        elif interpolation in ("lower", "higher"):
            low = high = low if interpolation == "lower" else high
        weight = 0.5 if interpolation == "midpoint" else rank - low
        below, above = (ordered.gather(-1, place.long()) for place in (low, high))
        result = (below if low is high else below.lerp(above, weight)).movedim(-1, 0)
        if keepdim:
            shape = (1,) * input.ndim if dim is None else kept_shape(input.shape, (axis,))
            result = result.reshape(result.shape[0], *shape)
        found: Tensor = result if isinstance(q, Tensor) and q.ndim else result[0]
        return found

    return quantile


quantile = _quantile("quantile", "NaN if one is NaN", "5.0", "4.2500")
nanquantile = _quantile("nanquantile", "NaN does not count", 'float("nan")', "3.")


def _running(name: str, is_better: str, example: str) -> Callable[[Tensor, int], Ordered]:
    @member(name, largest="largest" if is_better == "ge" else "smallest", example=example)
    def running(input: Tensor, dim: int) -> Ordered:
        """Return the {largest} element up to and including each one, and its position, the last of equal ones.

        Example:
            >>> import minitorch as mt
            >>> mt.{name}(mt.tensor([1, 3, 2, 3]), 0).indices
            tensor({example})
        """
        axis = wrap_dim(dim, input.ndim)
        x = input.movedim(axis, -1) if input.ndim else ravel(input)
        with no_grad():
            best, step = P.iota(size=x.shape[-1], dtype=int64).expand(x.shape), 1
            while step < x.shape[-1]:  # each looks twice as far back as before
                values = x.gather(-1, best)
                new, old = values[..., step:], values[..., :-step]
                kept = getattr(new, is_better)(old) | (new != new)
                later = best[..., step:].where(kept, best[..., :-step])
                best, step = P.concatenate(best[..., :step], later, dim=x.ndim - 1), 2 * step
        found = Ordered(x.gather(-1, best), best)
        return Ordered(*[contiguous(each.movedim(-1, axis)) if input.ndim else each.reshape(()) for each in found])

    return running


cummax = _running("cummax", "ge", "[0, 1, 1, 3]")
cummin = _running("cummin", "le", "[0, 0, 0, 0]")


def isin(elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Return for each element whether it is one of others; with `invert`, whether it is none.

    Example:
        >>> import minitorch as mt
        >>> mt.isin(mt.tensor([1, 2, 3]), mt.tensor([3, 1]))
        tensor([ True, False,  True])
    """
    found = (operand(elements).unsqueeze(-1) == ravel(operand(test_elements))).any(-1)
    return ~found if invert else found


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each number from 0 on occurs, or the sum of the weights at these places.

    Raises:
        TracedValueError: while a graph is recorded: the length depends on data (``MT103``).

    Example:
        >>> import minitorch as mt
        >>> mt.bincount(mt.tensor([1, 3, 1]))
        tensor([0, 2, 0, 1])
    """
    array = concrete(input, "bincount", "MT103", "count with one_hot(x, classes).sum(0), whose length is known")
    if array.dtype.kind not in "iu" or array.ndim != 1 or (array.size and array.min() < 0):
        raise ValueError(f"bincount: a row of whole numbers from 0 on is needed, not {input.spec}")
    beside = None if weights is None else concrete(weights, "bincount")
    counts = np.bincount(array, beside, whole("bincount: minlength", minlength))
    return from_array(counts if beside is None or beside.dtype != np.float32 else counts.astype(np.float32))


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements are in each of equal intervals from `min` to `max`, by default those of the tensor.

    Example:
        >>> import minitorch as mt
        >>> mt.histc(mt.tensor([1.0, 2.0, 1.0, 5.0]), bins=4, min=0, max=3)
        tensor([0., 2., 1., 0.])
    """
    require_float(input, "histc")
    if max < min or as_int(bins) <= 0:
        raise ValueError(f"histc: from {min} to {max} there are no {bins} intervals")
    x = ravel(input)
    low, high = (number(min, x.dtype), number(max, x.dtype)) if min != max else (x.min(), x.max())
    low, high = low - (low == high).to(x.dtype), high + (low == high).to(x.dtype)
    place = ((x - low) * bins / (high - low)).clamp(0, bins - 1).nan_to_num().long()
    inside = to_dtype((x >= low) & (x <= high), x.dtype)
    return P.expand(number(0, x.dtype), shape=(bins,)).scatter_add(0, place, inside)


def histogram(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Return how many elements are in each interval, and the ends of the intervals.

    Args:
        input: a float tensor.
        bins: the number of equal intervals, or a sequence of their ends; the last one contains its upper end.
        range: the ends of the first and the last interval, by default the least and the largest element.
        weight: what each element counts.
        density: whether the result is a density, whose integral is 1.

    Example:
        >>> import minitorch as mt
        >>> mt.histogram(mt.tensor([1.0, 2.0, 1.0, 4.0]), bins=3)
        Histogram(hist=tensor([2., 1., 1.]), bin_edges=tensor([1., 2., 3., 4.]))
    """
    require_float(input, "histogram")
    x = ravel(input)
    if isinstance(bins, Tensor):
        edges = to_dtype(bins, x.dtype)
    else:
        if as_int(bins) <= 0:
            raise ValueError(f"histogram: bins is 1 or more, not {bins}")
        low, high = (x.min(), x.max()) if range is None else (number(each, x.dtype) for each in range)
        low, high = low - (low == high).to(x.dtype) / 2, high + (low == high).to(x.dtype) / 2
        edges = low + P.cast(P.iota(size=bins + 1, dtype=int64), dtype=x.dtype) * ((high - low) / bins)
        edges = P.concatenate(edges[:-1], P.reshape(high, shape=(1,)), dim=0)
    count = edges.shape[0] - 1
    place = (
        (searchsorted(edges, x, right=True) - 1).minimum(count - to_dtype(x == edges[-1], int64)).clamp(0, count - 1)
    )
    inside = (x >= edges[0]) & (x <= edges[-1])
    each = to_dtype(inside, x.dtype) if weight is None else where(inside, ravel(weight), 0.0).to(x.dtype)
    found = P.expand(number(0, x.dtype), shape=(count,)).scatter_add(0, place, each)
    return Histogram(found / found.sum() / edges.diff() if density else found, edges)


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
