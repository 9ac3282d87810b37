"""Attention and normalizations in 16 bits: they compute in float32, and round once, as PyTorch does."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.nn.functional import attention, normalization
from tests.nn import roundings
from tests.support.records import read

UNIT = {"bfloat16": 2.0**-7, "float16": 2.0**-10}  # the distance from 1 to the next number


def off(name: str, case: str) -> tuple[float, float]:
    """The share of elements that are not PyTorch's, and the largest distance, in units of the last place at most."""
    expected = np.array(read("roundings")[name][case])
    found = np.array(roundings.value(mt, F, name, case))
    distance = np.abs(found - expected)
    unit = UNIT[roundings.TYPES[case][0]] * np.maximum(np.abs(expected), 2.0**-6)  # of terms near 1, which cancel
    return float((distance > 0).mean()), float((distance / unit).max())


@pytest.mark.parametrize("case", roundings.TYPES)
@pytest.mark.parametrize("name", roundings.CALLS)
def test_numbers_are_those_of_pytorch(name: str, case: str) -> None:
    """But for the order of sums in float32, which turns a rounding now and then."""
    share, distance = off(name, case)
    assert share <= 0.025 and distance <= 1


def beyond(found: list[float], name: str, case: str) -> int:
    """How many numbers are farther from the exact ones than a rounding, and 64 of float32 of numbers up to 8."""
    right = np.array(roundings.exact(mt, F, name, case))
    lower = roundings.TYPES[case][0]
    with np.errstate(divide="ignore"):
        unit = UNIT[lower] * 2.0 ** np.floor(np.log2(np.abs(right)))
    return int((np.abs(np.array(found) - right) > unit / 2 + 64 * 2.0**-24 * 8).sum())


@pytest.mark.parametrize("case", roundings.TYPES)
@pytest.mark.parametrize("name", roundings.ALL)
def test_each_number_is_the_exact_one_rounded_once(name: str, case: str) -> None:
    """In PyTorch, too, but where it rounds exponentials or statistics to the type, as well."""
    assert not beyond(roundings.value(mt, F, name, case), name, case)
    lower, weights = roundings.TYPES[case]
    recorded = beyond(read("roundings")[name][case], name, case)
    rounds_twice = name in roundings.ROUNDED_TWICE and (weights == lower or name.startswith("attention"))
    assert (recorded > 0) == rounds_twice


@pytest.mark.parametrize("where", ["attention", "layer_norm"])
def test_a_second_rounding_is_seen(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: operands that are not widened, so that every step rounds."""
    monkeypatch.setattr(attention if where == "attention" else normalization, "widen", lambda x: x)
    assert off(where, "bfloat16, weights in bfloat16")[0] > 0.1


@pytest.mark.parametrize("name", roundings.CALLS)
def test_every_mode_rounds_alike(name: str) -> None:
    case = "bfloat16, weights in float32"
    lower, weights = roundings.TYPES[case]

    def call() -> mt.Tensor:
        return roundings.CALLS[name](mt, F, lambda *shape, by: roundings.wave(mt, *shape, by=by, dtype=lower), weights)

    expected = np.array(roundings.value(mt, F, name, case)).ravel()
    interpreted = mt.jit(call, backend="interpret")().float().numpy().ravel()
    np.testing.assert_array_equal(interpreted, expected)
    compiled = mt.jit(call)().float().numpy().ravel()
    np.testing.assert_allclose(compiled, expected, rtol=UNIT[lower], atol=UNIT[lower] * 2.0**-7)
