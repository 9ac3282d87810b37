"""Normal numbers by Box and Muller, "A note on the generation of random normal deviates" (1958).

Those of float32 and the shorter types have the same bits in every mode. NumPy's logarithm and cosine differ from the
compiler's in the last digit, and compiled code may round a product and a sum together. So this module computes only
sums, quotients, roots, and products of factors of 24 bits, in float64: such a product is exact, and there is nothing to
round. After rounding to float32 the numbers are within 3 units in the last place. (For float64 there is no longer type:
there, modes differ in the last digits.)
"""

from __future__ import annotations

import math

from ... import primitives as P
from ...dtypes import DType, float32, float64, int32
from ...tensor import Tensor
from ..operands import like, to_dtype

# Chebyshev fits, in rising powers of the square of the argument.
_LOGARITHM = (2.000000000008413, 0.6666666524169288, 0.4000038565828249, 0.2853499739018985, 0.23617271057059547)
_COSINE = (0.999999999952545, -19.739208650244304, 64.93931617208783, -85.44284839771572, 59.22028813394356)
_SINE = (6.283185307152427, -41.341702153449944, 81.60520472865569, -76.69786815322806, 41.472890931015186)

_LN2 = round(math.log(2) * 2**40) / 2**40  # 40 bits: exact times an exponent
_HALF_ROOT, _ONE, _FRACTION = 0x3F3504F3, 0x3F800000, 0x7FFFFF  # bits of float32: sqrt(1/2), 1, and the fraction's


def _factor(x: Tensor) -> Tensor:
    """Round a float64 to 24 bits: the product of two such is exact."""
    return P.cast(P.cast(x, dtype=float32), dtype=float64)


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Evaluate a polynomial by Horner's rule, of a number of 24 bits."""
    total = like(coefficients[-1], x)
    for coefficient in coefficients[-2::-1]:
        total = P.add(P.mul(_factor(total), x), like(coefficient, x))
    return total


def _logarithm(x: Tensor) -> Tensor:
    """Return log(x) of positive float32 x in float64: e log(2) + 2 atanh(s), x = 2**e m, s = (m - 1) / (m + 1)."""
    bits = P.bitcast(x, dtype=int32)
    moved = P.add(bits, like(_ONE - _HALF_ROOT, bits))
    exponent = P.sub(P.shift_right(moved, like(23, bits)), like(127, bits))
    m = P.bitcast(P.add(P.bitwise_and(moved, like(_FRACTION, bits)), like(_HALF_ROOT, bits)), dtype=float32)
    m, e = P.cast(m, dtype=float64), P.cast(exponent, dtype=float64)
    s = _factor(P.div(P.sub(m, like(1, m)), P.add(m, like(1, m))))
    series = _polynomial(_factor(P.mul(s, s)), _LOGARITHM)
    return P.add(P.mul(e, like(_LN2, e)), P.mul(s, _factor(series)))


def _cosine_of_turn(t: Tensor) -> Tensor:
    """Return cos(2 pi t) of float64 t of 24 bits in [0, 1), by the sine or cosine of the rest of a quarter turn."""
    quarter = P.floor(P.add(P.mul(like(4, t), t), like(0.5, t)))
    d = P.sub(t, P.mul(like(0.25, t), quarter))
    square = _factor(P.mul(d, d))
    cosine, sine = _polynomial(square, _COSINE), P.mul(d, _factor(_polynomial(square, _SINE)))
    one, two, three = (P.equal(quarter, like(number, t)) for number in (1, 2, 3))
    value = P.where(P.bitwise_or(one, three), sine, cosine)
    return P.where(P.bitwise_or(one, two), P.neg(value), value)


def from_uniform(u: Tensor, turn: Tensor, dtype: DType) -> Tensor:
    """Return a normal number for each pair of uniform ones in [0, 1), of float32 or, for float64, of float64.

    The radius is that of a number in (0, 1], so that there is no log(0).
    """
    rest = P.sub(like(1, u), u)
    if dtype is float64:
        radius = P.sqrt(P.mul(like(-2, u), P.log(rest)))
        return P.mul(radius, P.cos(P.mul(turn, like(2 * math.pi, turn))))
    length = _logarithm(rest)
    radius = P.sqrt(P.mul(like(-2, length), length))
    product = P.mul(_factor(radius), _factor(_cosine_of_turn(P.cast(turn, dtype=float64))))
    return to_dtype(P.cast(product, dtype=float32), dtype)
