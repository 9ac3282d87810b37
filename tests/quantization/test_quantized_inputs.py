"""Inputs of quantised layers: types, shapes, autocast around them, zero points that are not known; one rule for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import quantization as q
from minitorch.errors import DTypeError, ShapeError
from minitorch_quantization.passes import integer_products

nn = mt.nn

LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "Linear": (lambda: nn.Linear(6, 4), (5, 6)),
    "Linear, odd": (lambda: nn.Linear(7, 3, bias=False), (2, 3, 7)),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=1, groups=2), (2, 4, 9)),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3, stride=2), (2, 3, 8, 8)),
}


def statically(model: nn.Module, x: mt.Tensor) -> nn.Module:
    return q.convert(q.calibrate(q.prepare(model), [x]))


KINDS: dict[str, Callable[[nn.Module, mt.Tensor], nn.Module]] = {
    "static": statically,
    "dynamic": lambda model, x: q.quantize_dynamic(model, (nn.Linear, nn.Conv1d, nn.Conv2d)),
    "8 bits": lambda model, x: q.quantize_weights_(model, 8),
    "4 bits": lambda model, x: q.quantize_weights_(model, 4),
    "4 bits in groups": lambda model, x: q.quantize_weights_(model, 4, 2),
}


def made(kind: str, label: str) -> tuple[nn.Module, mt.Tensor]:
    """A quantised model of one layer, and an input."""
    mt.manual_seed(1)
    make, shape = LAYERS[label]
    x = mt.randn(*shape)
    return KINDS[kind](nn.Sequential(make()), x), x


@pytest.mark.parametrize("label", LAYERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_result_has_the_type_of_the_input_and_is_computed_in_float32(kind: str, label: str) -> None:
    """Also of an empty batch, and compiled."""
    model, x = made(kind, label)
    for dtype in (mt.float16, mt.bfloat16, mt.float32, mt.float64):
        given = x.to(dtype)
        found = model(given)
        assert found.dtype is dtype
        assert (found == model(given.to(mt.float32)).to(dtype)).all().item()
        assert model(given[:0]).dtype is dtype
        assert model(given[:0]).shape == (0, *found.shape[1:])
    assert mt.jit(model)(x.to(mt.bfloat16)).dtype is mt.bfloat16


@pytest.mark.parametrize("kind", KINDS)
def test_autocast_around_a_quantised_model_changes_nothing(kind: str) -> None:
    for label in ("Linear, odd", "Conv2d"):
        model, x = made(kind, label)
        frozen = mt.freeze(model, x)
        for run in (model, mt.jit(model), frozen):
            expected = run(x)
            for dtype in (mt.bfloat16, mt.float16):
                with mt.autocast("cpu", dtype):
                    found = run(x)
                    assert mt.is_autocast_enabled()
                assert found.dtype is mt.float32
                np.testing.assert_array_equal(found.numpy(), expected.numpy())


WRONG: dict[str, tuple[str, Callable[[mt.Tensor], mt.Tensor], str]] = {
    "features": ("Linear", lambda x: x[:, :-1], "the input of 0 (Linear) is f32[5,5], and the layer takes [..., 6]"),
    "scalar": ("Linear", lambda x: x.sum(), "the input of 0 (Linear) is f32[], and the layer takes [..., 6]"),
    "odd": ("Linear, odd", lambda x: x[..., :6], "is f32[2,3,6], and the layer takes [..., 7]"),
    "channels, 1d": ("Conv1d", lambda x: x[:, :2], "(Conv1d) is f32[2,2,9], and the layer takes [batch, 4, length]"),
    "channels, 2d": ("Conv2d", lambda x: x[:, :2], "f32[2,2,8,8], and the layer takes [batch, 3, height, width]"),
    "dimensions": ("Conv2d", lambda x: x.flatten(1), "f32[2,192], and the layer takes [batch, 3, height, width]"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("kind", [*KINDS, "prepared", "trained"])
def test_an_input_that_does_not_fit_is_named_with_its_layer(kind: str, case: str) -> None:
    label, wrong, text = WRONG[case]
    make, shape = LAYERS[label]
    models = {
        "prepared": lambda: q.prepare(nn.Sequential(make())),
        "trained": lambda: q.prepare_qat(nn.Sequential(make())),
    }
    model, x = (models[kind](), mt.randn(*shape)) if kind in models else made(kind, label)
    for run in (model, mt.jit(model)):
        with pytest.raises(ShapeError) as caught:
            run(wrong(x))
        assert caught.value.code == "MT201" and text in str(caught.value)
    with pytest.raises(DTypeError, match=r"the input of 0 \(.*\) is i64.*; a quantised layer takes floats"):
        model(x.to(mt.int64))


def test_dynamic_quantisation_of_what_is_not_finite_gives_nan_in_every_mode() -> None:
    model, x = made("dynamic", "Linear")
    for bad in (float("nan"), float("inf"), float("-inf")):
        x[1, 2] = bad
        for run in (model, mt.jit(model), mt.jit(model, backend="interpret"), mt.freeze(model, x)):
            assert run(x).isnan().all().item()


def test_the_ledger_says_why_a_product_stays_one_of_floats() -> None:
    p, w = mt.tensor([[255, 3]], dtype=mt.uint8), mt.tensor([[1], [-5]], dtype=mt.int8)

    def product(p: mt.Tensor, w: mt.Tensor, zero: mt.Tensor) -> Any:
        return (p.to(mt.float32) - zero.to(mt.float32)) @ w.to(mt.float32)

    anything, clamped = mt.jit(product), mt.jit(lambda p, w, zero: product(p, w, zero.clamp(0, 255)))
    for number in (7, -1, 256, 16_000_000, -(2**31)):
        zero = mt.tensor(number, dtype=mt.int32)
        assert anything(p, w, zero).item() == product(p, w, zero).item()
        assert clamped(p, w, zero).item() == product(p, w, zero.clamp(0, 255)).item()
    assert integer_products.UNKNOWN_ZERO in str(anything.ledger(p, w, zero))
    assert "as floats" not in str(clamped.ledger(p, w, zero))
    byte = mt.tensor(7, dtype=mt.uint8)
    assert "as floats" not in str(anything.ledger(p, w, byte))
