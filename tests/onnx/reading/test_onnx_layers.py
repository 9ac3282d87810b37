"""`with_layers` finds the weights of models as exporters write them, with every optional attribute left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import minitorch as mt
from minitorch import quantization

RANDOM = np.random.default_rng(2)
Made = tuple[list[Any], dict[str, Any]]


def real(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.standard_normal(shape).astype(np.float32)


def source(kind: str, weight: np.ndarray[Any, Any], name: str = "w") -> Made:
    """What gives a weight its name: nodes and initializers."""
    raw, node = f"{name}0", helper.make_node
    integers = np.rint(weight * 20).astype(np.int8)
    table: dict[str, Made] = {
        "initializer": ([], {name: weight}),
        "Identity": ([node("Identity", [raw], [name])], {raw: weight}),
        "Constant": ([node("Constant", [], [name], value=numpy_helper.from_array(weight))], {}),
        "Cast": ([node("Cast", [raw], [name], to=1)], {raw: weight.astype(np.float16)}),
        "Transpose": ([node("Transpose", [raw], [name])], {raw: weight.T.copy()}),
        "DequantizeLinear": (
            [node("DequantizeLinear", [raw, "scale"], [name])], {raw: integers, "scale": np.array([0.05], np.float32)},
        ),
        "several": (
            [node("Identity", [raw], ["w1"]), node("Transpose", ["w1"], ["w2"]), node("Transpose", ["w2"], [name])],
            {raw: weight},
        ),
    }  # fmt: skip
    return table[kind]


KINDS = ("initializer", "Identity", "Constant", "Cast", "Transpose", "DequantizeLinear", "several")


def model_of(nodes: list[Any], held: dict[str, Any], opset: int) -> Any:
    """A model from x to y."""
    info = helper.make_tensor_value_info
    initializers = [numpy_helper.from_array(array, name) for name, array in held.items()]
    graph = helper.make_graph(nodes, "g", [info("x", 1, None)], [info("y", 1, None)], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return mt.export.load_onnx(model).eval()


def layers(model: Any, x: Any) -> list[str]:
    """The layers of a model, whose results stay."""
    layered = model.with_layers().eval()
    with mt.no_grad():
        np.testing.assert_allclose(layered(x).numpy(), model(x).numpy(), rtol=1e-6, atol=1e-6)
    return [type(each).__name__ for each in layered.children()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("opset", [7, 12, 13, 17])
def test_a_convolution_and_its_normalization_without_attributes(kind: str, opset: int) -> None:
    if kind == "DequantizeLinear" and opset < 10:
        pytest.skip("it came with opset 10")
    nodes, held = source(kind, real(4, 3, 3, 3))
    nodes = [
        *nodes,
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["y"]),
    ]
    held = {**held, "s": real(4), "b": real(4), "m": real(4), "v": abs(real(4)) + 0.5}
    assert layers(model_of(nodes, held, opset), mt.randn(2, 3, 6, 6)) == ["Conv2d", "BatchNorm2d"]


@pytest.mark.parametrize("kind", KINDS)
def test_products_without_attributes(kind: str) -> None:
    one, two = source(kind, real(5, 4)), source(kind, real(4, 3), "u")
    nodes = [
        *one[0],
        *two[0],
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Gemm", ["h", "u"], ["y"]),
    ]
    if kind != "several":  # whose names are taken
        assert layers(model_of(nodes, {**one[1], **two[1]}, 17), mt.randn(2, 5)) == ["Linear", "Linear"]


def test_a_weight_of_two_products_stays_one_parameter() -> None:
    node = helper.make_node
    nodes = [
        node("Identity", ["w0"], ["w"]), node("Identity", ["w0"], ["u"]),
        node("MatMul", ["x", "w"], ["h"]), node("MatMul", ["h", "u"], ["y"]),
    ]  # fmt: skip
    model = model_of(nodes, {"w0": real(4, 4)}, 17)
    assert layers(model, mt.randn(2, 4)) == [] and len(list(model.with_layers().parameters())) == 1


def test_a_quantised_product_stays_as_it_is() -> None:
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "s"], ["q"]), node("DequantizeLinear", ["q", "s"], ["d"]),
        node("DequantizeLinear", ["w0", "s"], ["w"]), node("MatMul", ["d", "w"], ["y"]),
    ]  # fmt: skip
    held = {"w0": np.arange(-8, 8, dtype=np.int8).reshape(4, 4), "s": np.array(0.1, np.float32)}
    assert layers(model_of(nodes, held, 17), mt.randn(2, 4)) == []


def test_a_model_of_two_inputs_is_calibrated_and_reported() -> None:
    """All inputs of a batch go to the model; labels come behind them."""

    class Both(mt.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = mt.nn.Linear(4, 3), mt.nn.Linear(5, 3)

        def forward(self, x: Any, y: Any, scale: float = 1.0) -> Any:
            return self.one(x) + self.other(y) * scale

    model = Both().eval()
    read = mt.export.load_onnx(mt.export.onnx(model, mt.ones(8, 4), mt.ones(8, 5))).eval().with_layers().eval()
    batches = [(real(8, 4), mt.randn(8, 5), mt.zeros(8, dtype="int64")) for _ in range(3)]
    given = (mt.tensor(batches[0][0]), batches[0][1])
    for each in (model, read):
        quantised = quantization.convert(quantization.calibrate(quantization.prepare(each, example=given), batches))
        with mt.no_grad():
            assert 0 < abs(quantised(*given) - each(*given)).max().item() < 0.1
    assert quantization.report(model, batches).measure == "accuracy"
    assert quantization.report(model, [batch[:2] for batch in batches]).measure == "agreement"
