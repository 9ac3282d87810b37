"""For all public functions: vmap = the calls one after another; jvp = differences; Jacobians agree, in every mode."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import TracingError
from minitorch.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from minitorch.tree import flatten
from tests.support.cases import CASES, EAGER_BY_NATURE, METHODS

COUNT = 2  # examples
ALL = [case for case in CASES + METHODS if case.arrays and case.name not in EAGER_BY_NATURE]
SMOOTH = [case for case in ALL if case.smooth and any(array.dtype == np.float32 for array in case.arrays)]


def tensors_in(result: Any) -> list[mt.Tensor]:
    return [leaf for leaf in flatten(result)[0] if isinstance(leaf, mt.Tensor)]


def batched(array: np.ndarray, dim: int) -> mt.Tensor:
    """An array and another one like it, as examples."""
    other = array * np.float32(1.01) if array.dtype.kind == "f" else array
    return mt.tensor(np.stack([array, other], dim))


def same_numbers(function: Any) -> Any:
    def seeded(*xs: mt.Tensor) -> Any:
        mt.manual_seed(7)
        return function(*xs)

    return seeded


def choices(count: int) -> list[tuple[int | None, ...]]:
    """For each operand, the dimension of the examples, or None: all operands have it, or one alone."""
    alone = [tuple(-1 if place == at else None for place in range(count)) for at in range(count)]
    return [(0,) * count, *(alone if count > 1 else [(-1,)])]


def same(found: mt.Tensor, wanted: list[mt.Tensor], case: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    assert found.dtype is wanted[0].dtype, case
    arrays = [each.detach().float().numpy() for each in wanted]
    np.testing.assert_allclose(found.detach().float().numpy(), np.stack(arrays), rtol, atol, err_msg=str(case))


@pytest.mark.parametrize("case", ALL, ids=str)
def test_vmap_is_the_calls_one_after_another(case: Any) -> None:
    function = same_numbers(case.function)
    for dims in choices(len(case.arrays)):
        pairs = list(zip(case.arrays, dims, strict=True))
        args = [mt.tensor(array) if dim is None else batched(array, dim) for array, dim in pairs]
        calls = [
            tensors_in(function(*[x if d is None else x.select(d, k) for x, d in zip(args, dims, strict=True)]))
            for k in range(COUNT)
        ]
        mapped = vmap(lambda *xs: tuple(tensors_in(function(*xs))), dims, randomness="same")
        for mode in (mapped, mt.jit(mapped, backend="interpret"), mt.lazy("interpret")(mapped)):
            if case.name == "setitem" and dims[0] is None:  # a write to what all examples share
                with pytest.raises(TracingError, match="MT109"):
                    mode(*args)
                continue
            found = mode(*args)
            assert len(found) == len(calls[0])
            for each, *wanted in zip(found, *calls, strict=True):
                same(each, wanted, (dims, mode))


def of_floats(case: Any) -> tuple[Any, tuple[mt.Tensor, ...]]:
    """A case as a function of its floats, which returns its floats, in float64."""
    tensors = case.tensors(mt.float64)
    places = [place for place, x in enumerate(tensors) if x.is_floating_point()]

    def function(*xs: mt.Tensor) -> tuple[mt.Tensor, ...]:
        every = list(tensors)
        for place, x in zip(places, xs, strict=True):
            every[place] = x
        return tuple(y for y in tensors_in(same_numbers(case.function)(*every)) if y.is_floating_point())

    return function, tuple(tensors[place] for place in places)


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_derivatives_along_a_direction_are_those_of_differences(case: Any) -> None:
    function, xs = of_floats(case)
    random, step = np.random.default_rng(1), 1e-6
    vs = tuple(mt.tensor(random.standard_normal(x.shape)) for x in xs)
    _, along = jvp(function, xs, vs)
    there = [function(*[x + sign * step * v for x, v in zip(xs, vs, strict=True)]) for sign in (1, -1)]
    for found, up, down in zip(along, *there, strict=True):
        assert not found.requires_grad
        np.testing.assert_allclose(found.numpy(), ((up - down) / (2 * step)).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_jacobians_agree_in_both_directions(case: Any) -> None:
    function, xs = of_floats(case)
    if not function(*xs):
        return
    argnums = tuple(range(len(xs)))
    by_rows, by_columns = jacrev(function, argnums), jacfwd(function, argnums, randomness="same")
    found = [flatten(each(*xs))[0] for each in (by_rows, by_columns, mt.jit(by_columns, backend="interpret"))]
    for row, *others in zip(*found, strict=True):
        for other in others:
            np.testing.assert_allclose(row.numpy(), other.numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_gradients_within_and_around_vmap_are_those_of_the_calls(case: Any) -> None:
    function, points = of_floats(case)

    def loss(*xs: mt.Tensor) -> mt.Tensor:
        return sum(((y * y).sum() for y in function(*xs)), mt.zeros((), dtype=mt.float64))

    argnums = tuple(range(len(points)))
    xs = [mt.stack([x, x * 1.01]) for x in points]
    one_by_one = [grad(loss, argnums)(*[x[k] for x in xs]) for k in range(COUNT)]
    within = vmap(grad(loss, argnums), randomness="same")
    around = grad(lambda *xs: vmap(loss, randomness="same")(*xs).sum(), argnums)
    for transform in (within, around, mt.jit(within, backend="interpret"), mt.jit(around, backend="interpret")):
        for found, *wanted in zip(transform(*xs), *one_by_one, strict=True):
            assert not found.requires_grad
            same(found, wanted, case, 1e-5, 1e-5)


def test_second_derivatives_are_the_same_by_all_ways() -> None:
    def f(x: mt.Tensor) -> mt.Tensor:
        return (x.sin() * x.flip(0)).sum() + mt.softmax(x, 0)[0]

    x = mt.tensor([0.3, -0.5, 0.8], dtype=mt.float64)
    wanted = mt.stack([grad(lambda x, k=k: grad(f)(x)[k])(x) for k in range(3)])
    both: list[Any] = [jacfwd, jacrev]
    ways = [hessian(f), *(a(b(f)) for a, b in itertools.product(both, repeat=2)), jacfwd(grad(f))]
    for way in ways:
        for found in (way(x), mt.jit(way)(x), vmap(way)(x.expand(4, 3))[3]):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-9, atol=1e-12)
    _, along = jvp(grad(f), (x,), (x.cos(),))
    np.testing.assert_allclose(along.numpy(), (wanted @ x.cos()).numpy(), rtol=1e-9)
    third = grad(lambda x: vmap(grad(f))(x.expand(2, 3)).pow(2).sum())(x)
    np.testing.assert_allclose(third.numpy(), (4 * wanted @ grad(f)(x)).numpy(), rtol=1e-9)
