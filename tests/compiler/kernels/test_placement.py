"""Memory of compiled graphs: what shares it, how much there is of it, and that nothing is lost where it is shared."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.backends import get, llvm
from minitorch.compiler.kernels import merge
from minitorch.compiler.runtime import driver
from minitorch.compiler.runtime.memory_pool import FLAGS, address, pool
from minitorch.graph import Graph
from minitorch.modes.tracing.program import Program
from minitorch.passes import lowered
from minitorch_checking import debug
from tests.support import graphs as random_graphs
from tests.support.graphs import assert_close

Array = np.ndarray[Any, Any]


def graph_of(function: Callable[..., Any], *tensors: mt.Tensor) -> Graph:
    return lowered(mt.jit(function, backend="interpret").stages(*tensors).graph)


def compiled_of(program: Program) -> llvm.Compiled:
    assert isinstance(program.execute, llvm.Compiled)
    return program.execute


def overwritten(function: Callable[..., Any], *tensors: mt.Tensor, backend: str = "llvm") -> list[str]:
    """The names of what a jitted function writes straight over, after a call that gives what eager mode gives."""
    before = [tensor.clone() for tensor in tensors]
    with mt.no_grad():
        expected = function(*tensors)
    wanted = [tensor.numpy().copy() for tensor in tensors]
    for tensor, value in zip(tensors, before, strict=True):
        tensor.copy_(value)
    compiled = mt.jit(function, backend=backend)
    found = compiled(*tensors)
    for tensor, array in zip(tensors, wanted, strict=True):
        np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-5, atol=1e-6)
    if isinstance(found, mt.Tensor):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    program = compiled.traced(*tensors).program
    inputs = program.graph.inputs
    return sorted(str(inputs[place].params["name"]) for place in compiled_of(program).placement.overwritten.values())


# --- how much ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small kernels stay kernels."""
    monkeypatch.setattr(merge, "SMALL", 0)


@pytest.mark.usefixtures("apart")
def test_bytes_of_a_small_graph() -> None:
    """The sums over the columns of 64 rows and 256 columns are 1024 bytes; the rows that are made of them 65,536."""

    def function(x: mt.Tensor) -> mt.Tensor:
        return (x - x.sum(0)).softmax(1)

    compiled = llvm.compile(graph_of(function, mt.ones(64, 256)))
    assert len(compiled.ledger.kernels) == 2
    assert compiled.placement.arena_bytes == 256 * 4
    assert compiled.placement.peak_bytes == 256 * 4 + 64 * 256 * 4


def test_library_calls_count_too() -> None:
    """Two products of 64 x 64 floats, 16 KB each: the first lives until it has been read, the second is the result."""
    compiled = llvm.compile(graph_of(lambda x: (x @ x).exp() @ x, mt.ones(64, 64)))
    product = 64 * 64 * 4
    assert compiled.placement.arena_bytes == product  # the exponentials
    assert compiled.placement.peak_bytes == 2 * product


@pytest.mark.usefixtures("apart")
def test_a_chain_of_kernels_needs_one_buffer() -> None:
    """Each kernel is the last to read what the one before wrote, element by element: all write to one place."""

    def function(x: mt.Tensor) -> mt.Tensor:
        for _ in range(6):
            x = x.softmax(0).softmax(1)
        return x.sum()

    x = mt.rand(32, 32)
    compiled = llvm.compile(graph_of(function, x))
    np.testing.assert_allclose(compiled([x.numpy()])[0], function(x).numpy(), rtol=1e-5)
    kernels = compiled.ledger.kernels
    assert len(kernels) > 6
    largest = max(node.spec.nbytes for kernel in kernels for node in kernel.writes)
    assert compiled.placement.arena_bytes <= 2 * largest


def test_what_is_written_over_an_input_takes_no_memory() -> None:
    graph = graph_of(lambda x, y: (x * 2 + 1, -y), mt.ones(64, 64), mt.ones(64, 64))
    bytes_of_one = 64 * 64 * 4
    assert llvm.compile(graph).placement.peak_bytes == 2 * bytes_of_one
    assert llvm.compile(graph, {0: 0}).placement.peak_bytes == bytes_of_one
    assert llvm.compile(graph, {0: 1}).placement.peak_bytes == 2 * bytes_of_one  # y is read beside it
    assert llvm.compile(graph, {0: 0, 1: 1}).placement.peak_bytes == 0
    assert llvm.compile(graph, {}, [0, 1]).placement.peak_bytes == 0


# --- what is written over ---------------------------------------------------------------------------------------------


def test_updates_are_written_in_place() -> None:
    x, y = mt.rand(7, 5), mt.rand(7, 5)

    def scale(x: mt.Tensor, y: mt.Tensor) -> None:
        x.mul_(2).add_(y)

    def both(x: mt.Tensor, y: mt.Tensor) -> None:
        new = x * 0.9 + y
        y.mul_(mt.sqrt(new.abs()))
        x.copy_(new)

    def rows(x: mt.Tensor, y: mt.Tensor) -> None:
        x.copy_(x.softmax(-1))

    def fill(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        x.zero_()
        return y + 1

    assert overwritten(scale, x, y) == ["x"]
    assert overwritten(both, x, y) == ["x", "y"]
    assert overwritten(rows, x, y) == ["x"]
    assert overwritten(fill, x, y) == ["x"]


def test_what_is_read_elsewhere_is_not() -> None:
    x, y = mt.rand(6, 6), mt.rand(6, 6)

    def turned(x: mt.Tensor, y: mt.Tensor) -> None:
        x.add_(x.T.clone())

    def shifted(x: mt.Tensor, y: mt.Tensor) -> None:
        x.mul_(x.flip(0))

    def by_total(x: mt.Tensor, y: mt.Tensor) -> None:
        x.mul_(x.sum(0))

    def swapped(x: mt.Tensor, y: mt.Tensor) -> None:
        old = x.clone()
        x.copy_(y)
        y.copy_(old)

    def half_swapped(x: mt.Tensor, y: mt.Tensor) -> None:
        old = x.clone()
        x.copy_(y * 2)
        y.copy_(old)

    def returned(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        new = x * 2
        x.copy_(new)
        return new

    def the_old_one(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        old = x.clone()
        x.mul_(2)
        return old

    for function in (turned, shifted, swapped, returned, the_old_one):
        assert overwritten(function, x, y) == [], function.__name__
    assert "x" not in overwritten(half_swapped, x, y)
    overwritten(by_total, x, y)


def test_nothing_is_half_written_when_a_call_fails() -> None:
    table, counter = mt.arange(10.0), mt.zeros(3)
    out = mt.zeros(2)

    @mt.jit(backend="llvm")
    def step(i: mt.Tensor) -> None:
        counter.add_(1)
        out.copy_(table[i])

    step(mt.tensor([1, 2]))
    with pytest.raises(IndexError):
        step(mt.tensor([1, 20]))
    assert counter.tolist() == [1, 1, 1] and out.tolist() == [1, 2]

    weight = mt.ones(3)

    @mt.jit(backend="llvm")
    def divide(x: mt.Tensor) -> None:
        weight.div_(x)

    with pytest.raises(FloatingPointError), debug.check_nan():
        divide(mt.zeros(3))
    assert weight.tolist() == [1, 1, 1]
    divide(mt.full((3,), 2.0))
    assert weight.tolist() == [0.5, 0.5, 0.5]


def test_parameters_that_share_memory_or_do_not_lie_in_order() -> None:
    memory = np.zeros(12, np.float32)
    first, second = mt.from_numpy(memory[:6]), mt.from_numpy(memory[6:])
    turned = mt.from_numpy(np.zeros((3, 2), np.float32).T)

    @mt.jit(backend="llvm")
    def step(x: mt.Tensor) -> None:
        first.add_(x)
        second.sub_(x)
        turned.add_(x.reshape(2, 3))

    for _ in range(2):
        step(mt.arange(6.0))
    assert memory.tolist() == [0, 2, 4, 6, 8, 10, 0, -2, -4, -6, -8, -10]
    assert turned.tolist() == [[0, 2, 4], [6, 8, 10]]

    # Memory that overlaps only after the trace: each new value is computed from the old ones.
    p, q = mt.arange(4.0), mt.arange(4.0)

    @mt.jit(backend="llvm")
    def cross() -> None:
        p.add_(q)
        q.mul_(3)

    cross()
    shared = np.arange(5, dtype=np.float32)
    p._value, q._value = shared[:4], shared[1:]
    cross()
    assert shared.tolist() == [1, 3, 6, 9, 12]


def test_a_parameter_that_may_not_be_written() -> None:
    weight = mt.ones(3)

    @mt.jit(backend="llvm")
    def step() -> None:
        weight.mul_(2)

    step()
    weight._value.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        step()
    assert weight.tolist() == [2, 2, 2]
    weight._value.flags.writeable = True
    step()
    assert weight.tolist() == [4, 4, 4]


def test_a_variable_that_is_fed_to_itself() -> None:
    w = mt.arange(4.0)
    with mt.Graph() as graph:
        x = mt.placeholder((4,))
        update = w.add_(x.flip(0))
    session = mt.Session(graph, backend="llvm")
    session.run(update, {x: w})
    assert w.tolist() == [3, 3, 3, 3]
    with mt.lazy(backend="llvm"):
        w.mul_(2)
        w.add_(1)
    assert w.tolist() == [7, 7, 7, 7]


def test_optimisers_write_all_their_state_in_place() -> None:
    parameters = [mt.rand(5, 3), mt.rand(3)]
    for parameter in parameters:
        parameter.requires_grad_().grad = mt.ones(*parameter.shape)
    optimizer = mt.optim.Adam(parameters, lr=0.1)
    step = mt.jit(optimizer.step, backend="llvm")
    step()
    program = step.traced().program
    assert len(compiled_of(program).placement.overwritten) == len(program.updates) >= 6


# --- random programs --------------------------------------------------------------------------------------------------

STEPS: list[Callable[[mt.Tensor, mt.Tensor], mt.Tensor]] = [
    lambda a, b: a + b,
    lambda a, b: a * b - a,
    lambda a, b: mt.tanh(a),
    lambda a, b: a.softmax(-1),
    lambda a, b: a.softmax(0),
    lambda a, b: a - b.mean(-1, keepdim=True),
    lambda a, b: a * b.sum(0),
    lambda a, b: a.T + b,
    lambda a, b: a.flip(1),
    lambda a, b: mt.where(a > b, a, b.flip(0)),
    lambda a, b: F.layer_norm(a, a.shape[-1:]) + b,
    lambda a, b: a + b[:1],
    lambda a, b: a.cumsum(0) * 0.1,
    lambda a, b: mt.cat([a[1:], b[:1]]),
]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_updates(data: st.DataObject) -> None:
    """Programs that replace all they read, some of it in place: twice the same as in eager mode."""
    size = data.draw(st.sampled_from([3, 8, 17, 64]))
    number = st.integers(0, 99)
    program = data.draw(st.lists(st.tuples(st.sampled_from(range(len(STEPS))), number, number), min_size=1, max_size=8))
    ends = data.draw(st.lists(number, min_size=3, max_size=3))
    state = [mt.tensor(np.random.default_rng(seed).random((size, size), np.float32)) for seed in range(3)]
    twins = [tensor.clone() for tensor in state]

    def run(state: list[mt.Tensor]) -> None:
        values = list(state)
        for step, one, other in program:
            values.append(STEPS[step](values[one % len(values)], values[other % len(values)]))
        new = [values[-1 - end % len(values)] for end in ends]
        for tensor, value in zip(state, [value.clone() for value in new], strict=True):
            tensor.copy_(value)

    compiled = mt.jit(lambda: run(state), backend="llvm")
    for _ in range(2):
        run(twins)
        compiled()
        for found, expected in zip(state, twins, strict=True):
            largest = np.abs(expected.numpy()).max()  # sums of other order differ by so much of it
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4 * (1 + largest))
            found.copy_(expected)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_graphs_over_their_inputs(data: st.DataObject) -> None:
    graph: Graph = data.draw(random_graphs.graphs())
    arrays = random_graphs.arrays_for(graph, data.draw(st.integers(0, 9999)))
    with np.errstate(all="ignore"):
        expected = [np.array(value) for value in random_graphs.evaluate_graph(graph, arrays)]
    updates: dict[int, int] = {}
    for position, output in enumerate(graph.outputs):
        fits = [i for i, node in enumerate(graph.inputs) if node.spec == output.spec and i not in updates.values()]
        if fits:
            updates[position] = fits[0]
    compiled = llvm.compile(graph, updates, range(len(graph.inputs)))
    over = compiled.placement.overwritten
    mine = [np.array(array) for array in arrays]
    for found, value in zip(compiled(mine), expected, strict=True):
        assert_close(np.asarray(found), value, graph)
    for place, (array, before) in enumerate(zip(mine, arrays, strict=True)):
        assert place in over.values() or array.tobytes() == before.tobytes()
    for found, value in zip(compiled(arrays, overwrite=False), expected, strict=True):
        assert_close(np.asarray(found), value, graph)
        assert not any(np.shares_memory(found, array) for array in arrays)


# --- the way of the arrays --------------------------------------------------------------------------------------------


def test_numpys_objects_have_their_fields_where_the_driver_reads_them() -> None:
    compiled = llvm.compile(graph_of(lambda x: (x * 2).softmax(0) + x.sum(), mt.ones(4, 6)))
    x = np.random.default_rng(0).random((4, 6), np.float32)
    expected = get("interpret")(compiled.graph)([x])[0]
    for array in (x, np.asfortranarray(x), x[:, ::-1][:, ::-1]):
        np.testing.assert_allclose(compiled([array])[0], expected, rtol=1e-5)
        assert address(array) == array.ctypes.data
        for is_writeable in (False, True):
            array.flags.writeable = is_writeable
            flags = ctypes.c_int.from_address(id(array) + FLAGS).value
            assert bool(flags & driver.WRITEABLE) == is_writeable
            assert bool(flags & driver.CONTIGUOUS) == array.flags.c_contiguous


@pytest.mark.usefixtures("apart")
def test_many_small_kernels_are_one_step() -> None:
    def function(x: mt.Tensor) -> mt.Tensor:
        for _ in range(5):
            x = x.softmax(0) + x.sum(1)
        return x

    compiled = llvm.compile(graph_of(function, mt.rand(8, 8)))
    assert len(compiled.ledger.kernels) >= 5 and len(compiled.program.steps) == 1
    x = mt.rand(8, 8)
    np.testing.assert_allclose(compiled([x.numpy()])[0], function(x).numpy(), rtol=1e-5)


@pytest.mark.parametrize("rows", [4, 40_000])
def test_an_index_out_of_range_is_that_of_its_kernel(rows: int) -> None:
    """In a run of small kernels, and in kernels that threads share."""

    def function(table: mt.Tensor, first: mt.Tensor, second: mt.Tensor) -> mt.Tensor:
        return table[second] * table[first].softmax(0).sum(1, keepdim=True).softmax(0)

    compiled = mt.jit(function, backend="llvm")
    table = mt.rand(7, 16)
    good, bad = mt.zeros(rows, dtype=mt.int64), mt.zeros(rows, dtype=mt.int64)
    bad[rows - 1] = 7
    np.testing.assert_allclose(
        compiled(table, good, good).numpy(), function(table, good, good).numpy(), rtol=1e-4, atol=1e-7
    )
    for first, second in ((bad, good), (good, bad)):
        for _ in range(5):
            with pytest.raises(IndexError, match=r"7 is out of bounds for dim 0 of f32\[7,16\]"):
                compiled(table, first, second)
    assert (len(compiled.ledger(table, good, good).kernels) > 1) is (rows > 4)


def test_eight_threads_call_one_function() -> None:
    def function(x: mt.Tensor) -> Any:
        y = (x @ x.T).softmax(-1)
        return y.sum(0), (y * 2 + x.sum()).softmax(0)

    compiled = mt.jit(function, backend="llvm")
    inputs = [mt.rand(40, 40) * number for number in range(8)]
    alone = [[result.numpy() for result in compiled(x)] for x in inputs]

    def work(number: int) -> list[list[Array]]:
        return [[result.numpy() for result in compiled(inputs[number])] for _ in range(50)]

    with ThreadPoolExecutor(8) as executor:
        found = list(executor.map(work, range(8)))
    for results, wanted in zip(found, alone, strict=True):
        for result in results:
            for array, value in zip(result, wanted, strict=True):
                np.testing.assert_array_equal(array, value)
    everything = [array for results in found for result in results[:3] for array in result]
    for number, array in enumerate(everything):
        assert not any(np.shares_memory(array, other) for other in everything[:number])


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_functions_that_are_dropped_leave_no_memory_behind() -> None:
    weight = mt.rand(512, 512)

    def once(number: int) -> None:
        @mt.jit(backend="llvm")
        def function(x: mt.Tensor) -> mt.Tensor:
            weight.mul_(1.0 + number * 1e-9)
            return (x * float(number) + weight.sum(0)).softmax(-1)

        function(mt.rand(600, 512))

    for number in range(20):
        once(number)
    gc.collect()
    pool._free.clear()
    before = resident_bytes()
    for number in range(20, 220):
        once(number)
    gc.collect()
    pool._free.clear()
    assert resident_bytes() - before < 40 << 20


# Values without elements, of a matrix.
EMPTY: dict[str, Callable[[mt.Tensor], mt.Tensor]] = {
    "rows": lambda a: a[1:1],
    "columns": lambda a: a[:, 2:2],
    "a sum": lambda a: a[1:1].sum(1),
    "a maximum": lambda a: a[1:1].amax(1),
    "two parts": lambda a: mt.cat([a[1:1].exp(), a[2:2]]),
    "a product": lambda a: a[1:1] @ a.T,
    "softmax": lambda a: a[1:1].softmax(-1),
    "attention": lambda a: (a[1:1] @ a.T).softmax(-1) @ a,
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("columns", [1, 3, 20])
def test_a_value_without_elements_has_a_place_too(name: str, columns: int) -> None:
    """Beside others of what shares its kernel, in loops that are written out and in those that are not."""

    def function(v: mt.Tensor, w: mt.Tensor) -> tuple[mt.Tensor, ...]:
        a = mt.cat([v, v, v], 1)
        return a, F.log_softmax(a, -2) @ w, EMPTY[name](a), a[1:1], EMPTY[name](a).sum() * a.sum(1)

    operands = mt.randn(4, columns), mt.randn(3 * columns, 5)
    for found, expected in zip(mt.jit(function)(*operands), function(*operands), strict=True):
        assert_close(found.numpy(), expected.numpy(), name)
