"""The models as ONNX graphs, by their parameters: what onnxruntime is given in float, and quantises by its own tools.

Operator set 20 (``LayerNormalization``, ``Gelu``). A batch normalization stays a node, which onnxruntime folds itself.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ..libraries import EPS, HEADS, Array
from .models import NORMALIZED, STRIDES

OPSET, IR_VERSION, MICROSOFT = 20, 10, "com.microsoft"
GROUP = 32  # numbers of 4 bits with one scale
ACCURACIES = (1, 4)


class Writer:
    """Nodes of a graph in the order in which they are written, each with one result."""

    def __init__(self, helper: Any, numpy_helper: Any) -> None:
        self.helper, self.numpy_helper = helper, numpy_helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """The name of a constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.numpy_helper.from_array(np.asarray(value), name))
        return name

    def __call__(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """The name of an operator's result; inputs are names, or arrays, which become constants."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        result = f"v{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, names, [result], name=f"{kind}{len(self.nodes)}", **attributes))
        return result


def _mlp(write: Writer, parameters: list[Array], shape: tuple[int, ...]) -> str:
    x = "x"
    for at in range(0, len(parameters), 2):
        x = write("Gemm", write("Relu", x) if at else x, parameters[at], parameters[at + 1])
    return x


def _cnn(write: Writer, parameters: list[Array], shape: tuple[int, ...]) -> str:
    x = "x"
    for stride, at in zip(STRIDES, range(0, len(parameters), NORMALIZED), strict=True):
        weight, bias, *norm = parameters[at : at + NORMALIZED]
        x = write("Conv", x, weight, bias, kernel_shape=[3, 3], strides=[stride] * 2, pads=[1] * 4)
        x = write("Relu", write("BatchNormalization", x, *norm, epsilon=EPS))
    return x


def _block(write: Writer, parameters: list[Array], shape: tuple[int, ...]) -> str:
    n1, c1, w_qkv, b_qkv, w_out, b_out, n2, c2, w1, b1, w2, b2 = parameters
    width = shape[-1]
    split, joined = np.array([0, 0, HEADS, width // HEADS]), np.array([0, 0, width])  # 0: as it was

    def linear(x: str, weight: Array, bias: Array) -> str:
        return write("Add", write("MatMul", x, weight), bias)

    def normalized(x: str, weight: Array, bias: Array) -> str:
        return write("LayerNormalization", x, weight, bias, axis=-1, epsilon=EPS)

    qkv, ends = linear(normalized("x", n1, c1), w_qkv, b_qkv), [number * width for number in range(4)]
    axis, orders = np.array([2]), ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    parts = [write("Slice", qkv, np.array([low]), np.array([high]), axis) for low, high in pairwise(ends)]
    q, k, v = (
        write("Transpose", write("Reshape", part, split), perm=order) for part, order in zip(parts, orders, strict=True)
    )
    scores = write("Mul", write("MatMul", q, k), np.float32(math.sqrt(HEADS / width)))
    mixed = write("Transpose", write("MatMul", write("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    x = write("Add", "x", linear(write("Reshape", mixed, joined), w_out, b_out))
    hidden = write("Gelu", linear(normalized(x, n2, c2), w1, b1), approximate="tanh")
    return write("Add", x, linear(hidden, w2, b2))


def _product(write: Writer, parameters: list[Array], shape: tuple[int, ...]) -> str:
    return write("MatMul", "x", parameters[0])


GRAPHS = {"MLP": _mlp, "CNN": _cnn, "block": _block, "product": _product}


def graph(name: str, parameters: list[Array], shape: tuple[int, ...]) -> Any:
    """The ONNX model of a name, for inputs ``x`` of a shape; its result is ``y``."""
    from onnx import helper, numpy_helper

    write = Writer(helper, numpy_helper)
    write.nodes.append(helper.make_node("Identity", [GRAPHS[name](write, parameters, shape)], ["y"]))
    return _finished(write, name, shape)


def product_of_4_bits(weight: Array, shape: tuple[int, ...], accuracy: int) -> Any:
    """The ONNX model of a matrix times a vector, by onnxruntime's operator ``MatMulNBits``.

    Args:
        weight: [in, out]; groups of `GROUP` along the first axis have a scale each.
        shape: of the input.
        accuracy: of `ACCURACIES`: 4 rounds the input to int8, 1 does not.
    """
    from onnx import helper, numpy_helper

    rows, columns = weight.shape
    groups = weight.T.reshape(columns, rows // GROUP, GROUP)
    scales = np.abs(groups).max(-1, keepdims=True) / np.float32(7)
    integers = (np.clip(np.rint(groups / scales), -8, 7) + 8).astype(np.uint8)
    packed = integers[..., ::2] | (integers[..., 1::2] << 4)
    write = Writer(helper, numpy_helper)
    sizes = {"K": rows, "N": columns, "bits": 4, "block_size": GROUP, "accuracy_level": accuracy}
    result = write("MatMulNBits", "x", packed, scales.reshape(-1), domain=MICROSOFT, **sizes)
    write.nodes.append(helper.make_node("Identity", [result], ["y"]))
    return _finished(write, "product", shape)


def product_of_8_bits(weight: Array) -> Any:
    """The ONNX model of a product of matrices, uint8 [n, in] by int8 [in, out], with sums of 32 bits."""
    from onnx import TensorProto, helper, numpy_helper

    write = Writer(helper, numpy_helper)
    write.nodes.append(helper.make_node("Identity", [write("MatMulInteger", "x", weight)], ["y"]))
    return _finished(write, "product", weight.shape, TensorProto.UINT8, TensorProto.INT32)


def _finished(write: Writer, name: str, shape: tuple[int, ...], inside: int = 1, outside: int = 1) -> Any:
    """The model: what is written, with an input and an output of these types, float32 (1) unless told."""
    import onnx
    from onnx import helper

    given = helper.make_tensor_value_info("x", inside, shape)
    found = helper.make_tensor_value_info("y", outside, [f"d{axis}" for axis in range(len(shape))])
    made = helper.make_graph(write.nodes, name, [given], [found], write.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model
