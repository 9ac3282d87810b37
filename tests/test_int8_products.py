"""Products of 8-bit integers with 32-bit sums: NumPy's 64-bit integers modulo 2**32 are the reference, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import dtypes
from minitorch import primitives as P
from minitorch.dtypes import DType

Array = np.ndarray[Any, Any]
BYTES = (dtypes.uint8, dtypes.int8)
PAIRS = [(left, right) for left in BYTES for right in BYTES]


def numbers(shape: tuple[int, ...], dtype: DType, seed: int = 0) -> Array:
    """Random numbers, half of them at the ends of the range, where sums of pairs do not fit into 16 bits."""
    random = np.random.default_rng(seed)
    ends = np.iinfo(dtype.numpy)
    drawn = random.integers(ends.min, ends.max, shape, endpoint=True)
    return np.where(random.random(shape) < 0.5, random.choice([ends.min, ends.max], shape), drawn).astype(dtype.numpy)


def held(number: int, dtype: DType) -> int:
    """An integer as the type holds it."""
    bits = 8 * dtype.itemsize
    rest = int(number) % 2**bits
    return rest - 2**bits * (dtype.is_signed and rest >= 2 ** (bits - 1))


def product(a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
    return P.dot(a, b, dtype=dtypes.int32)


def expected(a: Array, b: Array) -> Array:
    return np.matmul(a.astype(np.int64), b.astype(np.int64)).astype(np.int32)


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("backend", ["eager", "interpret", "llvm"])
def test_a_product_is_that_of_integers(left: DType, right: DType, backend: str) -> None:
    function: Any = product if backend == "eager" else mt.jit(product, backend=backend)
    for m, k, n in ((1, 1, 1), (3, 7, 5), (6, 258, 33), (5, 300, 17), (2, 515, 9)):
        a, b = numbers((m, k), left, m), numbers((k, n), right, n)
        found = function(mt.tensor(a), mt.tensor(b))
        assert found.dtype is dtypes.int32
        assert np.array_equal(found.numpy(), expected(a, b)), (m, k, n)


@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_a_sum_wraps_around(backend: str) -> None:
    """33026 products of 255 * 255 are more than 2**31."""
    a, b = mt.full((1, 33026), 255, dtype=mt.uint8), mt.full((33026, 2), 255, dtype=mt.uint8)
    function: Any = product if backend == "eager" else mt.jit(product)
    assert function(a, b).tolist() == [[33026 * 255 * 255 - 2**32] * 2]


@pytest.mark.parametrize("dtype", [each for each in dtypes.ALL if each.category == "int"])
def test_eager_products_of_all_integers_are_exact(dtype: DType) -> None:
    """Where no float is sure to be exact, NumPy's own integer loops are."""
    ends = np.iinfo(dtype.numpy)
    a = np.full((2, 300), ends.max, dtype.numpy)
    a[0, 1::2] = ends.min
    found = P.dot(mt.tensor(a), mt.tensor(a.T.copy()), dtype=dtype).numpy()
    exact = np.matmul(a.astype(object), a.T.astype(object))
    assert [[each.item() for each in row] for row in found] == [[held(each, dtype) for each in row] for row in exact]


def test_a_mixed_product_is_text_and_back() -> None:
    text = "graph f(a: u8[2,3,4], b: i8[2,4,5]):\n  %0 = dot(a, b, dtype=i32) : i32[2,3,5]\n  return %0"
    graph = mt.Graph.parse(text)
    assert mt.Graph.parse(str(graph)).nodes[-1].dtype is dtypes.int32 and "dot(a, b, dtype=i32) : i32[2,3,5]" in str(
        graph
    )


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.int64, dtypes.float32])
def test_mixed_types_have_sums_in_int32(dtype: DType) -> None:
    with pytest.raises(mt.errors.DTypeError, match=f"take the sums in int32, not {dtype.name}"):
        mt.jit(lambda a, b: P.dot(a, b, dtype=dtype))(mt.ones(2, 2, dtype=mt.uint8), mt.ones(2, 2, dtype=mt.int8))


def test_other_mixtures_are_refused() -> None:
    with pytest.raises(mt.errors.DTypeError, match="convert one of them first"):
        mt.jit(product)(mt.ones(2, 2, dtype=mt.int16), mt.ones(2, 2, dtype=mt.int8))
