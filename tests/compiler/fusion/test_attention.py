"""Attention in tiles: one kernel, no matrix of scores in memory, the numbers of the eager mode."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.compiler.codegen.emit import emit
from minitorch.compiler.codegen.host import host
from minitorch.compiler.codegen.machine import compile_ir
from minitorch.compiler.fusion import transient
from minitorch.compiler.fusion.roots import TILE_BY_TILE
from minitorch.compiler.kernels.ledger import EMPTY, TWISTED, ledger_of
from minitorch.compiler.loop_ir import source
from minitorch.compiler.runtime import threads
from minitorch.compiler.scheduling.contractions import attention, attention_of
from minitorch.compiler.scheduling.schedules.choice import scheduled
from minitorch.compiler.target import TARGETS
from tests.support.graphs import assert_close
from tests.support.helpers import of_all_widths

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def tensors(*shapes: tuple[int, ...], dtype: mt.DType = mt.float32, seed: int = 0) -> list[mt.Tensor]:
    random = np.random.default_rng(seed)
    return [mt.tensor(random.standard_normal(shape)).to(dtype) for shape in shapes]


def kernels(function: Function, *arguments: mt.Tensor) -> int:
    return mt.jit(function, backend="llvm").cost(*arguments).kernels


def gradient(function: Function) -> Function:
    """Output and gradients of a function of tensors; the last argument is the cotangent."""

    def both(*arguments: mt.Tensor) -> Any:
        output, pullback = mt.vjp(function, *arguments[:-1])
        return output, *pullback(arguments[-1])

    return both


def check(function: Function, *arguments: mt.Tensor) -> None:
    """Compiled and eager agree."""
    found = mt.jit(function, backend="llvm")(*arguments)
    expected = function(*arguments)
    for a, b in zip(_flat(found), _flat(expected), strict=True):
        assert_close(a.numpy(), b.numpy(), [x.shape for x in arguments])


def _flat(result: Any) -> list[mt.Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


def plain(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def by_hand(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    return (q @ k.mT).softmax(-1) @ v


def scaled(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    """The scale after the product."""
    return ((q @ k.mT) * 0.3).softmax(-1) @ v


def causal(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def masked(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor, mask: mt.Tensor) -> mt.Tensor:
    return F.scaled_dot_product_attention(q, k, v, mask)


def window(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    """Each query looks at the three keys before it."""
    rows, columns = mt.arange(q.shape[-2]).reshape(-1, 1), mt.arange(k.shape[-2])
    return F.scaled_dot_product_attention(q, k, v, (columns <= rows) & (rows < columns + 3))


def heads_last(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    """Operands and result as [batch, length, heads, features]."""
    return causal(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)


def transposed(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    """The scores of a key in a row, and what is wanted in a column."""
    return v.mT @ (k @ q.mT).softmax(-2)


FUNCTIONS = (plain, by_hand, causal, window, transposed)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_kernels(function: Function) -> None:
    q, k, v, g = tensors(*[(2, 3, 70, 32)] * 4)
    g = g.mT if function is transposed else g
    assert kernels(function, q, k, v) == 1
    assert kernels(gradient(function), q, k, v, g) <= 4


def capped(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    """Scores that are computed from the product by several operations, with a number of each column."""
    return ((q @ k.mT).tanh() * 3 + v[..., 0].unsqueeze(-2)).softmax(-1) @ v


@pytest.mark.sweep
@pytest.mark.parametrize("function", [plain, by_hand, scaled, capped])
@pytest.mark.parametrize("columns", [9, 64, 130])
@pytest.mark.parametrize("rows", [20, 64, 90])
def test_all_of_it_is_a_list_of_rewrites(rows: int, columns: int, function: Function) -> None:
    q, k, v = tensors((2, rows, 16), (2, columns, 16), (2, columns, 24))
    (kernel,) = mt.jit(function).ledger(q, k, v).kernels
    names = [step.name for step in kernel.schedule]
    assert {"hoist", "factor_out", "reuse", "vectorise"} <= {*names} and ("online" in names) is (columns > 64)
    check(function, q, k, v)


def test_kernels_with_masks() -> None:
    q, k, v, g = tensors(*[(2, 3, 70, 32)] * 4)
    for mask in (mt.ones(70, 70) > 0, *tensors((70, 70)), *tensors((2, 1, 70, 70)), mt.ones(2, 1, 1, 70) > 0):
        assert kernels(masked, q, k, v, mask) == 1
        assert kernels(gradient(lambda q, k, v, m=mask: masked(q, k, v, m)), q, k, v, g) <= 4


def test_a_training_step_stores_no_scores() -> None:
    q, k, v = tensors(*[(2, 3, 70, 32)] * 3)

    def step(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> Any:
        return mt.value_and_grad(lambda q, k, v: causal(q, k, v).square().sum(), argnums=(0, 1, 2))(q, k, v)

    compiled = mt.jit(step, backend="llvm")
    made = [node for kernel in compiled.ledger(q, k, v).kernels for node in kernel.made]
    assert max(node.spec.size for node in made) == q.numel()
    value, gradients = compiled(q, k, v)
    expected, expected_gradients = step(q, k, v)
    for a, b in zip((value, *gradients), (expected, *expected_gradients), strict=True):
        assert_close(a.numpy(), b.numpy(), "training step")


LENGTHS = (  # queries, keys, features, features of the result
    (1, 1, 4, 4), (1, 9, 8, 8), (9, 1, 8, 8), (2, 2, 1, 1), (17, 31, 5, 3), (65, 67, 64, 33), (131, 131, 128, 128),
    (200, 97, 2, 20), (97, 200, 24, 1),
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("function", "queries", "keys", "features", "outputs"),
    [
        *((function, *lengths) for function in (causal, transposed) for lengths in LENGTHS),
        *((function, *lengths) for function in (plain, by_hand, window) for lengths in LENGTHS[-4:-1]),
    ],
)
def test_lengths(function: Function, queries: int, keys: int, features: int, outputs: int) -> None:
    q, k, v, g = tensors((2, 2, queries, features), (2, 2, keys, features), (2, 2, keys, outputs),
                         (2, 2, queries, outputs))  # fmt: skip
    check(function, q, k, v)
    check(gradient(function), q, k, v, g.mT if function is transposed else g)


@pytest.mark.sweep
@pytest.mark.parametrize("function", [plain, causal, window])
@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float64])
def test_types(function: Function, dtype: mt.DType) -> None:
    q, k, v, g = tensors(*[(2, 2, 75, 24)] * 4, dtype=dtype)
    assert kernels(function, q, k, v) == 1
    check(function, q, k, v)
    check(gradient(function), q, k, v, g)


def test_layouts() -> None:
    q, k, v, g = tensors(*[(2, 67, 3, 32)] * 4)
    assert kernels(heads_last, q, k, v) == 1
    check(heads_last, q, k, v)
    check(gradient(heads_last), q, k, v, g)
    flat = tensors(*[(67, 32)] * 4)
    assert kernels(causal, *flat[:3]) == 1
    check(gradient(causal), *flat)
    shared, q, g = tensors((1, 67, 32), (4, 67, 32), (4, 67, 32))  # all heads read the same keys
    check(gradient(lambda q, k: causal(q, k.expand(4, -1, -1), k.expand(4, -1, -1))), q, shared, g)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [(77, 93), (2, 1, 77, 93), (3, 77, 93), (2, 1, 1, 93), (77, 1)])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks(shape: tuple[int, ...], kind: str) -> None:
    q, k, v, g, mask = tensors((2, 3, 77, 16), (2, 3, 93, 16), (2, 3, 93, 16), (2, 3, 77, 16), shape)
    mask = mask > 0.3 if kind == "bool" else mask
    check(masked, q, k, v, mask)
    check(gradient(lambda q, k, v: masked(q, k, v, mask)), q, k, v, g)
    if kind == "float":
        check(gradient(masked), q, k, v, mask, g)


def test_rows_without_a_key_and_numbers_that_are_none() -> None:
    q, k, v = (x.numpy() for x in tensors(*[(4, 150, 8)] * 3))
    q[0, 3], q[1, 70], k[1, 80], k[2, 5], v[2, 149], v[3, 0] = np.nan, np.inf, -np.inf, np.inf, np.inf, np.nan
    mask = np.random.default_rng(1).random((150, 150)) < 0.5
    mask[::7], mask[40:60, :120] = False, False
    nowhere = np.where(mask, 0, -np.inf).astype(np.float32)
    some = np.where(np.arange(150) == 3, np.inf, nowhere).astype(np.float32)
    with np.errstate(all="ignore"):
        operands = [mt.tensor(x) for x in (q, k, v)]
        for function in (plain, causal, window, by_hand):
            check(function, *operands)
        for each in (mask, nowhere, some):
            check(masked, *operands, mt.tensor(each))
            check(lambda q, k, v, m: (q @ k.mT + m).softmax(-1) @ v, *operands, mt.tensor(each.astype(np.float32)))
        large = mt.tensor(np.float32(30)) * operands[0].nan_to_num(0, 0, 0)
        check(gradient(causal), large, *tensors(*[(4, 150, 8)] * 3))


def anticausal(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    """Each query looks at its own position and those after: the last of many queries look nowhere."""
    rows, columns = mt.arange(q.shape[-2]).reshape(-1, 1), mt.arange(k.shape[-2])
    scores = mt.where(columns >= rows, q @ k.mT, mt.tensor(float("-inf")))
    return F.log_softmax(scores, -1).exp() @ v


def test_rows_whose_blocks_are_all_passed_over() -> None:
    q, k, v, g = tensors((2, 200, 8), (2, 70, 8), (2, 70, 8), (2, 200, 8))
    with np.errstate(all="ignore"):
        check(anticausal, q, k, v)
        check(gradient(anticausal), q, k, v, g)
    assert np.isnan(mt.jit(anticausal, backend="llvm")(q, k, v).numpy()[:, 70:]).all()


def test_numbers_of_a_row_that_are_read_last() -> None:
    """The row dots of the gradient may take the memory of what is added to the result."""

    def function(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
        q = q / ((q * q).sum(-1, keepdim=True) + 1)
        return by_hand(q, k, v) + q.sum(-1, keepdim=True)

    check(gradient(function), *tensors((2, 16, 2), (2, 130, 2), (2, 130, 32), (2, 16, 32)))


def test_an_infinite_value_behind_a_causal_mask_is_not_forgotten() -> None:
    q, k, v = tensors(*[(256, 16)] * 3)
    v[200, 3] = float("inf")
    with np.errstate(all="ignore"):
        found = mt.jit(causal, backend="llvm")(q, k, v).numpy()
        assert_close(found, causal(q, k, v).numpy(), "0 * inf")
    assert np.isnan(found[:200, 3]).all() and np.isfinite(found[:, 4]).all()


def test_threads_change_nothing() -> None:
    operands = tensors(*[(2, 3, 300, 40)] * 4)
    compiled = mt.jit(gradient(causal), backend="llvm")
    before = threads.get_num_threads()
    try:
        results = []
        for number in (1, 2):
            threads.set_num_threads(number)
            results.append([x.numpy().tobytes() for x in compiled(*operands)])
        assert results[0] == results[1]
    finally:
        threads.set_num_threads(before)


def test_memory_grows_with_the_length() -> None:
    def peak(length: int) -> int:
        operands = tensors(*[(1, 2, length, 32)] * 4)
        return mt.jit(gradient(causal), backend="llvm").cost(*operands).peak_bytes

    assert peak(1024) == 2 * peak(512)


@pytest.mark.parametrize("function", [plain, causal, transposed])
def test_printed_loops(function: Function) -> None:
    """The loops, run by Python, compute what the machine code computes."""
    q, k, v, g = tensors(*[(2, 5, 4)] * 4)
    graph = mt.jit(gradient(function)).stages(q, k, v, g.mT if function is transposed else g).graph
    plan = ledger_of(graph, host())
    compiled = mt.backends.get("llvm")(graph)
    arrays = [x.numpy() for x in (q, k, v, g.mT.clone() if function is transposed else g)]
    expected = compiled(arrays)
    memory = dict(zip(plan.graph.inputs, (x.reshape(-1).copy() for x in arrays), strict=True))
    for kernel in plan.kernels:
        for node in kernel.made:
            memory[node] = np.zeros(node.spec.size, node.dtype.numpy)
        source.run(kernel.loops, [memory[node] for node in kernel.buffers])
    for node, value in zip(plan.graph.outputs, expected, strict=True):
        while node not in memory:
            node = node.inputs[0]
        assert_close(memory[node].reshape(value.shape), value, function)


def test_narrow_vectors() -> None:
    q, k, v, g = tensors(*[(2, 3, 70, 20)] * 4)
    for kernel in ledger_of(mt.jit(gradient(causal)).stages(q, k, v, g).graph, host()).kernels:
        assert kernel.loops is not None
        for target in of_all_widths():
            assert compile_ir(emit(scheduled(kernel.loops, target), target), target)


def test_the_ledger_says_what_is_computed_again() -> None:
    q, k, v, g = tensors(*[(2, 3, 70, 32)] * 4)
    ledger = mt.jit(gradient(plain), backend="llvm").ledger(q, k, v, g)
    again = [edge for edge in ledger.edges if edge.reason == TILE_BY_TILE]
    assert again and all(edge.fused for edge in again) and TILE_BY_TILE in str(ledger)


def without_tiles(function: Function, *arguments: mt.Tensor) -> bool:
    plan = mt.jit(function, backend="llvm").ledger(*arguments)
    return not any(attention_of(nest) for kernel in plan.kernels if kernel.loops for nest in kernel.loops.nests)


def test_what_is_no_attention_is_left_alone() -> None:
    x, w, u = tensors((64, 32), (32, 100), (100, 8))
    labels = mt.tensor(np.random.default_rng(0).integers(0, 100, 64))

    def classifier(x: mt.Tensor, w: mt.Tensor) -> Any:
        return mt.value_and_grad(lambda w: F.cross_entropy(x @ w, labels))(w)

    def network(x: mt.Tensor, w: mt.Tensor, u: mt.Tensor) -> Any:
        return mt.value_and_grad(lambda w, u: (F.relu(x @ w) @ u).square().mean(), argnums=(0, 1))(w, u)

    assert without_tiles(lambda x, w: (x @ w).softmax(-1), x, w)
    assert without_tiles(classifier, x, w)
    assert without_tiles(network, x, w, u)
    assert without_tiles(lambda q, k, v: [(s := (q @ k.mT).softmax(-1)), s @ v], *tensors(*[(64, 32)] * 3))
    check(lambda x, w, u: F.layer_norm(x @ w, (100,)) @ u, x, w, u)
    check(lambda x, w, u: (x @ w).softmax(-1).log() @ u, x, w, u)
    check(lambda x, w, u: ((x @ w).softmax(-1) @ u).softmax(-1).sum(), x, w, u)


def normalised(s: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    return s.softmax(-1) @ v


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda s, v: normalised(s, v[..., :1]), attention.WIDTH),
        (lambda s, v: normalised(s, v[..., :0]), EMPTY),
        (lambda s, v: normalised(s, mt.ones(2, 70, 4)), attention.OPERANDS),
        (lambda s, v: normalised(s + s.mT, v), TWISTED),
        (lambda s, v: normalised(s - s.mean((-1, -2), keepdim=True), v), attention.AXES),
        (lambda s, v: normalised(s * (s > 0).any(-1, keepdim=True), v), attention.SUMS),
        (lambda s, v: (s / s.amax(-1, keepdim=True)).exp() @ v, "does more than sum up exp(x - m)"),
        (lambda s, v: F.log_softmax(s, -1).exp() @ v, attention.APART),
        (lambda s, v: normalised(s.softmax(-2), v), attention.APART),
        (lambda s, v: normalised(normalised(s, v @ v.mT), v), transient.NESTED),
    ],
)
def test_scores_without_a_schedule_are_stored(function: Function, reason: str) -> None:
    """The ledger says why: a law, or that no schedule knows the form."""
    q, k, v = tensors((2, 70, 8), (2, 70, 8), (2, 70, 4))
    ledger = mt.jit(lambda q, k, v: function(q @ k.mT, v)).ledger(q, k, v)
    assert reason in str(ledger)
    check(lambda q, k, v: function(q @ k.mT, v), q, k, v)


def normalised_again(weights: mt.Tensor) -> mt.Tensor:
    return weights / (weights.abs().sum(-1, keepdim=True) + 0.1)


@pytest.mark.sweep
@pytest.mark.parametrize("columns", [40, 200])
@pytest.mark.parametrize("with_gradient", [False, True])
@pytest.mark.parametrize(
    "weights",
    [
        lambda s, m: normalised_again(s.square() * m * 0.3),
        lambda s, m: normalised_again((s * m).sigmoid() * m),
        lambda s, m: normalised_again(s.softmax(-1) * m),
        lambda s, m: normalised_again((w := (s - s.amax(-1, keepdim=True)).exp()) / w.sum(-1, keepdim=True)),
        lambda s, m: (s.sigmoid() * m).softmax(-1),
    ],
)
def test_weights_that_are_no_terms_of_a_sum(weights: Function, with_gradient: bool, columns: int) -> None:
    """A factor of zero or one, and absolute values summed up: sums and products read different numbers of one tile."""
    q, k, v, g = tensors((2, 30, 8), (2, columns, 8), (2, columns, 8), (2, 30, 8))
    m = mt.tensor(np.random.default_rng(1).integers(0, 2, (2, 30, columns))).float()

    def function(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
        return weights(q @ k.mT, m) @ v

    check(gradient(function) if with_gradient else function, q, k, v, *([g] if with_gradient else []))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_alone_store_no_scores(function: Function) -> None:
    """Maximum, sum and row dots are then in the kernel of the first gradient."""
    q, k, v, g = tensors(*[(2, 3, 70, 32)] * 4)
    g = g.mT if function is transposed else g
    assert kernels(lambda *arguments: gradient(function)(*arguments)[1:], q, k, v, g) == 2


def test_scores_that_would_wait_for_a_sum_on_the_stack_are_stored() -> None:
    """Row dots of a gradient are complete before its weights are known; a maximum and a sum are brought up to date."""
    q, k, v, g = (mt.zeros(2, length, 8) for length in (8, 40000, 40000, 8))
    assert "of the stack" in str(mt.jit(gradient(plain)).ledger(q, k, v, g))
    assert kernels(plain, q, k, v) == 1


def test_gradients_with_results_of_several_widths_store_no_scores() -> None:
    q, k, v, g = tensors((2, 200, 8), (2, 97, 8), (2, 97, 40), (2, 200, 40))
    ledger = mt.jit(gradient(plain)).ledger(q, k, v, g)
    assert all(node.spec.size < 2 * 200 * 97 for kernel in ledger.kernels for node in kernel.made)


@pytest.mark.parametrize("sizes", [(5, 5, 16), (5, 7, 16), (7, 5, 16), (16, 16, 16), (3, 3, 3), (3, 4, 3)])
def test_every_result_is_stored_if_it_is_as_long_as_a_sum(sizes: tuple[int, int, int]) -> None:
    """Sums over a batch, and a gradient with as many columns: in the loops they are side by side."""
    batch, inside, outside = sizes
    arguments = tensors((batch, inside), (outside, inside), (outside,), (outside, 2), (batch, 2))

    def network(x: mt.Tensor, w: mt.Tensor, b: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
        return F.layer_norm(F.softsign(x @ w.T), (w.shape[0],), b) @ v

    checked = mt.jit(gradient(network), check=True)
    checked(*arguments)
    assert all(report.ok for report in checked.checked())


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64], ids=str)
def test_attention_of_few_rows_has_a_schedule_of_its_own(dtype: mt.DType, sweep: bool) -> None:
    """A block of rows may be shorter than a tile of the output. Each shape is for one of the targets, in turn."""
    targets = itertools.cycle(TARGETS)
    for rows, columns, depth, batch in itertools.product((1, 2, 3, 5), (2, 3, 9), (2, 3, 8), (1, 2)):
        arguments = tensors((1, 1, rows, depth), *[(1, batch, columns, depth)] * 2, dtype=dtype)
        ledger = mt.jit(F.scaled_dot_product_attention, backend="loops").ledger(*arguments)
        for target in TARGETS if sweep else [next(targets)]:
            for kernel in ledger.for_target(target).kernels:
                assert kernel.schedule and not kernel.refused, target
