"""Loops and branches as Scan, Loop and If: written, checked, run by other runtimes, and read as what they were."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import minitorch as mt
from minitorch.errors import OnnxError
from minitorch_onnx.reading.loading import module_of, parsed
from minitorch_onnx.writing.nodes import all_nodes
from tests.onnx.exported import arrays, assert_dynamic, assert_same, kinds

CONTROL = ("scan", "while_loop", "cond")
random = np.random.default_rng(5)
W = mt.tensor([[0.5, 0.25, -0.5], [0.0, 0.25, 1.0], [0.5, -1.0, 0.25]])


def real(*shape: int) -> mt.Tensor:
    return mt.tensor(random.normal(size=shape).astype(np.float32))


def read(text: str) -> Any:
    """A module of a model in ONNX's text format."""
    model = onnx.parser.parse_model(f"<ir_version: 8, opset_import: ['': 18]> {text}".replace("'", '"'))
    return module_of(parsed(model.SerializeToString())).eval()


def control(f: Any, *tensors: mt.Tensor) -> dict[str, int]:
    """The loops and branches of a recording, those in bodies included; siblings are one."""
    with mt.no_grad():
        text = str(mt.jit(f, backend="interpret").graph(*tensors))
    found = {name: len(set(re.findall(rf" {name}\((.*), result=", text))) for name in CONTROL}
    return {name: count for name, count in found.items() if count}


def lacks(node: Any) -> bool:
    """Whether ONNX's evaluator computes a loop otherwise: backwards, or with results of each turn of a Loop."""
    body = next((each.g for each in node.attribute if each.name == "body"), None)
    collects = body is not None and len(body.output) > len(body.input) - 1
    return any(each.name == "scan_input_directions" for each in node.attribute) or (node.op_type == "Loop" and collects)


def assert_read_again(model: Any, f: Any, *tensors: mt.Tensor) -> Any:
    """A model has the function's numbers in ONNX's evaluator, and read again in ours, eagerly and recorded."""
    wanted = arrays(f(*tensors))
    feeds = {each.name: x.numpy() for each, x in zip(model.graph.input, tensors, strict=True)}
    again = module_of(parsed(model.SerializeToString())).eval()
    with mt.no_grad():
        found = [arrays(again(*tensors)), arrays(mt.jit(again, backend="interpret")(*tensors))]
    if not any(lacks(node) for node in all_nodes(model.graph.node)):
        found.append(ReferenceEvaluator(model).run(None, feeds))
    for results in found:
        for one, other in zip(results, wanted, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    return again


# The examples of docs/loops.md, and each form of a loop -----------------------------------------------------


def _step(h: Any, x: Any) -> Any:
    h = h @ W + x
    return h, h.sum()


def _halve_or_grow(x: Any) -> Any:
    return mt.cond(x.sum() > 10, lambda x: x / 2, lambda x: 3 * x + 1, x)


def _five_times(x: Any) -> Any:
    return mt.while_loop(lambda s: s[1] < 5, lambda s: (_halve_or_grow(s[0]), s[1] + 1), (x, 0))[0]


def _triangle(x: Any) -> Any:
    return mt.scan(lambda c, x: (c + x, (c * x, mt.fori_loop(0, 3, lambda i, v: v * i + x, c))), x[0], (x + 1), 4)


FORMS: dict[str, tuple[list[str], Callable[..., Any], mt.Tensor]] = {
    "carried and collected": (["Scan"], lambda xs: mt.scan(_step, mt.zeros(1, 3), xs), real(7, 1, 3)),
    "backwards": (["Scan"], lambda xs: mt.scan(_step, mt.zeros(1, 3), xs, reverse=True), real(7, 1, 3)),
    "hoisted": (["Scan"], lambda xs: mt.scan(lambda h, x: (h @ (W * 2) + x, None), xs[0], xs)[0], real(5, 1, 3)),
    "collected alone": (["Scan"], lambda xs: mt.scan(lambda c, x: (c, x.exp()), mt.zeros(2), xs)[1], real(3, 2)),
    "a branch": (["If"], _halve_or_grow, real(4)),
    "a branch in a loop": (["Loop"], _five_times, real(4)),
    "a counter": (["Loop"], lambda x: mt.fori_loop(2, 7, lambda i, v: v * 0.5 + i, x), real(2, 3)),
    "a counter that is a tensor": (
        ["Loop"],
        lambda n: mt.fori_loop(0, n, lambda i, v: v * 0.5 + i, mt.ones(2)),
        mt.tensor(4),
    ),
    "nothing is sliced": (["Loop"], lambda x: mt.scan(lambda c, _: (c * 0.5, c.sum()), x, length=4), real(3)),
    "backwards, nothing is sliced": (
        ["Loop"],
        lambda x: mt.scan(lambda c, _: (c * 0.5, c.sum()), x, length=4, reverse=True),
        real(3),
    ),
    "a loop in a loop": (["Scan"], _triangle, real(4, 2)),
    "a loop that does not turn": (["Loop"], lambda x: mt.while_loop(lambda x: x < 0, lambda x: x + 1, x), mt.tensor(3)),
    "one value twice": (["Scan"], lambda xs: mt.scan(lambda c, x: ((x, x), (x, c[1])), (xs[0],) * 2, xs), real(3, 2)),
    "an argument as the result of a branch": (["If"], lambda x: mt.cond(x[0] > 0, lambda: x, lambda: W[0]), real(3)),
}


@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_written_and_read_again_as_what_it_was(name: str) -> None:
    expected, f, x = FORMS[name]
    for opset in (13, 20, 23):
        model = assert_same(f, x, opset_version=opset)
        assert [kind for kind in kinds(model) if kind in ("Scan", "Loop", "If")] == expected
    again = assert_read_again(model, f, x)
    assert control(again, x) == control(f, x)
    with mt.no_grad():
        np.testing.assert_allclose(arrays(mt.jit(again)(x))[0], arrays(f(x))[0], rtol=1e-4, atol=1e-5)


# Random programs --------------------------------------------------------------------------------------------

Body = Callable[[Any, Any], Any]
PLAIN: list[Body] = [
    lambda a, b: (a + b).tanh(),
    lambda a, b: a * b.sigmoid(),
    lambda a, b: (a @ W - b).sin(),
    lambda a, b: mt.where(a > b, a, b * 0.5),
    lambda a, b: a - b.mean(0, keepdim=True),
    lambda a, b: mt.cat([a[:1], b[1:]]),
]


def _branch(one: Body, other: Body, a: Any, b: Any) -> Any:
    return mt.cond((a - b).sum() > 0, one, other, a, b)


def _scanned(one: Body, other: Body, reverse: bool, a: Any, b: Any) -> Any:
    last, rows = mt.scan(lambda c, x: (one(c, x).tanh(), other(x, c)), a, mt.stack([b, a, b * 0.5]), reverse=reverse)
    return last + rows[0] - rows.sum(0).tanh()


def _counted(one: Body, other: Body, a: Any, b: Any) -> Any:
    return mt.fori_loop(1, 4, lambda i, v: (one(v, b) * i).tanh(), other(a, b))


def _repeated(one: Body, other: Body, a: Any, b: Any) -> Any:
    def body(state: Any) -> Any:
        return one(state[0], b).tanh(), other(state[1], a).tanh(), state[2] + 1

    return mt.while_loop(lambda s: (s[2] < 3) & (s[0].sum() < 4), body, (a, b, 0))[1]


def program(seed: int, depth: int = 2) -> Body:
    """A random function of two matrices, of loops and branches within one another."""
    chosen = np.random.default_rng(seed)
    if not depth:
        return PLAIN[chosen.integers(len(PLAIN))]
    one, other = (program(int(chosen.integers(1 << 30)), depth - 1) for _ in range(2))
    ways: list[Body] = [
        lambda a, b: _branch(one, other, a, b),
        lambda a, b: _scanned(one, other, False, a, b),
        lambda a, b: _scanned(one, other, True, a, b),
        lambda a, b: _counted(one, other, a, b),
        lambda a, b: _repeated(one, other, a, b),
    ]
    return ways[seed % len(ways)]


@pytest.mark.parametrize("seed", range(30))
def test_a_random_program_is_written_and_read_again(seed: int) -> None:
    f, a, b = program(seed), real(2, 3), real(2, 3)
    assert_read_again(assert_same(f, a, b, rtol=1e-4, atol=1e-5), f, a, b)


# Sizes ------------------------------------------------------------------------------------------------------


def test_a_loop_over_any_number_of_slices() -> None:
    def f(xs: Any) -> Any:
        return mt.scan(_step, mt.zeros(1, 3), xs, reverse=True)

    model = assert_dynamic(f, {"xs": {0: "time"}}, [real(5, 1, 3)], [real(1, 1, 3)], [real(9, 1, 3)])
    again = module_of(parsed(model.SerializeToString())).eval()
    exported = assert_dynamic(again, {"xs": {0: "time"}}, [real(5, 1, 3)], [real(1, 1, 3)], [real(9, 1, 3)])
    assert "Scan" in kinds(exported)


COUNTED = """g (float[t,3] x) => (float[3] last, float[t,3] y) {
    s = Shape(x)
    zero = Constant <value_int = 0> ()
    n = Gather(s, zero)
    begin = Constant <value_floats = [0.0, 0.0, 0.0]> ()
    last, y = Loop (n, "", begin) <body = b (int64 i, bool going, float[3] h) => (bool on, float[3] k, float[3] o) {
        on = Identity(going)
        u = Gather(x, i)
        k = Add(h, u)
        o = Tanh(k)
    }>
}"""


def test_a_loop_that_turns_as_often_as_there_are_slices_is_one_of_any_length() -> None:
    model = read(COUNTED)
    assert control(model, real(5, 3)) == {"scan": 1}
    exported = assert_dynamic(model, {"x": {0: "time"}}, [real(5, 3)], [real(1, 3)], [real(9, 3)])
    assert kinds(exported)[-1] == "Scan"


# Models of others -------------------------------------------------------------------------------------------

DOUBLING = """g (float[2] x, int64 n, bool c) => (float[2] y) {
    y = Loop (COUNT, CONDITION, x) <body = b (int64 i, bool going, float[2] s) => (bool on, float[2] t) {
        t = Add(s, s)
        total = ReduceSum <keepdims = 0> (t)
        most = Constant <value_float = 100.0> ()
        on = Less(total, most)
    }>
}"""


@pytest.mark.parametrize(("count", "condition", "turns"), [("n", "c", 3), ("n", "", 3), ("", "c", 6), ("", "", 6)])
def test_a_loop_of_any_number_of_turns_is_a_while_loop(count: str, condition: str, turns: int) -> None:
    model = read(DOUBLING.replace("COUNT", count or '""').replace("CONDITION", condition or '""'))
    given = mt.ones(2), mt.tensor(3), mt.tensor(True)
    assert control(model, *given) == {"while_loop": 1}
    function = mt.jit(model)
    assert model(*given).tolist() == function(*given).tolist() == [2.0**turns] * 2
    if condition:
        assert function(*given[:2], mt.tensor(False)).tolist() == [1.0, 1.0]
    if count:
        assert function(mt.ones(2), mt.tensor(5), mt.tensor(True)).tolist() == [32.0, 32.0]
    assert mt.freeze(model, *given)(*given).tolist() == [2.0**turns] * 2
    with mt.lazy():
        late = model(*given)
    assert late.tolist() == [2.0**turns] * 2
    with mt.Graph() as graph:
        places = [mt.placeholder(x.shape, x.dtype) for x in given]
        result = model(*places)
    assert mt.Session(graph).run(result, dict(zip(places, given, strict=True))).tolist() == [2.0**turns] * 2


COLLECTING = """g (float[2] x, int64 n) => (float[2] y, float[k,2] rows) {
    y, rows = Loop (n, "", x) <body = b (int64 i, bool going, float[2] s) => (bool on, float[2] t, float[2] u) {
        on = Identity(going)
        t = Add(s, s)
        u = Identity(t)
    }>
}"""


def test_a_result_for_each_of_unknown_turns_is_refused_by_name() -> None:
    model = read(COLLECTING)
    given = mt.ones(2), mt.tensor(3)
    assert [each.tolist() for each in model(*given)] == [[8, 8], [[2, 2], [4, 4], [8, 8]]]
    with pytest.raises(OnnxError, match=r"rows: a result with an element for each turn(.|\n)*\(Loop\)"):
        mt.jit(model)(*given)
    assert mt.jit(model)(mt.ones(2), 3)[1].shape == (3, 2)  # a number is known
    with mt.lazy():
        _, late = model(*given)
    assert late.shape == (3, 2)


def test_a_loop_whose_state_grows_is_written_turn_by_turn() -> None:
    model = read("""g (float[1] x) => (float[4] y) {
        three = Constant <value_int = 3> ()
        y = Loop (three, "", x) <body = b (int64 i, bool going, float[n] s) => (bool on, float[m] t) {
            on = Identity(going)
            t = Concat <axis = 0> (s, x)
        }>
    }""")
    assert control(model, mt.ones(1)) == {}
    assert mt.jit(model)(mt.ones(1)).tolist() == [1.0] * 4


def test_scans_along_other_axes_and_in_both_directions() -> None:
    model = read("""g (float[2] s, float[2,4] x, float[4,2] z) => (float[2] last, float[2,4] y) {
        last, y = Scan <num_scan_inputs = 2, scan_input_axes = [-1, 0], scan_input_directions = [1, 0],
                scan_output_axes = [1], scan_output_directions = [1], body = b
                (float[2] c, float[2] u, float[2] v) => (float[2] d, float[2] w) {
            w = Mul(u, v)
            d = Add(c, w)
        }> (s, x, z)
    }""")
    s, x, z = real(2), real(2, 4), real(4, 2)
    product = x.flip(1) * z.t()
    for found in (model(s, x, z), mt.jit(model)(s, x, z)):
        np.testing.assert_allclose(found[0].numpy(), (s + product.sum(1)).numpy(), rtol=1e-5)
        np.testing.assert_allclose(found[1].numpy(), product.flip(1).numpy(), rtol=1e-5)
    assert control(model, s, x, z) == {"scan": 1}


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_recurrence_of_sequences_of_several_lengths_is_a_loop(kind: str) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    text = f"y = {kind} <hidden_size = 2, direction = 'bidirectional'> (x, w, r, '', n)"
    model = read(f"g (float[t,2,3] x, float[2,k,3] w, float[2,k,2] r, int32[2] n) => (float[t,2,2,2] y) {{ {text} }}")
    w, r, n = real(2, 2 * gates, 3), real(2, 2 * gates, 2), mt.tensor([3, 6], dtype=mt.int32)
    x = real(6, 2, 3)
    assert set(control(model, x, w, r, n)) == {"scan"}
    np.testing.assert_allclose(mt.jit(model)(x, w, r, n).numpy(), model(x, w, r, n).numpy(), rtol=1e-5, atol=1e-6)
    assert (model(x, w, r, n)[3:, :, 0] == 0).all()


def test_a_scan_that_is_read_is_trained_in_one_graph() -> None:
    model = read("""g (float[t,2,3] x, float[3,3] w, float[2,3] first) => (float[2,3] last) {
        last = Scan <num_scan_inputs = 1, body = b (float[2,3] h, float[2,3] u) => (float[2,3] k) {
            p = MatMul(h, w)
            s = Add(p, u)
            k = Tanh(s)
        }> (first, x)
    }""")
    x, w, first = real(6, 2, 3), real(3, 3), real(2, 3)
    gradient = mt.grad(lambda w: model(x, w, first).sum())
    np.testing.assert_allclose(mt.jit(gradient)(w).numpy(), gradient(w).numpy(), rtol=1e-4, atol=1e-5)
