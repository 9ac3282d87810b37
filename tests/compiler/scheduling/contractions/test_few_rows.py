"""A few rows times `w.T`: the matrix is read where it lies, and nothing is packed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import dtypes
from minitorch import primitives as P
from minitorch.compiler.codegen.host import executable_targets, host
from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.target import TARGETS, Target

Array = np.ndarray[Any, Any]
ALL: dict[str, Target] = TARGETS | {"native": host()}


def integers(a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
    return P.dot(a, b.T, dtype=dtypes.int32)


def floats(a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
    return mt.nn.functional.relu(a @ b.T + 1)


def drawn(m: int, n: int, k: int, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    ends = random.choice([0, 255], (m, k)), random.choice([-128, 127], (n, k))
    return ends[0].astype(np.uint8), ends[1].astype(np.int8)


def kernel_of(function: Any, arrays: tuple[Array, Array], target: str) -> Kernel:
    (kernel,) = mt.jit(function).ledger(*map(mt.tensor, arrays)).for_target(ALL[target]).kernels
    return kernel


@pytest.mark.parametrize("target", [name for name in ALL if "sse2" in ALL[name].required])
@pytest.mark.parametrize("rows", [2, 3, 4, 5])
def test_two_to_four_rows_of_integers_pack_nothing(rows: int, target: str) -> None:
    kernel = kernel_of(integers, drawn(rows, 64, 256, 0), target)
    packs = [each.name for each in kernel.schedule if each.name == "pack"]
    assert bool(packs) == (rows == 5), kernel.schedule


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_few_rows_of_any_type_have_a_schedule(dtype: mt.DType) -> None:
    """Products of few rows are judged by their type; that of bools is neither int nor float."""
    for m, n, k in itertools.product((2, 3), (2, 5), (7, 8, 64)):
        a, b = (mt.from_numpy(np.random.default_rng(m).integers(0, 2, shape)).to(dtype) for shape in ((m, k), (n, k)))
        found = mt.jit(mt.inner)(a, b)
        assert found.dtype is dtype and np.array_equal(found.double().numpy(), mt.inner(a, b).double().numpy())


@pytest.mark.parametrize("target", executable_targets())
def test_integers_are_exact(target: str) -> None:
    random = np.random.default_rng(7)
    for turn in range(8):
        m, n, k = int(random.integers(2, 5)), int(random.integers(5, 40)), 64 * int(random.integers(1, 9))
        arrays = drawn(m, n, k, turn)
        found = kernel_of(integers, arrays, target).steps[-1](*arrays).numpy()
        assert np.array_equal(found, arrays[0].astype(np.int32) @ arrays[1].astype(np.int32).T), (m, n, k)


@pytest.mark.parametrize("target", executable_targets())
@pytest.mark.parametrize("n", [1040, 1031])
def test_two_rows_of_floats_and_their_epilogue(n: int, target: str) -> None:
    random = np.random.default_rng(n)
    a, b = random.standard_normal((2, 1024)).astype(np.float32), random.standard_normal((n, 1024)).astype(np.float32)
    kernel = kernel_of(floats, (a, b), target)
    assert "pack" not in [each.name for each in kernel.schedule]
    expected = np.maximum(a.astype(np.float64) @ b.T + 1, 0)
    np.testing.assert_allclose(kernel.steps[-1](a, b).numpy(), expected, atol=1e-3)
    assert b.nbytes > 1 << 22
    small = kernel_of(floats, (a[:, :64].copy(), b[:, :64].copy()), target)
    assert "pack" in [each.name for each in small.schedule]
