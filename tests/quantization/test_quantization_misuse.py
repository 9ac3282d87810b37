"""Bad input of quantisation: one sentence each, which names the layer, or the function, and the value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import minitorch as mt
from minitorch import quantization as q

nn = mt.nn
NAN, INF = float("nan"), float("inf")


class Block(nn.Module):
    """A layer inside of a module, so that its qualified name has two parts."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        return self.proj(x).relu()


class Net(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.head = Block(), nn.Linear(4, 2)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        result: mt.Tensor = self.head(self.block(x))
        return result


def data(number: float = 0.0) -> mt.Tensor:
    x = mt.ones(8, 4)
    x[2, 1] = number
    return x


def weighted(number: float) -> Net:
    model = Net()
    model.head.weight.detach()[0, 1] = number
    return model


def after(model: Any, number: float) -> Any:
    """A prepared model whose weight went wrong afterwards."""
    model.head.layer.weight.detach().fill_(number)
    return model


def ready() -> Any:
    return q.calibrate(q.prepare(Net()), [data()])


X: Any = data(1.0)
MINMAX = q.QConfig(q.MinMaxObserver, q.default_qconfig.weight)

# What a user does -> the beginning of what is printed, without the code.
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "NaN": (lambda: q.calibrate(q.prepare(Net()), [data(NAN)]), "the input of block.proj (Linear): a NaN in f32[8,4]"),
    "infinity": (
        lambda: q.calibrate(q.prepare(Net(), MINMAX), [data(-INF)]),
        "the input of block.proj (Linear): an infinity (-inf) in f32[8,4]",
    ),
    "NaN in training": (lambda: q.prepare_qat(Net())(data(NAN)), "the input of block.proj (Linear): a NaN in f32[8,4]"),
    "NaN in a report": (lambda: q.report(Net(), [data(NAN)]), "the input of block.proj (Linear): a NaN in f32[8,4]"),
    "weight": (lambda: q.prepare(weighted(NAN)), "the weight of head (Linear): a NaN in f32[2,4]"),
    "weight, dynamic": (lambda: q.quantize_dynamic(weighted(INF)), "the weight of head (Linear): an infinity (inf) in"),
    "weight, 4 bits": (lambda: q.quantize_weights_(weighted(NAN), 4), "the weight of head (Linear): a NaN in f32[2,4]"),
    "weight, later": (
        lambda: q.calibrate(after(q.prepare(Net()), NAN), [X]),
        "the weight of head (Linear): a NaN in f32[2,4]",
    ),
    "saw nothing": (lambda: q.convert(q.prepare(Net())), "the input of block.proj (Linear) has seen no data"),
    "no batch": (lambda: q.convert(q.calibrate(q.prepare(Net()), [])), "the input of block.proj (Linear) has seen no"),
    "empty": (
        lambda: q.convert(q.calibrate(q.prepare(Net()), [X[:0]])),
        "the input of block.proj (Linear) has seen no",
    ),
    "untrained": (lambda: q.convert(q.prepare_qat(Net())), "the input of block.proj (Linear) has seen no data"),
    "nothing to report": (lambda: q.report(Net(), []), "report: there is no data"),
    "no batches": (lambda: q.calibrate(q.prepare(Net()), 3), "data of type int"),  # type: ignore[arg-type]
    "empty batch": (lambda: q.calibrate(q.prepare(Net()), [X, ()]), "a batch that begins with tuple"),
    "array": (
        lambda: q.prepare(Net())(X.numpy()),
        "the input of block.proj (Linear) is a tensor, not ndarray",
    ),
    "labels": (lambda: q.report(Net(), [(X, mt.zeros(7))]), "report: labels of type float32, shape [7], and scores"),
    "not prepared": (lambda: q.calibrate(Net(), [X]), "calibrate: Net has no layer with an observer"),
    "never prepared": (lambda: q.convert(Net()), "Net has no prepared layer to convert"),
    "converted twice": (lambda: q.convert(q.convert(ready())), "Net has no prepared layer to convert"),
    "prepared twice": (lambda: q.prepare(ready()), "Net is prepared already: block.proj has an observer"),
    "prepared, dynamic": (lambda: q.quantize_dynamic(ready()), "Net is prepared already: block.proj has an observer"),
    "prepared, 4 bits": (
        lambda: q.quantize_weights_(ready(), 4),
        "Net is prepared already: block.proj has an observer",
    ),
    "no layer": (lambda: q.quantize_weights_(nn.ReLU()), "ReLU has no layer to quantise"),
    "other name": (lambda: q.prepare(Net(), leave_in_float="blok"), "there is no module 'blok' in Net"),
    "scale 0": (
        lambda: q.fake_quantize_per_tensor_affine(X, 0.0, 0, 0, 255),
        "fake_quantize_per_tensor_affine: a scale of 0",
    ),
    "scale of a channel": (
        lambda: q.quantize_per_channel(X, mt.tensor([1.0, 0, 1, 1]), mt.zeros(4), 1, mt.int8),
        "quantize_per_channel: a scale of 0",
    ),
    "scales": (
        lambda: q.quantize_per_tensor(X, mt.ones(4), 0, mt.int8),
        "quantize_per_tensor: 4 scales and 1 zero points for a whole tensor",
    ),
    "half a zero point": (
        lambda: q.quantize_per_tensor(X, 1.0, 0.5, mt.int8),  # type: ignore[arg-type]
        "quantize_per_tensor: the zero point 0.5 is no integer",
    ),
    "zero point": (
        lambda: q.fake_quantize_per_channel_affine(X, mt.ones(4), mt.tensor([0, 0, 300, 0]), 1, 0, 255),
        "fake_quantize_per_channel_affine: the zero point 300 is not one of the integers from 0 to 255",
    ),
    "range without 0": (
        lambda: q.fake_quantize_per_tensor_affine(X, 1.0, 0, 1, 255),
        "fake_quantize_per_tensor_affine: the integers from 1 to 255 do not contain 0",
    ),
    "16 bits": (
        lambda: q.fake_quantize_per_tensor_affine(X, 1.0, 0, -32768, 32767),
        "fake_quantize_per_tensor_affine: the integers from -32768 to 32767 are not all int8",
    ),
    "type": (lambda: q.quantize_per_tensor(X, 1.0, 0, "int8"), "quantize_per_tensor: numbers are quantised to uint8"),  # type: ignore[arg-type]
    "integers": (lambda: q.quantize_per_tensor(X.int(), 1.0, 0, mt.int8), "quantize: i32[8,4] has no floats"),
    "channels": (
        lambda: q.fake_quantize_per_channel_affine(X, mt.ones(3), mt.zeros(3), 1, 0, 255),
        "fake_quantize: f32[8,4] has 4 channels along axis 1, and there are 3 scales",
    ),
    "no bins": (lambda: q.HistogramObserver(bins=0), "HistogramObserver: bins is a whole number above 0, not 0"),
    "groups": (lambda: q.quantize_weights_(Net(), 4, 3), "the weight of block.proj (Linear): 4 bits in groups of 3"),
    "half a group": (lambda: q.quantize_weights_(Net(), 8, 1.5), "the weight of block.proj (Linear): 8 bits in groups"),  # type: ignore[arg-type]
    "scale of a loss": (
        lambda: mt.amp.GradScaler(init_scale=INF),
        "GradScaler: a scale is positive and finite, not inf",
    ),
}


@pytest.mark.parametrize("label", WRONG)
def test_one_sentence_names_the_layer_and_the_value(label: str) -> None:
    mistake, text = WRONG[label]
    with pytest.raises((mt.errors.MinitorchError, ValueError, TypeError)) as caught:
        mistake()
    found = re.sub(r"^MT\d+: ", "", str(caught.value))
    assert found.startswith(text), found


def test_the_overflow_of_a_loss_scale_is_named() -> None:
    scaler, loss = mt.amp.GradScaler(), mt.tensor([60000.0], dtype=mt.float16)
    with pytest.warns(UserWarning, match="float16 overflow in a loss scale: 60000 times the scale 65536"):
        scaler.scale(loss)


STATES = {
    "scale": ("0.scale is 0, and a scale is a finite number above 0", mt.tensor(0.0)),
    "scale, NaN": ("0.scale is nan, and a scale", mt.tensor(float("nan"))),
    "scale, negative": ("0.scale is -2, and a scale", mt.tensor(-2.0)),
    "weight_scale": ("0.weight_scale is inf, and a scale", mt.tensor([1.0, float("inf"), 0.0])),
    "zero_point": ("0.zero_point is 999, and a zero point of uint8 is from 0 to 255", mt.tensor(999)),
    "zero_point, negative": ("0.zero_point is -1, and", mt.tensor(-1)),
}


@pytest.mark.parametrize("case", STATES)
def test_a_state_with_an_impossible_scale_is_not_loaded(case):
    message, value = STATES[case]
    net = mt.nn.Sequential(mt.nn.Linear(4, 3), mt.nn.ReLU())
    model = q.convert(q.calibrate(q.prepare(net), [mt.randn(8, 4)]))
    before = {name: each.tolist() for name, each in model.state_dict().items()}
    state = {**model.state_dict(), f"0.{case.split(',')[0]}": value}
    with pytest.raises(RuntimeError, match=rf"(?s)does not fit Sequential, and nothing was loaded:.*{message}"):
        model.load_state_dict(state)
    assert {name: each.tolist() for name, each in model.state_dict().items()} == before
    model.load_state_dict({name: mt.tensor(each) for name, each in before.items()})


def test_scales_of_weights_alone_and_of_recurrent_layers_are_looked_at_too():
    weights = q.quantize_weights_(mt.nn.Sequential(mt.nn.Linear(64, 3)), bits=4, group_size=32)
    with pytest.raises(RuntimeError, match=r"0.scale is 0, and"):
        weights.load_state_dict({"0.scale": mt.zeros(3, 2)}, strict=False)
    lstm = q.quantize_dynamic(mt.nn.Sequential(mt.nn.LSTM(3, 4)))
    with pytest.raises(RuntimeError, match=r"0.weight_hh_l0_scale is -1, and"):
        lstm.load_state_dict({"0.weight_hh_l0_scale": mt.tensor(-1.0)}, strict=False)


class Tied(mt.nn.Module):
    """Reads the weight of a layer itself, too, as tied embeddings do."""

    def __init__(self):
        super().__init__()
        self.layer = mt.nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x) @ self.layer.weight + self.layer.bias


def test_a_model_may_read_the_weight_of_a_prepared_layer():
    net, x = Tied(), mt.randn(8, 4)
    assert mt.allclose(q.prepare(net)(x), net(x))
    q.prepare_qat(net)(x).sum().backward()
    with pytest.raises(mt.errors.DTypeError, match=r"MT202: .*f32\[8,4\] and i8\[4,4\]"):
        q.convert(q.calibrate(q.prepare(net), [x]))(x)


def test_normalizations_that_stay_are_named_where_there_is_no_example():
    class Net(mt.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = mt.nn.Conv2d(1, 2, 3), mt.nn.BatchNorm2d(2)

        def forward(self, x):
            return self.norm(self.conv(x))

    for function in (q.prepare, q.prepare_qat):
        with pytest.warns(
            UserWarning, match=r"norm of Net stay in float.*pass prepare(_qat)?\(model, example=x\)"
        ) as found:
            function(Net())
        assert found[0].filename == __file__
    q.prepare(Net(), example=mt.zeros(1, 1, 5, 5))
