"""Elementwise formulas of several operands: lerp, addcmul, hypot, logaddexp, ..."""

from __future__ import annotations

import math

from ... import primitives as P
from ...dtypes import PYTHON_NUMBERS
from ...tensor import Tensor
from ..movement.selection import minimum
from ..operands import Number, Operand, fitting, like, promote, promote_all, promote_floats, wide, widened
from ..options import equals, require_float, require_number
from .formulas import sigmoid, sign, unit_sign, with_derivative


def lerp(input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """Interpolate between two points: ``input + weight * (end - input)``, exactly `end` for weight 1.

    Example:
        >>> import minitorch as mt
        >>> mt.lerp(mt.tensor([0.0, 10.0]), mt.tensor([1.0, 20.0]), 0.25)
        tensor([ 0.2500, 12.5000])
    """
    near = abs(weight) < 0.5 if isinstance(weight, PYTHON_NUMBERS) else None
    return _lerp(*promote_floats(input, end, weight), near=near)


@widened
def _lerp(a: Tensor, b: Tensor, w: Tensor, *, near: bool | None) -> Tensor:
    """Interpolate from the nearer end: that of a number as weight is known, and the other way has no gradient."""
    way, half, one = P.sub(b, a), like(0.5, w), like(1, w)
    if near is not None:
        return P.add(a, P.mul(w, way)) if near else P.sub(b, P.mul(way, P.sub(one, w)))
    return P.where(P.less(P.absolute(w), half), P.add(a, P.mul(w, way)), P.sub(b, P.mul(way, P.sub(one, w))))


@widened
def _addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: Number) -> Tensor:
    product = P.mul(a, b)
    return P.add(x, product if equals(value, 1) else P.mul(product, like(value, x)))


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Return ``input + value * tensor1 * tensor2``, with `value` in the type of the result.

    Raises:
        DTypeError: ``MT202`` if all are bools, or the value does not fit the type.

    Example:
        >>> import minitorch as mt
        >>> mt.addcmul(mt.ones(2), mt.tensor([1.0, 2.0]), mt.tensor([3.0, 4.0]), value=2)
        tensor([ 7., 17.])
    """
    x, a, b = promote_all(input, tensor1, tensor2)
    require_number(x, "addcmul")
    return _addcmul(x, a, b, value=fitting("addcmul", value, wide(x.dtype)))


@widened
def _addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: Number) -> Tensor:
    return P.add(x, P.div(a if equals(value, 1) else P.mul(a, like(value, a)), b))


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Return ``input + value * tensor1 / tensor2``.

    Raises:
        DTypeError: ``MT202`` if `tensor1` and `tensor2` are both of integers, or the value does not fit the type.

    Example:
        >>> import minitorch as mt
        >>> mt.addcdiv(mt.ones(2), mt.tensor([1.0, 2.0]), mt.tensor([2.0, 8.0]), value=4)
        tensor([3., 2.])
    """
    require_float(promote(tensor1, tensor2)[0], "addcdiv")
    x, a, b = promote_all(input, tensor1, tensor2)
    return _addcdiv(x, a, b, value=fitting("addcdiv", value, wide(x.dtype)))


def atan2(input: Operand, other: Operand) -> Tensor:
    """Return the angle in radians of the point with ordinate `input` and abscissa `other`.

    Example:
        >>> import minitorch as mt
        >>> mt.atan2(mt.tensor([1.0, -1.0]), mt.tensor([1.0, -1.0]))
        tensor([ 0.7854, -2.3562])
    """
    return P.atan2(*promote_floats(input, other))


def copysign(input: Operand, other: Operand) -> Tensor:
    """Return the magnitude of the first operand with the sign of the second, that of -0.0 included.

    Example:
        >>> import minitorch as mt
        >>> mt.copysign(mt.tensor([1.0, 2.0]), mt.tensor([-0.0, 3.0]))
        tensor([-1.,  2.])
    """
    return _with_sign_of(*promote_floats(input, other))


_with_sign_of = with_derivative(
    "copysign",
    lambda a, b: P.mul(P.absolute(a), unit_sign(b)),
    lambda a, b: P.mul(sign(a), unit_sign(b)),
    None,
)


@widened
def _xlogy(x: Tensor, y: Tensor) -> Tensor:
    zero = like(0, x)
    endless = P.bitwise_or(P.less_equal(y, zero), P.equal(y, like(float("inf"), y)))
    return P.mul(x, P.log(P.where(P.bitwise_and(P.equal(x, zero), endless), like(1, y), y)))


def xlogy(input: Operand, other: Operand) -> Tensor:
    """Return ``input * log(other)``, and 0 where `input` is 0, whatever the logarithm; NaN where `other` is NaN.

    Example:
        >>> import minitorch as mt
        >>> mt.xlogy(mt.tensor([0.0, 2.0]), mt.tensor([0.0, 1.0]))
        tensor([0., 0.])
    """
    return _xlogy(*promote_floats(input, other))


def _hypot(a: Tensor, b: Tensor) -> Tensor:
    """Scale by the longer side, so that no square overflows; infinite if a side is, whatever the other."""
    size, other = P.absolute(a), P.absolute(b)
    longer, endless = P.maximum(size, other), like(math.inf, a)
    usable = P.bitwise_and(P.less(like(0, a), longer), P.less(longer, endless))
    scale = P.where(usable, longer, like(1, a))
    x, y = P.div(a, scale), P.div(b, scale)
    length = P.mul(scale, P.sqrt(P.add(P.mul(x, x), P.mul(y, y))))
    return P.where(P.bitwise_or(P.equal(size, endless), P.equal(other, endless)), endless, length)


def _cosine_of(side: Tensor, other: Tensor) -> Tensor:
    """Return the derivative of the length by a side; 0 where the length is 0, as for `norm`."""
    length = _hypot(side, other)
    return P.div(side, P.where(P.equal(length, like(0, length)), like(1, length), length))


_length = widened(with_derivative("hypot", _hypot, _cosine_of, lambda a, b: _cosine_of(b, a)))


def hypot(input: Operand, other: Operand) -> Tensor:
    """Return ``sqrt(input**2 + other**2)``, without overflow on the way; infinite if either is, else NaN if one is.

    Example:
        >>> import minitorch as mt
        >>> mt.hypot(mt.tensor([3.0, 3e30]), mt.tensor([4.0, 4e30]))
        tensor([5.0000e+00, 5.0000e+30])
    """
    return _length(*promote_floats(input, other))


def _log_of_sum(a: Tensor, b: Tensor) -> Tensor:
    high, low = P.maximum(a, b), minimum(a, b)
    # Equal operands may be infinite, and inf - inf is NaN.
    gap = P.where(P.equal(low, high), like(0, a), P.sub(low, high))
    return P.add(high, P.log1p(P.exp(gap)))


def _share(a: Tensor, b: Tensor) -> Tensor:
    """Return the share of exp(a) in exp(a) + exp(b)."""
    return sigmoid(P.sub(a, b))


_logaddexp = widened(with_derivative("logaddexp", _log_of_sum, _share, lambda a, b: _share(b, a)))


def logaddexp(input: Operand, other: Operand) -> Tensor:
    """Return ``log(exp(input) + exp(other))``, without overflow on the way.

    Example:
        >>> import minitorch as mt
        >>> mt.logaddexp(mt.tensor([0.0, 1000.0]), mt.tensor([0.0, 1000.0]))
        tensor([6.9315e-01, 1.0007e+03])
    """
    return _logaddexp(*promote_floats(input, other))


arctan2 = atan2
