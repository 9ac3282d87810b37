"""Range analysis: the least and the largest number that an expression can have (interval analysis of values).

An instruction that adds products in 16 bits is exact if they fit. A quantised value says so itself, as it ends in a
clamp and a cast:

    np.maximum(x, -3)                         -3 or more, or NaN
    t if (t < 124) else 124                   at most 124; NaN is not less, so it is 124
    np.uint8(... + 3)                         0 to 127

`quantising` writes the same as a minimum, a maximum and the nearest integer. `passes.intervals` does this for integers
of graphs, which know more of zero points. Rounding never turns the order of two numbers around, so the ends of a sum of
floats are the sums of the ends, rounded alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....dtypes import DType
from ...loop_ir.expressions import Apply, Choose, Expression, Number, Position

MOST_PARTS = 1000  # of an expression: more are not looked at, which saves time in long chains of operations


@dataclass(frozen=True)
class Range:
    """Numbers from the least to the largest; perhaps NaN beside them.

    Attributes:
        low, high: the ends, which belong to it; infinite if nothing is known.
        nan: whether it may be NaN.
    """

    low: float
    high: float
    nan: bool = False

    def fits(self, other: Range) -> bool:
        """Return whether it lies within another one."""
        return other.low <= self.low and self.high <= other.high and (other.nan or not self.nan)

    def joined(self, other: Range) -> Range:
        """Return the range of two values, either of which may occur."""
        return Range(min(self.low, other.low), max(self.high, other.high), self.nan or other.nan)


def of_type(dtype: DType) -> Range:
    """Return all numbers of a type."""
    if dtype.category == "int":
        limits = np.iinfo(dtype.numpy)
        return Range(int(limits.min), int(limits.max))
    return Range(0, 1) if dtype.category == "bool" else Range(-math.inf, math.inf, True)


def value_range(value: Expression, of_array: Callable[[Expression], Range | None] = lambda _: None) -> Range:
    """Return the numbers that an expression can have: at least those, perhaps more.

    Args:
        value: the expression.
        of_array: the known range of an element of an array; None if unknown.

    Example:
        >>> from minitorch.compiler.loop_ir.expressions import Load
        >>> from minitorch.compiler.loop_ir.index import NOWHERE
        >>> from minitorch.dtypes import bool_, float32, uint8
        >>> x, most = Load(float32, 0, NOWHERE), Number(float32, 127.0, "127")
        >>> t = Apply(float32, "maximum", (x, Number(float32, 0.0, "0")))
        >>> clamped = Apply(float32, "where", (Apply(bool_, "less", (t, most)), t, most))
        >>> value_range(Apply(uint8, "cast", (clamped,))), value_range(Apply(uint8, "cast", (t,)))
        (Range(low=0, high=127, nan=False), Range(low=0, high=255, nan=False))
    """
    known: dict[Expression, Range] = {}
    if len(value.all_parts) > MOST_PARTS:
        return of_type(value.dtype)
    pending = [value]
    while pending:
        each = pending[-1]
        operands = [*each.parts(), *(_compared(each) or ())]
        missing = [part for part in operands if part not in known]
        if missing and each not in known:
            pending += missing
            continue
        pending.pop()
        if each not in known:
            limits = of_type(each.dtype)
            found = of_array(each) if not each.parts() else None
            found = found or _range(each, known) or limits
            known[each] = found if found.fits(limits) else limits
    return known[value]


def _range(value: Expression, known: Mapping[Expression, Range]) -> Range | None:
    match value:
        case Number(value=number):
            if value.dtype.is_floating_point:
                return None if math.isnan(number) else _rounded(value.dtype, number, number, False)
            return Range(int(number), int(number))
        case Position(index=index):
            return Range(*index.bounds)
        case Choose(here=here, elsewhere=elsewhere):
            return known[here].joined(known[elsewhere])
        case Apply(primitive=name) if name in _RULES:
            return _RULES[name](value, known)
    return None


def _maximum(value: Apply, known: Mapping[Expression, Range]) -> Range:
    a, b = (known[part] for part in value.arguments)
    return Range(max(a.low, b.low), max(a.high, b.high), a.nan or b.nan)


def _rounded(dtype: DType, low: Any, high: Any, nan: bool) -> Range | None:
    """Return a range of a type, with ends that are rounded to it."""
    if dtype.category == "int":
        return Range(int(low), int(high)) if math.isfinite(low) and math.isfinite(high) and not nan else None
    if dtype.category == "bool":
        return None
    with np.errstate(over="ignore"):
        low, high = (float(np.float64(end).astype(dtype.numpy)) for end in (low, high))
    return None if math.isnan(low) or math.isnan(high) else Range(low, high, nan)


def _cast(value: Apply, known: Mapping[Expression, Range]) -> Range | None:
    """Return the range of a cast: floats are cut to integers or rounded; those that do not fit become any."""
    source, of_source = known[value.arguments[0]], value.arguments[0].dtype
    if value.dtype.category == "int" and of_source.is_floating_point:
        if source.nan or not (math.isfinite(source.low) and math.isfinite(source.high)):
            return None
        whole = round if value.primitive == "nearest" else math.trunc
        return Range(whole(source.low), whole(source.high))
    return _rounded(value.dtype, source.low, source.high, source.nan)


def _sum(value: Apply, known: Mapping[Expression, Range]) -> Range | None:
    a, b = (known[part] for part in value.arguments)
    if value.primitive == "sub":
        b = Range(-b.high, -b.low, b.nan)
    opposite = (math.inf in (a.high, b.high)) and (-math.inf in (a.low, b.low))  # their sum is NaN
    return _rounded(value.dtype, a.low + b.low, a.high + b.high, a.nan or b.nan or opposite)


def _product(value: Apply, known: Mapping[Expression, Range]) -> Range | None:
    a, b = (known[part] for part in value.arguments)
    ends = [one * other for one in (a.low, a.high) for other in (b.low, b.high)]
    if any(math.isnan(end) or math.isinf(end) for end in ends):
        return None
    return _rounded(value.dtype, min(ends), max(ends), a.nan or b.nan)


def _compared(value: Expression) -> tuple[Expression, ...] | None:
    """Return the two numbers that a selection compares, if it goes by whether the first is less, or not more."""
    if isinstance(value, Apply) and value.primitive == "where":
        condition = value.arguments[0]
        if isinstance(condition, Apply) and condition.primitive in ("less", "less_equal"):
            return condition.arguments
    return None


def _selected(value: Apply, known: Mapping[Expression, Range]) -> Range | None:
    """Return the range of either alternative. A compared one is on its side of the other, or NaN: less than nothing."""
    _, here, elsewhere = value.arguments
    first, second = known[here], known[elsewhere]
    compared = _compared(value)
    if compared is not None:
        a, b = compared
        if here == a:
            first = Range(first.low, min(first.high, known[b].high))
        elif here == b:
            first = Range(max(first.low, known[a].low), first.high)
        if elsewhere == a and not known[b].nan:
            second = Range(max(second.low, known[b].low), second.high, second.nan)
        elif elsewhere == b and not known[a].nan:
            second = Range(second.low, min(second.high, known[a].high), second.nan)
    taken = [each for each in (first, second) if each.low <= each.high or each.nan]
    return first.joined(second) if len(taken) == 2 else taken[0] if taken else None


_RULES: dict[str, Callable[[Apply, Mapping[Expression, Range]], Range | None]] = {
    "maximum": _maximum,
    "cast": _cast,
    "nearest": _cast,
    "add": _sum,
    "sub": _sum,
    "mul": _product,
    "where": _selected,
}
