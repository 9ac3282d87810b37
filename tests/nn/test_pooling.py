"""Maximum pooling beside the plainest loops, in every mode: values, NaN, and where the gradient goes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F

Array = np.ndarray[Any, Any]
Ints = tuple[int, int]


def plain(x: Array, g: Array | None, size: Ints, step: Ints, amounts: Ints, apart: Ints) -> tuple[Array, Array]:
    """PyTorch's loops: the largest so far is replaced by what is larger and by NaN; padding is not looked at."""
    batch, channels, *lengths = x.shape
    counts = [
        (n + 2 * pad - by * (k - 1) - 1) // move + 1
        for n, k, move, pad, by in zip(lengths, size, step, amounts, apart, strict=True)
    ]
    y, gradient = np.empty((batch, channels, *counts), x.dtype), np.zeros_like(x)
    for image, channel, *place in itertools.product(range(batch), range(channels), *map(range, counts)):
        largest, found = -np.inf, None
        for within in itertools.product(*map(range, size)):
            at = tuple(p * s - a + w * d for p, s, a, w, d in zip(place, step, amounts, within, apart, strict=True))
            if any(not 0 <= each < n for each, n in zip(at, lengths, strict=True)):
                continue
            value = x[(image, channel, *at)]
            if found is None or value > largest or np.isnan(value):
                largest, found = value, at
        y[(image, channel, *place)] = largest
        if g is not None and found is not None:
            gradient[(image, channel, *found)] += g[(image, channel, *place)]
    return y, gradient


def pooled(options: Any) -> Callable[..., Any]:
    def function(x: mt.Tensor, g: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        y, back = mt.vjp(lambda x: F.max_pool2d(x, *options), x)
        (gradient,) = back(g)
        return y, gradient

    return function


def in_a_session(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*tensors: mt.Tensor) -> Any:
        with mt.Graph() as graph:
            holders = [mt.placeholder(each.shape, each.dtype) for each in tensors]
            fetches = function(*holders)
        return mt.Session(graph).run(fetches, dict(zip(holders, tensors, strict=True)))

    return run


def lazily(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*tensors: mt.Tensor) -> Any:
        with mt.lazy():
            results = function(*tensors)
            results[0].numpy()  # before the gradient is looked at
            return results

    return run


MODES: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "eager": lambda function: function,
    "llvm": mt.jit,
    "interpret": lambda function: mt.jit(function, backend="interpret"),
    "loops": lambda function: mt.jit(function, backend="loops"),
    "lazy": lazily,
    "session": in_a_session,
}

# kernel_size, stride, padding, dilation: touching, overlapping, with gaps, windows that do not divide the length.
OPTIONS = {
    "touching": ((2, 2), (2, 2), (0, 0), (1, 1)),
    "of a ResNet": ((3, 3), (2, 2), (1, 1), (1, 1)),
    "overlapping": ((3, 2), (1, 1), (0, 1), (1, 1)),
    "apart": ((2, 3), (3, 4), (1, 0), (1, 1)),
    "dilated": ((3, 2), (2, 1), (1, 1), (2, 3)),
    "large": ((6, 5), (3, 5), (3, 2), (1, 1)),
}
VALUES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "all different": lambda random, shape: random.normal(size=shape),
    "equal ones": lambda random, shape: random.integers(0, 3, shape).astype(float),
    "some NaN": lambda random, shape: np.where(random.random(shape) < 0.2, np.nan, random.normal(size=shape)),
    "mostly -inf": lambda random, shape: np.where(random.random(shape) < 0.7, -np.inf, random.normal(size=shape)),
}


@pytest.mark.sweep
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("mode", MODES)
def test_the_gradient_goes_where_pytorch_finds_the_maximum(mode: str, name: str, values: str) -> None:
    random = np.random.default_rng(0)
    options = OPTIONS[name]
    for dtype in (np.float32, np.float64):
        x = VALUES[values](random, (1, 2, 9, 11)).astype(dtype)
        y, _ = plain(x, None, *options)
        g: Any = random.integers(1, 9, y.shape).astype(dtype)
        _, gradient = plain(x, g, *options)
        found = MODES[mode](pooled(options))(mt.from_numpy(x), mt.from_numpy(g))
        np.testing.assert_array_equal(np.asarray(found[0]), y)
        np.testing.assert_array_equal(np.asarray(found[1]), gradient)


@pytest.mark.parametrize("size", [9, 16])
@pytest.mark.parametrize("window", [(2, None), (2, 1), (3, 2), (3, 1)])
@pytest.mark.parametrize("dtype", [mt.float32, mt.float64], ids=str)
def test_every_window_passes_its_gradient_on_once(dtype: mt.DType, window: tuple[int, int | None], size: int) -> None:
    """Also of what is computed again in the backward pass, fused with something else there."""
    x, a, b = (mt.randn(*shape, dtype=dtype) for shape in ((2, 4, size, size), (4, 1, 1), (4, 1, 1)))

    def loss(a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
        return F.max_pool2d(F.max_pool2d(x * a + b, *window).tanh() * a - b, *window).sum()

    def number_of_windows(b: mt.Tensor) -> mt.Tensor:
        return F.max_pool2d(x * a + b, *window).sum()

    windows = F.max_pool2d(x, *window).numel()
    for function in (number_of_windows, mt.jit(number_of_windows)):
        _, gradient = mt.value_and_grad(function)(b)
        assert gradient.sum().item() == windows
    for found, expected in zip(
        mt.jit(mt.grad(loss, argnums=(0, 1)))(a, b), mt.grad(loss, argnums=(0, 1))(a, b), strict=True
    ):
        np.testing.assert_allclose(
            found.numpy(), expected.numpy(), rtol=1e-4 if dtype is mt.float32 else 1e-10, atol=1e-4
        )


def test_what_is_kept_for_the_gradient_is_a_byte_for_each_window() -> None:
    """The backward pass reads neither the elements nor the maxima."""
    x, g = mt.randn(2, 3, 16, 16), mt.randn(2, 3, 8, 8)
    kernels = mt.jit(pooled(OPTIONS["of a ResNet"])).ledger(x, g).kernels
    assert len(kernels) == 2
    assert {node.dtype.name for node in kernels[1].reads} == {"int8", "float32"}
    assert sum(node.spec.nbytes for node in kernels[1].reads) == g.numel() * (1 + 4)


# Windows that PyTorch counts -------------------------------------------------------------------------------


def places_of(length, size, step, padding, apart, ceil_mode):
    """The positions of each window, some of them in the padding."""
    count = (length + 2 * padding - (size - 1) * apart - 1 + (step - 1) * ceil_mode) // step + 1
    count -= ceil_mode and (count - 1) * step >= length + padding  # it would begin in the padding at the end
    return [[first * step - padding + place * apart for place in range(size)] for first in range(count)]


@pytest.mark.parametrize("seed", range(60))
def test_pooling_with_all_options_is_that_of_its_definition(seed):
    """For each window: the largest number inside, its flat position, and the mean of what is counted."""
    choose = random.Random(seed)
    ndim, size, step, apart = choose.randint(1, 2), choose.randint(1, 4), choose.randint(1, 4), choose.randint(1, 2)
    padding, ceil_mode, counts = choose.randint(0, size // 2), choose.random() < 0.7, choose.random() < 0.5
    divisor = choose.choice([None, 3]) if ndim == 2 else None
    array = np.random.default_rng(seed).permutation(9**ndim).astype(np.float32).reshape(1, 1, *(9,) * ndim)

    def windows(apart):
        along = [places_of(9, size, step, padding, apart, ceil_mode)] * ndim
        return [list(itertools.product(*dims)) for dims in itertools.product(*along)]

    def inside(window):
        return [place for place in window if all(0 <= each < 9 for each in place)]

    largest = [max(inside(window), key=lambda place: array[0, 0][place]) for window in windows(apart)]
    counted = [sum(all(-padding <= each < 9 + padding for each in place) for place in window) for window in windows(1)]
    means = [
        sum(array[0, 0][place] for place in inside(window)) / (divisor or (count if counts else len(inside(window))))
        for window, count in zip(windows(1), counted, strict=True)
    ]
    x = mt.tensor(array)
    options = {"divisor_override": divisor} if ndim == 2 else {}
    for way in (lambda f: f, mt.jit):
        values, positions = way(
            lambda x: getattr(F, f"max_pool{ndim}d")(
                x, size, step, padding, apart, ceil_mode=ceil_mode, return_indices=True
            )
        )(x)
        assert values.flatten().tolist() == [array[0, 0][place] for place in largest]
        assert positions.flatten().tolist() == [np.ravel_multi_index(place, (9,) * ndim) for place in largest]
        average = way(lambda x: getattr(F, f"avg_pool{ndim}d")(x, size, step, padding, ceil_mode, counts, **options))(x)
        np.testing.assert_allclose(average.flatten().numpy(), means, rtol=1e-5)
