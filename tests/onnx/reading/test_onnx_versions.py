"""Operators as older opsets had them: every form beside ONNX Runtime, which has kept them all."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import minitorch as mt
from minitorch.errors import OnnxError, TranslationError

RANDOM = np.random.default_rng(5)


def real(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.standard_normal(shape).astype(np.float32)


def ints(*numbers: int) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int64)


IMAGE, CUBE = real(2, 3, 4, 6), real(2, 3, 4)
STATISTICS = [real(3), real(3), real(3), abs(real(3)) + 0.5]
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

# Operator, the opsets in which it has this form, inputs, attributes, and how many results.
FORMS: list[tuple[str, range, list[Any], dict[str, Any], int]] = [
    ("ArgMax", range(7, 13), [CUBE], {"axis": 1, "keepdims": 0}, 1),
    ("AveragePool", range(7, 13), [IMAGE], {"kernel_shape": [2, 3], "pads": [1, 1, 0, 0], "count_include_pad": 1}, 1),
    ("BatchNormalization", range(7, 13), [IMAGE, *STATISTICS], {"epsilon": 0.01}, 1),
    ("Cast", range(7, 13), [CUBE], {"to": 7}, 1),
    ("Clip", range(7, 11), [CUBE], {"min": -0.5, "max": 0.25}, 1),
    ("Clip", range(7, 11), [CUBE], {"max": 0.25}, 1),
    ("Clip", range(7, 11), [np.array([1, np.inf, -np.inf], np.float32)], {}, 1),
    ("Clip", range(11, 13), [CUBE, None, np.float32(0.5)], {}, 1),
    ("Concat", range(7, 13), [CUBE, CUBE], {"axis": -1}, 1),
    ("DepthToSpace", range(7, 11), [real(1, 8, 2, 2)], {"blocksize": 2}, 1),
    ("Dropout", range(7, 12), [CUBE], {"ratio": 0.7}, 1),
    ("Flatten", range(7, 13), [IMAGE], {"axis": 2}, 1),
    ("Gather", range(7, 13), [CUBE, ints(1, 0)], {"axis": 2}, 1),
    ("GatherND", range(11, 13), [CUBE, np.array([[0, 1], [1, 2]])], {}, 1),
    ("Gemm", range(7, 13), [real(2, 3), real(4, 3), real(4)], {"transB": 1, "alpha": 0.5, "beta": 2.0}, 1),
    ("GlobalMaxPool", range(7, 13), [IMAGE], {}, 1),
    ("GRU", range(7, 13), [real(3, 2, 4), real(1, 15, 4), real(1, 15, 5)], {"hidden_size": 5}, 2),
    ("LRN", range(7, 13), [IMAGE], {"size": 3}, 1),
    ("LSTM", range(7, 13), [real(3, 2, 4), real(1, 20, 4), real(1, 20, 5)], {"hidden_size": 5}, 3),
    ("MaxPool", range(7, 8), [IMAGE], {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}, 1),
    ("MaxPool", range(8, 13), [IMAGE], {"kernel_shape": [2, 2], "strides": [2, 2]}, 2),
    ("OneHot", range(9, 13), [ints(1, 0, 2), ints(3), np.array([0, 5], np.float32)], {}, 1),
    ("Pad", range(7, 11), [CUBE], {"pads": [0, 1, 2, 1, 0, -1], "value": 3.0}, 1),
    ("Pad", range(7, 11), [CUBE], {"pads": [0, 1, 1, 0, 1, 0], "mode": "reflect"}, 1),
    ("Pad", range(11, 13), [CUBE, ints(0, 1, 0, 0, 0, 2)], {}, 1),
    ("PRelu", range(7, 13), [CUBE, real(3, 1)], {}, 1),
    ("Resize", range(10, 11), [IMAGE, np.array([1, 1, 2, 1.5], np.float32)], {"mode": "linear"}, 1),
    ("Resize", range(10, 11), [IMAGE, np.array([1, 1, 0.6, 2], np.float32)], {}, 1),
    ("Resize", range(11, 13), [IMAGE, real(0), np.array([1, 1, 2, 2], np.float32)], {"mode": "linear"}, 1),
    ("Scatter", range(9, 11), [CUBE, np.array([[[0, 1]]]), np.ones((1, 1, 2), np.float32)], {"axis": 2}, 1),
    ("ScatterElements", range(11, 13), [CUBE, np.array([[[0, -1]]]), np.ones((1, 1, 2), np.float32)], {"axis": 2}, 1),
    ("Slice", range(7, 10), [CUBE], {"starts": [1, -3], "ends": [2**31, -1], "axes": [0, 2]}, 1),
    ("Slice", range(7, 10), [CUBE], {"starts": [0, 1], "ends": [1, 3]}, 1),
    ("Slice", range(10, 13), [CUBE, ints(3), ints(-5), ints(2), ints(-1)], {}, 1),
    ("Split", range(7, 13), [CUBE], {"axis": 2, "split": [1, 3]}, 2),
    ("Split", range(7, 13), [CUBE], {"axis": 2}, 2),
    ("Squeeze", range(7, 13), [real(1, 3, 1)], {"axes": [0]}, 1),
    ("Squeeze", range(7, 13), [real(1, 3, 1)], {}, 1),
    ("Sum", range(8, 13), [CUBE, real(4), real(3, 1)], {}, 1),
    ("TopK", range(7, 10), [CUBE], {"k": 2, "axis": 1}, 2),
    ("TopK", range(10, 13), [CUBE, ints(2)], {}, 2),
    ("Unsqueeze", range(7, 13), [CUBE], {"axes": [3, 0]}, 1),
    ("Upsample", range(7, 9), [IMAGE], {"scales": [1.0, 1.0, 2.0, 2.0]}, 1),
    ("Upsample", range(9, 10), [IMAGE, np.array([1, 1, 2, 3], np.float32)], {"mode": "linear"}, 1),
    *[(f"Reduce{name}", range(7, 13), [abs(CUBE)], {"axes": [2, 0], "keepdims": 0}, 1) for name in REDUCTIONS],
    *[(f"Reduce{name}", range(7, 13), [abs(CUBE)], {}, 1) for name in REDUCTIONS],
    *[(name, range(7, 13), [CUBE], {}, 1) for name in ("Hardmax", "LogSoftmax", "Softmax")],
    *[(name, range(7, 13), [IMAGE], {"axis": axis}, 1) for name in ("LogSoftmax", "Softmax") for axis in (0, 2, 3)],
]


def model_of(op: str, opset: int, inputs: list[Any], attributes: dict[str, Any], count: int) -> tuple[Any, Any]:
    """A model of one node, whose first input is given and whose others are initializers; and that input."""
    names = ["x", *[f"i{at}" if each is not None else "" for at, each in enumerate(inputs[1:])]]
    held = [numpy_helper.from_array(each, name) for name, each in zip(names[1:], inputs[1:], strict=True) if name]
    kind = helper.np_dtype_to_tensor_dtype(inputs[0].dtype)
    given = helper.make_tensor_value_info("x", kind, ["?", *[None] * (inputs[0].ndim - 1)])
    given.type.tensor_type.shape.dim[-1].dim_value = -1 if inputs[0].ndim > 1 else inputs[0].shape[0]
    results = [helper.make_empty_tensor_value_info(f"y{at}") for at in range(count)]
    node = helper.make_node(op, names, [each.name for each in results], **attributes)
    graph = helper.make_graph([node], "g", [given], results, held)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=4), inputs[0]


def wanted(model: Any, x: Any) -> list[Any]:
    """What ONNX Runtime computes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    found: list[Any] = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
    return found


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "attributes", "count"),
    [
        pytest.param(op, opset, *rest, id=f"{op}-{opset}-{at}")
        for at, (op, opsets, *rest) in enumerate(FORMS)
        for opset in sorted({opsets[0], opsets[-1]})
    ],
)
def test_an_old_form_computes_what_onnxruntime_computes(
    op: str, opset: int, inputs: list[Any], attributes: dict[str, Any], count: int
) -> None:
    """As loaded, and in a graph; with lengths of -1 and ``?``, and the opset named twice."""
    model, x = model_of(op, opset, inputs, attributes, count)
    loaded = mt.export.load_onnx(model).eval()
    expected = wanted(model, x)
    for found in (loaded(mt.tensor(x)), mt.jit(loaded, backend="interpret")(mt.tensor(x))):
        results = found if isinstance(found, tuple) else (found,)
        for one, other in zip(results, expected, strict=True):
            assert one.shape == other.shape and one.detach().numpy().dtype == other.dtype
            np.testing.assert_allclose(one.detach().numpy(), other, rtol=2e-6, atol=2e-6)


def test_two_versions_of_one_set_of_operators_are_refused() -> None:
    model, _ = model_of("Relu", 9, [CUBE], {}, 1)
    model.opset_import[1].version = 11
    with pytest.raises(OnnxError, match=r"the versions 9 and 11 of the operators of ai\.onnx"):
        mt.export.load_onnx(model)


def test_operators_older_than_broadcasting_are_named() -> None:
    model, _ = model_of("Add", 6, [CUBE, real(4)], {"broadcast": 1}, 1)
    with pytest.raises(TranslationError, match=r"Add of opset 6"):
        mt.export.load_onnx(model)


WAYS = ("align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel")
ROUNDED = ("ceil", "floor", "round_prefer_ceil", "round_prefer_floor")


@pytest.mark.parametrize("seed", range(60))
def test_a_random_resize_is_onnxruntimes(seed: int) -> None:
    random = np.random.default_rng(seed)
    mode, opset = str(random.choice(["nearest", "linear", "cubic"])), int(random.choice([11, 13, 18, 19]))
    given: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": str(random.choice(WAYS))}
    if mode == "nearest":
        given["nearest_mode"] = str(random.choice(ROUNDED))
    elif opset >= 18:
        given["antialias"] = int(random.integers(2))
    if mode == "cubic":
        given |= {"cubic_coeff_a": -0.5, "exclude_outside": int(random.integers(2))}
    x = real(1, 2, *random.integers(2, 9, 2))
    if random.integers(2):
        inputs = [x, real(0), np.array([1, 1, *random.choice([0.5, 0.6, 0.8, 1, 1.5, 2, 2.3, 3], 2)], np.float32)]
    else:
        inputs = [x, real(0), real(0) if opset == 11 else None, ints(1, 2, *random.integers(1, 14, 2))]
    model, _ = model_of("Resize", opset, inputs, given, 1)
    for each, length in zip(model.graph.input[0].type.tensor_type.shape.dim, x.shape, strict=True):
        each.dim_value = length
    found = mt.export.load_onnx(model)(mt.tensor(x))
    np.testing.assert_allclose(found.detach().numpy(), wanted(model, x)[0], rtol=2e-5, atol=2e-5)


def test_nodes_of_one_name_keep_their_numbers() -> None:
    """Names of nodes say nothing: only those of values are there once."""
    nodes = [
        helper.make_node("Squeeze", ["x"], ["h"], name="same", axes=[0]),
        helper.make_node("Squeeze", ["h"], ["y"], name="same", axes=[1]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, [1, 3, 1])], [helper.make_empty_tensor_value_info("y")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    assert mt.export.load_onnx(model)(mt.ones(1, 3, 1)).shape == (3,)


def test_a_scan_of_a_batch() -> None:
    """Before opset 9 each sequence of a batch is scanned by itself."""
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["s", "r"], ["t"]), helper.make_node("Identity", ["t"], ["o"])]
    body = helper.make_graph(
        nodes, "body", [info("s", 1, [2]), info("r", 1, [2])], [info("t", 1, [2]), info("o", 1, [2])]
    )
    scan = helper.make_node("Scan", ["", "b", "x"], ["e", "y"], num_scan_inputs=1, body=body, directions=[1])
    given = [info("b", 1, [3, 2]), info("x", 1, [3, 4, 2])]
    results = [helper.make_empty_tensor_value_info(name) for name in "ey"]
    graph = helper.make_graph([scan], "g", given, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=4)
    begin, x = mt.randn(3, 2), mt.randn(3, 4, 2)
    end, sums = mt.export.load_onnx(model)(begin, x)
    assert mt.allclose(sums, begin[:, None] + x.flip(1).cumsum(1), atol=1e-6) and mt.allclose(end, sums[:, -1])
