"""What becomes one kernel: counted, never timed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.compiler.kernels.ledger import Ledger
from minitorch.compiler.scheduling.schedules import choice
from minitorch.graph.cost import in_units


def scheduled(function: Callable[..., Any], *args: mt.Tensor) -> Ledger:
    return mt.jit(function, backend="interpret").ledger(*args)


ROWS, COLUMNS = 12, 40
X = mt.rand(ROWS, COLUMNS)
G = mt.rand(ROWS, COLUMNS)
W = mt.rand(COLUMNS)
B = mt.rand(COLUMNS)


LABELS = mt.tensor([3, 39, 0, 7, -100, 1, 2, 38, 20, 3, 3, 11])


def gradient_of(function: Callable[..., Any], *primals: mt.Tensor) -> Any:
    return mt.vjp(function, *primals)[1](G)


def chain(x: mt.Tensor) -> mt.Tensor:
    for number in range(20):
        x = (x * 1.5 + number).tanh() if number % 5 == 0 else x * 0.5 - x.abs()
    return x


def moved(x: mt.Tensor) -> mt.Tensor:
    return (x.T * 2 + 1)[1:9, ::2].flip(0).reshape(-1, 2).T


FORWARD: dict[str, tuple[Callable[..., Any], tuple[mt.Tensor, ...], int]] = {
    "chain": (chain, (X,), 1),
    "movement": (moved, (X,), 1),
    "bias and relu": (lambda x, b: (x + b).relu(), (X, B), 1),
    "softmax over rows": (lambda x: x.softmax(1), (X,), 1),
    "softmax over columns": (lambda x: x.softmax(0), (X,), 1),
    "log_softmax": (lambda x: x.log_softmax(1), (X,), 1),
    "log_softmax over columns": (lambda x: x.log_softmax(0), (X,), 1),
    "logsumexp": (lambda x: x.logsumexp(1), (X,), 1),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (COLUMNS,), w, b), (X, W, B), 1),
    "rms_norm": (lambda x, w: F.rms_norm(x, (COLUMNS,), w), (X, W), 1),
    "variance": (lambda x: x.var(1), (X,), 1),
    "dropout": (lambda x: F.dropout(x * 2, 0.5), (X,), 1),
    "statistics of batch_norm": (lambda x: x.var(0, keepdim=True, correction=0) + x.mean(0), (X,), 1),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, W, B, training=True), (X,), 1),
    "cross-entropy": (lambda x: F.cross_entropy(x, LABELS), (X,), 1),
    "cross-entropy with its gradient": (
        lambda x: mt.value_and_grad(lambda x: F.cross_entropy(x, LABELS))(x),
        (X,),
        2,
    ),
    "softmax gradient": (lambda x: gradient_of(lambda x: x.softmax(1), x), (X,), 2),
    "log_softmax gradient": (lambda x: gradient_of(lambda x: x.log_softmax(1), x), (X,), 2),
    "layer_norm gradient": (
        lambda x, w, b: gradient_of(lambda x, w, b: F.layer_norm(x, (COLUMNS,), w, b), x, w, b),
        (X, W, B),
        2,
    ),
    "rms_norm gradient": (
        lambda x, w: gradient_of(lambda x, w: F.rms_norm(x, (COLUMNS,), w), x, w),
        (X, W),
        2,
    ),
}


@pytest.mark.parametrize("name", FORWARD)
def test_kernels(name: str) -> None:
    function, args, most = FORWARD[name]
    assert len(scheduled(function, *args).kernels) <= most


def test_an_optimiser_step_over_many_parameters() -> None:
    parameters = [mt.nn.Parameter(mt.rand(3 + number, 5)) for number in range(20)]
    gradients = [mt.rand(3 + number, 5) for number in range(20)]
    optimizer = mt.optim.Adam(parameters, lr=1e-3)

    def update(gradients: list[mt.Tensor]) -> None:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        optimizer.zero_grad()

    found = mt.jit(update, backend="llvm").ledger(gradients)
    assert len(found.kernels) <= 2
    assert found.kernels[-1].kind == "K5"


def test_a_fused_chain_reads_and_writes_once() -> None:
    (kernel,) = scheduled(chain, X).kernels
    assert (kernel.bytes_read, kernel.bytes_written) == (X.nbytes, X.nbytes)
    assert kernel.kind == "K1"


def test_softmax_is_row_resident() -> None:
    (kernel,) = scheduled(lambda x: x.softmax(1), X).kernels
    assert (kernel.kind, kernel.bytes_read, kernel.bytes_written) == ("K3", X.nbytes, X.nbytes)


def test_the_ledger_names_a_reason_for_every_edge_that_is_not_fused() -> None:
    found = scheduled(lambda x, w: (x @ w.reshape(COLUMNS, 1)).argsort(0).sum(), X, W)
    reasons = {edge.reason for edge in found.edges if not edge.fused}
    assert reasons and all(reasons)
    called = scheduled(lambda x: x.exp().argsort(1) + 1, X)
    assert "a library call" in " ".join(edge.reason for edge in called.edges)
    assert all(edge.bytes == 2 * edge.producer.spec.nbytes for edge in found.edges)
    assert "kernels" in str(found)


def test_kernels_come_in_the_same_order_every_time() -> None:
    """Also of kernels that do not need each other, wherever their nodes lie in memory."""

    def sums(x: mt.Tensor, y: mt.Tensor) -> tuple[mt.Tensor, ...]:
        rows, columns, product = (x + y).sum(0), (x + y).sum(1), (x * y).sum()
        total = rows.sin().sum() + columns.sin().sum() + product.sin()
        return mt.autograd.grad(total, (x, y))

    x, y = mt.rand(256, 256).requires_grad_(), mt.rand(256, 256).requires_grad_()
    alive = [scheduled(sums, x, y) for _ in range(24)]
    assert len({tuple((kernel.bytes_read, kernel.bytes_written) for kernel in each.kernels) for each in alive}) == 1


def test_an_expensive_value_that_is_repeated_is_stored() -> None:
    found = scheduled(lambda x: x.exp().unsqueeze(1) * mt.rand(400, COLUMNS), mt.rand(400, COLUMNS))
    assert any("repeatedly" in edge.reason for edge in found.edges if not edge.fused)


def test_a_random_draw_is_one_kernel_and_happens_once() -> None:
    """The bits are computed where they are used; used twice, they are the same ones."""

    def twice(x: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        kept = mt.rand(ROWS, COLUMNS)
        return x + kept, (x * kept).sum(1)

    (kernel,) = (kernel for kernel in scheduled(twice, X).kernels if kernel.kind != "K5")
    assert "random_bits" in {node.primitive.name for node in kernel.nodes}
    mt.manual_seed(4)
    expected = twice(X)
    mt.manual_seed(4)
    found = mt.jit(twice, backend="llvm")(X)
    assert mt.equal(found[0], expected[0])
    assert mt.allclose(found[1], expected[1])


def test_a_long_sum_is_cut_into_parts() -> None:
    """One kernel of two phases, whose parts are many enough for threads and short enough to round well."""
    x = mt.ones(1 << 20)
    found = scheduled(lambda x: x.sum() * 2, x)
    (kernel,) = found.kernels
    assert kernel.loops is not None
    assert kernel.loops.phases == (0, 1)
    assert kernel.units >= 32
    assert kernel.bytes_read == x.nbytes + 4 * kernel.units  # the partial sums are read once more
    assert "when all of that is done" in kernel.source


@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.parametrize("shape", [(300_001, 2), (3, 100_003), (70_001, 33), (1, 65_537), (4097, 61)])
@pytest.mark.parametrize("dtype", [mt.float32, mt.float16, mt.int64])
def test_long_sums_are_right_and_do_not_depend_on_threads(
    shape: tuple[int, int], dim: int | None, dtype: mt.DType
) -> None:
    """The rounding error of a sum of many like numbers stays far below what adding them one by one has."""
    x = (mt.rand(*shape) + 0.5).to(dtype) if dtype.is_floating_point else mt.randint(-9, 9, shape)

    def sums(x: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        total = x.sum() if dim is None else x.sum(dim)
        highest = x.amax() if dim is None else x.amax(dim)
        return total, highest

    f = mt.jit(sums, backend="llvm")
    before = mt.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            mt.set_num_threads(threads)
            results.append(f(x))
    finally:
        mt.set_num_threads(before)
    for total, highest in results[1:]:
        assert mt.equal(total, results[0][0])
        assert mt.equal(highest, results[0][1])
    exact = x.numpy().astype("float64").sum(dim)
    limit = {mt.float32: 3e-6, mt.float16: 1e-3, mt.int64: 0}[dtype]
    with np.errstate(over="ignore"):
        expected = exact.astype(dtype.numpy).astype("float64")
    close = np.isclose(results[0][0].numpy().astype("float64"), expected, rtol=limit, atol=0)
    assert close.all()
    assert np.array_equal(results[0][1].numpy(), x.numpy().max(dim))


def test_what_is_small_becomes_a_later_phase() -> None:
    """The mean of the row's results, and what is computed from it, does not take a kernel of its own."""
    (kernel,) = scheduled(lambda x: x.logsumexp(1).mean().sqrt(), X).kernels
    assert kernel.loops is not None
    assert kernel.loops.phases[-1] > 0


def test_flops_and_bytes_are_those_of_the_loops() -> None:
    (kernel,) = scheduled(lambda x, w: ((x - x.amax(1, keepdim=True)) * w).sum(1), X, W).kernels
    assert kernel.flops == 4 * ROWS * COLUMNS  # maximum, difference, product, sum
    table, rows = mt.rand(500, 8), mt.tensor([3, 4, 499])
    (kernel,) = scheduled(lambda table, rows: F.embedding(rows, table) * 2, table, rows).kernels
    assert kernel.bytes_read == 3 * 8 * 4 + rows.nbytes
    (kernel,) = scheduled(lambda x: x[::2] + 1, X).kernels
    assert (kernel.bytes_read, kernel.bytes_written) == (X.nbytes // 2, X.nbytes // 2)


def test_cost_sets_the_kernels_beside_the_nodes() -> None:
    """Softmax moves the matrix twice instead of eight times; the counts of arithmetic are the same."""
    cost = mt.jit(lambda x: x.softmax(1)).cost(X)
    size = X.nbytes
    assert (cost.kernels, cost.bytes_read, cost.bytes_written) == (1, size, size)
    assert cost.flops == cost.unfused.flops == 4 * ROWS * COLUMNS  # maximum, difference, sum, quotient
    assert cost.transcendentals == cost.unfused.transcendentals == ROWS * COLUMNS
    assert cost.unfused.bytes > 4 * cost.bytes
    assert cost.peak_bytes == cost.peak_in_arena == 2 * size
    assert cost.intensity == (5 * ROWS * COLUMNS) / (2 * size)
    assert "kernels" in str(cost)


def test_what_cost_compares_with_is_what_was_written() -> None:
    """Not what the passes and the compiler have made of it: eager mode moves the same bytes."""

    def wasteful(x: mt.Tensor) -> mt.Tensor:
        return (x * mt.ones(1)).exp() + (x * 1 + 0).exp()

    f = mt.jit(wasteful)
    with mt.profile() as p:
        wasteful(X)
    written = f.cost(X).unfused
    assert written.nodes == f.graph(X).count().total() > f.ledger(X).graph.count().total()
    eager = sum(row.bytes for row in p.rows())
    assert 0 <= eager - written.bytes < 0.001 * eager  # the numbers 1 and 0 are read, too


def test_the_ledger_says_what_the_arena_saves() -> None:
    """Three sums over columns of products of what went before: each needs the one before it, and none any other."""

    def chain(x: mt.Tensor) -> mt.Tensor:
        for _ in range(3):
            x = x.exp().cumsum(0).softmax(1) * 0.5
        return x.sum()

    function = mt.jit(chain)
    cost = function.cost(X)
    assert cost.arena_bytes < cost.intermediate_bytes
    sizes = f"{in_units(cost.intermediate_bytes, 'B')} in an arena of {in_units(cost.arena_bytes, 'B')}"
    assert f"intermediates: {sizes}" in str(function.ledger(X))
    assert "their arena" in str(cost) and "peak with the arena" in str(cost)


def test_memory_that_is_written_over_counts_once() -> None:
    """The new value of a parameter is in the parameter's own memory."""
    w = mt.zeros(64, 64)

    def step(x: mt.Tensor) -> None:
        w.add_(x)

    cost = mt.jit(step).cost(mt.ones(64, 64))
    assert (cost.peak_bytes, cost.peak_in_arena) == (3 * w.nbytes, 2 * w.nbytes)


def test_peak_memory_counts_what_is_alive_between_kernels() -> None:
    """exp is stored, since two kernels read it: over rows and over columns."""
    function = mt.jit(lambda x: (x.exp().sum(1), x.exp().cumsum(0)))
    kernels = function.ledger(X).kernels
    assert len(kernels) == 2
    assert function.cost(X).peak_bytes == 3 * X.nbytes + 4 * ROWS  # x, exp(x), both results


def test_stages_go_from_the_trace_to_assembly() -> None:
    stages = mt.jit(lambda x: (x * 1 + 0 * 2).exp().sum(1)).stages(X)
    texts = stages.texts
    assert next(iter(texts)) == "traced"
    assert list(texts)[-4:] == ["kernels", "loops", "llvm", "assembly"]
    assert len(texts) == len(stages.stages) + 5
    assert str(stages.graph) == list(texts.values())[-5]
    assert [kernel.kind for kernel in stages.kernels] == ["K2"]
    assert "for j0 in range(40):" in stages.loops
    assert "define void" in stages.llvm
    assert "ret" in stages.assembly


def test_equal_kernels_of_which_each_part_is_used_twice_are_compared_in_no_time() -> None:
    """Forty times a square: compared part by part, that would be two to the power of forty comparisons."""

    def squared(x: mt.Tensor) -> mt.Tensor:
        for _ in range(40):
            x = x * x - x * 0.5
        return x

    x = mt.rand(3, 50, 20)
    results = mt.jit(lambda x: [squared(part) for part in x])(x)
    for found, part in zip(results, x, strict=True):
        np.testing.assert_allclose(found.numpy(), squared(part).numpy(), rtol=1e-4, atol=1e-6)


def test_the_work_of_merging_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel to which many small ones are added as phases is not scheduled anew for each of them."""
    asked: list[Any] = []
    counted = vars(choice)["schedule_of"]
    monkeypatch.setattr(choice, "schedule_of", lambda nest, *others: asked.append(nest) or counted(nest, *others))

    def nests(length: int) -> int:
        asked.clear()
        compiled = mt.jit(lambda x: functools.reduce(lambda y, _: y + 0.5, range(length), x), passes=())
        assert compiled(mt.tensor(1.0)).item() == 1 + length / 2
        return len(asked)

    assert nests(4000) - nests(2000) == nests(6000) - nests(4000)
