"""Running sums and products along a dimension."""

from __future__ import annotations

from typing import Any

from .. import primitives as P
from ..tensor import Tensor
from .operands import operand, wrap_dim
from .reductions import accumulated

__all__ = ["cumprod", "cumsum"]
METHODS = tuple(__all__)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The sum of the elements up to and including each one; of integers and bools in int64.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1, 2, 3]).cumsum(0)
        tensor([1, 3, 6])
    """
    x = accumulated(operand(input), dtype)
    axis = wrap_dim(dim, x.ndim)
    return P.cumsum(x, dim=axis) if x.ndim else P.cast(x, dtype=x.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The product of the elements up to and including each one; of integers and bools in int64.

    In ``log2(n)`` steps (Hillis and Steele, "Data parallel algorithms", 1986): after the step that multiplies by the
    products 2**k places back, each element is the product of the last ``2**(k+1)``. The gradient is right at zeros.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1, 2, 3, 4]).cumprod(0)
        tensor([ 1,  2,  6, 24])
    """
    x = accumulated(operand(input), dtype)
    axis = wrap_dim(dim, x.ndim)
    if x.ndim == 0:
        return P.cast(x, dtype=x.dtype)
    distance = 1
    while distance < x.shape[axis]:
        x = P.mul(x, _moved(x, axis, distance))
        distance *= 2
    return x if distance > 1 else P.cast(x, dtype=x.dtype)


def _moved(x: Tensor, axis: int, by: int) -> Tensor:
    """The elements moved on along a dimension, with ones coming in."""
    stop = tuple(length - by if each == axis else length for each, length in enumerate(x.shape))
    kept = P.slice_(x, start=(0,) * x.ndim, stop=stop, step=(1,) * x.ndim)
    return P.pad(kept, padding=tuple((by if each == axis else 0, 0, 0) for each in range(x.ndim)), value=1)
