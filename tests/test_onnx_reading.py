"""ONNX models as modules: in every mode the same numbers, trained, and hostile files refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import minitorch as mt
from minitorch.errors import OnnxError, TranslationError
from minitorch.export import onnx_backend
from minitorch.export.onnx_format.reading import limits, wire
from minitorch.export.onnx_format.reading.loading import module_of, parsed
from tests import onnx_nodes

HEAD = '<ir_version: 8, opset_import: ["": 18]>\n'


def read(text: str) -> Any:
    return module_of(parsed(onnx.parser.parse_model(HEAD + text).SerializeToString()))


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-6, atol=1e-6)


def test_onnxs_own_tests_pass_but_for_those_of_the_table() -> None:
    """At least 90 % of the ordinary ones, and every other one has a line with its reason."""
    found = [onnx_nodes.outcome(case) for case in onnx_nodes.cases()]
    wrong = [each for each in found if not each.passed and not each.reason(onnx_nodes.EXCLUDED)]
    assert not [f"{each.name}: {each.message}" for each in wrong if not each.reason(onnx_nodes.FAILING)]
    ordinary = len(wrong) + sum(each.passed for each in found)
    assert len(found) > 1500
    assert len(wrong) <= 0.1 * ordinary


SHAPES = """
g (float[n,2,3] x) => (float[n,2] y) <float[6,2] w = {1,0, 0,1, 0,0, 2,0, 0,-1, 0,3}> {
    shape = Shape(x)
    zero = Constant <value_ints = [0]> ()
    first = Gather(shape, zero)
    rest = Constant <value_ints = [-1]> ()
    wanted = Concat <axis = 0> (first, rest)
    flat = Reshape(x, wanted)
    z = MatMul(flat, w)
    y = Relu(z)
}"""


def test_a_model_with_computed_shapes_runs_in_every_mode_and_is_trained() -> None:
    model = read(SHAPES)
    x = mt.randn(4, 2, 3)
    wanted = model(x)
    same(mt.jit(model)(x), wanted)
    with mt.Graph() as graph:
        given = mt.placeholder((4, 2, 3), name="x")
        result = model(given)
    same(mt.Session(graph).run(result, {given: x}), wanted)
    with mt.lazy():
        late = model(x)
    same(late, wanted)
    same(mt.freeze(model.eval(), x)(x), wanted)
    # shapes are numbers in the graph: nothing of Shape, Gather and Concat is left
    assert {node.primitive.name for node in mt.jit(model).graph(x).nodes} <= {
        "reshape", "dot", "constant", "less_equal", "where",
    }  # fmt: skip
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)
    before = model.get_parameter("w").detach().clone()
    model(x).sum().backward()
    optimizer.step()
    assert not mt.equal(model.get_parameter("w"), before)
    assert list(model.state_dict()) == ["w"]


LOOP = """
g (float[2] x, bool c) => (float[2] y, float[3,2] all) {
    three = Constant <value_int = 3> ()
    always = Constant <value = bool {1}> ()
    turned, all = Loop (three, always, x) <body = b
            (int64 i, bool going, float[2] s) => (bool on, float[2] t, float[2] u) {
        on = Identity(going)
        t = Add(s, s)
        u = Identity(t)
    }>
    y = If (c) <then_branch = p () => (float[2] a) { a = Neg(turned) },
                else_branch = q () => (float[2] b) { b = Abs(turned) }>
}"""


def test_loops_are_unrolled_and_branches_are_chosen() -> None:
    model = read(LOOP)
    for condition in (True, False):
        x, c = mt.tensor([1.0, -2.0]), mt.tensor(condition)
        y, every = model(x, c)
        assert y.tolist() == ([-8.0, 16.0] if condition else [8.0, 16.0])
        assert every.tolist() == [[2.0, -4.0], [4.0, -8.0], [8.0, -16.0]]
        traced = mt.jit(model)(x, c)
        assert traced[0].tolist() == y.tolist() and traced[1].tolist() == every.tolist()


def test_what_is_missing_is_named_at_once() -> None:
    with pytest.raises(TranslationError, match=r"Det of opset 18, elements of type string"):
        read("g (float[2,2] x) => (float y) { y = Det(x) z = Cast <to = 8> (x) }")


def test_the_backend_runs_nodes() -> None:
    (found,) = onnx_backend.run_node(helper.make_node("Add", ["a", "b"], ["c"]), [np.ones(2), np.ones(2)])
    assert found.tolist() == [2.0, 2.0]
    assert onnx_backend.supports_device("CPU") and not onnx_backend.supports_device("CUDA:0")


# Hostile files ----------------------------------------------------------------------------------------------


def model_with(tensor: Any, nodes: Any = None) -> Any:
    nodes = nodes or [helper.make_node("Add", ["x", "w"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
    return helper.make_model(
        helper.make_graph(nodes, "g", [x], [y], [tensor]), opset_imports=[helper.make_opsetid("", 18)]
    )


def external(location: str, shape: tuple[int, ...] = (2,)) -> Any:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


ONES = numpy_helper.from_array(np.ones(2, np.float32), "w")


def lying(**fields: Any) -> Any:
    tensor = TensorProto()
    tensor.CopyFrom(ONES)
    for name, value in fields.items():
        if name == "dims":
            del tensor.dims[:]
            tensor.dims.extend(value)
        else:
            setattr(tensor, name, value)
    return tensor


def nodes(*rows: tuple[str, list[str], list[str]]) -> list[Any]:
    return [helper.make_node(*row) for row in rows]


HOSTILE: dict[str, tuple[Any, str]] = {
    "a lying shape": (model_with(lying(dims=[2**40, 2**20])), "shape"),
    "another length": (model_with(lying(dims=[3])), "8 bytes"),
    "a negative length": (model_with(lying(dims=[-1])), "shape"),
    "many dimensions": (model_with(lying(dims=[1] * 100)), "100 dimensions"),
    "a way up": (model_with(external("../secret")), "model's own folder"),
    "a way up, later": (model_with(external("a/../../secret")), "model's own folder"),
    "an absolute path": (model_with(external("/etc/passwd")), "model's own folder"),
    "a path with a drive": (model_with(external("C:\\secret")), "model's own folder"),
    "a link": (model_with(external("link")), "link"),
    "a folder that is a link": (model_with(external("up/secret")), "link"),
    "gigabytes announced": (model_with(external("data", (2**30,))), "which has 8"),
    "no such file": (model_with(external("nothing")), "cannot be read"),
    "a cycle": (model_with(ONES, nodes(("Add", ["x", "y"], ["a"]), ("Neg", ["a"], ["y"]))), "cycle"),
    "a name twice": (model_with(ONES, nodes(("Neg", ["x"], ["y"]), ("Abs", ["x"], ["y"]))), "given twice"),
    "a name that nobody makes": (model_with(ONES, nodes(("Neg", ["z"], ["y"]))), "nobody makes"),
    "too many inputs": (model_with(ONES, nodes(("Neg", ["x", "w"], ["y"]))), "2 inputs"),
    "an attribute that does not exist": (model_with(ONES, [helper.make_node("Neg", ["x"], ["y"], axis=1)]), "axis"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_models_are_refused_by_name(name: str, tmp_path: Path) -> None:
    model, message = HOSTILE[name]
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(8))
    (folder / "data").write_bytes(bytes(8))
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to(tmp_path)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(OnnxError, match=message):
        mt.export.load_onnx(folder / "model.onnx")


def test_external_data_is_read_from_the_models_folder(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(np.array([1.0, 2.0], "<f4").tobytes())
    (tmp_path / "model.onnx").write_bytes(model_with(external("data")).SerializeToString())
    assert mt.export.load_onnx(tmp_path / "model.onnx")(mt.ones(2)).tolist() == [2.0, 3.0]


def test_a_truncated_file_is_refused_at_every_length() -> None:
    content = model_with(ONES).SerializeToString()
    for length in range(len(content)):
        try:
            module_of(parsed(content[:length]))
        except (OnnxError, TranslationError):
            continue
        pytest.fail(f"{length} bytes of {len(content)} are a model")


def test_bombs_are_counted_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_FIELDS", 1000)
    with pytest.raises(OnnxError, match="1000 fields"):
        parsed(b"\x3a\x80\x10" + b"\x0a\x00" * 1024)  # a graph of empty nodes
    deep = b""
    for _ in range(40):  # a graph of a node of an attribute that is a graph ...
        for tag in (0x32, 0x2A, 0x0A):
            deep = bytes([tag]) + helper_length(len(deep)) + deep
    with pytest.raises(OnnxError, match="nested"):
        parsed(b"\x3a" + helper_length(len(deep)) + deep)


def helper_length(length: int) -> bytes:
    found = bytearray()
    while length > 127:
        found.append(length & 127 | 128)
        length >>= 7
    return bytes([*found, length])


def test_a_shape_of_numbers_is_bounded_when_it_is_computed() -> None:
    model = read("g (int64[1] s) => (float[n] y) { y = ConstantOfShape(s) }")
    with pytest.raises(OnnxError, match=str(limits.MOST_ELEMENTS)):
        model(mt.tensor([2**40]))
