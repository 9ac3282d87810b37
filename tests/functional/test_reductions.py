"""Reductions: against NumPy over all choices of dims, eager against recorded, gradients against differences."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import gradcheck
from minitorch.backends import BACKENDS
from tests.support.helpers import check

INF, NAN = math.inf, math.nan
X = np.random.default_rng(0).normal(size=(2, 3, 4))
DIMS = [None, 0, 1, -1, (0, 2), (1, -1), (0, 1, 2), ()]


def _logsumexp(x, axis, keepdims):
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


def _power_norm(p):
    return lambda x, axis, keepdims: (np.abs(x) ** p).sum(axis=axis, keepdims=keepdims) ** (1 / p)


REDUCTIONS = {
    "sum": (mt.sum, np.sum),
    "mean": (mt.mean, np.mean),
    "nansum": (mt.nansum, np.nansum),
    "nanmean": (mt.nanmean, np.nanmean),
    "var": (lambda x, d=None, k=False: mt.var(x, d, keepdim=k), lambda x, **o: np.var(x, ddof=1, **o)),
    "var of a population": (lambda x, d=None, k=False: mt.var(x, d, keepdim=k, correction=0), np.var),
    "std": (lambda x, d=None, k=False: mt.std(x, d, keepdim=k), lambda x, **o: np.std(x, ddof=1, **o)),
    "amax": (mt.amax, np.max),
    "amin": (mt.amin, np.min),
    "logsumexp": (mt.logsumexp, _logsumexp),
    "norm": (lambda x, d=None, k=False: mt.norm(x, "fro", d, k), _power_norm(2)),
    "norm 1": (lambda x, d=None, k=False: mt.norm(x, 1, d, k), _power_norm(1)),
    "norm 2.5": (lambda x, d=None, k=False: mt.norm(x, 2.5, d, k), _power_norm(2.5)),
    "norm inf": (lambda x, d=None, k=False: mt.norm(x, INF, d, k), lambda x, **o: np.abs(x).max(**o)),
    "norm -inf": (lambda x, d=None, k=False: mt.norm(x, -INF, d, k), lambda x, **o: np.abs(x).min(**o)),
    "norm 0": (lambda x, d=None, k=False: mt.norm(x, 0, d, k), lambda x, **o: (x != 0).sum(**o) * 1.0),
    "all": (mt.all, np.all),
    "any": (mt.any, np.any),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_numpys(name):
    ours, numpys = REDUCTIONS[name]
    for dim in DIMS:
        axis = None if dim == () else dim
        for keepdim in (False, True):
            expected = np.asarray(numpys(X, axis=axis, keepdims=keepdim))
            check(lambda x, dim=dim, keepdim=keepdim: ours(x, dim, keepdim), X, expected=expected)


@pytest.mark.parametrize("name", [name for name in REDUCTIONS if name not in ("norm 0", "all", "any")])
def test_gradients_are_differences(name):
    x = mt.tensor(X[:, :, :2], requires_grad=True)
    for dim, keepdim in ((None, False), (1, False), ((0, 2), True)):
        assert gradcheck(lambda x, dim=dim, keepdim=keepdim: REDUCTIONS[name][0](x, dim, keepdim), x)


ALONG: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "prod": (mt.prod, np.prod),
    "argmax": (mt.argmax, np.argmax),
    "argmin": (mt.argmin, np.argmin),
    "max": (lambda x, *a: mt.max(x, *a).values if a else mt.max(x), np.max),
    "min": (lambda x, *a: mt.min(x, *a).values if a else mt.min(x), np.min),
    "index of max": (lambda x, *a: mt.max(x, *a).indices if a else mt.argmax(x), np.argmax),
    "index of min": (lambda x, *a: mt.min(x, *a).indices if a else mt.argmin(x), np.argmin),
}


@pytest.mark.parametrize("name", ALONG)
def test_reductions_along_one_dimension(name):
    ours, numpys = ALONG[name]
    check(ours, X, expected=np.asarray(numpys(X)))
    for dim in (0, 1, -1):
        for keepdim in (False, True):
            check(lambda x, dim=dim, k=keepdim: ours(x, dim, k), X, expected=numpys(X, axis=dim, keepdims=keepdim))


@pytest.mark.parametrize("name", ["prod", "cumprod", "cumsum", "max", "min"])
def test_gradients_along_one_dimension(name):
    def function(x, dim):
        result = getattr(mt, name)(x, dim)
        return result[0] if isinstance(result, tuple) else result

    values = X[:, :, :3].copy()
    if "prod" in name:
        values[0, 0, 0] = values[1, 1, 1] = values[1, 1, 2] = 0  # products with one zero, and with two
    x = mt.tensor(values, requires_grad=True)
    for dim in (0, 1, -1):
        assert gradcheck(lambda x, dim=dim: function(x, dim), x)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 5, 8, 13])
def test_running_sums_and_products(length):
    x = np.random.default_rng(1).normal(size=(2, length))
    check(lambda x: mt.cumsum(x, 1), x, expected=np.cumsum(x, 1))
    check(lambda x: mt.cumprod(x, -1), x, expected=np.cumprod(x, 1))
    check(lambda x: mt.cumprod(x, 0), x, expected=np.cumprod(x, 0))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64"])
def test_integers_are_summed_in_int64(dtype):
    x = mt.tensor([1, 0, 1, 1], dtype=dtype)
    for result in (x.sum(), x.prod(), x.cumsum(0), x.cumprod(0), x.count_nonzero(), x.nansum()):
        assert result.dtype is mt.int64
    assert mt.full((300,), 1, dtype=mt.uint8).sum().item() == 300
    assert x.sum(dtype=mt.float32).dtype is mt.float32 and x.mean(dtype=mt.float64).item() == 0.75
    assert x.max().dtype is x.amin().dtype is x.max(0).values.dtype is x.dtype
    assert x.argmax().dtype is mt.int64


def test_half_types_are_summed_in_float32():
    for dtype in (mt.float16, mt.bfloat16):
        x = mt.ones(100_000, dtype=dtype)
        assert x.mean().item() == 1 and x.var().item() == 0 and abs(x.norm().item() - 316.2) < 1
        assert x.mean().dtype is dtype and x.logsumexp(0).dtype is dtype


def test_means_of_integers_are_refused():
    for function in (mt.mean, mt.var, mt.std, mt.norm, mt.nanmean):
        with pytest.raises(TypeError, match="MT202"):
            function(mt.tensor([1, 2]))


def test_equal_extremes():
    x = mt.tensor([1.0, 3.0, 3.0], requires_grad=True)
    for function, expected in (
        (lambda x: x.max(), [0, 0.5, 0.5]),
        (lambda x: x.amax(0), [0, 0.5, 0.5]),
        (lambda x: x.max(0).values, [0, 1, 0]),
    ):
        (gradient,) = mt.autograd.grad(function(x), x)
        assert gradient.tolist() == expected
    assert mt.max(mt.tensor([1, 5]), mt.tensor([3, 2])).tolist() == [3, 5]
    assert mt.min(mt.tensor([1, 5]), other=mt.tensor([3, 2])).tolist() == [1, 2]
    assert [side.item() for side in mt.aminmax(mt.tensor([3, 1, 2]))] == [1, 3]


def test_extremes_of_integers_do_not_overflow():
    for dtype in (mt.int8, mt.uint8, mt.int64):
        info = mt.iinfo(dtype)
        x = mt.tensor([0, info.min, info.max], dtype=dtype)
        assert (x.min().item(), x.max().item(), x.amin(0).item()) == (info.min, info.max, info.min)
        assert (x.argmin().item(), x.argmax().item()) == (int(np.argmin(x.numpy())), 2)


def test_nan_is_the_extreme():
    x = mt.tensor([1.0, NAN, 2.0])
    for value in (x.max(), x.min(), x.amax(), x.amin(), x.max(0).values, x.min(0).values):
        assert math.isnan(value.item())
    assert x.argmax().item() == x.argmin().item() == 1


def test_logsumexp_of_infinities():
    x = np.array([[-INF, -INF], [INF, 0.0], [-INF, 3.0], [1000.0, 1000.0]])
    check(lambda x: mt.logsumexp(x, 1), x, expected=np.array([-INF, INF, 3.0, 1000 + math.log(2)]))
    row = mt.tensor([-INF, 3.0], requires_grad=True)
    mt.logsumexp(row, 0).backward()
    assert row.grad.tolist() == [0, 1]


def test_norm_has_a_gradient_at_zero():
    for p in (1, 2, 3, INF):
        x = mt.zeros(3, requires_grad=True)
        x.norm(p).backward()
        assert x.grad.tolist() == [0, 0, 0]


def test_corrections():
    x = mt.tensor([1.0, 2.0, 4.0])
    assert mt.allclose(x.var(), x.var(unbiased=True)) and mt.allclose(x.var(False), x.var(correction=0))
    np.testing.assert_allclose(x.var(correction=2).item(), np.var([1, 2, 4]) * 3)
    assert math.isnan(mt.ones(1).var().item()) and mt.ones(1).var(correction=0).item() == 0
    variance, mean = mt.var_mean(mt.tensor(X), 1, keepdim=True)
    assert variance.shape == mean.shape == (2, 1, 4)
    deviation, mean = mt.std_mean(mt.tensor(X), (0, 1))
    np.testing.assert_allclose(deviation.numpy(), X.std((0, 1), ddof=1))
    np.testing.assert_allclose(mean.numpy(), X.mean((0, 1)))
    shifted = mt.tensor(X + 1e8)
    np.testing.assert_allclose(shifted.var().item(), X.var(ddof=1), rtol=1e-6)  # no cancellation


def test_of_one_number_and_of_nothing():
    x = mt.tensor(3.0)
    for dim in (None, 0, -1):
        for name in ("sum", "mean", "prod", "amax", "logsumexp"):
            assert getattr(x, name)(dim).item() == 3
        assert x.argmax(dim).item() == 0
    assert x.max(0).values.item() == x.cumsum(0).item() == x.cumprod(-1).item() == 3 and x.max(0).indices.item() == 0
    empty = mt.zeros(0, 3)
    assert empty.sum().item() == 0 and empty.prod().item() == 1 and empty.all().item() and not empty.any().item()
    assert math.isnan(empty.mean().item()) and empty.sum(0).tolist() == [0, 0, 0] and empty.amax(1).shape == (0,)
    assert empty.logsumexp(0).tolist() == [-INF] * 3
    for function in (mt.max, mt.min, mt.argmax, mt.amax, mt.aminmax):
        with pytest.raises(IndexError, match="no elements"):
            function(empty)
    with pytest.raises(IndexError, match="no elements"):
        empty.max(0)


@pytest.mark.parametrize("dim", [2, -3, (0, 0), (0, 5)])
def test_dims_that_are_not_there(dim):
    for name in ("sum", "mean", "amax", "any", "logsumexp", "norm"):
        with pytest.raises(IndexError):
            getattr(mt.ones(2, 3), name)(dim=dim)


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float32, mt.float64])
@pytest.mark.parametrize("jitted", [False, True])
def test_a_product_that_is_0_stays_0_whatever_follows(dtype, jitted):
    """Products are taken in order: two large factors after a zero make no infinity of their own, and so no NaN."""
    large = {mt.float16: 300.0, mt.float64: 1e200}.get(dtype, 1e30)
    x = mt.tensor([2, 0, large, large, large], dtype=dtype)
    for function in (lambda x: x.cumprod(0), lambda x: mt.stack([x[:1].prod(), *[x.prod()] * 4])):
        found = mt.jit(function)(x) if jitted else function(x)
        assert found.tolist() == [2, 0, 0, 0, 0]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 17])
def test_the_gradient_of_a_running_product_is_right_at_zeros(length):
    x = mt.tensor(np.random.default_rng(length).normal(size=(3, length)), requires_grad=True)
    with mt.no_grad():
        x[1, length // 2] = 0
        x[2] = 0
    assert gradcheck(lambda x: x.cumprod(1), (x,))


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float32, mt.float64], ids=str)
@pytest.mark.parametrize("shape", [(1,), (3, 1), (40, 1), (1, 40), (40, 3)])
def test_a_sum_of_negative_zeros_is_zero(dtype: mt.DType, shape: tuple[int, ...]) -> None:
    """A sum starts at 0.0, also that of a single element, as in PyTorch."""
    z = (-mt.zeros(*shape)).to(dtype)
    for function in (lambda z: 1 / z.sum(-1), lambda z: 1 / z.mean(-1), lambda z: 1 / z.sum()):
        for backend in ("interpret", "loops", "llvm"):
            found = mt.jit(function, backend=backend)(z)
            assert found.tolist() == function(z).tolist() == mt.full_like(found, math.inf).tolist()


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e-15, 1e15, 1e30])
@pytest.mark.parametrize("dtype", [mt.float32, mt.bfloat16])
@pytest.mark.parametrize("mode", ["eager", *BACKENDS])
def test_a_standard_deviation_scales_with_its_numbers(scale: float, dtype: mt.DType, mode: str) -> None:
    """Where the squares of the deviations are 0 or infinite in float32, too, and its gradient stays."""

    def f(x: mt.Tensor) -> mt.Tensor:
        return x.std(1).sum()

    def run(x: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        return f(x), mt.grad(f)(x)

    x = mt.tensor([[1.0, 3.0, 2.0], [4.0, -1.0, 6.0]], dtype=mt.float64)
    way = run if mode == "eager" else mt.jit(run, backend=mode)
    given = (x * scale).to(dtype)
    value, gradient = way(given)
    right, slope = run(given.to(mt.float64))
    is_denormal = scale == 1e-40 and mode == "xla"  # which XLA's CPU takes for 0
    if not is_denormal:
        np.testing.assert_allclose(value.double().numpy(), right.numpy(), rtol=1e-2 if dtype is mt.bfloat16 else 1e-5)
        np.testing.assert_allclose(gradient.double().numpy(), slope.numpy(), rtol=1e-2, atol=1e-2)
