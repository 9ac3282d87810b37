"""sin, cos and atan2.

sin and cos find the quarter turn n nearest to ``x / (pi/2)`` and the angle r from it, then one of two polynomials.
The reduction, in float64 for both types, subtracts multiples of pi/2 in three parts (Cody & Waite 1980), exact up to
2**46; beyond, where neighbouring numbers of float64 lie 1/64 apart and more, the result is NaN.

atan2 divides the smaller by the larger side, turns angles above 22.5 degrees back by 45, and adds a multiple of pi/4.
The coefficients are minimax fits (Remez) in the square of the angle or of the tangent, of ``(sin(r)/r - 1) / r**2``,
``(cos(r) - 1 + r**2/2) / r**4`` and ``(atan(t)/t - 1) / t**2``.
"""

from __future__ import annotations

import math

from . import LIMIT
from .values import FLOAT64, Value, copysign, fma, polynomial, where

_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_MAGIC = 1.5 * 2.0**52  # a sum with it rounds to an integer, which then lies in its lowest bits

_SINE = {
    32: (-0.16666653719544663, 0.008332087336763981, -0.00019503972680674742),
    64: (
        -0.1666666666666663,
        0.008333333333321034,
        -0.00019841269828362122,
        2.7557313109987594e-06,
        -2.505065789034302e-08,
        1.5890588593247922e-10,
    ),
}
_COSINE = {
    32: (0.04166664398323382, -0.0013887220765688494, 2.4421184593729383e-05),
    64: (
        0.04166666666666659,
        -0.0013888888888871917,
        2.480158728784074e-05,
        -2.755731382132892e-07,
        2.0875645128668357e-09,
        -1.1355358028199108e-11,
    ),
}

_QUARTER_PI = {32: (0.7853981852531433, -2.1855694143368964e-08), 64: (0.7853981633974483, 3.061616997868383e-17)}
_TANGENT_OF_PI_8 = math.sqrt(2) - 1
_ARCTANGENT = {
    32: (-0.33333316288606146, 0.1999852335661286, -0.1424433158263264, 0.10598775240769866, -0.06088986393644068),
    64: (
        -0.3333333333333323,
        0.1999999999996097,
        -0.1428571428080382,
        0.11111110809215768,
        -0.09090898401503314,
        0.07692070337383299,
        -0.06663206999877017,
        0.05848565672167759,
        -0.05042075875676154,
        0.03812894042129015,
        -0.017971966898010984,
    ),
}


def _reduced(x: Value) -> tuple[Value, Value]:
    """Return the angle from the nearest quarter turn, and an integer whose lowest bits number the quarter turn."""
    is_narrow = x.format.width == 32
    r = wide = x.resize("fpext", FLOAT64.type) if is_narrow else x
    shifted = fma(wide, 2 / math.pi, _MAGIC)
    turns = shifted - _MAGIC
    for part in _HALF_PI:
        r = fma(turns, -part, r)
    r, n = where(abs(wide) <= LIMIT, r, math.nan), shifted.bits()
    return (r.resize("fptrunc", x.element), n.resize("trunc", x.format.integer)) if is_narrow else (r, n)


def _wave(x: Value, quarters: int) -> Value:
    """Return sin(x + quarters * pi/2)."""
    r, n = _reduced(x)
    n = n + quarters
    z = r * r
    sine = fma(r * z, polynomial(z, x.pick(_SINE)), r)
    cosine = fma(z * z, polynomial(z, x.pick(_COSINE)), fma(z, -0.5, 1.0))
    sign = (n & 2) << (x.format.width - 2)
    return (where(n.is_odd(), cosine, sine).bits() ^ sign).from_bits()


def sin(x: Value) -> Value:
    """Return the sine of `x` radians."""
    return where(x.equals(0.0), x, _wave(x, 0))  # keeps -0


def cos(x: Value) -> Value:
    """Return the cosine of `x` radians."""
    return _wave(x, 1)


def atan2(y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), in (-pi, pi], with the special cases of C99 Annex F."""
    width, depth = abs(x), abs(y)
    steep = depth > width
    larger, smaller = where(steep, depth, width), where(steep, width, depth)
    # Only the quotient counts: 0/0 becomes 0/1 and inf/inf 1/1, large and subnormal numbers are scaled.
    endless = larger.equals(math.inf)
    smaller = where(endless, where(smaller.equals(math.inf), x.constant(1.0), 0.0), smaller)
    larger = where(endless | larger.equals(0.0), 1.0, larger)
    grow = where(larger < 2.0 ** (2 - x.format.bias), x.constant(2.0**x.format.fraction), 1.0)
    scale = where(larger > 2.0 ** (x.format.bias - 1), 0.25, grow)
    larger, smaller = larger * scale, smaller * scale

    turned = smaller > larger * _TANGENT_OF_PI_8
    t = where(turned, smaller - larger, smaller) / where(turned, larger + smaller, larger)
    z = t * t
    angle = fma(t * z, polynomial(z, x.pick(_ARCTANGENT)), t)

    # angle + eighths pi/4; each mirror turns the sign of the angle.
    eighths = where(turned, x.constant(1.0), 0.0)
    eighths, angle = where(steep, 2.0 - eighths, eighths), where(steep, -angle, angle)
    behind = copysign(x.constant(1.0), x) < 0.0
    eighths, angle = where(behind, 4.0 - eighths, eighths), where(behind, -angle, angle)
    high, low = x.pick(_QUARTER_PI)
    angle = fma(eighths, high, fma(eighths, low, angle))
    known = x.equals(x) & y.equals(y)
    return where(known, copysign(angle, y), x + y)
