"""The type of a result: three priorities, and numbers that do not fit."""

import itertools
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import dtypes
from minitorch.functional.operands import promote, promote_all
from minitorch.functional.options import wrap_dim, wrap_dims

ORDER = {"bool": 0, "int": 1, "float": 2}

# What PyTorch 2 answers (torch.result_type), "-" where it refuses. Rows are the left operand, columns the right one;
# the title says whether they are tensors with a dimension ("full") or without any ("0-d"); numbers are Python's own.
# test_torch_promotion.py makes these tables again.
TABLES = {
    "full, full": """
              bool  u8    i8    i16   i32   i64   u32   f16   bf16  f32   f64
        bool  bool  u8    i8    i16   i32   i64   -     f16   bf16  f32   f64
        u8    u8    u8    i16   i16   i32   i64   -     f16   bf16  f32   f64
        i8    i8    i16   i8    i16   i32   i64   -     f16   bf16  f32   f64
        i16   i16   i16   i16   i16   i32   i64   -     f16   bf16  f32   f64
        i32   i32   i32   i32   i32   i32   i64   -     f16   bf16  f32   f64
        i64   i64   i64   i64   i64   i64   i64   -     f16   bf16  f32   f64
        u32   -     -     -     -     -     -     u32   f16   bf16  f32   f64
        f16   f16   f16   f16   f16   f16   f16   f16   f16   f32   f32   f64
        bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  f32   bf16  f32   f64
        f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f64
        f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64
    """,
    "full, 0-d": """
              bool  u8    i8    i16   i32   i64   u32   f16   bf16  f32   f64   True  1     1.5
        bool  bool  u8    i8    i16   i32   i64   -     f16   bf16  f32   f64   bool  i64   f32
        u8    u8    u8    u8    u8    u8    u8    u8    f16   bf16  f32   f64   u8    u8    f32
        i8    i8    i8    i8    i8    i8    i8    i8    f16   bf16  f32   f64   i8    i8    f32
        i16   i16   i16   i16   i16   i16   i16   i16   f16   bf16  f32   f64   i16   i16   f32
        i32   i32   i32   i32   i32   i32   i32   i32   f16   bf16  f32   f64   i32   i32   f32
        i64   i64   i64   i64   i64   i64   i64   i64   f16   bf16  f32   f64   i64   i64   f32
        u32   u32   u32   u32   u32   u32   u32   u32   f16   bf16  f32   f64   u32   u32   f32
        f16   f16   f16   f16   f16   f16   f16   f16   f16   f16   f16   f16   f16   f16   f16
        bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16
        f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32
        f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64
    """,
    "0-d, 0-d": """
              bool  u8    i8    i16   i32   i64   u32   f16   bf16  f32   f64   True  1     1.5
        bool  bool  u8    i8    i16   i32   i64   -     f16   bf16  f32   f64   bool  i64   f32
        u8    u8    u8    i16   i16   i32   i64   -     f16   bf16  f32   f64   u8    u8    f32
        i8    i8    i16   i8    i16   i32   i64   -     f16   bf16  f32   f64   i8    i8    f32
        i16   i16   i16   i16   i16   i32   i64   -     f16   bf16  f32   f64   i16   i16   f32
        i32   i32   i32   i32   i32   i32   i64   -     f16   bf16  f32   f64   i32   i32   f32
        i64   i64   i64   i64   i64   i64   i64   -     f16   bf16  f32   f64   i64   i64   f32
        u32   -     -     -     -     -     -     u32   f16   bf16  f32   f64   u32   u32   f32
        f16   f16   f16   f16   f16   f16   f16   f16   f16   f32   f32   f64   f16   f16   f16
        bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  f32   bf16  f32   f64   bf16  bf16  bf16
        f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   f64   f32   f32   f32
        f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64   f64
    """,
}


def answers(title):
    """Left name, right name, PyTorch's answer."""
    head, *rows = TABLES[title].strip("\n").splitlines()
    for left, *cells in map(str.split, filter(str.strip, rows)):
        yield from ((left, right, answer) for right, answer in zip(head.split(), cells, strict=True))


def operand(name, kind):
    numbers = {"True": True, "1": 1, "1.5": 1.5}
    return numbers.get(name) or mt.ones(2 if kind == "full" else (), dtype=dtypes.BY_SHORT_NAME[name])


@pytest.mark.parametrize("title", TABLES)
def test_types_of_results_are_those_of_pytorch(title):
    left_kind, right_kind = title.split(", ")
    for left, right, answer in answers(title):
        if answer == "-":
            assert "u32" in (left, right)  # PyTorch has no promotion for it; here it is defined
            continue
        a, b = operand(left, left_kind), operand(right, right_kind)
        assert mt.result_type(a, b).short == mt.result_type(b, a).short == answer, (left, right)
        assert (a * b).dtype.short == answer
        if title == "full, full":
            assert mt.promote_types(a.dtype, b.dtype).short == answer


@pytest.mark.parametrize("a", dtypes.ALL, ids=repr)
def test_laws_of_promote_types(a):
    for b in dtypes.ALL:
        joined = mt.promote_types(a, b)
        assert joined is mt.promote_types(b, a)
        assert mt.promote_types(joined, a) is joined and mt.promote_types(joined, b) is joined
        assert ORDER[joined.category] == max(ORDER[a.category], ORDER[b.category])


@pytest.mark.parametrize("full", dtypes.ALL, ids=repr)
def test_lower_priorities_decide_only_by_category(full):
    tensor = mt.ones(2, dtype=full)
    for other in dtypes.ALL:
        result = mt.result_type(tensor, mt.ones((), dtype=other))
        assert result is (full if ORDER[other.category] <= ORDER[full.category] else mt.promote_types(full, other))
    for number in (True, 1, 1.0):
        own = dtypes.PYTHON_TYPES[type(number)]
        assert mt.result_type(tensor, number) is mt.result_type(tensor, mt.tensor(number, dtype=own))


def test_operations_compute_in_the_result_type():
    values: list[Any] = [mt.ones(2, dtype=a) for a in dtypes.ALL] + [mt.ones((), dtype=a) for a in dtypes.ALL]
    for a, b in itertools.product(values, values):
        if isinstance(a, mt.Tensor) or isinstance(b, mt.Tensor):
            expected = mt.result_type(a, b)
            assert (a * b).dtype is (a + b).dtype is expected
            assert (a / b).dtype is (expected if expected.is_floating_point else mt.float32)
            assert mt.eq(a, b).dtype is mt.bool


def test_numbers_are_constants_of_the_tensors_type():
    for a, b in ((mt.ones(2, dtype=mt.float16), 3), (mt.ones(2, dtype=mt.int8), True), (2.5, mt.ones(2))):
        x, y = promote(a, b)
        assert x.dtype is y.dtype
    assert [x.dtype for x in promote_all(mt.ones(2, dtype=mt.int8), 2, 0.5)] == [mt.float32] * 3


@pytest.mark.parametrize(("dtype", "number", "expected"), [("uint8", 300, 44), ("uint8", -1, 255), ("int8", 200, -56)])
def test_integers_that_do_not_fit_wrap_around(dtype, number, expected):
    assert (mt.zeros(1, dtype=dtype) + number).tolist() == [expected]


def test_numpy_operands():
    x = mt.ones(2, dtype=mt.float16)
    assert (x + np.float64(1)).dtype is mt.float16  # a NumPy number is a number
    assert (x + np.ones(2)).dtype is mt.float64
    assert (np.ones(2, np.float32) + mt.ones(2)).tolist() == [2, 2]
    assert isinstance(np.float32(2) * mt.ones(2), mt.Tensor)


@pytest.mark.parametrize("other", [[1, 2], None, "1"])
def test_other_operands_are_refused(other):
    for operator in ("__add__", "__radd__", "__sub__", "__lt__", "__and__", "__eq__"):
        assert getattr(mt.ones(2), operator)(other) is NotImplemented
    with pytest.raises(TypeError):
        mt.ones(2) + other
    with pytest.raises(TypeError):
        mt.add(mt.ones(2), other)
    assert (mt.ones(2) == other) is False


def test_types_without_arithmetic():
    b = mt.tensor([True])
    operations = (
        mt.neg,
        mt.abs,
        lambda b: b - b,
        lambda b: b // b,
        lambda b: b % b,
        lambda b: b**b,
        lambda b: mt.fmod(b, b),
    )
    for operation in operations:
        with pytest.raises(TypeError, match="MT202"):
            operation(b)
    for operation in (mt.bitwise_not, lambda x: x & x, lambda x: x << 1, lambda x: mt.where(x, 1, 0)):
        with pytest.raises(TypeError, match="MT202"):
            operation(mt.ones(1))


def test_dims():
    assert wrap_dim(-1, 3) == 2 and wrap_dim(0, 0) == 0 and wrap_dim(-1, 0) == 0
    assert wrap_dims(None, 3) == (0, 1, 2) and wrap_dims((-1, 0), 3) == (0, 2) and wrap_dims(-1, 0) == ()
    for dim, ndim in ((3, 3), (-4, 3), (1, 0)):
        with pytest.raises(IndexError, match="Dimension out of range"):
            wrap_dim(dim, ndim)
    with pytest.raises(IndexError, match="more than once"):
        wrap_dims((0, -2), 2)
    with pytest.raises(TypeError):
        wrap_dim(1.0, 2)  # type: ignore[arg-type]
