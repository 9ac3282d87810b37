"""Shapes and histories in place: `unsqueeze_` and the like, and `detach_`, as in PyTorch, in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import AutogradError, TracingError


def fresh(*shape):
    """A tensor of 0, 1, 2, ..."""
    return mt.arange(float(np.prod(shape, dtype=int))).reshape(*shape).clone()


SHAPES: dict[str, tuple[Any, ...]] = {
    "squeeze_": (),
    "swapaxes_": (0, 2),
    "swapdims_": (0, 1),
    "transpose_": (1, -1),
    "t_": (),
    "unsqueeze_": (1,),
}


def reshaped(name, start):
    """A tensor with another shape in place, written before and after, and a view of it as it is then."""
    x = start * 1
    if name == "t_":
        x = x[0]
    x.mul_(2)
    assert getattr(x, name)(*SHAPES[name]) is x
    view = x[..., :1]
    view.add_(1)
    x.mul_(3)
    return x * 1, view * 1


def wanted(name, array):
    x = (array[0] if name == "t_" else array) * 2
    move: Any = {"squeeze_": np.squeeze, "unsqueeze_": np.expand_dims, "t_": np.transpose}.get(name, np.swapaxes)
    x = move(x, *SHAPES[name]).copy()
    x[..., :1] += 1
    x *= 3
    return x, x[..., :1]


RUNS: dict[str, Any] = {
    "eager": lambda f: f,
    "jit": mt.jit,
    "interpret": mt.jit(backend="interpret"),
    "lazy": lambda f: mt.lazy()(f),
    "vmap": lambda f: lambda x: [y[0] for y in mt.vmap(f)(x[None])],
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_in_place_is_that_of_the_function_and_no_copy(name, run):
    x = fresh(1, 2, 3)
    found = RUNS[run](lambda x: reshaped(name, x))(x)
    for one, other in zip(found, wanted(name, x.numpy()), strict=True):
        np.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.parametrize("run", ["eager", "jit", "interpret", "lazy"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_gradient_goes_through_a_shape_in_place(name, run):
    def gradient(x):
        x = x.detach().requires_grad_()
        first, view = reshaped(name, x)
        weights = mt.arange(float(first.numel())).reshape(first.shape)
        return mt.autograd.grad((first * weights).sum() + view.sum(), x)[0]

    x = fresh(1, 2, 3)
    weights = np.arange(6.0).reshape(wanted(name, x.numpy())[0].shape)
    expected = 6 * weights
    expected[..., :1] += 6
    if name == "t_":
        expected = expected.T
    elif name not in ("squeeze_", "unsqueeze_"):
        expected = expected.swapaxes(*SHAPES[name])
    np.testing.assert_array_equal(RUNS[run](gradient)(x).numpy(), expected.reshape(1, 2, 3))


def test_a_view_has_a_shape_in_place_and_its_base_its_own():
    base = mt.zeros(2, 3)
    row = base[1]
    row.unsqueeze_(0).t_().add_(1)
    assert row.shape == (3, 1) and base.tolist() == [[0, 0, 0], [1, 1, 1]]
    parameter = mt.nn.Parameter(mt.ones(1, 2))
    with mt.no_grad():
        assert parameter.squeeze_() is parameter and parameter.is_leaf and parameter.requires_grad
    assert parameter.shape == (2,)


def test_a_tensor_is_taken_off_the_tape_in_place():
    x = mt.ones(2, requires_grad=True)
    y = x * 2
    z = y + x
    assert y.detach_() is y and y.is_leaf and not y.requires_grad and y.grad_fn is None
    z.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert (y * x).sum().requires_grad and mt.autograd.grad((y * x).sum(), x)[0].tolist() == [2.0, 2.0]
    assert not x.detach_().requires_grad


def test_what_others_rely_on_keeps_its_shape_and_its_history():
    leaf, captured = mt.ones(2, requires_grad=True), mt.ones(1, 2)

    def with_a_view():
        x = mt.zeros(2, 3)
        view = x[0]
        x.t_()
        return view

    def of_a_loop(x):
        y = x * 1
        return mt.scan(lambda c, _: (c + y.unsqueeze_(0).sum(), None), mt.tensor(0.0), length=2)[0]

    cases: list[tuple[str, str, Any]] = [
        ("MT401", "unsqueeze_ changes", lambda: leaf.unsqueeze_(0)),
        ("MT405", "detach_ of f32", lambda: (leaf * 1)[:1].detach_()),
        ("MT109", "t_ of f32", with_a_view),
        ("MT109", "t_ of f32", mt.jit(with_a_view)),
        ("MT109", "comes from outside", lambda: mt.jit(lambda x: x.squeeze_())(captured)),
        ("MT109", "comes from outside", mt.jit(lambda: captured.squeeze_())),
        ("MT109", "comes from outside", lambda: mt.jit(of_a_loop)(captured)),
    ]
    for code, words, call in cases:
        with pytest.raises((AutogradError, TracingError), match=words) as refused:
            call()
        assert refused.value.code == code
    assert captured.shape == (1, 2)
    with pytest.raises(AutogradError, match="MT402"):
        y = leaf.exp()
        y.unsqueeze_(0)
        y.sum().backward()
