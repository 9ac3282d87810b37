"""Whole models: batch normalization folded, static, dynamic and weight-only quantisation, training for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import quantization as q
from minitorch.errors import QuantizationError
from tests.quantization.pytorch.quantized import linear_inputs, network, pictures

RECORDS = json.loads((Path(__file__).parents[1] / "recorded" / "quantization.json").read_text(encoding="utf-8"))
RECORD, DYNAMIC = RECORDS["network"], RECORDS["dynamic"]
nn = mt.nn


def cnn() -> Any:
    """The network of the record."""
    first = [nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 8, 3, stride=2, padding=1)]
    model = nn.Sequential(*first, nn.ReLU(), nn.Flatten(), nn.Linear(128, 10))
    model.load_state_dict({name: mt.tensor(value) for name, value in network().items()}, strict=False)
    return model.eval()


class Residual(nn.Module):
    """Two pairs to fold, one normalization that shares its input with somebody else, and one of training alone."""

    def __init__(self):
        super().__init__()
        self.a, self.norm_a = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.b, self.norm_b = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4, affine=False)
        self.c, self.norm_c = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)
        for norm in (self.norm_a, self.norm_b, self.norm_c):
            norm.running_mean.copy_(mt.randn(4))
            norm.running_var.copy_(mt.rand(4) + 0.5)

    def forward(self, x):
        x = self.norm_a(self.a(x)).relu()
        y = self.norm_b(self.b(x)) + x
        z = self.c(y)
        return self.head((self.norm_c(z) * z.sigmoid()).mean((2, 3)))


def decibels(found, expected):
    """The signal-to-noise ratio."""
    noise = (found - expected).square().mean().item()
    return 10 * np.log10(expected.square().mean().item() / max(noise, 1e-30))


def prepared_by(model, qconfig=q.default_qconfig, **options) -> Any:
    data = [mt.tensor(batch) for batch in pictures()]
    return q.calibrate(q.prepare(model, qconfig, data[0], **options), data)


def test_folded_weights_are_pytorchs_to_two_units_in_the_last_place():
    model = cnn()
    for found, known in zip(q.fuse_conv_bn_weights(model[0], model[1]), RECORD["folded"].values(), strict=True):
        np.testing.assert_array_max_ulp(found.detach().numpy(), np.asarray(known, np.float32), maxulp=2)


def test_static_quantisation_is_pytorchs():
    """Scales, zero points and integers of every layer; results at most one step apart."""
    weight = q.PerChannelMinMaxObserver.with_args(dtype=mt.int8, qscheme="per_channel_symmetric")
    model: Any = q.convert(prepared_by(cnn(), q.QConfig(q.MinMaxObserver.with_args(reduce_range=True), weight)))
    for name, known in RECORD["layers"].items():
        layer: Any = model.get_submodule(name)
        assert layer.scale.item() == pytest.approx(known["scale"], rel=1e-6)
        assert layer.zero_point.item() == known["zero_point"]
        np.testing.assert_array_max_ulp(
            layer.weight_scale.numpy(), np.asarray(known["weight_scale"], np.float32), maxulp=4
        )
        apart = np.abs(layer.weight.numpy().astype(int) - np.asarray(known["weight"]))
        assert apart.max() <= 1 and np.count_nonzero(apart) <= 0.01 * apart.size
    out = model(mt.tensor(pictures()[0]))
    integers = q.quantize_per_tensor(out, RECORD["scale"], RECORD["zero_point"], mt.uint8).numpy().astype(int)
    apart = np.abs(integers - np.asarray(RECORD["integers"]))
    assert apart.max() <= 1


def test_the_integers_between_layers_are_pytorchs():
    """The output of each layer by the scale of the next one's input, which PyTorch calls the output's."""
    weight = q.PerChannelMinMaxObserver.with_args(dtype=mt.int8, qscheme="per_channel_symmetric")
    model: Any = q.convert(prepared_by(cnn(), q.QConfig(q.MinMaxObserver.with_args(reduce_range=True), weight)))
    ends = {"2": ("0", model.get_submodule("3")), "4": ("3", model.get_submodule("6"))}
    value: Any = mt.tensor(pictures()[0])
    for at, layer in model.named_children():
        value = layer(value)
        if at in ends:
            name, after = ends[at]
            found = q.quantize_per_tensor(value, after.scale.item(), after.zero_point.item(), mt.uint8)
            known = np.asarray(RECORD["layers"][name]["integers"])
            apart = np.abs(found.numpy().astype(int) - known)
            assert apart.max() <= 1 and np.count_nonzero(apart) <= 0.01 * apart.size, name


@pytest.mark.parametrize("mode", ["eager", "jit", "frozen"])
def test_dynamic_quantisation_is_pytorchs(mode):
    """Weights, and of each input scale, zero point, integers (a step apart at most) and what comes out."""
    layer = nn.Linear(128, 10)
    layer.load_state_dict({name: mt.tensor(network()[f"6.{name}"]) for name in ("weight", "bias")})
    made: Any = q.quantize_dynamic(layer)
    np.testing.assert_array_max_ulp(made.weight_scale.numpy(), np.asarray(DYNAMIC["scale"], np.float32), maxulp=4)
    np.testing.assert_array_equal(made.weight.numpy(), np.asarray(DYNAMIC["weight"]))
    called: Any = {"eager": made, "jit": mt.jit(made), "frozen": mt.freeze(made, mt.ones(4, 128))}[mode]
    for rows, known in zip(linear_inputs(), DYNAMIC["batches"], strict=True):
        x = mt.tensor(rows)
        given = made.quantized(x)
        assert given.scale.item() == pytest.approx(known["scale"], rel=1e-6)
        assert given.zero_point.item() == known["zero_point"]
        apart = np.abs(q.quantize(x, given).numpy().astype(int) - np.asarray(known["integers"]))
        assert apart.max() <= 1 and np.count_nonzero(apart) <= 0.01 * apart.size
        step = np.abs(np.asarray(DYNAMIC["weight"])).max() * max(DYNAMIC["scale"]) * known["scale"]
        allowed = step * np.count_nonzero(apart) + 1e-5 * np.abs(known["result"]).max()
        assert np.abs(called(x).detach().numpy() - np.asarray(known["result"])).max() <= allowed


def test_pairs_are_found_by_the_data_between_them():
    mt.manual_seed(1)
    model, x = Residual().eval(), mt.tensor(pictures()[0])
    folded: Any = q.fuse(model, x)
    kinds = [type(module) for module in (folded.norm_a, folded.norm_b, folded.norm_c)]
    assert kinds == [nn.Identity, nn.Identity, nn.BatchNorm2d]
    assert mt.allclose(folded(x), model(x), atol=1e-4)
    assert isinstance(model.norm_a, nn.BatchNorm2d)


@pytest.mark.parametrize("make", [cnn, Residual])
def test_a_quantised_model_is_near_the_float_model_in_every_mode(make):
    mt.manual_seed(2)
    model, x = make().eval(), mt.tensor(pictures()[0])
    quantized = q.convert(prepared_by(model))
    expected = quantized(x)
    assert decibels(expected, model(x)) > 25
    with mt.Graph() as graph:
        fed = mt.placeholder(x.shape, mt.float32, name="x")
        fetched = quantized(fed)
    with mt.lazy():
        deferred = quantized(x).clone()
    for found in (mt.jit(quantized)(x), mt.Session(graph).run(fetched, {"x": x}), deferred):
        assert decibels(mt.tensor(np.asarray(found)), expected) > 60


def test_weights_are_integers_and_the_state_can_be_saved():
    quantized = q.convert(prepared_by(cnn()))
    state = quantized.state_dict()
    assert {name: value.dtype for name, value in state.items() if name.endswith(".weight")} == dict.fromkeys(
        ["0.weight", "3.weight", "6.weight"], mt.int8
    )
    other = q.convert(prepared_by(cnn(), q.QConfig(q.MinMaxObserver, q.default_qconfig.weight)))
    other.load_state_dict(state)
    x = mt.tensor(pictures()[1])
    assert (other(x) == quantized(x)).all().item()


def test_layers_can_stay_in_float():
    quantized: Any = q.convert(prepared_by(cnn(), leave_in_float=["6"]))
    assert [type(quantized[at]).__name__ for at in (0, 3, 6)] == ["Quantized", "Quantized", "Linear"]


def test_a_layer_used_twice_is_one_layer():
    shared = nn.Linear(4, 4)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    made: Any = q.convert(q.calibrate(q.prepare(model), [mt.randn(8, 4)]))
    assert made[0] is made[2]


def test_dynamic_quantisation_follows_each_input():
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))
    made = q.quantize_dynamic(model)
    for size in (0.01, 1.0, 100.0):
        x = mt.randn(32, 16) * size
        assert decibels(made(x), model(x)) > 30
        assert decibels(mt.jit(made)(x), made(x)) > 60
    assert made(mt.zeros(0, 16)).shape == (0, 4)
    single: Any = q.quantize_dynamic(nn.Linear(3, 2))
    assert single.weight.dtype is mt.int8


@pytest.mark.parametrize(("bits", "group"), [(8, None), (8, 32), (4, 32), (4, None)])
def test_weights_alone_in_few_bits(bits, group):
    mt.manual_seed(4)
    model, x = cnn(), mt.tensor(pictures()[0])
    expected = model(x)
    made = q.quantize_weights_(model, bits, group)
    assert made is model and decibels(made(x), expected) > {8: 30, 4: 10}[bits]
    assert decibels(mt.jit(made)(x), made(x)) > 60
    layers = {name: made.get_submodule(name) for name in "036"}
    for name, layer in layers.items():
        apart = np.abs(layer.dequantized().numpy() - network()[f"{name}.weight"])
        assert apart.max() <= layer.scale.max().item() * 0.5001
    stored = sum(layer.weight.nbytes for layer in layers.values())
    assert stored <= {8: 1.2, 4: 0.6}[bits] * sum(network()[f"{name}.weight"].size for name in layers)


def test_a_linear_layer_of_4_bits_is_that_of_the_dequantised_weight():
    mt.manual_seed(8)
    for shape in ((64,), (1, 64), (2, 3, 64), (0, 64)):
        x = mt.randn(*shape)
        layer: Any = q.quantize_weights_(nn.Linear(64, 5), bits=4, group_size=16)
        expected = nn.functional.linear(x, layer.dequantized(), layer.bias)
        for found in (layer(x), mt.jit(layer)(x)):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-5)


def test_training_for_quantisation_is_one_graph():
    """With 4 bits for weights: the loss falls, and the converted model is the one that was trained."""
    mt.manual_seed(5)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    x = mt.randn(256, 16)
    target = nn.Linear(16, 4)(x).detach()
    row = q.MovingAveragePerChannelMinMaxObserver
    coarse = q.FakeQuantize.with_args(
        observer=row, dtype=mt.int8, qscheme="per_channel_symmetric", quant_min=-8, quant_max=7
    )
    prepared = q.prepare_qat(model, q.QConfig(q.default_qat_qconfig.activation, coarse))
    optimizer = mt.optim.Adam(prepared.parameters(), lr=5e-3)

    def step(x, target):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(prepared(x), target)
        loss.backward()
        optimizer.step()
        return loss

    compiled = mt.jit(step)
    first = compiled(x, target).item()
    for _ in range(100):
        last = compiled(x, target).item()
    assert last < first / 5
    assert len(compiled.explain().signatures) == 1
    prepared.apply(q.disable_observer)
    assert decibels(q.convert(prepared)(x), prepared(x)) > 60


def broken():
    model = cnn()
    model[3].weight.detach()[0, 0, 0, 0] = float("inf")
    return model


WRONG = {
    "no data": (lambda: q.convert(q.prepare(cnn())), "MT701", "the input of 0 (Conv2d) has seen no data"),
    "NaN": (
        lambda: q.calibrate(q.prepare(cnn()), [mt.full((1, 3, 8, 8), float("nan"))]),
        "MT701",
        "the input of 0 (Conv2d): a NaN",
    ),
    "infinite weight": (lambda: q.prepare(broken()), "MT701", "the weight of 3 (Conv2d): an infinity (inf)"),
    "infinite weight alone": (
        lambda: q.quantize_weights_(broken(), 4),
        "MT701",
        "the weight of 3 (Conv2d): an infinity (inf)",
    ),
    "unknown name": (lambda: q.prepare(cnn(), leave_in_float=["conv"]), "MT702", "no module 'conv' in Sequential"),
    "nothing to do": (lambda: q.prepare(nn.ReLU()), "MT702", "ReLU has no layer to quantise"),
    "affine weight": (
        lambda: q.prepare(cnn(), q.QConfig(q.MinMaxObserver, q.MinMaxObserver)),
        "MT702",
        "the weight of 0 (Conv2d): an observer of uint8, per_tensor_affine",
    ),
    "input per channel": (
        lambda: q.prepare(cnn(), q.QConfig(q.PerChannelMinMaxObserver, q.default_qconfig.weight)),
        "MT702",
        "the input of 0 (Conv2d): an observer of scales along axis 0",
    ),
    "3 bits": (lambda: q.quantize_weights_(cnn(), 3), "MT702", "the weight of 0 (Conv2d): 3 bits"),
    "odd group": (lambda: q.quantize_weights_(cnn(), 4, 7), "MT702", "4 bits in groups of 7"),
    "training": (lambda: q.fuse_modules(cnn().train(), [["0", "1"]]), "MT702", "'0' and '1' cannot be folded"),
    "channels": (
        lambda: q.fuse_modules(nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(3)).eval(), [["0", "1"]]),
        "MT702",
        "'0' and '1' cannot be folded\n  why: 2 channels are made, and 3 normalized",
    ),
}


@pytest.mark.parametrize("label", WRONG)
def test_errors_name_the_layer(label):
    mistake, code, text = WRONG[label]
    with pytest.raises(QuantizationError) as caught:
        mistake()
    assert caught.value.code == code
    assert text in str(caught.value)
