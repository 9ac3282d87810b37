"""Division of many numbers by one: a reciprocal, computed once, and two multiplications for each number.

A reciprocal alone would overflow or lose bits for very small and very large divisors `d`. So a power of two `s` brings
the divisor into the middle of the range: ``r = 1 / (d s)`` is a normal number, and ``a / d = (a s) r``. If ``a s``
overflows, so does the quotient, for `s` is large only if `d` is small; if it is subnormal, so is the quotient. Zeros,
infinities and NaN come out as those of a division do.
"""

from __future__ import annotations

from .values import Value, where

ERROR = 2.0  # units in the last place, of the quotient

_MIDDLE = {32: 2.0**64, 64: 2.0**512}  # the square root of the largest number, nearly


def scaled_reciprocal(divisor: Value) -> tuple[Value, Value]:
    """The power of two and the reciprocal that `quotient` multiplies by."""
    middle = divisor.pick(_MIDDLE)
    size = abs(divisor)
    scale = where(size < 1 / middle, divisor.constant(middle), 1.0)
    scale = where(size > middle, 1 / middle, scale)
    return scale, divisor.constant(1.0) / (divisor * scale)


def quotient(a: Value, scale: Value, reciprocal: Value) -> Value:
    """``a / divisor``, within 2 units in the last place; of subnormal results too."""
    return a * scale * reciprocal
