"""The rows of operators: each is ONNX's operator of that name, or what that is composed of, for older opsets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.ir import Node
from minitorch.sizes import is_symbolic, same

from .building import Building, Row, operator
from .elementwise import is_negative
from .terms import Term, in_type


def _signbit(b: Building, node: Node, operands: list[str]) -> str:
    dtype = node.inputs[0].dtype
    wide = dtypes.float32 if dtype is dtypes.bfloat16 else dtype
    return is_negative(Term(b, wide, b.cast(operands[0], dtype, wide))).name


def _gelu(b: Building, node: Node, operands: list[str]) -> str:
    approximate = node.params["approximate"]
    if b.opset >= 20:
        more = {} if approximate == "none" else {"approximate": approximate}
        return b.apply("Gelu", node.dtype, *operands, **more)

    def compose(x: Term) -> Term:
        if approximate == "none":
            bent = (x * math.sqrt(0.5)).Erf()
        else:
            bent = ((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)).Tanh()
        return x * 0.5 * (bent + 1)

    return in_type(compose)(b, node, operands)


# Normalisations -------------------------------------------------------------------------------------------


def _mean(x: Term, last: int) -> Term:
    axes, b = list(range(-last, 0)), x.b
    return Term(b, x.dtype, b.op("ReduceMean", x.name, b.constant(axes))) if b.opset >= 18 else x.ReduceMean(axes=axes)


def _normalized(kind: str, since: int) -> Row:
    """Layer norm or RMS norm over the last dimensions."""

    def row(b: Building, node: Node, operands: list[str]) -> str:
        last, eps, dtype = node.params["last"], node.params["eps"], node.dtype
        given = len(operands) - 1
        lengths = node.shape[-last:]
        if b.opset >= since and not any(map(is_symbolic, lengths)):
            wide = b.computed(kind, dtype)
            names = [b.cast(each, dtype, wide) for each in operands]
            if not given:
                names.append(b.constant(np.ones(node.shape[-last:], wide.numpy)))
            return b.cast(b.op(kind, *names, axis=-last, epsilon=eps), wide, dtype)

        def compose(x: Term, *parameters: Term) -> Term:
            centered = x - _mean(x, last) if kind == "LayerNormalization" else x
            found: Term = centered / (_mean(centered * centered, last) + eps).Sqrt()
            for apply, each in zip(("Mul", "Add"), parameters, strict=False):
                found = found.of(apply, found, each)
            return found

        return in_type(compose)(b, node, operands)

    return row


def _group_norm(b: Building, node: Node, operands: list[str]) -> str:
    groups, eps, lengths = node.params["groups"], node.params["eps"], node.shape
    if b.opset >= 21:
        return b.apply("GroupNormalization", node.dtype, *operands, num_groups=groups, epsilon=eps)

    def compose(x: Term, *parameters: Term) -> Term:
        grouped = b.op("Reshape", x.name, b.constant([0, groups, -1]))
        ones, zeros = (b.constant(np.full(groups, value, x.dtype.numpy)) for value in (1, 0))
        name = b.op("InstanceNormalization", grouped, ones, zeros, epsilon=eps)
        shape = b.op("Shape", x.name) if any(map(is_symbolic, lengths)) else b.constant(lengths)
        name = b.op("Reshape", name, shape)
        for apply, each in zip(("Mul", "Add"), parameters, strict=True):
            name = b.op(apply, name, b.op("Reshape", each.name, b.constant([-1, *(1,) * (node.spec.ndim - 2)])))
        return Term(b, x.dtype, name)

    return in_type(compose)(b, node, operands)


# Windows --------------------------------------------------------------------------------------------------


def _windows(b: Building) -> dict[str, Any]:
    """The attributes that convolutions and pools have in common."""
    pads = b.fixed("pads")
    return {
        "strides": list(b.fixed("strides")),
        "pads": [before for before, _ in pads] + [after for _, after in pads],
        "dilations": list(b.fixed("dilations")),
    }


def _conv(b: Building, node: Node, operands: list[str]) -> str:
    size = list(node.inputs[1].shape[2:])
    return b.apply("Conv", node.dtype, *operands, kernel_shape=size, group=node.params["groups"], **_windows(b))


def _max_pool(b: Building, node: Node, operands: list[str]) -> str:
    if node.dtype.is_floating_point and _is_whole(node):
        return b.apply("GlobalMaxPool", node.dtype, *operands)
    size = list(b.fixed("lengths"))
    if node.dtype.is_floating_point:
        return b.apply("MaxPool", node.dtype, *operands, kernel_shape=size, **_windows(b))
    return b.op("MaxPool", *operands, kernel_shape=size, **_windows(b))


def _is_whole(node: Node) -> bool:
    """Whether the window is the whole input, of any size."""
    return same(node.params["lengths"], node.inputs[0].shape[2:]) and not any(map(any, node.params["pads"]))


def _avg_pool(b: Building, node: Node, operands: list[str]) -> str:
    if _is_whole(node):
        return b.apply("GlobalAveragePool", node.dtype, *operands)
    attributes = _windows(b)
    del attributes["dilations"]  # all 1; an attribute from opset 19 on
    if any(attributes["pads"]):
        attributes["count_include_pad"] = 1
    return b.apply("AveragePool", node.dtype, *operands, kernel_shape=list(b.fixed("lengths")), **attributes)


# Products, Q/DQ -------------------------------------------------------------------------------------------


def _gemm(b: Building, node: Node, operands: list[str]) -> str:
    more: dict[str, Any] = {"transB": 1} if node.params["transposed"] else {}
    return b.apply("Gemm", node.dtype, *operands, **more)


def _quantized(kind: str) -> Row:
    def row(b: Building, node: Node, operands: list[str]) -> str:
        more = {"axis": node.params["dim"]} if node.inputs[1].shape else {}
        return b.op(kind, *operands, **more)

    return row


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


def _hard_gate(x: Term) -> Term:
    return x.HardSigmoid(alpha=1 / 6, beta=0.5)


ROWS: dict[str, Row] = {
    "avg_pool": _avg_pool,
    "batch_norm": operator("BatchNormalization", epsilon="eps"),
    "clip": _clip,
    "conv": _conv,
    "dequantize": _quantized("DequantizeLinear"),
    "elu": _elu,
    "gelu": _gelu,
    "gemm": _gemm,
    "group_norm": _group_norm,
    "hardsigmoid": in_type(_hard_gate),
    "hardswish": _composed("HardSwish", 14, lambda x: x * _hard_gate(x)),
    "layer_norm": _normalized("LayerNormalization", 17),
    "leaky_relu": operator("LeakyRelu", alpha="slope"),
    "log_softmax": operator("LogSoftmax", axis="dim"),
    "matmul": operator("MatMul"),
    "max_pool": _max_pool,
    "mish": _composed("Mish", 18, lambda x: x * x.Softplus().Tanh()),
    "quantize": _quantized("QuantizeLinear"),
    "relu": operator("Relu"),
    "rms_norm": _normalized("RMSNormalization", 23),
    "sigmoid": operator("Sigmoid"),
    "signbit": _signbit,
    "silu": in_type(lambda x: x * x.Sigmoid()),  # Swish, of opset 24, has no kernel in ONNX Runtime 1.32
    "softmax": operator("Softmax", axis="dim"),
    "softplus": operator("Softplus"),
    "softsign": operator("Softsign"),
}
