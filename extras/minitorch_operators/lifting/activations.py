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

from .matching import Found, either, is_number, number_of, operands, plus

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


def hardsigmoid(node: Node, single: set[Node]) -> Found:
    """``clip(x + 3, 0, 6) / 6``, or x times that."""
    if node.primitive is not P.div or not is_number(node.inputs[1], 6) or not _is_narrow(node):
        return None
    bent = node.inputs[0]
    for x, gate in [*either(bent, P.mul), (None, bent)]:
        shifted, *bounds = _clipped(gate)
        total = plus(shifted)
        if bounds == [0, 6] and total is not None and total[1] == 3 and x in (None, total[0]):
            return apply(O.hardsigmoid if x is None else O.hardswish, total[0], source=node.source)
    return None


# Curves ---------------------------------------------------------------------------------------------------


def leaky_relu(node: Node, single: set[Node]) -> Found:
    """x above 0, and a multiple of it below."""
    found = _choice(node)
    if found is None or _above(found[0], found[1]) != 0:
        return None
    for x, factor in either(found[2], P.mul):
        slope = number_of(factor)
        if x is found[1] and slope is not None:
            return apply(O.leaky_relu, x, source=node.source, slope=float(slope))
    return None


def elu(node: Node, single: set[Node]) -> Found:
    """x above 0, and ``alpha * (e**x - 1)`` below; both times gamma."""
    found = _choice(node)
    if found is None:
        return None
    condition, high, low = found
    for x, gamma in _scaled(high):
        if _above(condition, x) != 0:
            continue
        for curve, factor in _scaled(low):
            inner = operands(curve, P.expm1)
            chosen = operands(inner[0], P.where) if inner else ()
            if chosen and chosen[0] is condition and is_number(chosen[1], 0) and chosen[2] is x and gamma:
                return apply(O.elu, x, source=node.source, alpha=factor / gamma, gamma=gamma)
    return None


def _scaled(node: Node) -> list[tuple[Node, float]]:
    """A node as a product with a number: 1, or one that it is multiplied with."""
    products = [(one, number_of(other)) for one, other in either(node, P.mul)]
    return [(node, 1.0), *[(one, float(number)) for one, number in products if number is not None]]


def softplus(node: Node, single: set[Node]) -> Found:
    """log(1 + e**x), and x itself where that is the same."""
    found = _choice(node)
    if found is None:
        return None
    condition, x, curve = found
    far, exponential = _above(condition, x), operands(curve, P.log1p)
    inner = operands(exponential[0], P.exp) if exponential else ()
    chosen = operands(inner[0], P.where) if inner else ()
    fits = chosen and chosen[0] is condition and is_number(chosen[1], 0) and chosen[2] is x
    return apply(O.softplus, x, source=node.source) if fits and far is not None and far >= _FAR else None


def mish(node: Node, single: set[Node]) -> Found:
    """``x * tanh(softplus(x))``."""
    for x, bent in either(node, P.mul):
        inner = operands(bent, P.tanh)
        if inner and inner[0].primitive is O.softplus and inner[0].inputs[0] is x:
            return apply(O.mish, x, source=node.source)
    return None


def softsign(node: Node, single: set[Node]) -> Found:
    """``x / (1 + |x|)``."""
    total = plus(node.inputs[1]) if node.primitive is P.div and _is_narrow(node) else None
    fits = total is not None and total[1] == 1 and operands(total[0], P.absolute) == (node.inputs[0],)
    return apply(O.softsign, node.inputs[0], source=node.source) if fits else None
