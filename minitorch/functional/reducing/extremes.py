"""Largest and smallest elements, and their positions: max, min, amax, argmax, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import dtypes
from ... import primitives as P
from ...tensor import Tensor
from ..movement.selection import maximum, minimum
from ..operands import operand
from ..options import wrap_dim
from ..pointwise.casting import clone
from .reductions import Dims, kept_shape, need_elements, reduce, reduced_dims


class ValuesAndIndices(NamedTuple):
    """Result of `max` and `min` along a dimension."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """Result of `aminmax`."""

    min: Tensor
    max: Tensor


def _mirrored(x: Tensor) -> Tensor:
    """Map elements to the opposite order: the smallest is now the largest. Mapped twice, x is x again."""
    return P.neg(x) if x.dtype.is_floating_point else P.bitwise_not(x)


def amax(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the largest element, NaN if there is one; equal ones share the gradient.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 5], [7, 2]]).amax(dim=1)
        tensor([5, 7])
    """
    x = operand(input)
    dims = reduced_dims(x, dim)
    need_elements("amax", x, dims)
    return reduce(P.reduce_max, x, dims, keepdim)


def amin(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the smallest element, NaN if there is one; equal ones share the gradient.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 5], [7, 2]]).amin()
        tensor(1)
    """
    x = operand(input)
    dims = reduced_dims(x, dim)
    need_elements("amin", x, dims)
    return _mirrored(reduce(P.reduce_max, _mirrored(x), dims, keepdim))


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """Return the smallest and the largest element.

    Example:
        >>> import minitorch as mt
        >>> mt.aminmax(mt.tensor([3, 1, 2]))
        MinMax(min=tensor(1), max=tensor(3))
    """
    return MinMax(amin(input, dim, keepdim), amax(input, dim, keepdim))


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the position of the largest element, of equal ones the first; without `dim`, in the flattened tensor.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([[1, 5], [7, 2]])
        >>> x.argmax(), x.argmax(dim=1)
        (tensor(2), tensor([1, 0]))
    """
    x = operand(input)
    if dim is None:
        dims = tuple(range(x.ndim))
        flat, axis = P.reshape(x, shape=(x.numel(),)), 0
    else:
        axis = wrap_dim(dim, x.ndim)
        dims = (axis,)
        flat = x if x.ndim else P.reshape(x, shape=(1,))
    need_elements("argmax", flat, (axis,))
    result = P.argmax(flat, dim=axis)
    return P.reshape(result, shape=kept_shape(x.shape, dims)) if keepdim else result


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the position of the smallest element, of equal ones the first; without `dim`, in the flattened tensor.

    Example:
        >>> import minitorch as mt
        >>> mt.argmin(mt.tensor([[1, 5], [7, 2]]), dim=0)
        tensor([0, 1])
    """
    return argmax(_mirrored(operand(input)), dim, keepdim)


def _along(x: Tensor, index: Tensor, axis: int) -> Tensor:
    """Return the element at a position along one dimension: the others are counted out."""
    places = []
    for other in range(x.ndim):
        if other == axis:
            places.append(index)
            continue
        shape = tuple(x.shape[other] if each == other else 1 for each in range(x.ndim) if each != axis)
        count = P.reshape(P.iota(size=x.shape[other], dtype=dtypes.int64), shape=shape)
        places.append(P.expand(count, shape=index.shape))
    return P.gather(x, *places)


def _extreme(name: str, input: Tensor, dim: Any, keepdim: bool, forms: Sequence[Callable[..., Tensor]]) -> Any:
    """Compute `max` or `min` in its three forms: of all elements, along a dimension, and of two tensors."""
    whole, position, pairwise = forms
    x = operand(input)
    if isinstance(dim, Tensor):
        return pairwise(x, dim)
    if dim is None:
        return whole(x)
    axis = wrap_dim(dim, x.ndim)
    if x.ndim == 0:
        return ValuesAndIndices(clone(x), P.constant(value=0, shape=(), dtype=dtypes.int64))
    need_elements(name, x, (axis,))
    indices = position(x, axis)
    values = _along(x, indices, axis)
    if keepdim:
        shape = kept_shape(x.shape, (axis,))
        values, indices = P.reshape(values, shape=shape), P.reshape(indices, shape=shape)
    return ValuesAndIndices(values, indices)


def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """Return the largest element, NaN if there is one. Three forms, as in PyTorch:

    ``max(x)`` of all elements; ``max(x, dim)`` the pair ``(values, indices)`` along a dimension, with the whole
    gradient going to the element at the index; ``max(x, other)`` elementwise, which is `maximum`.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([[1, 5], [7, 2]])
        >>> values, indices = x.max(dim=1)
        >>> x.max(), values, indices
        (tensor(7), tensor([5, 7]), tensor([1, 0]))
    """
    return _extreme("max", input, dim if other is None else other, keepdim, (amax, argmax, maximum))


def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """Return the smallest element, NaN if there is one, in the three forms of `max`.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 5], [7, 2]]).min(dim=0).indices
        tensor([0, 1])
    """
    return _extreme("min", input, dim if other is None else other, keepdim, (amin, argmin, minimum))
