"""Mean, variance and standard deviation. They need a float type, and are computed in float32 for the 16-bit types.

A standard deviation is computed in float64, as in PyTorch: in float32 the squares of deviations near 1e-30 are 0, and
those of deviations near 1e20 infinite.
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ... import primitives as P
from ...sizes import larger
from ...tensor import Tensor
from ..operands import Number, like, operand, to_dtype, widen
from ..options import real, require_float
from .reductions import Dims, element_count, kept_shape, nansum, reduce, reduced_dims, root, sum


def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean of the elements; NaN of none.

    Raises:
        DTypeError: ``MT202`` for integers: choose a float type with `dtype`.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1.0, 2.0], [3.0, 4.0]]).mean(dim=0)
        tensor([2., 3.])
    """
    x = operand(input) if dtype is None else to_dtype(operand(input), dtypes.as_dtype(dtype))
    require_float(x, "mean")
    dims = reduced_dims(x, dim)
    total = reduce(P.reduce_sum, widen(x), dims, keepdim)
    return to_dtype(P.div(total, like(element_count(x, dims), total)), x.dtype)


def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean of the elements that are not NaN.

    Example:
        >>> import minitorch as mt
        >>> mt.nanmean(mt.tensor([1.0, float("nan"), 3.0]))
        tensor(2.)
    """
    x = operand(input) if dtype is None else to_dtype(operand(input), dtypes.as_dtype(dtype))
    require_float(x, "nanmean")
    return P.div(nansum(x, dim, keepdim), sum(P.cast(P.equal(x, x), dtype=x.dtype), dim, keepdim))


def _moments(x: Tensor, dims: tuple[int, ...], correction: Number, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Return variance and mean, in two passes: squares of small differences, not a small difference of squares."""
    count = element_count(x, dims)
    center = P.div(reduce(P.reduce_sum, x, dims, True), like(count, x))
    deviation = P.sub(x, center)
    squares = reduce(P.reduce_sum, P.mul(deviation, deviation), dims, keepdim)
    shape = kept_shape(x.shape, dims) if keepdim else squares.shape
    return P.div(squares, like(larger(0, count - correction), x)), P.reshape(center, shape=shape)


def _wide_moments(
    name: str, input: Tensor, dim: Dims, unbiased: bool, keepdim: bool, correction: Number | None
) -> tuple[Tensor, Tensor]:
    """Return variance and mean for the arguments of `var`; of 16-bit floats in float32, for a root in float64."""
    if isinstance(dim, bool):  # PyTorch's short form var(x, False)
        unbiased = dim
        dim = None
    x = operand(input)
    require_float(x, name)
    if correction is not None:
        real(f"{name}: the correction", correction)
    x = to_dtype(x, dtypes.float64) if name == "std" and x.dtype is not dtypes.float16 else widen(x)
    return _moments(x, reduced_dims(x, dim), int(unbiased) if correction is None else correction, keepdim)


def var_mean(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> tuple[Tensor, Tensor]:
    """Return variance and mean together; the arguments are those of `var`.

    Example:
        >>> import minitorch as mt
        >>> mt.var_mean(mt.tensor([1.0, 2.0, 3.0]))
        (tensor(1.), tensor(2.))
    """
    variance, center = _wide_moments("var", input, dim, unbiased, keepdim, correction)
    return to_dtype(variance, input.dtype), to_dtype(center, input.dtype)


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> Tensor:
    """Return the variance: the squares of the deviations from the mean, summed and divided by ``count - correction``.

    Args:
        input: the tensor, of a float type.
        dim: the dimension or dimensions to reduce; all by default.
        unbiased: False for a correction of 0.
        keepdim: whether they stay, with length 1.
        correction: subtracted from the number of elements; by default 1 (Bessel's correction).

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([1.0, 2.0, 3.0, 4.0])
        >>> x.var(), x.var(correction=0)
        (tensor(1.6667), tensor(1.2500))
    """
    return var_mean(input, dim, unbiased, keepdim, correction=correction)[0]


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> Tensor:
    """Return the standard deviation, the square root of `var` (same arguments); where it is 0, so is its gradient.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1.0, 2.0, 3.0]).std()
        tensor(1.)
    """
    return std_mean(input, dim, unbiased, keepdim, correction=correction)[0]


def std_mean(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> tuple[Tensor, Tensor]:
    """Return standard deviation and mean together; the arguments are those of `var`.

    Example:
        >>> import minitorch as mt
        >>> mt.std_mean(mt.tensor([1.0, 2.0, 3.0]))
        (tensor(1.), tensor(2.))
    """
    variance, center = _wide_moments("std", input, dim, unbiased, keepdim, correction)
    return to_dtype(root(variance), input.dtype), to_dtype(center, input.dtype)
