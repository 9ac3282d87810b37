"""Running sums and products along a dimension."""

from __future__ import annotations

from typing import Any

from .. import primitives as P
from ..tensor import Tensor
from .operands import operand, wrap_dim
from .reductions import accumulated


def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the sum of the elements up to and including each one; of integers and bools in int64.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1, 2, 3]).cumsum(0)
        tensor([1, 3, 6])
    """
    x = accumulated(operand(input), dtype)
    axis = wrap_dim(dim, x.ndim)
    return P.cumsum(x, dim=axis) if x.ndim else P.cast(x, dtype=x.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the product of the elements up to and including each one; of integers and bools in int64.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1, 2, 3, 4]).cumprod(0)
        tensor([ 1,  2,  6, 24])
    """
    x = accumulated(operand(input), dtype)
    axis = wrap_dim(dim, x.ndim)
    return P.cumprod(x, dim=axis) if x.ndim else P.cast(x, dtype=x.dtype)
