"""Loops and branches: one law for all modes, their gradients, what they cannot do, and how they are compiled."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import AutogradError, GraphError, MinitorchError, ParseError
from minitorch.graph import Graph, evaluate
from minitorch.tree import flatten

Tensors = tuple[mt.Tensor, ...]

torch_like = mt.nn.functional


def tensors(*shapes: tuple[int, ...]) -> Tensors:
    mt.manual_seed(3)
    return tuple(mt.randn(*shape).requires_grad_() for shape in shapes)


def recurrent(x: mt.Tensor, h: mt.Tensor, w: mt.Tensor) -> Any:
    def step(h: mt.Tensor, x: mt.Tensor) -> Any:
        h = (h @ w + x).tanh()
        return h, {"twice": h * 2, "none": None}

    return mt.scan(step, h, x)


def two_states(x: mt.Tensor, h: mt.Tensor, w: mt.Tensor) -> Any:
    """An integer among the carried values, a carried one that is a result, too, and the other direction."""
    return mt.scan(
        lambda s, x: ({"n": s["n"] + 1, "a": s["b"] + x, "b": s["a"] * w[0]}, (s["a"], s["n"])),
        {"n": 0, "a": h, "b": h * 2},
        x,
        reverse=True,
    )


def nested(x: mt.Tensor, h: mt.Tensor, w: mt.Tensor) -> Any:
    def inner(h: mt.Tensor, x: mt.Tensor) -> Any:
        h = mt.fori_loop(0, 3, lambda i, h: h * 0.5 + (x + i) * w.sum(), h)
        return h, h.sum()

    return mt.scan(inner, h, x)


def branches(x: mt.Tensor, h: mt.Tensor, w: mt.Tensor) -> Any:
    def step(h: mt.Tensor, x: mt.Tensor) -> Any:
        h = mt.cond(x.sum() > 0, lambda h: (h * w[0]).sin(), lambda h: h * h + x, h)
        return h, None

    return mt.scan(step, h, x)[0], mt.cond(x[0].sum() > 0, lambda: w * 2, lambda: w.exp())


def powers(x: mt.Tensor, h: mt.Tensor, w: mt.Tensor) -> Any:
    """No results of slices, no slices."""
    return mt.scan(lambda h, _: (h @ w, None), h, None, length=5)[0] + x.sum()


def running(x: mt.Tensor, h: mt.Tensor, w: mt.Tensor) -> Any:
    """Values that a body makes of nothing else: a constant, a slice, a tensor from outside."""
    last, (a, b, c, d) = mt.scan(lambda h, x: (x, (x, w, mt.ones(2), h.detach())), h, x)
    return last * a.sum() * b.sum() * c.sum(), d


def until(x: mt.Tensor, h: mt.Tensor, w: mt.Tensor) -> Any:
    with mt.no_grad():
        return mt.while_loop(lambda s: (s[0].sum() < 50) & (s[1] < 20), lambda s: (s[0] * 1.5 + 1, s[1] + 1), (h, 0))


def counted(x: mt.Tensor, h: mt.Tensor, w: mt.Tensor) -> Any:
    with mt.no_grad():
        times = (x.sum().abs() + 2).to(mt.int64)
        return mt.fori_loop(1, times, lambda i, h: h + i, h)


PROGRAMS = [recurrent, two_states, nested, branches, powers, running, until, counted]
BACKENDS = ["interpret", "llvm", "loops", "xla"]


def run_lazily(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        with mt.lazy():
            return function(*args)

    return run


MODES: dict[str, Callable[[Any], Any]] = {
    **{backend: lambda f, backend=backend: mt.jit(f, backend=backend) for backend in BACKENDS},  # type: ignore[misc]
    "lazy": run_lazily,
}


def values(result: Any) -> list[np.ndarray[Any, Any]]:
    return [leaf.detach().numpy() for leaf in flatten(result)[0] if leaf is not None]


def gradients(program: Callable[..., Any], order: int) -> Callable[..., Any]:
    """Return the function of all gradients of the sum of a program's results."""

    def total(*args: Any) -> mt.Tensor:
        found = [each for each in flatten(program(*args))[0] if each is not None and each.dtype.is_floating_point]
        return sum((each.sin().sum() for each in found), mt.tensor(0.0))

    def first(*args: Any) -> Any:
        return mt.autograd.grad(total(*args), args, create_graph=order > 1, allow_unused=True)

    def second(*args: Any) -> Any:
        ends = [each.cos().sum() for each in first(*args) if each is not None and each.requires_grad]
        return mt.autograd.grad(sum(ends, mt.tensor(0.0)), args, allow_unused=True)

    return first if order == 1 else second


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_loop_gives_what_its_repetitions_give(program: Callable[..., Any], mode: str) -> None:
    args = tensors((4, 2, 2), (2, 2), (2, 2))
    expected = values(program(*args))
    function = MODES[mode](program)
    for _ in range(2):
        for mine, right in zip(values(function(*args)), expected, strict=True):
            assert mine.dtype == right.dtype
            np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("program", PROGRAMS[:6], ids=lambda each: each.__name__)
def test_gradients_are_those_of_the_repetitions(program: Callable[..., Any], order: int, mode: str) -> None:
    args = tensors((4, 2, 2), (2, 2), (2, 2))
    function = gradients(program, order)
    for mine, right in zip(MODES[mode](function)(*args), function(*args), strict=True):
        zeros = mt.zeros(right.shape if right is not None else mine.shape if mine is not None else 0)
        one, other = (zeros if each is None else each for each in (mine, right))
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("mode", ["eager", "llvm", "lazy"])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_vmap_runs_one_loop_for_all_examples(program: Callable[..., Any], order: int, mode: str) -> None:
    if order and program in PROGRAMS[6:]:
        return  # a loop of unknown length has no gradient
    xs, hs, w = (each.detach() for each in tensors((3, 4, 2, 2), (3, 2, 2), (2, 2)))

    def function(x: mt.Tensor, h: mt.Tensor, w: mt.Tensor) -> Any:
        if not order:
            with mt.set_grad_enabled(program in PROGRAMS[::2]):
                return [each for each in flatten(program(x, h, w))[0] if each is not None]
        args = [each.clone().requires_grad_() for each in (x, h, w)]
        return [each if each is not None else h * 0 for each in gradients(program, 1)(*args)]

    expected = [
        np.stack(parts) for parts in zip(*(values(function(x, h, w)) for x, h in zip(xs, hs, strict=True)), strict=True)
    ]
    mapped = mt.vmap(function, in_dims=(0, 0, None))
    found = values((mapped if mode == "eager" else MODES[mode](mapped))(xs, hs, w))
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_backward_outside_of_the_recording(mode: str) -> None:
    args = tensors((4, 2, 2), (2, 2), (2, 2))
    found = []
    for function in (recurrent, MODES[mode](recurrent)):
        for each in args:
            each.grad = None
        function(*args)[1]["twice"].sum().backward()
        found.append([each.grad.numpy() for each in args])
    for mine, right in zip(*found, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-4, atol=1e-5)


def test_a_session_runs_a_loop() -> None:
    x, h, w = tensors((4, 2, 2), (2, 2), (2, 2))
    graph = mt.Graph()
    with graph:
        given = mt.placeholder((4, 2, 2), name="x")
        last, _ = recurrent(given, h, w)
    found = mt.Session(graph).run(last, {given: x.detach()})
    np.testing.assert_allclose(found.numpy(), recurrent(x, h, w)[0].detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("mode", ["interpret", "llvm", "lazy"])
def test_state_outside_is_carried(mode: str) -> None:
    """Random generators, buffers, counters: what a body writes outside is the same after the loop."""
    x = mt.randn(5, 4, 3)

    def program() -> Any:
        mt.manual_seed(1)
        norm, seen = mt.nn.BatchNorm1d(3), mt.zeros(3)

        def step(total: mt.Tensor, x: mt.Tensor) -> Any:
            y = mt.nn.functional.dropout(norm(x), 0.5)
            seen.add_(x.sum(0))
            y = mt.cond(y.sum() > 0, lambda: y + mt.rand(3), lambda: y)
            return total + y.sum(), y

        run = lambda x: mt.scan(step, mt.tensor(0.0), x)  # noqa: E731
        result = run(x) if mode == "" else MODES[mode](run)(x)
        return result, seen, norm.running_mean, norm.running_var, norm.num_batches_tracked, mt.rand(2)

    with mt.no_grad():
        mine = values(program())
        mode = ""
        expected = values(program())
    for one, other in zip(mine, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


W: mt.Tensor = mt.ones(3, requires_grad=True)


def _writes_outside(c: mt.Tensor, x: mt.Tensor) -> Any:
    w = mt.ones(3, requires_grad=True) * 1
    return mt.scan(lambda c, x: (c + w.add_(x), None), c, x)


REFUSED = {
    "another shape": (lambda c, x: mt.scan(lambda c, x: (c.sum(), x), c, x), "carry and returns f32[]"),
    "another type": (lambda c, x: mt.scan(lambda c, x: (c.double(), x), c, x), "carry and returns f64[3]"),
    "another structure": (lambda c, x: mt.scan(lambda c, x: ((c, c), x), c, x), "where"),
    "writes to a slice": (lambda c, x: mt.scan(lambda c, x: (x.add_(1), x), c, x), "in place to its argument"),
    "writes to the carry": (lambda c, x: mt.scan(lambda c, x: (c.add_(1), x), c, x), "in place to its argument"),
    "writes to what is sliced": (
        lambda c, x: mt.scan(lambda c, row: (c + row + x.add_(1)[0], c), c, x), "in place to its argument",
    ),
    "writes to what is carried": (
        lambda c, x: mt.scan(lambda d, x: (d + c.add_(1), x), c, x), "in place to its argument",
    ),
    "writes to the first value": (
        lambda c, x: mt.while_loop(lambda d: d < 9, lambda d: d + c.add_(1)[0], c[0]), "in place to its argument",
    ),
    "different branches": (lambda c, x: mt.cond(x.sum() > 0, lambda: c, lambda: c.sum()), "cond: one branch returns"),
    "a condition of several": (lambda c, x: mt.while_loop(lambda c: c < 1, lambda c: c, c), "the condition is"),
}  # fmt: skip
RECORDED = {
    "asks for a value": (lambda c, x: mt.scan(lambda c, x: (c + x.sum().item(), x), c, x), "item"),
    "calls back": (lambda c, x: mt.scan(lambda c, x: (mt.debug.print("{}", c) or c, x), c, x), "calls back"),
    "writes to the tape": (_writes_outside, "requires a gradient"),
    "a gradient inside": (
        lambda c, x: mt.scan(lambda c, x: (c, (W * x).sum().backward()), c, x),
        "stores a gradient",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED | RECORDED)
def test_what_a_body_cannot_do_is_refused_where_it_is_written(case: str) -> None:
    function, words = (REFUSED | RECORDED)[case]
    for mode in ("eager", "jit", "lazy") if case in REFUSED else ("jit", "lazy"):
        if mode == "eager" and case == "different branches":
            continue  # eagerly one of them is called
        run = function if mode == "eager" else MODES["llvm" if mode == "jit" else mode](function)
        with mt.set_grad_enabled(case in RECORDED), pytest.raises((MinitorchError, RuntimeError)) as caught:
            run(mt.zeros(3), mt.ones(2, 3))
        assert words in str(caught.value) and "test_control_flow.py" in str(caught.value), str(caught.value)


RETURNING: dict[str, Callable[[mt.Tensor], mt.Tensor]] = {
    "cond": lambda x: mt.cond(x.sum() > 0, lambda x: x, lambda x: x * 2, x),
    "cond of a view": lambda x: mt.cond(True, lambda: x[:2], lambda: x[1:]),
    "scan": lambda x: mt.scan(lambda c, _: (c, None), x, length=2)[0],
    "scan of slices": lambda x: mt.scan(lambda c, row: (row, None), x[0], x)[0],
    "scan of nothing": lambda x: mt.scan(lambda c, _: (c, None), x, length=0)[0],
    "while_loop": lambda x: mt.while_loop(lambda c: c.sum() < 0, lambda c: c, x),
    "fori_loop": lambda x: mt.fori_loop(0, 0, lambda i, c: c, x),
}


@pytest.mark.parametrize("mode", ["eager", "llvm", "lazy"])
@pytest.mark.parametrize("name", RETURNING)
def test_what_is_passed_through_is_returned_as_a_copy(name: str, mode: str) -> None:
    x = mt.ones(3)

    def program() -> mt.Tensor:
        return RETURNING[name](x).add_(1)

    found = program() if mode == "eager" else MODES[mode](program)()
    assert x.tolist() == [1.0, 1.0, 1.0] and set(found.flatten().tolist()) == {2.0}


@pytest.mark.parametrize("mode", ["eager", "llvm", "lazy"])
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_body_writes_what_is_carried_where_nothing_requires_a_gradient(is_inside: bool, mode: str) -> None:
    outside = mt.zeros(3)

    def program(x: mt.Tensor) -> Any:
        seen = mt.zeros(3) if is_inside else outside
        loops = mt.scan(lambda c, _: (c * 2 + 0 * seen.add_(c), None), x, length=3)[0]
        return loops + mt.while_loop(lambda c: c.sum() < 50, lambda c: c * 2 + 0 * seen.add_(c), x), seen * 1

    found, seen = (program if mode == "eager" else MODES[mode](program))(mt.ones(3))
    assert seen.tolist() == [38.0] * 3 and found.tolist() == [40.0] * 3 and not found.requires_grad


@pytest.mark.parametrize("mode", ["eager", "llvm"])
def test_branches_of_examples_write_their_own_tensors_alone(mode: str) -> None:
    """Both are computed for all examples; generators of random numbers go on."""
    outside = mt.zeros(3)

    def own(x: mt.Tensor) -> mt.Tensor:
        y = x * 1
        y[0] = 7
        return y.view(-1).add_(mt.rand(3) * 0)

    run = (lambda f: f) if mode == "eager" else mt.jit
    x = mt.tensor([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]])
    mapped = mt.vmap(lambda x: mt.cond(x.sum() > 0, own, lambda x: x, x), randomness="different")
    assert run(mapped)(x).tolist() == [[7.0, 2.0, 3.0], [-1.0, -2.0, -3.0]]
    writing = mt.vmap(lambda x: mt.cond(x.sum() > 0, lambda: x + outside.add_(1), lambda: x))
    with pytest.raises(MinitorchError, match="MT116: cond: a branch writes in place"):
        run(writing)(x)
    assert outside.tolist() == [0.0, 0.0, 0.0]


def test_a_value_of_a_body_is_nowhere_else() -> None:
    kept = []

    def leaking(x: mt.Tensor) -> mt.Tensor:
        mt.scan(lambda c, x: (kept.append(c + x) or c, None), mt.zeros(3), x)
        return kept[-1] + 1

    with pytest.raises(MinitorchError, match="MT104"):
        mt.jit(leaking)(mt.ones(2, 3))


def test_a_recorded_while_loop_has_no_gradient() -> None:
    function = mt.jit(lambda x: mt.while_loop(lambda x: x.sum() < 9, lambda x: x * 2, x))
    x = mt.ones(2, requires_grad=True)
    with pytest.raises(AutogradError, match="the gradient of a while_loop"):
        function(x).sum().backward()
    mt.while_loop(lambda x: x.sum() < 9, lambda x: x * 2, x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [8.0, 8.0]


def test_no_repetition_keeps_the_carry() -> None:
    for run in (lambda f: f, mt.jit):
        function = run(lambda c, x: mt.scan(lambda c, x: (c + x, c * 2), c, x))
        last, all_of_them = function(mt.ones(3), mt.ones(0, 3))
        assert last.tolist() == [1.0, 1.0, 1.0] and all_of_them.shape == (0, 3)


LISTING = """graph(x: f32[3,2], c: f32[2], w: f32[2]):
  %0 = scan(c, x, w, body=@0, length=3, carried=1, sliced=1, reverse=false, result=0) : f32[2]
  %1 = reduce_sum(%0, dims=[0]) : f32[]
  %2 = less(%1, 0.0)            : bool[]
  %3 = cond(%2, %0, then=@1, otherwise=@2, result=0) : f32[2]
  return %3
@0(x0: f32[2], x1: f32[2], x2: f32[2]):
  %0 = mul(x1, x2)                                                 : f32[2]
  %1 = while_loop(x0, %0, condition=@3, body=@4, carried=1, result=0) : f32[2]
  return %1
@1(x0: f32[2]):
  return x0
@2(x0: f32[2]):
  %0 = neg(x0) : f32[2]
  return %0
@3(x0: f32[2], x1: f32[2]):
  %0 = reduce_sum(x0, dims=[0]) : f32[]
  %1 = less(%0, 9.0)            : bool[]
  return %1
@4(x0: f32[2], x1: f32[2]):
  %0 = add(x0, x1) : f32[2]
  return %0"""


def test_a_listing_is_read_back() -> None:
    graph = Graph.parse(LISTING)
    assert Graph.parse(str(graph)) == graph and str(Graph.parse(str(graph))) == str(graph)
    given = [np.ones((3, 2), np.float32), np.zeros(2, np.float32), np.full(2, 2, np.float32)]
    (found,) = evaluate(graph, given)
    assert found.tolist() == [-6.0, -6.0]
    assert pickle.loads(pickle.dumps(graph)) == graph


WRONG = {
    "a body that is not there": ("otherwise=@2, result=0", "otherwise=@7, result=0"),
    "a body of itself": ("while_loop(x0, %0, condition=@3, body=@4", "while_loop(x0, %0, condition=@0, body=@4"),
    "another length": ("length=3", "length=4"),
    "another result": ("result=0) : f32[2]\n  %1 = reduce", "result=1) : f32[2]\n  %1 = reduce"),
    "a type in place of a body": ("then=@1", "then=f32"),
    "two of one name": ("@4(", "@3("),
    "an operand too many": ("scan(c, x, w,", "scan(c, x, w, w,"),
    "no answer": ("less(%0, 9.0)            : bool[]", "add(%0, 9.0)            : f32[]"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_listing_is_refused(case: str) -> None:
    assert WRONG[case][0] in LISTING
    with pytest.raises((ParseError, GraphError), match="MT60"):
        Graph.parse(LISTING.replace(*WRONG[case], 1))


def test_one_body_is_compiled_for_any_number_of_repetitions() -> None:
    """Nodes and kernels do not grow with the length, and the cost counts all repetitions."""
    model = mt.nn.LSTM(3, 4)
    seen = []
    for length in (8, 64):
        ledger = mt.jit(model).ledger(mt.randn(length, 2, 3))
        flops = round(ledger.graph.cost().flops / length, -2)
        seen.append((len(ledger.graph.nodes), len(ledger.kernels), flops))
    assert seen[0] == seen[1]


def test_results_that_nothing_needs_are_not_computed() -> None:
    def function(x: mt.Tensor) -> mt.Tensor:
        (a, _, _), (_, _, ys) = mt.scan(
            lambda s, x: ((s[0] + x, s[1] * x, s[2] + s[1]), (x.exp(), s[1], s[0] * 2)), (x[0], x[0], x[0]), x
        )
        return a.sum() + ys.sum()

    ledger = mt.jit(function).ledger(mt.ones(5, 2))
    loops = [node for node in ledger.graph.nodes if node.primitive.together]
    assert [node.params["carried"] for node in loops] == [1, 1]
    assert loops[0].params["body"].count() == {"add": 1, "mul": 1}


def test_what_does_not_change_is_computed_once_ahead() -> None:
    graph = mt.jit(lambda x, w: mt.scan(lambda c, x: (c + (w.exp() * 2).sum() * x, None), x[0], x)[0]).graph(
        mt.ones(5, 2), mt.ones(3)
    )
    assert {"exp", "reduce_sum"} <= graph.count().keys()
    (loop,) = [node for node in graph.nodes if node.primitive.together and node.params["result"] == 0]
    assert "exp" not in loop.params["body"].count()


def test_the_ledger_says_what_a_loop_is() -> None:
    ledger = mt.jit(lambda x: mt.scan(lambda c, x: (c + x, c), mt.zeros(2), x)[1].sum()).ledger(mt.ones(6, 2))
    (loop,) = [kernel for kernel in ledger.kernels if kernel.loops is None]
    assert "6 times" in loop.source and "add(x0, x1)" in loop.source
    assert "a loop or a branch computes it" in str(ledger)


@pytest.mark.parametrize("kind", [mt.nn.RNN, mt.nn.LSTM, mt.nn.GRU])
def test_shadow_mode_knows_how_far_a_loop_may_round(kind: Any) -> None:
    mt.manual_seed(5)
    model, x = kind(3, 4, 2, bidirectional=True), mt.randn(9, 2, 3)
    mt.jit(model, check=True)(x)
    mt.jit(lambda x: mt.autograd.grad((model(x)[0] ** 2).sum(), list(model.parameters())), check=True)(x)


def test_a_recording_with_parameters_of_nodes_as_given_is_pickled() -> None:
    graph = mt.jit(lambda x: mt.scan(lambda c, x: (c + x, c), mt.zeros(2), x)).graph(mt.ones(3, 2))
    assert pickle.loads(pickle.dumps(graph)) == graph


ONE = mt.ones(1)
SEEN = mt.zeros(2, 2)


def _view(x: mt.Tensor) -> mt.Tensor:
    total = mt.zeros(1)
    view = total[0:]
    mt.fori_loop(0, 3, lambda i, c: (view.add_(1.0), c)[1], x)
    return total * 1


def _rows(x: mt.Tensor) -> mt.Tensor:
    with mt.no_grad():
        table = mt.zeros(4, 1)
        rows = table[1:]

        def step(c: mt.Tensor, i: mt.Tensor) -> Any:
            rows[i] = c
            return c + 1, None

        mt.scan(step, x, mt.arange(3))
        return table * 1


def _view_of_a_global(x: mt.Tensor) -> mt.Tensor:
    SEEN.zero_()
    turned = SEEN.T
    mt.fori_loop(0, 3, lambda i, c: (turned.add_(1.0), c + turned.sum())[1], x)
    return SEEN * 1


def _nested(x: mt.Tensor) -> mt.Tensor:
    total = mt.zeros(1)
    mt.fori_loop(0, 3, lambda i, c: mt.cond(c.sum() > 0, lambda: (total.add_(1.0), c)[1], lambda: c * 2), x)
    return total * 1


def _read_in_a_branch(x: mt.Tensor) -> mt.Tensor:
    total = mt.zeros(1)

    def step(c: mt.Tensor, _: None) -> Any:
        found = mt.cond(c.sum() > -1, lambda: total + 1, lambda: total + 2)
        total.add_(1.0)
        return found, None

    return mt.scan(step, x, None, length=3)[0]


def _condition(x: mt.Tensor) -> mt.Tensor:
    count = mt.tensor(0)
    return mt.while_loop(lambda s: s.sum() < 10 - count, lambda s: (count.add_(1), s + 1)[1], x)


def _same_value(x: mt.Tensor) -> mt.Tensor:
    one, other = mt.empty(1), mt.empty(1)
    one.copy_(x)
    other.copy_(x)
    found = mt.scan(lambda c, _: ((one.add_(1.0), other.add_(2.0), c)[2], x * 1), mt.zeros(1), length=3)[1]
    return mt.cat([one, other, found[:, 0]])


@pytest.mark.parametrize("mode", ["interpret", "llvm", "lazy"])
@pytest.mark.parametrize(
    "program", [_view, _rows, _view_of_a_global, _nested, _read_in_a_branch, _condition, _same_value]
)
def test_writes_outside_are_seen_by_what_shares_the_memory_alone(program: Callable[..., Any], mode: str) -> None:
    expected = program(ONE).tolist()
    assert MODES[mode](program)(ONE).tolist() == expected


@pytest.mark.parametrize("mode", ["llvm", "lazy"])
def test_hooks_of_tensors_outside_are_called_once(mode: str) -> None:
    def program(w: mt.Tensor) -> mt.Tensor:
        y = w * 2
        y.register_hook(lambda gradient: gradient * 10)
        return mt.fori_loop(0, 1, lambda i, c: c * y, mt.tensor(1.0))

    w = mt.tensor(1.0, requires_grad=True)
    MODES[mode](program)(w).backward()
    assert w.grad is not None and w.grad.item() == 20.0


def test_transforms_differentiate_by_what_is_carried_and_read_alike() -> None:
    def cube(w: mt.Tensor) -> mt.Tensor:
        return mt.fori_loop(0, 2, lambda i, c: c * w, w).sum()

    for transform, expected in ((mt.func.grad, 12.0), (mt.func.jacrev, 12.0), (mt.func.hessian, 12.0)):
        for run in (lambda f: f, mt.jit):
            assert run(transform(cube))(mt.tensor(2.0)).item() == expected
    assert mt.jit(mt.func.jacfwd(mt.func.jacrev(cube)))(mt.tensor(2.0)).item() == 12.0


def test_a_loop_without_repetition_runs_nothing_that_may_fail() -> None:
    def program(a: mt.Tensor) -> mt.Tensor:
        return mt.while_loop(lambda s: s < 0, lambda s: s + mt.linalg.cholesky(a).sum(), mt.tensor(0.0))

    assert mt.jit(program)(-mt.eye(2)).item() == 0.0
    for length in (-1, 2.0):
        with pytest.raises((ValueError, TypeError)):
            mt.scan(lambda c, x: (c, None), ONE, None, length=length)  # type: ignore[arg-type]
