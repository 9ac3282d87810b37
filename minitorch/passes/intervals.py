"""Interval analysis: the least and the largest number that a value can take, in a graph or in a kernel's expression.

This is the interval domain of abstract interpretation (Cousot and Cousot, 1977), on demand: from a value back to those
of which only the type is known. The answer is an upper bound: no number is outside it, and not all inside need occur.

    cast(z: u8)                      0 to 255
    maximum(x, -3)                   -3 or more, or NaN
    where(x < 124, x, 124)           at most 124: a comparison bounds both branches; NaN is not less, so it is 124

Rounding never turns the order of two numbers around, so the ends of a sum of floats are the sums of the ends, rounded
alike. In a graph, a zero point that is an input may be any number of its type; the operations on it show whether it is
one of the integers that it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import DType
from ..graph.values import is_splat
from ..ir import Node
from ..sizes import is_symbolic

Interval = tuple[int, int]
COMPARISONS = ("less", "less_equal", "equal")
Known = Mapping[Node, Interval]


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


Ranges = Mapping[Any, Range]
Operation = tuple[str, Sequence[Any]]  # the name of a primitive, and its operands
Describe = Callable[[Any], Operation | Range | None]  # of a value: its operation, or its range; None if unknown


def value_range(value: Any, describe: Describe) -> Range:
    """Return the numbers that a value can have: at least those, perhaps more.

    Args:
        value: of a graph, or of a kernel.
        describe: how it and others are computed.
    """
    known: dict[Any, Range] = {}
    pending = [value]
    while pending:
        each = pending[-1]
        found = known.get(each) or describe(each)
        if isinstance(found, tuple):
            name, operands = found
            operands = operands if name in _RULES else ()
            missing = [one for one in (*operands, *_compared(found, describe)[1]) if one not in known]
            if missing:
                pending += missing
                continue
            rule = _RULES.get(name)
            found = rule(each, found, known, describe) if rule else None
        pending.pop()
        limits = of_type(each.dtype)
        known[each] = found if found is not None and found.fits(limits) else limits
    return known[value]


def _maximum(value: Any, operation: Operation, known: Ranges, describe: Describe) -> Range:
    a, b = (known[part] for part in operation[1])
    return Range(max(a.low, b.low), max(a.high, b.high), a.nan or b.nan)


def _complement(value: Any, operation: Operation, known: Ranges, describe: Describe) -> Range:
    """Reverse the order, for the minimum of integers, which is a maximum of complements."""
    limits, source = of_type(value.dtype), known[operation[1][0]]
    ends = limits.low + limits.high  # -1, or the largest of an unsigned type
    return Range(ends - source.high, ends - source.low)


def rounded(dtype: DType, low: Any, high: Any, nan: bool) -> Range | None:
    """Return a range of a type, with ends that are rounded to it."""
    if dtype.category == "int":
        return Range(int(low), int(high)) if math.isfinite(low) and math.isfinite(high) and not nan else None
    if dtype.category == "bool":
        return None
    with np.errstate(over="ignore"):
        low, high = (float(np.float64(end).astype(dtype.numpy)) for end in (low, high))
    return None if math.isnan(low) or math.isnan(high) else Range(low, high, nan)


def _cast(value: Any, operation: Operation, known: Ranges, describe: Describe) -> Range | None:
    """Return the range of a cast: floats are cut to integers or rounded; those that do not fit become any."""
    name, (of,) = operation
    source = known[of]
    if value.dtype.category != "int" or not of.dtype.is_floating_point:
        return rounded(value.dtype, source.low, source.high, source.nan)
    if source.nan or not (math.isfinite(source.low) and math.isfinite(source.high)):
        return None
    whole = round if name == "nearest" else math.trunc
    return Range(whole(source.low), whole(source.high))


def _sum(value: Any, operation: Operation, known: Ranges, describe: Describe) -> Range | None:
    a, b = (known[part] for part in operation[1])
    if operation[0] == "sub":
        b = Range(-b.high, -b.low, b.nan)
    opposite = (math.inf in (a.high, b.high)) and (-math.inf in (a.low, b.low))  # their sum is NaN
    return rounded(value.dtype, a.low + b.low, a.high + b.high, a.nan or b.nan or opposite)


def _product(value: Any, operation: Operation, known: Ranges, describe: Describe) -> Range | None:
    a, b = (known[part] for part in operation[1])
    ends = [one * other for one in (a.low, a.high) for other in (b.low, b.high)]
    if any(math.isnan(end) or math.isinf(end) for end in ends):
        return None
    return rounded(value.dtype, min(ends), max(ends), a.nan or b.nan)


def _moved(value: Any, operation: Operation, known: Ranges, describe: Describe) -> Range:
    return known[operation[1][0]]


def _checked(value: Any, operation: Operation, known: Ranges, describe: Describe) -> Range:
    """Restrict a value to the range of its check."""
    source = known[operation[1][0]]
    return Range(max(source.low, int(value.params["low"])), min(source.high, int(value.params["high"])))


def _either(value: Any, operation: Operation, known: Ranges, describe: Describe) -> Range:
    here, elsewhere = (known[part] for part in operation[1])
    return here.joined(elsewhere)


def _compared(operation: Operation, describe: Describe) -> Operation:
    """Return the comparison that decides a selection; no operands without one."""
    condition = describe(operation[1][0]) if operation[0] == "where" else None
    if isinstance(condition, tuple) and condition[0] in COMPARISONS:
        return condition
    return "", ()


def _outcome(comparison: str, a: Range, b: Range) -> bool | None:
    """Return the result of a comparison of integers, if it is the same for all of them."""
    if comparison == "equal":
        return False if a.high < b.low or b.high < a.low else None
    less = 1 if comparison == "less" else 0  # less than x is at most x - 1
    return True if a.high + less <= b.low else False if a.low + less > b.high else None


def _selected(value: Any, operation: Operation, known: Ranges, describe: Describe) -> Range | None:
    """Return the range of either alternative. A compared one is on its side of the other, or NaN: less than nothing."""
    _, here, elsewhere = operation[1]
    first, second = known[here], known[elsewhere]
    name, compared = _compared(operation, describe)
    outcome = None
    if compared:
        a, b = compared
        if a.dtype.category == b.dtype.category == "int":
            outcome = _outcome(name, known[a], known[b])
        if name != "equal":
            if here == a:
                first = Range(first.low, min(first.high, known[b].high))
            elif here == b:
                first = Range(max(first.low, known[a].low), first.high)
            if elsewhere == a and not known[b].nan:
                second = Range(max(second.low, known[b].low), second.high, second.nan)
            elif elsewhere == b and not known[a].nan:
                second = Range(second.low, min(second.high, known[a].high), second.nan)
    sides = ((first, outcome is not False), (second, outcome is not True))
    taken = [each for each, may_be in sides if may_be and (each.low <= each.high or each.nan)]
    return taken[0].joined(taken[-1]) if taken else None


_RULES: dict[str, Callable[[Any, Operation, Ranges, Describe], Range | None]] = {
    "maximum": _maximum,
    "bitwise_not": _complement,
    "cast": _cast,
    "nearest": _cast,
    "add": _sum,
    "sub": _sum,
    "mul": _product,
    "either": _either,
    "where": _selected,
    "check": _checked,
    **dict.fromkeys(("reshape", "permute", "expand", "slice", "flip", "unfold", "diagonal"), _moved),
}


def interval(node: Node, given: Known | None = None) -> Interval:
    """Return the least and the largest number of a value of an integer type in a graph.

    Args:
        node: the value.
        given: the known intervals of other values, such as inputs.

    Example:
        >>> from minitorch.graph.graph import Graph
        >>> graph = Graph.parse('''
        ... graph(z: i32[]):
        ...   %0 = maximum(z, -5)
        ...   %1 = less(9, %0)
        ...   %2 = where(%1, 9, %0)
        ...   return %0, %2
        ... ''')
        >>> [interval(node) for node in graph.outputs]
        [(-5, 2147483647), (-5, 9)]
    """

    def describe(node: Node) -> Operation | Range | None:
        if given is not None and node in given:
            return Range(*given[node])
        if is_symbolic(node.params.get("value")):
            return None
        name = node.primitive.name
        is_compared = name in COMPARISONS and node.inputs[0].dtype.category == "int"
        if not is_compared and (node.dtype.category != "int" or name in ("add", "sub")):  # which may wrap
            return None
        return _LEAVES[name](node) if name in _LEAVES else (name, node.inputs)

    found = value_range(node, describe)
    return int(found.low), int(found.high)


def _constant(node: Node) -> Range:
    if is_splat(node):
        return Range(int(node.params["value"]), int(node.params["value"]))
    array = node.params["value"].array
    return Range(int(array.min()), int(array.max())) if array.size else Range(0, 0)


def _place(node: Node) -> Range:
    """Bound a place along a dimension, if the type has numbers for all places."""
    size = node.params["size"] if node.primitive.name == "iota" else node.inputs[0].shape[node.params["dim"]]
    return Range(0, max(size - 1, 0))


_LEAVES: dict[str, Callable[[Node], Range]] = {
    "constant": _constant,
    "iota": _place,
    "argmax": _place,
    "argsort": _place,
}
