"""Dynamic quantisation of recurrent layers: PyTorch's integers and numbers, and products of 8-bit integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch import quantization as q
from minitorch.dtypes import int8, uint8
from minitorch.errors import QuantizationError, ShapeError
from minitorch_quantization.modules.recurrent import DynamicQuantizedCell, DynamicQuantizedRNN
from minitorch_quantization.schemes import choose_qparams
from tests.quantization.pytorch.recurrent_dynamic import BATCH, CASES, HIDDEN, INPUT, TIME, arguments, made
from tests.support import records
from tests.support.recurrent import flat

RECORD = records.read("recurrent_dynamic")
LAYERS = [label for label in CASES if label != "Linear"]

# How far results are from PyTorch's, which quantises activations to 7 bits, and from float's. A gate's argument is a
# sum of 24 products of numbers up to 3 and 0.6 in size, whose steps are 6 / 255 and 1.2 / 255; states are at most 1.
BOUND = 0.05


def quantized(label: str, reduce_range: bool = False) -> DynamicQuantizedRNN | DynamicQuantizedCell:
    layer = made(mt, label)
    kind: Any = DynamicQuantizedCell if label.partition(" ")[0].endswith("Cell") else DynamicQuantizedRNN
    found: DynamicQuantizedRNN | DynamicQuantizedCell = kind(label, layer, reduce_range)
    return found


def results(layer: Any, label: str) -> list[np.ndarray[Any, Any]]:
    return [each.detach().numpy().reshape(-1) for each in flat(layer(*arguments(mt, label)))]


@pytest.mark.parametrize("label", LAYERS)
def test_weights_and_results_are_pytorchs(label: str) -> None:
    layer, expected = quantized(label, reduce_range=True), RECORD[label]
    for name, integers in expected["weights"].items():
        np.testing.assert_array_equal(getattr(layer, name).numpy().reshape(-1), integers, err_msg=name)
        assert getattr(layer, f"{name}_scale").item() == expected["scales"][name]
    for mine, yours in zip(results(layer, label), expected["results"], strict=True):
        np.testing.assert_allclose(mine, yours, atol=2e-6)


@pytest.mark.parametrize("label", LAYERS)
def test_with_all_bits_results_are_as_near_to_pytorchs_and_to_floats(label: str) -> None:
    found = results(quantized(label), label)
    for mine, yours, right in zip(found, RECORD[label]["results"], results(made(mt, label), label), strict=True):
        assert 0 < np.abs(mine - yours).max() < BOUND
        assert 0 < np.abs(mine - right).max() < BOUND


def test_a_linear_layer_in_pytorchs_way_has_its_numbers() -> None:
    layer, expected, (x,) = made(mt, "Linear"), RECORD["Linear"], arguments(mt, "Linear")
    of_weight = choose_qparams(layer.weight.detach().amin(), layer.weight.detach().amax(), int8, symmetric=True)
    of_input = choose_qparams(x.amin(), x.amax(), uint8, 0, 127)
    weight = q.quantize(layer.weight.detach(), of_weight)
    np.testing.assert_array_equal(weight.numpy().reshape(-1), expected["weights"]["weight"])
    y = nn.functional.linear(
        q.dequantize(q.quantize(x, of_input), of_input), q.dequantize(weight, of_weight), layer.bias.detach()
    )
    np.testing.assert_allclose(y.numpy().reshape(-1), expected["results"][0], atol=2e-6)
    (mine,) = results(q.quantize_dynamic(layer), "Linear")  # 8 bits, and a scale for each channel
    assert 0 < np.abs(mine - expected["results"][0]).max() < BOUND


@pytest.mark.parametrize("backend", ["interpret", "llvm"])
@pytest.mark.parametrize("label", ["LSTM, two layers, two directions", "GRU", "GRUCell", "LSTMCell"])
def test_compiled_and_frozen_layers_compute_the_same(label: str, backend: str) -> None:
    layer, args = quantized(label), arguments(mt, label)
    jitted = flat(mt.jit(layer, backend=backend)(*args))
    frozen = flat(mt.freeze(layer, *args, backend=backend)(*args))
    for a, b, right in zip(jitted, frozen, flat(layer(*args)), strict=True):
        # A state that rounds otherwise in its last bit is another integer now and then: one step of it.
        np.testing.assert_allclose(a.numpy(), right.numpy(), atol=0.01)
        np.testing.assert_allclose(b.numpy(), right.numpy(), atol=0.01)


@pytest.mark.parametrize("label, products", [("LSTM", TIME), ("GRU", TIME), ("RNNCell", 2), ("LSTMCell", 2)])
def test_products_are_those_of_8_bit_integers(label: str, products: int) -> None:
    """That of all inputs and those of the states; the first state of a layer is zeros, which are folded."""
    graph = mt.jit(quantized(label)).stages(*arguments(mt, label)).graph
    made_of = [
        (*(operand.dtype.name for operand in node.inputs), node.dtype.name)
        for node in graph.nodes
        if node.primitive.kind == "contraction"
    ]
    assert made_of.count(("uint8", "int8", "int32")) == products
    assert len(made_of) - products <= 1


def test_a_model_is_quantised_and_saved(tmp_path: Path) -> None:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.cell = nn.LSTM(INPUT, HIDDEN, bidirectional=True), nn.GRUCell(2 * HIDDEN, 4)
            self.plain, self.out = nn.RNN(4, 4), nn.Linear(4, 3)

        def forward(self, x: mt.Tensor) -> Any:
            return self.out(self.plain(self.cell(self.lstm(x)[0][-1]).unsqueeze(0))[0])

    mt.manual_seed(0)
    model = Tagger().eval()
    small: Any = q.quantize_dynamic(model)
    kinds = [type(each).__name__ for each in small.children()]
    assert kinds == ["DynamicQuantizedRNN", "DynamicQuantizedCell", "RNN", "DynamicQuantized"]  # PyTorch leaves RNN
    assert small.lstm.weight_bytes < 0.26 * sum(each.spec.nbytes for each in model.lstm.parameters() if each.ndim > 1)
    assert "LSTM(8, 16, bidirectional=True), weights int8" in repr(small)
    x = mt.randn(TIME, BATCH, INPUT)
    frozen = mt.freeze(small, x)
    frozen.save(tmp_path / "tagger")
    np.testing.assert_array_equal(frozen(x).numpy(), mt.load_frozen(tmp_path / "tagger")(x).numpy())
    np.testing.assert_allclose(frozen(x).numpy(), model(x).detach().numpy(), atol=BOUND)
    state = small.state_dict()
    again = q.quantize_dynamic(Tagger())
    again.load_state_dict(state)
    np.testing.assert_array_equal(again(x).detach().numpy(), small(x).detach().numpy())
    other: Any = q.quantize_dynamic(model, kinds=[nn.RNN])
    assert type(other.plain) is DynamicQuantizedRNN
    assert other.plain.state_dict()["weight_hh_l0"].dtype is int8


@pytest.mark.parametrize("options", [{"proj_size": 3}, {"bias": False}, {"batch_first": True}])
def test_what_pytorch_does_not_quantise_is_quantised_as_well(options: dict[str, Any]) -> None:
    layer = nn.LSTM(INPUT, HIDDEN, num_layers=2, **options)
    x = mt.randn(TIME, BATCH, INPUT)
    for mine, right in zip(flat(q.quantize_dynamic(layer)(x)), flat(layer(x)), strict=True):
        assert mine.shape == right.shape
        np.testing.assert_allclose(mine.detach().numpy(), right.detach().numpy(), atol=BOUND)


def test_what_cannot_be_quantised_is_named() -> None:
    layer = nn.Sequential(nn.LSTM(INPUT, HIDDEN))
    with mt.no_grad():
        layer[0].weight_hh_l0[0, 0] = float("inf")
    with pytest.raises(QuantizationError, match=r"weight_hh_l0 of 0 \(LSTM\)"):
        q.quantize_dynamic(layer)
    with pytest.raises(ShapeError, match="sequence of 8 features"):
        quantized("LSTM")(mt.zeros(TIME, BATCH, 3))
    assert quantized("LSTM")(mt.zeros(TIME, 0, INPUT))[0].shape == (TIME, 0, HIDDEN)
