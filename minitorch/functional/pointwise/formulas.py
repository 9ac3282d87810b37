"""Formulas for elementwise functions that are not primitives, on float tensors of one type.

The obvious formulas lose digits (exp(x) - exp(-x) near 0), overflow on the way (x*x in asinh) or have no derivative
where the function has one (abs in an odd function at 0); these do not. An exact formula is often pieced together from
several, with limits between. The derivative of its steps then loses digits, or is NaN, where the function's own is
known: `with_derivative` takes both. `elementwise` makes the public functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import dtypes
from ... import primitives as P
from ...autograd import Context, Function
from ...interpreters import expand_operands
from ...tensor import Tensor
from ..operands import like, to_dtype
from ..options import require_float, require_number

Formula = Callable[..., Tensor]

_INTEGER_OF_SIZE = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


def with_derivative(name: str, formula: Formula, *derivatives: Formula | None) -> Formula:
    """Return a formula that `backward` passes with given derivatives.

    Args:
        name: the name of the function, on the tape.
        formula: ``(*inputs) -> output``, of float tensors of one type, which broadcast.
        derivatives: for each input, ``(*inputs) -> derivative``, written with tensor operations, so that it can itself
            be differentiated; None where it is 0, whatever the cotangent is.
    """

    class Differentiable(Function):
        @staticmethod
        def forward(ctx: Context, *inputs: Tensor) -> Tensor:
            ctx.save_for_backward(*inputs)
            return formula(*inputs)

        @staticmethod
        def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
            inputs, (g,) = ctx.saved_tensors, cotangents
            flat = P.constant(value=0, shape=g.shape, dtype=g.dtype)
            rules = zip(derivatives, ctx.needs_input_grad, strict=True)
            return tuple([(P.mul(g, rule(*inputs)) if rule else flat) if needed else None for rule, needed in rules])

    Differentiable.__name__ = Differentiable.__qualname__ = name

    def apply(*inputs: Tensor) -> Tensor:
        if any(x.requires_grad for x in inputs):
            return Differentiable.apply(*expand_operands(inputs, name, recorded_only=True))  # type: ignore[no-any-return]
        return formula(*inputs)

    return apply


def signbit(x: Tensor) -> Tensor:
    """Return whether the sign bit of each number is set, also of -0.0."""
    if not x.dtype.is_signed:
        return P.constant(value=False, shape=x.shape, dtype=dtypes.bool_)
    bits = P.bitcast(x, dtype=_INTEGER_OF_SIZE[x.dtype.itemsize])
    return P.less(bits, like(0, bits))


def unit_sign(x: Tensor) -> Tensor:
    """Return 1 or -1 with the sign of each number, 1 for 0.0 and -1 for -0.0.

    An odd function follows from its right half as ``s * f(s * x)``: exact for -0.0, and (unlike with abs) with the
    right derivative at 0.
    """
    return P.where(signbit(x), like(-1, x), like(1, x))


def logarithm(base: int) -> Callable[[Tensor], Tensor]:
    """Return the logarithm to a base, divided in float64: for shorter types, log10(1000) is exactly 3."""

    def formula(x: Tensor) -> Tensor:
        wide = to_dtype(x, dtypes.float64)
        return to_dtype(P.div(P.log(wide), like(math.log(base), wide)), x.dtype)

    return formula


def _leg(x: Tensor) -> Tensor:
    """Return the other leg of a right triangle with hypotenuse 1: sqrt(1 - x*x) without the cancellation."""
    one = like(1, x)
    return P.sqrt(P.mul(P.sub(one, x), P.add(one, x)))


# The angle of the point with ordinate x on the right half of the unit circle.
asin: Formula = with_derivative("asin", lambda x: P.atan2(x, _leg(x)), lambda x: P.div(like(1, x), _leg(x)))

# The angle of the point with abscissa x on the upper half of the unit circle.
acos: Formula = with_derivative("acos", lambda x: P.atan2(_leg(x), x), lambda x: P.div(like(-1, x), _leg(x)))


def _halved(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return where exp(x) is soon too large for a number, and x, halved there: cosh(x) is finite a little longer.

    At 80, exp(-x) is below the last digit of exp(x) in every type.
    """
    large = P.less(like(80, x), x)
    return large, P.where(large, P.mul(like(0.5, x), x), x)


def _sinh(x: Tensor) -> Tensor:
    """Return (e + e / (e + 1)) / 2 with e = exp(t) - 1 of t = |x|, which loses nothing near 0."""
    s, half = unit_sign(x), like(0.5, x)
    large, t = _halved(P.mul(s, x))
    e = P.expm1(t)
    near = P.mul(half, P.add(e, P.div(e, P.add(e, like(1, x)))))
    return P.mul(s, P.where(large, P.mul(P.mul(half, e), e), near))


def _cosh(x: Tensor) -> Tensor:
    """Return (e + 1 / e) / 2 with e = exp(|x|)."""
    half = like(0.5, x)
    large, t = _halved(P.absolute(x))
    e = P.exp(t)
    return P.where(large, P.mul(P.mul(half, e), e), P.mul(half, P.add(e, P.div(like(1, x), e))))


sinh: Formula = with_derivative("sinh", _sinh, _cosh)
cosh: Formula = with_derivative("cosh", _cosh, _sinh)


# Where 1 is less than the last digit of the square of a number, in every type.
_LARGE = 1e10


def _asinh(x: Tensor) -> Tensor:
    """Return s * log1p(t + t*t / (1 + sqrt(1 + t*t))) with t = |x|, exact near 0; log(2*t) for large t."""
    s = unit_sign(x)
    t, one = P.mul(s, x), like(1, x)
    large = P.less(like(_LARGE, x), t)
    safe = P.where(large, one, t)
    square = P.mul(safe, safe)
    near = P.log1p(P.add(safe, P.div(square, P.add(one, P.sqrt(P.add(one, square))))))
    return P.mul(s, P.where(large, _log_of_double(t), near))


def _asinh_derivative(x: Tensor) -> Tensor:
    """Return 1 / sqrt(1 + x*x), which is 1/|x| for large x."""
    t, one = P.absolute(x), like(1, x)
    large = P.less(like(_LARGE, x), t)
    safe = P.where(large, one, t)
    return P.div(one, P.where(large, t, P.sqrt(P.add(one, P.mul(safe, safe)))))


def _acosh(x: Tensor) -> Tensor:
    """Return log1p(t + sqrt(t) * sqrt(t + 2)) with t = x - 1; log(2*x) for large x."""
    large = P.less(like(_LARGE, x), x)
    t = P.where(large, like(1, x), P.sub(x, like(1, x)))
    near = P.log1p(P.add(t, P.mul(P.sqrt(t), P.sqrt(P.add(t, like(2, x))))))
    return P.where(large, _log_of_double(x), near)


def _acosh_derivative(x: Tensor) -> Tensor:
    """Return 1 / sqrt(x*x - 1), without the square; as in PyTorch also below -1, where the function is NaN."""
    t, one = P.absolute(x), like(1, x)
    return P.div(one, P.mul(P.sqrt(P.sub(t, one)), P.sqrt(P.add(t, one))))


def _log_of_double(x: Tensor) -> Tensor:
    """Return log(2*x) where 2*x may overflow."""
    return P.add(P.log(x), like(math.log(2), x))


asinh: Formula = with_derivative("asinh", _asinh, _asinh_derivative)
acosh: Formula = with_derivative("acosh", _acosh, _acosh_derivative)


def atanh(x: Tensor) -> Tensor:
    """Return half of log((1 + x) / (1 - x)), without forming the quotient."""
    return P.mul(like(0.5, x), P.sub(P.log1p(x), P.log1p(P.neg(x))))


def _logit(x: Tensor) -> Tensor:
    """Return log(x / (1 - x)); from 1/4 on log1p((2 * x - 1) / (1 - x)): its exact numerator keeps the root at 1/2."""
    one, small = like(1, x), P.less(x, like(0.25, x))
    ratio = P.div(P.where(small, x, P.sub(P.add(x, x), one)), P.sub(one, x))
    return P.where(small, P.log(P.where(small, ratio, one)), P.log1p(P.where(small, one, ratio)))


def _logit_derivative(x: Tensor) -> Tensor:
    """Return the derivative, NaN outside of [0, 1], as the function is."""
    one = like(1, x)
    inside = P.bitwise_and(P.less_equal(like(0, x), x), P.less_equal(x, one))
    return P.where(inside, P.div(one, P.mul(x, P.sub(one, x))), like(math.nan, x))


logit: Formula = with_derivative("logit", _logit, _logit_derivative)


def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)), with the exponent kept negative, so that neither value nor gradient overflows."""
    one, negative = like(1, x), P.less(x, like(0, x))
    z = P.exp(P.where(negative, x, P.neg(x)))
    return P.div(P.where(negative, z, one), P.add(z, one))


def round_half_even(x: Tensor) -> Tensor:
    """Return the whole number below, plus 1 if the fraction is above a half, or a half and the number below is odd."""
    s = unit_sign(x)
    t = P.mul(s, x)
    below, half = P.floor(t), like(0.5, x)
    fraction, halves = P.sub(t, below), P.mul(below, half)
    odd = P.less(P.floor(halves), halves)
    up = P.where(odd, P.less_equal(half, fraction), P.less(half, fraction))
    return P.mul(s, P.add(below, P.cast(up, dtype=x.dtype)))


def _sign(x: Tensor) -> Tensor:
    """Return the sign, 0 for NaN, as in PyTorch."""
    if x.dtype is dtypes.bool_:
        return P.cast(x, dtype=x.dtype)
    zero = like(0, x)
    return P.sub(P.cast(P.less(zero, x), dtype=x.dtype), P.cast(P.less(x, zero), dtype=x.dtype))


sign: Formula = with_derivative("sign", _sign, None)


def ceil(x: Tensor) -> Tensor:
    """Return the negated floor of -x."""
    return P.neg(P.floor(P.neg(x)))


def frac(x: Tensor) -> Tensor:
    """Return x - trunc(x). Refuses integers."""
    require_float(x, "frac")
    return P.sub(x, P.trunc(x))


def square(x: Tensor) -> Tensor:
    """Return x * x, of bools in int64."""
    x = P.cast(x, dtype=dtypes.int64) if x.dtype is dtypes.bool_ else x
    return P.mul(x, x)


def absolute(x: Tensor) -> Tensor:
    """Return the magnitude. Refuses bools."""
    require_number(x, "abs")
    return P.absolute(x)


def scaled(by: float) -> Callable[[Tensor], Tensor]:
    """Return the formula ``by * x``."""
    return lambda x: P.mul(x, like(by, x))
