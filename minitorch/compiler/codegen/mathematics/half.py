"""float16 in integer arithmetic, for processors without instructions that convert it (x86-64 before F16C).

LLVM would call library functions that are not everywhere. The algorithms are Fabian Giesen's, "Float to half done quic"
(2012): exact one way, to the nearest and of two equally near to the even one the other way; subnormal numbers and
infinities included.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .values import splat, with_lanes_of

_FLOAT, _INT, _SHORT = ir.FloatType(), ir.IntType(32), ir.IntType(16)
_SIGN, _INFINITY = 0x80000000, 0x7F800000
_TOO_LARGE = (127 + 16) << 23  # the bits of 2**16, beyond all finite numbers of float16
_SMALLEST = (127 - 14) << 23  # those of 2**-14: smaller ones are subnormal
_ALIGNING = (127 - 15 + 23 - 10 + 1) << 23  # those of 0.5, whose last place is that of subnormal numbers of float16


def widened(builder: Any, bits: Any) -> Any:
    """Return the float with the value of a float16, given as 16-bit integers."""
    kind = with_lanes_of(bits.type, _INT)
    wide = builder.zext(bits, kind)
    magnitude = builder.shl(builder.and_(wide, splat(kind, 0x7FFF)), splat(kind, 13))
    scaled = builder.fmul(
        builder.bitcast(magnitude, with_lanes_of(kind, _FLOAT)), splat(with_lanes_of(kind, _FLOAT), 2.0**112)
    )
    finite = builder.bitcast(scaled, kind)
    special = builder.icmp_unsigned(">=", magnitude, splat(kind, 0x7C00 << 13))
    found = builder.select(special, builder.or_(magnitude, splat(kind, _INFINITY)), finite)
    sign = builder.shl(builder.and_(wide, splat(kind, 0x8000)), splat(kind, 16))
    return builder.bitcast(builder.or_(found, sign), with_lanes_of(kind, _FLOAT))


def narrowed(builder: Any, value: Any) -> Any:
    """Return the float16 nearest to a float, as 16-bit integers."""
    kind = with_lanes_of(value.type, _INT)
    bits = builder.bitcast(value, kind)
    sign = builder.and_(bits, splat(kind, _SIGN))
    magnitude = builder.xor(bits, sign)
    aligned = builder.fadd(builder.bitcast(magnitude, value.type), splat(value.type, 0.5))
    subnormal = builder.sub(builder.bitcast(aligned, kind), splat(kind, _ALIGNING))
    odd = builder.and_(builder.lshr(magnitude, splat(kind, 13)), splat(kind, 1))
    half_less = splat(kind, (15 - 127) * (1 << 23) + 0xFFF)  # the other exponent, and half a unit but for the last bit
    normal = builder.lshr(builder.add(builder.add(magnitude, half_less), odd), splat(kind, 13))
    found = builder.select(builder.icmp_unsigned("<", magnitude, splat(kind, _SMALLEST)), subnormal, normal)
    is_nan = builder.icmp_unsigned(">", magnitude, splat(kind, _INFINITY))
    special = builder.select(is_nan, splat(kind, 0x7E00), splat(kind, 0x7C00))
    found = builder.select(builder.icmp_unsigned(">=", magnitude, splat(kind, _TOO_LARGE)), special, found)
    return builder.trunc(builder.or_(found, builder.lshr(sign, splat(kind, 16))), with_lanes_of(kind, _SHORT))
