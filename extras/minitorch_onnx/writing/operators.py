"""The rows of operators: each is ONNX's operator of that name, or what that is composed of, for older opsets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.dtypes import DType
from minitorch.ir import Node
from minitorch.sizes import is_symbolic, same

from .building import Building, Row, plain
from .elementwise import in_type, is_negative


def _along(kind: str) -> Row:
    def row(b: Building, node: Node, operands: list[str]) -> str:
        return b.apply(kind, node.dtype, *operands, axis=node.params["dim"])

    return row


def _signbit(b: Building, node: Node, operands: list[str]) -> str:
    dtype = node.inputs[0].dtype
    wide = dtypes.float32 if dtype is dtypes.bfloat16 else dtype
    return is_negative(b, wide, b.cast(operands[0], dtype, wide))


def _silu(b: Building, dtype: DType, x: str) -> str:
    """The operator Swish, of opset 24, has no kernel in ONNX Runtime 1.32."""
    return b.op("Mul", x, b.op("Sigmoid", x))


def _gelu(b: Building, node: Node, operands: list[str]) -> str:
    approximate = node.params["approximate"]
    if b.opset >= 20:
        more = {} if approximate == "none" else {"approximate": approximate}
        return b.apply("Gelu", node.dtype, *operands, **more)

    def compose(b: Building, dtype: DType, x: str) -> str:
        if approximate == "none":
            bent = b.op("Erf", b.op("Mul", x, b.number(math.sqrt(0.5), dtype)))
        else:
            cube = b.op("Mul", b.op("Mul", b.op("Mul", x, x), x), b.number(0.044715, dtype))
            bent = b.op("Tanh", b.op("Mul", b.op("Add", x, cube), b.number(math.sqrt(2 / math.pi), dtype)))
        return b.op("Mul", b.op("Mul", x, b.number(0.5, dtype)), b.op("Add", bent, b.number(1, dtype)))

    return in_type(compose)(b, node, operands)


# Normalisations -------------------------------------------------------------------------------------------


def _mean(b: Building, name: str, last: int) -> str:
    axes = list(range(-last, 0))
    return b.op("ReduceMean", name, b.constant(axes)) if b.opset >= 18 else b.op("ReduceMean", name, axes=axes)


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

        def compose(b: Building, dtype: DType, x: str, *parameters: str) -> str:
            centered = b.op("Sub", x, _mean(b, x, last)) if kind == "LayerNormalization" else x
            square = _mean(b, b.op("Mul", centered, centered), last)
            found = b.op("Div", centered, b.op("Sqrt", b.op("Add", square, b.number(eps, dtype))))
            for apply, each in zip(("Mul", "Add"), parameters, strict=False):
                found = b.op(apply, found, each)
            return found

        return in_type(compose)(b, node, operands)

    return row


def _group_norm(b: Building, node: Node, operands: list[str]) -> str:
    groups, eps, lengths = node.params["groups"], node.params["eps"], node.shape
    if b.opset >= 21:
        return b.apply("GroupNormalization", node.dtype, *operands, num_groups=groups, epsilon=eps)

    def compose(b: Building, dtype: DType, x: str, *parameters: str) -> str:
        grouped = b.op("Reshape", x, b.constant([0, groups, -1]))
        ones, zeros = (b.constant(np.full(groups, value, dtype.numpy)) for value in (1, 0))
        found = b.op("InstanceNormalization", grouped, ones, zeros, epsilon=eps)
        found = b.op("Reshape", found, b.op("Shape", x) if any(map(is_symbolic, lengths)) else b.constant(lengths))
        for apply, each in zip(("Mul", "Add"), parameters, strict=True):
            found = b.op(apply, found, b.op("Reshape", each, b.constant([-1, *(1,) * (node.spec.ndim - 2)])))
        return found

    return in_type(compose)(b, node, operands)


def _batch_norm(b: Building, node: Node, operands: list[str]) -> str:
    return b.apply("BatchNormalization", node.dtype, *operands, epsilon=node.params["eps"])


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


ROWS: dict[str, Row] = {
    "avg_pool": _avg_pool,
    "batch_norm": _batch_norm,
    "conv": _conv,
    "dequantize": _quantized("DequantizeLinear"),
    "gelu": _gelu,
    "gemm": _gemm,
    "group_norm": _group_norm,
    "layer_norm": _normalized("LayerNormalization", 17),
    "log_softmax": _along("LogSoftmax"),
    "matmul": plain("MatMul"),
    "max_pool": _max_pool,
    "quantize": _quantized("QuantizeLinear"),
    "relu": plain("Relu"),
    "rms_norm": _normalized("RMSNormalization", 23),
    "sigmoid": plain("Sigmoid"),
    "signbit": _signbit,
    "silu": in_type(_silu),
    "softmax": _along("Softmax"),
}
