"""The `interpret` backend: what it returns is what the primitives say, in memory of its own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minitorch as mt
from minitorch.graph import Graph, apply, input_node
from minitorch.interpreters import observing
from minitorch.ir import Spec
from minitorch.nn import functional as F
from minitorch.primitives import add, check, concatenate, exp, expand, permute, reshape
from minitorch.tree import flatten
from tests.support.graphs import arrays_for, evaluate_graph, graphs, same_bits

interpret = mt.backends.get("interpret")


@given(graphs(), st.integers(0, 100))
@settings(deadline=None, max_examples=200)
def test_random_graphs_give_what_the_primitives_say(graph, seed):
    arrays = arrays_for(graph, seed)
    copies = [array.copy() for array in arrays]
    executable = interpret(graph)
    for _ in range(2):
        results = executable(arrays)
        for mine, theirs, node in zip(results, evaluate_graph(graph, copies, views=True), graph.outputs, strict=True):
            assert same_bits(mine, theirs) and mine.shape == node.shape
            assert mine.flags.c_contiguous and mine.flags.writeable


@given(graphs(), st.integers(0, 100))
@settings(deadline=None, max_examples=100)
def test_results_share_memory_with_nothing(graph, seed):
    arrays = arrays_for(graph, seed)
    copies = [array.copy() for array in arrays]
    executable = interpret(graph)
    results = executable(arrays)
    expected = [result.copy() for result in results]
    for position, result in enumerate(results):
        for other in (*arrays, *results[:position]):
            assert not np.shares_memory(result, other)
        result.fill(1)
    for array, copy in zip(arrays, copies, strict=True):
        assert same_bits(array, copy)
    for again, before in zip(executable(arrays), expected, strict=True):
        assert same_bits(again, before), "constants are not written through results"


def x_and_graph(build, shape=(2, 3)):
    x = input_node("x", Spec(shape, mt.float32))
    outputs, nodes = build(x)
    return Graph([x], outputs, nodes), np.arange(6, dtype=np.float32).reshape(shape)


def test_an_output_may_be_an_input_twice_and_a_view():
    def build(x):
        flat = apply(reshape, x, shape=(6,))
        turned = apply(permute, x, dims=(1, 0))
        wide = apply(expand, flat, shape=(2, 6))
        checked = apply(check, x, low=0, high=5, what="f: x", error="ValueError")
        return [x, x, flat, turned, wide, wide, checked], [flat, turned, wide, checked]

    graph, array = x_and_graph(build)
    results = interpret(graph)([array])
    assert results[4].shape == (2, 6) and results[3].shape == (3, 2)
    for position, result in enumerate(results):
        assert all(not np.shares_memory(result, other) for other in (array, *results[:position]))


def test_a_value_is_dropped_after_its_last_use():
    def build(x):
        nodes, at = [], x
        for _ in range(20):
            at = apply(exp, at)
            nodes.append(at)
        return [at], nodes

    graph, array = x_and_graph(build)
    executable, alive = interpret(graph), []
    import weakref

    references = []

    def look(primitive, inputs, value, source):
        references.append(weakref.ref(value))
        alive.append(sum(reference() is not None for reference in references))

    with observing(look):
        executable([array])
    assert max(alive) <= 3


def test_observers_see_every_node_once():
    def build(x):
        a = apply(add, x, x)
        b = apply(concatenate, a, x, dim=0)
        return [b], [a, b]

    graph, array = x_and_graph(build)
    seen = []
    with observing(lambda primitive, inputs, value, source: seen.append((primitive.name, value.shape))):
        interpret(graph)([array])
    assert seen == [("add", (2, 3)), ("concatenate", (4, 3))]


def test_an_unknown_backend_is_named():
    with pytest.raises(ValueError, match=r"no backend 'fast'.*'interpret'"):
        mt.jit(lambda x: x, backend="fast")


# The bits of eager mode, for operands of all strides ----------------------------------------------------------------

STRIDES = {
    "contiguous": lambda *shape: mt.randn(*shape),
    "reversed": lambda *shape: mt.randn(*shape[::-1]).permute(*reversed(range(len(shape)))),
    "stepped": lambda *shape: mt.randn(*shape[:-1], 2 * shape[-1])[..., ::2],
    "sliced": lambda *shape: mt.randn(*shape[:-1], shape[-1] + 3)[..., 1:-2],
    "rows stepped": lambda *shape: mt.randn(2 * shape[0], *shape[1:])[::2],
    "expanded": lambda *shape: mt.randn(1, *shape[1:]).expand(*shape),
    "columns expanded": lambda *shape: mt.randn(*shape[:-1], 1).expand(*shape),
}

SUMS: dict[str, tuple[Any, ...]] = {
    "matmul": (lambda a, b: (a @ b, a.t().clone() @ b.t().clone().t()[:17]), (17, 33), (33, 17)),
    "transposed": (lambda a, b: (a.t() @ b.t(), (a.t() * 1) @ b.t()), (130, 57), (29, 130)),
    "matrix and vector": (lambda a, b: (a @ b[0], a.t().clone() @ b[0, :17], b[0] @ a.t()), (17, 33), (2, 33)),
    "by itself": (lambda a: (a @ a.t(), a.clone() @ a.t(), a @ a.clone().t()), (33, 17)),
    "batches": (lambda a, b: a @ b.transpose(1, 2), (3, 7, 9), (3, 5, 9)),
    "linear": (lambda a, b: (F.linear(a, b), F.linear(a[:1], b), F.linear(a[None], b)), (5, 33), (9, 33)),
    "einsum": (lambda a, b: mt.einsum("bij,bkj->kbi", a, b), (2, 5, 33), (2, 9, 33)),
    "layer_norm": (lambda a: (F.layer_norm(a, (33,)), F.layer_norm(a.t(), (25,))), (25, 33)),
    "cosine_similarity": (lambda a, b: (F.cosine_similarity(a, b), F.cosine_similarity(a, b, -1)), (5, 33), (5, 33)),
    "softmax": (lambda a: (a.softmax(0), a.t().softmax(0), a.logsumexp(-1)), (25, 33)),
    "sums": (lambda a: ((a.t() * 2).sum(1), a.sum(), a.t().clone().sum(0), a.neg().neg().sum(1)), (25, 33)),
    "many rows": (lambda a: (a.t().clone().sum(1), a.mean(0), a.t().reshape(-1).reshape(30, 600).sum(1)), (600, 30)),
    "variance": (lambda a: (a.var(0), a.t().std(), a.norm(), a.cumsum(0), a.prod(1)), (25, 33)),
    "elementwise": (lambda a: a.t().sin() + a.t().exp().tanh() + a.t().abs().log() + F.gelu(a.t()), (25, 33)),
    "attention": (lambda q, k: F.scaled_dot_product_attention(q.mT, k.mT, k.mT), (2, 3, 8, 7), (2, 3, 8, 7)),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1), (2, 3, 8, 9), (4, 3, 3, 3)),
    "gradient": (lambda a, b: mt.grad(lambda a: F.gelu(a.t() @ b).sum() + a.norm())(a), (33, 17), (33, 9)),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_graph_as_traced_gives_the_bits_of_eager_mode_for_all_strides(name):
    function, *shapes = SUMS[name]
    mt.manual_seed(0)
    for strides in itertools.product(STRIDES.values(), repeat=len(shapes)):
        given = [make(*shape) for make, shape in zip(strides, shapes, strict=True)]
        expected, found = function(*given), mt.jit(function, backend="interpret", passes=())(*given)
        for one, other in zip(flatten(expected)[0], flatten(found)[0], strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy(), strict=True)


def test_constants_are_added_up_as_in_eager_mode():
    def function(x):
        ones = mt.full((3, 37), 0.1)
        return ones[:1] @ x, x.t() @ ones.t(), ones.sum(1), ones.t().sum(0), ones.cumsum(1), mt.ones(1, 37) @ x

    x = mt.randn(37, 5)
    for one, other in zip(function(x), mt.jit(function, backend="interpret", passes=())(x), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), strict=True)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (F.linear, ((4,), (7, 4))),
        (lambda x, w: x @ w.t(), ((3, 4), (5, 4))),
        (lambda x, w: F.scaled_dot_product_attention(x, w, w), ((3, 4), (9, 4))),
        (lambda x, w: (x.t() @ w[:, 1:3]).flip(0), ((6, 4), (6, 5))),
    ],
)
def test_gradients_from_outside_have_the_bits_of_eager_mode(function, shapes):
    """The way back takes views of the arguments again, as eager mode does: with their strides, and without copies."""
    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in shapes]
    found = []
    for way in (function, mt.jit(function, backend="interpret")):
        x, w = (mt.tensor(array, requires_grad=True) for array in arrays)
        y = way(x, w)
        y.backward(mt.arange(y.numel()).reshape(y.shape).float().sin())
        found.append([x.grad.numpy().tobytes(), w.grad.numpy().tobytes()])
    assert found[0] == found[1]


def test_a_transposed_argument_is_no_residual():
    x, w = mt.ones(2, 4, requires_grad=True), mt.ones(3, 4, requires_grad=True)
    assert len(mt.jit(F.linear).graph(x, w).outputs) == 1
