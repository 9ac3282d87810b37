"""The llvm backend: the numbers of the interpreter, on random graphs and on awkward shapes and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.backends import get
from minitorch.compiler.codegen.host import host
from minitorch.compiler.kernels.ledger import ledger_of
from minitorch.compiler.loop_ir import source
from minitorch.graph import Graph
from tests.support import graphs as random_graphs
from tests.support.graphs import assert_close, assert_compiled_agrees

Array = np.ndarray[Any, Any]


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_graphs(data: st.DataObject) -> None:
    assert_compiled_agrees(data.draw(random_graphs.graphs()), data.draw(st.integers(0, 9999)))


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(random_graphs.row_programs(), st.integers(0, 9999))
def test_random_programs_of_rows_and_columns(graph: Graph, seed: int) -> None:
    random_graphs.assert_rows_agree(graph, seed)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_printed_loops(data: st.DataObject) -> None:
    """The loops, run by Python, compute what the nodes that they cover compute."""
    graph: Graph = data.draw(random_graphs.graphs())
    arrays = random_graphs.arrays_for(graph, data.draw(st.integers(0, 9999)))
    with np.errstate(all="ignore"):
        known = dict(zip(graph.inputs, arrays, strict=True))
        for node in graph.nodes:
            operands = [known[operand] for operand in node.inputs]
            known[node] = np.asarray(node.primitive.evaluate(*operands, **node.params))
    for kernel in ledger_of(graph, host()).kernels:
        if kernel.loops is None:
            continue
        memory = {
            node: np.zeros(node.spec.size, node.dtype.numpy) if node in kernel.writes else known[node].reshape(-1)
            for node in kernel.buffers
        }
        buffers = [memory[node] for node in kernel.buffers]
        source.run(kernel.loops, buffers)
        for node, result in zip(kernel.buffers, buffers, strict=True):
            if node in known:
                assert_close(result.reshape(node.shape), known[node], graph)


def step(x: mt.Tensor, w: mt.Tensor) -> Any:
    y = F.layer_norm(x, x.shape[-1:], w)
    return y.softmax(-1), (y * y).sum(0), y.gelu() if hasattr(y, "gelu") else F.gelu(y), y.max()


@pytest.mark.parametrize("rows", [1, 2, 7, 16, 33])
@pytest.mark.parametrize("columns", [1, 3, 15, 16, 17, 64, 131])
def test_odd_shapes(rows: int, columns: int) -> None:
    x, w = mt.randn(rows, columns), mt.randn(columns)
    expected = mt.jit(step, backend="interpret")(x, w)
    for found, value in zip(mt.jit(step, backend="llvm")(x, w), expected, strict=True):
        assert_close(found.numpy(), value.numpy(), (rows, columns))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 3), (1, 1, 1), (2, 1, 3, 1, 2, 2)])
def test_ranks_and_empty_tensors(shape: tuple[int, ...]) -> None:
    def function(x: mt.Tensor) -> Any:
        return x * 2 + 1, x.sum(), x.exp().sum(-1) if x.ndim else x.exp()

    x = mt.rand(*shape) if shape else mt.rand(1).reshape(())
    expected = mt.jit(function, backend="interpret")(x)
    for found, value in zip(mt.jit(function, backend="llvm")(x), expected, strict=True):
        assert_close(found.numpy(), value.numpy(), shape)


def test_strided_inputs_and_unaligned_memory() -> None:
    memory = np.frombuffer(bytearray(4 * 1000 + 1), np.uint8)[1:4001].view(np.float32)
    memory[:] = np.arange(1000)
    compiled = mt.jit(lambda x: (x * 2).sum(0), backend="llvm")
    for x in (memory.reshape(10, 100), memory.reshape(10, 100)[::2, ::-3], memory.reshape(100, 10).T):
        np.testing.assert_allclose(compiled(mt.from_numpy(x.copy())).numpy(), (x * 2).sum(0))
        np.testing.assert_allclose(get("llvm")(compiled.stages(mt.from_numpy(x.copy())).graph)([x])[0], (x * 2).sum(0))


def test_a_training_step_in_every_backend() -> None:
    def run(backend: str) -> list[float]:
        mt.manual_seed(0)
        model = mt.nn.Sequential(mt.nn.Linear(20, 30), mt.nn.GELU(), mt.nn.LayerNorm(30), mt.nn.Linear(30, 5))
        optimizer = mt.optim.Adam(model.parameters(), lr=1e-2)

        @mt.jit(backend=backend)
        def train(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        x, y = mt.randn(16, 20), mt.randint(0, 5, (16,))
        return [train(x, y).item() for _ in range(5)]

    np.testing.assert_allclose(run("llvm"), run("interpret"), rtol=1e-4)


def test_results_are_the_callers_own() -> None:
    compiled = mt.jit(lambda x: (x, x + 1, x.reshape(-1)), backend="llvm")
    x = mt.ones(4, 4)
    first = compiled(x)
    first[1].zero_()
    first[2].zero_()
    assert x.sum().item() == 16
    assert compiled(x)[1].sum().item() == 32


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[i],
        lambda x, i: (x * 2)[i] + 1,
        lambda x, i: mt.ones(4)[i],
        lambda x, i: x[:1].expand(4)[i],
    ],
)
def test_an_index_out_of_range_is_an_error(function: Any) -> None:
    compiled = mt.jit(function, backend="llvm")
    assert compiled(mt.ones(4), mt.tensor([-1, 3])).shape == (2,)
    for wrong in (5, 4, -5):
        with pytest.raises(IndexError):
            compiled(mt.ones(4), mt.tensor([0, wrong]))


def test_a_part_of_a_result_does_not_pass_for_all_of_it() -> None:
    """Three sums with a number behind them are four numbers, although the first three have the places of the sums."""
    graph = Graph.parse("""graph(x: bool[1,3]):
      %0 = reduce_sum(x, dims=[0])    : bool[3]
      %1 = constant([true])           : bool[1]
      %2 = concatenate(%0, %1, dim=0) : bool[4]
      return %2""")
    (found,) = get("llvm")(graph)([np.array([[False, True, True]])])
    assert found.tolist() == [False, True, True, True]


@pytest.mark.parametrize("last", [lambda x: x.sum(1), lambda x: x @ x.T])
def test_what_is_used_twice_is_looked_at_once(last: Any) -> None:
    """Forty steps that use the one before twice each: a walk along all ways would take years."""

    def function(x: mt.Tensor) -> mt.Tensor:
        for _ in range(40):
            x = (x * x + x) * 0.9
        return last(x)

    x = mt.rand(5, 7)
    assert_close(mt.jit(function, backend="llvm")(x).numpy(), function(x).numpy(), "a chain")


def out_of_range() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    v, two = mt.arange(10.0), mt.tensor([0, 7])
    return {
        "a dimension of length 1": (lambda v, i: v.unsqueeze(0)[i], (v, two)),
        "arithmetic on an expanded view": (lambda v, i: (v.expand(5, 10) * 2)[i], (v, two)),
        "a number for everything": (lambda v, i: (v.sum() + mt.zeros(5))[i], (v, two)),
        "one class": (lambda v, i: F.cross_entropy(v.reshape(10, 1)[:2], i), (v, mt.tensor([0, 4]))),
        "one word": (lambda v, i: F.embedding(i, v.reshape(1, 10)), (v, two)),
    }


@pytest.mark.parametrize("name", out_of_range())
def test_an_index_that_makes_no_difference_is_checked(name: str) -> None:
    """And nothing is written when it is out of range."""
    function, args = out_of_range()[name]
    state = mt.zeros(5)

    def step(*args: mt.Tensor) -> mt.Tensor:
        result = function(*args)
        state.add_(1)
        return result

    with pytest.raises(IndexError):
        function(*args)
    for backend in ("llvm", "loops"):
        with pytest.raises(IndexError):
            mt.jit(step, backend=backend)(*args)
        assert state.sum().item() == 0
    good = mt.zeros(2, dtype=mt.int64)
    np.testing.assert_allclose(mt.jit(function)(args[0], good).numpy(), function(args[0], good).numpy(), rtol=1e-6)


def test_parts_of_a_sum_in_which_a_condition_always_holds() -> None:
    x, c = mt.rand(100_011), mt.ones(3)
    assert mt.allclose(mt.jit(lambda x, c: mt.cat([x, c]).sum())(x, c), x.sum() + 3)
    y = mt.randn(100_000)
    assert mt.allclose(mt.jit(lambda y: F.pad(y, (0, 17), value=2.0).sum())(y), y.sum() + 34, atol=1e-3)
    assert mt.jit(lambda y: F.pad(y, (8000, 0), value=9.0).amax())(y).item() == 9
    z = y.reshape(10_000, 10)
    found = mt.jit(lambda z: mt.cat([z, z[:1]]).mean(0))(z)
    assert mt.allclose(found, mt.cat([z, z[:1]]).mean(0), atol=1e-5)


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64])
def test_products_are_taken_in_order(dtype: mt.DType) -> None:
    """In any other order these would overflow on the way."""
    p = mt.tensor(np.tile([1e30, 1e-30], 40_000)).to(dtype)
    assert mt.jit(lambda p: p.prod())(p).item() == p.prod().item() == pytest.approx(1)
    rows = p.reshape(1000, 80)
    assert mt.equal(mt.jit(lambda p: p.prod(1))(rows), rows.prod(1))
    assert mt.equal(mt.jit(lambda p: p.prod(0))(rows.T.contiguous()), rows.prod(1))


def test_exponentials_that_are_multiplied_are_not_taken_online() -> None:
    x, w = np.full((8, 200_000), -1000, np.float32), np.full((8, 200_000), 3e38, np.float32)
    x[:, 100_000], w[:, 100_000] = 0, 1
    found = mt.jit(lambda x, w: ((x - x.amax(1, keepdim=True)).exp() * w).sum(1))(mt.tensor(x), mt.tensor(w))
    assert found.tolist() == [1.0] * 8


@pytest.mark.parametrize("dtype", [mt.float16, mt.float32, mt.float64])
def test_remainders_are_those_of_eager_mode_and_fuse(dtype: mt.DType) -> None:
    special = [0.0, -0.0, 1.0, -1.0, 0.7, -0.7, 3.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, -3e38, 5.5, 2.0**24]
    random = np.random.default_rng(0)
    scales = 10.0 ** random.integers(-20, 20, (2, 3000))
    a, b = random.normal(size=(2, 3000)) * scales
    with np.errstate(all="ignore"):
        x = mt.tensor(np.concatenate([np.repeat(special, len(special)), a])).to(dtype)
        y = mt.tensor(np.concatenate([np.tile(special, len(special)), b])).to(dtype)
    for function in (lambda x, y: x % y, lambda x, y: x // y):
        compiled = mt.jit(function)
        found, expected = compiled(x, y).numpy(), function(x, y).numpy()
        same = (found == expected) & (np.signbit(found) == np.signbit(expected))
        assert (same | (np.isnan(found) & np.isnan(expected))).all()
        assert [kernel.kind for kernel in compiled.ledger(x, y).kernels] == ["K1"]


def test_waves_of_large_float64_fuse() -> None:
    x = mt.tensor(np.concatenate([np.linspace(-1e3, 1e3, 99), [1e16, -1e200, np.inf, np.nan, 2.0**46, 2.0**47]]))
    compiled = mt.jit(lambda x: (x * 2).sin() + x.cos())
    np.testing.assert_allclose(compiled(x).numpy(), ((x * 2).sin() + x.cos()).numpy(), rtol=1e-12, atol=1e-15)
    assert [kernel.kind for kernel in compiled.ledger(x).kernels] == ["K1"]


@pytest.mark.parametrize("shape", [(5, 40), (5, 64), (64, 5), (300, 7), (3, 1000)])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x / (x + x.sum(1, keepdim=True)),
        lambda x: 2 / (x + (x * x).sum()).sqrt(),
        lambda x: x.T / (x.T + (x * x).sum()),
        lambda x: x / (x.sum(0) + x.sum(1, keepdim=True)),
    ],
    ids=["rows", "all", "transposed", "both"],
)
def test_divisors_that_are_made_of_sums(function: Any, shape: tuple[int, int]) -> None:
    x = mt.rand(*shape) + 1
    np.testing.assert_allclose(mt.jit(function)(x).numpy(), function(x).numpy(), rtol=1e-5)


def test_a_step_of_adam_with_gradients_scaled_by_their_norm() -> None:
    layer = mt.nn.Linear(64, 17)
    optimizer = mt.optim.Adam(layer.parameters(), 1e-2)

    def step(x: mt.Tensor) -> list[mt.Tensor]:
        optimizer.zero_grad()
        layer(x).square().mean().backward()
        gradients = [parameter.grad for parameter in layer.parameters()]
        squares: Any = sum(gradient.square().sum() for gradient in gradients)
        norm = squares.sqrt()
        for gradient in gradients:
            gradient.mul_(1 / (norm + 1))
        optimizer.step()
        return gradients

    x = mt.randn(16, 64)
    start = [parameter.detach().clone() for parameter in layer.parameters()]
    expected = [gradient.numpy().copy() for gradient in step(x)]
    with mt.no_grad():
        for parameter, value in zip(layer.parameters(), start, strict=True):
            parameter.copy_(value)
    for found, wanted in zip(mt.jit(step)(x), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-6)
