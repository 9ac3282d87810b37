"""A quantised network in Q/DQ form, for onnxruntime and for this library, of the same integers.

    x ─Q─DQ─► Conv, ReLU ─Q─DQ─► MaxPool ─► Conv ─Q─DQ─► Add ─Q─DQ─► Flatten ─► Linear ─Q─►
                                    └────────────────────────┘

Activations are uint8 with a zero point, weights int8 with a scale for each channel, biases int32 by the product of the
scales, as onnxruntime's quantiser writes them. Every activation that is quantised is a result, as integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Scale and zero point of each activation, in the order in which they are made.
ACTIVATIONS: dict[str, tuple[float, int]] = {
    "x": (0.031, 117), "first": (0.024, 0), "second": (0.037, 131), "sum": (0.041, 120), "logits": (0.083, 126),
}  # fmt: skip

# Shape of the weight of each layer, and the activation that it reads.
LAYERS: dict[str, tuple[tuple[int, ...], str]] = {
    "first": ((6, 3, 3, 3), "x"), "second": ((6, 6, 3, 3), "first"), "last": ((10, 96), "sum"),
}  # fmt: skip


def weights() -> dict[str, Array]:
    """Weights as integers, their scales, and biases as int32, by layer."""
    random = np.random.RandomState(23)
    held: dict[str, Array] = {}
    for name, (shape, before) in LAYERS.items():
        scale = random.uniform(0.002, 0.006, shape[0]).astype(np.float32)
        held[name] = random.randint(-127, 128, shape).astype(np.int8)
        held[f"{name} scale"] = scale
        real = random.standard_normal(shape[0]).astype(np.float32)
        held[f"{name} bias"] = np.rint(real / (scale * np.float32(ACTIVATIONS[before][0]))).astype(np.int32)
    return held


def inputs() -> Array:
    """Four pictures of 3 by 8 by 8."""
    return np.random.RandomState(24).standard_normal((4, 3, 8, 8)).astype(np.float32)


def network(x: Any) -> dict[str, Any]:
    """The network in this library: the integers of every activation, by name."""
    import minitorch as mt
    from minitorch import quantization as q

    F, held = mt.nn.functional, {name: mt.tensor(value) for name, value in weights().items()}
    found: dict[str, Any] = {}

    def rounded(value: Any, name: str) -> Any:
        scale, zero_point = ACTIVATIONS[name]
        qparams = q.QParams(mt.tensor(scale), mt.tensor(zero_point, dtype=mt.int32), mt.uint8, 0, 255, None)
        found[name] = q.quantize(value, qparams)
        return q.dequantize(found[name], qparams)

    def layer(name: str, before: str) -> tuple[Any, Any]:
        scale = held[f"{name} scale"]
        zeros = mt.zeros(scale.shape, dtype=mt.int32)
        weight = q.dequantize(held[name], q.QParams(scale, zeros, mt.int8, -128, 127, 0))
        return weight, held[f"{name} bias"].float() * (scale * ACTIVATIONS[before][0])

    x = rounded(x, "x")
    first = rounded(F.relu(F.conv2d(x, *layer("first", "x"), padding=1)), "first")
    pooled = F.max_pool2d(first, 2)
    second = rounded(F.conv2d(pooled, *layer("second", "first"), padding=1), "second")
    total = rounded(second + pooled, "sum")
    rounded(F.linear(total.flatten(1), *layer("last", "sum")), "logits")
    return found


def onnx_model() -> Any:
    """The same as an ONNX model, whose results are the integers of every activation."""
    from onnx import TensorProto, checker, helper, numpy_helper, shape_inference

    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(value: Any, name: str) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(kind: str, names: list[str], result: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, names, [result], **attributes))
        return result

    def rounded(value: str, name: str) -> str:
        scale, zero_point = ACTIVATIONS[name]
        pair = [constant(np.float32(scale), f"{name}.scale"), constant(np.uint8(zero_point), f"{name}.zero")]
        integers = node("QuantizeLinear", [value, *pair], f"{name}.integers")
        return node("DequantizeLinear", [integers, *pair], f"{name}.real")

    held = weights()

    def layer(name: str, before: str) -> list[str]:
        scale, places = held[f"{name} scale"], np.zeros(len(held[f"{name} scale"]))
        zeros = constant(places.astype(np.int8), f"{name}.z")
        weight = [constant(held[name], f"{name}.w"), constant(scale, f"{name}.s"), zeros]
        products = constant(scale * np.float32(ACTIVATIONS[before][0]), f"{name}.bs")
        bias = [constant(held[f"{name} bias"], f"{name}.b"), products, constant(places.astype(np.int32), f"{name}.bz")]
        return [
            node("DequantizeLinear", weight, f"{name}.weight", axis=0),
            node("DequantizeLinear", bias, f"{name}.bias", axis=0),
        ]

    window: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1] * 4}
    x = rounded("x", "x")
    first = node("Conv", [x, *layer("first", "x")], "first.sum", **window)
    first = rounded(node("Relu", [first], "first.value"), "first")
    pooled = node("MaxPool", [first], "pooled", kernel_shape=[2, 2], strides=[2, 2])
    second = rounded(node("Conv", [pooled, *layer("second", "first")], "second.value", **window), "second")
    total = rounded(node("Add", [second, pooled], "sum.value"), "sum")
    flat = node("Flatten", [total], "flat")
    rounded(node("Gemm", [flat, *layer("last", "sum")], "logits.value", transB=1), "logits")
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, inputs().shape)]
    graph = helper.make_graph(nodes, "network", given, [], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    shapes = {info.name: info for info in shape_inference.infer_shapes(model).graph.value_info}
    model.graph.output.extend(shapes[f"{name}.integers"] for name in ACTIVATIONS)
    checker.check_model(model)
    return model
