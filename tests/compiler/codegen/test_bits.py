"""A value that is computed in two places has the same bits in both: whatever it is fused with, in a lane, in the masked
rest of a row, or by itself. Comparisons of a value with what was stored of it rest on this.

`test_targets.py` runs this file for every processor whose code this machine can run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minitorch as mt
from minitorch import dtypes
from tests.support.graphs import same_bits

Tensor = mt.Tensor
FLOATS = (mt.float32, mt.float64, mt.float16, mt.bfloat16)


def numbers(*shape: int, dtype: mt.DType = mt.float32, seed: int = 0) -> Tensor:
    """Numbers of many sizes."""
    random = np.random.default_rng(seed)
    values = random.normal(size=shape) * np.exp2(random.integers(-3, 4, shape))
    return mt.tensor(values, dtype=mt.float64).to(dtype)


def assert_same(found: Tensor, expected: Tensor, where: object) -> None:
    a, b = np.asarray(found.numpy()), np.asarray(expected.numpy())
    if not same_bits(a, b):
        different = np.argwhere((a != b) & ~((a != a) & (b != b)))
        raise AssertionError(
            f"{where}: {len(different)} of {a.size} differ, the first at {different[0]}: "
            f"{a[tuple(different[0])]!r}, {b[tuple(different[0])]!r}"
        )


# One expression in many nests -----------------------------------------------------------------------------------------

# Functions of two matrices. The first group is arithmetic that IEEE 754 defines: eager mode has its bits too.
ARITHMETIC: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "product and sum": lambda x, y: x * y + 0.3,
    "sum of products": lambda x, y: x * y - y * 0.7 + x * x,
    "polynomial": lambda x, y: ((x * 0.1 + 1.7) * x - 0.9) * y + 2.1,
    "difference of products": lambda x, y: x * y - x * y,
    "quotients": lambda x, y: (x * 3 + 1) / (y * y + 0.1) - x / 7,
    "roots": lambda x, y: (x * x + y * y + 1).sqrt() * x - y,
    "choices": lambda x, y: mt.where(x * y + 0.1 > 0, x * 1.1 + y, y * x - 0.1).maximum(x * y),
    "floors": lambda x, y: (x * 1.7 + y).floor() - (y * 3.3 - x).trunc() + abs(x * y - 1),
    "casts": lambda x, y: (x * y + 0.3).to(mt.float16).to(x.dtype) * y + (x * 1.3 - y).to(mt.bfloat16).to(x.dtype),
    "integers": lambda x, y: (x * 900 + y * 7).to(mt.int32).to(x.dtype) * 0.1 + (x * 99).to(mt.int64).to(x.dtype),
}
FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "exponentials": lambda x, y: (x * 0.3 - abs(y)).exp() * y - (-abs(x * y)).expm1(),
    "logarithms": lambda x, y: (x * x + 0.1).log() * y + (y * y).log1p(),
    "tangents": lambda x, y: (x * 0.7 + y).tanh() * x + mt.atan2(x * y, y + 0.2),
    "waves": lambda x, y: (x * 3 + y).sin() * y - (y * 5 - x).cos(),
    "powers": lambda x, y: (abs(x) + 0.1) ** (y * 0.3) + (x * y).erf(),
    "remainders": lambda x, y: (x * 5 + y) % (y * 0.7) + (x * 3) // (abs(y) + 0.2),
    "gelu": lambda x, y: mt.nn.functional.gelu(x * y + 0.3) * 0.7 + y,
}
EXPRESSIONS = ARITHMETIC | FUNCTIONS


def where_number(condition: Tensor, value: Tensor) -> Tensor:
    """The value, where something else in the kernel is a number, as it is everywhere."""
    return mt.where(condition == condition, value, 7)


# What else is in the kernel, and which way lanes run. Each takes the expression and its operands, m×n, and gives what
# must be the value of the expression.
PLACES: dict[str, Callable[[Callable[[Tensor, Tensor], Tensor], Tensor, Tensor], Any]] = {
    "transposed": lambda e, x, y: e(x.T, y.T).T,
    "turned": lambda e, x, y: e(x.T.contiguous().T, y),
    "beside its sum over rows": lambda e, x, y: (e(x, y), e(x, y).sum(0)),
    "beside its sum over columns": lambda e, x, y: (e(x, y), e(x, y).sum(1), e(x, y).amax(1)),
    "after a sum": lambda e, x, y: where_number(x.sum(1, keepdim=True), e(x, y)),
    "after a sum over rows": lambda e, x, y: where_number(x.sum(0, keepdim=True), e(x, y)),
    "beside other functions of its parts": lambda e, x, y: (e(x, y), x * y, x * y + 1, x * 0.3, x * x + y * y, y * 3),
    "in an epilogue": lambda e, x, y: where_number(x @ mt.ones(x.shape[1], x.shape[1], dtype=x.dtype), e(x, y)),
    "packed on the left": lambda e, x, y: e(x, y) @ mt.eye(x.shape[1], dtype=x.dtype),
    "packed on the right": lambda e, x, y: mt.eye(x.shape[0], dtype=x.dtype) @ e(x, y),
    "summed alone": lambda e, x, y: e(x.unsqueeze(-1), y.unsqueeze(-1)).amax(-1),
    "as maxima of short rows": lambda e, x, y: mt.stack([e(x, y), e(x, y)], -1).amax(-1),
    "in parts": lambda e, x, y: mt.cat([e(x[:, :3], y[:, :3]), e(x, y)[:, 3:]], 1),
    "padded": lambda e, x, y: mt.nn.functional.pad(e(x, y), (1, 2, 3, 1))[3:-1, 1:-2],
    "stepped": lambda e, x, y: mt.stack([e(x, y)[:, ::2], e(x, y)[:, ::2]], -1)[..., 0],
    "in windows": lambda e, x, y: mt.nn.functional.max_pool2d(e(x, y)[None], 1, 1)[0],
    "looked up": lambda e, x, y: e(x, y)[mt.arange(x.shape[0])],
    "looked up in columns": lambda e, x, y: e(x[:, mt.arange(x.shape[1])], y),
    "in reverse": lambda e, x, y: e(x.flip(1), y.flip(1)).flip(1),
    "in a long row": lambda e, x, y: e(x.flatten(), y.flatten()).reshape(x.shape),
    "repeated": lambda e, x, y: e(x.unsqueeze(0).expand(3, *x.shape), y)[1],
    "with a repeated row": lambda e, x, y: mt.stack([e(x[row], y[row]) for row in range(2)]),
    "one by one": lambda e, x, y: mt.stack([e(x[0, column], y[0, column]) for column in range(3)]),
}
SHAPES = ((3, 5), (2, 37), (19, 16), (40, 3), (70, 7), (5, 600))


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_has_the_same_bits_wherever_it_stands(name: str, dtype: mt.DType, sweep: bool) -> None:
    """In every place with two of the four types, one of 16 bits and one that is longer; `--sweep` tries all four."""
    expression = EXPRESSIONS[name]
    known: dict[tuple[int, int], tuple[Tensor, ...]] = {}
    for number, (place, function) in enumerate(PLACES.items(), list(EXPRESSIONS).index(name)):
        if not sweep and (number + FLOATS.index(dtype)) % 2:
            continue
        shape = SHAPES[number % len(SHAPES)]
        if shape not in known:
            x, y = numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype, seed=1)
            known[shape] = x, y, mt.jit(expression)(x, y)
        x, y, expected = known[shape]
        found = mt.jit(lambda x, y, function=function: function(expression, x, y))(x, y)
        found = found[0] if isinstance(found, tuple) else found
        if place == "stepped":
            expected = expected[:, ::2]
        elif place == "one by one":
            expected = expected[0, :3]
        elif place.startswith("packed"):  # a sum with zeros: -0.0 becomes 0.0
            expected = expected + 0
        assert_same(found, expected[: found.shape[0]], (place, shape))
    if name in ARITHMETIC:
        for x, y, expected in known.values():
            assert_same(expression(x, y), expected, "eager")


BEYOND: tuple[float, ...]
BEYOND = (127.9, 128, -128.9, -129, 200, 255.9, 256, -1, 300, 32767.5, 32768, 65535, 2147483520.0, 2147483648.0)
BEYOND += (-2147483648.0, -3e9, 9.2e18, 9.3e18, -9.3e18, 1e30, -1e30, np.inf, -np.inf, np.nan, 0.5, -0.5)


@pytest.mark.parametrize("source", FLOATS, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    "target", [each for each in dtypes.ALL if each.category == "int"], ids=lambda dtype: dtype.name
)
def test_numbers_beyond_the_range_of_a_type_become_the_same_ones_everywhere(source: mt.DType, target: mt.DType) -> None:
    x = mt.tensor(BEYOND, dtype=mt.float64).to(source)
    convert = mt.jit(lambda x: x.to(target))
    expected = convert(x.unsqueeze(1).expand(len(BEYOND), 64))[:, 0]
    assert_same(convert(x), expected, "with a rest")
    assert_same(mt.stack([convert(x[number]) for number in range(len(BEYOND))]), expected, "alone")
    assert_same(x.to(target), expected, "eager")
    assert_same(mt.stack([x[number].to(target) for number in range(len(BEYOND))]), expected, "eager, alone")


# Where 16 bits overflow -----------------------------------------------------------------------------------------------

BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "add and mul": lambda x, y: (x + y) * y - x,
}
SUMS: dict[str, Callable[[Tensor], Tensor]] = {
    "rows": lambda x: x.sum(1),
    "columns": lambda x: x.T.contiguous().sum(0),
    "product": lambda x: x @ mt.ones(x.shape[1], 3, dtype=x.dtype),
}


def edges(dtype: mt.DType) -> Tensor:
    """Numbers of which two make the largest number, the first that is infinity, or a half of the gap between them."""
    largest = float(mt.finfo(dtype).max)
    gap = 2 * (largest - float(np.nextafter(dtype.numpy.type(largest), dtype.numpy.type(0))))
    sizes = [largest, largest - gap / 2, largest / 2, largest / 3, largest**0.5, largest**0.5 * 1.01, 255.875, 256.0]
    sizes += [gap * part for part in (1.0, 0.75, 0.5, 0.4999, 0.25, 0.125)] + [1.0, 0.999, 1.001, 2.0, 0.5, 0.0, np.inf]
    return mt.tensor([sign * size for size in sizes for sign in (1, -1)] + [np.nan], dtype=mt.float64).to(dtype)


@pytest.mark.parametrize("dtype", (mt.float16, mt.bfloat16), ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", BINARY)
def test_compiled_arithmetic_overflows_where_eager_mode_does(name: str, dtype: mt.DType) -> None:
    x = edges(dtype)[:, None].expand(-1, len(edges(dtype))).contiguous()
    y = x.T.contiguous()
    expected = BINARY[name](x, y)
    assert_same(mt.jit(BINARY[name])(x, y), expected, name)
    assert expected.isinf().sum() > x.isinf().sum()  # some of them do


@pytest.mark.parametrize("length", (2, 7, 64, 1000))
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_float16_overflow_where_the_exact_sum_does(name: str, length: int) -> None:
    """That is from 65520 on. Sums on the way, in float32, may be larger than any float16."""
    largest, rest = 65504.0, length - 1
    firsts = ((largest, 24.0 / rest), (largest, 8.0 / rest), (-largest, -24.0 / rest), (largest, -largest / rest))
    rows = [[first] + [each] * rest for first, each in firsts]
    rows += [[largest / length] * length, [largest, largest] + [-largest] * (rest - 1), [largest] * length]
    x = mt.tensor(rows, dtype=mt.float64).half()
    expected = x.double().sum(1).half().isfinite().tolist()
    for mode in (SUMS[name], mt.jit(SUMS[name])):
        found = mode(x).reshape(len(rows), -1)[:, 0]
        assert found.isfinite().tolist() == expected


# Values beside what was stored of them -----------------------------------------------------------------------------

POINTWISE: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    lambda a, b: a * b + 0.3,
    lambda a, b: a * 0.7 - b * b,
    lambda a, b: a / (abs(b) + 0.3),
    lambda a, b: (a * 0.5).tanh() + b,
    lambda a, b: (a - abs(b)).exp() - a,
    lambda a, b: (a * a + b * b + 0.1).sqrt(),
    lambda a, b: mt.where(a > b, a * 1.3, b - a * a),
    lambda a, b: a.sigmoid() * b + a,
)
ROWS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda a: a / (abs(a).sum(-1, keepdim=True) + 0.1),
    lambda a: a - a.mean(-1, keepdim=True),
    lambda a: a.softmax(-1),
    lambda a: mt.nn.functional.layer_norm(a, a.shape[-1:]),
    lambda a: a / a.amax(-1, keepdim=True),
    lambda a: a * a.std(-1, keepdim=True) + 0.1,
    lambda a: a - a.sum(0) * 0.3,
    lambda a: a + (a * a).sum(),
    lambda a: mt.nn.functional.pad(a, (1, 1))[:, 2:],
    lambda a: (a @ a.T * 0.1).softmax(-1) @ a,
)


@st.composite
def programs(draw: Any) -> Callable[[Tensor, Tensor, Tensor], list[Tensor]]:
    """A function of a matrix, a row and a column that gives all matrices on the way, random from all that is above."""
    steps = draw(
        st.lists(
            st.tuples(st.integers(0, len(POINTWISE) + len(ROWS) - 1), st.integers(0, 9), st.integers(0, 9)),
            min_size=1,
            max_size=5,
        )
    )

    def program(x: Tensor, row: Tensor, column: Tensor) -> list[Tensor]:
        found = [x * row + column]
        others = [x, row, column]
        for choice, first, second in steps:
            a, b = found[first % len(found)], (others + found)[second % (len(found) + 3)]
            found.append(POINTWISE[choice](a, b) if choice < len(POINTWISE) else ROWS[choice - len(POINTWISE)](a))
        return found

    return program


shapes = st.sampled_from(((3, 5), (2, 300), (5, 70), (40, 7), (300, 7), (17, 33), (64, 64)))


@settings(max_examples=60, deadline=None)
@given(programs(), shapes, st.sampled_from(FLOATS), st.integers(0, 5), st.sampled_from((0, 1, None)))
def test_a_maximum_is_among_the_values_that_it_was_taken_of(
    program: Any, shape: tuple[int, int], dtype: mt.DType, which: int, dim: int | None
) -> None:
    """Of every intermediate value of a random program, and its gradient arrives where the maxima are."""
    operands = (
        numbers(*shape, dtype=dtype),
        numbers(shape[1], dtype=dtype, seed=1),
        numbers(shape[0], 1, dtype=dtype, seed=2),
    )
    shift = mt.zeros(1, dtype=dtype, requires_grad=True)

    def compared(shift: Tensor, *operands: Tensor) -> tuple[Tensor, ...]:
        values = program(*operands)
        value = values[which % len(values)]
        value = value + shift
        if dim is None:
            largest = value.amax()
            hit = (value == largest).any() | (value != value).any()
            rest = (value - largest).amax()
        else:
            largest = value.amax(dim, keepdim=True)
            hit = ((value == largest).any(dim) | (value != value).any(dim)).all()
            rest = (value - largest).amax(dim)
        (gradient,) = mt.autograd.grad(largest.sum(), [shift])
        return hit, rest, gradient, largest

    hit, rest, gradient, largest = mt.jit(compared)(shift, *operands)
    assert hit.item()
    finite = mt.isfinite(largest).flatten()
    assert (rest.flatten()[finite] == 0).all().item()
    if finite.all().item() and dtype in (mt.float32, mt.float64):
        np.testing.assert_allclose(gradient.numpy(), [largest.numel()], rtol=1e-5)
