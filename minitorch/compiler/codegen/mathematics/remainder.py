"""Remainder and quotient of floats, rounded down, as NumPy and Python have them.

LLVM's `frem` is C's `fmod`, whose remainder has the sign of the dividend; here it has that of the divisor.
"""

from __future__ import annotations

from typing import Any

from .values import Value, call_intrinsic, copysign, splat


def _parts(builder: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return C's remainder, the same with the sign of the divisor, and whether these differ."""
    zero = splat(a.type, 0.0)
    rest = builder.frem(a, b)
    opposite = builder.xor(builder.fcmp_ordered("<", rest, zero), builder.fcmp_ordered("<", b, zero))
    other_sign = builder.and_(opposite, builder.fcmp_unordered("!=", rest, zero))
    return rest, builder.select(other_sign, builder.fadd(rest, b), rest), other_sign


def remainder(builder: Any, a: Any, b: Any) -> Any:
    """Return ``a - b * floor(a / b)``, exactly; a remainder of 0 has the sign of b; dividing by 0 gives NaN."""
    zero = splat(a.type, 0.0)
    rest, found, _ = _parts(builder, a, b)
    signed = copysign(Value(builder, zero), Value(builder, b)).ir
    is_zero = builder.and_(builder.fcmp_ordered("==", rest, zero), builder.fcmp_ordered("!=", b, zero))
    return builder.select(is_zero, signed, found)


def floor_divide(builder: Any, a: Any, b: Any) -> Any:
    """Return the whole number below ``a / b``; for a division by 0, the quotient."""
    zero, half, one = (splat(a.type, value) for value in (0.0, 0.5, 1.0))
    rest, _, other_sign = _parts(builder, a, b)
    near = builder.fdiv(builder.fsub(a, rest), b)  # a whole number but for rounding
    near = builder.select(other_sign, builder.fsub(near, one), near)
    below = call_intrinsic(builder, "floor", near)
    too_low = builder.fcmp_ordered(">", builder.fsub(near, below), half)
    below = builder.select(too_low, builder.fadd(below, one), below)
    divided = builder.fdiv(a, b)
    is_zero = builder.fcmp_ordered("==", near, zero)
    below = builder.select(is_zero, copysign(Value(builder, zero), Value(builder, divided)).ir, below)
    return builder.select(builder.fcmp_ordered("==", b, zero), divided, below)
