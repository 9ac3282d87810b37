"""Loops and branches within vmap: each example has its own number of repetitions, and its own side of a branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import AutogradError
from minitorch.func import grad, vmap
from minitorch.tree import flatten

W = mt.tensor([1.0, 0.5, 2.0])
ROWS = mt.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.1, 0.2, 0.3]])
FUNCTIONS: dict[str, Callable[[mt.Tensor], Any]] = {
    "scan": lambda r: mt.scan(lambda c, x: (c + x * W.sum(), c * x), mt.tensor(0.0), r),
    "while": lambda r: mt.while_loop(lambda v: v.sum() < 30, lambda v: v * 2 + W, r),
    "while with a counter": lambda r: mt.while_loop(
        lambda s: s[0] < r.sum(), lambda s: (s[0] + 1, s[1] * r), (mt.tensor(0), mt.ones(3))
    ),
    "fori": lambda r: mt.fori_loop(0, r.sum().long(), lambda i, v: v + i * r, mt.zeros(3)),
    "cond": lambda r: mt.cond(r.sum() > 7, lambda r: r * 2 * W, lambda r: -r.sin(), r),
    "shared cond": lambda r: mt.cond(W.sum() > 7, lambda r: r * 2 * W, lambda r: -r.sin(), r),
}
MODES: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "jit": mt.jit, "lazy": lambda f: mt.lazy()(f)}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def loss(name: str) -> Callable[[mt.Tensor], mt.Tensor]:
    def total(row: mt.Tensor) -> mt.Tensor:
        parts = [y.square().sum() for y in flatten(FUNCTIONS[name](row))[0] if y.is_floating_point()]
        return sum(parts[1:], parts[0])

    return total


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@every_function
def test_examples_go_their_own_ways(name: str, mode: Any) -> None:
    calls = [flatten(FUNCTIONS[name](row))[0] for row in ROWS]
    for found, *wanted in zip(flatten(mode(vmap(FUNCTIONS[name]))(ROWS))[0], *calls, strict=True):
        np.testing.assert_allclose(found.numpy(), np.stack([each.numpy() for each in wanted]), rtol=1e-5)


@every_function
def test_gradients_are_those_of_the_examples(name: str) -> None:
    one = loss(name)
    wanted = np.stack([grad(one)(row).numpy() for row in ROWS])
    for transform in (vmap(grad(one)), grad(lambda x: vmap(one)(x).sum())):
        np.testing.assert_allclose(transform(ROWS).numpy(), wanted, rtol=1e-4)
        if name.startswith(("while", "fori")):  # of no known length
            with pytest.raises(AutogradError, match="MT405"):
                mt.jit(transform)(ROWS)
        else:
            np.testing.assert_allclose(mt.jit(transform)(ROWS).numpy(), wanted, rtol=1e-4)


def test_a_nested_loop_runs_while_any_example_goes_on() -> None:
    def grown(a: mt.Tensor) -> mt.Tensor:
        return mt.while_loop(lambda v: v < 30, lambda v: v * 2 + 1, a)

    wanted = [[grown(a).item() for a in row] for row in ROWS]
    for mode in (lambda f: f, mt.jit):
        np.testing.assert_allclose(mode(vmap(vmap(grown)))(ROWS).numpy(), wanted, rtol=1e-6)
    text = str(mt.jit(vmap(grown)).graph(ROWS[:, 0]))
    assert "while_loop" in text and "where" in text and "reduce_max" in text
