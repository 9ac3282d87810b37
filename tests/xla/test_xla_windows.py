"""Convolutions and pools on XLA: its own operations where these are no slower, with the numbers of eager mode."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from tests.modes.test_modes import assert_close

pytest.importorskip("jax")

TYPES = (mt.float32, mt.float64, mt.bfloat16, mt.float16)


def convolutions(f, *args):
    """How many convolutions a program has before XLA's passes, and how many products."""
    text = f.hlo(*args).before
    return text.count(" convolution("), text.count(" dot(")


def gradients_of(call):
    def f(x, w):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = call(x, w)
        return y.detach(), *mt.autograd.grad((y * y).sum(), [x, w])

    return f


CONVOLUTIONS: dict[str, tuple[Any, ...]] = {
    "plain": (F.conv2d, (8, 8, 7, 6), (10, 8, 3, 3), {"padding": 1}),
    "stride": (F.conv2d, (9, 8, 8, 8), (9, 8, 3, 2), {"stride": 2, "padding": (1, 0)}),
    "dilation": (F.conv2d, (8, 9, 9, 9), (8, 9, 3, 3), {"dilation": 2, "padding": 2}),
    "one image": (F.conv2d, (1, 16, 10, 10), (8, 16, 3, 3), {}),
    "one dimension": (F.conv1d, (8, 8, 11), (8, 8, 5), {"stride": 3}),
    "three dimensions": (F.conv3d, (8, 8, 4, 4, 4), (8, 8, 2, 3, 2), {"padding": 1}),
}


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, mt.float32) for name in CONVOLUTIONS), *(("stride", dtype) for dtype in TYPES[1:])]
)
def test_a_convolution_is_one_and_so_is_each_of_its_gradients(name, dtype):
    call, images, filters, options = CONVOLUTIONS[name]
    mt.manual_seed(0)
    x, w = mt.randn(*images).to(dtype), mt.randn(*filters).to(dtype)
    f = gradients_of(lambda x, w: call(x, w, **options))
    compiled = mt.jit(f, backend="xla")
    assert convolutions(compiled, x, w) == (3, 0)
    for mine, theirs in zip(compiled(x, w), f(x, w), strict=True):
        assert mine.dtype is theirs.dtype
        expected = theirs.double().numpy()
        bound = 8 * mt.finfo(dtype).eps * abs(expected).max()
        np.testing.assert_allclose(mine.double().numpy(), expected, rtol=0, atol=bound)


PRODUCTS: dict[str, tuple[Any, ...]] = {
    "few channels": ((2, 3, 6, 6), (8, 3, 3, 3), {}),
    "a window of one": ((2, 16, 6, 6), (8, 16, 1, 1), {}),
    "groups": ((2, 16, 6, 6), (16, 8, 3, 3), {"groups": 2}),
    "no images": ((0, 8, 6, 6), (8, 8, 3, 3), {}),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_convolution_stays_a_product_where_that_is_no_slower(name):
    images, filters, options = PRODUCTS[name]
    x, w = mt.randn(*images), mt.randn(*filters)
    compiled = mt.jit(lambda x, w: F.conv2d(x, w, **options), backend="xla")
    assert convolutions(compiled, x, w)[0] == 0
    assert_close(compiled(x, w), F.conv2d(x, w, **options))


@pytest.mark.parametrize("dtype", [mt.float32, mt.bfloat16, mt.uint8])
@pytest.mark.parametrize(("size", "stride", "padding"), [(2, 2, 0), (3, 2, 1)])
def test_a_pool_is_a_reduction_of_windows(size, stride, padding, dtype):
    x = (mt.randn(2, 3, 7, 7) * 50).to(dtype)
    if dtype.is_floating_point:
        x[0, 0, 2, 2], x[1, 1], x[1, 2, 3, 3] = math.nan, -math.inf, math.inf
    largest = mt.jit(lambda x: F.max_pool2d(x, size, stride, padding), backend="xla")
    assert largest.hlo(x).before.count(" reduce-window(") == 1
    np.testing.assert_array_equal(largest(x).float().numpy(), F.max_pool2d(x, size, stride, padding).float().numpy())
    if dtype.is_floating_point:
        mean = mt.jit(lambda x: F.avg_pool2d(x, size, stride, padding), backend="xla")
        assert mean.hlo(x).before.count(" reduce-window(") == 1
        expected = F.avg_pool2d(x, size, stride, padding).float().numpy()
        bound = 400 * mt.finfo(dtype).eps  # a few last places of numbers around 50
        np.testing.assert_allclose(mean(x).float().numpy(), expected, rtol=0, atol=bound)


def test_a_convolution_may_decide_on_an_index():
    x, w, table = mt.ones(1, 8, 4, 4), mt.ones(1, 8, 3, 3), mt.arange(100.0)
    f = mt.jit(lambda x, w, table: table[F.conv2d(x, w).long()], backend="xla")
    assert convolutions(f, x, w, table)[0] == 1 and f(x, w, table).tolist() == [[[[72.0] * 2] * 2]]
    with pytest.raises(IndexError, match="index 144 is out of bounds"):
        f(x * 2, w, table)


def test_a_convolutional_network_trains_by_convolutions():
    """Of the first layer, with one channel, the gradient is one; of the second, the layer and both gradients."""
    mt.manual_seed(0)
    nn = mt.nn
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.Flatten())
    beside = copy.deepcopy(model)

    def training(model):
        optimizer = mt.optim.SGD(model.parameters(), lr=0.01)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    step, eager_step = mt.jit(training(model), backend="xla"), training(beside)
    x, y = mt.randn(8, 1, 12, 12), mt.randint(0, 100, (8,))
    assert convolutions(step, x, y)[0] == 4
    for _ in range(3):
        np.testing.assert_allclose(step(x, y).item(), eager_step(x, y).item(), rtol=1e-4)
