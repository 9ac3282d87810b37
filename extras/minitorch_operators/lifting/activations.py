"""Activations that are composed of comparisons and selections: the rules that look for them.

They are for floats of up to 32 bits, in which other runtimes have these operators.
"""

from __future__ import annotations

import math

import minitorch_operators as O
from minitorch import dtypes
from minitorch import primitives as P
from minitorch.graph.build import apply
from minitorch.ir import Node

from .matching import Found, either, is_number, number_of

_FAR = 20.0  # from here on, log(1 + e**x) is x in float32


def _is_narrow(node: Node) -> bool:
    return node.dtype.is_floating_point and node.dtype is not dtypes.float64


def _choice(node: Node) -> tuple[Node, Node, Node] | None:
    """Condition and values of a selection of such floats."""
    return (node.inputs[0], node.inputs[1], node.inputs[2]) if node.primitive is P.where and _is_narrow(node) else None


def _above(node: Node, x: Node, or_equal: bool = False) -> float | None:
    """The number that a condition compares with x, if it is that x is above it."""
    if node.primitive is not P.less and not (or_equal and node.primitive is P.less_equal):
        return None
    number = number_of(node.inputs[0])
    return float(number) if node.inputs[1] is x and number is not None else None


# Clipping -------------------------------------------------------------------------------------------------


def _clipped(node: Node) -> tuple[Node, float, float]:
    """What a node is clipped from, and the bounds."""
    if node.primitive is O.clip:
        return node.inputs[0], node.params["low"], node.params["high"]
    return (node.inputs[0], 0.0, math.inf) if node.primitive is O.relu else (node, -math.inf, math.inf)


def _clip(x: Node, low: float, high: float, node: Node) -> Found:
    if (low, high) == (0, math.inf):
        return apply(O.relu, x, source=node.source)
    return apply(O.clip, x, source=node.source, low=low, high=high)


def clip_low(node: Node, single: set[Node]) -> Found:
    """A number where x is below it, x elsewhere."""
    found = _choice(node)
    if found is None:
        return None
    condition, one, other = found
    if condition.primitive is P.less_equal and condition.inputs[0] is other:  # where(x <= low, low, x)
        low = number_of(condition.inputs[1])
        return _clip(other, float(low), math.inf, node) if low is not None and is_number(one, low) else None
    low = _above(condition, one, or_equal=True)
    if low is None:
        return None
    largest = any(x is one and number_of(number) == low for x, number in either(other, P.maximum))
    is_same = largest or _clipped(other) == (one, low, math.inf)
    x, before, high = _clipped(one)
    return _clip(x, max(before, low), high, node) if is_same and low <= high else None


def clip_high(node: Node, single: set[Node]) -> Found:
    """A number where x is above it, x elsewhere."""
    found = _choice(node)
    if found is None or found[0].primitive is not P.less_equal:
        return None
    condition, one, other = found
    left, right = condition.inputs
    high = number_of(left)
    if high is not None and is_number(one, high):  # where(high <= x, high, x)
        x, low, before = _clipped(other)
        fits = right in (x, other) and low <= high <= before
        return _clip(x, low, float(high), node) if fits else None
    high = number_of(right)
    if high is None or left is not one:  # where(x <= high, x, minimum(high, x))
        return None
    smallest = any(each is one and number_of(number) == high for each, number in either(other, O.minimum))
    x, low, before = _clipped(one)
    return _clip(x, low, float(high), node) if smallest and low <= high <= before else None
