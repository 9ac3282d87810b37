"""Graphs: what is legal, how they are taken apart and put together, what they cost."""

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitorch import primitives as P
from minitorch.dtypes import bool_, float32, int8, int64
from minitorch.errors import GraphError
from minitorch.graph import Graph, apply, input_node, literal, topological_order
from minitorch.graph.text import declared_params
from minitorch.graph.verify import PARAMETERS
from minitorch.ir import LOWERED, PRIMITIVES, Node, Primitive, Source, Spec, as_input_name, is_input_name
from tests.support.graphs import graphs

VECTOR = Spec((4,), float32)


def two_layers() -> Graph:
    return Graph.parse("""
        graph(x: f32[8,4], w: f32[4,2], b: f32[2]):
          %0 = dot(x, w, dtype=f32)
          %1 = expand(b, shape=[8,2])
          %2 = add(%0, %1)
          %3 = exp(%2)
          %4 = reduce_sum(%3, dims=[0,1])
          return %4
    """)


# Rules ----------------------------------------------------------------------------------------------------------

x = input_node("x", VECTOR)
negated = apply(P.neg, x, source=Source("program.py", 7))
stranger = Primitive("stranger", "unary", lambda a: a, lambda a: a)


def node(primitive, inputs, params, spec=VECTOR):
    return Node(primitive, inputs, params, spec, Source("program.py", 7))


NUMPYS_TWO: Any = np.int64(2)

BROKEN = {
    "order": (lambda: Graph([], [negated], [negated]), "'x' (f32[4]) is not an input"),
    "order of nodes": (lambda: Graph([x], [], [apply(P.exp, negated), negated]), "is not before it"),
    "primitive": (lambda: Graph([x], [], [node(stranger, (x,), {})]), "stranger is not in the table"),
    "primitive, input": (lambda: Graph([x], [], [x]), "listed among the nodes"),
    "once": (lambda: Graph([x], [], [negated, negated]), "listed twice"),
    "input": (lambda: Graph([x, negated], []), "is a neg"),
    "input name": (lambda: Graph([input_node("1.5", VECTOR)]), "'1.5' is not a name"),
    "unique names": (lambda: Graph([x, input_node("x", VECTOR)]), "another of this name"),
    "shape": (lambda: Graph([input_node("x", Spec((-1,), float32))]), "-1 in [-1] is not a length"),
    "shape, NumPy": (lambda: Graph([input_node("x", Spec((NUMPYS_TWO,), float32))]), "is not a length"),
    "shape, size": (lambda: Graph([input_node("x", Spec((2**40, 2**40), float32))]), "more than any memory"),
    "shape, dims": (lambda: Graph([input_node("x", Spec((1,) * 65, float32))]), "65 dimensions"),
    "inferred spec": (lambda: Graph([x], [], [node(P.neg, (x,), {}, Spec((5,), float32))]), "but gives f32[4]"),
    "inferred spec, inputs": (lambda: Graph([x], [], [node(P.add, (x,), {})]), "do not fit"),
    "static parameters": (lambda: Graph([x], [], [node(P.flip, (x,), {"dims": [0]})]), "dims=[0] is not a value"),
    "static parameters, unknown": (lambda: Graph([x], [], [node(P.neg, (x,), {"new": {}})]), "new={} is not a value"),
    "value": (
        lambda: Graph([], [], [node(P.constant, (), {"value": 300, "shape": (4,), "dtype": int8}, Spec((4,), int8))]),
        "300 is out of range",
    ),
    "value, pad": (
        lambda: Graph.parse("graph(x: u8[1]): %0 = pad(x, padding=[[1,0,0]], value=-1) return %0"),
        "-1 is out of range",
    ),
    "outputs": (lambda: Graph([x], [negated], []), "output 0 is not in the graph"),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_graph_is_an_error_that_names_rule_and_node(rule):
    make, message = BROKEN[rule]
    with pytest.raises(GraphError) as error:
        make()
    assert message in str(error.value)
    if error.value.code == "MT601":
        assert f"rule '{rule.split(',')[0].removesuffix(' of nodes').removesuffix(' name')}'" in str(error.value)


def test_the_error_says_where_the_node_was_made():
    with pytest.raises(GraphError, match=r"(?s)node %0 neg f32\[4\]: .*where: program.py:7"):
        Graph([], [negated])


def test_every_parameter_of_every_primitive_has_a_row():
    for primitive in (*PRIMITIVES.values(), *LOWERED.values()):
        assert set(declared_params(primitive)) <= PARAMETERS.keys(), primitive


@pytest.mark.parametrize("name", ["x", "0.weight", "layer.0.bias", "x_1", "grüße", "1x", "e5"])
def test_names_of_inputs(name):
    given_name = input_node(name, VECTOR)
    graph = Graph([given_name], [apply(P.neg, given_name)])
    assert is_input_name(name)
    assert Graph.parse(str(graph)).structurally_equal(graph)


@pytest.mark.parametrize("name", ["", "1", "1.5", "1e5", ".5", "inf", "nan", "true", "return", "a b", "a[0]", "%0"])
def test_what_is_no_name(name):
    assert not is_input_name(name)
    assert is_input_name(as_input_name(name))


def test_a_node_with_a_type_that_is_none_is_named_by_the_error():
    wrong = Node(PRIMITIVES["iota"], (), {"size": 2, "dtype": 464}, Spec((2,), 464))  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="static parameters"):
        Graph([], [wrong])


@given(graphs(), graphs())
def test_graphs_are_equal_by_structure(graph, other):
    again = Graph.parse(str(graph))
    assert again == graph and hash(again) == hash(graph)
    assert (graph == other) == graph.structurally_equal(other) != (graph != other)
    assert graph != str(graph)


# Structure ------------------------------------------------------------------------------------------------------


def test_an_empty_graph_is_a_graph():
    graph = Graph()
    assert (graph.inputs, graph.nodes, graph.outputs) == ((), (), ())
    assert str(graph) == "graph():\n  return"


def test_nodes_are_derived_from_outputs_depth_first():
    a, b = apply(P.neg, x), apply(P.exp, x)
    last = apply(P.add, b, a)
    assert Graph([x], [last, a]).nodes == (b, a, last)
    assert topological_order([last], known={b}) == [x, a, last]


def test_dead_nodes_stay_and_outputs_may_be_anything():
    dead = apply(P.exp, x)
    number = literal(1.0, VECTOR)
    graph = Graph([x], [x, negated, negated, number], [dead, negated, number])
    assert graph.nodes == (dead, negated, number)
    assert str(graph).endswith("return x, %1, %1, 1.0:f32[4]")


def test_users():
    squared = apply(P.mul, negated, negated)
    users = Graph([x], [apply(P.add, squared, negated)]).users()
    assert [user.primitive.name for user in users[negated]] == ["mul", "add"]
    assert users[x] == (negated,)


@given(graphs())
def test_subgraph_keeps_what_is_needed_and_nothing_else(graph):
    for output in graph.outputs:
        part = graph.subgraph([output], keep_inputs=False)
        assert set(part.nodes) | set(part.inputs) == set(topological_order([output]))
        assert graph.subgraph([output]).inputs == graph.inputs


@given(graphs())
def test_substituting_nothing_copies_nothing(graph):
    copy = graph.substitute({})
    assert (copy.inputs, copy.nodes, copy.outputs) == (graph.inputs, graph.nodes, graph.outputs)


def substituted(replacements) -> str:
    y = input_node("y", VECTOR)
    return str(Graph([x, y], [apply(P.add, negated, y), negated]).substitute(replacements))


def test_substitute_an_input_by_an_input():
    assert substituted({x: input_node("z", VECTOR)}).startswith("graph(z: f32[4], y: f32[4]):\n  %0 = neg(z)")


def test_substitute_an_input_by_a_number():
    assert substituted({x: literal(2.0, VECTOR)}).startswith("graph(y: f32[4]):\n  %0 = neg(2.0:f32[4])")


def test_substitute_an_input_by_a_function_of_itself():
    assert "(x: f32[4], y: f32[4]):\n  %0 = exp(x)     : f32[4]\n  %1 = neg(%0)" in substituted({x: apply(P.exp, x)})


def test_substitute_a_node_by_what_brings_an_input():
    z = input_node("z", VECTOR)
    text = substituted({negated: apply(P.exp, z)})
    assert text.startswith("graph(x: f32[4], y: f32[4], z: f32[4]):")
    assert text.endswith("return %1, %0")


def test_renaming_inputs():
    y = input_node("y", VECTOR)
    graph = Graph([x, y], [apply(P.add, negated, y)])
    assert str(graph.rename({"x": "y", "y": "x"}, "swapped")).startswith("graph swapped(y: f32[4], x: f32[4]):")
    with pytest.raises(GraphError, match="another of this name"):
        graph.rename({"x": "y"})


def test_substitute_with_another_shape_infers_again():
    graph = Graph([x], [negated]).substitute({x: input_node("x", Spec((7,), float32))})
    assert graph.outputs[0].shape == (7,)


# Identity -------------------------------------------------------------------------------------------------------


@given(graphs(), graphs())
def test_structural_equality_is_equality_of_listings(graph, other):
    def listing(graph):
        return [line.split("#")[0].strip() for line in str(graph).splitlines()]

    assert graph.structurally_equal(other) == (listing(graph) == listing(other))
    assert graph.structurally_equal(graph.subgraph(graph.outputs)) == (
        listing(graph) == listing(graph.subgraph(graph.outputs))
    )


def keys(*bodies: str) -> int:
    """How many different keys the graphs with these bodies have."""
    return len({Graph.parse(f"graph(x: f32[2], y: f32[2]): {body}").key() for body in bodies})


def test_what_makes_a_key():
    base = "%0 = mul(x, 0.0) return %0"
    assert keys(base, base + " # other.py:1") == 1
    assert keys(base, "%0 = mul(y, 0.0) return %0") == 2
    assert keys(base, "%0 = mul(x, -0.0) return %0") == 2
    assert keys(base, "%0 = mul(x, 0.0) return %0, %0") == 2
    assert keys(base, "%0 = add(x, 0.0) return %0") == 2
    assert keys("%0 = mul(x, nan) return %0", "%0 = mul(x, nan) return %0") == 1
    assert keys("%0 = flip(x, dims=[0]) return %0", "%0 = flip(x, dims=[]) return %0") == 2


def test_names_of_inputs_count_for_equality_only():
    one, other = (Graph.parse(f"graph({name}: f32[2]): %0 = neg({name}) return %0") for name in "ab")
    assert one.key() == other.key()
    assert not one.structurally_equal(other)
    assert one.structurally_equal(Graph.parse(str(one)))


def test_literals_have_no_identity():
    one, shared = literal(1.0, VECTOR), literal(1, VECTOR)
    twice = Graph([x], [apply(P.add, apply(P.add, x, one), shared)])
    once = Graph([x], [apply(P.add, apply(P.add, x, one), one)])
    assert twice.structurally_equal(once)
    unused = Graph([x], [x], [literal(5.0, VECTOR)])
    assert unused.structurally_equal(Graph([x], [x]))


# Cost -----------------------------------------------------------------------------------------------------------


def test_cost_of_a_layer():
    cost = two_layers().cost()
    x_, w, b, y = 8 * 4 * 4, 4 * 2 * 4, 2 * 4, 8 * 2 * 4  # bytes
    assert cost.nodes == 5
    assert cost.flops == 2 * 8 * 2 * 4 + 16 + 16  # dot, add, sum
    assert cost.transcendentals == 16
    assert cost.bytes_read == (x_ + w) + (y + b) + y + y  # an expanded b is read once
    assert cost.bytes_written == y + y + y + 4
    assert cost.bytes == cost.bytes_read + cost.bytes_written
    assert cost.peak_bytes == x_ + w + b + 2 * y  # an operand and the result of add or exp


def test_views_and_literals_are_free():
    graph = Graph.parse("graph(x: f32[4]): %0 = reshape(x, shape=[2,2]) %1 = permute(%0, dims=[1,0]) return %1")
    assert (graph.cost().bytes, graph.cost().flops, graph.cost().peak_bytes) == (0, 0, 16)
    assert Graph.parse("graph(x: f32[4]): %0 = add(x, 1.0) return %0").cost().bytes == 32
    assert Graph.parse("graph(x: f32[4]): %0 = add(x, x) return %0").cost().bytes_read == 16


def test_a_view_keeps_its_base_alive():
    body = "%0 = neg(x) %1 = reshape(%0, shape=[4,1]) %2 = exp(x) %3 = reshape(%2, shape=[4,1])"
    graph = Graph.parse(f"graph(x: f32[4]): {body} %4 = add(%1, %3) return %4")
    assert graph.cost().peak_bytes == 4 * 16  # x, %0 as %1, %2 as %3, %4


@given(graphs())
def test_costs_are_plausible(graph):
    cost = graph.cost()
    inputs = sum(node.spec.nbytes for node in graph.inputs)
    total = sum(node.spec.nbytes for node in graph.nodes)
    assert inputs <= cost.peak_bytes <= inputs + total
    assert 0 <= cost.bytes_written <= total
    assert cost.nodes == sum(graph.count().values()) - graph.count()["constant"]


def test_count():
    assert two_layers().count() == {"dot": 1, "expand": 1, "add": 1, "exp": 1, "reduce_sum": 1}


def test_html_is_escaped():
    assert Graph([x], [x], name="a.b")._repr_html_() == "<pre>graph a.b(x: f32[4]):\n  return x</pre>"


# Size -----------------------------------------------------------------------------------------------------------


def test_a_deep_graph_goes_through_everything():
    length = 100_000
    at = x
    for _ in range(length):
        at = apply(P.neg, at)
    graph = Graph([x], [at])
    assert len(graph.nodes) == length
    again = Graph.parse(str(graph))
    assert hash(again.key()) == hash(graph.key())
    assert graph.structurally_equal(again)
    assert len(graph.subgraph([graph.nodes[9]]).nodes) == 10
    assert len(graph.substitute({x: literal(1.0, VECTOR)}).nodes) == length + 1
    assert graph.cost().nodes == length == graph.count()["neg"]
    assert len(graph.users()) == length + 1
    del graph, again, at
    gc.collect()


@given(st.sampled_from([bool_, int64, float32]), st.integers(0, 3))
def test_literals_take_the_type_of_their_spec(dtype, value):
    assert type(literal(value, Spec((), dtype)).params["value"]) is {bool_: bool, int64: int, float32: float}[dtype]
