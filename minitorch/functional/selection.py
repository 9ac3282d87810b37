"""One operand or the other, element by element: maximum, minimum, clamp, where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import primitives as P
from ..dtypes import bool_
from ..errors import DTypeError
from ..tensor import Tensor
from .operands import Operand, operand, promote, promote_all

__all__ = ["clamp", "clamp_max", "clamp_min", "clip", "fmax", "fmin", "maximum", "minimum", "where"]
METHODS = tuple(name for name in __all__ if name != "where")


def maximum(input: Operand, other: Operand) -> Tensor:
    """The larger of two operands, NaN if either is; equal ones share the gradient.

    Example:
        >>> import minitorch as mt
        >>> mt.maximum(mt.tensor([1.0, 5.0]), mt.tensor([3.0, 2.0]))
        tensor([3., 5.])
    """
    return P.maximum(*promote(input, other))


def minimum(input: Operand, other: Operand) -> Tensor:
    """The smaller of two operands, NaN if either is; equal ones share the gradient.

    Example:
        >>> import minitorch as mt
        >>> mt.minimum(mt.tensor([1, 5]), 3)
        tensor([1, 3])
    """
    a, b = promote(input, other)
    # Unlike minus, the complement has a result for every integer.
    mirror = P.neg if a.dtype.is_floating_point else P.bitwise_not
    return mirror(P.maximum(mirror(a), mirror(b)))


def _number_wins(compare: Callable[[Operand, Operand], Tensor], a: Tensor, b: Tensor) -> Tensor:
    return P.where(P.equal(a, a), P.where(P.equal(b, b), compare(a, b), a), b)


def fmax(input: Operand, other: Operand) -> Tensor:
    """The larger of two operands, the other one if one is NaN.

    Example:
        >>> import minitorch as mt
        >>> mt.fmax(mt.tensor([1.0, float("nan")]), mt.tensor([3.0, 2.0]))
        tensor([3., 2.])
    """
    return _number_wins(maximum, *promote(input, other))


def fmin(input: Operand, other: Operand) -> Tensor:
    """The smaller of two operands, the other one if one is NaN.

    Example:
        >>> import minitorch as mt
        >>> mt.fmin(mt.tensor([1.0, float("nan")]), mt.tensor([3.0, 2.0]))
        tensor([1., 2.])
    """
    return _number_wins(minimum, *promote(input, other))


def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """The numbers moved into the range from `min` to `max`; the gradient passes where they were inside, or on its edge.

    Args:
        input: the tensor.
        min: a number or a tensor, or None for no lower bound.
        max: the same for the upper bound, which wins if the lower one is above it.

    Example:
        >>> import minitorch as mt
        >>> mt.clamp(mt.tensor([-2.0, 0.5, 2.0]), min=-1, max=1)
        tensor([-1.0000,  0.5000,  1.0000])
    """
    bounds = [bound for bound in (min, max) if bound is not None]
    if not bounds:
        raise ValueError("clamp needs min, max or both")
    x, *limits = promote_all(input, *bounds)
    if min is not None:
        x = P.where(P.less(x, limits[0]), limits[0], x)
    return x if max is None else P.where(P.less(limits[-1], x), limits[-1], x)


def clamp_min(input: Tensor, min: Operand) -> Tensor:
    """``clamp(input, min=min)``."""
    return clamp(input, min=min)


def clamp_max(input: Tensor, max: Operand) -> Tensor:
    """``clamp(input, max=max)``."""
    return clamp(input, max=max)


def where(condition: Tensor, input: Operand, other: Operand) -> Tensor:
    """The first operand where the condition holds, the second elsewhere.

    Both are computed everywhere: a NaN or infinity in the *gradient* of the one not chosen still spreads, so make
    its argument harmless first, e.g. ``where(x > 0, sqrt(where(x > 0, x, 1)), 0)``.

    Raises:
        DTypeError: ``MT202`` if the condition is not of type bool.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([-1.0, 2.0])
        >>> mt.where(x > 0, x, 0.0)
        tensor([0., 2.])
    """
    condition = operand(condition)
    if condition.dtype is not bool_:
        raise DTypeError("MT202", f"where: the condition is {condition.spec}, not bool", fix="compare: x != 0")
    return P.where(condition, *promote(input, other))


clip = clamp

# As a method, the tensor is the first choice: x.where(condition, other).
OPERATORS: dict[str, Callable[..., Any]] = {
    "where": lambda self, condition, other: where(condition, self, other),
}
