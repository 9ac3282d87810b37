"""The lowering passes: the same numbers before and after, legal graphs, and seen like any other pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import backends
from minitorch import primitives as P
from minitorch.compiler.codegen.host import host
from minitorch.compiler.kernels.ledger import ledger_of
from minitorch.dtypes import bfloat16, float32
from minitorch.errors import MismatchError, ParseError
from minitorch.graph import Graph, apply, input_node
from minitorch.ir import LOWERED, Spec
from minitorch.passes import (
    BRANCH_TO_SELECT,
    CONTRACTION_DIMENSIONS,
    DEFAULT,
    LOWERING,
    SCATTER_TO_SELECT,
    SINK_RESHAPES,
    Pass,
    lowered,
    run_pipeline,
)
from minitorch.passes.lowering.contract import contract
from tests.support.graphs import MOVEMENTS, arrays_for, assert_close, evaluate_graph, graphs, positive_arrays, same_bits

Function = Callable[..., Any]

by_name = pytest.mark.parametrize("each", LOWERING, ids=lambda each: each.name)


def normal(*shape: int) -> mt.Tensor:
    return mt.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32))


def graph_of(function: Function, *tensors: mt.Tensor) -> Graph:
    return mt.jit(function, backend="interpret").stages(*tensors).graph


# For all graphs -------------------------------------------------------------------------------------------------


@by_name
@given(graph=graphs() | graphs(max_nodes=14, primitives=(*MOVEMENTS, P.dot, P.add)), seed=st.integers(0, 99))
@settings(max_examples=200)
def test_a_lowering_pass_changes_no_value(each: Pass, graph: Graph, seed: int) -> None:
    """Bits, but for the order of sums; the listing parses back, and costs what it did or less."""
    after = each(graph)
    after.verify()
    assert Graph.parse(str(after)).structurally_equal(after)
    assert after.cost().flops <= graph.cost().flops
    arrays = positive_arrays(graph, seed) if each is CONTRACTION_DIMENSIONS else arrays_for(graph, seed)
    for one, other in zip(evaluate_graph(graph, arrays), evaluate_graph(after, arrays), strict=True):
        assert same_bits(one, other) or (
            each is CONTRACTION_DIMENSIONS and assert_close(other, one, str(graph)) is None
        )


@by_name
@given(graph=graphs())
@settings(max_examples=100)
def test_with_nothing_to_do_it_is_the_same_graph(each: Pass, graph: Graph) -> None:
    after = each(graph)
    assert after is graph or not after.structurally_equal(graph)


# Contractions ---------------------------------------------------------------------------------------------------


@st.composite
def contractions(draw: st.DrawFn) -> Graph:
    """A contraction of two inputs: each label is of one of them or both, in any order, some joined to one dimension."""
    owners = [draw(st.sampled_from(("left", "right", "both"))) for _ in range(draw(st.integers(0, 4)))]
    kept = len(owners)
    owners += ["both"] * draw(st.integers(0, 2))
    lengths = tuple(draw(st.integers(1, 3)) for _ in owners)
    sides: list[tuple[tuple[int, ...], ...]] = []
    for side in ("left", "right"):
        labels = draw(st.permutations([label for label, owner in enumerate(owners) if owner in (side, "both")]))
        dims: list[tuple[int, ...]] = [()] * draw(st.integers(0, 1))
        for label in labels:
            joined = bool(dims) and draw(st.booleans())
            dims[-1:] = [(*dims[-1], label)] if joined else [*dims[-1:], (label,)]
        sides.append(tuple(dims))
    dtype = draw(st.sampled_from((float32, bfloat16)))
    inputs = [
        input_node(name, Spec(tuple(int(np.prod([lengths[label] for label in dim])) for dim in dims), dtype))
        for name, dims in zip("ab", sides, strict=True)
    ]
    params: dict[str, Any] = {"lengths": lengths, "kept": kept, "left": sides[0], "right": sides[1], "dtype": dtype}
    return Graph(inputs, [apply(contract, *inputs, **params)])


@given(contractions())
@settings(max_examples=50, deadline=None)
def test_a_contraction_is_an_einsum(graph: Graph) -> None:
    graph.verify()
    assert Graph.parse(str(graph)).structurally_equal(graph)
    (node,) = graph.outputs
    lengths, kept = node.params["lengths"], node.params["kept"]
    assert graph.cost().flops == 2 * np.prod(lengths)
    arrays = positive_arrays(graph, 0)
    flat = [[label for dim in node.params[side] for label in dim] for side in ("left", "right")]
    operands: list[Any] = []
    for array, labels in zip(arrays, flat, strict=True):
        operands += [array.astype(np.float64).reshape([lengths[label] for label in labels]), labels]
    (found,) = evaluate_graph(graph, arrays)
    assert found.shape == node.shape and found.dtype == node.dtype.numpy
    with np.errstate(all="ignore"):
        wanted = np.einsum(*operands, list(range(kept))).astype(node.dtype.numpy)
    assert_close(found, wanted, str(graph))
    assert_close(backends.get("llvm")(graph)(arrays)[0], wanted, str(graph))


@pytest.mark.parametrize(("operation", "why"), [
    ("contract(a, b, lengths=[2,4,3], kept=2, left=[[0],[2]], right=[[2],[1]], dtype=f32)", ""),
    ("contract(a, b, lengths=[2,4,3], kept=3, left=[[0],[2]], right=[[2],[1]], dtype=f32)", ""),
    ("contract(a, c, lengths=[2,4,3], kept=2, left=[[0],[2]], right=[[2],[1]], dtype=f32)", "different types"),
    ("contract(a, b, lengths=[2,4,3], kept=2, left=[[0],[3]], right=[[2],[1]], dtype=f32)", "not labels"),
    ("contract(a, b, lengths=[2,4,3], kept=2, left=[[0],[0]], right=[[2],[1]], dtype=f32)", "not labels"),
    ("contract(a, b, lengths=[2,4,2], kept=2, left=[[0],[2]], right=[[2],[1]], dtype=f32)", "other lengths"),
    ("contract(a, b, lengths=[2,4,3], kept=2, left=[[0,2]], right=[[2],[1]], dtype=f32)", "other lengths"),
    ("contract(a, b, lengths=[2,4,3], kept=4, left=[[0],[2]], right=[[2],[1]], dtype=f32)", "are kept"),
    ("contract(a, b, lengths=[2,4,3,1], kept=3, left=[[0],[2]], right=[[2],[1]], dtype=f32)", "are used"),
    ("contract(a, b, lengths=[2,4,3], kept=1, left=[[0],[2]], right=[[2],[1]], dtype=f32)", "both operands"),
    ("contract(a, b, lengths=[2,4,3], kept=2, left=[0,2], right=[[2],[1]], dtype=f32)", "is not a value of"),
    ("contract(a, b, lengths=4, kept=2, left=[[0],[2]], right=[[2],[1]], dtype=f32)", "is not a value of"),
])  # fmt: skip
def test_labels_that_do_not_fit_are_refused(operation: str, why: str) -> None:
    text = f"graph(a: f32[2,3], b: f32[3,4], c: f64[3,4]): %0 = {operation} return %0"
    if not why:
        Graph.parse(text).verify()
        return
    with pytest.raises(ParseError, match=why):
        Graph.parse(text)


JOINED: list[tuple[Function, list[tuple[int, ...]]]] = [
    (lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=2), [(2, 4, 6, 5), (6, 2, 3, 3), (6,)]),
    (lambda x, w: (x.reshape(6, 20) @ w).reshape(2, 3, 7), [(2, 3, 4, 5), (20, 7)]),
    (lambda x, w: x.permute(2, 0, 1).reshape(4, 6) @ w.reshape(6, 10), [(2, 3, 4), (2, 3, 2, 5)]),
    (lambda x, w: (x @ w).reshape(2, 3, 5, 2).permute(3, 1, 0, 2), [(6, 4), (4, 10)]),
    (lambda x, w: ((x.reshape(6, 4) @ w).sum(), (x.reshape(6, 4) @ w).reshape(3, 2, 10)), [(2, 3, 4), (4, 10)]),
    (lambda x, w: x.reshape(4, 6) @ w.reshape(6, 3), [(6, 4), (9, 2)]),
    (lambda x, w: x.reshape(1, 6, 1, 4).reshape(6, 4) @ w, [(6, 4), (4, 1)]),
]


@pytest.mark.parametrize(("function", "shapes"), JOINED)
def test_dimensions_are_told_apart(function: Function, shapes: list[tuple[int, ...]]) -> None:
    """The graph with `contract` in place of `dot` computes the same, node by node and compiled."""
    tensors = [normal(*shape) for shape in shapes]
    graph = graph_of(function, *tensors)
    arrays = [each.numpy() for each in tensors]
    apart = CONTRACTION_DIMENSIONS(graph)
    for found, wanted in zip(evaluate_graph(apart, arrays), evaluate_graph(graph, arrays), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    for each in (graph, apart):
        for found, wanted in zip(backends.get("llvm")(each)(arrays), evaluate_graph(graph, arrays), strict=True):
            assert_close(found, wanted, [array.shape for array in arrays])


def test_products_without_reshapes_stay_as_they_are() -> None:
    graph = graph_of(lambda a, b: a @ b.T, normal(3, 4), normal(5, 4))
    assert CONTRACTION_DIMENSIONS(graph) is graph


# Scatters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zero", ["0", "-0.0"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "i32", "u8"])
@pytest.mark.parametrize("rows", ["iota(size=4, dtype=i64)", "constant([0, 1, 2, 3]) : i64[4]"])
def test_a_selection_is_the_scatter_to_the_sign_of_zero(zero: str, dtype: str, rows: str) -> None:
    zero = zero if dtype[0] in "fb" else "0"
    graph = Graph.parse(f"""
        graph(updates: {dtype}[4], columns: i64[4]):
          %0 = {rows}
          %1 = expand({zero}:{dtype}[], shape=[4,3])
          %2 = scatter_add(%1, updates, %0, columns)
          return %2
    """)
    after = SCATTER_TO_SELECT(graph)
    assert "scatter_add" not in after.count()
    arrays = [np.array([1, 2, 3, -0.0]).astype(graph.inputs[0].dtype.numpy), np.array([0, -1, 2, -3])]
    for each in (evaluate_graph(after, arrays), backends.get("llvm")(after)(arrays)):
        assert same_bits(each[0], evaluate_graph(graph, arrays)[0])


@pytest.mark.parametrize("line", [
    "scatter_add(x, u, %0, i)",  # not to zeros
    "scatter_add(0.0:f32[4,3], u, i, i)",  # a row may get several
    "scatter_add(0.0:f32[4,3], u, i, %0)",
    "scatter_add(0.0:f32[4,3], u, %1, i)",
])  # fmt: skip
def test_other_scatters_stay(line: str) -> None:
    graph = Graph.parse(f"""
        graph(x: f32[4,3], u: f32[4], i: i64[4]):
          %0 = iota(size=4, dtype=i64)
          %1 = constant([0, 1, 1, 3]) : i64[4]
          %2 = {line}
          return %2
    """)
    assert SCATTER_TO_SELECT(graph) is graph


# Branches ------------------------------------------------------------------------------------------------------

BRANCHES: list[Function] = [
    lambda x: mt.cond(x.sum() > 0, lambda: x.sqrt(), lambda: x),
    lambda x: mt.cond(x[0] > 0, lambda: (x, x.log(), 2, x), lambda: (x * x, x.sum() / x, 3, x)),
    lambda x: mt.cond(x[0] > 0, lambda: mt.cond(x[1] > 0, lambda: x * 2, lambda: x * 3), lambda: -x),
    lambda x: mt.scan(lambda h, v: (mt.cond(v > h, lambda: v, lambda: h * 0.5), h), x[0], x),
    lambda x: mt.while_loop(lambda v: v < 9, lambda v: mt.cond(v > 2, lambda: v + v, lambda: v + 1.5), x[0]),
    lambda x: mt.cond((n := x.nan_to_num().long())[2] != 0, lambda: n // n[2], lambda: n % 5),
]  # fmt: skip


@pytest.mark.parametrize("function", BRANCHES)
def test_a_branch_of_little_work_is_a_selection(function: Function) -> None:
    graph = graph_of(function, normal(4))
    after = BRANCH_TO_SELECT(graph)
    assert "cond(" in str(graph) and "cond(" not in str(after)
    for numbers in ([1, 2, 3, 4], [-1, 2, 0, np.nan], [0, -0.0, -7, 1e30], [1, -1, -1, np.inf]):
        (array,) = arrays = [np.array(numbers, np.float32)]
        right = evaluate_graph(graph, arrays)
        assert all(map(same_bits, evaluate_graph(after, arrays), right))
        assert all(map(same_bits, backends.get("llvm")(lowered(graph))([array]), right))


@pytest.mark.parametrize("function", [
    lambda x: mt.cond(x[0] > 0, lambda: x[x.long()], lambda: x),  # may fail
    lambda x: mt.cond(x[0] > 0, lambda: 2 ** x.long(), lambda: x.long()),
    lambda x: mt.cond(x[0] > 0, lambda: mt.rand(4), lambda: x),
    lambda x: mt.cond(x[0] > 0, lambda: x.expand(999, 4).exp() + 0, lambda: mt.zeros(999, 4)),
    lambda x: mt.cond(x[0] > 0, lambda: mt.while_loop(lambda v: v < 9, lambda v: v + v, x[0]), lambda: x[0]),
])  # fmt: skip
def test_other_branches_stay(function: Function) -> None:
    assert "cond" in BRANCH_TO_SELECT(graph_of(function, normal(4))).count()


# As part of the pipeline ----------------------------------------------------------------------------------------


def classifier(x: mt.Tensor, w: mt.Tensor, target: mt.Tensor) -> mt.Tensor:
    """All three have something to do: a product of more than two dimensions, its epilogue, and labels."""
    return mt.grad(lambda w: F.cross_entropy(F.gelu(x @ w).reshape(-1, w.shape[1]), target))(w)


def arguments() -> tuple[mt.Tensor, ...]:
    return normal(2, 3, 4), normal(4, 5), mt.arange(6) % 5


def layer(x: mt.Tensor, w: mt.Tensor) -> mt.Tensor:
    """A reshape that joins other dimensions than the product has."""
    return (x @ w).reshape(2, 9).relu().exp()


def test_a_backend_that_compiles_asks_for_them() -> None:
    assert backends.passes_for("llvm") == backends.passes_for("loops") == (*DEFAULT, *LOWERING)
    assert backends.passes_for("interpret") == DEFAULT
    interpreted, compiled = (mt.jit(classifier, backend=name) for name in ("interpret", "llvm"))
    assert not set(interpreted.stages(*arguments()).graph.count()) & LOWERED.keys()
    assert "contract" in compiled.stages(*arguments()).graph.count()
    assert str(interpreted.ledger(*arguments())) == str(compiled.ledger(*arguments()))


@pytest.mark.parametrize("backend", ["interpret", "llvm"])
def test_stages_show_them(backend: str) -> None:
    stages = mt.jit(classifier, backend=backend).stages(*arguments())
    shown = list(stages.texts)
    last = [each.name for each in LOWERING] + ["kernels", "loops", "llvm", "assembly"]
    assert shown[-len(last) :] == last
    assert [stage.applied for stage in stages.lowering] == ([] if backend == "llvm" else list(LOWERING))
    changed = {stage.name for stage in (*stages, *stages.lowering) if stage.after is not stage.before}
    assert {"scatter to select", "contraction dimensions"} <= changed
    assert str(stages.ledger.graph) == stages.texts["sink reshapes"]


@pytest.mark.parametrize("function", [classifier, layer], ids=lambda function: function.__name__)
@by_name
def test_it_can_be_left_out(each: Pass, function: Function) -> None:
    args = arguments() if function is classifier else (normal(2, 3, 4), normal(4, 3))
    expected = function(*args).numpy()
    found = mt.jit(function, passes=[one for one in backends.passes_for("llvm") if one is not each])(*args)
    assert_close(found.numpy(), expected, each.name)
    assert_close(mt.jit(function)(*args).numpy(), expected, each.name)


def test_each_is_worth_something_somewhere() -> None:
    def cost(graph: Graph) -> tuple[int, int, int]:
        """Kernels, bytes, and divisions of indices."""
        kernels = ledger_of(graph, host()).kernels
        moved = sum(kernel.bytes_read + kernel.bytes_written for kernel in kernels)
        return len(kernels), moved, sum(kernel.source.count("//") for kernel in kernels)

    convolution = graph_of(lambda x, w, b: F.relu(F.conv2d(x, w, b)), normal(2, 3, 8, 8), normal(4, 3, 3, 3), normal(4))
    cases = (
        (SCATTER_TO_SELECT, graph_of(classifier, *arguments())),
        (CONTRACTION_DIMENSIONS, convolution),
        (SINK_RESHAPES, graph_of(layer, normal(2, 3, 4), normal(4, 3))),
    )
    for each, graph in cases:
        without = run_pipeline(graph, [one for one in LOWERING if one is not each]).graph
        assert cost(lowered(graph)) < cost(without), each.name


def test_shadow_mode_blames_a_wrong_one() -> None:
    def wrong(graph: Graph) -> Graph:
        made = Graph.parse(str(SINK_RESHAPES(graph)).replace("exp(", "expm1("))
        return made.substitute(dict(zip(made.inputs, graph.inputs, strict=True)))

    planted = Pass("sinks wrongly", wrong, "")
    f = mt.jit(layer, check=True, passes=[*DEFAULT, *LOWERING[:-1], planted])
    with pytest.raises(MismatchError, match="the pass 'sinks wrongly'"):
        f(normal(2, 3, 4), normal(4, 3))


def test_a_thousand_values_are_joined() -> None:
    xs = [mt.full((2, 3), float(number)) for number in range(1000)]
    found = mt.jit(lambda *xs: mt.stack([x + 1 for x in xs]).sum((1, 2)))(*xs)
    np.testing.assert_array_equal(found.numpy(), 6.0 * (np.arange(1000) + 1))
