"""`jit(dynamic_shapes=)`: one trace, and one compilation, for all lengths of a dimension."""

from __future__ import annotations

import copy
import ctypes
import math
import mmap
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn as nn
import minitorch.nn.functional as F
from minitorch.errors import ArgumentError, TracingError
from tests.support import pages

SIZES = (7, 2, 16, 33, 70, 200, 3)  # the first bound is 64, and 70 and 200 are beyond it
W, BIAS, KERNEL = mt.randn(64, 130), mt.randn(130), mt.randn(6, 3, 3, 3)

Arguments = Callable[[int], tuple[mt.Tensor, ...]]


def rows(n: int) -> tuple[mt.Tensor, ...]:
    return (mt.randn(n, 64),)


def moved(x: mt.Tensor) -> tuple[mt.Tensor, ...]:
    parts = x.flip(0), x.T.contiguous(), mt.cat([x, x * 2]), x[-1], x[1:], F.pad(x, (0, 0, 1, 2)), x.reshape(-1)
    return (*parts, x.roll(1, 0), x.repeat(1, 2), x[:, None].expand(-1, 3, -1))


def reduced(x: mt.Tensor) -> tuple[mt.Tensor, ...]:
    return x.mean(0), (x * x).mean(), x.var(0), x.max(0)[0], x.argmax(0), x.sum(), x.norm()


def computed(x: mt.Tensor) -> tuple[mt.Tensor, ...]:
    n = x.shape[0]
    return x + mt.arange(n)[:, None], x / n, mt.full((n, 2), n * 2.5), mt.ones(n // 2, n), x[: n // 2]


def selected(x: mt.Tensor, i: mt.Tensor) -> tuple[mt.Tensor, ...]:
    return x[i], mt.zeros(5, 64).index_add(0, i % 5, x), x.sort(0)[0], x.cumsum(0), F.one_hot(i % 9, 9)


def paired(x: mt.Tensor, y: mt.Tensor) -> tuple[mt.Tensor, ...]:
    return x @ y.T, (x[:, None] - y[None]).abs().sum(-1), mt.tril(x @ x.T), (x @ x.T).diagonal()


def network(x: mt.Tensor) -> mt.Tensor:
    return F.softmax(F.relu(x @ W + BIAS) @ W.T, 1)


def columns(x: mt.Tensor) -> tuple[mt.Tensor, ...]:
    return F.layer_norm(x.T @ x, (x.shape[1],)), x.mean(1)


def images(x: mt.Tensor) -> mt.Tensor:
    return F.max_pool2d(F.batch_norm(F.relu(F.conv2d(x, KERNEL, padding=1)), None, None, training=True), 2).flatten(1)


def attention(q: mt.Tensor, k: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


# A function, its arguments for a length, and the dimension that has it in each.
CASES: dict[str, tuple[Callable[..., Any], Arguments, dict[str, dict[int, str]]]] = {
    "moved": (moved, rows, {"x": {0: "n"}}),
    "reduced": (reduced, rows, {"x": {0: "n"}}),
    "computed": (computed, rows, {"x": {0: "n"}}),
    "selected": (selected, lambda n: (mt.randn(n, 64), mt.randint(0, n, (n,))), {"x": {0: "n"}, "i": {0: "n"}}),
    "paired": (paired, lambda n: (mt.randn(n, 64), mt.randn(n + 3, 64)), {"x": {0: "n"}, "y": {0: "m"}}),
    "squares": (lambda x: (x[:, None] * x[None]).sum(), lambda n: (mt.ones(n),), {"x": {0: "n"}}),
    "network": (network, rows, {"x": {0: "n"}}),
    "columns": (columns, lambda n: (mt.randn(64, n),), {"x": {1: "n"}}),
    "images": (images, lambda n: (mt.randn(n, 3, 8, 8),), {"x": {0: "n"}}),
    "batches": (attention, lambda n: tuple(mt.randn(n, 2, 10, 8) for _ in "qkv"), {x: {0: "n"} for x in "qkv"}),
    "times": (attention, lambda n: tuple(mt.randn(2, 2, n, 8) for _ in "qkv"), {x: {2: "n"} for x in "qkv"}),
    "entropy": (
        lambda x, y: F.cross_entropy(x @ W + BIAS, y),
        lambda n: (mt.randn(n, 64), mt.randint(0, 130, (n,))),
        {"x": {0: "n"}, "y": {0: "n"}},
    ),
}  # fmt: skip


def halved(x: mt.Tensor) -> mt.Tensor:
    return x.reshape(2, -1).sum(0) if x.shape[0] % 2 == 0 else x.sum(0)


def fenced(x: mt.Tensor) -> mt.Tensor:
    """A tensor that ends where memory ends: reading beyond it would end this process."""
    if sys.platform != "linux":
        return x
    array, page = x.numpy(), mmap.PAGESIZE
    pages = -(-array.nbytes // page) + 1
    memory = np.frombuffer(mmap.mmap(-1, pages * page), np.uint8)
    end = (pages - 1) * page
    assert not ctypes.CDLL(None).mprotect(ctypes.c_void_p(memory.ctypes.data + end), page, 0)
    found = memory[end - array.nbytes : end].view(array.dtype).reshape(array.shape)
    found[...] = array
    return mt.from_numpy(found)


def equal(found: Any, expected: Any) -> None:
    """Require equal results, but for the order of sums."""
    for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
        assert one.shape == other.shape and one.dtype is other.dtype
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=2e-4, atol=2e-4)


def sized(jitted: Any) -> Any:
    """The executable of a function's only trace."""
    (report,) = jitted.explain().signatures
    return report.program.compiled


@pytest.mark.parametrize("name", CASES)
def test_one_trace_has_eager_results_for_all_sizes(name):
    f, arguments, symbols = CASES[name]
    jitted = mt.jit(f, dynamic_shapes=symbols)
    for n in SIZES:
        given = tuple(map(fenced, arguments(n)))
        equal(jitted(*given), f(*given))
    program = sized(jitted)
    assert program.refused == "" and program.compilations <= 3


def test_the_rest_is_traced_once_and_compiled_for_each_size():
    def loop(x):
        return mt.scan(lambda carry, row: (carry + row, carry), x, mt.ones(3, 1))[0]

    for f, why in ((lambda x: x.reshape(-1) * 2, "joined"), (loop, "scan")):
        jitted = mt.jit(f, dynamic_shapes={"x": {1: "n"}})
        for n in (5, 6, 5):
            x = mt.randn(4, n)
            equal(jitted(x), f(x))
        program = sized(jitted)
        assert why in program.refused and program.compilations == 2
    jitted = mt.jit(network, dynamic_shapes={"x": {0: "n"}}, backend="interpret")
    for x in (*rows(5), *rows(6)):
        equal(jitted(x), network(x))
    assert jitted.explain().traced == 1


def trained(model: nn.Module, decorate: Callable[..., Any], sizes: tuple[int, ...]) -> tuple[Any, list[float]]:
    optimizer = mt.optim.Adam(model.parameters(), lr=1e-2)

    @decorate
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    mt.manual_seed(1)
    return step, [step(mt.randn(n, 8), mt.randint(0, 3, (n,))).item() for n in sizes]


def test_a_training_step_finds_out_by_itself_that_batches_vary():
    model = nn.Sequential(
        nn.Linear(8, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3)
    )
    other, third = copy.deepcopy(model), copy.deepcopy(model)
    sizes = (10, 11, 12, 13, 45, 64, 200, 10, 3)
    step, losses = trained(model, mt.jit(dynamic_shapes=True), sizes)
    _, expected = trained(other, lambda f: f, sizes)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    for one, two in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-3, atol=1e-4)
    assert step.explain().traced == 3 and "f32[s0,8]" in str(step.explain())
    assert "lengths of `x` and `y` vary, so that this trace is for all of them" in step.explain().misses[-1]
    step, losses = trained(third, mt.jit, sizes[:4])
    assert step.explain().traced == 4


def test_gradients_flow_through_a_call_of_any_size():
    def f(x, w, table):
        return (x @ w).tanh().sum(1) + table.sum() * x.shape[0]

    jitted = mt.jit(f, dynamic_shapes={"x": {0: "n"}})
    for n in (5, 6, 80):
        grads = []
        for g in (f, jitted):
            mt.manual_seed(n)
            x, w, table = (mt.randn(*s, requires_grad=True) for s in ((n, 4), (4, 3), (3,)))
            (first,) = mt.autograd.grad((g(x, w, table) ** 2).sum(), w, create_graph=True)
            (first**2).sum().backward()
            grads.append((x.grad, w.grad))
        equal(*map(tuple, grads))


def test_a_comparison_is_a_guard_and_the_other_answer_another_trace():
    jitted = mt.jit(lambda x: x[:8] if x.shape[0] > 8 else x * 2, dynamic_shapes={"x": {0: "n"}})
    assert [jitted(mt.ones(n)).shape[0] for n in (20, 30, 5, 6, 9, 1, 1, 0)] == [8, 8, 5, 6, 8, 1, 1, 0]
    first, second, *apart = jitted.explain().signatures
    assert [each.condition for each in first.guards] == ["n > 8"]
    assert "not n > 8" in [each.condition for each in second.guards]
    assert [first.calls, second.calls] == [3, 2] and len(apart) == 2 and not any(each.guards for each in apart)
    assert "guard: n > 8, asked at" in str(jitted.explain())


def test_a_function_of_one_size_is_refused_by_name_and_left_alone_else():
    def f(x):
        return sum(x[i] for i in range(x.shape[0]))

    with pytest.raises(TracingError, match=r"MT118: .*\bn is taken for a plain number\n  where: test_many_sizes"):
        mt.jit(f, dynamic_shapes={"x": {0: "n"}})(mt.ones(4))

    class Counting(nn.Module):
        def forward(self, x):
            self.steps = x.shape[0]
            return x.sum()

    with pytest.raises(TracingError, match=r"MT118: .*`self.steps` is set to n"):
        mt.jit(Counting(), dynamic_shapes={"x": {0: "n"}})(mt.ones(4))
    for g in (f, lambda x: (x, x.numel()), lambda x: x.sum() * math.sqrt(x.shape[0]) ** 2 / x.shape[0]):
        jitted = mt.jit(g, dynamic_shapes=True)
        for n in (3, 4, 5, 6, 7):
            result = jitted(mt.ones(n))
            assert (result[1] if isinstance(result, tuple) else result.item()) == pytest.approx(n)
        assert jitted.explain().traced == 5


def test_what_is_named_has_to_be_there():
    for given, what in (
        ({"y": {0: "n"}}, "`y`, which is no tensor among the arguments"),
        ({"x": {2: "n"}}, "dimension 2 of `x`, which has 2"),
        ({"x": {0: "n", 1: "n"}}, "`n` is the name of dimensions of 3 and of 4"),
    ):
        with pytest.raises(ArgumentError, match=what):
            mt.jit(lambda x: x, dynamic_shapes=given)(mt.ones(3, 4))


def test_bounds_and_questions_are_those_of_all_lengths():
    """Formulas that are short, no largest at the bound, or 1 for a length; numbers beyond their type; names twice."""
    cases: tuple[tuple[Callable[[mt.Tensor], mt.Tensor], tuple[int, ...]], ...] = (
        (lambda x: x[::8].mean(0) + x[: x.shape[0] // 8 + 1].prod(0), (23, 8, 16, 70)),
        (lambda x: x[: x.shape[0] % 7 + 2] * 2, (10, 64, 13, 20)),
        (lambda x: (x * 0 + x.shape[0]).to(mt.uint8) + x.shape[0], (300, 20)),
        (halved, (8, 10, 7, 9)),
    )
    for f, sizes in cases:
        jitted = mt.jit(f, dynamic_shapes={"x": {0: "n"}})
        for n in sizes:
            x = mt.randn(n, 6)
            equal(jitted(x), f(x))

    def written(x):
        x.T.reshape(-1).add_(1)
        return x * 1

    jitted = mt.jit(written, dynamic_shapes={"x": {0: "n"}})
    for n in (4, 5, 1):
        equal(jitted(mt.ones(n, 3)), written(mt.ones(n, 3)))

    def twice(x, y=None):
        return x + (x if y is None else y)

    jitted = mt.jit(twice, dynamic_shapes={"x": {0: "n"}, "y": {0: "n"}})
    for n in (4, 5):
        equal(jitted(mt.ones(n)), mt.ones(n) * 2)
        equal(jitted(*[mt.ones(n)] * 2), mt.ones(n) * 2)


def test_dimensions_of_one_length_in_all_calls_have_one_symbol():
    jitted = mt.jit(lambda x, y: x @ y, dynamic_shapes=True)
    for n in (3, 4, 5, 6):
        jitted(mt.ones(n, n + 1), mt.ones(n + 1, n))
    assert str(jitted.explain().signatures[-1]) == "x: f32[s0,s1], y: f32[s1,s0]"
    assert jitted(mt.ones(5, 9), mt.ones(9, 5)).shape == (5, 5) and jitted.explain().traced == 3
    assert jitted(mt.ones(5, 9), mt.ones(9, 6)).shape == (5, 6) and jitted.explain().traced == 4


def test_the_page_of_sizes_runs():
    assert pages.run("sizes.md") > 10
