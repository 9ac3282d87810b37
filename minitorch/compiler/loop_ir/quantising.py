"""Quantisation in fewer instructions: a float that is rounded, clamped and stored as a byte.

In a graph, `minitorch.quantization.affine` makes it of primitives. With M = 1.5 * 2**23, which rounds, it is

    byte(clamp(max(x, 0) * s + M - M, low, high) + zero)         clamp(y) = min(max(y, low), high), NaN -> high

Whatever becomes an integer has no sign of zero, and a bound that is a whole number need not wait for the rounding. So
these are the same bytes, for all x, infinities and NaN included:

    x + M - M, then clamped     =  clamped, then converted to the nearest integer, of two to the even one
    min(max(y, low), high)      =  max(min(y, high), low)           if low <= high, and NaN -> high first
    max(x, 0) * s, at least low =  x * s, at least max(low, 0)      if 0 < s < inf: a ReLU is a bound of the clamp
    y + 0.0                     =  y

The first needs bounds within 2**22, where M rounds as the conversion does; beyond, both are clamped. A minimum in this
form, a maximum and a conversion are one instruction each on processors that have vectors of floats.
"""

from __future__ import annotations

import math

from ...dtypes import bool_, float32, int8, int32, uint8
from .expressions import Apply, Expression, Number

TO_WHOLE = 12582912.0  # M
MOST = 1 << 22
BYTES = (uint8, int8)


def quantised(value: Expression) -> Expression:
    """Return a byte expression with its quantisation in fewer instructions; unchanged if it quantises nothing.

    Example:
        >>> from .expressions import Load
        >>> from .index import NOWHERE
        >>> def literal(value):
        ...     return Number(float32, value, repr(value))
        >>> def apply(name, *parts):
        ...     return Apply(parts[-1].dtype, name, parts)
        >>> whole = apply("sub", apply("add", Load(float32, 0, NOWHERE), literal(TO_WHOLE)), literal(TO_WHOLE))
        >>> low = apply("maximum", whole, literal(0.0))
        >>> inside = apply("where", Apply(bool_, "less", (low, literal(255.0))), low, literal(255.0))
        >>> found = quantised(Apply(uint8, "cast", (apply("add", inside, literal(0.0)),)))
        >>> found.primitive, [part.primitive for part in found.arguments]
        ('nearest', ['where'])
    """
    if not (_is(value, "cast") and value.dtype in BYTES and value.parts()[0].dtype is float32):
        return value
    (at,) = value.parts()
    zero = 0.0
    if _is(at, "add") and (added := _number(at.parts()[1])) is not None:
        at, zero = at.parts()[0], added
    clamped = _clamped(at)
    if clamped is None or not (zero.is_integer() and abs(zero) <= MOST):
        return value
    x, low, high = clamped
    x, low = _without_relu(x, low)
    if low > high:
        return value
    x = _selected(x, high, is_minimum=True)
    x = _selected(x, low, is_minimum=False)
    if zero == 0:
        return Apply(value.dtype, "nearest", (x,))
    whole = Apply(int32, "nearest", (x,))
    shift = Number(int32, int(zero), f"i32 {int(zero)}")
    return Apply(value.dtype, "cast", (Apply(int32, "add", (whole, shift)),))


def _is(value: Expression, name: str) -> bool:
    return isinstance(value, Apply) and value.primitive == name


def _number(value: Expression) -> float | None:
    return float(value.value) if isinstance(value, Number) else None


def _clamped(value: Expression) -> tuple[Expression, float, float] | None:
    """Return the value rounded by M and clamped to whole numbers, and these; None for another expression."""
    if not _is(value, "where"):
        return None
    condition, here, high = value.parts()
    if not (_is(condition, "less") and condition.parts() == (here, high) and _is(here, "maximum")):
        return None
    whole, low = here.parts()
    bounds = _number(low), _number(high)
    if not (_is(whole, "sub") and _is(whole.parts()[0], "add")):
        return None
    (x, added), subtracted = whole.parts()[0].parts(), whole.parts()[1]
    if not _number(added) == _number(subtracted) == TO_WHOLE:
        return None
    if any(bound is None or not bound.is_integer() or abs(bound) > MOST for bound in bounds):
        return None
    assert bounds[0] is not None and bounds[1] is not None
    return x, bounds[0], bounds[1]


def _without_relu(value: Expression, low: float) -> tuple[Expression, float]:
    """Return a number, or a product with a positive one, of which a ReLU becomes a bound."""
    bare = _below_relu(value)
    if bare is not None:
        return bare, max(low, 0.0)
    if not _is(value, "mul"):
        return value, low
    for one, other in (value.parts(), value.parts()[::-1]):
        scale, x = _number(other), _below_relu(one)
        if x is not None and scale is not None and 0 < scale < math.inf:
            return Apply(value.dtype, "mul", (x, other)), max(low, 0.0)
    return value, low


def _below_relu(value: Expression) -> Expression | None:
    """Return the number x of ``0 if x <= 0 else x``, or of ``maximum(x, 0)``; None for another expression."""
    if _is(value, "maximum"):
        x, bound = value.parts()
        return x if _number(bound) == 0 else None
    if not _is(value, "where"):
        return None
    condition, here, x = value.parts()
    is_relu = _is(condition, "less_equal") and condition.parts()[0] == x and _number(condition.parts()[1]) == 0
    return x if is_relu and _number(here) == 0 else None


def _selected(x: Expression, bound: float, is_minimum: bool) -> Expression:
    """Return the smaller or the larger of two; the bound, if the other is NaN."""
    other = Number(float32, bound, f"f32 {bound!r}")
    operands = (x, other) if is_minimum else (other, x)
    return Apply(float32, "where", (Apply(bool_, "less", operands), x, other))
