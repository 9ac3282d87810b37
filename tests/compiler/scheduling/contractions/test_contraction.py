"""Matrix products in generated code: the numbers of NumPy, in every shape, type and surrounding, and few kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.backends import get
from minitorch.compiler.codegen import emit, machine
from minitorch.compiler.codegen.host import host
from minitorch.compiler.kernels.ledger import Ledger, ledger_of
from minitorch.compiler.loop_ir import source
from minitorch.compiler.loop_ir.index import extent_of
from minitorch.compiler.loop_ir.loops import LoopKernel
from minitorch.compiler.scheduling.contractions import gemm, gemm_tiling
from minitorch.compiler.scheduling.schedules import choice
from minitorch.compiler.target import Target, target_named
from minitorch.graph import Graph
from minitorch.passes import lowered
from tests.support.graphs import assert_close
from tests.support.helpers import of_all_widths

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]

GENERATOR = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def graph_of(function: Function, *arrays: Array) -> Any:
    return lowered(mt.jit(function, backend="interpret").stages(*map(mt.from_numpy, arrays)).graph)


def scheduled(function: Function, *arrays: Array, target: Target | None = None) -> Ledger:
    return ledger_of(graph_of(function, *arrays), target or host())


def compiled(function: Function, *arrays: Array) -> Any:
    return mt.jit(function, backend="llvm")(*map(mt.from_numpy, arrays))


def check(function: Function, *arrays: Array, kernels: int | None = None) -> None:
    """As eager mode computes it."""
    expected = function(*map(mt.from_numpy, arrays))
    found = compiled(function, *arrays)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for own, other in pairs:
        assert_close(own.numpy(), other.numpy(), [array.shape for array in arrays])
    if kernels is not None:
        assert len(scheduled(function, *arrays).kernels) == kernels, scheduled(function, *arrays)


def product(a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
    return a @ b


def gelu_of_linear(x: mt.Tensor, w: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
    return F.gelu(F.linear(x, w, b))


# --- shapes -----------------------------------------------------------------------------------------------------------

LENGTHS = st.sampled_from((1, 2, 3, 5, 8, 13, 16, 17, 31, 33, 47, 64, 65, 97))
TALL = st.sampled_from((0, 1, 2, 7, 16, 33, 128, 257, 700))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_shapes_and_transposes(data: st.DataObject) -> None:
    m, n, k = data.draw(LENGTHS), data.draw(LENGTHS), data.draw(TALL)
    batch = data.draw(st.sampled_from(((), (3,), (2, 3))))
    turned = data.draw(st.tuples(st.booleans(), st.booleans()))
    a, b = normal(*batch, *((k, m) if turned[0] else (m, k))), normal(*batch, *((n, k) if turned[1] else (k, n)))

    def function(a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
        return (a.mT if turned[0] else a) @ (b.mT if turned[1] else b)

    left, right = (a.swapaxes(-1, -2) if turned[0] else a), (b.swapaxes(-1, -2) if turned[1] else b)
    expected = np.einsum("...ik,...kj->...ij", left.astype(np.float64), right.astype(np.float64))
    found = compiled(function, a, b).numpy()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-5 * max(k, 1))
    assert [kernel.kind for kernel in scheduled(function, a, b).kernels] == ["K4"]


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1), (2, 0, 0)])
def test_empty_products(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    assert np.array_equal(compiled(product, normal(m, k), normal(k, n)).numpy().shape, (m, n))
    check(product, normal(m, k), normal(k, n))


@pytest.mark.parametrize("function", [
    lambda a, b: a[::2, 1::3] @ b[:7, ::2],
    lambda a, b: a.flip(0) @ b.flip(1)[:20],
    lambda a, b: F.pad(a, (2, 1, 3, 4)) @ F.pad(b[:23], (1, 2)),
    lambda a, b: a.unsqueeze(1).expand(9, 4, 20) @ b[:20],
    lambda a, b: a.reshape(3, 3, 20) @ b[:20].expand(3, 20, 30),
    lambda a, b: a.T.reshape(-1, 9).T @ b[:20],
    lambda a, b: (a.reshape(9, 4, 5).permute(2, 0, 1).reshape(15, 12)) @ b[:12],
    lambda a, b: mt.einsum("ik,kj->ji", a, b[:20]),
    lambda a, b: mt.einsum("ik,ij->kj", a, b[:9]),
    lambda a, b: a[mt.tensor([3, 1, 8, 8])] @ b[:20],
    lambda a, b: a @ a.T,
    lambda a, b: F.pad(a, (0, 12)).reshape(2, 9, 16).permute(1, 0, 2).reshape(9, 32) @ F.pad(b, (0, 0, 0, 8)),
    lambda a, b: a @ b[:20].reshape(20, 15, 2).permute(0, 2, 1).reshape(20, 30),
])  # fmt: skip
def test_operands_that_are_views(function: Function) -> None:
    check(function, normal(9, 20), normal(24, 30))


def test_long_products_are_done_in_blocks() -> None:
    """More than fits into a block of k, of rows and of lanes, with packing on both sides."""
    check(lambda a, b: (a * 0.1) @ (b + 1), normal(70, 5000) / 10, normal(5000, 37) / 10)
    check(product, normal(3, 5000), normal(5000, 700) / 100)
    check(product, normal(1, 3000), normal(3000, 1000) / 100)


# --- types ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool"]
)
@pytest.mark.parametrize("shape", [(3, 5, 4), (17, 40, 33), (1, 40, 33), (33, 19, 1)])
def test_types(name: str, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    dtype = getattr(mt, name if name != "bool" else "bool_", None) or getattr(mt, name)
    a, b = mt.from_numpy(normal(m, k) * 2).to(dtype), mt.from_numpy(normal(k, n) * 2).to(dtype)
    graph = mt.jit(product, backend="interpret").stages(a, b).graph
    (found,) = get("llvm")(graph)([a.numpy(), b.numpy()])
    assert_close(np.asarray(found), (a @ b).numpy(), name)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_short_floats_are_summed_in_float32(name: str) -> None:
    ones = mt.ones(4, 4000).to(getattr(mt, name))
    assert (mt.jit(product, backend="llvm")(ones, ones.T).float() == float(mt.tensor(4000.0).to(ones.dtype))).all()


def test_bytes_are_summed_in_32_bits() -> None:
    text = "graph(a: i8[9,300], b: i8[300,21]):\n  %0 = dot(a, b, dtype=i32) : i32[9,21]\n  return %0\n"
    graph = Graph.parse(text)
    a, b = (GENERATOR.integers(-128, 128, shape).astype(np.int8) for shape in ((9, 300), (300, 21)))
    (found,) = get("llvm")(graph)([a, b])
    assert np.array_equal(found, a.astype(np.int32) @ b.astype(np.int32))


# --- epilogues and producers ------------------------------------------------------------------------------------------

X, W, V, B, R = normal(37, 50), normal(50, 29), normal(29, 50), normal(29), normal(37, 29)

EPILOGUES: dict[str, tuple[Function, tuple[Array, ...]]] = {
    "linear and gelu": (gelu_of_linear, (X, V, B)),
    "linear of a batch of sequences": (gelu_of_linear, (normal(3, 7, 50), V, B)),
    "a residual of a batch": (lambda x, w, r: r + (x @ w) * 0.5, (normal(3, 7, 50), W, normal(3, 7, 29))),
    "a mask of a batch": (lambda x, w, r: mt.where(r, -1.0, x @ w), (normal(3, 7, 50), W, normal(7, 29) > 0)),
    "bias, relu": (lambda x, w, b: (x @ w + b).relu(), (X, W, B)),
    "residual": (lambda x, w, r: r + 0.5 * (x @ w), (X, W, R)),
    "a residual that lies across": (lambda x, w, r: r.T + x @ w, (X, W, R.T.copy())),
    "a bias for each row": (lambda x, w, b: x @ w + b.unsqueeze(1), (X, W, normal(37))),
    "two results": (lambda x, w, b: (x @ w, (x @ w + b).tanh()), (X, W, B)),
    "three users": (lambda x, w, b: ((x @ w).exp(), (x @ w + b) > 0, x @ w), (X, W, B)),
    "a transposed result": (lambda x, w, b: (x @ w + b).T * 2, (X, W, B)),
    "dropout's mask": (lambda x, w, r: mt.where(r > 0, (x @ w) / 0.9, 0.0), (X, W, R)),
    "16-bit floats": (lambda x, w, b: ((x.half() @ w.half()) + b.half()).relu(), (X, W, B)),
}


@pytest.mark.parametrize("name", EPILOGUES)
def test_what_follows_is_the_epilogue(name: str) -> None:
    function, arrays = EPILOGUES[name]
    check(function, *arrays, kernels=1)


PRODUCERS: dict[str, tuple[Function, tuple[Array, ...]]] = {
    "a cast": (lambda x, w: x.double() @ w.double(), (X, W)),
    "a quantised weight": (lambda x, w: x @ (w * 10).to(mt.int8).float(), (X, W)),
    "a mask": (lambda x, w: mt.where(x > 0, x, 0.0) @ w, (X, W)),
    "a scaling": (lambda x, w: (x * 0.5 + 1) @ (w - 1), (X, W)),
    "a normalisation": (lambda x, w, b: ((x - b) * 3) @ w, (X, W, normal(50))),
    "exponentials": (lambda x, w: x.exp() @ w.tanh(), (X, W)),
    "a triangle": (lambda x, w: x.tril() @ w, (X, W)),
}


@pytest.mark.parametrize("name", PRODUCERS)
def test_what_goes_before_is_done_while_packing(name: str) -> None:
    function, arrays = PRODUCERS[name]
    check(function, *arrays, kernels=1)


def test_a_number_that_is_a_factor_and_is_used_afterwards_is_copied_for_the_product_alone() -> None:
    check(lambda x: mt.full((96, 64), 0.5) @ x + 0.5, normal(64, 256), kernels=1)
    check(lambda x, b: (x * b) @ mt.full((40, 96), 0.5) + b, normal(70, 40), normal(70, 1), kernels=1)


BEFORE: tuple[Callable[[mt.Tensor], mt.Tensor], ...] = (
    lambda x: x,
    lambda x: x * 0.5,
    lambda x: x.relu(),
    lambda x: x.tanh(),
    lambda x: x.flip(-1),
    lambda x: (x.mT + 1).contiguous().mT,
    lambda x: x - x.mean(-1, keepdim=True),
    lambda x: F.pad(x[..., 1:], (1, 0)),
    lambda x: mt.cat([x[..., :1], x[..., 1:] * 2], -1),
    lambda x: x.bfloat16().float() if x.dtype is mt.float32 else x,
)
AFTER: tuple[Callable[[mt.Tensor], Any], ...] = (
    lambda y: y,
    lambda y: y + 1,
    lambda y: (y, y.sigmoid()),
    lambda y: y.softmax(-1),
    lambda y: y.sum(-2),
    lambda y: y.mT * y.mT,
    lambda y: y.reshape(-1),
    lambda y: y @ y.mT.tanh(),
    lambda y: (y > 0, y.amax(-1)),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_surroundings(data: st.DataObject) -> None:
    m, n, k = (data.draw(st.sampled_from((1, 2, 7, 16, 33, 70))) for _ in range(3))
    batch = data.draw(st.sampled_from(((), (2,), (3, 2))))
    of_a, of_b = data.draw(st.sampled_from(BEFORE)), data.draw(st.sampled_from(BEFORE))
    after, dtype = data.draw(st.sampled_from(AFTER)), data.draw(st.sampled_from((np.float32, np.float64)))
    a, b = normal(*batch, m, k).astype(dtype), normal(*batch, k, n).astype(dtype) / np.sqrt(k).astype(dtype)
    check(lambda a, b: after(of_a(a) @ of_b(b)), a, b)


def test_what_needs_whole_rows_is_another_kernel() -> None:
    check(lambda x, w: (x @ w).softmax(1), normal(370, 50), W, kernels=2)
    check(lambda x, w: (x @ w).softmax(1), X, W, kernels=1)  # one kernel of two phases, since it is small
    check(lambda x, w: (x @ w + 1).sum(0), X, W)


def test_an_activation_between_two_products_ends_the_first() -> None:
    check(lambda x, w, v: F.gelu(x @ w) @ v, X, W, V, kernels=2)
    found = scheduled(lambda x, w, v: (x @ w).relu() @ v, X, W, V)
    assert [kernel.kind for kernel in found.kernels] == ["K4", "K4"]
    assert "maximum" in found.kernels[0].name or "relu" in found.kernels[0].name or len(found.kernels[0].nodes) > 1


def test_an_expensive_operand_that_is_packed_often_is_stored() -> None:
    found = scheduled(lambda x, w: x.exp() @ w, normal(64, 64), normal(64, 2000))
    assert len(found.kernels) == 2
    assert any("repeatedly" in edge.reason for edge in found.edges if not edge.fused)


def test_the_ledger() -> None:
    found = scheduled(gelu_of_linear, X, V, B)
    (kernel,) = found.kernels
    assert kernel.kind == "K4" and kernel.name.startswith("k0_dot") and all(edge.fused for edge in found.edges)
    assert kernel.flops >= 2 * 37 * 50 * 29
    assert kernel.bytes_read == X.nbytes + V.nbytes + B.nbytes and kernel.bytes_written == R.nbytes


def test_gradients() -> None:
    def function(x: mt.Tensor, w: mt.Tensor, b: mt.Tensor, g: mt.Tensor) -> Any:
        return mt.vjp(gelu_of_linear, x, w, b)[1](g)

    check(function, X, V, B, R)


# --- three readings, all vectors, any number of threads ---------------------------------------------------------------


def run_for(kernel: LoopKernel, buffers: list[Array], target: Target) -> None:
    """Run a kernel compiled for a target."""
    import ctypes

    parts = choice.scheduled(kernel, target)
    code = machine.compile_ir(emit.emit(parts, target), target)
    function = machine.load(code, "kernel").function("kernel")
    table = (ctypes.c_void_p * (len(buffers) + 1))(*[buffer.ctypes.data for buffer in buffers])
    function(ctypes.addressof(table), 0, choice.units(parts))


@pytest.mark.parametrize("name", [*EPILOGUES, *PRODUCERS])
def test_three_readings_and_all_vectors(name: str) -> None:
    function, arrays = (EPILOGUES | PRODUCERS)[name]
    graph = graph_of(function, *arrays)
    (kernel,) = ledger_of(graph, host()).kernels
    assert kernel.loops is not None
    inputs = dict(zip(graph.inputs, arrays, strict=True))
    made = [
        np.zeros(node.spec.size, node.dtype.numpy) if node in kernel.writes else inputs[node].reshape(-1)
        for node in kernel.buffers
    ]
    results = []
    for target in of_all_widths():
        buffers = [buffer.copy() for buffer in made]
        run_for(kernel.loops, buffers, target)
        results.append(buffers)
    printed = [buffer.copy() for buffer in made]
    source.run(kernel.loops, printed)
    for found in results:
        for own, other in zip(found, printed, strict=True):
            assert_close(own, other, name)


BLOCKED: dict[str, tuple[Function, tuple[int, int], tuple[int, int]]] = {
    "blocks of k": (lambda a, b: (a * 2) @ (b + 1), (70, 5000), (5000, 37)),
    "blocks of k, along it": (lambda a, b: (a * 2) @ (b + 1).T, (70, 5000), (37, 5000)),
    "along rows": (lambda a, b: (a + 1).T @ b, (300, 150), (300, 133)),
    "many blocks": (lambda a, b: a.relu() @ b, (333, 600), (600, 777)),
    "in place": (product, (103, 300), (300, 130)),
    "streamed": (product, (9, 700), (700, 1500)),
    "one row": (product, (1, 700), (700, 1501)),
    "across": (lambda a, b: (a @ b).T + 1, (64, 70), (70, 50)),
}


@pytest.mark.parametrize("name", BLOCKED)
@pytest.mark.parametrize("target", of_all_widths(), ids=lambda target: f"{target.vector_bytes}")
def test_blocks_with_all_vectors(name: str, target: Target) -> None:
    function, *shapes = BLOCKED[name]
    a, b = (normal(*shape).astype(np.float64) for shape in shapes)
    graph = graph_of(function, a, b)
    (kernel,) = ledger_of(graph, host()).kernels
    assert kernel.loops is not None
    inputs = dict(zip(graph.inputs, (a, b), strict=True))
    buffers = [
        np.zeros(node.spec.size) if node in kernel.writes else inputs[node].reshape(-1) for node in kernel.buffers
    ]
    run_for(kernel.loops, buffers, target)
    (found,) = [buffer for node, buffer in zip(kernel.buffers, buffers, strict=True) if node in kernel.writes]
    expected = function(mt.from_numpy(a), mt.from_numpy(b)).numpy()
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["avx2", "avx512"])
@pytest.mark.parametrize("columns", [1, 1.5, 20.5])
def test_rows_that_end_within_a_tile_are_stored_vector_by_vector(columns: float, name: str) -> None:
    """What is stored under a mask reaches into the next row, which the epilogue may read."""
    width = int(columns * target_named(name).lanes(4)) + 2
    a, b, c = normal(60, 40), normal(40, width), normal(60, width)
    (kernel,) = scheduled(lambda a, b, c: a @ b + c, a, b, c, target=target_named(name)).kernels
    ends_with_a_row = columns < 4  # a tile has several
    loops = re.findall(r"for ([rv]) in", kernel.steps[-1].source.partition("# outlined")[0].rpartition("\n")[2])
    assert loops == (["v"] if ends_with_a_row else ["r"])


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "pieces"), [((1, 2056, 1111), 8), ((2, 2504, 1024), 8), ((3, 2048, 1030), 1), ((1, 700, 3001), 1)]
)
def test_a_matrix_that_is_read_once_is_cut_along_k(shape: tuple[int, int, int], pieces: int, name: str) -> None:
    """Into pieces that are read once too, if partial results are little beside it."""
    small = replace(host(), caches=(1 << 14, 1 << 18, 1 << 23))
    m, k, n = shape
    a, b = normal(m, k).astype(name), normal(k, n).astype(name) / 50
    (kernel,) = scheduled(product, a, b, target=small).kernels
    assert kernel.loops is not None
    found = gemm.recognise(kernel.loops.nests[0])
    assert found is not None
    tiling = gemm_tiling.tiling(found, small)
    # Where vectors have no masks, rows that are no whole number of tiles are packed.
    assert tiling.streams or (small.vector_bytes < gemm_tiling.MASKED and n % tiling.width)
    assert extent_of(found.batch) == (pieces if tiling.streams else 1)
    for function in (product, lambda a, b: ((a @ b) * 0.5 + 1).relu()):
        expected = function(mt.from_numpy(a), mt.from_numpy(b)).numpy()
        (found_here,) = get("llvm")(graph_of(function, a, b), target=small)([a, b])
        assert_close(found_here, expected, shape)


@pytest.mark.parametrize(
    "shape", [(65, 700, 130), (300, 256, 300), (1, 900, 2000), (3, 3000, 1000), (2000, 300, 3), (1, 4111, 600)]
)
def test_results_do_not_depend_on_the_number_of_threads(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = normal(m, k), normal(k, n)
    before, results = mt.get_num_threads(), []
    for number in (1, 2, 3):
        mt.set_num_threads(number)
        results += [compiled(product, a, b).numpy() for _ in range(2)]
    mt.set_num_threads(before)
    assert all(np.array_equal(result, results[0]) for result in results)


@pytest.mark.parametrize(
    "shape", [(4, 200_000, 4), (64, 200_000, 8), (1, 200_000, 64), (3, 50_000, 3), (8, 20_000, 700)]
)
def test_the_rounding_error_does_not_grow_with_every_term(shape: tuple[int, int, int]) -> None:
    """It grows with the terms of a run and with the number of runs (Higham 1993)."""
    m, k, n = shape
    a, b = np.full((m, k), 0.1, np.float32), np.full((k, n), 0.1, np.float32)
    exact = k * float(np.float32(0.1)) ** 2
    most = (gemm_tiling.LONGEST + k / gemm_tiling.LONGEST) * float(np.finfo(np.float32).eps) / 2
    np.testing.assert_allclose(compiled(product, a, b).numpy().astype(float), exact, rtol=most)


def test_infinities_stay_where_they_are() -> None:
    a, b = normal(19, 40), normal(40, 21)
    a[3, 5], b[7, 2], a[4, 39], b[39, 20] = np.inf, np.nan, -np.inf, np.inf
    check(product, a, b)
    check(lambda a, b: (a * 2) @ b.mT.contiguous().mT, a, b)


def test_a_sum_of_products_is_recognised_in_any_form() -> None:
    def written_out(a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
        return (a.unsqueeze(2) * b.unsqueeze(0)).sum(1)

    (kernel,) = scheduled(written_out, X, W).kernels
    assert kernel.loops is not None and gemm.recognise(kernel.loops.nests[0]) is not None
    check(written_out, X, W, kernels=1)


@pytest.mark.parametrize(
    ("function", "arithmetic", "transcendentals"),
    [
        (lambda x, w, g: x @ w, 2 * 32 * 64 * 48, 0),
        (lambda x, w, g: (x * g + 1) @ w, 2 * 32 * 64 * 48 + 2 * 32 * 64, 0),
        (lambda x, w, g: (g * 2) @ w, 2 * 64 * 48 + 64, 0),
        (lambda x, w, g: x @ w.exp(), 2 * 32 * 64 * 48, 64 * 48),
        (lambda x, w, g: (x.tanh() @ (w * 2)) + 1, 2 * 32 * 64 * 48 + 64 * 48 + 32 * 48, 32 * 64),
    ],
)
def test_what_is_done_while_an_operand_is_packed_counts_once(function, arithmetic, transcendentals):
    x, w, g = mt.rand(32, 64), mt.rand(64, 48), mt.rand(64)
    cost = mt.jit(function, backend="llvm").cost(x, w, g)
    assert cost.kernels == 1
    assert (cost.flops, cost.transcendentals) == (arithmetic, transcendentals)
    assert (cost.unfused.flops, cost.unfused.transcendentals) == (arithmetic, transcendentals)


def test_einsum_of_one_operand_sums_integers_in_int64_and_products_keep_the_type():
    x = mt.full((3, 2), 200, dtype=mt.uint8)
    total = mt.einsum("i...->...", x)
    assert total.dtype is mt.int64 and total.tolist() == [600, 600]
    assert mt.einsum("ij->ji", x).dtype is mt.einsum("ij,ik->jk", x, x).dtype is mt.uint8
