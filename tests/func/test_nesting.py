"""Transforms of transforms, made up at random: with vmap they give what a loop over the examples gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.func import grad, jacfwd, jacrev, jvp, vmap
from minitorch.nn import functional as F
from tests.func.test_vmap import Cube

Function = Callable[[mt.Tensor], mt.Tensor]
Mapper = Callable[[Function, int, int], Function]
KERNEL = mt.tensor([[[0.3, -0.2, 0.5]]], dtype=mt.float64)


def written(t: mt.Tensor) -> mt.Tensor:
    y = t * 1
    y.mul_(t.sin())
    y[..., 0] = y[..., -1] * 2
    return y


STEPS: list[Function] = [
    lambda t: t.sin(),
    lambda t: t.tanh() * t,
    lambda t: t.cumsum(-1),
    lambda t: F.softmax(t, -1),
    lambda t: t.amax(-1, keepdim=True) * t,
    lambda t: t.sort(-1)[0],
    lambda t: mt.where(t > 0, t, 0.1 * t),
    lambda t: t.detach() * t,
    lambda t: t.prod() * t,
    lambda t: F.conv1d(t.reshape(1, 1, -1), KERNEL, padding=1).reshape(t.shape) * t,
    lambda t: Cube.apply(t + 3, t)[0] * 0.1,
    lambda t: mt.checkpoint(lambda t: t.sin() * t, t),
    lambda t: mt.jit(lambda t: t.cos() + 1)(t),
    lambda t: mt.zeros_like(t).copy_(t * 2) + t,
    written,
]
TRANSFORMS: list[Callable[[Function], Function]] = [
    lambda f: grad(lambda t: f(t).square().sum()),
    lambda f: lambda t: jvp(f, (t,), (t.cos(),))[1],
    lambda f: lambda t: jacrev(f)(t).sum() + t,
    lambda f: lambda t: jacfwd(f)(t).sum() + t,
]
MAPPERS: dict[str, Mapper] = {
    "vmap": vmap,
    "closure": lambda f, i, o: lambda x: vmap(lambda row: f(row) + row * x.sum(), i, o)(x),
    "argument": lambda f, i, o: lambda x: vmap(lambda row, x: f(row) + row * x.sum(), (i, None), o)(x, x),
}


def loop(name: str) -> Mapper:
    """The loop in place of a mapper."""
    if name == "vmap":
        return lambda f, i, o: lambda x: mt.stack([f(row) for row in x.unbind(i)], o)
    return lambda f, i, o: lambda x: mt.stack([f(row) + row * x.sum() for row in x.unbind(i)], o)


def made_up(seed: int, mapper: Callable[[str], Mapper]) -> Function:
    """A function of a 2x2x3 tensor: steps, some transforms, and two mappings."""
    pick = random.Random(seed)
    steps = pick.choices(STEPS, k=3)

    def first(t: mt.Tensor) -> mt.Tensor:
        for step in steps:
            t = step(t)
        return t

    function: Function = first
    for count in range(4):
        if count in (1, 3):
            dim = pick.choice([0, -1])
            function = mapper(pick.choice(list(MAPPERS)))(function, dim, dim)
        else:
            function = pick.choice(TRANSFORMS)(function)
    return function


@pytest.mark.parametrize("seed", range(40))
def test_nested_transforms_are_those_of_a_loop(seed: int) -> None:
    x: Any = mt.tensor(np.random.default_rng(seed).standard_normal((2, 2, 3)))
    wanted = made_up(seed, loop)(x).numpy()
    size = max(1.0, float(np.abs(wanted).max()))
    mapped = made_up(seed, MAPPERS.__getitem__)
    for mode in (mapped, mt.jit(mapped, backend="interpret"), mt.lazy("interpret")(mapped)):
        found = mode(x)
        assert not found.requires_grad
        np.testing.assert_allclose(found.numpy() / size, wanted / size, rtol=1e-7, atol=1e-10)
