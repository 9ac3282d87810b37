"""ONNX models as modules: in every mode the same numbers, trained, and hostile files refused by name."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import minitorch as mt
from minitorch.errors import OnnxError, TranslationError
from minitorch_onnx import backend as onnx_backend
from minitorch_onnx.reading import running
from minitorch_onnx.reading.decoding import wire
from minitorch_onnx.reading.loading import module_of, parsed
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


def test_a_model_that_was_called_is_pickled() -> None:
    model, x = read("g (float[2] x) => (float[2] y) { a = LeakyRelu <alpha = 0.1> (x) y = Softmax(a) }"), mt.randn(2)
    wanted = model(x)
    same(pickle.loads(pickle.dumps(model))(x), wanted)


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
    with pytest.raises(TranslationError, match=r"TfIdfVectorizer of opset 18, elements of type string"):
        read("g (float[2,2] x) => (float y) { y = TfIdfVectorizer(x) z = Cast <to = 8> (x) }")


def test_the_backend_runs_nodes() -> None:
    (found,) = onnx_backend.run_node(helper.make_node("Add", ["a", "b"], ["c"]), [np.ones(2), np.ones(2)])
    (twice,) = onnx_backend.run_node(helper.make_node("Add", ["a", "a"], ["c"]), [np.ones(2), np.ones(2)])
    assert twice.tolist() == [2, 2]
    model = onnx.parser.parse_model(HEAD + "g (float[2] x, float[2] y) => (float[2] z) { z = Sub(x, y) }")
    prepared = onnx_backend.prepare(model)
    assert prepared.run({"y": np.ones(2, np.float32), "x": np.zeros(2, np.float32)})[0].tolist() == [-1, -1]
    with pytest.raises(ValueError, match="no input 'a'; it has x, y"):
        prepared.run({"a": np.ones(2)})
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
    with pytest.raises(OnnxError, match=r"constant gives f32\[1099511627776\]|larger than the memory"):
        model(mt.tensor([2**40]))


# --- in more detail -----------------------------------------------------------------------------------------------


def test_a_branch_that_is_not_taken_has_no_gradients_and_no_errors() -> None:
    model = read("""g (float[2] x, int64[1] i, bool c) => (float[n] y) {
        y = If(c) <then_branch = t () => (float[2] o) { o = Log(x) }, else_branch = e () => (float[2] p) { p = Neg(x) }>
    }""")
    picked = read("""g (float[2] x, int64[1] i, bool c) => (float[1] y) {
        zero = Constant <value_ints = [0]> ()
        y = If(c) <then_branch = t () => (float[1] o) { o = Gather(x, i) },
                   else_branch = e () => (float[1] p) { p = Gather(x, zero) }> }""")
    for function in (model, mt.jit(model)):
        x = mt.tensor([0.0, 2.0], requires_grad=True)
        function(x, mt.tensor([7]), mt.tensor(False)).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [-1, -1]
    for function in (picked, mt.jit(picked)):
        assert function(mt.tensor([3.0, 2.0]), mt.tensor([7]), mt.tensor(False)).tolist() == [3]
        with pytest.raises((IndexError, OnnxError), match="out of"):
            function(mt.tensor([3.0, 2.0]), mt.tensor([7]), mt.tensor(True))


def test_a_clipped_recurrence_is_refused() -> None:
    for kind, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        model = read(f"""g (float[2,1,3] x, float[1,{4 * gates},3] w, float[1,{4 * gates},4] r) => (float[2,1,1,4] y) {{
            y = {kind} <hidden_size = 4, clip = 0.5> (x, w, r) }}""")
        with pytest.raises(OnnxError, match=r"clip 0\.5"):
            model(mt.ones(2, 1, 3), mt.ones(1, 4 * gates, 3), mt.ones(1, 4 * gates, 4))


def test_a_mean_of_integers_is_rounded_towards_0() -> None:
    model = read("g (int32[2] x) => (int32 y) { y = ReduceMean <keepdims = 0> (x) }")
    assert [model(mt.tensor(x, dtype=mt.int32)).item() for x in ([-7, 0], [7, 0])] == [-3, 3]


def test_operators_that_onnx_defines_by_older_ones() -> None:
    model = read("g (float[4] x) => (uint8[4] a, float b, uint8 c) { a, b, c = DynamicQuantizeLinear(x) }")
    integers, scale, zero = model(mt.tensor([-1.0, 0.0, 0.6, 2.0]))
    assert integers.tolist() == [0, 85, 136, 255] and zero.item() == 85
    np.testing.assert_allclose(scale.item(), 3 / 255, rtol=1e-6)


def test_a_group_normalization_with_a_scale_for_each_group() -> None:
    model = read("""g (float[2,4,3] x, float[2] s, float[2] b) => (float[2,4,3] y) {
        y = GroupNormalization <num_groups = 2> (x, s, b) }""")
    x, s, b = mt.randn(2, 4, 3), mt.tensor([2.0, 3.0]), mt.tensor([0.5, 1.0])
    wide = [mt.stack([each, each], 1).reshape(-1) for each in (s, b)]
    same(model(x, s, b), mt.nn.functional.group_norm(x, 2, wide[0], wide[1]))


def test_an_exported_module_comes_back_with_its_parameters_buffers_and_names(tmp_path: Path) -> None:
    class Masked(mt.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.layer = mt.nn.Parameter(mt.tensor(2.0)), mt.nn.Linear(3, 3)
            self.norm = mt.nn.LayerNorm(3, elementwise_affine=False)
            self.mask: mt.Tensor
            self.register_buffer("mask", mt.ones(3, 3).tril())

        def forward(self, x: mt.Tensor) -> mt.Tensor:
            return (self.norm(self.layer(x)) * self.scale) @ self.mask

    model, x = Masked().eval(), mt.randn(2, 3)
    mt.export.onnx(model, x, path=tmp_path / "m.onnx", dynamic_axes={"x": {0: "n"}})
    again = mt.export.load_onnx(tmp_path / "m.onnx")
    assert {name for name, _ in again.named_parameters()} == {"scale", "layer.weight", "layer.bias"}
    assert {name for name, _ in again.named_buffers()} == {"mask"}
    same(again(x), model(x))
    assert mt.jit(again).graph(x).inputs[0].params["name"] == "x"
    once_more = mt.export.onnx(again, x, dynamic_axes={"x": {0: "n"}})
    assert [each.name for each in once_more.graph.input] == ["x"]


# --- more hostile files -------------------------------------------------------------------------------------------


def elsewhere(name: str, dims: list[int], **where: str) -> Any:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "w.bin", **where}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def saved(folder: Path, *tensors: Any) -> Path:
    info = [helper.make_tensor_value_info(each.name, TensorProto.FLOAT, each.dims) for each in tensors]
    graph = helper.make_graph([], "g", [], info, list(tensors))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


def test_external_arrays_take_no_more_memory_than_their_file(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(np.arange(8, dtype=np.float32).tobytes())
    tied = mt.export.load_onnx(saved(tmp_path, elsewhere("a", [8]), elsewhere("b", [8])))
    assert tied.get_parameter("a") is tied.get_parameter("b")
    with pytest.raises(OnnxError, match="that are another array's, too"):
        mt.export.load_onnx(saved(tmp_path, elsewhere("a", [8]), elsewhere("b", [7])))
    halves = elsewhere("a", [4], length="16"), elsewhere("b", [4], offset="16", length="16")
    assert mt.export.load_onnx(saved(tmp_path, *halves)).get_parameter("b").tolist() == [4, 5, 6, 7]
    with open(tmp_path / "w.bin", "wb") as file:
        file.truncate(1 << 42)  # takes nothing on the disk
    with pytest.raises(OnnxError, match="cannot be read: "):
        mt.export.load_onnx(saved(tmp_path, elsewhere("a", [1 << 40])))
    with pytest.raises(OnnxError, match="cannot be read: File name too long"):
        mt.export.load_onnx(saved(tmp_path, elsewhere("a", [8], location="x" * 6000)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_named_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.bin")
    with pytest.raises(OSError, match="it is not a file"):
        mt.export.load_onnx(tmp_path / "w.bin")
    with pytest.raises(OnnxError, match="it is not a file"):
        mt.export.load_onnx(saved(tmp_path, elsewhere("a", [8])))


def test_turns_of_a_loop_without_nodes_are_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_STEPS", 1000)
    info = helper.make_tensor_value_info
    ends = info("c", TensorProto.BOOL, []), info("s", TensorProto.FLOAT, [1])
    body = helper.make_graph([], "b", [info("i", TensorProto.INT64, []), *ends], list(ends))
    loop = helper.make_node("Loop", ["M", "", "x"], ["y"], body=body)
    ways = info("x", TensorProto.FLOAT, [1]), info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([loop], "g", ways[:1], ways[1:], [numpy_helper.from_array(np.array(2**62), "M")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    with pytest.raises(OnnxError, match="more than 1000 steps"):
        module_of(parsed(model.SerializeToString()))(mt.ones(1))
