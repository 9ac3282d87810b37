"""Interval analysis of integers: the least and the largest number that a value of a graph can take.

A zero point that is an input may be any number of its type. The operations on it (a cast from a byte, a clamp, a
constant) show whether it is one of the integers that it belongs to.

    cast(z: u8)                      0 to 255
    where(z < 0, 0, z)               0 to the most that z can be: a comparison bounds both branches of a selection

This is the interval domain of abstract interpretation (Cousot and Cousot, 1977), on demand: from a node back to those
of which only the type is known. The answer is an upper bound: no number is outside it, and not all inside need occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from .. import primitives as P
from ..dtypes import DType
from ..graph.values import is_splat
from ..ir import Node, Primitive

Interval = tuple[int, int]
Known = Mapping[Node, Interval]

MOVEMENTS = frozenset((P.reshape, P.permute, P.expand, P.slice_, P.flip, P.unfold, P.diagonal))


def interval(node: Node, given: Known | None = None) -> Interval:
    """Return the least and the largest number of a value of an integer type.

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
    known: dict[Node, Interval] = dict(given or {})
    pending = [node]
    while pending:
        each = pending[-1]
        rule = _RULES.get(each.primitive)
        operands = [*each.inputs, *_compared(each)] if rule else []
        missing = [operand for operand in operands if operand.dtype.category == "int" and operand not in known]
        if missing and each not in known:
            pending += missing
            continue
        pending.pop()
        if each not in known:
            known[each] = rule(each, known) if rule else of_type(each.dtype)
    return known[node]


def of_type(dtype: DType) -> Interval:
    """Return the least and the largest number of an integer type."""
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def _constant(node: Node, known: Known) -> Interval:
    if is_splat(node):
        return int(node.params["value"]), int(node.params["value"])
    array = node.params["value"].array
    return (int(array.min()), int(array.max())) if array.size else (0, 0)


def _moved(node: Node, known: Known) -> Interval:
    return known[node.inputs[0]]


def _cast(node: Node, known: Known) -> Interval:
    """Bound a cast: an integer that the new type holds stays the same; all others wrap."""
    limits, (source,) = of_type(node.dtype), node.inputs
    if source not in known:
        return limits
    low, high = known[source]
    return (low, high) if limits[0] <= low and high <= limits[1] else limits


def _maximum(node: Node, known: Known) -> Interval:
    (one, two), (three, four) = (known[operand] for operand in node.inputs)
    return max(one, three), max(two, four)


def _complement(node: Node, known: Known) -> Interval:
    """Reverse the order, for the minimum of integers, which is a maximum of complements."""
    low, high = known[node.inputs[0]]
    ends = sum(of_type(node.dtype))  # -1, or the largest of an unsigned type
    return ends - high, ends - low


def _product(node: Node, known: Known) -> Interval:
    """Return the extremes of the products of the ends, if none of these wraps."""
    (one, two), (three, four) = (known[operand] for operand in node.inputs)
    ends, limits = (one * three, one * four, two * three, two * four), of_type(node.dtype)
    low, high = min(ends), max(ends)
    return (low, high) if limits[0] <= low and high <= limits[1] else limits


def _compared(node: Node) -> tuple[Node, ...]:
    """Return the operands of the comparison that decides a selection."""
    condition = node.inputs[0] if node.primitive is P.where else node
    is_comparison = condition.primitive in (P.less, P.less_equal, P.equal)
    return condition.inputs if is_comparison and condition.inputs[0].dtype.category == "int" else ()


def _outcome(condition: Node, known: Known) -> bool | None:
    """Return the result of a comparison, if it is the same for all values of its operands."""
    (low, high), (least, most) = (known[operand] for operand in condition.inputs)
    if condition.primitive is P.equal:
        return False if high < least or most < low else None
    if condition.primitive is P.less:
        low, high = low + 1, high + 1  # of integers: less than x is at most x - 1
    return True if high <= least else False if low > most else None


def _choice(node: Node, known: Known) -> Interval:
    """Join both branches; a compared one is bounded by the other operand of the comparison."""
    condition, here, elsewhere = node.inputs
    compared = _compared(node)
    outcome = _outcome(condition, known) if compared else None
    found = []
    for branch, is_here in ((here, True), (elsewhere, False)):
        low, high = known[branch]
        if compared and condition.primitive is not P.equal:
            one, other = compared if is_here else reversed(compared)  # one <= other on this branch
            if branch is one:
                high = min(high, known[other][1])
            if branch is other:
                low = max(low, known[one][0])
        if low <= high and outcome is not (not is_here):  # if not, this branch is never taken
            found.append((low, high))
    return min(low for low, _ in found), max(high for _, high in found)


def _checked(node: Node, known: Known) -> Interval:
    """Restrict a value to the range of its check."""
    low, high = known[node.inputs[0]]
    return max(low, int(node.params["low"])), min(high, int(node.params["high"]))


def _place(node: Node, known: Known) -> Interval:
    """Bound a place along a dimension, if the type has numbers for all places."""
    size = node.params["size"] if node.primitive is P.iota else node.inputs[0].shape[node.params["dim"]]
    limits = of_type(node.dtype)
    return (0, max(size - 1, 0)) if size - 1 <= limits[1] else limits


_RULES: dict[Primitive, Callable[[Node, Known], Interval]] = {
    P.constant: _constant,
    P.iota: _place,
    P.argmax: _place,
    P.argsort: _place,
    P.cast: _cast,
    P.bitwise_not: _complement,
    P.mul: _product,
    P.maximum: _maximum,
    P.where: _choice,
    P.check: _checked,
    **dict.fromkeys(MOVEMENTS, _moved),
}
