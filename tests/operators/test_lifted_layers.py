"""Layers that are lifted whole: attention and recurrent layers, in the graph, in ONNX Runtime, and read again."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest

import minitorch as mt
from minitorch.graph import Graph
from minitorch.interpreters import Staging
from minitorch.ir import OPERATORS
from minitorch.nn import functional as F
from minitorch.nn.recurrent.recurrence import lstm_step
from minitorch.tree import flatten
from minitorch_operators.lifting import LIFTING, MEANS
from minitorch_operators.lifting.recurrent import RECURRENCES
from minitorch_operators.recurrent import KINDS
from tests.foreign_models import FOLDER
from tests.onnx.exported import assert_dynamic, assert_same, kinds, run
from tests.operators.test_lifting import FOUND, assert_equal, graph_of

random = np.random.default_rng(11)
attend = F.scaled_dot_product_attention


def real(*shape):
    return mt.tensor(random.normal(size=shape).astype(np.float32))


def found_in(f, *tensors):
    """The operators of a graph after all passes of an export, which gives the numbers of the graph before them."""
    with mock.patch.object(Staging, "few", 0):  # as an export records
        graph, arrays = graph_of(f, *tensors)
    after = MEANS(RECURRENCES(LIFTING(graph)))
    assert_equal(graph, arrays, after, rtol=1e-4, atol=1e-5)
    assert Graph.parse(str(after)) == after
    return {name: count for name, count in after.count().items() if name in OPERATORS}


def assert_read_again(model, f, tensors, path):
    """A model that is read has the numbers of the function that it was written of, and as many kernels."""
    onnx.save(model, path / "model.onnx")
    again = mt.export.load_onnx(path / "model.onnx")
    with mt.no_grad():
        compiled, theirs = mt.jit(f), mt.jit(again)
        for one, other in zip(flatten(compiled(*tensors))[0], flatten(theirs(*tensors))[0], strict=True):
            np.testing.assert_allclose(one.float().numpy(), other.float().numpy(), rtol=2e-5, atol=2e-6)
        assert len(theirs.ledger(*tensors).kernels) <= len(compiled.ledger(*tensors).kernels)


# --- attention ----------------------------------------------------------------------------------------------------


SEEN = random.random((4, 5)) < 0.6
SEEN[0], SEEN[2] = True, False  # a query that may look nowhere
ADDED = np.where(SEEN, random.normal(size=(4, 5)), -np.inf).astype(np.float32)
Q, K, V = real(2, 3, 4, 8), real(2, 3, 5, 8), real(2, 3, 5, 6)


def mask(array, *shape):
    return mt.tensor(np.broadcast_to(array, shape or array.shape).copy())


ATTENTION: dict[str, Any] = {
    "plain": (attend, Q, K, V),
    "causal": (lambda q, k, v: attend(q, k, v, is_causal=True), Q, K, V),
    "causal, more queries": (lambda q, k, v: attend(q, k, v, is_causal=True), K, Q, real(2, 3, 4, 6)),
    "scale": (lambda q, k, v: attend(q, k, v, scale=0.3), Q, K, V),
    "no scale": (lambda q, k, v: attend(q, k, v, scale=1.0), Q, K, V),
    "bools": (attend, Q, K, V, mask(SEEN)),
    "floats": (attend, Q, K, V, mask(ADDED)),
    "bools of a batch": (attend, Q, K, V, mask(SEEN, 2, 1, 4, 5)),
    "bools of keys": (attend, Q, K, V, mask(SEEN[1], 2, 1, 1, 5)),
    "a row of bools": (attend, Q, K, V, mask(SEEN[1])),
    "three dimensions": (attend, Q[0], K[0], V[0]),
    "bools, three dimensions": (attend, Q[0], K[0], V[0], mask(SEEN, 3, 4, 5)),
    "floats, three dimensions": (attend, Q[0], K[0], V[0], mask(ADDED)),
    "one head of keys": (attend, Q, K[:, :1], V[:, :1]),
    "heads in groups": (
        lambda q, k, v: attend(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)),
        real(2, 4, 3, 8),
        real(2, 2, 5, 8),
        real(2, 2, 5, 6),
    ),
    "float16": (attend, Q.half(), K.half(), V.half()),
    "float16 with bools": (attend, Q.half(), K.half(), V.half(), mask(SEEN)),
    "by hand": (lambda q, k, v: F.softmax(q @ k.mT / 8**0.5, -1) @ v, Q, K, V),
}
COMPOSED: dict[str, Any] = {
    "two dimensions": (attend, Q[0, 0], K[0, 0], V[0, 0]),
    "five dimensions": (attend, Q[None], K[None], V[None]),
    "float64": (attend, Q.double(), K.double(), V.double()),
}
LOOSE = {"rtol": 2e-3, "atol": 2e-4}  # one rounding to 16 bits


@pytest.mark.parametrize("name", [*ATTENTION, *COMPOSED])
def test_attention_is_one_operator(name, tmp_path):
    f, *tensors = {**ATTENTION, **COMPOSED}[name]
    bounds = LOOSE if "16" in name else {}
    assert found_in(f, *tensors) == {"attention": 1}
    model = assert_same(f, *tensors, opset_version=23, **bounds)
    plain = ["Mul", "Transpose", "MatMul", "Softmax", "MatMul"]
    assert [kind for kind in kinds(model) if kind not in ("Cast", "Expand", "Unsqueeze")] == (
        plain if name in COMPOSED else ["Attention"]
    )
    assert_read_again(model, f, tensors, tmp_path)


@pytest.mark.parametrize("name", [*ATTENTION, *COMPOSED])
@pytest.mark.parametrize("opset", [13, 20])
def test_older_operators_have_the_nodes_that_runtimes_fuse(name, opset):
    f, *tensors = {**ATTENTION, **COMPOSED}[name]
    model = assert_same(f, *tensors, opset_version=opset, **(LOOSE if "16" in name else {}))
    found = [kind for kind in kinds(model) if kind not in ("Mul", "Cast", "Div", "Expand")]
    masked = ["Where", "Add"] if "bools" in name else ["Add"] if "floats" in name or "causal" in name else []
    guard = ["ReduceMax", "Equal", "Where"] if "bools" in name or "floats" in name else []
    assert found[-4 - len(masked) - len(guard) :] == ["Transpose", "MatMul", *masked, "Softmax", *guard, "MatMul"]


def test_queries_that_may_look_nowhere_have_zeros_in_the_runtime():
    for added in (mask(SEEN), mask(ADDED)):
        model = mt.export.onnx(attend, Q, K, V, added, opset_version=23)
        names = [each.name for each in model.graph.input]
        (found,) = run(model, dict(zip(names, [x.numpy() for x in (Q, K, V, added)], strict=True)))
        assert (found[:, :, 2] == 0).all() and (found[:, :, 0] != 0).all()


NO_ATTENTION = {
    "a scale of 0": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.0),
    "a mask without zeros for rows that look nowhere": lambda q, k, v: F.softmax(q @ k.mT + mask(ADDED), -1) @ v,
    "a mask with another number": lambda q, k, v: F.softmax(mt.where(mask(SEEN), q @ k.mT, -1e4), -1) @ v,
    "a mask of positions in the batch": lambda q, k, v: (
        F.softmax(mt.where(mt.arange(5) <= mt.arange(2).reshape(2, 1, 1, 1), q @ k.mT, -np.inf), -1) @ v
    ),
    "a softmax over queries": lambda q, k, v: F.softmax(q @ k.mT, -2) @ v,
    "scores of one operand twice": lambda q, k, v: F.softmax(q @ k.mT * (q @ k.mT), -1) @ v,
    "weights that are read elsewhere": lambda q, k, v: ((w := F.softmax(q @ k.mT, -1)) @ v, w),
    "a factor for each query": lambda q, k, v: F.softmax(q @ k.mT * q[..., :1], -1) @ v,
}


@pytest.mark.parametrize("name", NO_ATTENTION)
def test_what_is_almost_attention_stays(name):
    found = found_in(NO_ATTENTION[name], Q, K, V)
    assert "attention" not in found and "softmax" in found
    assert_same(NO_ATTENTION[name], Q, K, V, opset_version=23, rtol=1e-4, atol=1e-5)


class EncoderLayer(mt.nn.Module):
    """`torch.nn.TransformerEncoderLayer` with norm_first=True, as in tests/foreign_models.py."""

    def __init__(self, width=16, heads=4, wide=32):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = mt.nn.LayerNorm(width), mt.nn.LayerNorm(width)
        self.in_proj, self.out_proj = mt.nn.Linear(width, 3 * width), mt.nn.Linear(width, width)
        self.linear1, self.linear2 = mt.nn.Linear(width, wide), mt.nn.Linear(wide, width)

    def forward(self, x):
        batch, time, width = x.shape
        parts = self.in_proj(self.norm1(x)).chunk(3, -1)
        q, k, v = (each.reshape(batch, time, self.heads, width // self.heads).transpose(1, 2) for each in parts)
        x = x + self.out_proj(attend(q, k, v).transpose(1, 2).reshape(batch, time, width))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


@pytest.mark.parametrize("sizes", [{0: "batch"}, {0: "batch", 1: "time"}])
def test_an_encoder_has_fewer_nodes_than_that_of_pytorch(sizes):
    encoder = mt.nn.Sequential(EncoderLayer(), EncoderLayer(), mt.nn.LayerNorm(16)).eval()
    others = [real(3, 7, 16)] if len(sizes) > 1 else [real(3, 6, 16)]
    model = assert_dynamic(encoder, {"input": sizes}, [real(2, 6, 16)], others)
    recorded = onnx.load(FOLDER / "torch_encoder_dynamo.onnx")
    assert recorded.opset_import[0].version == model.opset_import[0].version == 20
    assert len(model.graph.node) <= len(recorded.graph.node) - 25
    ours, theirs = kinds(model), kinds(recorded)
    for kind in ("LayerNormalization", "Softmax", "Gelu"):
        assert ours.count(kind) == theirs.count(kind)
    assert ours.count("MatMul") + ours.count("Gemm") == theirs.count("MatMul") + theirs.count("Gemm")
    for kind in ("Reshape", "Transpose", "Shape", "Concat", "Slice", "Gather"):
        assert ours.count(kind) <= theirs.count(kind)


# --- recurrent layers ---------------------------------------------------------------------------------------------


def with_state(layer):
    """A function of the sequence and of the first states."""
    return lambda x, *state: layer(x, state if len(state) > 1 else state[0])


class Doubled(mt.nn.LSTM):
    """An LSTM whose weights are computed."""

    def product(self, x, place):
        return F.linear(x, getattr(self, f"weight_{place}") * 2, getattr(self, f"bias_{place}") * 2)


DOUBLED = Doubled(3, 5).eval()
ONE: Any = mt.nn.GRU(3, 5).eval()
LAYERS = mt.nn.LSTM(3, 5, 2, batch_first=True, bidirectional=True).eval()
X, BATCH_FIRST = real(4, 2, 3), real(2, 2, 3)
RECURRENT: dict[str, Any] = {
    "lstm": (["LSTM"], mt.nn.LSTM(3, 5), X),
    "gru": (["GRU"], mt.nn.GRU(3, 5), X),
    "rnn": (["RNN"], mt.nn.RNN(3, 5), X),
    "rnn with relu, both directions": (["RNN"], mt.nn.RNN(3, 5, nonlinearity="relu", bidirectional=True), X),
    "gru, both directions": (["GRU"], mt.nn.GRU(3, 5, bidirectional=True, batch_first=True), BATCH_FIRST),
    "rnn, two layers without biases": (["RNN"] * 2, mt.nn.RNN(3, 5, 2, bias=False), X),
    "lstm, one sequence": (["LSTM"], mt.nn.LSTM(3, 5), real(4, 3)),
    "lstm, a batch of one": (["LSTM"], mt.nn.LSTM(3, 5), real(4, 1, 3)),
    "lstm, one step": (["LSTM"], mt.nn.LSTM(3, 5), real(1, 2, 3)),
    "gru with a state": (["GRU"], with_state(ONE), X, real(1, 2, 5)),
    "lstm with states": (["LSTM"] * 2, with_state(LAYERS), BATCH_FIRST, real(4, 2, 5), real(4, 2, 5)),
    "last hidden state": (["GRU"], lambda x: ONE(x)[1][0].exp(), X),
    "last output": (["GRU"], lambda x: ONE(x)[0][-1] * 2, X),
    "hidden states of some times": (["GRU"], lambda x: ONE(x)[0][1:3].exp(), X),
    "one sequence after another": (["GRU"] * 2, lambda x: ONE(x, ONE(x.flip(0))[1]), X),
    "weights that are computed": (["LSTM"], DOUBLED, X),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_a_recurrent_layer_is_one_operator(name, tmp_path):
    expected, f, *tensors = RECURRENT[name]
    assert set(found_in(f, *tensors)) <= set(KINDS)
    for opset in (13, 20, 24):
        model = assert_same(f, *tensors, rtol=1e-4, atol=1e-5, opset_version=opset)
        assert [kind for kind in kinds(model) if kind in ("LSTM", "GRU", "RNN")] == expected
        assert not {"Sigmoid", "Tanh", "Relu", "MatMul", "Gemm", "Add"} & set(kinds(model))
    assert_read_again(model, f, tensors, tmp_path)


def test_weights_keep_their_names_and_say_their_order():
    lstm: Any = mt.nn.LSTM(3, 5, bidirectional=True)
    model = mt.export.onnx(lstm.eval(), X)
    arrays = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    weight = arrays["weight_ih_l0_iofc"]
    assert weight.shape == (2, 20, 3) and arrays["bias_ih_l0_iofc"].shape == (2, 40)
    i, f, g, o = np.split(lstm.weight_ih_l0_reverse.detach().numpy(), 4)
    np.testing.assert_array_equal(weight[1], np.concatenate([i, o, f, g]))
    assert model.metadata_props[0].value.split() == ["weight_ih_l0_iofc", "weight_hh_l0_iofc", "bias_ih_l0_iofc"]


@pytest.mark.parametrize("layer", [mt.nn.LSTM(3, 5, bidirectional=True), mt.nn.GRU(3, 5, 2), mt.nn.RNN(3, 5)])
def test_the_batch_of_a_recurrent_layer_may_be_dynamic(layer):
    model = assert_dynamic(layer.eval(), {"input": {1: "batch"}}, [X], [real(4, 1, 3)], [real(4, 7, 3)])
    assert {"LSTM", "GRU", "RNN"} & set(kinds(model))


def test_so_may_be_the_time():
    model = assert_dynamic(mt.nn.RNN(3, 5).eval(), {"input": {0: "time"}}, [X], [real(1, 2, 3)], [real(9, 2, 3)])
    assert kinds(model) == ["RNN", "Reshape"]
    for layer in (DOUBLED, mt.nn.LSTM(3, 5, proj_size=2).eval(), mt.nn.GRU(3, 5).eval().double()):
        x, *others = (real(n, 2, 3).to(next(layer.parameters()).dtype) for n in (4, 1, 9))
        model = assert_dynamic(layer, {"input": {0: "time"}}, [x], *[[other] for other in others])
        assert ("LSTM" if layer is DOUBLED else "Scan") in kinds(model)


def _steps(x, step, **options):
    """A recurrence by hand, with the parameters of a layer."""
    given = F.linear(x, ONE.weight_ih_l0[:5], ONE.bias_ih_l0[:5])
    weight, bias = ONE.weight_hh_l0[:5], ONE.bias_hh_l0[:5]
    return mt.scan(lambda h, x: (step(x, h, weight, bias),) * 2, mt.zeros(x.shape[1], 5), given, **options)[1]


def _tanh(x, h, weight, bias):
    return mt.tanh(x + F.linear(h, weight, bias))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_recurrence_by_hand_is_found_too(reverse):
    assert set(found_in(lambda x: _steps(x, _tanh, reverse=reverse), X)) == {"rnn_tanh"}


DOUBLE = mt.nn.RNN(3, 5, dtype=mt.float64).eval()
WEIGHT = ONE.weight_ih_l0[:5]
NO_RECURRENCE: dict[str, Any] = {
    "another activation": lambda x: _steps(x, lambda x, h, w, b: mt.sin(x + F.linear(h, w, b))),
    "a bias for each sequence": lambda x: _steps(x, lambda x, h, w, b: _tanh(x, h, w, mt.stack([b, b * 2]))),
    "a state that is changed between steps": lambda x: _steps(x, lambda x, h, w, b: _tanh(x, h * 0.5, w, b)),
    "a matrix that is not the same for all steps": lambda x: _steps(x, lambda x, h, w, b: _tanh(x, h, w * x.sum(), b)),
    "a state of two steps before": lambda x: mt.scan(_skipping, (mt.zeros(2, 5),) * 2, F.linear(x, WEIGHT))[1],
    "a projection": mt.nn.LSTM(3, 5, proj_size=2).eval(),
    "float64": lambda x: DOUBLE(x.double()),
}


def _skipping(states, x):
    after = mt.tanh(x + F.linear(states[0], ONE.weight_hh_l0[:5]))
    return (states[1], after), after


@pytest.mark.parametrize("name", NO_RECURRENCE)
def test_what_is_almost_a_recurrent_layer_stays(name):
    f = NO_RECURRENCE[name]
    assert not set(found_in(f, X)) & set(KINDS)
    assert_same(f, X, rtol=1e-4, atol=1e-5)


def test_cell_states_that_are_read_on_the_way_keep_the_steps():
    cell = mt.nn.LSTMCell(5, 5).eval()

    def step(state, x):
        state = lstm_step(x, F.linear(state[0], cell.weight_hh, cell.bias_hh), state)
        return state, state[1]

    def f(x):
        return mt.scan(step, (mt.zeros(2, 5),) * 2, F.linear(x, cell.weight_ih, cell.bias_ih))

    x = real(4, 2, 5)
    assert "lstm" in found_in(lambda x: f(x)[0], x)
    assert "lstm" not in found_in(f, x)


# --- means --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f", [lambda x: x.mean(1), lambda x: x.mean((0, 2), keepdim=True), lambda x: x.mean(), lambda x: x.mean(-1)]
)
def test_a_mean_is_one_operator(f):
    x = real(4, 3, 5)
    assert found_in(f, x) == {"mean": 1}
    for opset in (13, 20):
        assert set(kinds(assert_same(f, x, opset_version=opset))) == {"ReduceMean"}


@pytest.mark.parametrize("f", [lambda x: x.sum(1) / 4, lambda x: x.sum(1, keepdim=True) / x.sum(1, keepdim=True)])
def test_what_is_almost_a_mean_stays(f):
    assert found_in(f, real(4, 3, 5)) == {}


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.mean(0),
        lambda x: x.clamp(-1, x.shape[0]),
        lambda x: x.argsort(0)[:8],
        lambda x: x.topk(2, 0),
        lambda x: x.sort(0),
        lambda x: x.amin(0, keepdim=True),
        lambda x: x.gather(0, x.argmin(0, keepdim=True)),
    ],
)
def test_numbers_of_operators_may_depend_on_sizes(f):
    assert_dynamic(f, {"x": {0: "n"}}, [real(5, 3)], *[[real(n, 3)] for n in (2, 8, 9, 40)])


# --- all operators ------------------------------------------------------------------------------------------------


EXACT = {"relu", "leaky_relu", "elu", "clip", "hardsigmoid", "hardswish", "softplus", "mish", "softsign", "minimum"}
EXACT |= {"ceil", "isnan", "signbit", "sigmoid", "silu"}


@pytest.mark.parametrize(("name", "f", "shape"), [each for each in FOUND if each[0] in EXACT])
def test_special_values_are_the_same_in_the_runtime(name, f, shape):
    x = mt.tensor([[np.nan, -np.inf, np.inf], [-5.0, -0.0, 0.0], [1e-4, 3, 30], [6, -3, -0.5]])
    for opset in (13, 20):
        assert_same(f, x, opset_version=opset)


@pytest.mark.parametrize(("name", "f", "shape"), FOUND, ids=[f"{n}-{i}" for i, (n, *_) in enumerate(FOUND)])
def test_an_operator_that_is_read_again_has_as_many_kernels(name, f, shape, tmp_path):
    x = real(*shape)
    model = assert_same(f, x, opset_version=24, rtol=1e-4, atol=1e-5)
    assert len(model.graph.node) <= {"signbit": 4, "gemm": 4, "matmul": 3, "softplus": 3, "take_along": 3}.get(name, 2)
    assert_read_again(model, f, [x], tmp_path)
