"""Functions of one operand, recognised by the formulas that they are composed of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import minitorch_operators as O
from minitorch import dtypes
from minitorch.graph.build import apply
from minitorch.ir import Node, Primitive
from minitorch.passes.patterns import Operation, Param, Pattern, SplatOf, matches, number, op, wildcard

from .matching import Found, before_expand

Bindings = dict[str, Any]


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


def matched(pattern: Pattern, node: Node, bindings: Bindings) -> Iterator[Bindings]:
    """Yield the bindings with which a pattern fits a node; the operands of a sum or a product may be exchanged."""
    if not isinstance(pattern, Operation):
        found = dict(bindings)
        if matches(pattern, before_expand(node) if isinstance(pattern, SplatOf) else node, found):
            yield found
        return
    if pattern.primitive is not node.primitive:
        return
    bindings = dict(bindings)
    for name, wanted in pattern.params.items():
        value = bindings.setdefault(wanted.name, node.params[name]) if isinstance(wanted, Param) else wanted
        if node.params[name] != value:
            return
    for operands in (pattern.operands, pattern.operands[::-1])[: 1 + pattern.primitive.commutes]:
        states = [bindings]
        for each, operand in zip(operands, node.inputs, strict=True):
            states = [new for old in states for new in matched(each, operand, old)]
        yield from states


def _is_narrow(node: Node, x: Node, **numbers: float) -> bool:
    """Whether it is a float of up to 32 bits, in which other runtimes have these operators."""
    return node.dtype.is_floating_point and node.dtype is not dtypes.float64


_FAR = 20.0  # from here on, log(1 + e**x) is x in float32
x, slope, far, gamma, alpha = wildcard("x"), number("slope"), number("far"), number("gamma"), number("alpha")
_negative = op.less(x, 0)
_power = op.exp(op.where(_negative, x, -x))
_positive, _above = op.less(0, x), op.less(far, x)
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
        op.where(_above, x, op.log1p(op.exp(op.where(_above, 0, x)))),
        O.softplus,
        lambda far: {},
        lambda node, x, far: far >= _FAR and _is_narrow(node, x),
    ),
    Formula(x * op.tanh(op.softplus(x)), O.mish),
    Formula(x / (op.abs(x) + 1), O.softsign, fits=_is_narrow),
)
