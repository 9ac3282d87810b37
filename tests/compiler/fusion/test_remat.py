"""Rematerialisation: which values are stored, that a deep model moves as much for every layer, and equal results."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minitorch as mt
from benchmarks.cases import transformer_block
from benchmarks.libraries import HEADS, Minitorch
from minitorch.compiler.codegen.host import host
from minitorch.compiler.fusion import cost_model, remat
from minitorch.compiler.kernels.ledger import AGAIN
from minitorch.graph import apply, input_node
from minitorch.ir import PRIMITIVES, Spec
from tests.support.graphs import assert_compiled_agrees, graphs
from tests.support.helpers import made_for

F = mt.nn.functional
LIBRARY = Minitorch()
ROWS, WIDTH = 256, 8 * HEADS
DEPTHS = 3, 5, 7


def weight(rows=WIDTH, columns=WIDTH):
    return mt.randn(rows, columns) / rows**0.5


def norm():
    return [mt.ones(WIDTH), mt.zeros(WIDTH)]


def feed_forward(x, w1, b1, w2, b2):
    return F.gelu(x @ w1 + b1) @ w2 + b2


def widened():
    return [weight(WIDTH, 2 * WIDTH), mt.zeros(2 * WIDTH), weight(2 * WIDTH), mt.zeros(WIDTH)]


def attention_block():
    return [
        *norm(), weight(WIDTH, 3 * WIDTH), mt.zeros(3 * WIDTH), weight(), mt.zeros(WIDTH),
        *norm(), weight(WIDTH, 4 * WIDTH), mt.zeros(4 * WIDTH), weight(4 * WIDTH), mt.zeros(WIDTH),
    ]  # fmt: skip


def matrix():
    return mt.randn(ROWS, WIDTH)


# The parameters of a layer, what it does, and what the first one is given.
MODELS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "plain": (lambda: [weight()], lambda x, w: x + F.relu(x @ w), matrix),
    "activation first": (lambda: [weight()], lambda x, w: x + F.relu(x) @ w, matrix),
    "norm first": (
        lambda: [*norm(), *widened()],
        lambda x, g, b, *more: x + feed_forward(F.layer_norm(x, (WIDTH,), g, b), *more),
        matrix,
    ),
    "norm last": (
        lambda: [*norm(), *widened()],
        lambda x, g, b, *more: F.layer_norm(x + feed_forward(x, *more), (WIDTH,), g, b),
        matrix,
    ),
    "transformer": (
        attention_block,
        lambda x, *p: transformer_block(LIBRARY, p, x),
        lambda: mt.randn(4, 32, WIDTH),
    ),
    "convolution": (
        lambda: [mt.randn(8, 8, 3, 3) / 9],
        lambda x, w: x + F.conv2d(F.relu(x), w, padding=1),
        lambda: mt.randn(4, 8, 16, 16),
    ),
}


def deep(name, depth):
    """A model of a depth, its parameters, and something to put in."""
    make, layer, start = MODELS[name]
    layers = [make() for _ in range(depth)]

    def model(x):
        for parameters in layers:
            x = layer(x, *parameters)
        return x

    return model, [p for parameters in layers for p in parameters], start()


def trained(name, depth):
    model, parameters, x = deep(name, depth)
    optimizer = mt.optim.SGD([p.requires_grad_() for p in parameters], 0.01)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, x


@dataclass(frozen=True)
class Counts:
    """What is counted of a program."""

    kernels: int
    read: int
    written: int
    nodes: int
    most_inputs: int
    most_nodes: int
    arena: int


def counts(function, x):
    compiled = mt.jit(function)
    kernels, cost = compiled.ledger(x).kernels, compiled.cost(x)
    return Counts(
        cost.kernels,
        cost.bytes_read,
        cost.bytes_written,
        sum(len(kernel.nodes) for kernel in kernels),
        max(len(kernel.reads) for kernel in kernels),
        max(len(kernel.nodes) for kernel in kernels),
        cost.arena_bytes,
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_deep_model_moves_as_much_for_every_layer(name):
    few, more, most = (counts(model, x) for model, _, x in (deep(name, depth) for depth in DEPTHS))
    for each in ("kernels", "read", "written", "nodes"):
        assert getattr(most, each) - getattr(more, each) == getattr(more, each) - getattr(few, each), each
    assert few.most_inputs == most.most_inputs
    assert few.most_nodes == most.most_nodes
    assert few.arena == most.arena  # what earlier layers summed up is not alive any more


@pytest.mark.parametrize("name", MODELS)
def test_so_does_its_training_step(name):
    few, more, most = (counts(*trained(name, depth)) for depth in DEPTHS)
    for each in ("kernels", "read", "written"):
        growth = getattr(more, each) - getattr(few, each)
        assert getattr(most, each) - getattr(more, each) == growth, each
    assert few.most_inputs == most.most_inputs


def kept(function, *args):
    edges = mt.jit(function).ledger(*args).edges
    return {edge.producer.primitive.name for edge in edges if edge.reason.startswith("stored:")}


def shared(readers):
    """A sum that some matrix products read."""
    others = [weight(WIDTH, 16) for _ in range(readers)]
    return lambda x, y: [(x + y) @ w for w in others]


def test_a_sum_is_kept_if_its_readers_would_read_more():
    x, y = matrix(), matrix()
    assert not kept(shared(3), x, y)  # to compute it three times: 6 reads; to keep it: 2 reads, a write and 3 reads
    assert kept(shared(5), x, y) == {"add"}
    size = x.nbytes / 1000
    assert f"stored: {6 * size:.3g} kB of traffic, against {8 * size:.3g} kB" in str(mt.jit(shared(5)).ledger(x, y))


def test_what_is_made_of_one_array_is_computed_again():
    others = [weight(WIDTH, 16) for _ in range(5)]
    assert not kept(lambda x, b: [F.relu(x * 2 + b) @ w for w in others], matrix(), mt.randn(WIDTH))


def test_what_is_small_is_not_worth_a_kernel():
    x, y = matrix()[:4], matrix()[:4]
    assert not kept(shared(5), x, y)


def test_many_operations_are_not_done_by_every_reader():
    def chain(x, length):
        for _ in range(length):
            x = x * 1.01 + 0.5
        return x @ first, x @ second

    first, second = weight(WIDTH, 16), weight(WIDTH, 16)
    assert not kept(lambda x: chain(x, 5), matrix())
    assert kept(lambda x: chain(x, 60), matrix()) == {"add"}


def test_of_many_products_that_are_added_up_few_wait_in_memory():
    x, weights = mt.randn(1 + host().caches[1] // (4 * WIDTH), WIDTH), [weight() for _ in range(24)]

    def model(x):
        total = mt.zeros(x.shape)
        for w in weights:
            total = total + F.relu(x @ w)
        return total

    found = counts(model, x)
    assert found.most_inputs <= remat.MOST_READ + 3
    assert found.arena <= (remat.MOST_READ + 2) * x.nbytes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remat, "MOST_READ", 100)
        assert counts(model, x).read + counts(model, x).written == found.read + found.written


def test_what_is_put_together_again_and_again_is_stored_now_and_then():
    weights = [weight(WIDTH + 8 * number, 8) for number in range(20)]

    def model(x):
        for w in weights:
            x = mt.cat([x, F.relu(x @ w)], 1)
        return x

    assert counts(model, matrix()).most_inputs <= 12


@pytest.mark.parametrize("depth", [2, 8])
def test_a_chain_of_lookups_grows_with_its_length(depth):
    """Each lookup reads two places of the one before it: recomputed, a chain of 8 would be 2 ** 8 lookups."""

    def model(x, at):
        for _ in range(depth):
            found = x.gather(1, at)
            at = mt.where(found[:, 1:] < found[:, :-1], at[:, 1:], at[:, :-1])
        return at

    kernels = mt.jit(model).ledger(mt.randn(4, 10), mt.zeros(4, 10, dtype=mt.int64)).kernels
    assert sum(len(kernel.source) for kernel in kernels) < 2000 * depth


def test_it_is_stored_as_it_was_put_together_not_as_it_is_seen():
    """An expanded view of it is far larger."""

    def model(a, b):
        x = a
        for number in range(10):
            x = mt.cat([x, a * number])
        wide = x[:, None].expand(*b.shape)
        return (wide * b).sum(1), (wide + b).amax(0)

    a, b = mt.randn(64), mt.randn(11 * 64, WIDTH)
    assert max(kernel.bytes_written for kernel in mt.jit(model).ledger(a, b).kernels) < b.nbytes // 10


def test_a_value_that_only_dead_code_reads_is_not_stored():
    """Without passes, dead code is still there when the compiler asks which values are worth storing."""

    def model(a, b):
        total = a + b
        total.exp()  # never used
        total.sin()
        return a.sqrt()

    a, b = mt.ones(40, 700), mt.ones(40, 700)
    (kernel,) = mt.jit(model, passes=()).ledger(a, b).kernels
    assert kernel.bytes_read == kernel.bytes_written == a.nbytes


def test_what_an_element_costs_follows_from_the_declaration():
    assert cost_model.price(PRIMITIVES["exp"]) == cost_model.price(PRIMITIVES["div"]) == cost_model.EXPENSIVE
    x = input_node("x", Spec((2,), mt.float32))
    assert cost_model.weight(apply(PRIMITIVES["add"], x, x)) == cost_model.OPERATION
    assert cost_model.weight(apply(PRIMITIVES["flip"], x, dims=(0,))) == 0


def test_cheap_operations_hide_behind_traffic_and_expensive_ones_do_not():
    x = input_node("x", Spec((2,), mt.float32))
    cheap, expensive = apply(PRIMITIVES["add"], x, x), apply(PRIMITIVES["exp"], x)
    few = cost_model.HIDDEN // cost_model.OPERATION
    assert cost_model.noticed(*cost_model.times_of([(cheap, few)])) == 0
    assert cost_model.noticed(*cost_model.times_of([(cheap, few + 1)])) == cost_model.OPERATION
    assert cost_model.noticed(*cost_model.times_of([(expensive, 1), (cheap, few)])) == cost_model.EXPENSIVE


@contextmanager
def eager_to_keep():
    """As if there were no caches, and every byte counted."""
    few = 2 * cost_model.OPERATION
    with pytest.MonkeyPatch.context() as patch, made_for(caches=(0, 0, 0)):
        patch.setattr(cost_model, "HIDDEN", few)
        for name, value in {"KERNEL": 0, "NEGLIGIBLE": 1 << 20, "MOST_READ": 1, "HIDDEN": few}.items():
            patch.setattr(remat, name, value)
        yield


@contextmanager
def eager_to_recompute():
    """As if caches held nothing, and memory were slow."""
    with pytest.MonkeyPatch.context() as patch, made_for(caches=(0, 0, 0)):
        patch.setattr(remat, "BYTE", 10**9)
        yield


@pytest.mark.parametrize("eager", [eager_to_keep, eager_to_recompute])
@settings(max_examples=60, deadline=None)
@given(graphs(max_nodes=14), st.integers(0, 1000))
def test_results_are_the_same(eager, graph, seed):
    with eager():
        assert_compiled_agrees(graph, seed)


@pytest.mark.parametrize("name", MODELS)
def test_a_deep_model_computes_the_same(name):
    model, _, x = deep(name, 3)
    expected = model(x).numpy()
    np.testing.assert_allclose(mt.jit(model)(x).numpy(), expected, rtol=1e-3, atol=1e-4 * abs(expected).max())


# Expensive values ----------------------------------------------------------------------------------------------


def step(x, w):
    """Two layers; the backward pass of the first needs its product and the tanh of that."""
    w.grad = None
    (F.gelu(x @ w, "tanh") @ w.mT).square().sum().backward()
    return w.grad


def told_again(function, *args):
    return [edge for edge in mt.jit(function).ledger(*args).edges if edge.reason == AGAIN]


def test_a_large_tanh_is_computed_again_and_a_small_one_kept():
    rows = 4 * host().caches[1] // (4 * 256)
    w = mt.randn(64, 256).requires_grad_()
    large = told_again(step, mt.randn(rows, 64), w)
    assert {edge.producer.primitive.name for edge in large} == {"tanh"} and all(edge.fused for edge in large)
    assert not told_again(step, mt.randn(16, 64), w)
    assert "recomputing it costs less" in str(mt.jit(step).ledger(mt.randn(rows, 64), w))


def test_what_would_have_to_be_stored_instead_is_not_computed_again():
    """Of tanh(x @ w), the backward pass needs the tanh alone: to keep the sum for it would save nothing."""
    rows = 4 * host().caches[1] // (4 * 256)

    def only_the_tanh(x, w):
        w.grad = None
        (mt.tanh(x @ w) @ w.mT).square().sum().backward()
        return w.grad

    assert not told_again(only_the_tanh, mt.randn(rows, 64), mt.randn(64, 256).requires_grad_())


def test_it_is_not_computed_again_for_every_repetition():
    x = mt.randn(4 * host().caches[1] // 4, 1)
    assert not told_again(lambda x: (x.exp() + 1, (x.exp().expand(-1, 8) * 2).sum(0), x * 2), x)


def test_a_step_is_the_same():
    x, w = mt.randn(16, 64), mt.randn(64, 256).requires_grad_()
    with eager_to_recompute():
        assert told_again(step, x, w)
        found = mt.jit(step)(x, w).numpy()
    np.testing.assert_allclose(found, step(x, w).numpy(), rtol=1e-3, atol=1e-1)
