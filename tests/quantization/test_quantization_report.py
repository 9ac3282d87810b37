"""The report on a quantised model: its numbers, its recommendation and pictures; the accuracy on the digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from benchmarks import digits
from minitorch import quantization as q
from minitorch.errors import QuantizationError

nn = mt.nn
COARSE = q.QConfig(
    q.default_qconfig.activation,
    q.PerChannelMinMaxObserver.with_args(dtype=mt.int8, qscheme="per_channel_symmetric", quant_min=-2, quant_max=1),
)


def trained() -> tuple[Any, mt.Tensor, mt.Tensor]:
    """A model, inputs, and the labels that it gives them."""
    mt.manual_seed(1)
    x = mt.randn(512, 8)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
    return model, x, model(x).argmax(1)


def test_every_number_of_a_row_is_that_of_its_definition():
    model, x, y = trained()
    found = q.report(model, [(x[:256], y[:256]), (x[256:], y[256:])])
    quantized: Any = q.convert(q.calibrate(q.prepare(model), [x]))
    first, second = found.rows
    inside = model[1](model[0](x)).detach()
    for row, layer, float_layer, given in (
        (first, quantized[0], model[0], x),
        (second, quantized[2], model[2], inside),
    ):
        expected = float_layer(given).detach().numpy().astype(np.float64)
        noise = layer(given).numpy() - expected
        ratio = 10 * np.log10((expected**2).sum() / (noise**2).sum())
        assert row.decibels == pytest.approx(ratio, abs=0.5)
        assert (row.low, row.high) == (given.min().item(), given.max().item())
        low, high = row.grid
        values = given.numpy()
        outside = (values < low - row.scale / 2) | (values > high + row.scale / 2)
        assert row.clipped == pytest.approx(outside.mean(), abs=0.01)
        assert sum(row.counts) == given.numel()
    assert found.accuracy == pytest.approx(100 * (model(x).argmax(1) == y).float().mean().item())


def test_a_layer_that_costs_accuracy_is_recommended_with_the_reason():
    model, x, y = trained()
    found = q.report(model, [(x, y)], COARSE)
    assert found.quantized < found.accuracy - 5
    best = found.leave_in_float[0]
    row = next(row for row in found.rows if row.name == best)
    assert row.accuracy == max(each.accuracy for each in found.rows)
    assert found.reasons[0].startswith(f"{best} (Linear) gives back {row.accuracy - found.quantized:.2f} points: ")
    mixed = q.convert(q.calibrate(q.prepare(model, COARSE, leave_in_float=[best]), [x]))
    assert 100 * (mixed(x).argmax(1) == y).float().mean().item() == pytest.approx(row.accuracy, abs=0.5)


def test_without_labels_it_is_agreement():
    model, x, _ = trained()
    found = q.report(model, [x])
    assert (found.measure, found.accuracy) == ("agreement", 100.0)
    assert found.leave_in_float == () or found.quantized < 100


def test_the_table_and_the_pictures_show_every_layer():
    model, x, y = trained()
    found = q.report(model, [(x, y)], COARSE)
    text = str(found)
    assert all(f"\n{row.name} " in text for row in found.rows) and "leave in float:" in text
    assert found.histograms().png.startswith(b"\x89PNG")
    marks = found.graph().drawing.marks
    assert [mark.label for mark in marks if "dB" in mark.kind] == ["0 · Linear", "2 · Linear"]
    assert len(found.graph().drawing.arrows) == len(marks) - 1
    assert "below 20 dB" in found.graph().svg


def test_no_data_is_refused():
    with pytest.raises(QuantizationError, match="MT701: report: there is no data"):
        q.report(nn.Linear(2, 2), [])


def test_int8_keeps_the_accuracy_on_the_digits():
    """One seed and a few epochs of ``python -m benchmarks.digits``, the full measurement: two images at most."""
    pytest.importorskip("sklearn")
    found = digits.measured(0, epochs=4, qat_epochs=1)
    assert found["float32"] > 90
    for name in ("int8", "int8, QAT"):
        assert found[name] > found["float32"] - 0.6, found


def test_the_check_of_the_digits_fails_if_int8_loses_a_point(capsys):
    row = {"float32": 99.0, "bfloat16": 99.0, "int8": 99.0, "int8, QAT": 99.0, "int4 weights": 90.0}
    assert digits.main(["--check"], lambda seed: row) == 0
    assert digits.main(["--check"], lambda seed: {**row, "int8": 98.4}) == 1
    assert "int4 weights    90.00" in capsys.readouterr().out


class Residual(nn.Module):
    """Two convolutions and what their block does by itself between and after them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        return (x + self.second(self.first(x).relu())).relu()


def test_the_graph_of_a_residual_block_has_no_cycle():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), Residual(), nn.Flatten(), nn.Linear(144, 2)).eval()
    drawing = q.report(model, [mt.rand(8, 1, 8, 8)]).graph().drawing
    place = {mark.id: position for position, mark in enumerate(drawing.marks)}
    assert all(place[arrow.tail] < place[arrow.head] for arrow in drawing.arrows)
    titles = [mark.title.split("\n")[0] for mark in drawing.marks]
    assert sum("add(" in title for title in titles) == 1
    assert [title for title in titles if "Conv2d" in title] == ["0 · Conv2d", "1.first · Conv2d", "1.second · Conv2d"]
