"""Activations, recognised by the formulas that they are composed of, and clipping, which has many of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import minitorch_operators as O
from minitorch import dtypes
from minitorch import primitives as P
from minitorch.graph.build import apply
from minitorch.ir import Node, Primitive
from minitorch.passes.patterns import Operation, number, op, wildcard

from .matching import Found, either, is_number, matched, number_of


@dataclass(frozen=True)
class Formula:
    """A rule of lifting: an operator in place of a formula of `x`.

    Attributes:
        pattern: the formula.
        operator: what computes it.
        params: of the operator, from the numbers of the formula, which may be any.
        fits: whether the operator is meant, by the result, `x` and these numbers.
    """

    pattern: Operation
    operator: Primitive
    params: Callable[..., dict[str, Any]] = lambda **numbers: {}
    fits: Callable[..., bool] = lambda node, x, **numbers: x.dtype.is_floating_point

    def __call__(self, node: Node, single: set[Node]) -> Found:
        for found in matched(self.pattern, node, {}):
            x, numbers = found["x"], {name: float(each.params["value"]) for name, each in found.items() if name != "x"}
            if self.fits(node, x, **numbers):
                return apply(self.operator, x, source=node.source, **self.params(**numbers))
        return None


def _is_narrow(node: Node, *x: Node, **numbers: float) -> bool:
    """Whether it is a float of up to 32 bits, in which other runtimes have these operators."""
    return node.dtype.is_floating_point and node.dtype is not dtypes.float64


_FAR = 20.0  # from here on, log(1 + e**x) is x in float32
x, slope, far, gamma, alpha = wildcard("x"), number("slope"), number("far"), number("gamma"), number("alpha")
_negative = op.less(x, 0)
_power = op.exp(op.where(_negative, x, -x))
_positive, _beyond = op.less(0, x), op.less(far, x)
_gate = op.clip(x + 3, low=0.0, high=6.0)
_curve = op.expm1(op.where(_positive, 0, x))
_cubic = (x + ((x * x) * x) * 0.044715) * math.sqrt(2 / math.pi)

FIRST = (
    Formula(op.where(op.less_equal(x, 0), 0, x), O.relu),
    Formula(op.where(_negative, _power, 1) / (_power + 1), O.sigmoid),
    Formula(x * op.sigmoid(x), O.silu),
    Formula((x * 0.5) * (op.erf(x * math.sqrt(0.5)) + 1), O.gelu, lambda: {"approximate": "none"}),
    Formula((x * 0.5) * (op.tanh(_cubic) + 1), O.gelu, lambda: {"approximate": "tanh"}),
    Formula(~op.equal(x, x), O.isnan),
)
LATER = (
    Formula(_gate / 6, O.hardsigmoid, fits=_is_narrow),
    Formula((x * _gate) / 6, O.hardswish, fits=_is_narrow),
    Formula(op.where(_positive, x, x * slope), O.leaky_relu, lambda slope: {"slope": slope}, _is_narrow),
    *(
        Formula(
            op.where(_positive, high, low),
            O.elu,
            lambda gamma=1.0, alpha=1.0: {"alpha": alpha / gamma, "gamma": gamma},
            lambda node, x, gamma=1.0, alpha=1.0: bool(gamma) and _is_narrow(node, x),
        )
        for high in (x, x * gamma)
        for low in (_curve, _curve * alpha)
    ),
    Formula(
        op.where(_beyond, x, op.log1p(op.exp(op.where(_beyond, 0, x)))),
        O.softplus,
        lambda far: {},
        lambda node, x, far: far >= _FAR and _is_narrow(node, x),
    ),
    Formula(x * op.tanh(op.softplus(x)), O.mish),
    Formula(x / (op.abs(x) + 1), O.softsign, fits=_is_narrow),
)


# Clipping -------------------------------------------------------------------------------------------------


def _choice(node: Node) -> tuple[Node, Node, Node] | None:
    """Condition and values of a selection of such floats."""
    return (node.inputs[0], node.inputs[1], node.inputs[2]) if node.primitive is P.where and _is_narrow(node) else None


def _above(node: Node, x: Node, or_equal: bool = False) -> float | None:
    """The number that a condition compares with x, if it is that x is above it."""
    if node.primitive is not P.less and not (or_equal and node.primitive is P.less_equal):
        return None
    number = number_of(node.inputs[0])
    return float(number) if node.inputs[1] is x and number is not None else None


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
