"""Variation analysis: no value differs along an axis that the analysis leaves out, for all graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitorch import primitives as P
from minitorch.graph import Graph
from minitorch.ir import INPUT, Node
from minitorch.passes import DEFAULT, lowered, run_pipeline
from minitorch_inference import variation as module
from minitorch_inference.variation import reshape_groups, variation
from tests.support.graphs import MOVEMENTS, Array, arrays_for, assert_close, evaluate_graph, graphs, same_bits


def all_values(graph: Graph, seed: int) -> dict[Node, Array]:
    """The value of every node."""
    every = Graph(graph.inputs, (*graph.inputs, *graph.nodes), graph.nodes, verify=False)
    return dict(zip(every.outputs, evaluate_graph(every, arrays_for(graph, seed)), strict=True))


def assert_sound(graph: Graph, seed: int) -> None:
    """Along an axis that is left out, all slices of a value are the first."""
    found = variation(graph)
    try:
        values = all_values(graph, seed)
    except IndexError:
        return
    for node, value in values.items():
        assert all(node.shape[axis] > 1 for axis in found[node])
        for axis in set(range(node.spec.ndim)) - found[node]:
            first = np.take(value, [0], axis) if value.size else value
            repeated = np.ascontiguousarray(np.broadcast_to(first, value.shape))
            if node.primitive.kind == "contraction":  # a library sums rows in an order of its own
                assert_close(value, repeated, (str(graph), node, axis))
            else:
                assert same_bits(value, repeated) or close_float(value, repeated), (str(graph), node, axis)


def close_float(a: Array, b: Array) -> bool:
    """Of a product of matrices, what is computed from its equal rows differs as they do."""
    try:
        assert_close(a, b, "")
    except AssertionError:
        return False
    return a.dtype.name in ("float16", "bfloat16", "float32", "float64")


@given(graphs(max_nodes=12), st.integers(0, 99))
@settings(max_examples=300, deadline=None)
def test_no_value_varies_along_another_axis(graph, seed):
    assert_sound(graph, seed)


@given(graphs(max_nodes=14, primitives=tuple(MOVEMENTS)), st.integers(0, 99))
@settings(max_examples=200, deadline=None)
def test_movements_vary_along_no_other_axis(graph, seed):
    assert_sound(graph, seed)


@given(graphs(max_nodes=10))
@settings(max_examples=100, deadline=None)
def test_a_lowered_graph_is_analysed_too(graph):
    after = lowered(run_pipeline(graph, DEFAULT).graph)
    found = variation(after)
    assert set(found.axes) == {*after.inputs, *after.nodes}


@given(graphs(max_nodes=12))
@settings(max_examples=100, deadline=None)
def test_a_constant_depends_on_no_input_no_draw_and_no_barrier(graph):
    found = variation(graph)
    for node in graph.nodes:
        pending, reached = [node], set()
        while pending:
            at = pending.pop()
            reached.add(at)
            pending += [each for each in at.inputs if each not in reached]
        opaque = any(each.primitive in (INPUT, P.barrier, P.random_bits) for each in reached)
        assert found.is_constant(node) == (not opaque)


ROWS = "%0 = expand(b, shape=[4,3]) %1 = "  # varies along axis 1

CASES = [  # a program, and the axes along which its last value varies
    ("%0 = expand(b, shape=[4,3])", {1}),
    ("%0 = expand(c, shape=[2,3])", {0}),
    ("%0 = constant([[1, 2], [1, 2]]) : f32[2,2]", {1}),
    ("%0 = constant([[1, 1], [2, 2]]) : f32[2,2]", {0}),
    ("%0 = constant([[0.0, -0.0], [0.0, -0.0]]) : f32[2,2]", {1}),  # different bits
    ("%0 = constant([[5, 5], [5, 5]]) : f32[2,2]", set()),
    ("%0 = expand(b, shape=[2,3]) %1 = expand(c, shape=[2,3]) %2 = add(%0, %1)", {0, 1}),
    (ROWS + "reshape(%0, shape=[2,2,3])", {2}),
    (ROWS + "reshape(%0, shape=[12])", {0}),
    (ROWS + "reshape(%0, shape=[12]) %2 = reshape(%1, shape=[4,3])", {0, 1}),  # an upper bound
    (ROWS + "permute(%0, dims=[1,0])", {0}),
    (ROWS + "unfold(%0, dim=0, size=2, step=1, dilation=1)", {1}),
    (ROWS + "unfold(%0, dim=1, size=2, step=1, dilation=1)", {1, 2}),
    (ROWS + "pad(%0, padding=[[0,0,0],[1,1,0]], value=0.0)", {1}),
    (ROWS + "pad(%0, padding=[[1,0,0],[0,0,0]], value=0.0)", {0, 1}),
    (ROWS + "slice(%0, start=[0,1], stop=[4,2], step=[1,1])", set()),
    (ROWS + "reduce_sum(%0, dims=[1])", set()),
    (ROWS + "reduce_sum(%0, dims=[0])", {0}),
    (ROWS + "cumsum(%0, dim=0)", {0, 1}),
    (ROWS + "permute(%0, dims=[1,0]) %2 = dot(%0, %1, dtype=f32)", set()),
    (ROWS + "permute(%0, dims=[1,0]) %2 = dot(%1, %0, dtype=f32)", {0, 1}),
    (ROWS + "diagonal(%0, offset=0)", {0}),
    ("%0 = expand(b, shape=[2,4,3]) %1 = diagonal(%0, offset=0)", {1}),
    (ROWS + "concatenate(%0, %0, dim=0)", {0, 1}),
    (ROWS + "concatenate(%0, %0, dim=1)", {1}),
]


@pytest.mark.parametrize(("program", "axes"), CASES)
def test_axes(program, axes):
    graph = Graph.parse(f"graph(b: f32[3], c: f32[2,1]): {program} return b")
    assert variation(graph)[graph.nodes[-1]] == axes


@given(st.lists(st.integers(1, 4), max_size=5), st.data())
def test_groups_of_a_reshape_are_runs_of_equal_size(old, data):
    """Joining and splitting axes; the groups cover every axis longer than one, in order."""
    new = list(old)
    for _ in range(3):
        at = data.draw(st.integers(0, max(len(new) - 2, 0)))
        if len(new) > 1 and data.draw(st.booleans()):
            new[at : at + 2] = [new[at] * new[at + 1]]
        elif new and new[at] == 4:
            new[at : at + 1] = [2, 2]
    groups = reshape_groups(tuple(old), tuple(new))
    assert [axis for one, _ in groups for axis in one] == [axis for axis, length in enumerate(old) if length > 1]
    assert [axis for _, other in groups for axis in other] == [axis for axis, length in enumerate(new) if length > 1]
    for one, other in groups:
        assert np.prod([old[axis] for axis in one]) == np.prod([new[axis] for axis in other])


@pytest.mark.parametrize("primitive", [*module.RULES], ids=lambda each: each.name)
def test_every_rule_of_a_movement_is_needed(primitive, monkeypatch):
    """Without its rule, nothing is known of a primitive's result."""
    monkeypatch.delitem(module.RULES, primitive)
    programs = [Graph.parse(f"graph(b: f32[3], c: f32[2,1]): {program} return b") for program, _ in EVERY]
    found = [variation(graph)[graph.nodes[-1]] for graph in programs]
    assert found != [axes for _, axes in EVERY]


SHARDED = 'shard(%0, mesh=[["data",2]], axes=[["data"],[]], devices=[])'
EVERY = [*CASES, (ROWS + "flip(%0, dims=[0])", {1}), (ROWS + "barrier(%0)", {1}), (ROWS + SHARDED, {1})]


def test_a_wrong_rule_is_caught(monkeypatch):
    """Planted: a padded axis is taken for one along which nothing varies."""
    monkeypatch.setitem(module.RULES, P.pad, module._union)
    graph = Graph.parse(f"graph(b: f32[3]): {ROWS} pad(%0, padding=[[1,0,0],[0,0,0]], value=7.0) return %1")
    with pytest.raises(AssertionError):
        assert_sound(graph, 0)
