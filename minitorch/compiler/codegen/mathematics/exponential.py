"""exp, expm1, tanh, log, log1p and pow.

Powers of e: ``x = k ln 2 + r`` with ``|r| <= ln(2)/2`` (Cody & Waite 1980), a polynomial for ``e**r - 1``, and
``2**k`` put together from bits. Logarithms: ``x = 2**e (1 + f)``, ``s = f / (2 + f)`` and the series of ``2 atanh(s)``,
in the order of operations of Sun's fdlibm, which loses nothing when ``e = 0``. pow carries logarithm and product as
unevaluated sums of two numbers, and follows C99 Annex F. The coefficients are minimax fits (Remez) of
``(e**r - 1 - r) / r**2`` in ``r``, and of ``(2 atanh(s)/s - 2) / s**2`` and ``(2 atanh(s)/s - 2 - 2/3 s**2) / s**4`` in
``s**2``.
"""

from __future__ import annotations

import math

from llvmlite import ir

from .values import (
    Value,
    at_most,
    call_named,
    clamp,
    copysign,
    fast_two_sum,
    fma,
    intrinsic,
    polynomial,
    two_product,
    two_sum,
    where,
)

# The first part has so few bits that its product with any exponent is exact.
_LN2 = {32: (0.693115234375, 3.194618329871446e-05), 64: (0.6931471805592082, 7.371002565167799e-13)}
# Below the first e**x rounds to 0, above the second it overflows.
_RANGE = {32: (-104.0, 89.0), 64: (-746.0, 710.0)}
# Beyond this, e**-x is nothing beside 1.
_SATURATED = {32: 20.0, 64: 40.0}
# A number whose product with the smallest logarithm but 0 overflows exp, and with the largest stays finite.
_HUGE = {32: 2.0**100, 64: 2.0**200}

_EXPONENTIAL = {
    32: (0.500000005857294, 0.16666545254155246, 0.041666289588228836, 0.008366373746343008, 0.0013946058866494556),
    64: (
        0.5000000000000004,
        0.16666666666666685,
        0.04166666666658179,
        0.008333333333315651,
        0.0013888888930271121,
        0.0001984126990094086,
        2.4801506561254767e-05,
        2.755722965694057e-06,
        2.762560030650807e-07,
        2.511397946547434e-08,
    ),
}
_LOGARITHM = {
    32: (0.6666677443232397, 0.39977718213967817, 0.2986802037424336),
    64: (
        0.6666666666666726,
        0.39999999999455293,
        0.285714287348458,
        0.22222199242845092,
        0.18183533530348847,
        0.1531475835905426,
        0.14789518715315075,
    ),
}
_TWO_THIRDS = {32: (0.6666666865348816, -1.9868215517249155e-08), 64: (0.6666666666666666, 3.700743415417188e-17)}
_LONG_LOGARITHM = {
    32: (0.4000015092808641, 0.28547230723517847, 0.23416767190650925),
    64: (
        0.3999999999999999,
        0.2857142857143842,
        0.22222222218906648,
        0.18181818725242235,
        0.1538456556982102,
        0.13336019049320605,
        0.11680280143193507,
        0.1194761308581287,
    ),
}


def _reduced(x: Value) -> tuple[Value, Value, Value]:
    """Return an integer with lowest bits ``k + 2 bias``, `k` as a float, and `r`, for ``x = k ln 2 + r``."""
    form = x.format
    high_ln2, low_ln2 = x.pick(_LN2)
    # The sum is so large that it rounds to an integer, which then lies in its lowest bits.
    magic = 1.5 * 2.0**form.fraction + 2 * form.bias
    shifted = fma(x, 1 / math.log(2), magic)
    k = shifted - magic
    return shifted.bits(), k, fma(k, -low_ln2, fma(k, -high_ln2, x))


def exponential_parts(x: Value, low: Value | None = None) -> tuple[Value, Value]:
    """Return an integer with lowest bits ``k + 2 bias``, and ``e**r - 1``, for ``x + low = k ln 2 + r``."""
    n, _, r = _reduced(x)
    if low is not None:
        r = r + low
    return n, fma(r * r, polynomial(r, x.pick(_EXPONENTIAL)), r)


def exponential_and_exponent(x: Value) -> tuple[Value, Value, Value]:
    """Return ``e**r``, and `k` as in `exponential_parts` and as a float, for `x` clamped to finite powers."""
    n, k, r = _reduced(clamp(x, *x.pick(_RANGE)))
    return polynomial(r, (1.0, 1.0, *x.pick(_EXPONENTIAL))), n, k


def power_of_two(n: Value, offset: int) -> Value:
    """Return ``2**(k + offset)`` for the integer of `exponential_parts`; a normal number."""
    form = n.format
    return ((n + (offset - form.bias)) << form.fraction).from_bits()


def _scale(x: Value, n: Value) -> Value:
    """Return ``x * 2**k``, in two steps: only the second may leave the normal numbers, and so rounds once."""
    fraction = n.format.fraction
    half = n >> 1
    return x * (half << fraction).from_bits() * ((n - half) << fraction).from_bits()


def exp(x: Value) -> Value:
    """Return e**x; underflow is gradual."""
    power, n, _ = exponential_and_exponent(x)
    return _scale(power, n)


def expm1(x: Value) -> Value:
    """Return e**x - 1."""
    high = x.pick(_RANGE)[1]
    n, grown = exponential_parts(clamp(x, -x.pick(_SATURATED), high))
    half = power_of_two(n, -1)  # 2**k itself may overflow where the result does not
    result = fma(half, grown, half - 0.5) * 2.0
    return where(abs(x) < 2.0 ** -(x.format.fraction + 2), x, result)


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent: with ``a = e**(2|x|) - 1``, ``a / (a + 2)``."""
    size = abs(x)
    n, grown = exponential_parts(at_most(size + size, x.pick(_SATURATED)))
    power = power_of_two(n, 0)
    a = fma(power, grown, power - 1.0)
    return copysign(a / (a + 2.0), x)


def _split(x: Value) -> tuple[Value, Value]:
    """Return ``e``, ``f`` with ``x = 2**e (1 + f)``, ``sqrt(1/2) <= 1 + f < sqrt(2)``, for positive finite `x`."""
    form = x.format
    start = form.pattern(math.sqrt(0.5))
    tiny = x < 2.0 ** (1 - form.bias)
    n = where(tiny, x * 2.0**form.fraction, x).bits() + (form.pattern(1.0) - start)
    # An integer below 2**fraction becomes a float when it is put below the bits of 2**fraction.
    offset = 2.0**form.fraction + form.bias
    e = ((n >> form.fraction) | form.pattern(2.0**form.fraction)).from_bits()
    f = ((n & (2**form.fraction - 1)) + start).from_bits() - 1.0
    return e - where(tiny, x.constant(offset + form.fraction), offset), f


def _logarithm(x: Value, correction: Value | None = None) -> Value:
    """Return log(x) + correction, for positive finite `x`."""
    high_ln2, low_ln2 = x.pick(_LN2)
    e, f = _split(x)
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    low = e * low_ln2 if correction is None else fma(e, low_ln2, correction)
    rest = fma(s, fma(z, polynomial(z, x.pick(_LOGARITHM)), half_square), low)
    return fma(e, high_ln2, f - (half_square - rest))


def _guard(x: Value, pole: float, result: Value) -> Value:
    """Return the logarithm's values where `x` is not positive finite: -inf at the pole, NaN below, inf and NaN kept."""
    result = where(x < math.inf, result, x)
    return where(x > pole, result, where(x.equals(pole), x.constant(-math.inf), math.nan))


def log(x: Value) -> Value:
    """Return the natural logarithm."""
    return _guard(x, 0.0, _logarithm(x))


def log1p(x: Value) -> Value:
    """Return log(1 + x): its logarithm lacks the rounding error of the sum, divided by the sum."""
    total, error = two_sum(x, 1.0)
    result = _guard(x, -1.0, _logarithm(total, error / total))
    return where(abs(x) < 2.0 ** -(x.format.fraction + 2), x, result)


def _long_logarithm(x: Value) -> tuple[Value, Value]:
    """Return log(x) as the sum of two numbers, for positive finite `x`."""
    high_ln2, low_ln2 = x.pick(_LN2)
    high_third, low_third = x.pick(_TWO_THIRDS)
    e, f = _split(x)
    divisor, divisor_low = fast_two_sum(x.constant(2.0), f)
    s = f / divisor
    s_low = fma(-s, divisor_low, fma(-s, divisor, f)) / divisor
    z, z_low = two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    # log(1 + f) = 2 s + s p, with p = 2/3 z + z**2 (...)
    third, third_low = two_product(z, high_third)
    third_low = fma(z_low, high_third, fma(z, low_third, third_low))
    p, p_low = fast_two_sum(third, z * z * polynomial(z, x.pick(_LONG_LOGARITHM)))
    product, product_low = two_product(s, p)
    product_low = fma(s_low, p, fma(s, p_low + third_low, product_low))
    high, first = fast_two_sum(e * high_ln2, s + s)
    high, second = fast_two_sum(high, product)
    low = fma(e, low_ln2, first + (second + fma(s_low, 2.0, product_low)))
    return fast_two_sum(high, low)


def power(x: Value, y: Value) -> Value:
    """Return x to the power y, with the special cases of C99 Annex F; underflow is gradual."""
    lowest, highest = x.pick(_RANGE)
    huge = x.pick(_HUGE)
    size = abs(x)
    high, low = _long_logarithm(size)
    high = _guard(size, 0.0, high)
    bounded = clamp(y, -huge, huge)  # so that an infinite y times log(1) is 0
    product, error = two_product(bounded, high)
    error = where(abs(product) < -lowest, fma(bounded, low, error), 0.0)
    n, grown = exponential_parts(clamp(product, lowest, highest), error)
    magnitude = _scale(grown + 1.0, n)

    whole = intrinsic("floor", y).equals(y)
    half = y * 0.5
    odd = whole & intrinsic("floor", half).differs(half)
    result = where(odd, copysign(magnitude, x), magnitude)
    real = whole | (x >= 0.0) | x.equals(-math.inf)
    result = where(real, result, math.nan)
    return where(x.equals(1.0) | y.equals(0.0), 1.0, result)


_SCALEF = (128, 256, 512)  # bits of the vectors that AVX-512 (with VL) has it for


def exp_avx512(x: Value) -> Value:
    """Return e**x by ``scalef``, which multiplies by a power of two and rounds once, whatever the result's size."""
    kind = x.ir.type
    if not isinstance(kind, ir.VectorType) or kind.count * x.format.width not in _SCALEF:
        return exp(x)
    power, _, k = exponential_and_exponent(x)
    bits = kind.count * x.format.width
    lanes = ir.IntType(max(8, kind.count))
    arguments = [power.ir, k.ir, power.ir, ir.Constant(lanes, (1 << lanes.width) - 1)]
    if bits == 512:
        arguments.append(ir.Constant(ir.IntType(32), 4))  # rounding as usual
    name = f"llvm.x86.avx512.mask.scalef.p{x.format.code[0].replace('f', 's')}.{bits}"
    return Value(x.builder, call_named(x.builder, name, kind, arguments))
