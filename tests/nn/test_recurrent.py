"""Recurrent layers: PyTorch's numbers and gradients in every mode, and a program of T steps with the code of one."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.autograd import gradcheck
from minitorch.compiler.codegen import machine
from minitorch.errors import DTypeError, ShapeError
from tests.support import records
from tests.support.recurrent import BATCH, CASES, HIDDEN, INPUT, TIME, Case, arguments, flat, outcome

RECORD = records.read("recurrent")


def lazily(call: Any) -> Any:
    def run(*tensors: mt.Tensor) -> Any:
        with mt.lazy():
            return call(*tensors)

    return run


MODES: dict[str, Any] = {
    "eager": None,
    "jit": mt.jit,
    "interpret": lambda call: mt.jit(call, backend="interpret"),
    "lazy": lazily,
}


def compare(label: str, mode: str) -> None:
    found, expected = outcome(mt, CASES[label], run=MODES[mode]), RECORD[label]
    assert (found["repr"], found["shapes"]) == (expected["repr"], expected["shapes"])
    assert list(found["parameters"]) == list(expected["parameters"])
    for key in ("results", "inputs"):
        for mine, yours in zip(found[key], expected[key], strict=True):
            np.testing.assert_allclose(mine, yours, rtol=1e-10, atol=1e-12)
    for name, yours in expected["parameters"].items():
        np.testing.assert_allclose(found["parameters"][name], yours, rtol=1e-9, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}, {"proj_size": 2}])
@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_a_packed_sequence_gives_what_it_gives_by_itself(kind, options, compiled):
    if "proj_size" in options and kind is not nn.LSTM:
        return
    layer, lengths = kind(3, 4, batch_first=True, **options), [2, 4, 1]
    x = mt.randn(3, 4, 3)

    def packed(x):
        given = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        result, state = layer(given)
        return nn.utils.rnn.pad_packed_sequence(result, batch_first=True)[0], state

    y, state = (mt.jit(packed) if compiled else packed)(x)
    for at, length in enumerate(lengths):
        alone, last = layer(x[at : at + 1, :length])
        np.testing.assert_allclose(
            y[at : at + 1, :length].detach().numpy(), alone.detach().numpy(), rtol=1e-5, atol=1e-6
        )
        assert not y[at, length:].detach().numpy().any()
        for mine, own in zip(state if kind is nn.LSTM else [state], last if kind is nn.LSTM else [last], strict=True):
            np.testing.assert_allclose(mine[:, at].detach().numpy(), own[:, 0].detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("label", CASES)
def test_results_and_gradients_are_pytorchs(label: str) -> None:
    compare(label, "eager")


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "eager"])
@pytest.mark.parametrize("label", ["RNN relu, two layers, two directions", "LSTM 2, two layers, two directions",
                                   "GRU, no batch", "LSTM", "GRUCell", "LSTMCell"])  # fmt: skip
def test_results_and_gradients_are_pytorchs_in_other_modes(label: str, mode: str) -> None:
    compare(label, mode)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    layer = getattr(nn, name)(2, 2, bidirectional=True, dtype=mt.float64)
    names = list(layer.state_dict())

    def run(x: mt.Tensor, *values: mt.Tensor) -> mt.Tensor:
        for key, value in zip(names, values, strict=True):
            vars(layer)[key] = value
        return (layer(x)[0] ** 2).sum()

    values = [value.clone().requires_grad_() for value in layer.state_dict().values()]
    assert gradcheck(run, (mt.randn(3, 1, 2, dtype=mt.float64).requires_grad_(), *values))


def test_a_second_derivative_goes_through_time() -> None:
    layer = nn.GRU(1, 2, dtype=mt.float64)
    f = lambda x: layer(x)[0].sum()  # noqa: E731
    x, v, step = mt.randn(3, 1, 1, dtype=mt.float64), mt.randn(3, 1, 1, dtype=mt.float64), 1e-5
    slope = mt.grad(lambda x: (mt.grad(f)(x) * v).sum())(x)
    differences = (mt.grad(f)(x + step * v) - mt.grad(f)(x - step * v)) / (2 * step)
    np.testing.assert_allclose(slope.detach().numpy(), differences.detach().numpy(), rtol=1e-6, atol=1e-8)


def test_a_session_runs_the_layer() -> None:
    layer = nn.LSTM(INPUT, HIDDEN)
    x = mt.randn(TIME, BATCH, INPUT)
    with mt.Graph() as graph:
        given = mt.placeholder((TIME, BATCH, INPUT), name="x")
        output, (h, c) = layer(given)
    found = mt.Session(graph).run([output, h, c], {given: x})
    for mine, right in zip(found, flat(layer(x)), strict=True):
        np.testing.assert_allclose(mine, right.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_frozen_layer_gives_the_same_numbers_from_disk(name: str, tmp_path: Path) -> None:
    layer = getattr(nn, name)(INPUT, HIDDEN, num_layers=2, bidirectional=True).eval()
    x = mt.randn(TIME, BATCH, INPUT)
    frozen = mt.freeze(layer, x)
    frozen.save(tmp_path / "model")
    for mine, loaded, right in zip(
        flat(frozen(x)), flat(mt.load_frozen(tmp_path / "model")(x)), flat(layer(x)), strict=True
    ):
        np.testing.assert_array_equal(mine.numpy(), loaded.numpy())
        np.testing.assert_allclose(mine.numpy(), right.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_training_step_is_one_graph_and_learns() -> None:
    mt.manual_seed(0)
    layer, readout = nn.LSTM(1, 8, batch_first=True), nn.Linear(8, 1)
    optimizer = mt.optim.Adam([*layer.parameters(), *readout.parameters()], lr=0.05)

    @mt.jit
    def step(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        optimizer.zero_grad()
        loss = ((readout(layer(x)[0])[:, -1] - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    x = mt.randn(16, 5, 1)
    losses = [step(x, x.sum(1)).item() for _ in range(60)]
    assert losses[-1] < 0.1 * losses[0]


def test_dropout_is_between_layers_and_in_training_only() -> None:
    layer = nn.GRU(3, 16, num_layers=2, dropout=0.5)
    x = mt.randn(4, 2, 3)
    assert not np.array_equal(layer(x)[0].detach().numpy(), layer(x)[0].detach().numpy())
    # The first layer's end does not depend on it.
    np.testing.assert_array_equal(layer(x)[1][0].detach().numpy(), layer(x)[1][0].detach().numpy())
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].detach().numpy(), layer(x)[0].detach().numpy())


def test_initial_values_are_drawn_one_parameter_after_another() -> None:
    mt.manual_seed(3)
    layer = nn.LSTM(2, 16, bidirectional=True, proj_size=3)
    mt.manual_seed(3)
    for name, parameter in layer.named_parameters():
        expected = mt.nn.init.uniform_(mt.empty(parameter.shape), -0.25, 0.25)
        np.testing.assert_array_equal(parameter.detach().numpy(), expected.numpy(), err_msg=name)
    assert [len(each) for each in layer.all_weights] == [5, 5]


# The program ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_all_lengths_run_the_code_of_one_step(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MINITORCH_CACHE_DIR", str(tmp_path))
    compiled: list[str] = []
    once = machine.compile_ir
    monkeypatch.setattr(machine, "compile_ir", lambda text, *rest: compiled.append(text) or once(text, *rest))
    layer = getattr(nn, name)(64, 64)
    for time in (34, 40):
        compiled.clear()
        jitted, x = mt.jit(layer), mt.randn(time, 32, 64)
        for mine, right in zip(jitted(x), layer(x), strict=True):
            for a, b in zip(flat(mine), flat(right), strict=True):
                np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)
        assert len(jitted.ledger(x).kernels) < 6
    assert (
        len(compiled) < 4
    )  # the product of all times, and what is beside it; the step was compiled with the first length


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_step_is_one_product_and_the_input_of_all_times_another(name: str) -> None:
    layer, seen = getattr(nn, name)(INPUT, HIDDEN), []
    for time in (4, 9):
        graph = mt.jit(layer).graph(mt.randn(time, BATCH, INPUT))
        loops = [node for node in graph.nodes if node.primitive.name == "scan"]
        seen.append([graph.count()["dot"], loops[0].params["body"].count()["dot"], len(graph.nodes)])
    assert seen[0] == seen[1] and seen[0][:2] == [1, 1]


def test_a_gradient_of_many_steps_adds_no_whole_sequences() -> None:
    """The cotangents of the slices are stacked: no value of all times is made for each time."""
    layer = nn.RNN(INPUT, HIDDEN)
    graph = mt.jit(mt.grad(lambda x: layer(x)[0].sum())).graph(mt.randn(20, BATCH, INPUT))
    assert not any(node.primitive.name == "pad" and node.shape[0] == 20 for node in graph.nodes)


# Wrong calls ----------------------------------------------------------------------------------------------------

LAYER: Any = {"RNN": nn.RNN(3, 4), "LSTM": nn.LSTM(3, 4, 2), "GRU": nn.GRU(3, 4), "cell": nn.LSTMCell(3, 4)}
X = mt.zeros(5, 2, 3)
PAIR = mt.zeros(2, 2, 4), mt.zeros(2, 2, 5)
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: LAYER["LSTM"](mt.zeros(3)), ShapeError, "sequence of 3 features"),
    (lambda: LAYER["LSTM"](mt.zeros(5, 2, 4)), ShapeError, "sequence of 3 features"),
    (lambda: LAYER["GRU"](mt.zeros(0, 2, 3)), ShapeError, "no elements"),
    (lambda: LAYER["LSTM"](X, PAIR), ShapeError, r"c_0 is f32\[2,2,5\], and not of shape \[2, 2, 4\]"),
    (lambda: LAYER["LSTM"](X, PAIR[0]), TypeError, "pair of tensors"),
    (lambda: LAYER["GRU"](X, mt.zeros(1, 4)), ShapeError, r"hx is f32\[1,4\]"),
    (lambda: LAYER["GRU"](X, PAIR), TypeError, "hx is a tensor"),
    (lambda: LAYER["RNN"](mt.zeros(5, 3), mt.zeros(1, 1, 4)), ShapeError, "the input has no batch"),
    (lambda: LAYER["RNN"](X.double()), DTypeError, "weights are float32"),
    (lambda: LAYER["RNN"]([[1.0]]), TypeError, "input is a tensor, not list"),
    (lambda: LAYER["cell"](X), ShapeError, "use nn.LSTM"),
    (lambda: LAYER["cell"](X[0], (mt.zeros(2, 4), mt.zeros(4))), ShapeError, r"c is f32\[4\]"),
    (lambda: LAYER["cell"](X[0], mt.zeros(2, 4)), TypeError, "pair of tensors"),
    (lambda: nn.LSTM(3, 0), ValueError, "hidden_size is at least 1"),
    (lambda: nn.LSTM(3, 4, 0), ValueError, "num_layers is at least 1"),
    (lambda: nn.LSTM(3, 4.5), TypeError, "hidden_size is an int"),  # type: ignore[arg-type]
    (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "proj_size=4 is not below"),
    (lambda: nn.GRU(3, 4, 1, 1), TypeError, "bias is a bool"),  # type: ignore[arg-type]
    (lambda: nn.GRU(3, 4, 2, dropout=1.5), ValueError, "dropout is a probability"),
    (lambda: nn.GRU(3, 4, proj_size=2), TypeError, r"GRU.__init__\(\) got an unexpected .* 'proj_size'"),  # type: ignore[call-arg]
    *[
        (lambda kind=kind: kind(3), TypeError, rf"^{kind.__name__}.__init__\(\) missing .* 'hidden_size'")
        for kind in (nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell)
    ],
    (lambda: nn.RNN(3, 4, nonlinearity="gelu"), ValueError, '"tanh" or "relu"'),
    (lambda: nn.RNNCell(3, 4, nonlinearity="gelu"), ValueError, '"tanh" or "relu"'),
]


@pytest.mark.parametrize("call, kind, text", WRONG, ids=[text for _, _, text in WRONG])
def test_a_wrong_call_says_what_was_wrong(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_the_options_are_pytorchs_in_its_order_and_then_the_type() -> None:
    options = ["input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"]
    for kind, more in ((nn.GRU, []), (nn.LSTM, ["proj_size"])):
        assert [*inspect.signature(kind).parameters] == [*options, *more, "dtype", "device"]
    assert [*inspect.signature(nn.RNN).parameters] == [*options[:3], "nonlinearity", *options[3:], "dtype", "device"]


def test_dropout_of_a_single_layer_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="drops nothing"):
        nn.LSTM(3, 4, dropout=0.5)


def test_an_empty_batch_and_half_precision_run() -> None:
    assert nn.LSTM(3, 4)(mt.zeros(5, 0, 3))[0].shape == (5, 0, 4)
    layer = nn.GRU(3, 4).to(mt.bfloat16)
    assert layer(mt.zeros(5, 2, 3, dtype=mt.bfloat16))[0].dtype is mt.bfloat16
    with mt.autocast(device_type="cpu", dtype=mt.bfloat16):
        assert nn.LSTM(3, 4)(mt.ones(5, 2, 3))[0].shape == (5, 2, 4)


def test_the_arguments_of_the_record_are_those_of_every_case() -> None:
    case: Case = CASES["LSTM 2, two layers, two directions"]
    assert [each.shape for each in arguments(case)] == [(BATCH, TIME, INPUT), (4, BATCH, 2), (4, BATCH, HIDDEN)]
