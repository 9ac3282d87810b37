"""Shadow mode: right programs pass, planted miscompilations are found and named, and the state is that of one call."""

from __future__ import annotations

import dataclasses
import math
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.__main__ import main
from minitorch.compiler.codegen import instructions
from minitorch.compiler.kernels import merge, placement
from minitorch.compiler.kernels.arena import plan
from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.scheduling.nests import build as nests
from minitorch.errors import MismatchError
from minitorch.graph.build import literal
from minitorch.modes.tracing.options import Options
from minitorch.modes.tracing.program import Program
from minitorch.passes import constant_folding
from minitorch_checking.reproducer import reproduce
from minitorch_checking.rounding_errors.difference import are_equal, ulps
from minitorch_checking.rounding_errors.noise import move
from minitorch_checking.rounding_errors.stochastic import Excess, judge
from minitorch_checking.shadow import Report, Shadow
from tests.support import graphs as random_graphs

Step = Callable[..., Any]


@pytest.fixture(autouse=True)
def reproducers_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those that are written to a temporary folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def softmax(x: mt.Tensor) -> mt.Tensor:
    e = (x - x.max(1, keepdim=True).values).exp()
    return e / e.sum(1, keepdim=True)


def attention(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    return (q @ k.transpose(-1, -2) * 0.35).softmax(-1) @ v


def training_step(**options: Any) -> tuple[mt.nn.Module, Any]:
    mt.manual_seed(0)
    model = mt.nn.Sequential(mt.nn.Linear(8, 16), mt.nn.ReLU(), mt.nn.Dropout(0.5), mt.nn.Linear(16, 4))
    optimizer = mt.optim.Adam(model.parameters(), lr=1e-2)

    @mt.jit(**options)
    def step(x: mt.Tensor, t: mt.Tensor) -> mt.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()
        return loss

    return model, step


def failure(function: Step, *args: mt.Tensor, **options: Any) -> tuple[str, Report]:
    """What shadow mode says of a function that is compiled wrongly."""
    jitted = mt.jit(function, check=True, **options)
    with pytest.raises(MismatchError) as caught:
        jitted(*args)
    (report,) = jitted.checked()
    assert report.culprit is not None and not report.ok and str(report.culprit) in str(caught.value)
    return str(caught.value), report


# What is right --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["interpret", "llvm", "loops"])
def test_right_programs_pass(backend: str) -> None:
    f = mt.jit(softmax, check=True, backend=backend)
    x = mt.randn(5, 7)
    assert np.allclose(f(x).numpy(), softmax(x).numpy())
    (report,) = f.checked()
    assert report.ok and report.culprit is None and report.outputs[0].ulp <= 64


def test_state_is_that_of_one_call() -> None:
    """Parameters, the optimiser's state and the random state, also those that are written in place."""
    (one, plain), (two, checked) = training_step(), training_step(check=True)
    x, t = mt.randn(32, 8), mt.randint(0, 4, (32,))
    for _ in range(3):
        mt.manual_seed(7)
        expected, after = plain(x, t), mt.rand(3)
        mt.manual_seed(7)
        found = checked(x, t)
        assert found.item() == expected.item() and mt.rand(3).tolist() == after.tolist()
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert a.tolist() == b.tolist() and a.grad.tolist() == b.grad.tolist()
    assert checked.checked()[0].ok


def test_the_way_back_is_checked_too() -> None:
    f = mt.jit(softmax, check=True)
    x = mt.randn(3, 5, requires_grad=True)
    (f(x) ** 2).sum().backward()
    assert [report.name for report in f.checked()] == ["softmax", "softmax.backward"]
    assert all(report.ok for report in f.checked())


def test_donated_and_overlapping_arguments() -> None:
    f = mt.jit(lambda x: x * 2 + 1, check=True, donate="x")
    assert f(mt.ones(1000)).sum().item() == 3000
    g = mt.jit(lambda x, y: x.add_(1) + y, check=True)
    x = mt.zeros(4)
    assert g(x, mt.ones(4)).tolist() == [2] * 4 and x.tolist() == [1] * 4


def test_rounding_is_no_mistake() -> None:
    """After a cancellation few digits are left, and not the same ones."""
    x = mt.randn(64, 64) + 1000

    def f(x: mt.Tensor) -> mt.Tensor:
        return (x * 3 + 1 - x * 3 - 1).sum(0) + (x.sum(0) - x.flip(0).sum(0))

    jitted = mt.jit(f, check=True)
    jitted(x)
    assert jitted.checked()[0].ok


@pytest.mark.parametrize("length", (500, 1437))
def test_another_order_of_adding_up_is_no_mistake(length: int) -> None:
    """Terms that are alike: added up one by one, all additions round to the same side."""
    x = np.zeros((length, 64), np.float32)
    x[length // 2] = np.linspace(0.01, 0.99, 64)
    var = mt.jit(lambda x: x.var(dim=0), check=True)
    var(mt.tensor(x))
    (report,) = var.checked()
    assert report.ok
    assert (report.outputs[0].ulp > 64) is (length > 512)  # up to there eager mode adds one by one as well


@pytest.mark.parametrize("length", (2, 9, 64))
@pytest.mark.parametrize("dtype", (mt.bfloat16, mt.float32, mt.float64), ids=str)
def test_products_that_overflow_may_be_fused_with_a_sum(dtype: mt.DType, length: int) -> None:
    """Rounded, a product is infinite and makes NaN of a sum with another infinity; fused, it is a number yet."""
    a, b = mt.zeros(20, length, dtype=dtype), mt.zeros(20, length, dtype=dtype)
    a[:, 0], b[:, 0] = -1.0, math.inf
    a[:, -1], b[:, -1] = 6.0, mt.finfo(dtype).max
    for x, y in ((a, b), (a.flip(1), b.flip(1))):
        for f in (lambda x, y: x @ y.T, lambda x, y: mt.einsum("ij,ij->i", x, y)):
            jitted = mt.jit(f, check=True)
            jitted(x, y)
            assert jitted.checked()[0].ok


def test_weights_of_attention_may_be_divided_after_the_product() -> None:
    attend = mt.jit(F.scaled_dot_product_attention, check=True)
    large = mt.full((2, 7, 8), mt.finfo(mt.float32).max / 2)
    attend(mt.zeros(2, 4, 7), mt.zeros(2, 7, 7), large)
    assert attend.checked()[0].ok


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_graphs_pass(data: st.DataObject) -> None:
    graph = data.draw(random_graphs.graphs())
    arrays = random_graphs.arrays_for(graph, data.draw(st.integers(0, 9999)))
    Program(graph, Options("llvm", policy=Shadow(True))).execute(arrays)


# What is wrong --------------------------------------------------------------------------------------------------


def test_a_wrong_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fold = constant_folding.fold

    def wrong(node: Any) -> Any:
        found = fold(node)
        return literal(7.0, node.spec, node.source) if found is not None and node.primitive.name == "mul" else found

    def f(x: mt.Tensor) -> mt.Tensor:
        a = mt.full((4,), 2.0) * 3
        return (x * a).exp()

    monkeypatch.setattr(constant_folding, "fold", wrong)
    text, report = failure(f, mt.randn(3, 4))
    assert report.culprit.stage == "pass" and report.culprit.name == "constant folding"
    assert report.culprit.node.primitive.name == "mul"
    assert "the pass 'constant folding'" in text and "test_shadow.py" in text


@pytest.mark.filterwarnings("ignore::minitorch.errors.ScheduleWarning")
@pytest.mark.parametrize("rows", [4, 1000])
def test_a_wrong_schedule_is_named(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Every element of a row is kept in the same place of its scratch row, for which some schedules are refused."""
    within = nests._Builder._within_row
    monkeypatch.setattr(nests._Builder, "_within_row", lambda self, member, at: within(self, member, at) * 0)
    text, report = failure(softmax, mt.randn(rows, 9))
    assert report.culprit.stage == "schedule" and "reduce_sum" in report.culprit.name
    assert report.culprit.node.primitive.name == "div"
    assert "the scheduler, in the loops of kernel" in text and "test_shadow.py" in text


def test_kernels_in_the_wrong_order_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads a value comes before what writes it."""
    right = merge.merge_small
    monkeypatch.setattr(merge, "merge_small", lambda kernels: right(kernels)[::-1])
    _, report = failure(lambda x: x.T @ (x @ x.T).exp(), mt.randn(64, 64))
    assert report.culprit.stage == "schedule" and report.culprit.node.primitive.name in ("exp", "dot")


def test_wrong_code_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(instructions.PRIMITIVES, "sub", instructions.PRIMITIVES["mul"])
    text, report = failure(attention, *(mt.randn(2, 16, 8) for _ in range(3)))
    assert report.culprit.stage == "code generation" and report.culprit.node.primitive.name == "sub"
    assert "code generation, in kernel" in text and "test_shadow.py" in text


def test_what_is_not_written_is_found_though_it_was_right_in_the_call_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory comes back with what was in it."""
    units = vars(Kernel)["units"].func
    monkeypatch.setattr(Kernel, "units", property(lambda self: max(1, units(self) - 1)))
    x = mt.randn(2, 3, 12, 12)
    _, report = failure(lambda x: F.max_pool2d(x, 2), x)
    assert report.culprit.stage == "code generation" and report.culprit.name == "k0_reduce_max"
    _, report = failure(lambda x: (x * 3 - 1).sum(1), mt.arange(72).reshape(8, 9))
    assert report.culprit.stage == "code generation" and report.culprit.node.primitive.name == "reduce_sum"


def test_what_is_donated_is_donated_again_by_the_reproducer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result is written over an argument of which other elements are still to be read."""
    monkeypatch.setattr(placement, "_may_overwrite", lambda lives, new, old: True)
    _, report = failure(lambda x: x.flip(0) * 2 + x, mt.randn(5000), donate="x")
    assert report.culprit.stage == "running" and report.folder is not None
    again = reproduce(report.folder)
    assert again.culprit is not None and again.culprit.stage == "running"


@pytest.mark.parametrize("wrong", ["mul", "sub"])
def test_sums_that_are_computed_in_parts_are_looked_at_too(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    """Their partial results are in memory and in no graph."""
    monkeypatch.setitem(instructions.PRIMITIVES, wrong, instructions.PRIMITIVES["add"])
    _, report = failure(lambda x, y: ((x * x + 1).sum(), y - 1), mt.randn(1000, 300), mt.randn(64, 65))
    assert report.culprit.stage in ("code generation", "schedule or code generation")
    assert report.culprit.node.primitive.name == wrong


def test_a_wrong_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """All intermediate values in one place: every kernel is right by itself."""

    def wrong(*args: Any) -> Any:
        found = plan(*args)
        return dataclasses.replace(found, offsets=tuple(0 for _ in found.offsets))

    monkeypatch.setattr(placement, "plan", wrong)

    arguments = mt.randn(8, 8), mt.randn(8, 8)
    text, report = failure(lambda x, y: (x @ y) @ (y @ x) + (x @ x) @ (y @ y), *arguments)
    assert report.culprit.stage == "running" and "each is right by itself" in text


def test_nothing_is_written_and_the_reproducer_fails_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(instructions.PRIMITIVES, "sub", instructions.PRIMITIVES["mul"])
    model, step = training_step(check=tmp_path / "mismatch")
    before = [parameter.tolist() for parameter in model.parameters()]
    with pytest.raises(MismatchError) as caught:
        step(mt.randn(32, 8), mt.randint(0, 4, (32,)))
    assert [parameter.tolist() for parameter in model.parameters()] == before
    assert all(parameter.grad is None for parameter in model.parameters())
    command = re.search(r"python -m minitorch (reproduce) (\S+)", str(caught.value))
    assert command is not None and Path(command[2]) == tmp_path / "mismatch"
    assert sorted(path.name for path in (tmp_path / "mismatch").iterdir()) == [
        "graph.txt",
        "inputs.safetensors",
        "report.txt",
    ]
    assert main(["reproduce", command[2]]) == 1
    assert "code generation" in capsys.readouterr().out
    monkeypatch.undo()
    assert main(["reproduce", command[2]]) == 0
    assert "as in eager mode" in capsys.readouterr().out


def test_reproducers_that_do_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", str(tmp_path / "nowhere")]) == 2
    assert "nowhere holds no reproducer" in capsys.readouterr().err
    wrong = mt.passes.Pass("own", lambda graph: graph.subgraph([graph.nodes[0]] * len(graph.outputs)), "wrong")
    f = mt.jit(lambda x: x.exp().log(), check=tmp_path, passes=(wrong,))
    with pytest.raises(MismatchError, match="the pass 'own'"):
        f(mt.ones(3))
    with pytest.raises(ValueError, match="own"):
        main(["reproduce", str(tmp_path)])


# Distances ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float32, mt.float64], ids=str)
def test_ulps_count_the_numbers_between(dtype: mt.DType) -> None:
    one = dtype.numpy.type(1)
    bits = np.dtype(f"u{dtype.itemsize}")
    steps = np.arange(-5, 6)
    moved = (np.array([one]).view(bits) + steps.astype(bits)).view(dtype.numpy)
    assert ulps(np.full(11, one), moved).tolist() == abs(steps).tolist()
    smallest = np.array([1], bits).view(dtype.numpy)
    assert ulps(smallest, -smallest).tolist() == [3]  # by way of 0 and -0
    special = np.array([np.nan, np.inf, -np.inf, 0], dtype.numpy)
    assert ulps(special, special).tolist() == [0] * 4
    assert not are_equal(special, np.roll(special, 1))


def test_integers_have_to_be_equal() -> None:
    extremes = np.iinfo(np.int64)
    a, b = np.array([extremes.min, 5, 7]), np.array([extremes.max, 5, 6])
    assert ulps(a, b).tolist() == [2**64 - 1, 0, 1]
    assert not are_equal(a[2:], b[2:]) and are_equal(a[1:2], b[1:2])
    assert ulps(np.array([True, False]), np.array([False, False])).tolist() == [1, 0]


def test_noise_moves_by_at_most_one_place() -> None:
    x = np.array([1, -1e-40, 0, np.inf, np.nan, 3e38], np.float32)
    moved = move(x, np.random.default_rng(0))
    assert (ulps(x, moved) <= 1).all() and ulps(x, moved)[2:5].tolist() == [0, 0, 0]
    assert move(np.arange(3), np.random.default_rng(0)).tolist() == [0, 1, 2]
    excess = Excess(np.array([1e-3, 1.0], np.float32), np.array([1.1e-3, 1.0], np.float32))
    assert excess
    excess.add(np.array([1e-3, 7.0], np.float32), 16)
    assert excess
    excess.add(np.array([1.05e-3, 1.0], np.float32), 1)
    assert excess
    excess.add(np.array([1.05e-3, 1.0], np.float32), 16)
    assert not excess and not Excess(np.array([0.0, np.nan], np.float32), np.array([-0.0, np.nan], np.float32))


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float32, mt.float64], ids=str)
def test_a_mask_of_minus_infinity_is_no_reason_to_warn(dtype: mt.DType) -> None:
    """Warnings are errors in the tests."""
    q = mt.randn(1, 1, 33, 8).to(dtype)
    f = mt.jit(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), check=True)
    f(q)
    assert f.checked()[0].ok


# Decisions ------------------------------------------------------------------------------------------------------


def test_a_comparison_that_rounding_turns_is_named() -> None:
    """Sums in two orders, beside one of them: which is the larger is no mistake, and is said."""
    x = mt.randn(200, 1000)
    sums = x.sum(1)
    below = mt.jit(lambda x, sums: mt.where(x.sum(1) < sums, 1, 100), check=True)
    below(x, sums)
    (report,) = below.checked()
    assert report.ok and report.outputs[0].ulp == 99
    (decision,) = report.decisions
    assert decision.node.primitive.name == "less" and decision.ulp == 0 and 0 < decision.count <= 200
    assert "less: bool[200], recorded at test_shadow.py" in str(report) and "fell out differently" in str(report)


def test_a_comparison_of_equal_values_is_not_turned() -> None:
    """If a value and what it is compared with are one value, noise moves both, computed in two places or not."""
    graph = mt.Graph.parse("""graph(x: f32[50], y: f32[50]):
      %0 = exp(x)
      %1 = barrier(x)
      %2 = exp(%1)
      %3 = equal(%0, %2)
      %4 = exp(y)
      %5 = less(%0, %4)
      return %3, %5""")
    x = np.linspace(-2, 2, 50, dtype=np.float32)
    known = dict(zip(graph.inputs, (x, np.nextafter(x, 9)), strict=True))
    equal, less = (judge(graph.nodes, known, [node], [np.zeros(50, bool)]) for node in graph.outputs)
    assert equal.beyond == (0,) and not equal.decisions
    assert less.beyond == () and [decision.node.primitive.name for decision in less.decisions] == ["less"]


AT_AN_EDGE: dict[str, Step] = {
    "remainder": lambda s: s % 1.0,
    "div": lambda s: 1 / (s - 1),
    "0/0": lambda s: (1 - s) / (1 - s),
    "1/maximum": lambda s: 1 / mt.maximum(1 - s, mt.zeros_like(s)),
    "sqrt": lambda s: mt.sqrt(1 - s),
    "acos": mt.acos,
    "log": lambda s: (1 - s).log(),
    "atanh": mt.atanh,
    "pow": lambda s: (1 - s) ** 0.3,
    "log1p": lambda s: mt.log1p(-s),
    "atan2": lambda s: mt.atan2(1 - s, -s),
    "sign": lambda s: mt.sign(1 - s),
}


@pytest.mark.parametrize("name", AT_AN_EDGE)
def test_a_sum_at_a_pole_or_the_edge_of_a_domain_is_no_mistake(name: str) -> None:
    """The sums of softmax are 1, or next to it; what is more than noise away, is a mistake there as well."""
    named = False
    for seed in range(4):
        mt.manual_seed(seed)
        x = mt.randn(99, 101).to(mt.float64)
        f = mt.jit(lambda x: AT_AN_EDGE[name](x.softmax(-1).sum(-1)), check=True)
        f(x)
        (report,) = f.checked()
        assert report.ok
        named |= bool(report.decisions)
    assert named


@pytest.mark.parametrize("name", sorted(set(AT_AN_EDGE) - {"0/0"}))
def test_away_from_the_edge_a_mistake_is_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other numbers than the right ones, also NaN and infinities, as far as noise makes none."""
    function = AT_AN_EDGE[name]
    graph = mt.jit(lambda x: function(x.sum(-1) * 0.75)).graph(mt.ones(50, 4, dtype=mt.float64))
    known = {graph.inputs[0]: np.random.default_rng(0).uniform(0.2, 0.3, (50, 4))}
    (right,) = (mt.backends.interpret.compile(graph)([known[graph.inputs[0]]]),)
    for wrong in (np.nan, np.inf, -np.inf, right[0] * 1.001 + 1e-3):
        judgement = judge(graph.nodes, known, graph.outputs, [np.where(np.arange(50) == 7, wrong, right[0])])
        assert judgement.beyond == (0,) and not judgement.decisions


def test_operands_that_are_equal_are_at_no_edge() -> None:
    """x - x is 0 with and without noise, and 0/0 is NaN."""
    graph = mt.Graph.parse("""graph(x: f64[50], y: f64[50]):
      %0 = exp(x)
      %1 = exp(x)
      %2 = sub(%0, %1)
      %3 = div(%2, %2)
      %4 = sqrt(%2)
      %5 = div(%0, %2)
      return %3, %4, %5""")
    x = np.linspace(-2, 2, 50)
    known = dict.fromkeys(graph.inputs, x)
    found = [np.ones(50), np.full(50, 1e-9), np.full(50, 1e16)]
    assert judge(graph.nodes, known, graph.outputs, found).beyond == (0, 1, 2)


@pytest.mark.parametrize("name", ["maximum", "minimum", "amax", "relu"])
def test_which_of_two_zeros_is_larger_is_left_open_and_said(name: str) -> None:
    a, b = mt.tensor([0.0, -0.0, 0.0, -0.0, 1.0]), mt.tensor([-0.0, 0.0, 0.0, -0.0, 2.0])
    functions: dict[str, Step] = {
        "maximum": mt.maximum,
        "minimum": mt.minimum,
        "amax": lambda a, b: mt.stack([a, b]).amax(0),
        "relu": lambda a, b: F.relu(a),
    }
    f = mt.jit(lambda a, b: 1 / functions[name](a, b), check=True)
    f(a, b)
    assert f.checked()[0].ok
    graph = f.graph(a, b)
    known = dict(zip(graph.inputs, (a.numpy(), b.numpy()), strict=False))
    (right,) = mt.backends.interpret.compile(graph)(list(known.values())[: len(graph.inputs)])
    if name != "relu":
        judgement = judge(graph.nodes, known, graph.outputs, [right * np.array([-1, -1, 1, 1, 1], np.float32)])
        assert not judgement.beyond and "zeros of either sign" in str(judgement.decisions[0])
        assert judgement.decisions[0].count == 2
        assert judge(graph.nodes, known, graph.outputs, [right * np.array([1, 1, -1, 1, 1], np.float32)]).beyond == (0,)
