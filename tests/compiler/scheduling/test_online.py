"""Rows longer than the cache: a maximum and its exponentials in one pass, with the numbers of two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.compiler.codegen.host import host
from minitorch.compiler.loop_ir.source import compiled
from minitorch.compiler.scheduling.nests import build as nests
from minitorch.compiler.scheduling.schedules import choice as schedules
from minitorch.compiler.scheduling.schedules import online

FUNCTIONS = {
    "softmax": lambda x, dim: x.softmax(dim),
    "log_softmax": lambda x, dim: x.log_softmax(dim),
    "logsumexp": lambda x, dim: x.logsumexp(dim),
    "two sums": lambda x, dim: (
        (x * 0.5 - x.amax(dim, keepdim=True)).exp().sum(dim) + (x - x.amax(dim, keepdim=True)).exp().sum(dim)
    ),
}


@pytest.fixture
def long_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every row counts as long: no cache, no scratch rows, small blocks."""
    monkeypatch.setattr(online, "CACHED", 1 << 40)
    monkeypatch.setattr(online, "BLOCK", 1 << 9)
    monkeypatch.setattr(nests, "MOST_SCRATCH", 0)
    schedules.schedule_of.cache_clear()
    yield
    schedules.schedule_of.cache_clear()


def pairs_in(function: Any, x: mt.Tensor) -> int:
    """How many pairs of loops of a function are run together."""
    (kernel,) = mt.jit(function).ledger(x).kernels
    return sum(step.name == "online" for step in kernel.schedule)


def special(rows: int, columns: int, dtype: mt.DType) -> mt.Tensor:
    """Ordinary rows, growing ones, and such with infinities and NaN in different places."""
    random = np.random.default_rng(columns)
    x = random.normal(size=(rows, columns)) * 5
    x[0] = np.arange(columns) * 0.25
    x[1] = -np.inf
    x[2, : columns // 2] = -np.inf
    x[3, columns // 2 :] = -np.inf
    x[4, columns // 3] = np.inf
    x[5, -1] = np.nan
    x[6, 0] = 3e38 if dtype is mt.float32 else 1e308
    return mt.tensor(x).to(dtype)


@pytest.mark.usefixtures("long_rows")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(7, 40), (16, 1), (8, 129), (33, 700), (70, 300), (300, 70)])
@pytest.mark.parametrize("dtype", [mt.float32, mt.float64])
def test_the_same_numbers(name: str, dim: int, shape: tuple[int, int], dtype: mt.DType) -> None:
    x = special(*shape, dtype)
    x = x if dim == 1 else x.T.contiguous()

    def function(x: mt.Tensor) -> Any:
        return FUNCTIONS[name](x, dim)

    atol = 0.0 if name == "softmax" else 1e-6 if dtype is mt.float32 else 1e-14  # logarithms of sums near 1
    expected, found = function(x).numpy(), mt.jit(function)(x).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-5 if dtype is mt.float32 else 1e-11, atol=atol)


@pytest.mark.usefixtures("long_rows")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_long_rows_take_one_pass(name: str) -> None:
    x = mt.rand(40, 900)
    assert pairs_in(lambda x: FUNCTIONS[name](x, 1), x) == 1
    assert pairs_in(lambda x: FUNCTIONS[name](x, 0), x) == 1


@pytest.mark.usefixtures("long_rows")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(9, 300), (300, 40)])
def test_every_step_computes_the_eager_result(name: str, shape: tuple[int, int]) -> None:
    """Its machine code does, and so does its Python, in the order of the machine code."""
    x, dim = mt.randn(*shape), int(shape[0] < shape[1])
    expected = FUNCTIONS[name](x, dim).numpy()
    (kernel,) = mt.jit(lambda x: FUNCTIONS[name](x, dim)).ledger(x).kernels
    for step in kernel.steps:
        np.testing.assert_allclose(step(x).numpy(), expected, rtol=1e-5, atol=1e-6, err_msg=str(step))
        out = np.zeros(expected.size, np.float32)
        compiled(step.source)(x.numpy().reshape(-1), out)
        np.testing.assert_allclose(out, expected.reshape(-1), rtol=1e-5, atol=1e-6, err_msg=str(step))


@pytest.mark.usefixtures("long_rows")
def test_what_is_no_softmax_takes_two() -> None:
    x = mt.rand(40, 900)
    assert pairs_in(lambda x: (x * x.amax(1, keepdim=True)).exp().sum(1), x) == 0
    assert pairs_in(lambda x: ((x - x.amax(1, keepdim=True)).exp() * x).sum(1), x) == 0
    assert pairs_in(lambda x: ((x - x.amax(1, keepdim=True)) * 2).exp().sum(1), x) == 0


def test_only_rows_longer_than_the_cache_are_long() -> None:
    long = host().caches[1] // 2
    assert pairs_in(lambda x: x.logsumexp(1), mt.rand(16, long)) == 1
    assert pairs_in(lambda x: x.logsumexp(1), mt.rand(16, 100)) == 0
