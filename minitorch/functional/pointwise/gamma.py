"""The logarithm of the gamma function, and its derivative, in float64.

From 8 on, Stirling's series has all digits after seven terms (Abramowitz and Stegun, 6.1.41 and 6.3.18). Below, the
recurrence ``gamma(x + 1) = x * gamma(x)`` leads there, and below 1/2 the reflection formula leads above.
"""

from __future__ import annotations

import math

from ... import primitives as P
from ...dtypes import float64
from ...tensor import Tensor
from ..operands import like, to_dtype
from .formulas import round_half_even, with_derivative

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)  # of even indices, from 2 on
_STEPS = 8


def _series(z: Tensor, derived: bool) -> Tensor:
    """Return the sum over k of ``B / (2k (2k - 1) z**(2k - 1))``, or minus its derivative."""
    inverse = 1 / z
    square, total = inverse * inverse, like(0, z)
    for k in range(len(_BERNOULLI), 0, -1):
        factor = 1 / (2 * k) if derived else 1 / (2 * k * (2 * k - 1))
        total = total * square + _BERNOULLI[k - 1] * factor
    return total * (square if derived else inverse)


def _reflected(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return where x is below 1/2, the mirrored number, and pi times the distance of x from the next whole number."""
    low = P.less(x, like(0.5, x))
    return low, P.where(low, 1 - x, x), math.pi * P.where(low, P.sub(x, round_half_even(x)), like(0.5, x))


def _lgamma(x: Tensor) -> Tensor:
    wide = to_dtype(x, float64)
    low, z, angle = _reflected(wide)
    product = z
    for step in range(1, _STEPS):
        product = product * (z + step)
    small = P.less(z, like(_STEPS, z))
    far = P.where(small, z + _STEPS, z)
    value = (far - 0.5) * P.log(far) - far + 0.5 * math.log(2 * math.pi) + _series(far, False)
    value = P.where(small, value - P.log(P.where(small, product, like(1, z))), value)
    value = P.where(low, math.log(math.pi) - P.log(P.absolute(P.sin(angle))) - value, value)
    value = P.where(P.equal((wide - 1) * (wide - 2), like(0, wide)), like(0, wide), value)
    size = P.absolute(wide)
    return to_dtype(P.where(P.equal(size, like(math.inf, size)), size, value), x.dtype)


def digamma(x: Tensor) -> Tensor:
    """Return the derivative of the logarithm of the gamma function, NaN at negative whole numbers."""
    wide = to_dtype(x, float64)
    low, z, angle = _reflected(wide)
    below = 1 / z
    for step in range(1, _STEPS):
        below = below + 1 / (z + step)
    small = P.less(z, like(_STEPS, z))
    far = P.where(small, z + _STEPS, z)
    value = P.log(far) - 0.5 / far - _series(far, True)
    value = P.where(small, value - below, value)
    value = P.where(low, value - math.pi * P.cos(angle) / P.sin(angle), value)
    zero = like(0, wide)
    pole = P.bitwise_and(P.less(wide, zero), P.equal(angle, zero))
    return to_dtype(P.where(pole, like(math.nan, wide), value), x.dtype)


lgamma = with_derivative("lgamma", _lgamma, digamma)
