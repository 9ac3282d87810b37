"""The rows of activations that are composed of comparisons and selections, each an operator of ONNX."""

from __future__ import annotations

from collections.abc import Callable

from minitorch.ir import Node

from .building import Building, Row, plain
from .terms import Term, in_type


def _clip(b: Building, node: Node, operands: list[str]) -> str:
    """`Clip` with both bounds: without one, ONNX takes the largest finite number in place of infinity."""
    wide = b.computed("Clip", node.dtype)
    bounds = [b.scalar(node.params[name], wide) for name in ("low", "high")]
    return b.cast(b.op("Clip", b.cast(operands[0], node.dtype, wide), *bounds), wide, node.dtype)


def _elu(b: Building, node: Node, operands: list[str]) -> str:
    alpha, gamma = node.params["alpha"], node.params["gamma"]
    if gamma == 1:
        return b.apply("Elu", node.dtype, *operands, alpha=alpha)
    return b.apply("Selu", node.dtype, *operands, alpha=alpha, gamma=gamma)


def _composed(kind: str, since: int, compose: Callable[..., Term]) -> Row:
    """An operator, and before the version that has it, its definition."""

    def row(b: Building, node: Node, operands: list[str]) -> str:
        return b.apply(kind, node.dtype, *operands) if b.opset >= since else in_type(compose)(b, node, operands)

    return row


def _leaky_relu(b: Building, node: Node, operands: list[str]) -> str:
    return b.apply("LeakyRelu", node.dtype, *operands, alpha=node.params["slope"])


def _hard_gate(x: Term) -> Term:
    return x.HardSigmoid(alpha=1 / 6, beta=0.5)


ROWS: dict[str, Row] = {
    "clip": _clip,
    "elu": _elu,
    "hardsigmoid": in_type(_hard_gate),
    "hardswish": _composed("HardSwish", 14, lambda x: x * _hard_gate(x)),
    "leaky_relu": _leaky_relu,
    "mish": _composed("Mish", 18, lambda x: x * x.Softplus().Tanh()),
    "softplus": plain("Softplus"),
    "softsign": plain("Softsign"),
}
