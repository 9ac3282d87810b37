"""The stack of interpreters: layers pass on what they do not handle, and a handler is asked above the tape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.interpreters import (
    HANDLED,
    Eager,
    Interpreter,
    Layer,
    Staging,
    current_handler,
    handling,
    interpreting,
    on_top,
    set_handler,
)
from minitorch.interpreters.state import thread

INTERFACE = [name for name in vars(Interpreter) if not name.startswith("_")]


def step(x: mt.Tensor, w: mt.Tensor) -> tuple[mt.Tensor, ...]:
    """Views, a write, a constant, a number that is read, and a gradient."""
    y = F.linear(x * 2, w).relu()
    with mt.no_grad():
        y.T[0].add_(1)
    loss = (y * y).mean()
    loss.backward()
    return y.detach(), loss.detach(), w.grad.clone()


def lazily(x: mt.Tensor, w: mt.Tensor) -> tuple[mt.Tensor, ...]:
    with mt.lazy():
        return step(x, w)


MODES: dict[str, Callable[..., Any]] = {"eager": step, "lazy": lazily, "jit": mt.jit(step)}


@pytest.mark.parametrize("layers", [0, 1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_a_layer_that_handles_nothing_changes_nothing(mode: str, layers: int) -> None:
    x, weight = mt.arange(12.0).reshape(4, 3) - 5, mt.arange(6.0).reshape(2, 3) / 7

    def run(program: Callable[..., Any], layers: int) -> list[np.ndarray[Any, Any]]:
        if layers:
            with on_top(Layer()):
                return run(program, layers - 1)
        return [each.numpy() for each in program(x, weight.clone().requires_grad_())]

    for found, expected in zip(run(MODES[mode], layers), run(step, 0), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert type(thread.interpreter) is type(thread.eager) is Eager


@pytest.mark.parametrize("bottom", [Eager, lambda: Staging("f")])
def test_a_layer_has_the_interface_of_what_is_below(bottom: Callable[[], Any]) -> None:
    layer = Layer()
    with interpreting(bottom()), on_top(layer):
        assert [getattr(layer, name) for name in INTERFACE] == [getattr(layer.below, name) for name in INTERFACE]
        assert layer.recording is thread.interpreter.recording


class Asked:
    """A handler that notes what it is asked about."""

    key = "asked"

    def __init__(self) -> None:
        self.names: list[str] = []
        self.others: list[Asked] = []

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        self.names.append(function.__name__)
        return function(*args, **options)

    def again(self) -> Asked:
        self.others.append(Asked())
        return self.others[-1]


def test_a_handler_is_asked_about_marked_functions_alone() -> None:
    x, handler = mt.ones(2, 2), Asked()
    before = set_handler(handler)
    try:
        F.mse_loss(F.linear(x, x).relu(), x).exp()
    finally:
        set_handler(before)
    F.linear(x, x)
    assert handler.names[0] == "linear" and handler.names[-1] == "mse_loss" and set(handler.names) <= set(HANDLED)


def test_a_recording_begins_with_the_same_handler_that_remembers_nothing() -> None:
    f, x = mt.jit(lambda x: F.linear(x, x)), mt.ones(2, 2)
    with handling(Asked()):
        handler: Any = current_handler()
        f(x), f(x)
        (inside,) = handler.others
        assert "linear" in inside.names and not handler.names and current_handler() is handler
    f(x), f(x)
    assert len(f._reports) == 2  # the key of the handler is a part of the signature
