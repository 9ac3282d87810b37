"""What a jitted function tells of itself: its history, and what its passes and fusions are worth."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minitorch as mt
from minitorch.backends import passes_for
from minitorch.compiler.fusion import FUSIONS
from minitorch.nn import functional as F
from minitorch.passes import DEFAULT, LOWERING
from minitorch_profiler.breakeven import BreakEven, eagerly
from tests.support.graphs import arrays_for, assert_close, assert_compiled_agrees, evaluate_graph, graphs
from tests.support.programs import classifier

BACKENDS = ("interpret", "llvm")


def test_hits_misses_and_their_reasons():
    f = mt.jit(lambda x, n: x * n)
    for n, size in ((2, 4), (2, 4), (3, 4), (3, 5), (3, 5)):
        f(mt.ones(size), n)
    found = f.explain()
    assert (found.hits, found.traced, len(found.signatures)) == (2, 3, 3)
    assert found.misses == ("the first call", "`n` was 2 and is 3", "`x` was f32[4] and is f32[5]")
    assert [report.hits for report in found.signatures] == [1, 0, 1]
    text = str(found)
    assert "3 signatures, 5 calls, 2 hits, 3 traces" in text and "`n` was 2 and is 3" in text


def test_misses_name_containers_tensors_given_twice_and_leaves():
    f = mt.jit(lambda d: d["a"] if isinstance(d, dict) else d[0])
    x, w = mt.ones(2), mt.ones(2, requires_grad=True)
    for argument in ([x], (x,), (x, mt.ones(2)), (x, x), (w,), (w * 2,), {"a": x, "b": w}, {"b": w, "a": x}):
        f(argument)
    assert f.explain().misses == (
        "the first call",
        "a tuple of 1 is where a list of 1 was among the arguments",
        "`d.1` was not there before",
        "`d.1` is the same tensor as `d.0`",
        "`d.0` requires a gradient now",
        "`d.0` is computed from something now",
        "`d.0` is missing; `d.a` was not there before; `d.b` was not there before",
        "a dict of 2 with the keys 'b', 'a' is where a dict of 2 with the keys 'a', 'b' was among the arguments",
    )


def test_looking_at_a_signature_is_no_call_and_no_hit():
    f = mt.jit(lambda x: x + 1)
    f.graph(mt.ones(3))
    assert f.explain().hits == 0
    f(mt.ones(3))
    assert (f.explain().hits, f.explain().signatures[0].calls) == (1, 1)


def test_forgotten_signatures_still_count_as_traces():
    f = mt.jit(lambda x: x + 1, max_signatures=1)
    with pytest.warns(mt.errors.TracingWarning, match="MT107"):
        for size in (1, 2, 3):
            f(mt.ones(size))
    assert (len(f.explain().signatures), f.explain().traced) == (1, 3)


SCALE = 3.0


def test_what_is_captured_written_and_baked_in():
    weight, total = mt.ones(4), mt.zeros(4)
    dropout = mt.nn.Dropout(0.25)

    @mt.jit
    def f(x, flag, target):
        total.add_(x)
        target.copy_(x)
        return dropout(x * weight * SCALE) if flag else x

    f(mt.ones(4), True, mt.zeros(4))
    (report,) = f.explain().signatures
    assert {"weight", "total"} <= set(report.captured)
    assert "total" in report.written and report.arguments_written == ("target",)
    constants = report.constants
    assert constants["flag"] is True and constants["SCALE"] == 3.0
    assert constants["dropout.p"] == 0.25 and constants["Dropout.training"] is True
    text = str(f.explain())
    assert "baked in: flag = True" in text and "written back: target, " in text


@pytest.mark.parametrize("backend", BACKENDS)
def test_passes_and_kernels(backend):
    f = mt.jit(lambda x: ((x * 1.0).reshape(6).reshape(2, 3) + x).softmax(1), backend=backend)
    f(mt.ones(2, 3))
    (report,) = f.explain().signatures
    assert [stage.name for stage in report.passes] == [each.name for each in passes_for(backend)]
    sizes = [(stage.before.count().total(), stage.after.count().total()) for stage in report.passes]
    assert sizes[0][0] == report.nodes_traced and sizes[-1][1] == report.nodes
    assert all(after == before for (_, after), (before, _) in pairwise(sizes))
    assert [kernel.kind for kernel in report.kernels] == (["K3"] if backend == "llvm" else [])
    text = str(f.explain())
    assert "movement" in text and "after the passes" in text and ("1 kernel" in text) == (backend == "llvm")


def test_break_even_is_measured_and_says_how():
    f = mt.jit(lambda x: x.softmax(1))
    f(mt.ones(16, 16))
    (report,) = f.explain().signatures
    paid = report.break_even
    assert paid is not None and paid.eager > 0 and paid.compiled > 0
    assert paid.spent == report.trace_time + report.compile_time
    assert report.break_even is paid  # measured once
    text = str(f.explain())
    assert "(measured on zeros)" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100  # so that a notebook page breaks no word
    assert f.explain().signatures[0].calls == 1  # and these are no calls


def test_the_nearest_signature_is_one_that_differs_in_the_gradient_only():
    f = mt.jit(lambda x: x * 2)
    for x in (mt.ones(4), mt.ones(4, dtype=mt.float64), mt.ones(4, requires_grad=True)):
        f(x)
    assert f.explain().misses[1:] == ("`x` was f32[4] and is f64[4]", "`x` requires a gradient now")


CALLS: dict[str, tuple[Any, ...]] = {  # functions of x, with what is taken apart and put together around the graph
    "one tensor": (lambda x: x + 1, (), {}),
    "a number": (lambda x, n: x * n, (2.5,), {}),
    "by name": (lambda x, n: (x * n, {"x": x}), (), {"n": 2.5}),
    "a tuple": (lambda x, pair: x + pair[0] * pair[1], ((mt.ones(3), 2),), {}),
    "twice": (lambda x, y: x + y, ("x",), {}),
    "in place": (lambda x: x.add_(1), (), {}),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("needs_grad", [False, True])
def test_what_a_call_does_around_the_graph_is_counted_and_changes_nothing(name, needs_grad):
    function, args, kwargs = CALLS[name]
    x = mt.ones(3, requires_grad=needs_grad and name != "in place")
    args = (x, *(x if arg == "x" else arg for arg in args))
    f = mt.jit(function)
    paid = f.break_even(*args, **kwargs)
    assert 0 < paid.around < paid.compiled
    explained = f.explain().signatures[0].break_even
    assert 0 < explained.around < explained.compiled
    assert f.explain().traced == 1 and f.explain().signatures[0].calls == 0
    assert x.tolist() == [1, 1, 1] and x.grad is None and x._version == 0


def test_what_a_call_does_around_the_graph_is_said_with_its_static_arguments():
    f = mt.jit(lambda x, how: x + len(how), static_argnames="how")
    f(mt.ones(3), frozenset({"a"}))
    assert f.explain().signatures[0].break_even.around > 0 and f.explain().traced == 1


def test_break_even_counts_calls():
    assert BreakEven(1.0, 0.3, 0.1).calls == 5
    assert str(BreakEven(1.0, 1.3, 0.3)).startswith("pays after 1 call:")
    assert str(BreakEven(1.0, 0.1, 0.2)).startswith("never pays")


def test_explaining_changes_no_tensor():
    total = mt.zeros(3)
    f = mt.jit(lambda x: total.add_(x).sum())
    f(mt.ones(3))
    str(f.explain())
    assert total.tolist() == [1, 1, 1]


def test_what_cannot_be_run_on_zeros_has_no_break_even():
    f = mt.jit(lambda t, i: t[(i - 1) * 7])
    f(mt.ones(3), mt.ones(2, dtype=mt.int64))
    assert f.explain().signatures[0].break_even is None
    assert "pays" not in str(f.explain())


# --- ablation ---


def test_ablation_goes_through_all_passes_and_fusions():
    model, step = classifier(20, 30, 5)
    step = mt.jit(step)
    x, y = mt.randn(8, 20), mt.arange(8) % 5
    step(x, y)
    before = [parameter.tolist() for parameter in model.parameters()]
    history = str(step.explain().signatures[0])
    ablation = step.ablate(x, y, seconds=0)
    names = [variant.without for variant in ablation.variants]
    passes = [f"pass: {name}" for name in dict.fromkeys(each.name for each in (*DEFAULT, *LOWERING))]
    assert names == ["nothing", *passes, "all passes", *(f"fusion: {name}" for name in FUSIONS), "all fusion"]
    cost = step.cost(x, y)
    whole, *_, nothing = ablation.variants
    assert (whole.kernels, whole.bytes, whole.peak_bytes) == (cost.kernels, cost.bytes, cost.peak_bytes)
    assert nothing.kernels > 4 * whole.kernels and nothing.bytes > whole.bytes
    assert [parameter.tolist() for parameter in model.parameters()] == before
    assert str(step.explain().signatures[0]) == history and step.explain().signatures[0].calls == 1
    assert all(name in str(ablation) for name in names)


def test_ablation_of_a_new_signature_leaves_none_behind():
    f = mt.jit(lambda x: x.softmax(1))
    f.ablate(mt.ones(4, 4), seconds=0)
    assert f.explain().signatures == () and f.explain().traced == 0


def test_where_nothing_is_fused_only_passes_are_ablated():
    f = mt.jit(lambda x: (x * 1.0 + 0.5).reshape(4).reshape(2, 2), backend="interpret")
    rows = {row.without: row for row in f.ablate(mt.ones(2, 2), seconds=0).variants}
    assert not any(name.startswith("fusion") for name in rows)
    assert rows["pass: algebra"].kernels == rows["nothing"].kernels + 1


# Each class of fusion: a function, its argument, and the number of its kernels with everything and without that.
SQUARE = mt.randn(300, 300)
CLASSES = {
    "recomputing": (lambda x: (x * 2).T + 1, SQUARE, (1, 2)),
    "shared rows": (lambda x: x.softmax(1), SQUARE, (1, 4)),
    "sibling sums": (lambda x: (x.sum(1), x.amax(1)), SQUARE, (1, 2)),
    "epilogues": (lambda x: mt.relu(x @ x.T), SQUARE, (1, 2)),
    "splitting": (lambda x: x.sum(), SQUARE, (1, 1)),
    "side by side": (lambda x: (x + 1, x[:200] * 2), SQUARE, (1, 2)),
    "transient products": (lambda x: F.scaled_dot_product_attention(x, x, x), mt.randn(2, 256, 16), (1, 3)),
    "phases": (lambda x: x.exp().sum(1).sum(), SQUARE, (1, 2)),
}


@pytest.mark.parametrize("name", FUSIONS)
def test_each_fusion_can_be_switched_off(name):
    function, argument, expected = CLASSES[name]
    rows = {row.without: row for row in mt.jit(function).ablate(argument, seconds=0).variants}
    whole, without = rows["nothing"], rows[f"fusion: {name}"]
    assert (whole.kernels, without.kernels) == expected
    if name == "splitting":  # without parts there are no partial results
        assert whole.bytes > without.bytes == 300 * 300 * 4 + 4


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs(), st.integers(0, 1000), st.sampled_from([*({name} for name in FUSIONS), set(FUSIONS)]))
def test_random_graphs_compute_the_same_without(graph, seed, without):
    assert_compiled_agrees(graph, seed, without=frozenset(without))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs(), st.integers(0, 99))
def test_what_break_even_runs_eagerly_is_the_graph(graph: mt.Graph, seed: int) -> None:
    arrays = arrays_for(graph, seed)
    try:
        expected = evaluate_graph(graph, arrays)
    except IndexError:
        return
    for found, array in zip(eagerly(graph)(arrays), expected, strict=True):
        assert_close(found.numpy(), array, graph)
