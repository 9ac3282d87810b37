"""Memory access of generated kernels: transposed tiles, strided loads, rows at indices that are data."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.compiler.codegen import machine
from minitorch.compiler.codegen.emit import emit
from minitorch.compiler.codegen.host import host
from minitorch.compiler.kernels.ledger import ledger_of
from minitorch.compiler.loop_ir.loops import LoopKernel
from minitorch.compiler.loop_ir.source import run
from minitorch.compiler.scheduling.schedules.choice import scheduled, units
from minitorch.compiler.target import Target
from minitorch.nn import functional as F
from tests.support.graphs import assert_close
from tests.support.helpers import of_all_widths

Array = np.ndarray[Any, Any]
TYPES = [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_]
MARGIN = 64  # elements before and after an array, which must stay as they are


def kernels(function: Callable[..., Any], *tensors: mt.Tensor) -> tuple[list[Any], dict[Any, Array]]:
    """The generated kernels of a function, and what its inputs hold."""
    graph = mt.jit(function, backend="llvm").stages(*tensors).graph
    found = [kernel for kernel in ledger_of(graph, host()).kernels if kernel.loops is not None]
    return found, {node: tensor.numpy() for node, tensor in zip(graph.inputs, tensors, strict=True)}


def run_units(loops: LoopKernel, target: Target, buffers: list[Array]) -> None:
    """Compile a kernel for a target, and run its units one by one, the last one first."""
    parts = scheduled(loops, target)
    code = machine.compile_ir(emit(parts, target), target)
    function = machine.load(code, "kernel").function("kernel")
    trouble = ctypes.c_int64(0)
    places = [buffer.ctypes.data for buffer in buffers]
    table = (ctypes.c_void_p * (len(buffers) + 1))(*places, ctypes.addressof(trouble))
    for unit in reversed(range(units(parts))):
        function(ctypes.addressof(table), unit, unit + 1)
    assert not trouble.value


def check(function: Callable[..., Any], *tensors: mt.Tensor, scattered: bool = False) -> None:
    """One kernel with vectors of any size computes what the slow reference computes, and writes nowhere else."""
    (kernel,), known = kernels(function, *tensors)
    expected = [np.zeros(node.spec.size, node.dtype.numpy) for node in kernel.buffers]
    for place, node in enumerate(kernel.buffers):
        if node not in kernel.writes:
            expected[place] = known[node].reshape(-1)
    inputs = [array.copy() for array in expected]
    run(kernel.loops, expected)
    for target in of_all_widths():
        text = emit(scheduled(kernel.loops, target), target)
        assert scattered or not re.search(r"masked\.(gather|scatter)", text)
        memory = [np.full(array.size + 2 * MARGIN, 1, array.dtype) for array in inputs]
        buffers = [wide[MARGIN : MARGIN + array.size] for wide, array in zip(memory, inputs, strict=True)]
        for buffer, array in zip(buffers, inputs, strict=True):
            buffer[:] = array
        run_units(kernel.loops, target, buffers)
        for node, wide, found, value in zip(kernel.buffers, memory, buffers, expected, strict=True):
            assert_close(found, value, (node, target.vector_bytes))
            assert (wide[:MARGIN] == 1).all() and (wide[-MARGIN:] == 1).all(), "written outside"


def numbers(*shape: int, dtype: Any = np.float32) -> mt.Tensor:
    """Small numbers of any type."""
    return mt.from_numpy(np.random.default_rng(0).integers(0, 9, shape).astype(dtype))


@pytest.mark.parametrize(
    "shape, dtype",
    [((37, 19), dtype) for dtype in TYPES]
    + [(shape, np.float32) for shape in ((5, 7), (16, 16), (67, 31), (1, 7), (7, 1), (140, 33), (33, 140), (0, 5))],
)
def test_a_transpose_gathers_nothing(shape: tuple[int, int], dtype: Any) -> None:
    m, n = shape
    if not m * n:
        assert mt.jit(lambda x, y: x.permute(1, 0) + y)(numbers(m, n), numbers(n, m)).shape == (n, m)
        return
    check(lambda x, y: x.permute(1, 0) + y, numbers(m, n, dtype=dtype), numbers(n, m, dtype=dtype))


@pytest.mark.parametrize("dims", [(0, 2, 1), (2, 1, 0)])
def test_a_transpose_of_three_dimensions(dims: tuple[int, ...]) -> None:
    check(lambda x: x.permute(*dims) * 2, numbers(13, 17, 19))


def test_what_runs_backwards_and_in_steps() -> None:
    x, y = numbers(34, 37), numbers(37, 34)
    check(lambda x, y: x.flip(0).permute(1, 0) + y, x, y)
    check(lambda x, y: x.flip((0, 1)).permute(1, 0) + y, x, y)
    check(lambda x: x.flip(1) * 2, x)
    check(lambda x: x[:, ::2] * 2 + x[:, ::2].flip(1), x)
    check(lambda x: x[:, 1::3] * 2 + x[::1, 1::3].flip(1), x)
    check(lambda x: x[:, ::4] * 2, x)
    check(lambda x: x[:, ::5] * 2, x, scattered=True)


@pytest.mark.parametrize("columns", [1, 3, 10, 16, 31])
@pytest.mark.parametrize("rows", [133])
def test_many_short_rows(rows: int, columns: int) -> None:
    """Every lane has a row of its own, and yet no lane reads or writes by itself."""
    x = mt.from_numpy(np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32))
    check(lambda x: x.softmax(-1), x)
    check(lambda x: x.log_softmax(-1), x)
    check(lambda x, w: F.layer_norm(x, x.shape[-1:], w), x, x[0])


def test_rows_of_a_transpose() -> None:
    x = mt.from_numpy(np.random.default_rng(0).normal(size=(83, 97)).astype(np.float32))
    check(lambda x: x.permute(1, 0).softmax(-1), x)
    check(lambda x: x.softmax(0).permute(1, 0) * 2, x)


def test_a_row_at_an_index_is_looked_up_once() -> None:
    """The one check of an index stands where rows begin: for it, and for a row further on."""
    table, places = numbers(50, 40), numbers(30, dtype=np.int64)
    (kernel,), _ = kernels(lambda i, t: F.layer_norm(F.embedding(i, t), (40,)), places, table)
    text = emit(kernel.scheduled, host())
    assert len(re.findall(r"store i64 .*", text)) == 2 and "llvm.prefetch" in text
    check(lambda i, t: F.layer_norm(F.embedding(i, t), (40,)), places, table)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_quotient_by_a_sum_is_a_division(dtype: Any) -> None:
    """To the bit, for sums of any size."""
    limits = np.finfo(dtype)
    special = [0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal]
    a = np.array([*special, *np.random.default_rng(0).normal(size=7)], dtype)
    sums = np.array([*special, *np.random.default_rng(1).normal(size=8)], dtype)
    function = mt.jit(lambda a, b: a[None, :] / b.sum(1, keepdim=True) + 0 * b, backend="llvm")
    b = np.zeros((len(sums), len(a)), dtype)
    b[:, 3] = sums
    with np.errstate(all="ignore"):
        expected = a / b.sum(1, keepdims=True) + 0 * b
    found = function(mt.from_numpy(a), mt.from_numpy(b)).numpy()
    np.testing.assert_array_equal(found, expected)


def test_a_sum_of_one_term_beside_a_turned_square() -> None:
    """An outer product that is stored transposed: every lane has a sum of its own."""
    a, b = mt.randn(2, 8, 1), mt.randn(2, 9, 1)
    found = mt.jit(lambda a, b: (a @ b.mT).mT.contiguous())(a, b)
    assert np.array_equal(found.numpy(), (a @ b.mT).mT.numpy())
