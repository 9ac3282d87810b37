"""Exported models: checked by ONNX, run by ONNX Runtime, with the numbers of the functions that they were made of."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import cast

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minitorch as mt
import minitorch_operators as operators
from benchmarks.cases import CASES as BENCHMARKS
from benchmarks.digits import cnn
from benchmarks.libraries import Minitorch
from minitorch.errors import TranslationError
from minitorch.graph import Graph
from minitorch.ir import CONTROL_FLOW, OPERATORS, PRIMITIVES
from minitorch.nn import functional as F
from minitorch_onnx.writing.model import Interface, model_of
from minitorch_onnx.writing.nodes import ROWS
from tests.onnx import onnx_models
from tests.onnx.exported import assert_dynamic, assert_same, checked, kinds, run
from tests.support.cases import CASES, LAPACK, WIDE
from tests.support.graphs import arrays_for, assert_close, evaluate_graph, graphs

ROOT = Path(__file__).parents[2]
random = np.random.default_rng(3)

DRAWS = {"rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "normal", "bernoulli",
         "multinomial"}  # fmt: skip
DRAWS |= {"F.dropout", "F.dropout1d", "F.dropout2d", "F.gumbel_softmax"}


def real(*shape, dtype=np.float32):
    return mt.tensor(random.normal(size=shape).astype(dtype))


def written(graph, opset=26):
    """The model of a graph as it is."""
    return model_of(graph, Interface({}, (), [f"result{at}" for at in range(len(graph.outputs))], {}), opset)


# --- all that can be computed -------------------------------------------------------------------------------------


def test_every_primitive_and_operator_has_a_row():
    assert operators.__all__ == sorted(OPERATORS)
    assert set(ROWS) == {*PRIMITIVES, *OPERATORS, *CONTROL_FLOW, "shard"}


@pytest.mark.parametrize("opset", [20, 28])
def test_every_public_function_gives_its_numbers_in_another_runtime(opset):
    for case in CASES:
        if case.name in DRAWS:
            with pytest.raises(TranslationError, match="writes in place to random_state"):
                mt.export.onnx(case.function, *case.tensors(), opset_version=opset)
        elif case.name in LAPACK:
            with pytest.raises(TranslationError, match="ONNX has no such operator"):
                mt.export.onnx(case.function, *case.tensors(), opset_version=opset)
        else:
            assert_same(case.function, *case.tensors(), rtol=1e-4, atol=1e-5, opset_version=opset)


def test_older_operators_give_the_numbers_or_are_refused_with_the_newer_version():
    refused = set()
    for case in CASES:
        if case.name not in DRAWS | LAPACK:
            try:
                assert_same(case.function, *case.tensors(), rtol=1e-4, atol=1e-5, opset_version=13)
            except TranslationError as error:
                assert re.search("export with opset_version=(14|16|18|26), or a newer one", str(error))
                refused.add(case.name)
    assert refused == {
        "bitwise_and", "bitwise_or", "bitwise_xor", "scatter", "scatter_add", "index_add", "index_copy", "index_fill",
        "histc", "histogram", "put", "F.embedding_bag",
    }  # fmt: skip


def test_16_bits_are_rounded_after_every_operation():
    for case in CASES[::5]:
        if case.name not in DRAWS | WIDE:
            assert_same(case.function, *case.tensors(mt.float16), rtol=2e-2, atol=2e-2)


def test_bfloat16_is_computed_in_float32_and_rounded():
    def f(x):
        return ((x.bfloat16() * 3 + 0.1).exp() / 7).sum(0).float(), F.softmax(x.bfloat16(), 1).float()

    model = assert_same(f, real(4, 5), rtol=1e-2, atol=1e-2)
    assert "Cast" in kinds(model)


SUMS = {"dot", "reduce_sum", "cumsum"}  # of 64-bit integers, ONNX Runtime adds these up in floats


@settings(deadline=None)
@given(graphs(max_nodes=2), st.integers(0, 1000))
def test_random_graphs_give_their_numbers(graph, seed):
    types = {node.dtype.name for node in (*graph.inputs, *graph.nodes)}
    names = {node.primitive.name for node in graph.nodes}
    model = checked(written(graph), wraps="random_bits" in names)
    sums = types & {"int64", "uint32", "float64"} and names & {*SUMS, "erf", "atan2"}
    nan = names & {"argmax", "argsort", "reduce_max"}  # of which ONNX says nothing
    # ONNX Runtime has no BitCast, and its interface in Python takes no bfloat16.
    if "bfloat16" in types or sums or nan or "bitcast" in names:
        return
    values = arrays_for(graph, seed)
    feeds = {node.params["name"]: value for node, value in zip(graph.inputs, values, strict=True)}
    for theirs, ours in zip(run(model, feeds), evaluate_graph(graph, values), strict=True):
        assert theirs.dtype == ours.dtype
        if ours.dtype == np.float16:
            np.testing.assert_allclose(theirs.astype(float), ours.astype(float), rtol=2e-3, atol=1e-5)
        else:
            assert_close(theirs, ours, model)


def test_random_bits_are_the_same_bits():
    graph = Graph.parse("graph(state: i64[2]): %0 = random_bits(state, shape=[3,50]) return %0")
    for state in ([0, 0], [7, 3], [-5, 1 << 40]):
        (ours,) = evaluate_graph(graph, [np.array(state)])
        (theirs,) = run(checked(written(graph)), {"state": np.array(state)})
        assert theirs.dtype == np.uint32 and theirs.tolist() == ours.tolist()


def test_bools_have_the_bits_of_0_and_1():
    graph = Graph.parse("graph(x: bool[2]): %0 = bitcast(x, dtype=u8) return %0")
    (theirs,) = run(checked(written(graph)), {"x": np.array([True, False])})
    assert theirs.dtype == np.uint8 and theirs.tolist() == [1, 0]


def test_integers_are_divided_as_here_also_by_0_and_by_minus_1():
    for dtype in (mt.int8, mt.int32, mt.int64):
        low = int(np.iinfo(dtype.numpy).min)
        a = mt.tensor([7, -7, 7, -7, 0, low, low, 5], dtype=dtype)
        b = mt.tensor([0, 0, 2, 2, 0, -1, 2, -3], dtype=dtype)
        assert_same(lambda a, b: (a // b, a % b, a << 3, a >> 9, abs(a) ** abs(b).clamp(max=7)), a, b, rtol=0, atol=0)
    a, b = (mt.tensor(each, dtype=mt.uint8) for each in ([7, 200, 0], [0, 3, 5]))
    assert_same(lambda a, b: (a // b, a % b, a - b, a + a, ~a, a << 1, a >> 1), a, b, rtol=0, atol=0)


def test_floats_are_divided_as_here():
    values = [0.0, -0.0, 1.0, -1.0, 5.5, -5.5, 0.1, np.inf, -np.inf, np.nan]
    a, b = (mt.tensor(each.astype(np.float32)) for each in np.meshgrid(values, values))
    assert_same(lambda a, b: (a // b, a % b, mt.signbit(a), a.trunc(), mt.atan2(a, b)), a, b, atol=0)


def test_of_equal_indices_the_last_update_wins():
    def f(x, i, u):
        x = x.clone()
        x[i] = u
        return x

    index = mt.tensor(random.integers(0, 5, 400))
    assert_same(f, mt.zeros(5, 2), index, mt.arange(800.0).reshape(400, 2), rtol=0, atol=0)


# --- what people expect to see ------------------------------------------------------------------------------------


class Block(mt.nn.Module):
    """A block of a transformer."""

    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads = heads
        self.before, self.between = mt.nn.LayerNorm(width), mt.nn.LayerNorm(width)
        self.qkv, self.out = mt.nn.Linear(width, 3 * width), mt.nn.Linear(width, width)
        self.up, self.down = mt.nn.Linear(width, 4 * width), mt.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time, width = x.shape
        parts = self.qkv(self.before(x)).reshape(batch, time, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.permute(0, 2, 1, 3).reshape(batch, time, width))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Images(mt.nn.Module):
    """A convolutional network with normalization."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = mt.nn.Conv2d(3, 8, 3, padding=1, bias=False), mt.nn.BatchNorm2d(8)
        self.second, self.last = mt.nn.Conv2d(8, 8, 3, stride=2, padding=1), mt.nn.Linear(8, 10)
        self.norm.running_mean.add_(0.1)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        return F.log_softmax(self.last(F.adaptive_avg_pool2d(self.second(x).sigmoid(), 1).flatten(1)), 1)


class Words(mt.nn.Module):
    """An LSTM over words, in both directions."""

    def __init__(self):
        super().__init__()
        self.table, self.lstm = mt.nn.Embedding(20, 6), mt.nn.LSTM(6, 5, batch_first=True, bidirectional=True)

    def forward(self, words):
        y, (h, c) = self.lstm(self.table(words))
        return {"y": y, "h": h, "c": c}


IMAGES = [
    "Conv",
    "BatchNormalization",
    "Relu",
    "MaxPool",
    "Conv",
    "Sigmoid",
    "GlobalAveragePool",
    "Reshape",
    "Gemm",
    "LogSoftmax",
]


def test_an_image_network_has_the_operators_of_its_layers():
    model = assert_same(Images().eval(), real(2, 3, 16, 16), rtol=1e-4, atol=1e-5)
    assert kinds(model) == IMAGES
    names = {name for name, _ in Images().state_dict().items()}
    assert {each.name for each in model.graph.initializer} - names == {"constant"}
    assert names - {each.name for each in model.graph.initializer} == {"norm.num_batches_tracked"}


def test_a_transformer_has_the_operators_of_its_layers():
    model = assert_same(Block().eval(), real(2, 5, 16), rtol=1e-4, atol=1e-5)
    found = kinds(model)
    assert [found.count(kind) for kind in ("LayerNormalization", "Softmax", "Gelu", "Erf", "Exp")] == [2, 1, 1, 0, 0]


def test_positions_are_constants_unless_sizes_are_dynamic():
    def first(x):
        return mt.where(mt.arange(x.shape[0]).reshape(-1, 1) < 3, x, 0.0)

    assert kinds(assert_same(mt.tril, real(5, 5))) == kinds(assert_same(first, real(5, 5))) == ["Where"]
    assert len(kinds(assert_same(lambda x: F.adaptive_avg_pool2d(x, (2, 3)), real(1, 2, 5, 7)))) < 20
    assert "Range" in kinds(assert_dynamic(first, {"x": {0: "n"}}, [real(5, 5)], [real(7, 5)], [real(2, 5)]))


def test_a_network_in_qdq_form_gives_the_same_integers():
    x = mt.tensor(onnx_models.inputs())
    model = assert_same(onnx_models.network, x, rtol=0, atol=0)
    found = kinds(model)
    assert found.count("QuantizeLinear") == 5 and found.count("DequantizeLinear") == 4 + 2 * 3
    assert {"Conv", "MaxPool", "Gemm"} <= set(found) and not {"Round", "Clip"} & set(found)
    assert sum(each.data_type == onnx.TensorProto.INT8 and len(each.dims) > 1 for each in model.graph.initializer) == 3


@pytest.mark.parametrize("case", [case for case in BENCHMARKS if not case.stateful], ids=lambda case: case.name)
def test_programs_of_the_benchmarks(case):
    lib = Minitorch()
    tensors = [mt.tensor(each) for each in case.make_inputs(case.tiny)]
    assert_same(lambda *xs: case.program(lib, *xs), *tensors, rtol=1e-3, atol=1e-4)


MODELS = {
    "digits": (cnn, lambda: real(2, 1, 8, 8)),
    "mlp": (lambda: mt.nn.Sequential(mt.nn.Linear(8, 16), mt.nn.Tanh(), mt.nn.Linear(16, 3)), lambda: real(4, 8)),
    "words": (Words, lambda: mt.tensor(random.integers(0, 20, (2, 4)))),
    "gru": (lambda: mt.nn.GRU(3, 4, num_layers=2), lambda: real(5, 2, 3)),
    "norms": (
        lambda: mt.nn.Sequential(mt.nn.GroupNorm(2, 4), mt.nn.Conv2d(4, 4, 1), mt.nn.SiLU(), mt.nn.AvgPool2d(2)),
        lambda: real(2, 4, 6, 6),
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("opset", [13, 17, 20, 24])
def test_models_of_the_course(name, opset):
    make, example = MODELS[name]
    assert_same(make().eval(), example(), rtol=1e-4, atol=1e-5, opset_version=opset)


def test_jitted_and_frozen_functions_are_exported_like_the_function():
    model, x = Images().eval(), real(2, 3, 16, 16)
    frozen, plain = mt.freeze(model, x), mt.export.onnx(model, x)
    for f, axes in itertools.product((mt.jit(model), frozen, mt.freeze(mt.jit(model), x)), (None, {"x": {0: "n"}})):
        exported = checked(mt.export.onnx(f, x, dynamic_axes=axes))
        assert kinds(exported) == IMAGES and len(frozen.explain().signatures) == 1
        for part in ("input", "initializer", "output"):
            assert [each.name for each in getattr(exported.graph, part)] == [
                each.name for each in getattr(plain.graph, part)
            ]
        assert exported.metadata_props == plain.metadata_props
        with mt.no_grad():
            theirs = run(exported, {exported.graph.input[0].name: x.numpy()})[0]
            np.testing.assert_allclose(theirs, model(x).numpy(), rtol=1e-4, atol=1e-5)


def test_a_frozen_function_is_exported_with_the_weights_that_it_was_frozen_with():
    model, x = mt.nn.Linear(3, 2).eval(), real(2, 3)
    frozen = mt.freeze(model, x)
    before = frozen(x).numpy()
    model.weight.detach().zero_()
    with pytest.warns(mt.errors.TracingWarning, match="MT113"):
        exported = checked(mt.export.onnx(frozen, x))
    np.testing.assert_allclose(run(exported, {"input": x.numpy()})[0], before, rtol=1e-5)


def test_a_frozen_function_is_exported_in_its_own_mixed_precision():
    model, x = mt.nn.Linear(3, 2).eval(), real(2, 3)
    with mt.autocast("cpu", mt.float16):
        frozen = mt.freeze(model, x)
    assert checked(mt.export.onnx(frozen, x)).graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16


# --- names, files -------------------------------------------------------------------------------------------------


def test_names_of_results_and_of_nested_arguments():
    def f(batch, scale=2.0):
        return {"sum": batch["a"] + batch["b"], "batch": batch["a"] * scale}

    model = checked(mt.export.onnx(f, {"a": mt.ones(2), "b": mt.ones(2)}, scale=3.0))
    assert [each.name for each in model.graph.input] == ["batch.a", "batch.b"]
    assert [each.name for each in model.graph.output] == ["sum", "batch"]
    assert run(model, {"batch.a": np.ones(2, np.float32), "batch.b": np.ones(2, np.float32)})[1].tolist() == [3, 3]


def test_a_result_that_is_an_argument_or_comes_twice():
    def f(x):
        y = x + 1
        return x, y, y

    assert_same(f, real(2, 3))


def test_a_model_says_the_lines_of_the_program_and_no_path():
    model = mt.export.onnx(Images().eval(), real(1, 3, 16, 16))
    assert model.producer_name == "minitorch" and model.producer_version == mt.__version__
    assert all(re.fullmatch(r"test_onnx_export\.py:\d+", node.doc_string) for node in model.graph.node)
    assert str(ROOT).encode() not in model.SerializeToString()


def test_large_arrays_lie_in_a_file_of_their_own(tmp_path):
    model, x = mt.nn.Linear(64, 64).eval(), real(2, 64)
    mt.export.onnx(model, x, path=tmp_path / "small.onnx")
    for data in ("large.onnx.data", "large.onnx.1.data", "large.onnx.data"):  # each time in place of the one before
        mt.export.onnx(model, x, path=tmp_path / "large.onnx", external_data=1000)
        assert {each.name for each in tmp_path.iterdir()} == {"large.onnx", data, "small.onnx"}
    assert (tmp_path / "large.onnx").stat().st_size < 2000 < (tmp_path / "large.onnx.data").stat().st_size < 20_000
    assert len({each.stat().st_mode for each in tmp_path.iterdir()}) == 1
    onnx.checker.check_model(str(tmp_path / "large.onnx"), full_check=True)
    again = onnx.load(str(tmp_path / "large.onnx"))
    with mt.no_grad():
        np.testing.assert_allclose(run(again, {"input": x.numpy()})[0], model(x).numpy(), rtol=1e-5, atol=1e-5)


def test_a_written_model_keeps_its_arrays_and_a_failed_one_what_was_there(tmp_path, monkeypatch):
    model, x = mt.nn.Linear(64, 64).eval(), real(2, 64)
    found = mt.export.onnx(model, x, path=tmp_path / "m.onnx", external_data=True)
    assert run(found, {"input": x.numpy()})[0].shape == (2, 64)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    for external in (True, False):
        with pytest.raises(OSError, match="No space"):
            mt.export.onnx(mt.nn.Linear(64, 64), x, path=tmp_path / "m.onnx", external_data=external)
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_name_in_the_current_folder_is_not_in_the_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, x = mt.nn.Linear(64, 64).eval(), real(2, 64)
    (tmp_path / "new").mkdir()
    for path in ("m.onnx", "m.onnx", "new/m.onnx"):
        mt.export.onnx(model, x, path=path, external_data=True)
    mt.export.onnx(model, x, path="m.onnx")
    assert {each.name for each in tmp_path.iterdir()} == {"m.onnx", "new"}  # no data that no model has


def test_a_model_and_its_arrays_are_replaced_in_one_step(tmp_path, monkeypatch):
    """Wherever a second export is cut off, the file is the first model or the second."""
    old, new = mt.nn.Linear(64, 64).eval(), mt.nn.Linear(64, 64).eval()
    x, path, replace = real(2, 64), tmp_path / "m.onnx", os.replace
    for steps in range(3):
        mt.export.onnx(old, x, path=path, external_data=True)
        left = iter(range(steps))

        def cut(source, target, left=left):
            if next(left, None) is None:
                raise KeyboardInterrupt
            replace(source, target)

        with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
            patch.setattr(os, "replace", cut)
            mt.export.onnx(new, x, path=path, external_data=True)
        with mt.no_grad():
            wanted = (new if steps == 2 else old)(x).numpy()
            np.testing.assert_allclose(mt.export.load_onnx(path)(x).numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_names_are_arguments_as_in_torch():
    model, x = mt.nn.Linear(3, 2).eval(), real(2, 3)
    axes = {"a": {0: "batch"}, "b": {0: "batch"}}
    found = checked(mt.export.onnx(model, x, input_names=["a"], output_names=["b"], dynamic_axes=axes))
    assert [each.name for each in (*found.graph.input, *found.graph.output)] == ["a", "b"]
    for names in (["a", "b"], "a", ["a b"]):
        with pytest.raises(ValueError, match="input_names"):
            mt.export.onnx(model, x, input_names=names)
    with pytest.raises(TypeError, match="the file is given by name"):
        mt.export.onnx(model, x, "m.onnx")
    with pytest.raises(TypeError) as error:
        mt.export.onnx(model, (x,))
    assert "not in a tuple" in "".join(getattr(error.value, "__notes__", []))
    with pytest.raises(TypeError, match="opset_version is an int, not str"):
        mt.export.onnx(model, x, opset_version=cast("int", "17"))


def test_a_name_is_of_one_value():
    layer, x = mt.nn.Linear(3, 3).eval(), real(2, 3)
    for inputs, outputs in ((None, ["weight"]), (["weight"], None)):
        with pytest.raises(ValueError, match="is the name of a parameter, too"):
            mt.export.onnx(layer, x, input_names=inputs, output_names=outputs)
    with pytest.raises(ValueError, match="'x' is the name of an argument, too"):
        mt.export.onnx(layer, x, input_names=["x"], output_names=["x"])


def test_parameters_have_the_names_of_the_module_whatever_these_are():
    module = mt.nn.ModuleDict({"a b": mt.nn.Linear(3, 3), "a_b": mt.nn.Linear(3, 3), "ä-ö": mt.nn.Linear(3, 3)})

    class Outer(mt.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts, self.output = module, mt.nn.Parameter(mt.ones(3))

        def forward(self, x):
            return self.parts["a b"](x), self.parts["a_b"](x), self.parts["ä-ö"](x) * self.output

    outer = Outer().eval()
    model = assert_same(outer, real(2, 3))
    arrays = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    for name, parameter in outer.named_parameters():
        np.testing.assert_array_equal(arrays[name], parameter.detach().numpy())
    x, read = real(2, 3), mt.export.load_onnx(model).eval()
    for ours, theirs in zip(read(x), outer(x), strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6)
    with pytest.raises(TypeError, match="load_onnx takes the path of a file or a ModelProto, not bytes"):
        mt.export.load_onnx(b"")


def test_one_tensor_for_several_arguments_is_several_inputs():
    x = real(2, 3, 4)
    model = mt.export.onnx(F.scaled_dot_product_attention, x, x, x)
    assert [each.name for each in model.graph.input] == ["query", "key", "value"]


def test_what_a_module_keeps_for_its_next_call_is_as_before():
    class Kept(mt.nn.Module):
        def __init__(self):
            super().__init__()
            self.mask, self.other = None, mt.ones(2)

        def forward(self, x):
            if self.mask is None:
                self.mask, self.more = mt.arange(x.shape[0]).float()[:, None], x
            self.other = x
            return x * self.mask

    module, x = Kept(), real(4, 3)
    mt.export.onnx(module, x)
    assert module.mask is None and module.other.tolist() == [1, 1] and not hasattr(module, "more")
    assert module(x).shape == (4, 3)


def test_a_parameter_is_a_result():
    class Both(mt.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = mt.nn.Parameter(real(3))

        def forward(self, x):
            return x + self.w, self.w

    assert [each.name for each in assert_same(Both(), real(2, 3)).graph.initializer] == ["w"]


@pytest.mark.parametrize("axes", [{"x": {"0": "n"}}, {"x": 0}, {"x": {0: 5}}, {"x": {0: ""}}, {"x": "n"}])
def test_dynamic_axes_are_numbers_with_names(axes):
    with pytest.raises(TypeError, match="dynamic_axes: "):
        mt.export.onnx(F.relu, mt.ones(2, 3), input_names=["x"], dynamic_axes=axes)


def test_versions_are_arguments():
    model = mt.export.onnx(F.relu, mt.ones(2), opset_version=15, ir_version=8)
    assert model.opset_import[0].version == 15 and model.ir_version == 8
    for version in (3, 100):
        with pytest.raises(ValueError, match="ir_version is from"):
            mt.export.onnx(F.relu, mt.ones(2), ir_version=version)
    for version in (12, 1000):
        with pytest.raises(ValueError, match="opset_version is from 13 to"):
            mt.export.onnx(F.relu, mt.ones(2), opset_version=version)


def test_without_the_package_there_is_one_sentence():
    program = "import sys; sys.modules['onnx'] = None; import minitorch as mt; mt.export.onnx(mt.relu, mt.ones(2))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert "ModuleNotFoundError: ONNX files need the package onnx" in found.stderr
    assert "pip install onnx" in found.stderr


class Positions(mt.nn.Module):
    """As long as its table of positions allows."""

    def __init__(self):
        super().__init__()
        self.words, self.places = mt.nn.Embedding(20, 8), mt.nn.Parameter(real(16, 8))

    def forward(self, words):
        return self.words(words) + self.places[: words.shape[1]]


# --- refusals -----------------------------------------------------------------------------------------------------


def test_what_writes_in_place_is_refused_by_name():
    norm = mt.nn.BatchNorm1d(3)
    with pytest.raises(TranslationError, match=r"writes in place to .*running_mean"):
        mt.export.onnx(norm, real(4, 3))
    with pytest.raises(TranslationError, match="writes in place to an argument"):
        mt.export.onnx(lambda x: x.add_(1), mt.ones(2))


def test_what_is_no_tensor_is_refused_as_a_result():
    with pytest.raises(TranslationError, match="returns int, which its graph does not compute"):
        mt.export.onnx(lambda x: (x, 3), mt.ones(2))
