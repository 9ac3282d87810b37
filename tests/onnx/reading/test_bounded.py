"""Eager mode within a bound of memory: what does not fit is refused before it is computed."""

from __future__ import annotations

import tracemalloc
from typing import Any, NoReturn

import pytest

import minitorch as mt
from minitorch_onnx.reading.bounded import bounded

x = mt.ones(1 << 10, 1 << 10)  # 4 MB


def refuse(text: str) -> NoReturn:
    raise MemoryError(text)


def test_arrays_are_counted_while_they_live() -> None:
    with bounded(9 << 20, refuse):
        kept = [-x, -x]
        with pytest.raises(MemoryError, match=r"neg gives f32\[1024,1024\], of 4,194,304 bytes; 8,388,608 are taken"):
            mt.neg(x)
        kept.pop()
        kept.append(-x)
    assert len([-x, *kept]) == 3


def test_views_take_nothing_and_copies_of_them_do() -> None:
    with bounded(1 << 20, refuse):
        assert x.t().expand(5, 1 << 10, 1 << 10)[:, ::2].shape == (5, 1 << 9, 1 << 10)
        assert x.reshape(-1).shape == (1 << 20,)
        with pytest.raises(MemoryError, match="reshape"):
            x.t().reshape(-1)


@pytest.mark.parametrize("function", [
    lambda: mt.ones(1 << 40), lambda: mt.arange(1 << 40), lambda: mt.rand(1 << 40), lambda: mt.outer(x[0], x.ravel()),
    lambda: x.reshape(-1, 1) + x.reshape(-1), lambda: mt.cat([x] * 1000), lambda: mt.nn.functional.pad(x, (0, 1 << 30)),
    lambda: -mt.ones(1).expand(1 << 40), lambda: x[mt.zeros(1 << 16, dtype=mt.int64)],
])  # fmt: skip
def test_nothing_is_allocated_for_a_value_that_is_refused(function: Any) -> None:
    tracemalloc.start()
    try:
        with bounded(8 << 20, refuse), pytest.raises(MemoryError, match="all that there is"):
            function()
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_observers_see_every_value() -> None:
    with bounded(1 << 30, refuse), pytest.raises(mt.errors.NonFiniteError), mt.debug.check_nan():
        mt.zeros(2).log()
    with mt.profile() as profile, bounded(1 << 30, refuse):
        (x + 1).sum()
    assert {row.name for row in profile.rows()} >= {"add", "reduce_sum"}
