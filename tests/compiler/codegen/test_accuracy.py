"""How exact the functions of mathematics are: a bound in units in the last place for each, over the range of each type.

All 65,536 values of the 16-bit types; of float32 and float64 numbers of all sizes, the special ones, and many where a
function changes. The reference is computed with more digits: in float64, and for float64 in `long double`, which has
eleven bits more on x86. Eager mode and machine code have the same bounds.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import minitorch as mt
from minitorch.nn import functional as F
from tests.support.units import bits, errors


@pytest.fixture(autouse=True)
def _quiet():
    """NaN and overflow are meant."""
    with np.errstate(all="ignore"):
        yield


# The reference ---------------------------------------------------------------------------------------------

_erfc = np.vectorize(math.erfc, otypes=[np.float64])
_erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def softplus(x):
    return np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20))))


def log_sigmoid(x):
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def mish(x):
    e = np.exp(np.minimum(x, 100))
    return x * ((e * e + 2 * e) / (e * e + 2 * e + 2))


def gelu(x):
    return np.where(np.isneginf(x), np.nan, x * (_erfc(-x / np.sqrt(x.dtype.type(2))) / 2))


def gelu_tanh(x):
    root = np.sqrt(x.dtype.type(2) / np.arccos(x.dtype.type(-1)))
    inner = root * (x + x * x * x * x.dtype.type(0.044715))
    return np.where(np.isneginf(x), np.nan, x * sigmoid(2 * inner))


def logit(x):
    return np.where(np.abs(x - 0.5) < 0.25, np.log1p((2 * x - 1) / (1 - x)), np.log(x) - np.log1p(-x))


def xlogy(x, y):
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))


# name: (bound for float32, bound for float64, function, reference). Of 16-bit types all are computed in float32 and
# rounded once: half a unit, and a little for what is near the middle. What NumPy computes in float32 is within 4.
# (erfc of float64 is one polynomial for all x: 3 units in the last place of 1 are 6 below 1.)
UNARY: dict[str, tuple[float, float, Callable[..., Any], Callable[..., Any]]] = {
    "exp": (3, 2, mt.exp, np.exp),
    "exp2": (2, 2, mt.exp2, np.exp2),
    "expm1": (3, 3, mt.expm1, np.expm1),
    "log": (4, 2, mt.log, np.log),
    "log1p": (3, 2, mt.log1p, np.log1p),
    "log2": (0.51, 3, mt.log2, np.log2),
    "log10": (0.51, 3, mt.log10, np.log10),
    "sqrt": (0.5, 0.5, mt.sqrt, np.sqrt),
    "rsqrt": (1.51, 1.51, mt.rsqrt, lambda x: 1 / np.sqrt(x)),
    "reciprocal": (0.5, 0.5, mt.reciprocal, lambda x: 1 / x),
    "square": (0.5, 0.5, mt.square, np.square),
    "sin": (2, 2, mt.sin, np.sin),
    "cos": (2, 2, mt.cos, np.cos),
    "tan": (4.5, 4, mt.tan, np.tan),
    "asin": (4.5, 4, mt.asin, np.arcsin),
    "acos": (4.5, 4, mt.acos, np.arccos),
    "atan": (4, 3, mt.atan, np.arctan),
    "sinh": (4, 4, mt.sinh, np.sinh),
    "cosh": (4.5, 4, mt.cosh, np.cosh),
    "tanh": (3, 3, mt.tanh, np.tanh),
    "asinh": (3, 3, mt.asinh, np.arcsinh),
    "acosh": (4.5, 4, mt.acosh, np.arccosh),
    "atanh": (3, 3, mt.atanh, np.arctanh),
    "erf": (2, 2, mt.erf, _erf),
    "erfc": (1, 7, mt.erfc, _erfc),
    "sigmoid": (4, 3, mt.sigmoid, sigmoid),
    "logit": (4, 4, mt.logit, logit),
    "deg2rad": (1, 1, mt.deg2rad, np.deg2rad),
    "rad2deg": (1, 1, mt.rad2deg, np.rad2deg),
    "x ** 3": (1.51, 1.51, lambda x: x**3, lambda x: x * x * x),
    "x ** -0.5": (1.51, 1.51, lambda x: x**-0.5, lambda x: 1 / np.sqrt(x)),
    "elu": (3, 3, F.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
    "gelu": (2, 2, F.gelu, gelu),
    "gelu, tanh": (3, 3, lambda x: F.gelu(x, approximate="tanh"), gelu_tanh),
    "silu": (5, 4, F.silu, lambda x: np.where(np.isneginf(x), np.nan, x * sigmoid(x))),
    "mish": (5, 5, F.mish, mish),
    "softplus": (4, 3, F.softplus, softplus),
    "log_sigmoid": (4, 3, F.log_sigmoid, log_sigmoid),
    "softsign": (1.51, 1.51, F.softsign, lambda x: x / (1 + np.abs(x))),
}
BINARY: dict[str, tuple[float, float, Callable[..., Any], Callable[..., Any]]] = {
    "pow": (2, 2, mt.pow, np.power),
    "atan2": (4, 3, mt.atan2, np.arctan2),
    "hypot": (2.5, 2.5, mt.hypot, np.hypot),
    "logaddexp": (4, 3, mt.logaddexp, np.logaddexp),
    "xlogy": (4.5, 3, mt.xlogy, xlogy),
    "div": (0.5, 0.5, mt.div, np.divide),
}
SHORT_BOUND = 0.52

# Where the unit is not that of the result, and why.
UNITS: dict[str, Callable[..., Any]] = {
    # erf is 1 to the last digit: what is left of x is exact to the digits of x, as in PyTorch.
    "gelu": lambda x: x,
    "gelu, tanh": lambda x: x,
    # A factor is below the smallest number with all digits, and the other one is as large as |x|.
    "silu": lambda x: 1024 * float(ml_dtypes.finfo(x.dtype).tiny),
    "mish": lambda x: 1024 * float(ml_dtypes.finfo(x.dtype).tiny),
    # The logarithm of a sum near 1 is a small difference of the operands and what is added to them.
    "logaddexp": lambda x, y: np.where(np.isfinite(x) & np.isfinite(y), np.maximum(np.abs(x), np.abs(y)), 0),
}
WIDE = {np.float16: np.float64, ml_dtypes.bfloat16: np.float64, np.float32: np.float64, np.float64: np.longdouble}


# Numbers to try ---------------------------------------------------------------------------------------------


def special(dtype):
    """Numbers where something may break, with their neighbours and both signs."""
    limits = ml_dtypes.finfo(dtype)
    numbers = [0, 0.25, 0.5, 1, 2, 3, 10, 20, 40, 80, 88, 104, 700, 745, 1e10, math.pi, math.pi / 2, math.inf, math.nan]
    ends = [float(each) for each in (limits.max, limits.tiny, limits.smallest_subnormal, limits.eps)]
    found = np.array([*numbers, *ends]).astype(dtype)
    found = np.concatenate([found, np.nextafter(found, dtype(0)), np.nextafter(found, dtype(math.inf))])
    return np.concatenate([found, -found])


@cache
def sample(dtype):
    """All numbers of a 16-bit type; else special ones, numbers of all sizes, and many where functions change."""
    if np.dtype(dtype).itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    count, generator = 50_000 if dtype is np.float32 else 10_000, np.random.default_rng(0)
    parts = [generator.normal(scale=scale, size=count) for scale in (1e-3, 0.1, 0.5, 1, 3, 10, 40, 300)]
    parts += [center + generator.normal(scale=0.01, size=count) for center in (0.25, 0.5, 1)]
    return np.concatenate([special(dtype), bits(dtype, 2 * count, generator), np.concatenate(parts).astype(dtype)])


@cache
def pairs(dtype):
    """All pairs of special numbers, numbers of all sizes, and bases near 1 with large exponents."""
    count, generator = 50_000 if dtype is np.float32 else 10_000, np.random.default_rng(1)
    numbers = special(dtype)
    a = [generator.normal(scale=scale, size=count) for scale in (0.1, 2, 30)]
    b = [generator.normal(scale=scale, size=count) for scale in (0.1, 2, 30)]
    a.append(np.abs(1 + generator.normal(scale=1e-3, size=count)))
    b.append(3e4 * generator.normal(size=count))
    left = [np.repeat(numbers, len(numbers)), bits(dtype, count, generator), np.concatenate(a).astype(dtype)]
    right = [np.tile(numbers, len(numbers)), bits(dtype, count, generator), np.concatenate(b).astype(dtype)]
    return np.concatenate(left), np.concatenate(right)


# The law ----------------------------------------------------------------------------------------------------


def slack(dtype):
    """What the reference itself may be wrong, where it has no more digits than the result, or is made of one that has
    not."""
    return 0.0 if dtype is not np.float64 else 1.0 if np.finfo(np.longdouble).nmant > 52 else 3.0


@pytest.mark.parametrize("dtype", WIDE, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_errors_are_within_the_stated_units_in_the_last_place(name, dtype):
    bound32, bound64, function, reference = {**UNARY, **BINARY}[name]
    operands = (sample(dtype),) if name in UNARY else pairs(dtype)
    expected = np.asarray(reference(*(operand.astype(WIDE[dtype]) for operand in operands))).astype(WIDE[dtype])
    least = UNITS[name](*operands) if name in UNITS else 0.0
    bound = {np.float32: bound32, np.float64: bound64 + slack(dtype)}.get(dtype, SHORT_BOUND)
    for mode in (lambda function: function, mt.jit):
        result = mode(lambda *x: function(*x))(*map(mt.tensor, operands))
        found = np.array(result._value)
        error = errors(found, expected, least)
        largest = np.abs(found.astype(np.float64)) == float(ml_dtypes.finfo(dtype).max)
        error[largest & np.isinf(expected.astype(dtype).astype(np.float64))] = 1  # the next number is infinity
        worst = int(error.argmax())
        assert error[worst] <= bound, (*(operand[worst] for operand in operands), found[worst], expected[worst])


@pytest.mark.parametrize("dtype", [np.float16, np.float32], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", UNARY)
def test_derivatives_are_those_of_float64(name, dtype):
    """Of all functions of one number, over the whole range: no NaN or infinity where there is a derivative."""
    function, numbers = UNARY[name][2], sample(dtype)
    largest, tolerance = float(np.finfo(dtype).max), {np.float16: 2e-3, np.float32: 1e-5}[dtype]

    def derivative(x):
        x = x.detach().requires_grad_()
        return mt.autograd.grad(function(x).sum(), x)[0]

    expected = derivative(mt.tensor(numbers.astype(np.float64))).numpy()
    known = np.abs(expected) <= largest / 2  # where the value itself does not overflow
    if name == "gelu, tanh":
        known &= np.abs(numbers) < 1e12  # the cube of a larger one overflows, as in PyTorch
    for mode in (lambda function: function, mt.jit):
        found = mode(derivative)(mt.tensor(numbers)).numpy().astype(np.float64)
        error = np.abs(found - expected)[known] / np.maximum(1, np.abs(expected[known]))
        assert (error <= tolerance).all(), (numbers[known][np.argmax(~(error <= tolerance))], np.nanmax(error))


def test_the_derivative_of_expm1_keeps_its_digits():
    x = mt.tensor([-80.0, -20.0, -1.0, 0.0, 1.0])
    for function in (mt.expm1, F.elu):
        for mode in (lambda function: function, mt.jit):
            found = mode(mt.grad(lambda x, f=function: f(x).sum()))(x)
            expected = np.exp(np.minimum(x.numpy(), 0 if function is F.elu else 1))
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
