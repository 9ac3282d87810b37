"""Recompute or keep: which expensive values are stored, and that it makes no difference to the results."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minitorch as mt
from minitorch.compiler.codegen.host import host
from minitorch.compiler.fusion import again
from minitorch.compiler.kernels.schedule import AGAIN
from tests.graphs import assert_compiled_agrees, graphs
from tests.helpers import made_for

F = mt.nn.functional


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
    assert "to compute it again costs less" in str(mt.jit(step).ledger(mt.randn(rows, 64), w))


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


@pytest.fixture(scope="module")
def eager_to_recompute():
    """As if caches held nothing, and memory were slow."""
    with pytest.MonkeyPatch.context() as patch, made_for(caches=(0, 0, 0)):
        patch.setattr(again, "SECONDS_PER_BYTE", 1.0)
        yield


@settings(max_examples=60, deadline=None)
@given(graphs(max_nodes=14), st.integers(0, 1000))
def test_results_are_the_same(eager_to_recompute, graph, seed):
    assert_compiled_agrees(graph, seed)


def test_a_step_is_the_same(eager_to_recompute):
    x, w = mt.randn(16, 64), mt.randn(64, 256).requires_grad_()
    assert told_again(step, x, w)
    np.testing.assert_allclose(mt.jit(step)(x, w).numpy(), step(x, w).numpy(), rtol=1e-3, atol=1e-1)
