"""In-place writes where gradients are recorded: PyTorch's results, gradients and refusals, in every mode."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import gradcheck
from minitorch.errors import AutogradError
from minitorch.nn import functional as F
from tests.autograd.writes import ROWS, W, X, answers
from tests.support.records import read

RECORDED = read("writes")
# PyTorch refuses these: it saves the memory that is overwritten. Ours have the right gradient, by finite differences.
ALLOWED = {"sqrt, then another", "product with itself"}
REFUSED = {
    "the denominator is overwritten"
}  # PyTorch computes y.reciprocal() * 2, which keeps its result in place of y


def lazily(step):
    def run(*arguments):
        with mt.lazy():
            return step(*arguments)

    return run


MODES: dict[str, Callable[..., Any]] = {
    "eager": lambda step: step,
    "interpret": lambda step: mt.jit(step, backend="interpret"),
    "llvm": mt.jit,
    "lazy": lazily,
}


def test_the_record_has_these_rows():
    assert list(ROWS) == list(RECORDED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ROWS)
def test_results_and_gradients_are_those_of_pytorch(name, mode):
    found, recorded = answers(mt, F, ROWS[name], MODES[mode]), RECORDED[name]
    if name in ALLOWED:
        assert recorded is None and found is not None
        return
    if name in REFUSED:
        assert recorded is not None and found is None
        return
    assert (found is None) == (recorded is None)
    for ours, theirs in zip(found or (), recorded or (), strict=True):
        assert ours == (theirs and pytest.approx(theirs, rel=1e-9))


@pytest.mark.parametrize("name", [name for name in ROWS if (RECORDED[name] or name in ALLOWED) and name not in REFUSED])
def test_gradients_are_those_of_finite_differences(name):
    """Twice: the gradient of a write can be differentiated again."""
    if "detach" in name or "without" in name or name == "product with constants":
        pytest.skip("what is not recorded has another derivative")
    x, w = (mt.tensor(numbers, requires_grad=True, dtype=mt.float64) for numbers in (X, W))

    def program(x, w):
        return ROWS[name](mt, F, x * 1, w * 1) + 0 * (x + w).sum()

    assert gradcheck(program, (x, w))

    def gradient(x, w):
        return mt.grad(lambda x, w: (program(x, w) ** 2).sum(), argnums=(0, 1))(x, w)

    assert gradcheck(lambda x, w: mt.cat(gradient(x, w)), (x, w))


def random_program(seed):
    """A program of writes to a matrix and views of it, in a random order."""
    choose = random.Random(seed)
    views = [
        lambda y: y, lambda y: y[1], lambda y: y[:, 1:], lambda y: y.t(), lambda y: y[::2, 0], lambda y: y[0],
        lambda y: y.diagonal(), lambda y: y[1:, None], lambda y: y.narrow(1, 0, 2), lambda y: y.unsqueeze(0)[0, 1],
    ]  # fmt: skip
    writes = [
        lambda v, x: v.mul_(1.5), lambda v, x: v.add_(x.sum()), lambda v, x: v.sin_(), lambda v, x: v.zero_(),
        lambda v, x: v.mul_(x[0, 0]), lambda v, x: v.copy_(v * v), lambda v, x: v.sub_(x[1, 1], alpha=2),
    ]  # fmt: skip
    steps = [(choose.randrange(3), choose.choice(views), choose.choice(writes)) for _ in range(5)]

    def program(x):
        y = x * 2
        held = [y, choose_view(y), y.t()]
        for which, view, write in steps:
            write(view(held[which]) if held[which].ndim == 2 else held[which], x)
        return y, held[1] * held[1], held[2].sum(0)

    choose_view = choose.choice(views[1:])
    return program


@pytest.mark.sweep(3)
@pytest.mark.parametrize("seed", range(40))
def test_random_writes_through_views_have_the_right_gradient(seed):
    program = random_program(seed)
    x = mt.tensor(np.random.default_rng(seed).normal(size=(3, 3)), requires_grad=True)
    assert gradcheck(lambda x: mt.cat([each.reshape(-1) for each in program(x)]), (x,))
    results = [[each.detach() for each in way(program)(x)] for way in MODES.values()]
    for found in results[1:]:
        for ours, eager in zip(found, results[0], strict=True):
            np.testing.assert_allclose(ours.numpy(), eager.numpy(), rtol=1e-12)


def test_a_view_knows_of_a_write_to_its_base():
    x = mt.ones(3, requires_grad=True)
    y = mt.zeros(3)
    view, deeper, detached = y[1:], y[1:][:1], y.detach()
    assert view.is_leaf and not view.requires_grad
    y.add_(x)
    assert y.grad_fn.primitive.name == "add_" and not y.is_leaf
    assert view.requires_grad and deeper.requires_grad and not detached.requires_grad
    with pytest.raises(RuntimeError, match="requires"):
        view.numpy()
    (gradient,) = mt.autograd.grad(deeper.sum(), x)
    assert gradient.tolist() == [0, 1, 0]


def test_hooks_and_kept_gradients_are_of_the_tensor_that_was_written():
    x = mt.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: gradient * 10)
    y += 1
    y.retain_grad()
    y.register_hook(lambda gradient: gradient + 1)
    (y * 3).sum().backward()
    assert y.grad.tolist() == [4, 4] and x.grad.tolist() == [80, 80]


def test_a_step_is_dropped_with_its_results():
    """Entries do not refer to what was written, also where they saved it."""
    import gc
    import weakref

    gc.collect()
    gc.disable()
    try:
        x = mt.ones(2, requires_grad=True)
        y = x * 2
        y *= x
        y *= 3
        y.sin_()
        y[0] = x[1]
        reference = weakref.ref(y)
        del y
        assert reference() is None
    finally:
        gc.enable()


def test_writes_in_a_checkpoint_are_done_again():
    x = mt.tensor([1.0, 2.0], requires_grad=True)

    def function(x):
        y = x * x
        y += x
        y[0] = y[1] * 3
        return y.exp()

    (found,), (expected,) = (mt.autograd.grad(each.sum(), x) for each in (mt.checkpoint(function, x), function(x)))
    assert found is not None and expected is not None and found.tolist() == expected.tolist()


def test_a_recording_leaves_no_history_on_tensors_outside():
    buffer, x = mt.zeros(2), mt.ones(2, requires_grad=True)

    @mt.jit
    def step(x):
        buffer.add_(x)
        return buffer * 1

    with pytest.raises(AutogradError, match="MT401"):
        step(x)
    assert buffer.tolist() == [0, 0] and not buffer.requires_grad


def leaf():
    return mt.tensor([1.0, -2.0, 3.0], requires_grad=True)


@pytest.mark.parametrize("way", [lambda step: step, lazily])
def test_an_overwritten_leaf_keeps_its_gradient(way):
    """Two losses of one graph with a step between them, which overwrites what a product with a number has saved."""

    def step():
        w = leaf()
        optimizer = mt.optim.SGD([w], lr=0.1)
        one, two = (w * 2).sum(), (w * 3 + F.relu(w)).sum()
        one.backward()
        optimizer.step()
        two.backward()
        return w.grad

    assert way(step)().tolist() == [6, 5, 6]
    x = leaf()
    y = x * 2 + F.relu(x)
    with mt.no_grad():
        x.add_(1)
    (gradient,) = mt.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [3, 2, 3]


@pytest.mark.parametrize("name", [name for name in ROWS if "leaf of zeros" not in name])
@pytest.mark.parametrize("mode", ["eager", "llvm"])
def test_a_checkpoint_gives_the_same_or_refuses_the_same(name, mode):
    def checkpointed(T, F, x, w):
        return mt.checkpoint(lambda x, w: ROWS[name](T, F, x, w), x, w)

    plain, found = (answers(mt, F, program, MODES[mode]) for program in (ROWS[name], checkpointed))
    if "leaf" in name and plain is not None and found is None:  # the checkpoint wrote its argument twice
        return
    assert (
        found == plain
        if plain is None or found is None
        else np.allclose(
            [np.nan if each is None else each for part in found for each in part or [None]],
            [np.nan if each is None else each for part in plain for each in part or [None]],
            equal_nan=True,
        )
    )


def test_a_compiled_function_sees_the_history_of_a_view_outside():
    w = leaf()
    y = w * 2
    v = y[1:]
    square = mt.jit(lambda: (v * v).sum())
    square()
    v.mul_(w[1:])
    square().backward()
    assert w.grad.tolist() == [0, -128, 432]


def test_a_kept_gradient_is_that_of_the_present_value():
    y = leaf() * 2
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    assert y.grad.tolist() == [12, -24, 36]


@pytest.mark.parametrize("kind", [mt.nn.SiLU, mt.nn.Hardswish, mt.nn.Mish, mt.nn.ELU, mt.nn.Dropout, mt.nn.LeakyReLU])
def test_an_activation_in_place_has_the_gradient_of_the_other(kind):
    def gradient(inplace):
        mt.manual_seed(0)
        x = leaf()
        (kind(inplace=inplace)(x * 2) * 3).sum().backward()
        return x.grad.tolist()

    assert gradient(True) == gradient(False)


def test_a_view_that_a_function_returns_is_not_written():
    class Same(mt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[1:]

        @staticmethod
        def backward(ctx, g):
            return F.pad(g, (1, 0))

    x, w = leaf(), leaf()
    y = x * 2
    z = Same.apply(y)
    with pytest.raises(AutogradError, match="MT401"):
        z.mul_(2)
    y.mul_(w)
    with pytest.raises(AutogradError, match="MT401"):
        z * z


def test_the_class_of_tensors_makes_a_view_of_a_tensor():
    x = leaf()
    (mt.Tensor(x * 2).sum() + x.sum()).backward()
    assert x.grad.tolist() == [3, 3, 3]
    a = mt.ones(3)
    y = a * leaf()
    mt.Tensor(a).mul_(2)
    with pytest.raises(AutogradError, match="MT402"):
        y.sum().backward()


def test_data_of_a_transposed_tensor_is_exchanged():
    w = mt.nn.Parameter(mt.arange(9.0).reshape(3, 3))
    w.data = w.t()
    assert w[0].tolist() == [0, 3, 6]


def test_a_function_may_return_more_than_tensors():
    class More(mt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, None, 3

        @staticmethod
        def backward(ctx, g, *rest):
            assert rest == (None, None)
            return g * 2

    x = leaf()
    y, *rest = More.apply(x)
    y.sum().backward()
    assert rest == [None, 3] and x.grad.tolist() == [2, 2, 2]
    assert mt.jit(lambda: mt.zeros(3).requires_grad_())().requires_grad
