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
