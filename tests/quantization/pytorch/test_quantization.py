"""Observers, quantise, dequantise and fake quantise: PyTorch's numbers, in every mode, and errors that name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import quantization as q
from minitorch.compiler.codegen.host import executable_targets, host
from minitorch.errors import QuantizationError
from tests.quantization.pytorch.quantized import OBSERVERS, ROUNDED, batches

RECORD = json.loads((Path(__file__).parents[2] / "recorded" / "quantization.json").read_text(encoding="utf-8"))


def observer_of(label):
    """An observer of the record that has seen its data."""
    kind, options, data = OBSERVERS[label]
    observer = getattr(q, kind)(**{**options, "dtype": getattr(mt, options["dtype"])})
    for batch in batches(data):
        observer(mt.tensor(batch))
    return observer, batches(data)[-1]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("label", OBSERVERS)
def test_scales_zero_points_and_integers_are_pytorchs(label):
    observer, last = observer_of(label)
    known = RECORD["observers"][label]
    scale, zero_point = observer.calculate_qparams()
    assert scale.reshape(-1).tolist() == known["scale"]
    assert zero_point.reshape(-1).tolist() == known["zero_point"]
    if known["integers"] is None or "quant_min" in OBSERVERS[label][1]:
        return
    made = q.quantize(mt.tensor(last), observer.qparams()).numpy().astype(int)
    units = last / np.asarray(known["scale"]).reshape(-1, 1)
    is_tie = np.abs(np.abs(units - np.trunc(units)) - 0.5) < 1e-4
    apart = np.abs(made - np.asarray(known["integers"]))
    assert apart[~is_tie].max(initial=0) == 0
    assert apart.max() <= 1


def rounded(label, x):
    _, scale, zero_point, low, high, axis = ROUNDED[label]
    if axis is None:
        return q.fake_quantize_per_tensor_affine(x, scale, zero_point, low, high)
    return q.fake_quantize_per_channel_affine(x, mt.tensor(scale), mt.tensor(zero_point), axis, low, high)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("label", ROUNDED)
def test_fake_quantisation_and_its_gradient_are_pytorchs(label, jitted):
    known = RECORD["fakes"][label]
    x = mt.tensor(ROUNDED[label][0], requires_grad=True)
    weight = mt.arange(1.0, x.numel() + 1).reshape(x.shape)

    def step(x):
        y = rounded(label, x)
        (gradient,) = mt.autograd.grad((y * weight).sum(), [x])
        return y.detach(), gradient

    y, gradient = (mt.jit(step) if jitted else step)(x)
    assert y.tolist() == known["value"]
    assert gradient.tolist() == known["gradient"]


def in_session(function, x):
    with mt.Graph() as graph:
        fed = mt.placeholder(x.shape, mt.float32, name="x")
        result = function(fed)
    return mt.Session(graph).run(result, {"x": x})


def deferred(function, x):
    with mt.lazy():
        return function(x).clone()


MODES = {
    "jit": lambda function, x: mt.jit(function)(x),
    "interpret": lambda function, x: mt.jit(function, backend="interpret")(x),
    "lazy": deferred,
    "session": in_session,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [mt.uint8, mt.int8])
def test_every_mode_has_the_same_bits(mode, dtype):
    """Of random numbers, ties, numbers far outside, infinities and NaN."""
    mt.manual_seed(3)
    special = [0.5, 1.5, -0.5, 1e9, -1e9, 3e38, float("inf"), float("-inf"), 0.0, float("nan")]
    x = mt.cat([mt.randn(4, 90) * 60, mt.tensor([special] * 4)], 1)
    scales, zeros = mt.tensor([1.0, 0.37, 0.01, 5.0]), mt.tensor([0, 7, 100, 3])
    given = q.QParams(scales, zeros.int(), dtype, *((0, 255) if dtype is mt.uint8 else (-128, 127)), 0)

    for function in (lambda x: q.quantize(x, given), lambda x: q.dequantize(q.quantize(x, given), given)):
        np.testing.assert_array_equal(np.asarray(MODES[mode](function, x)), function(x).numpy())
    fake, real = q.fake_quantize(x, given), q.dequantize(q.quantize(x, given), given)
    np.testing.assert_array_equal(fake.numpy(), real.numpy())


HOSTILE = [float("nan"), float("inf"), float("-inf"), 3e38, -3e38, -0.0]


@pytest.mark.parametrize(
    ("dtype", "zero", "low", "high"), [(mt.uint8, 10, 0, 255), (mt.int8, 0, -128, 127), (mt.int8, -3, -8, 7)]
)
def test_nan_becomes_the_largest_integer_and_infinities_are_clamped(dtype, zero, low, high):
    """In every function that quantises, in every mode, and by the code of every target; whole vectors and the rest."""
    for length in (1, 6, 70):
        x = mt.tensor((HOSTILE * 12)[:length])
        expected = ([high, high, low, high, low, zero] * 12)[:length]
        numbers = [(each - zero) * 0.5 for each in expected]
        scales, zeros = mt.full((length,), 0.5), mt.full((length,), zero, dtype=mt.int32)
        cases: dict[str, tuple[Any, list[Any]]] = {
            "tensor": (lambda x: q.quantize_per_tensor(x, 0.5, zero, dtype, low, high), expected),
            "channel": (lambda x, s, z: q.quantize_per_channel(x, s, z, 0, dtype, low, high), expected),
            "fake": (lambda x: q.fake_quantize_per_tensor_affine(x, 0.5, zero, low, high), numbers),
            "fake channel": (lambda x, s, z: q.fake_quantize_per_channel_affine(x, s, z, 0, low, high), numbers),
        }
        for label, (function, wanted) in cases.items():
            given = (x, scales, zeros) if "channel" in label else (x,)
            for run in (function, mt.jit(function), mt.jit(function, backend="interpret")):
                assert run(*given).tolist() == wanted, label
            for target in executable_targets() if len(given) == 1 else ():
                named = host() if target == "native" else target
                (kernel,) = mt.jit(function).ledger(x).for_target(named).kernels
                assert kernel.steps[-1](x.numpy()).tolist() == wanted, f"{label} {target}"


def test_fake_quantisation_has_no_gradient_at_nan():
    x = mt.tensor(HOSTILE, requires_grad=True)
    q.fake_quantize_per_tensor_affine(x, 0.5, 0, 0, 255).sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 0, 0, 1]


def test_a_maximum_that_is_nan_is_quantised_alike_before_and_after():
    x = mt.tensor([[float("nan"), 1.0, -4.0, 2.0], [float("inf"), float("nan"), float("-inf"), 0.5]])

    def pooled(x):
        return q.quantize_per_tensor(mt.nn.functional.max_pool1d(x[:, None], 2), 0.1, 10, mt.uint8)

    expected = [[[255, 30]], [[255, 15]]]
    assert pooled(x).tolist() == mt.jit(pooled)(x).tolist() == expected


def test_an_observer_in_a_compiled_step_is_the_one_in_eager_mode():
    data = [mt.tensor(batch) for batch in batches("widening")]
    for make in (q.MinMaxObserver, q.MovingAverageMinMaxObserver):
        eager, traced = make(), make()

        @mt.jit
        def step(x, traced=traced):
            return q.fake_quantize(traced(x), traced.qparams())

        for x in data:
            expected = q.fake_quantize(eager(x), eager.qparams())
            np.testing.assert_array_equal(step(x).numpy(), expected.numpy())
        assert len(step.explain().signatures) == 1
        assert eager.min_val.item() == traced.min_val.item()


def test_the_percentile_is_that_of_the_data():
    mt.manual_seed(0)
    data = [mt.randn(10_000) * scale for scale in (1, 3)]
    observer = q.PercentileObserver(percentile=98)
    for x in data:
        observer(x)
    low, high = (bound.item() for bound in observer.bounds())
    width = (observer.max_val.item() - observer.min_val.item()) / observer.bins
    every = np.concatenate([x.numpy() for x in data])
    assert abs(low - np.percentile(every, 1)) < 2 * width
    assert abs(high - np.percentile(every, 99)) < 2 * width


def test_the_histogram_observer_has_less_error_than_the_extremes():
    """Of 4 bits, where an outlier costs most."""
    x = mt.tensor(batches("outlier")[0])
    narrow, wide = q.HistogramObserver(), q.MinMaxObserver()
    narrow(x), wide(x)
    errors = [(q.fake_quantize(x, each.qparams()) - x).square().sum().item() for each in (narrow, wide)]
    assert errors[0] <= errors[1]


NAN, INF = float("nan"), float("inf")
WRONG = {
    "NaN": (lambda: q.MinMaxObserver()(mt.tensor([1.0, NAN])), "MT701", "MinMaxObserver: a NaN in f32[2]"),
    "infinity": (
        lambda: q.HistogramObserver()(mt.tensor([1.0, -INF])),
        "MT701",
        "HistogramObserver: an infinity (-inf) in f32[2]",
    ),
    "too wide": (
        lambda: q.HistogramObserver()(mt.tensor([3e38, -3e38])),
        "MT701",
        "HistogramObserver: the range from -3e+38 to 3e+38 is wider than float32 holds",
    ),
    "too wide, in two": (
        lambda: [[each(mt.tensor(x)), each.qparams()] for each in [q.MinMaxObserver()] for x in (3e38, -3e38)],
        "MT701",
        "MinMaxObserver: the range from -3e+38 to 3e+38",
    ),
    "no data": (lambda: q.MinMaxObserver().qparams(), "MT701", "MinMaxObserver has seen no data"),
    "no histogram": (lambda: q.PercentileObserver().qparams(), "MT701", "PercentileObserver has seen no data"),
    "scale 0": (lambda: q.quantize_per_tensor(mt.ones(2), 0.0, 0, mt.int8), "MT702", "a scale of 0"),
    "scale NaN": (lambda: q.quantize_per_tensor(mt.ones(2), NAN, 0, mt.int8), "MT702", "a scale of nan"),
    "zero point": (lambda: q.quantize_per_tensor(mt.ones(2), 1.0, 300, mt.uint8), "MT702", "zero point 300"),
    "range without 0": (lambda: q.MinMaxObserver(quant_min=1, quant_max=9), "MT702", "from 1 to 9 do not contain 0"),
    "range too large": (lambda: q.MinMaxObserver(quant_min=0, quant_max=256), "MT702", "are not all uint8"),
    "type": (lambda: q.MinMaxObserver(dtype=mt.int32), "MT702", "not to int32"),
    "scheme": (lambda: q.MinMaxObserver(qscheme="per_channel_affine"), "MT702", "the scheme 'per_channel_affine'"),
    "channels": (
        lambda: q.quantize_per_channel(mt.ones(2, 3), mt.ones(3), mt.zeros(3), 0, mt.int8),
        "MT702",
        "f32[2,3] has 2 channels along axis 0, and there are 3 scales",
    ),
    "other channels": (
        lambda: [each(mt.ones(n, 2)) for each in [q.PerChannelMinMaxObserver()] for n in (2, 3)],
        "MT702",
        "3 channels along axis 0, after 2",
    ),
}


@pytest.mark.parametrize("label", WRONG)
def test_errors_name_the_value(label):
    mistake, code, text = WRONG[label]
    with pytest.raises(QuantizationError) as caught:
        mistake()
    assert caught.value.code == code
    assert text in str(caught.value)
