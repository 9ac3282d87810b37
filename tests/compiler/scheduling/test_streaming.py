"""Results that no cache holds are written past the caches: which ones, and that they are right wherever rows begin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minitorch as mt
from minitorch.compiler.codegen.host import host
from minitorch.compiler.scheduling import streaming
from minitorch.compiler.target import LINE, TARGETS
from minitorch.graph import Graph
from tests.support import graphs as random_graphs
from tests.support.graphs import assert_compiled_agrees
from tests.support.helpers import made_for

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def _always(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The last cache holds nothing, and streaming always pays, unless a test says otherwise."""
    if "as_it_is" in request.fixturenames:
        yield
        return
    first, second, _ = host().caches
    with made_for(caches=(first, second, 0)):
        monkeypatch.setattr(streaming, "LONG_ROW", 4)
        monkeypatch.setattr(streaming, "LONG_RUN", 0)
        yield


@pytest.fixture
def as_it_is() -> None:
    """The rule for this machine."""


def streamed_stores(function: Any, *arguments: mt.Tensor) -> list[bool]:
    """Of each kernel, whether it has stores past the caches."""
    return ["!nontemporal" in kernel.llvm for kernel in function.ledger(*arguments).kernels]


@pytest.mark.usefixtures("as_it_is")
def test_only_what_a_cache_does_not_hold():
    rows = host().caches[2] // (4 * 1024)
    double = mt.jit(lambda x: x * 2, backend="llvm")
    assert streamed_stores(double, mt.zeros(rows, 1024)) == [True]
    assert streamed_stores(double, mt.zeros(rows // 8, 1024)) == [False]


def test_squares_in_registers_go_past_no_cache():
    """Short rows are transposed on the way: a square is written to registers, and from there past the caches."""
    wide = replace(TARGETS["avx512"], caches=(*TARGETS["avx512"].caches[:2], 0))
    x = mt.zeros(1024, 16)
    (kernel,) = mt.jit(lambda x: x.softmax(-1)).ledger(x).for_target(wide).kernels
    assert "regroup" in repr(kernel.schedule) and "!nontemporal" in kernel.llvm


@pytest.mark.usefixtures("as_it_is")
def test_not_what_is_small_beside_what_it_is_made_of():
    """Some rows of a large table, and sums over all of it: their readers find them in a cache."""
    table = mt.zeros(2 * host().caches[2] // 4096, 1024)
    few = mt.tensor(np.arange(64))
    assert streamed_stores(mt.jit(lambda x, at: x[at] * 2, backend="llvm"), table, few) == [False]
    assert streamed_stores(mt.jit(lambda x: x[5:69] * 2, backend="llvm"), table) == [False]
    assert streamed_stores(mt.jit(lambda x: x.amax(0), backend="llvm"), table) == [False]


@pytest.mark.usefixtures("as_it_is")
@pytest.mark.parametrize(
    ("shape", "function", "pays"),
    [
        ((1024,), lambda x: x - x.mean(-1, keepdim=True), True),
        ((1000,), lambda x: x - x.mean(-1, keepdim=True), False),  # a line at either end that is filled in part
        ((50257,), lambda x: x - x.mean(-1, keepdim=True), True),  # only two of three thousand
        ((16, 16, 32), lambda x: x.permute(0, 2, 1, 3) * 2, False),  # short runs, from here and there
        ((16, 16, 512), lambda x: x.permute(0, 2, 1, 3) * 2, True),
        ((1024,), lambda x: x.T * 2, True),
    ],
)
def test_whole_lines_one_after_another(shape, function, pays):
    if host().vector_bytes < LINE:
        pytest.skip("a vector is not a whole line")
    x = mt.zeros(-(-2 * host().caches[2] // (4 * math.prod(shape)) // 64) * 64, *shape)
    assert streamed_stores(mt.jit(function, backend="llvm"), x) == [pays]


def test_not_what_the_kernel_reads_itself():
    """A sum over everything is made of partial sums, which the same kernel puts together."""
    (kernel,) = mt.jit(lambda x: x.sum(), backend="llvm").ledger(mt.zeros(1 << 20)).kernels
    assert kernel.loops is not None
    assert [each.written for each in kernel.loops.buffers] == [False, True, True]
    *parts, whole = streaming.streamed(kernel.loops, kernel.target)
    assert set(parts) == {frozenset()}
    assert whole == {1}


@pytest.mark.usefixtures("as_it_is")
def test_many_small_results_of_one_kernel_stay_where_they_are():
    """The parameters of an optimiser's step, which replace what is read."""
    count = host().caches[2] // (4 << 18) * 2

    def step(*parameters: mt.Tensor) -> list[mt.Tensor]:
        return [p * 2 for p in parameters]

    parameters = [mt.zeros(1 << 18) for _ in range(count)]
    assert streamed_stores(mt.jit(step, backend="llvm"), *parameters) == [False]


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.float16, mt.bfloat16, mt.int64])
@pytest.mark.parametrize("columns", [63, 64, 65, 100, 257, 1000])
def test_rows_that_begin_anywhere(dtype, columns):
    random = np.random.default_rng(columns)
    x = mt.tensor(random.normal(size=(37, columns)) * 5).to(dtype)

    def function(x: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        centred = x - x.amax(-1, keepdim=True)
        return centred * 2, centred.abs().sum(-1)

    for found, expected in zip(mt.jit(function, backend="llvm")(x), function(x), strict=True):
        np.testing.assert_allclose(found.numpy().astype(float), expected.numpy().astype(float), rtol=1e-2)


@pytest.mark.parametrize("offset", range(0, 64, 12))
def test_memory_that_begins_anywhere(offset):
    """A result in memory that somebody else has allocated: ordinary stores, where a vector would not fill its place."""
    memory = np.zeros(1 << 14, np.uint8)[offset:]
    x = mt.from_numpy(memory[: memory.size // 4 * 4].view(np.float32)[:3003].reshape(3, 1001))
    update = mt.jit(lambda x, y: x.copy_(y * 2), backend="llvm")
    y = mt.tensor(np.random.default_rng(offset).normal(size=(3, 1001)).astype(np.float32))
    for _ in range(3):
        update(x, y)
        np.testing.assert_array_equal(x.numpy(), y.numpy() * 2)


def test_full_lines_are_stored_in_a_loop_of_their_own():
    """The loop over them asks in no iteration whether the row ends."""
    softmax = mt.jit(lambda x: mt.softmax(x, -1), backend="llvm")
    (kernel,) = softmax.ledger(mt.zeros(8, 1001)).kernels
    assert kernel.steps[-1].source.count("for line in") == 2


@SETTINGS
@given(st.data())
def test_random_graphs(data: st.DataObject) -> None:
    assert_compiled_agrees(data.draw(random_graphs.graphs()), data.draw(st.integers(0, 9999)))


@SETTINGS
@given(random_graphs.row_programs(), st.integers(0, 9999))
def test_random_programs_of_rows_and_columns(graph: Graph, seed: int) -> None:
    random_graphs.assert_rows_agree(graph, seed)
