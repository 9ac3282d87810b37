"""Elementwise formulas of several operands: lerp, addcmul, hypot, logaddexp, ..."""

from __future__ import annotations

from .. import primitives as P
from ..autograd import no_grad
from ..tensor import Tensor
from .arithmetic import add, div, mul
from .formulas import unit_sign
from .operands import Number, Operand, like, promote_floats, widened
from .selection import minimum

__all__ = ["addcdiv", "addcmul", "arctan2", "atan2", "copysign", "hypot", "lerp", "logaddexp", "xlogy"]
METHODS = tuple(__all__)


def lerp(input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """The point between two: ``input + weight * (end - input)``, exactly `end` for weight 1.

    Example:
        >>> import minitorch as mt
        >>> mt.lerp(mt.tensor([0.0, 10.0]), mt.tensor([1.0, 20.0]), 0.25)
        tensor([ 0.2500, 12.5000])
    """
    a, b, w = promote_floats(input, end, weight)
    way, half, one = P.sub(b, a), like(0.5, w), like(1, w)
    near = P.less(P.absolute(w), half)
    return P.where(near, P.add(a, P.mul(w, way)), P.sub(b, P.mul(way, P.sub(one, w))))


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``.

    Example:
        >>> import minitorch as mt
        >>> mt.addcmul(mt.ones(2), mt.tensor([1.0, 2.0]), mt.tensor([3.0, 4.0]), value=2)
        tensor([ 7., 17.])
    """
    product = mul(tensor1, tensor2)
    return add(input, product if value == 1 else mul(product, value))


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``.

    Example:
        >>> import minitorch as mt
        >>> mt.addcdiv(mt.ones(2), mt.tensor([1.0, 2.0]), mt.tensor([2.0, 8.0]), value=4)
        tensor([3., 2.])
    """
    return add(input, div(tensor1 if value == 1 else mul(tensor1, value), tensor2))


def atan2(input: Operand, other: Operand) -> Tensor:
    """The angle in radians of the point with ordinate `input` and abscissa `other`.

    Example:
        >>> import minitorch as mt
        >>> mt.atan2(mt.tensor([1.0, -1.0]), mt.tensor([1.0, -1.0]))
        tensor([ 0.7854, -2.3562])
    """
    return P.atan2(*promote_floats(input, other))


def copysign(input: Operand, other: Operand) -> Tensor:
    """The magnitude of the first operand with the sign of the second, that of -0.0 included.

    Example:
        >>> import minitorch as mt
        >>> mt.copysign(mt.tensor([1.0, 2.0]), mt.tensor([-0.0, 3.0]))
        tensor([-1.,  2.])
    """
    a, b = promote_floats(input, other)
    return P.mul(P.absolute(a), unit_sign(b))


@widened
def _xlogy(x: Tensor, y: Tensor) -> Tensor:
    zero = like(0, x)
    endless = P.bitwise_or(P.less_equal(y, zero), P.equal(y, like(float("inf"), y)))
    return P.mul(x, P.log(P.where(P.bitwise_and(P.equal(x, zero), endless), like(1, y), y)))


def xlogy(input: Operand, other: Operand) -> Tensor:
    """``input * log(other)``, and 0 where `input` is 0, whatever the logarithm; NaN where `other` is NaN.

    Example:
        >>> import minitorch as mt
        >>> mt.xlogy(mt.tensor([0.0, 2.0]), mt.tensor([0.0, 1.0]))
        tensor([0., 0.])
    """
    return _xlogy(*promote_floats(input, other))


@widened
def _hypot(a: Tensor, b: Tensor) -> Tensor:
    """Scaled by the longer side, which is a constant to the gradient: the result does not depend on the scale."""
    with no_grad():
        longer = P.maximum(P.absolute(a), P.absolute(b))
        usable = P.bitwise_and(P.less(like(0, a), longer), P.less(longer, like(float("inf"), a)))
        scale = P.where(usable, longer, like(1, a))
    x, y = P.div(a, scale), P.div(b, scale)
    return P.mul(scale, P.sqrt(P.add(P.mul(x, x), P.mul(y, y))))


def hypot(input: Operand, other: Operand) -> Tensor:
    """The length ``sqrt(input**2 + other**2)``, without overflow on the way; NaN if either is NaN.

    Example:
        >>> import minitorch as mt
        >>> mt.hypot(mt.tensor([3.0, 3e30]), mt.tensor([4.0, 4e30]))
        tensor([5.0000e+00, 5.0000e+30])
    """
    return _hypot(*promote_floats(input, other))


@widened
def _logaddexp(a: Tensor, b: Tensor) -> Tensor:
    high, low = P.maximum(a, b), minimum(a, b)
    # Equal operands may be infinite, and inf - inf is NaN.
    gap = P.where(P.equal(low, high), like(0, a), P.sub(low, high))
    return P.add(high, P.log1p(P.exp(gap)))


def logaddexp(input: Operand, other: Operand) -> Tensor:
    """``log(exp(input) + exp(other))``, without overflow on the way.

    Example:
        >>> import minitorch as mt
        >>> mt.logaddexp(mt.tensor([0.0, 1000.0]), mt.tensor([0.0, 1000.0]))
        tensor([6.9315e-01, 1.0007e+03])
    """
    return _logaddexp(*promote_floats(input, other))


arctan2 = atan2
