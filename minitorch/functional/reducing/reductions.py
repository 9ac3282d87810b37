"""Reductions to a sum, a product, a truth value or a length, over all dimensions, some, or one.

`dim` is an int, may be negative, and where PyTorch allows it a tuple; None (and an empty tuple) stands for all
dimensions. Means are in `statistics`, largest elements in `extremes`. `softmax` divides by a sum, and `cumsum`
keeps those up to each element.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ... import primitives as P
from ...autograd import no_grad
from ...dtypes import DType
from ...interpreters import handled
from ...ir import Shape
from ...tensor import Tensor, share
from ..operands import as_float, like, operand, promote_all, to_dtype, widen, widened
from ..options import require_float, require_tensor, wrap_dim, wrap_dims

__all__ = [
    "all", "any", "count_nonzero", "cumprod", "cumsum", "diff", "log_softmax", "logsumexp", "nansum", "norm", "prod",
    "softmax", "sum",
]  # fmt: skip

Dims = int | Sequence[int] | None


# Shapes -----------------------------------------------------------------------------------------------------


def reduced_dims(x: Tensor, dim: Dims) -> tuple[int, ...]:
    """Return the dimensions to reduce; of a 0-dimensional tensor, none."""
    return wrap_dims(None if dim is None or dim == () or dim == [] else dim, x.ndim)


def kept_shape(shape: Shape, dims: tuple[int, ...]) -> Shape:
    return tuple([1 if axis in dims else length for axis, length in enumerate(shape)])


def reduce(primitive: P.Primitive, x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Reduce, keeping the reduced dimensions as length 1 if asked for."""
    result = primitive(x, dims=dims)
    return P.reshape(result, shape=kept_shape(x.shape, dims)) if keepdim and dims else result


def element_count(x: Tensor, dims: tuple[int, ...]) -> int:
    return math.prod([x.shape[axis] for axis in dims])


def need_elements(name: str, x: Tensor, dims: tuple[int, ...]) -> None:
    if element_count(x, dims) == 0:
        raise IndexError(f"{name} of no elements: {x.spec} has none along dim={dims}; give a dim that has some")


# Sums -------------------------------------------------------------------------------------------------------


def accumulated(x: Tensor, dtype: Any) -> Tensor:
    """Return the type that sums and products are formed in: int64 for integers and bools."""
    if dtype is not None:
        return to_dtype(x, dtypes.as_dtype(dtype))
    return x if x.dtype.is_floating_point else to_dtype(x, dtypes.int64)


def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum of the elements; of integers and bools in int64.

    Args:
        input: the tensor.
        dim: the dimension or dimensions to sum over; all by default.
        keepdim: whether they stay, with length 1.
        dtype: the type to convert to before summing.

    Raises:
        IndexError: if there is no such dimension.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([[1, 2], [3, 4]])
        >>> x.sum(), x.sum(0), x.sum(dim=-1, keepdim=True)
        (tensor(10), tensor([4, 6]), tensor([[3],
                [7]]))
    """
    x = accumulated(operand(input), dtype)
    return reduce(P.reduce_sum, x, reduced_dims(x, dim), keepdim)


def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum of the elements that are not NaN.

    Example:
        >>> import minitorch as mt
        >>> mt.nansum(mt.tensor([1.0, float("nan"), 3.0]))
        tensor(4.)
    """
    x = operand(input)
    return sum(P.where(P.equal(x, x), x, like(0, x)), dim, keepdim, dtype=dtype)


@handled
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the product of the elements; of integers and bools in int64.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 2], [3, 4]]).prod(), mt.tensor([[1, 2], [3, 4]]).prod(0)
        (tensor(24), tensor([3, 8]))
    """
    x = accumulated(operand(input), dtype)
    return reduce(P.reduce_prod, x, reduced_dims(x, dim), keepdim)


def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """Return the number of elements other than 0.

    Example:
        >>> import minitorch as mt
        >>> mt.count_nonzero(mt.tensor([0, 3, 4]))
        tensor(2)
    """
    return sum(to_dtype(operand(input), dtypes.bool_), dim)


# Any and all ------------------------------------------------------------------------------------------------


def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return whether any element is other than 0; 0 or 1 for a tensor of uint8, as in PyTorch.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[True, False], [False, False]]).any(dim=1)
        tensor([ True, False])
    """
    return _truth(input, reduce(P.reduce_max, to_dtype(input, dtypes.bool_), reduced_dims(input, dim), keepdim))


def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return whether all elements are other than 0; 0 or 1 for a tensor of uint8, as in PyTorch.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1, 2, 0]).all()
        tensor(False)
    """
    false = P.bitwise_not(to_dtype(input, dtypes.bool_))
    return _truth(input, P.bitwise_not(reduce(P.reduce_max, false, reduced_dims(input, dim), keepdim)))


def _truth(x: Tensor, truth: Tensor) -> Tensor:
    """Return a truth value in uint8 for uint8, which once stored bools."""
    return to_dtype(truth, dtypes.uint8) if x.dtype is dtypes.uint8 else truth


# Exponentials and lengths -----------------------------------------------------------------------------------


def logsumexp(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return ``log(sum(exp(input)))``, without overflow on the way.

    The largest element is subtracted first; it is a constant to the gradient, since the result does not depend on it. A
    row of -inf gives -inf.

    Example:
        >>> import minitorch as mt
        >>> mt.logsumexp(mt.tensor([1000.0, 1000.0]), dim=0)
        tensor(1000.6932)
    """
    given = as_float(input)
    x, dims = widen(given), reduced_dims(given, dim)
    with no_grad():
        largest = reduce(P.reduce_max, x, dims, True)
        finite = P.less(P.absolute(largest), like(math.inf, x))
        largest = P.where(finite, largest, like(0, x))
    total = reduce(P.reduce_sum, P.exp(P.sub(x, largest)), dims, keepdim)
    return to_dtype(P.add(P.log(total), P.reshape(largest, shape=total.shape)), given.dtype)


def norm(
    input: Tensor, p: float | str = "fro", dim: Dims = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Return the p-norm of the elements as one vector: ``sum(|x|**p) ** (1/p)``.

    Args:
        input: the tensor, of a float type.
        p: a number; ``"fro"`` for 2, ``inf`` and ``-inf`` for the largest and smallest magnitude, 0 for the number of
            elements that are not 0.
        dim: the dimension or dimensions to reduce; all by default.
        keepdim: whether they stay, with length 1.
        dtype: the type to convert to first.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([3.0, -4.0]).norm(), mt.tensor([3.0, -4.0]).norm(p=1)
        (tensor(5.), tensor(7.))
    """
    x = operand(input) if dtype is None else to_dtype(operand(input), dtypes.as_dtype(dtype))
    require_float(x, "norm")
    if isinstance(p, str) and p != "fro":
        raise ValueError(f"norm: p is a number or 'fro', not {p!r}; matrix norms are not among these")
    order = 2.0 if isinstance(p, str) else float(p)
    return to_dtype(_norm(widen(x), order, dim, keepdim), x.dtype)


def _norm(x: Tensor, p: float, dim: Dims, keepdim: bool) -> Tensor:
    if p == 0:
        return to_dtype(sum(P.bitwise_not(P.equal(x, like(0, x))), dim, keepdim), x.dtype)
    if p == 2:
        return root(sum(P.mul(x, x), dim, keepdim))
    size = P.absolute(x)
    if p == 1:
        return sum(size, dim, keepdim)
    if math.isinf(p):
        dims = reduced_dims(x, dim)
        need_elements("norm", x, dims)
        side = P.neg if p < 0 else lambda y: y
        return side(reduce(P.reduce_max, side(size), dims, keepdim))
    if p > 1:
        return root(sum(P.power(size, like(p, x)), dim, keepdim), p)
    # Below 1, the slope of a power is infinite at 0; an element there has the gradient 0, as in PyTorch.
    missing = P.equal(x, like(0, x))
    powers = P.power(P.where(missing, like(1, x), size), like(p, x))
    return root(sum(P.where(missing, like(0 if p > 0 else math.inf, x), powers), dim, keepdim), p)


def root(total: Tensor, p: float = 2) -> Tensor:
    """Return the p-th root of a sum of powers, with the gradient 0 at 0, as in PyTorch."""
    zero = P.equal(total, like(0, total))
    safe = P.where(zero, like(1, total), total)
    root = P.sqrt(safe) if p == 2 else P.power(safe, like(1 / p, safe))
    return P.where(zero, total, root)


# Running sums and products -------------------------------------------------------------------------------


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


def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return each element less the one before it, `n` times over; of bools, whether they differ.

    `prepend` and `append` stand before and behind the elements.

    Example:
        >>> import minitorch as mt
        >>> mt.diff(mt.tensor([1, 3, 2]))
        tensor([ 2, -1])
    """
    axis = wrap_dim(dim, input.ndim)
    x = P.concatenate(*promote_all(*[each for each in (prepend, input, append) if each is not None]), dim=axis)
    for _ in range(min(n, x.shape[axis])):
        after, before = x.narrow(axis, 1, x.shape[axis] - 1), x.narrow(axis, 0, x.shape[axis] - 1)
        x = after ^ before if x.dtype is dtypes.bool_ else after - before
    return x


# Softmax ------------------------------------------------------------------------------------------------


def _less_its_largest(x: Tensor, dims: tuple[int, ...], kept: tuple[int, ...]) -> Tensor:
    """Return x - max(x), so that nothing overflows. The result does not depend on the shift, so it has no gradient."""
    return P.sub(x, P.reshape(P.reduce_max(share(x), dims=dims), shape=kept))


@widened
def _softmax(x: Tensor, *, dims: tuple[int, ...], kept: tuple[int, ...]) -> Tensor:
    exponentials = P.exp(_less_its_largest(x, dims, kept))
    return P.div(exponentials, P.reshape(P.reduce_sum(exponentials, dims=dims), shape=kept))


@widened
def _log_softmax(x: Tensor, *, dims: tuple[int, ...], kept: tuple[int, ...]) -> Tensor:
    shifted = _less_its_largest(x, dims, kept)
    return P.sub(shifted, P.log(P.reshape(P.reduce_sum(P.exp(shifted), dims=dims), shape=kept)))


def _prepared(
    input: Tensor, dim: int | None, dtype: DType | None, name: str
) -> tuple[Tensor, dict[str, tuple[int, ...]]]:
    require_tensor(name, "input", input)
    x = input if dtype is None else to_dtype(input, dtypes.as_dtype(dtype))
    require_float(x, name)
    if dim is None:
        dim = int(x.ndim not in (0, 1, 3))
        warnings.warn(f"{name} over dim={dim}, by PyTorch's rule for {x.ndim} dimensions: say which", stacklevel=4)
    dims = wrap_dims(dim, x.ndim)
    return x, {"dims": dims, "kept": kept_shape(x.shape, dims)}


def softmax(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """Return ``e**x``, divided by its sum over a dimension: positive numbers that add up to 1.

    Args:
        input: scores, of a float type.
        dim: the dimension to sum over; by default, with a warning, 0 for 1 or 3 dimensions, else 1.
        dtype: convert to this type first.

    A row of nothing but -inf gives NaN, as in PyTorch.

    Example:
        >>> import minitorch as mt
        >>> mt.softmax(mt.tensor([[1000.0, 1000.0], [0.0, float("-inf")]]), dim=1)
        tensor([[0.5000, 0.5000],
                [1.0000, 0.0000]])
    """
    x, over = _prepared(input, dim, dtype, "softmax")
    return _softmax(x, **over)


def log_softmax(input: Tensor, dim: int | None = None, dtype: DType | None = None) -> Tensor:
    """Return the logarithm of `softmax`, exact also where the softmax is too small for a float.

    Args:
        input: scores, of a float type.
        dim: the dimension to sum over; by default, with a warning, 0 for 1 or 3 dimensions, else 1.
        dtype: convert to this type first.

    Example:
        >>> import minitorch as mt
        >>> mt.log_softmax(mt.tensor([0.0, 1000.0]), dim=0)
        tensor([-1000.,     0.])
    """
    x, over = _prepared(input, dim, dtype, "log_softmax")
    return _log_softmax(x, **over)
