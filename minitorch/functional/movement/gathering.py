"""Reading and writing at positions given by data: `gather`, `scatter`, `index_select`, `masked_fill` ...

All are compositions of the primitives `gather`, `scatter`, `scatter_add` and `where`; square brackets are in
`minitorch.functional.movement.indexing`. The forms that write in place (`scatter_`, `masked_fill_`) are made from these
in `minitorch.functional.inplace`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import primitives as P
from ...dtypes import PYTHON_NUMBERS, bool_, int64
from ...errors import DTypeError, ShapeError
from ...interpreters import concrete
from ...primitives.movement import inverse_permutation
from ...sizes import smaller
from ...tensor import Tensor
from ..operands import fitting, from_array, number, operand, to_dtype
from ..options import equals, wrap_dim
from ..pointwise.casting import contiguous
from .indexing import MASK_FIX, coordinates, existing, gathered, getitem
from .parts import part
from .shaping import broadcast_tensors, movedim, ravel

Number = bool | int | float


def _filling(value: Tensor | Number, x: Tensor, name: str) -> Tensor:
    """Return a number, or a tensor of no dimensions, in the type of the tensor that it is written to.

    Raises:
        DTypeError: for a number that the type cannot hold (``MT202``).
    """
    if isinstance(value, PYTHON_NUMBERS):
        return number(fitting(name, value, x.dtype), x.dtype)
    filling = operand(value)
    if filling.ndim:
        raise ShapeError("MT201", f"{name}: the value is one number, not {filling.spec}", fix="use mt.where")
    return to_dtype(filling, x.dtype)


def _same_type(name: str, x: Tensor, source: Tensor) -> None:
    if x.dtype is not source.dtype:
        raise DTypeError(
            "MT202", f"{name}: {source.spec} cannot be written to {x.spec}", fix="convert it: src.to(x.dtype)"
        )


# One index for each element: gather and scatter -----------------------------------------------------------


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the element of a dimension at each position in the index: ``x[index[i, j], j]`` for dim 0.

    Raises:
        IndexError: for a position out of range; none is counted from the end.
        ShapeError: if the index does not fit (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.gather(mt.tensor([[1, 2], [3, 4]]), 1, mt.tensor([[1], [0]]))
        tensor([[2],
                [3]])
    """
    return gathered("gather", input, dim, index)


def _source(name: str, x: Tensor, dim: int, index: Tensor, src: Tensor | Number) -> Tensor:
    """Return the value for each element of the index: the beginning of a tensor, or one number everywhere."""
    if not isinstance(src, Tensor):
        return P.expand(_filling(src, x, name), shape=index.shape)
    _same_type(name, x, src)
    if src.ndim != index.ndim or any(mine > whole for mine, whole in zip(index.shape, src.shape, strict=True)):
        raise ShapeError("MT201", f"{name}: the source {src.spec} has no element for each of the index {index.spec}")
    zeros = (0,) * src.ndim
    return src if src.shape == index.shape else P.slice_(src, start=zeros, stop=index.shape, step=(1,) * src.ndim)


def _also_without_dimensions(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a scatter to take tensors of no dimensions too, as rows of one element, like PyTorch's."""

    @functools.wraps(function)
    def write(input: Tensor, dim: int, index: Tensor, *args: Any, **options: Any) -> Tensor:
        if input.ndim:
            return function(input, dim, index, *args, **options)
        line = [ravel(each) if isinstance(each, Tensor) else each for each in args]
        options = {name: ravel(each) if isinstance(each, Tensor) else each for name, each in options.items()}
        return P.reshape(function(ravel(input), dim, ravel(index), *line, **options), shape=())

    return write


@_also_without_dimensions
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
) -> Tensor:
    """Return a copy with `src` written where the index says: ``y[index[i, j], j] = src[i, j]`` for dim 0.

    `src` may be one number, then also called `value`. Of equal positions, the last one wins; with ``reduce="add"``, all
    are added to the present value (``"multiply"``, which PyTorch has too, is not supported).

    Raises:
        ShapeError: if the index or the source does not fit (``MT201``).
        ValueError: for another `reduce`.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2, 3).scatter(1, mt.tensor([[2], [0]]), 1.0)
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """
    if reduce not in (None, "add"):
        raise ValueError(f"scatter: reduce is None or 'add', not {reduce!r}")
    src = value if src is None else src
    if src is None:
        raise TypeError("scatter: what is written is missing; give src or value")
    dim = wrap_dim(dim, input.ndim)
    write = P.scatter if reduce is None else P.scatter_add
    return write(input, _source("scatter", input, dim, index, src), *coordinates("scatter", input, dim, index))


@_also_without_dimensions
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy with the elements of `src` added where the index says; those at the same position add up.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(3).scatter_add(0, mt.tensor([0, 2, 0]), mt.tensor([1.0, 2.0, 4.0]))
        tensor([5., 0., 2.])
    """
    dim = wrap_dim(dim, input.ndim)
    return P.scatter_add(
        input, _source("scatter_add", input, dim, index, src), *coordinates("scatter_add", input, dim, index)
    )


@_also_without_dimensions
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy in which all elements of `src` with one position are reduced to one, with the present value.

    Each position is compared with each element of the index in its line.

    Args:
        input: the present values.
        dim: the dimension in which the index counts.
        index: the positions, as long as the input in other dimensions.
        src: the new elements.
        reduce: ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
        include_self: whether the present value takes part where there is a new one.

    Example:
        >>> import minitorch as mt
        >>> mt.ones(3).scatter_reduce(0, mt.tensor([0, 0, 2]), mt.tensor([2.0, 5.0, -1.0]), "amax")
        tensor([5., 1., 1.])
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ValueError(f"scatter_reduce: reduce is sum, prod, mean, amax or amin, not {reduce!r}")
    axis = wrap_dim(dim, input.ndim)
    if index.movedim(axis, 0).shape[1:] != input.movedim(axis, 0).shape[1:]:
        raise ShapeError(
            "MT201",
            f"scatter_reduce: the index {index.spec} is not as long as {input.spec} in dimensions other than {dim}",
            fix="expand the index",
        )
    source = _source("scatter_reduce", input, axis, index, src).movedim(axis, -1).unsqueeze(-2)
    places = P.iota(size=input.shape[axis], dtype=int64).unsqueeze(-1)
    hit = existing("scatter_reduce", index, input.shape[axis]).movedim(axis, -1).unsqueeze(-2) == places
    hit = P.concatenate(~hit.any(-1, keepdim=True) | include_self, hit, dim=input.ndim)
    values = P.concatenate(input.movedim(axis, -1).unsqueeze(-1), source.expand(hit[..., 1:].shape), dim=input.ndim)
    if reduce in ("amax", "amin"):
        other: Any = math.inf if reduce == "amin" else -math.inf
        if not values.is_floating_point():
            other = values.max() if reduce == "amin" else values.min()
        result = getattr(values.where(hit, other), reduce)(-1)
    else:
        result = values.where(hit, reduce == "prod")
        result = result.prod(-1, dtype=input.dtype) if reduce == "prod" else result.sum(-1, dtype=input.dtype)
    if reduce == "mean":
        count = to_dtype(hit.sum(-1), input.dtype)
        result = result / count if input.is_floating_point() else result.div(count, rounding_mode="floor")
    return contiguous(result.movedim(-1, axis))


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Gather as `gather`, but the other dimensions broadcast; without a dimension, from all elements in a row.

    In a named dimension, negative positions count from its end.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([[3, 1, 2]])
        >>> mt.take_along_dim(x, x.argsort(), 1)
        tensor([[1, 2, 3]])
    """
    if dim is None:
        return P.gather(ravel(input), existing("take_along_dim", ravel(indices), input.numel()))
    dim = wrap_dim(dim, input.ndim)
    if input.ndim != indices.ndim:
        raise ShapeError("MT201", f"take_along_dim: {input.spec} and indices {indices.spec} differ in dimensions")
    widths = (input.shape[dim], indices.shape[dim])
    shared, _ = broadcast_tensors(
        part(input, dim, 0, smaller(1, widths[0])), part(indices, dim, 0, smaller(1, widths[1]))
    )
    shapes = [(*shared.shape[:dim], width, *shared.shape[dim + 1 :]) for width in widths]
    sides = P.expand(input, shape=shapes[0]), P.expand(indices, shape=shapes[1])
    return gathered("take_along_dim", sides[0], dim, sides[1], from_end=True)


def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements at positions in the row of all elements, shaped as the index; negative ones from the end.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 2], [3, 4]]).take(mt.tensor([0, 3]))
        tensor([1, 4])
    """
    return P.gather(ravel(input), existing("take", index, input.numel(), from_end=True))


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write, or add, elements at positions in the row of all elements; negative ones count from the end.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 2], [3, 4]]).put(mt.tensor([0, 3]), mt.tensor([7, 8]))
        tensor([[7, 2],
                [3, 8]])
    """
    _same_type("put", input, source)
    if index.numel() != source.numel():
        raise ShapeError("MT201", f"put: the index is {index.spec}, the source {source.spec}")
    places = existing("put", ravel(index), input.numel(), from_end=True)
    write = P.scatter_add if accumulate else P.scatter
    return P.reshape(write(ravel(input), ravel(source), places), shape=input.shape)


# One index for each slice ---------------------------------------------------------------------------------


def _front(x: Tensor, dim: int) -> tuple[int, ...]:
    """Return the dimensions with one moved to the front."""
    return (dim, *(axis for axis in range(x.ndim) if axis != dim))


def _line(name: str, index: Tensor) -> Tensor:
    if index.ndim > 1:
        raise IndexError(f"{name}: the index has one dimension, not {index.spec}")
    return ravel(index)


def _of_slices(name: str, x: Tensor, dim: int, index: Tensor, from_end: bool = False) -> Tensor:
    return existing(name, index, x.shape[dim] if x.ndim else 1, from_end)


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices at some positions of a dimension, in that order.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 2, 3], [4, 5, 6]]).index_select(1, mt.tensor([2, 0]))
        tensor([[3, 1],
                [6, 4]])
    """
    dim, index = wrap_dim(dim, input.ndim), _line("index_select", index)
    if not input.ndim and index.shape != (1,):
        raise ShapeError("MT201", f"index_select: of {input.spec} there is one slice, and the index is {index.spec}")
    index = _of_slices("index_select", input, dim, index)
    if not input.ndim:
        return P.reshape(P.gather(ravel(input), index), shape=())
    order = _front(input, dim)
    taken = P.gather(P.permute(input, dims=order) if dim else input, index)
    return contiguous(P.permute(taken, dims=inverse_permutation(order))) if dim else taken


def _write_slices(name: str, write: Any, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    dim, index = wrap_dim(dim, x.ndim), _line(name, index)
    _same_type(name, x, source)
    order = _front(x, dim)
    if source.ndim:
        source = movedim(source, dim, 0)
    shape = index.shape + tuple(x.shape[axis] for axis in order[1:])
    if source.ndim and source.shape != shape:
        raise ShapeError(
            "MT201", f"{name}: the source {source.spec} does not fit {len(shape)} dimensions {list(shape)}"
        )
    index = _of_slices(name, x, dim, index, from_end=name == "index_fill")
    written = write(P.permute(x, dims=order), P.expand(source, shape=shape), index)
    return contiguous(P.permute(written, dims=inverse_permutation(order)))


@_also_without_dimensions
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
    """Return a copy with the slices of `source`, times `alpha`, added at some positions of a dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(3, 2).index_add(0, mt.tensor([0, 2, 0]), mt.ones(3, 2))
        tensor([[2., 2.],
                [0., 0.],
                [1., 1.]])
    """
    if not equals(alpha, 1):
        source = P.mul(source, _filling(alpha, source, "index_add"))
    return _write_slices("index_add", P.scatter_add, input, dim, index, source)


@_also_without_dimensions
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy with the slices of `source` written at some positions of a dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(3).index_copy(0, mt.tensor([2, 0]), mt.tensor([1.0, 2.0]))
        tensor([2., 0., 1.])
    """
    return _write_slices("index_copy", P.scatter, input, dim, index, source)


@_also_without_dimensions
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | Number) -> Tensor:
    """Return a copy with one number in all slices at some positions of a dimension; negative ones from the end.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(3).index_fill(0, mt.tensor([2, 0]), 5)
        tensor([5., 0., 5.])
    """
    return _write_slices("index_fill", P.scatter, input, dim, index, _filling(value, input, "index_fill"))


# Masks ----------------------------------------------------------------------------------------------------


def _require_mask(name: str, mask: Tensor) -> None:
    if mask.dtype is not bool_:
        raise DTypeError("MT202", f"{name}: the mask is {mask.spec}, not bool", fix="compare: x != 0")


def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """Return one number where a mask holds, the tensor elsewhere; mask and tensor broadcast.

    Raises:
        DTypeError: if the mask is not bool (``MT202``).

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([1.0, -1.0])
        >>> x.masked_fill(x < 0, 0.0)
        tensor([1., 0.])
    """
    _require_mask("masked_fill", mask)
    return P.where(mask, _filling(value, input, "masked_fill"), input)


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements where a mask holds, in a row; mask and tensor broadcast.

    Raises:
        DTypeError: if the mask is not bool (``MT202``).
        TracedValueError: while a graph is recorded: the shape depends on data (``MT103``).

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([[1, 2], [3, 4]])
        >>> x.masked_select(x > 1)
        tensor([2, 3, 4])
    """
    _require_mask("masked_select", mask)
    return getitem(*broadcast_tensors(input, mask))


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the positions of the elements that are not zero: a row for each, or one tensor for each dimension.

    Raises:
        TracedValueError: while a graph is recorded: the shape depends on data (``MT103``).

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[0, 1], [2, 0]]).nonzero()
        tensor([[0, 1],
                [1, 0]])
    """
    array = concrete(input, "nonzero", "MT103", MASK_FIX)
    if as_tuple:
        return tuple([from_array(np.ascontiguousarray(at)) for at in np.nonzero(np.atleast_1d(array))])
    return from_array(np.ascontiguousarray(np.argwhere(array)))


def argwhere(input: Tensor) -> Tensor:
    """Return the positions of the elements that are not zero, a row for each.

    Example:
        >>> import minitorch as mt
        >>> mt.argwhere(mt.tensor([[0, 5], [7, 0]]))
        tensor([[0, 1],
                [1, 0]])
    """
    positions: Tensor = nonzero(input)
    return positions
