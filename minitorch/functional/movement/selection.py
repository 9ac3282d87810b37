"""Selection of one operand or the other, element by element: maximum, minimum, clamp, where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import primitives as P
from ...dtypes import bool_
from ...errors import DTypeError
from ...primitives.elementwise import scalar
from ...tensor import Tensor, share
from ..operands import Operand, operand, promote, stored_alike
from ..options import require_tensor


def maximum(input: Operand, other: Operand) -> Tensor:
    """Return the larger of two operands, NaN if either is; equal ones share the gradient.

    Example:
        >>> import minitorch as mt
        >>> mt.maximum(mt.tensor([1.0, 5.0]), mt.tensor([3.0, 2.0]))
        tensor([3., 5.])
    """
    return P.maximum(*promote(input, other))


def minimum(input: Operand, other: Operand) -> Tensor:
    """Return the smaller of two operands, NaN if either is; equal ones share the gradient.

    Example:
        >>> import minitorch as mt
        >>> mt.minimum(mt.tensor([1, 5]), 3)
        tensor([1, 3])
    """
    a, b = promote(input, other)
    # Unlike minus, the complement has a result for every integer.
    mirror = P.neg if a.dtype.is_floating_point else P.bitwise_not
    return mirror(P.maximum(mirror(a), mirror(b)))


def _chosen(is_better: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return the first operand where it is better, or the second one is NaN."""
    return P.where(P.bitwise_or(is_better, P.bitwise_not(P.equal(b, b))), a, b)


def fmax(input: Operand, other: Operand) -> Tensor:
    """Return the larger of two operands, the other one if one is NaN; of equal ones the first has the gradient.

    Example:
        >>> import minitorch as mt
        >>> mt.fmax(mt.tensor([1.0, float("nan")]), mt.tensor([3.0, 2.0]))
        tensor([3., 2.])
    """
    a, b = promote(input, other)
    return _chosen(P.less_equal(b, a), a, b)


def fmin(input: Operand, other: Operand) -> Tensor:
    """Return the smaller of two operands, the other one if one is NaN; of equal ones the first has the gradient.

    Example:
        >>> import minitorch as mt
        >>> mt.fmin(mt.tensor([1.0, float("nan")]), mt.tensor([3.0, 2.0]))
        tensor([1., 2.])
    """
    a, b = promote(input, other)
    return _chosen(P.less_equal(a, b), a, b)


def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Limit the numbers to the range from `min` to `max`; the gradient passes where they were inside, or on its edge.

    Args:
        input: the tensor.
        min: a number or a tensor, or None for no lower bound.
        max: the same for the upper bound, which wins if the lower one is above it.

    A NaN, in the tensor or as a bound, gives NaN, without a gradient to the tensor.

    Example:
        >>> import minitorch as mt
        >>> mt.clamp(mt.tensor([-2.0, 0.5, 2.0]), min=-1, max=1)
        tensor([-1.0000,  0.5000,  1.0000])
    """
    bounds = [bound for bound in (min, max) if bound is not None]
    if not bounds:
        raise ValueError("clamp needs min, max or both")
    x, *limits = stored_alike("clamp", input, *bounds)
    low, high = None if min is None else limits[0], None if max is None else limits[-1]
    y = x
    # A number inside (NaN is not) passes with its gradient; elsewhere the bound, or NaN, passes without one.
    if low is not None:
        y = P.where(P.less_equal(low, y), y, P.maximum(share(low), share(y)))
    if high is not None:
        y = P.where(P.less_equal(y, high), y, minimum(share(high), share(y)))
    return _with_gradients_of_bounds(y, x, low, high) if any(bound.requires_grad for bound in limits) else y


def _with_gradients_of_bounds(y: Tensor, x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """Return the bound where it is the result; a lower one only if it is below the upper one, as in PyTorch."""
    if low is not None:
        below = P.less(x, low)
        y = P.where(below if high is None else P.bitwise_and(below, P.less(low, high)), low, y)
    return y if high is None else P.where(P.less(high, x if low is None else P.maximum(x, low)), high, y)


def clamp_min(input: Tensor, min: Operand) -> Tensor:
    """Return ``clamp(input, min=min)``.

    Example:
        >>> import minitorch as mt
        >>> mt.clamp_min(mt.tensor([-2.0, 2.0]), 0)
        tensor([0., 2.])
    """
    return clamp(input, min=min)


def clamp_max(input: Tensor, max: Operand) -> Tensor:
    """Return ``clamp(input, max=max)``.

    Example:
        >>> import minitorch as mt
        >>> mt.clamp_max(mt.tensor([-2.0, 2.0]), 0)
        tensor([-2.,  0.])
    """
    return clamp(input, max=max)


def where(condition: Tensor, input: Operand, other: Operand) -> Tensor:
    """Return the first operand where the condition holds, the second elsewhere.

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
    return P.where(condition, *stored_alike("where", input, other, infinite=True))


def relu(input: Tensor) -> Tensor:
    """Return the larger of x and 0; NaN stays NaN, and the gradient at 0 is 0.

    Example:
        >>> import minitorch as mt
        >>> mt.relu(mt.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    require_tensor("relu", "input", input)
    zero = scalar(0, input)
    return P.where(P.less_equal(input, zero), zero, input)


clip = clamp


def _where(self: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """Return the tensor's elements where the condition holds, the other operand's elsewhere. See `minitorch.where`.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([-1.0, 2.0])
        >>> x.where(x > 0, 0.0)
        tensor([0., 2.])
    """
    return where(condition, self, other)


OPERATORS: dict[str, Callable[..., Any]] = {"where": _where}
