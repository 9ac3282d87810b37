"""Integer arithmetic is exact modulo 2**bits, in every type and every mode: Python's own integers are the reference."""

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import dtypes

INTEGERS = [dtype for dtype in dtypes.ALL if dtype.category == "int"]
MODES: dict[str, Callable[..., Any]] = {
    "eager": lambda function: function,
    "interpret": lambda function: mt.jit(function, backend="interpret"),
    "loops": lambda function: mt.jit(function, backend="loops"),
    "llvm": mt.jit,
    "llvm as traced": lambda function: mt.jit(function, passes=()),
}


def held(number, dtype):
    """An integer modulo 2**bits, as the type holds it."""
    return mt.tensor(number % 2**64 - 2**64 * (number % 2**64 >> 63)).to(dtype).item()


def samples(dtype):
    """Numbers near 0, near the ends of the range, and near where float32 and float64 run out of digits."""
    low, high = mt.iinfo(dtype).min, mt.iinfo(dtype).max
    near = [
        0,
        *(sign * (2**bits + by) for bits in (0, 1, 3, 6, 11, 24, 31, 53) for by in (-1, 0, 1) for sign in (-1, 1)),
    ]
    return sorted({min(high, max(low, number)) for number in [*near, low, low + 1, high - 1, high, 1001, -1001]})


def truncated(a, b):
    """Division towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **{f"x ** {power}": (lambda x, n=power: x**n, lambda x, n=power: x**n) for power in (0, 1, 2, 3, 4, 5, 7, 31, 64)},
    "x ** True": (lambda x: x**True, lambda x: x),
    "square": (mt.square, lambda x: x * x),
    "neg": (mt.neg, operator.neg),
    "abs": (mt.abs, abs),
    "sign": (mt.sign, lambda x: (x > 0) - (x < 0)),
    "round": (mt.round, lambda x: x),
    "x * 3 - 7": (lambda x: x * 3 - 7, lambda x: x * 3 - 7),
    "add, alpha=3": (lambda x: mt.add(x, x, alpha=3), lambda x: 4 * x),
    "addcmul": (lambda x: mt.addcmul(x, x, x, value=3), lambda x: x + 3 * x * x),
}
BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (mt.add, operator.add),
    "sub": (mt.sub, operator.sub),
    "mul": (mt.mul, operator.mul),
    "floor_divide": (mt.floor_divide, operator.floordiv),
    "remainder": (mt.remainder, operator.mod),
    "fmod": (mt.fmod, lambda a, b: a - b * truncated(a, b)),
    "div, trunc": (lambda a, b: mt.div(a, b, rounding_mode="trunc"), truncated),
    "maximum": (mt.maximum, max),
    "minimum": (mt.minimum, min),
    "less": (mt.lt, operator.lt),
    "equal": (mt.eq, operator.eq),
    "isclose": (lambda a, b: mt.isclose(a, b, rtol=0, atol=0), operator.eq),
}
ALONG: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {  # in int64
    "sum": (lambda x: x.sum(), sum),
    "prod": (lambda x: x.prod(), math.prod),
    "cumsum": (lambda x: x.cumsum(0), lambda x: list(itertools.accumulate(x))),
    "cumprod": (lambda x: x.cumprod(0), lambda x: list(itertools.accumulate(x, operator.mul))),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_functions_of_one_integer(dtype, mode):
    numbers = samples(dtype)
    results = MODES[mode](lambda x: [function(x) for function, _ in UNARY.values()])(mt.tensor(numbers, dtype=dtype))
    for result, (name, (_, exact)) in zip(results, UNARY.items(), strict=True):
        assert result.dtype is dtype, name
        assert result.tolist() == [held(exact(number), dtype) for number in numbers], name


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_functions_of_two_integers(dtype, mode):
    numbers = samples(dtype)[::2] if mode == "loops" else samples(dtype)
    pairs = [(a, b) for a, b in itertools.product(numbers, numbers) if b]
    operands = [mt.tensor(side, dtype=dtype) for side in zip(*pairs, strict=True)]
    results = MODES[mode](lambda a, b: [function(a, b) for function, _ in BINARY.values()])(*operands)
    for result, (name, (_, exact)) in zip(results, BINARY.items(), strict=True):
        wanted = [exact(a, b) for a, b in pairs]
        assert result.tolist() == [x if isinstance(x, bool) else held(x, dtype) for x in wanted], name


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_sums_and_products_of_integers(dtype, mode):
    numbers = samples(dtype)
    odd = [number | 1 for number in numbers]  # whose product does not become 0
    for given in (numbers, odd):
        x = mt.tensor(given, dtype=dtype)
        results = MODES[mode](lambda x: [function(x) for function, _ in ALONG.values()])(x)
        for result, (name, (_, exact)) in zip(results, ALONG.items(), strict=True):
            wanted = exact(given)
            wanted = [held(each, mt.int64) for each in (wanted if isinstance(wanted, list) else [wanted])]
            assert (result.dtype, result.reshape(-1).tolist()) == (mt.int64, wanted), name


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_matrix_products_of_integers(dtype, mode):
    random = np.random.default_rng(0)
    limits = mt.iinfo(dtype)
    a, b = (random.integers(limits.min, limits.max, size, dtype.numpy, endpoint=True) for size in ((3, 5), (5, 4)))
    exact = a.astype(object) @ b.astype(object)
    result = MODES[mode](mt.matmul)(mt.tensor(a), mt.tensor(b))
    assert result.tolist() == [[held(number, dtype) for number in row] for row in exact.tolist()]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_a_power_is_that_of_repeated_multiplication(dtype, mode):
    """With a tensor of exponents; to a negative power, 1 and -1 stay units, and everything else is 0, as in PyTorch."""
    numbers = samples(dtype)
    pairs = [*itertools.product(numbers, (0, 1, 2, 3, 8, 64, 127, -1, -2))]
    if not dtype.is_signed:
        pairs = [(a, b) for a, b in pairs if b >= 0]
    a, b = (mt.tensor(side, dtype=dtype) for side in zip(*pairs, strict=True))

    def exact(a, b):
        return a**b if b >= 0 else (0 if abs(a) != 1 else a**-b)

    assert MODES[mode](mt.pow)(a, b).tolist() == [held(exact(x, y), dtype) for x, y in pairs]


@pytest.mark.parametrize("mode", MODES)
def test_a_number_of_a_higher_category_decides_the_type_of_a_power(mode):
    for dtype in INTEGERS:
        for power, expected in ((0.5, [0.0, 1.0, 2.0]), (2.0, [0.0, 1.0, 16.0]), (3.0, [0.0, 1.0, 64.0])):
            result = MODES[mode](lambda x, power=power: x**power)(mt.tensor([0, 1, 4], dtype=dtype))
            assert (result.dtype, result.tolist()) == (mt.float32, expected)
    x = mt.tensor([False, True])
    for power, kind, wanted in ((3, mt.int64, [0, 1]), (0, mt.int64, [1, 1]), (True, mt.bool, [False, True])):
        result = MODES[mode](lambda x, power=power: x**power)(x)
        assert (result.dtype, result.tolist()) == (kind, wanted)
    for kind in (*INTEGERS, mt.bool):
        with pytest.raises(ValueError, match="fractions"):
            MODES[mode](lambda x: x**-1)(mt.ones(2, dtype=kind))
