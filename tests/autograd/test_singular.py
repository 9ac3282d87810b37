"""Gradients at singular points are PyTorch's, recorded: no constant row, zero or tie poisons a training step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.nn import functional as F
from tests.autograd.singular import ROWS, gradients
from tests.support.records import read

RECORDED = read("gradients")
MODES: dict[str, Callable[..., Any]] = {
    "eager": lambda step: step,
    "interpret": lambda step: mt.jit(step, backend="interpret"),
    "llvm": mt.jit,
}


# Rows where PyTorch's gradient is NaN, from 0/0 or inf/inf, and ours is a number. README.md says so.
NUMBERS = {
    *("hypot", "xlogy", "kl_div", "prod, two infinities"),
    *("max of rows with NaN", "min of rows with NaN"),  # the NaNs share it, as in PyTorch's max()
}


def test_the_record_has_these_rows():
    assert [name for name, _, _ in ROWS] == list(RECORDED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", ROWS, ids=[name for name, _, _ in ROWS])
def test_gradients_at_singular_points_are_those_of_pytorch(row, mode):
    name, function, numbers = row
    found = gradients(mt, F, function, numbers, MODES[mode])
    for ours, theirs in zip(found, RECORDED[name], strict=True):
        ours, theirs = np.array(ours), np.array(theirs)
        known = ~np.isnan(theirs) if name in NUMBERS else ...
        np.testing.assert_allclose(ours[known], theirs[known], rtol=1e-7, atol=1e-15)


def test_departures_from_pytorch_are_of_rows_that_have_them():
    different = {
        name
        for name, function, numbers in ROWS
        for ours, theirs in zip(gradients(mt, F, function, numbers), RECORDED[name], strict=True)
        if (np.isnan(theirs) & ~np.isnan(ours)).any()
    }
    assert different == NUMBERS


@pytest.mark.parametrize("mode", MODES)
def test_one_constant_row_does_not_poison_a_step(mode):
    """Rows divided by their deviations, one of them constant, as in a hand-written normalization."""
    x = mt.tensor([[1.0, 2.0, 4.0], [5.0, 5.0, 5.0]])
    weight = mt.tensor([1.0, 1.0, 1.0], requires_grad=True)

    def step(x, weight):
        scaled = x * weight
        loss = (scaled / (scaled.std(dim=1, keepdim=True) + 1e-3)).square().sum()
        return mt.autograd.grad(loss, weight)[0]

    assert MODES[mode](step)(x, weight).isfinite().all()
