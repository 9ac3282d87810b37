"""Passes: for all graphs, the same bits before and after; and what each of them is for."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitorch import primitives as P
from minitorch.dtypes import ALL, bool_, int64
from minitorch.errors import DTypeError, GraphError
from minitorch.graph import Graph, apply, input_node, literal
from minitorch.ir import PRIMITIVES, Spec
from minitorch.passes import (
    ALGEBRA,
    COMMON_SUBEXPRESSIONS,
    CONSTANT_FOLDING,
    DEAD_CODE,
    DEFAULT,
    LAWS,
    MOVEMENT,
    REJECTED_LAWS,
    Pass,
    run_pipeline,
)
from minitorch.passes.algebra import EXACT
from minitorch.passes.constant_folding import MOST_ELEMENTS
from minitorch.passes.patterns import Operation, Param, SplatOf, Wildcard, instantiate
from minitorch.passes.rewrite import Rules, rewrite
from minitorch_onnx.tracing.positions import POSITIONS
from tests.support.graphs import MOVEMENTS, arrays_for, evaluate_graph, graphs, same_bits, special_values

PASSES = tuple(dict.fromkeys(DEFAULT))
# Better than what they replace, which NumPy's pow rounds otherwise.
ROUNDED = ("x ** 2 -> x * x", "x ** -1 -> 1 / x")

by_name = pytest.mark.parametrize("each", (*PASSES, POSITIONS), ids=lambda each: each.name)


def assert_same(before: Graph, after: Graph, seed: int) -> None:
    arrays = arrays_for(before, seed)
    for one, other in zip(evaluate_graph(before, arrays), evaluate_graph(after, arrays), strict=True):
        assert same_bits(one, other), f"{before}\n{after}"


def rounds(graph: Graph) -> bool:
    fired: Counter[str] = Counter()
    rewrite(graph, LAWS, fired)
    return any(fired[law] for law in ROUNDED)


# For all graphs -------------------------------------------------------------------------------------------------


@by_name
@given(graph=graphs(), seed=st.integers(0, 99))
@settings(max_examples=300)
def test_a_pass_changes_no_bit(each, graph, seed):
    if each is ALGEBRA and rounds(graph):
        return
    after = each(graph)
    after.verify()
    assert_same(graph, after, seed)


@given(graphs(max_nodes=20), st.integers(0, 99))
@settings(max_examples=300)
def test_the_pipeline_changes_no_bit(graph, seed):
    text = str(graph)
    run = run_pipeline(graph)
    assert str(graph) == text
    run.graph.verify()
    if not any(rounds(stage.before) for stage in run if stage.applied is ALGEBRA):
        assert_same(graph, run.graph, seed)


@given(graphs(max_nodes=14, primitives=(*MOVEMENTS, P.constant)), st.integers(0, 99))
@settings(max_examples=300)
def test_movement_of_movement_changes_no_bit(graph, seed):
    assert_same(graph, MOVEMENT(graph), seed)


@pytest.mark.parametrize(
    "each", [each for each in (*PASSES, POSITIONS) if each is not ALGEBRA], ids=lambda each: each.name
)
@given(graph=graphs())
def test_done_once_there_is_nothing_left_to_do(each, graph):
    once = each(graph)
    assert each(once) is once


# Algebra --------------------------------------------------------------------------------------------------------


def parts(pattern, kind) -> dict[str, object]:
    """The wildcards, numbers or parameters of a pattern, by name."""
    found = {}
    if isinstance(pattern, kind) and not (isinstance(pattern, SplatOf) and pattern.value is not None):
        found[pattern.name] = pattern
    if isinstance(pattern, Operation):
        for inner in (*pattern.operands, *pattern.params.values()):
            found |= parts(inner, kind)
    return found


def instances(law, dtype):
    """Graphs that are just the left side of a law: for all types of parameters, and numbers that break things."""
    spec = Spec((len(special_values(dtype)),), dtype)
    inputs = {
        name: input_node(name, Spec(spec.shape, bool_) if name == "c" else spec)
        for name in parts(law.pattern, Wildcard)
    }
    numbers = [[(name, literal(v, spec)) for v in special_values(dtype)] for name in parts(law.pattern, SplatOf)]
    types = [[(name, each) for each in ALL] for name in parts(law.pattern, Param)]
    for chosen in itertools.product(*numbers, *types):
        try:
            root = instantiate(law.pattern, inputs | dict(chosen), spec)
        except (DTypeError, OverflowError):  # not for this type
            continue
        yield Graph(inputs.values(), [root])


def combinations(graph: Graph) -> list[np.ndarray]:
    """Arrays for the inputs that hold every combination of the special values, a row after the other."""
    columns = [special_values(node.dtype) for node in graph.inputs]
    rows = itertools.product(*columns)
    return [np.array(each) for each in zip(*rows, strict=True)]


@pytest.mark.parametrize("law", list(LAWS), ids=str)
def test_a_law_holds_for_every_special_value_of_every_type(law):
    applied = 0
    for dtype in ALL:
        for graph in instances(law, dtype):
            if (found := Rules(law).first(graph.outputs[0])) is None:
                continue
            applied += 1
            after = Graph(graph.inputs, [found[1]])
            with np.errstate(all="ignore"):
                columns = [a.astype(n.dtype.numpy) for a, n in zip(combinations(graph), graph.inputs, strict=True)]
            before_value, after_value = (
                np.broadcast_to(evaluate_any_length(each, columns), columns[0].shape) for each in (graph, after)
            )
            if str(law) in ROUNDED and dtype.is_floating_point:
                with np.errstate(all="ignore"):
                    np.testing.assert_allclose(
                        after_value.astype(float), before_value.astype(float), rtol=1e-6, atol=1e-40
                    )
            else:
                assert same_bits(before_value, after_value), f"{law} for {dtype.name}"
    assert applied, "the law never applies"


def evaluate_any_length(graph: Graph, columns: list[np.ndarray]) -> np.ndarray:
    """Like `evaluate_graph`, for elementwise graphs on longer arrays than they say."""
    values = dict(zip(graph.inputs, columns, strict=True))
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            operands = [values[operand] for operand in node.inputs]
            values[node] = np.asarray(node.primitive.evaluate(*operands, **node.params))
            if node.primitive is P.constant:
                values[node] = np.resize(values[node], columns[0].shape)
    return values[graph.outputs[0]]


@pytest.mark.parametrize("primitive", [P.add, P.mul], ids=lambda each: each.name)
def test_laws_come_to_an_end_where_all_operands_are_numbers(primitive):
    """A law may make a number of an operand before anything folds the others."""
    spec = Spec((3,), int64)
    x = input_node("x", spec)
    five, two, three = (literal(value, spec) for value in (5, 2, 3))
    for first in (five, apply(PRIMITIVES["pow"], x, literal(0, spec))):
        graph = Graph([x], [apply(primitive, apply(primitive, first, two), three)])
        assert_same(graph, ALGEBRA(graph), 0)


@pytest.mark.parametrize("rejected", REJECTED_LAWS, ids=str)
def test_a_rejected_law_is_refuted_by_its_value(rejected):
    before, after = rejected.sides()
    with np.errstate(all="ignore"):
        arrays = [np.full(2, value).astype(rejected.dtype.numpy) for value in rejected.values.values()]
    (left,), (right,) = evaluate_graph(before, arrays), evaluate_graph(after, arrays)
    assert not same_bits(left, right)
    assert not same_bits(left[:1], right[:1])


@pytest.mark.parametrize("rejected", REJECTED_LAWS, ids=str)
def test_a_rejected_law_is_not_applied(rejected):
    before, after = rejected.sides()
    with np.errstate(all="ignore"):
        arrays = [np.full(2, value).astype(rejected.dtype.numpy) for value in rejected.values.values()]
    done = run_pipeline(before).graph
    assert same_bits(evaluate_graph(before, arrays)[0], evaluate_graph(done, arrays)[0])
    assert not done.structurally_equal(run_pipeline(after).graph)


@pytest.mark.parametrize("source", [each for each in ALL if each.itemsize <= 2], ids=lambda each: each.name)
def test_which_conversions_are_exact(source):
    bits = np.arange(2 if source is bool_ else 2 ** (8 * source.itemsize))
    values = bits.astype(f"u{source.itemsize}").view(source.numpy)
    for target in ALL:
        with np.errstate(all="ignore"):
            number, stored = values.astype(np.float64), values.astype(target.numpy).astype(np.float64)
        kept = np.all((number == stored) | np.isnan(number))
        assert ((source, target) in EXACT) == bool(kept), target


# What each pass is for ------------------------------------------------------------------------------------------


def after(each: Pass, *lines: str, inputs: str = "a: f32[2,3], b: f32[2,3]") -> str:
    """What a pass leaves of a graph, in one line, dead code removed."""
    result = DEAD_CODE(each(Graph.parse(f"graph({inputs}):\n" + "\n".join(lines))))
    rows = str(result).splitlines()[1:]
    return "; ".join(row.split(" : ")[0].strip().removeprefix("return ") for row in rows)


def test_dead_code_goes_and_inputs_stay():
    graph = Graph.parse("graph(a: f32[2], b: f32[2]): %0 = neg(b) %1 = exp(a) return %1")
    clean = DEAD_CODE(graph)
    assert str(clean) == "graph(a: f32[2], b: f32[2]):\n  %0 = exp(a) : f32[2]\n  return %0"
    assert DEAD_CODE(clean) is clean


@pytest.mark.parametrize(
    ("first", "second", "are_one"),
    [
        ("exp(a)", "exp(a)", True),
        ("exp(a)", "exp(b)", False),
        ("add(a, b)", "add(b, a)", True),
        ("sub(a, b)", "sub(b, a)", False),
        ("maximum(a, b)", "maximum(b, a)", False),  # the order may decide between 0.0 and -0.0
        ("add(a, 0.0)", "add(a, -0.0)", False),
        ("add(a, nan)", "add(a, nan)", True),
        ("flip(a, dims=[0])", "flip(a, dims=[1])", False),
        ("pad(a, padding=[[1,0,0],[0,0,0]], value=0.0)", "pad(a, padding=[[1,0,0],[0,0,0]], value=-0.0)", False),
        ("pad(a, padding=[[1,0,0],[0,0,0]], value=0.0)", "pad(a, padding=[[1,0,0],[0,0,0]], value=0.0)", True),
        ("constant([1, 2]) : f32[2]", "constant([1, 2]) : f32[2]", True),
        ("constant([1, 2]) : f32[2]", "constant([1, 2]) : f64[2]", False),
        ("constant([0, 1]) : f32[2]", "constant([-0.0, 1]) : f32[2]", False),
        ("random_bits(s, shape=[2])", "random_bits(s, shape=[2])", True),  # one state, one draw
        ("random_bits(s, shape=[2])", "random_bits(t, shape=[2])", False),
        ("random_bits(s, shape=[2])", "random_bits(s, shape=[3])", False),
    ],
)
def test_what_is_computed_twice_is_computed_once(first, second, are_one):
    graph = Graph.parse(f"""
        graph(a: f32[2,3], b: f32[2,3], s: i64[2], t: i64[2]):
          %0 = {first}
          %1 = {second}
          return %0, %1
    """)
    one, other = COMMON_SUBEXPRESSIONS(graph).outputs
    assert (one is other) == are_one


def test_folding_keeps_splats_splats_whatever_their_size():
    size = "f32[9999,9999]"
    assert after(CONSTANT_FOLDING, f"%0 = exp(0:{size})", "%1 = add(%0, 1)", "return %1") == f"2.0:{size}"
    array = "%0 = constant([2, 3]) : i64[2]"
    assert after(CONSTANT_FOLDING, array, "%1 = mul(%0, 2)", "return %1") == "%0 = constant([4, 6]); %0"
    assert after(CONSTANT_FOLDING, array, "%1 = mul(%0, 0)", "return %1") == "0:i64[2]"
    assert after(CONSTANT_FOLDING, "%0 = reduce_sum(2:f32[2,3], dims=[1])", "return %0") == "6.0:f32[2]"


def test_what_depends_on_positions_alone_is_evaluated_and_nothing_else():
    mask = "%0 = iota(size=3, dtype=i64)", "%1 = less(%0, 1)"
    assert after(POSITIONS, *mask, "return %1") == "%0 = constant([true, false, false]); %0"
    kept = "%0 = constant([2, 3]) : i64[2]", "%1 = mul(%0, 2)"
    assert after(POSITIONS, *kept, "return %1") == after(DEAD_CODE, *kept, "return %1")
    large = f"iota(size={MOST_ELEMENTS + 1}, dtype=i64)"
    assert after(POSITIONS, f"%0 = {large}", "return %0") == after(DEAD_CODE, f"%0 = {large}", "return %0")


@pytest.mark.parametrize(
    "operation",
    [
        f"reduce_sum(2:f32[{MOST_ELEMENTS}], dims=[0])",
        "random_bits(7:i64[2], shape=[2])",
        "iota(size=3, dtype=i64)",
        "gather(1:f32[2], 5:i64[])",
    ],
)
def test_folding_leaves_alone_what_is_large_random_or_an_error(operation):
    graph = Graph.parse(f"graph(): %0 = {operation} return %0")
    assert CONSTANT_FOLDING(graph) is graph


@pytest.mark.parametrize("length, folded", [(32, True), (33, False)])
def test_folding_repeats_an_array_where_that_makes_few_elements(length, folded):
    """A kernel repeats it by an index."""
    found = after(
        CONSTANT_FOLDING, "%0 = constant([[1], [2]]) : f32[2,1]", f"%1 = expand(%0, shape=[2,{length}])", "return %1"
    )
    assert ("expand" not in found) == folded


@pytest.mark.parametrize(
    "there_and_back",
    [
        ["reshape(a, shape=[6])", "reshape(%0, shape=[2,3])"],
        ["permute(a, dims=[1,0])", "permute(%0, dims=[1,0])"],
        ["permute(a, dims=[1,0])", "flip(%0, dims=[])", "permute(%1, dims=[1,0])"],
        ["flip(a, dims=[0,1])", "flip(%0, dims=[0])", "flip(%1, dims=[1])"],
        [
            "pad(a, padding=[[1,2,1],[0,0,0]], value=0)",
            "slice(%0, start=[1,0], stop=[4,3], step=[2,1])",
        ],
        ["expand(a, shape=[2,3])", "slice(%0, start=[0,0], stop=[2,3], step=[1,1])"],
        ["concatenate(a, dim=1)", "reshape(%0, shape=[1,2,3])", "reshape(%1, shape=[2,3])"],
    ],
    ids=" ".join,
)
def test_movement_there_and_back_is_no_movement(there_and_back):
    lines = [f"%{index} = {operation}" for index, operation in enumerate(there_and_back)]
    assert after(MOVEMENT, *lines, f"return %{len(lines) - 1}") == "a"


def test_movement_in_one_go():
    def moved(first: str, second: str, spec: str) -> str:
        return after(MOVEMENT, f"%0 = {first}", f"%1 = {second}", "return %1", inputs=f"a: {spec}")

    assert moved("expand(a, shape=[4,2])", "expand(%0, shape=[5,4,2])", "f32[2]") == "%0 = expand(a, shape=[5,4,2]); %0"
    assert moved(
        "slice(a, start=[0,1], stop=[2,9], step=[1,3])", "slice(%0, start=[1,1], stop=[2,3], step=[1,1])", "f32[2,9]"
    ) == ("%0 = slice(a, start=[1,4], stop=[2,8], step=[1,3]); %0")
    assert moved("permute(a, dims=[1,2,0])", "permute(%0, dims=[0,2,1])", "f32[2,3,4]") == (
        "%0 = permute(a, dims=[1,0,2]); %0"
    )
    assert moved("permute(a, dims=[1,2,0])", "reshape(%0, shape=[4,3])", "f32[1,3,4]") == (
        "%0 = reshape(a, shape=[4,3]); %0"
    )


@pytest.mark.parametrize("begin, end, found", [(0, 2, "a"), (2, 5, "b"), (3, 4, "%0 = slice(b, start=[0,1]")])
def test_a_slice_of_a_concatenation_is_one_of_the_operand_that_it_lies_in(begin, end, found):
    slice_ = f"slice(%0, start=[0,{begin}], stop=[2,{end}], step=[1,1])"
    lines = ["%0 = concatenate(a, b, dim=1)", f"%1 = {slice_}", "return %1"]
    assert after(MOVEMENT, *lines, inputs="a: f32[2,2], b: f32[2,3]").startswith(found)


def test_a_slice_across_the_seam_of_a_concatenation_stays():
    lines = ["%0 = concatenate(a, b, dim=1)", "%1 = slice(%0, start=[0,1], stop=[2,3], step=[1,1])", "return %1"]
    assert "concatenate" in after(MOVEMENT, *lines, inputs="a: f32[2,2], b: f32[2,3]")


def test_a_moved_number_is_a_number():
    lines = ["%0 = expand(1:f32[], shape=[2,3])", "%1 = permute(%0, dims=[1,0])"]
    pad = "%2 = pad(%1, padding=[[1,1,0],[0,0,0]], value={})"
    assert after(MOVEMENT, *lines, pad.format(1), "return %2") == "1.0:f32[5,2]"
    assert after(MOVEMENT, *lines, pad.format(0), "return %2").startswith("%0 = pad(1.0:f32[3,2]")


# The pipeline ---------------------------------------------------------------------------------------------------


def test_a_run_keeps_snapshots_and_says_what_changed():
    graph = Graph.parse("graph(a: f32[2]): %0 = mul(a, 1.0) %1 = exp(%0) %2 = exp(a) %3 = add(%1, %2) return %3")
    run = run_pipeline(graph, [ALGEBRA, COMMON_SUBEXPRESSIONS])
    assert run.initial is graph and run.graph is run.stages[-1].after
    assert [stage.before for stage in run] == [graph, run.stages[0].after]
    assert [(stage.name, stage.removed, stage.added) for stage in run] == [
        ("algebra", {"mul": 1}, {}),
        ("common subexpressions", {"exp": 1}, {}),
    ]
    assert "4 -> 3" in str(run) and "-1 mul" in str(run)
    assert run.milliseconds == sum(stage.milliseconds for stage in run.stages) > 0
    assert run_pipeline(graph, []).graph is graph


def test_the_default_pipeline_is_a_list_of_named_passes():
    assert all(each.name and each.doc and repr(each) for each in DEFAULT)
    assert len({each.name for each in DEFAULT}) == len(PASSES)


def test_a_pass_that_breaks_a_graph_is_found_out():
    graph = Graph.parse("graph(a: f32[2]): %0 = neg(a) return %0")
    loses = Pass("loses an output", lambda graph: Graph(graph.inputs, []), "")
    breaks = Pass("breaks", lambda graph: Graph([], graph.outputs, graph.nodes, verify=False), "")
    for bad, message in ((loses, "changed the inputs or outputs"), (breaks, "is not an input of the graph")):
        with pytest.raises(GraphError, match=message) as error:
            run_pipeline(graph, [DEAD_CODE, bad])
        assert f"  in the pass '{bad.name}'" in error.value.__notes__


def test_the_pipeline_takes_long_programs():
    at, body = "a", []
    for index in range(10_000):
        body.append(f"%{index} = {('neg', 'exp', 'abs')[index % 3]}({at})")
        at = f"%{index}"
    run = run_pipeline(Graph.parse(f"graph(a: f32[2]): {' '.join(body)} return {at}"))
    assert len(run.graph.nodes) == 10_000
