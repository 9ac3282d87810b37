"""The `interpret` backend: what it returns is what the primitives say, in memory of its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minitorch as mt
from minitorch.graph import Graph, apply, input_node
from minitorch.interpreters import observing
from minitorch.ir import Spec
from minitorch.primitives import add, concatenate, exp, expand, permute, reshape
from tests.graphs import arrays_for, evaluate_graph, graphs, same_bits

interpret = mt.backends.get("interpret")


@given(graphs(), st.integers(0, 100))
@settings(deadline=None, max_examples=200)
def test_random_graphs_give_what_the_primitives_say(graph, seed):
    arrays = arrays_for(graph, seed)
    copies = [array.copy() for array in arrays]
    executable = interpret(graph)
    for _ in range(2):
        results = executable(arrays)
        for mine, theirs, node in zip(results, evaluate_graph(graph, copies), graph.outputs, strict=True):
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
        return [x, x, flat, turned, wide, wide], [flat, turned, wide]

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
