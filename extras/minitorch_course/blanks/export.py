"""Blanks of notebook 14: a tensor in a file of safetensors, a runtime for ONNX, and sizes that are baked in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx

from ..blanking import Blank, Case

# --- read_tensor ------------------------------------------------------------------------------------------------


def read_tensor(content: Any, name: Any) -> Any:
    """Return a tensor from the content of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    header, numbers = json.loads(content[8 : 8 + length]), content[8 + length :]
    begin, end = header[name]["data_offsets"]
    return np.frombuffer(numbers[begin:end], np.float32).reshape(header[name]["shape"])


def _files() -> Iterator[Case]:
    scales, matrix = np.arange(4, dtype=np.float32) / 2, np.arange(6, dtype=np.float32).reshape(2, 3)
    fields = {
        "scales": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
        "matrix": {"dtype": "F32", "shape": [2, 3], "data_offsets": [16, 40]},
    }
    header = json.dumps(fields).encode().ljust(160)
    content = len(header).to_bytes(8, "little") + header + scales.tobytes() + matrix.tobytes()
    yield "For the first tensor of a file", content, "scales"
    yield "For the second tensor of a file", content, "matrix"


# --- run_onnx ---------------------------------------------------------------------------------------------------


def attributes_of(node: Any) -> Any:
    """The attributes of a node, as keyword arguments: the notebook has it, too."""
    return {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}


def run_onnx(model: Any, operators: Any, feeds: Any) -> Any:
    """Return the results of an ONNX model."""
    values = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer} | feeds
    for node in model.graph.node:
        operands = [values[name] for name in node.input]
        values[node.output[0]] = operators[node.op_type](*operands, **attributes_of(node))
    return [values[each.name] for each in model.graph.output]


def _model(text: str, weight: Any) -> Any:
    """A model from its text, with a weight of the name w."""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(weight), "w"))
    return model


_HEAD = '<ir_version: 9, opset_import: ["": 20]>'


def _models() -> Iterator[Case]:
    operators = {
        "Gemm": lambda x, w, b, transB=0: x @ (w.T if transB else w) + b,
        "Gather": lambda x, at, axis=0: x.take(at, axis),
        "Sub": np.subtract,
    }
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((2, 3), (3, 3)))
    nodes = "h = Gemm<transB: int = 1>(x, w, b) y = Sub(b, h)"
    model = _model(f"{_HEAD} g (float[n,3] x, float[3] b) => (float[n,3] y) {{ {nodes} }}", w)
    yield "For a layer", model, operators, {"x": x, "b": np.zeros(3, np.float32)}
    model = _model(f"{_HEAD} g (int64[n] at) => (float[3,n] y) {{ y = Gather<axis: int = 1>(w, at) }}", w)
    yield "For columns of a matrix", model, operators, {"at": np.array([2, 0])}


# --- guilty -----------------------------------------------------------------------------------------------------


def guilty(one: Any, other: Any) -> Any:
    """Return the nodes of a model that read an array which is not the same in another export of the same function."""
    pairs = zip(one.graph.initializer, other.graph.initializer, strict=True)
    changed = {each.name for each, twin in pairs if each != twin}
    return [node for node in one.graph.node if changed & set(node.input)]


def _exports() -> Iterator[Case]:
    def exported(rows: int) -> Any:
        nodes = "r = Reshape(x, to) s = Add(r, w) y = Mul(s, k) z = Sub(y, one)"
        text = f"{_HEAD} g (float[{rows},2,3] x) => (float[{2 * rows},3] z) {{ {nodes} }}"
        model = _model(text, np.ones(3, np.float32))
        arrays = {
            "to": np.array([2 * rows, 3]),
            "k": np.full((1, 1), 1 / rows, np.float32),
            "one": np.ones(1, np.float32),
        }
        for name, array in arrays.items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return model

    yield "For two exports of one function", exported(2), exported(3)
    yield "For two exports of the same size", exported(2), exported(2)


def _names(function: Any, one: Any, other: Any) -> Any:
    return [node.op_type for node in function(one, other)]


BLANKS = {
    "read_tensor": Blank(
        read_tensor,
        _files,
        {
            "The offsets are counted from the end of the header, not from the beginning of the file.": {
                "content[8 + length :]": "content"
            },
            "The header begins at byte 8, so it ends at byte 8 + length.": {
                "content[8 + length :]": "content[length:]"
            },
        },
    ),
    "run_onnx": Blank(
        run_onnx,
        _models,
        {
            "The attributes are missing: call the operator with **attributes_of(node), too.": {
                ", **attributes_of(node)": ""
            },
        },
    ),
    "guilty": Blank(
        guilty,
        _exports,
        {
            "Two arrays of one shape may still have other numbers: compare the initializers themselves.": {
                "each != twin": "each.dims != twin.dims"
            },
            "Those are the arrays that agree.": {"!=": "=="},
        },
        ask=_names,
    ),
}
