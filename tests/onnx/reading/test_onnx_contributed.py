"""Operators of ONNX Runtime (`com.microsoft`), and models as its quantiser writes them, beside ONNX Runtime itself."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime.quantization
import pytest
from onnx import helper, numpy_helper, save

import minitorch as mt
from minitorch_onnx.reading.functions import MICROSOFT, TEXTS

RANDOM = np.random.default_rng(11)
SCALE, ONE = np.float32(0.04), np.array([0.05], np.float32)  # of no dimension, and of one, as quantisers write both
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def same_numbers_in_any_order() -> None:
    RANDOM.bit_generator.state = np.random.default_rng(12).bit_generator.state


def real(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def i8(*shape: int) -> Array:
    """Seven bits: on x86 without VNNI, ONNX Runtime adds two products of u8 and s8 in 16 bits, which saturates."""
    return RANDOM.integers(-64, 64, shape).astype(np.int8)


def zero(value: int, *shape: int, dtype: Any = np.uint8) -> Array:
    return np.full(shape, value, dtype)


X = [u8(2, 3, 4, 4), SCALE, zero(120)]
BESIDE = [u8(2, 3, 4, 4), np.float32(0.05), zero(130)]
OUT = [np.float32(0.06), zero(127)]
CHANNELS = np.linspace(0.01, 0.03, 6, dtype=np.float32)
MATRIX, ACROSS = [i8(5, 6), CHANNELS, zero(0, 6, dtype=np.int8)], [i8(6, 5), CHANNELS, zero(0, 6, dtype=np.int8)]
ROWS = [u8(4, 5), SCALE, zero(120)]
FILTERS = [i8(6, 3, 3, 3), CHANNELS, zero(0, 6, dtype=np.int8)]
BIAS = RANDOM.integers(-900, 900, 6).astype(np.int32)
POOL = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 0, 0, 1]}
GATES = {"hidden_size": 4, "direction": "bidirectional"}

# Operator, inputs, attributes; of ai.onnx or com.microsoft.
FORMS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("QLinearConv", [*X, *FILTERS, *OUT, BIAS], {"pads": [1, 1, 1, 1]}),
    ("QLinearConv", [*X, i8(6, 3, 3, 3), ONE, zero(0, 1, dtype=np.int8), *OUT], {"strides": [2, 2]}),
    ("QLinearConv", [*X, u8(3, 1, 3, 3), ONE, zero(128, 1), *OUT], {"group": 3, "auto_pad": "SAME_UPPER"}),
    ("QLinearMatMul", [*ROWS, *MATRIX, *OUT], {}),
    ("QLinearMatMul", [u8(2, 4, 5), ONE, zero(120, 1), i8(2, 5, 3), ONE, zero(3, 1, dtype=np.int8), *OUT], {}),
    ("com.microsoft.BiasGelu", [real(2, 5), real(5)], {}),
    ("com.microsoft.DequantizeLinear", [u8(2, 5), SCALE, zero(7)], {}),
    ("com.microsoft.DequantizeLinear", [i8(2, 6), CHANNELS, zero(0, 6, dtype=np.int8)], {"axis": 1}),
    ("com.microsoft.DynamicQuantizeLSTM", [
        real(3, 2, 5), u8(2, 5, 16), u8(2, 4, 16), real(2, 32), None, None, None, None,
        np.full(2, 0.01, np.float32), zero(128, 2), np.full(2, 0.02, np.float32), zero(120, 2),
    ], GATES),
    ("com.microsoft.DynamicQuantizeLSTM", [
        real(3, 2, 5), i8(2, 5, 16), i8(2, 4, 16), None, None, real(2, 2, 4), real(2, 2, 4), None,
        np.full((2, 16), 0.01, np.float32), zero(0, 2, 16, dtype=np.int8), np.full((2, 16), 0.02, np.float32),
        zero(0, 2, 16, dtype=np.int8),
    ], GATES),
    ("com.microsoft.DynamicQuantizeMatMul", [real(4, 5), *MATRIX, real(6)], {}),
    ("com.microsoft.DynamicQuantizeMatMul", [real(2, 4, 5), u8(5, 6), ONE, zero(128, 1)], {}),
    ("com.microsoft.FastGelu", [real(2, 5), real(5)], {}),
    ("com.microsoft.FastGelu", [real(2, 5)], {}),
    ("com.microsoft.FusedConv", [real(2, 3, 4, 4), real(6, 3, 3, 3), real(6)], {"activation": "Relu"}),
    ("com.microsoft.FusedConv", [real(2, 3, 4, 4), real(6, 3, 1, 1), None, real(2, 6, 4, 4)], {"activation": "Relu"}),
    ("com.microsoft.FusedConv", [real(2, 3, 4, 4), real(6, 3, 1, 1)],
     {"activation": "LeakyRelu", "activation_params": [0.2]}),
    ("com.microsoft.FusedConv", [real(2, 3, 4, 4), real(6, 3, 1, 1)],
     {"activation": "HardSigmoid", "activation_params": [0.2, 0.5]}),
    ("com.microsoft.FusedConv", [real(2, 3, 4, 4), real(6, 3, 1, 1)],
     {"activation": "Clip", "activation_params": [-0.5, 0.5]}),
    ("com.microsoft.FusedGemm", [real(4, 5), real(6, 5), real(6)], {"transB": 1, "activation": "Relu"}),
    ("com.microsoft.FusedGemm", [real(4, 5), real(5, 6)],
     {"alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.2}),
    ("com.microsoft.FusedMatMul", [real(2, 4, 5), real(2, 6, 5)], {"transB": 1, "alpha": 0.25}),
    ("com.microsoft.FusedMatMul", [real(2, 5, 4), real(5, 6)], {"transA": 1}),
    ("com.microsoft.Gelu", [real(2, 5)], {}),
    ("com.microsoft.MatMulIntegerToFloat", [ROWS[0], MATRIX[0], SCALE, CHANNELS, zero(120), MATRIX[2], real(6)], {}),
    ("com.microsoft.MatMulIntegerToFloat", [u8(2, 4, 5), u8(5, 6), ONE, ONE, zero(9, 1), zero(128, 1)], {}),
    ("com.microsoft.NhwcMaxPool", [u8(1, 4, 4, 3)], POOL),
    ("com.microsoft.QGemm", [*ROWS, *MATRIX, BIAS, *OUT], {}),
    ("com.microsoft.QGemm", [*ROWS, *ACROSS, BIAS, *OUT], {"transB": 1, "alpha": 0.5}),
    ("com.microsoft.QGemm", [*ROWS, u8(5, 6), ONE, zero(128, 1)], {}),
    ("com.microsoft.QLinearAdd", [*X, *BESIDE, *OUT], {}),
    ("com.microsoft.QLinearAveragePool", [*X, *OUT], {**POOL, "count_include_pad": 1}),
    ("com.microsoft.QLinearAveragePool", [u8(1, 4, 4, 3), SCALE, zero(120), *OUT], {**POOL, "channels_last": 1}),
    ("com.microsoft.QLinearConcat", [*OUT, *X, *BESIDE], {"axis": 1}),
    ("com.microsoft.QLinearConv", [u8(2, 4, 4, 3), SCALE, zero(120), *FILTERS, *OUT, BIAS],
     {"pads": [1, 1, 1, 1], "channels_last": 1}),
    ("com.microsoft.QLinearGlobalAveragePool", [*X, *OUT], {}),
    ("com.microsoft.QLinearGlobalAveragePool", [u8(1, 4, 4, 3), SCALE, zero(120), *OUT], {"channels_last": 1}),
    ("com.microsoft.QLinearLeakyRelu", [*X, *OUT], {"alpha": 0.2}),
    ("com.microsoft.QLinearMul", [*X, *BESIDE, *OUT], {}),
    ("com.microsoft.QLinearSigmoid", [*X, np.float32(1 / 256), zero(0)], {}),
    ("com.microsoft.QLinearSoftmax", [*ROWS, np.float32(1 / 256), zero(0)], {"axis": -1, "opset": 13}),
    ("com.microsoft.QLinearSoftmax", [*X, np.float32(1 / 256), zero(0)], {"axis": 1, "opset": 12}),
    ("com.microsoft.QLinearWhere", [np.tile([True, False], (2, 3, 4, 2)), *X, *BESIDE, *OUT], {}),
    ("com.microsoft.QuantizeLinear", [real(2, 5), SCALE, zero(7)], {}),
    ("com.microsoft.QuickGelu", [real(2, 5)], {"alpha": 1.5}),
    ("com.microsoft.SkipLayerNormalization", [real(2, 3, 5), real(2, 3, 5), real(5), real(5), real(5)], {}),
    ("com.microsoft.SkipLayerNormalization", [real(2, 3, 5), real(2, 3, 5), real(5)], {"epsilon": 0.01}),
    ("com.microsoft.TransposeMatMul", [real(4, 5), real(6, 5)], {"transB": 1}),
]  # fmt: skip


def test_every_operator_has_a_form() -> None:
    assert {name for name, _, _ in FORMS} >= {*TEXTS, f"{MICROSOFT}.QLinearConcat", f"{MICROSOFT}.DynamicQuantizeLSTM"}


def session(model: bytes) -> Any:
    """The model in ONNX Runtime, in one thread: with several, its LSTM quantises parts of a batch by themselves."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options)


def close(found: Any, wanted: Any, steps: int = 1) -> None:
    """Equal floats, or integers that differ by some steps: a number beside a tie may be rounded to either side."""
    array = found.detach().numpy()
    assert array.shape == wanted.shape and array.dtype == wanted.dtype
    if wanted.dtype.kind in "iu":
        assert abs(array.astype(np.int64) - wanted).max() <= steps
        assert (array != wanted).sum() <= max(wanted.size // 20, 2)
    else:
        np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-5)


class Data(onnxruntime.quantization.CalibrationDataReader):  # type: ignore[misc]
    """Eight batches."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.batches = iter([{"x": real(*shape)} for _ in range(8)])

    def get_next(self) -> Any:
        return next(self.batches, None)


def network() -> Any:
    """Convolutions, pools, a sum and products."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2"], ["c2"], pads=[1] * 4, group=8),
        helper.make_node("LeakyRelu", ["c2"], ["l2"], alpha=0.1),
        helper.make_node("Sigmoid", ["l2"], ["s2"]),
        helper.make_node("Mul", ["l2", "s2"], ["m2"]),
        helper.make_node("Add", ["m2", "p1"], ["a2"]),
        helper.make_node("Concat", ["a2", "p1"], ["j2"], axis=1),
        helper.make_node("GlobalAveragePool", ["j2"], ["g2"]),
        helper.make_node("Flatten", ["g2"], ["f2"]),
        helper.make_node("Gemm", ["f2", "w3", "b3"], ["h3"], transB=1),
        helper.make_node("MatMul", ["h3", "w4"], ["y"]),
    ]
    shapes = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 1, 3, 3), "w3": (10, 16), "b3": (10,), "w4": (10, 5)}
    held = [numpy_helper.from_array(real(*shape) / 4, name) for name, shape in shapes.items()]
    given = helper.make_tensor_value_info("x", 1, ["n", 3, 8, 8])
    graph = helper.make_graph(nodes, "g", [given], [helper.make_tensor_value_info("y", 1, ["n", 5])], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


WAYS = [
    pytest.param(form, per_channel, activation, weight, id=f"{form}-{per_channel}-{activation}-{weight}")
    for form in ("QOperator", "QDQ", "dynamic")
    for per_channel in (False, True)
    for activation, weight in (("QUInt8", "QInt8"), ("QInt8", "QInt8"), ("QUInt8", "QUInt8"))
    if form != "dynamic" or activation == "QUInt8"
]


@pytest.mark.parametrize(("form", "per_channel", "activation", "weight"), WAYS)
@pytest.mark.parametrize("is_optimised", [False, True], ids=["", "optimised"])
def test_what_onnxruntime_quantises(
    form: str, per_channel: bool, activation: str, weight: str, is_optimised: bool, tmp_path: Path
) -> None:
    """As its quantiser writes it, and as a session saves it that has optimised it."""
    q, path = onnxruntime.quantization, tmp_path / "quantised.onnx"
    save(network(), tmp_path / "float.onnx")
    logging.disable(logging.WARNING)
    try:
        kinds: Any = {"weight_type": q.QuantType[weight], "per_channel": per_channel, "reduce_range": True}  # see i8
        if form == "dynamic":
            q.quantize_dynamic(tmp_path / "float.onnx", path, **kinds)
        else:
            kinds |= {"activation_type": q.QuantType[activation], "quant_format": q.QuantFormat[form]}
            q.quantize_static(tmp_path / "float.onnx", path, Data((2, 3, 8, 8)), **kinds)
    finally:
        logging.disable(logging.NOTSET)
    if is_optimised:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
        onnxruntime.InferenceSession(path, options)
        path = tmp_path / "optimised.onnx"
    x = real(2, 3, 8, 8)
    (wanted,) = session(path.read_bytes()).run(None, {"x": x})
    loaded = mt.export.load_onnx(path).eval()
    step = abs(wanted).max() / 100  # of a scale, and of what one integer beside a tie makes of those behind it
    with mt.no_grad():
        assert abs(loaded(mt.tensor(x)).numpy() - wanted).max() < step
        frozen = mt.freeze(loaded, mt.tensor(x), backend="interpret")
        assert abs(frozen(mt.tensor(x)).numpy() - wanted).max() < step


@pytest.mark.parametrize(
    ("name", "inputs", "attributes"), [pytest.param(*form, id=f"{form[0]}-{at}") for at, form in enumerate(FORMS)]
)
def test_it_computes_what_onnxruntime_computes(name: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    """As loaded, in a graph, and with all inputs but the first one frozen."""
    domain, _, op = name.rpartition(".")
    names = ["" if each is None else f"i{at}" for at, each in enumerate(inputs)]
    first = next(at for at, each in enumerate(inputs) if np.ndim(each) > 1)  # the data, of concatenations too
    held = [numpy_helper.from_array(np.asarray(each), name) for each, name in zip(inputs, names, strict=True) if name]
    held.pop(first)
    kind = helper.np_dtype_to_tensor_dtype(inputs[first].dtype)
    given = helper.make_tensor_value_info(names[first], kind, inputs[first].shape)
    node = helper.make_node(op, names, ["y"], domain=domain, **attributes)
    graph = helper.make_graph([node], "g", [given], [helper.make_empty_tensor_value_info("y")], held)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (wanted,) = session(model.SerializeToString()).run(None, {names[first]: inputs[first]})
    loaded, x = mt.export.load_onnx(model).eval(), mt.tensor(inputs[first])
    close(loaded(x), wanted)
    close(mt.jit(loaded, backend="interpret")(x), wanted)
    with mt.no_grad():
        close(mt.freeze(loaded, x)(x), wanted)


def test_scales_are_no_parameters() -> None:
    """Not even those that an operator hands to a function of others."""
    held = {"s": ONE, "z": zero(120, 1), "w": FILTERS[0], "ws": CHANNELS, "wz": FILTERS[2], "t": ONE}
    node = helper.make_node("QLinearConv", ["x", "s", "z", "w", "ws", "wz", "t", "z"], ["y"])
    info = helper.make_tensor_value_info("x", 2, [2, 3, 4, 4])
    initializers = [numpy_helper.from_array(array, name) for name, array in held.items()]
    graph = helper.make_graph([node], "g", [info], [helper.make_empty_tensor_value_info("y")], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert not list(mt.export.load_onnx(model).parameters())
