"""Shadow mode runs the function itself: its effects are undone, and a trace that does something else is to blame."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.errors import MismatchError
from minitorch.interpreters import Handle, Staging, binding
from minitorch.modes.tracing.call_staging import CallStaging

Call = Callable[[], Any]


class World:
    """A model with all kinds of state, an optimiser, and a function of them for each kind of effect."""

    def __init__(self) -> None:
        mt.manual_seed(0)
        self.model = mt.nn.Sequential(mt.nn.Linear(4, 4), mt.nn.BatchNorm1d(4), mt.nn.Dropout(0.5), mt.nn.Linear(4, 2))
        self.optimizer = mt.optim.Adam(self.model.parameters(), lr=1e-2)
        self.weight = mt.ones(3, 2, requires_grad=True)
        self.weight.grad = mt.ones(3, 2)
        self.memory = mt.arange(12.0).reshape(3, 4)
        self.window = self.memory.t()[1:3]
        self.recorded = self.weight * 2
        self.x = mt.randn(8, 4)
        self.images = mt.tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1))

    def tensors(self) -> Iterator[mt.Tensor]:
        yield from (*self.model.parameters(), *self.model.buffers())
        yield from (tensor for _, tensor in self.optimizer.named_tensors())
        yield from (self.weight, self.memory, self.window, self.recorded, self.x, self.images)
        yield mt.default_generator._state

    def state(self) -> list[Any]:
        found = [
            [tensor.tolist(), None if tensor._grad is None else tensor._grad.tolist()] for tensor in self.tensors()
        ]
        return [*found, [tensor._version for tensor in self.tensors()], [t.requires_grad for t in self.tensors()]]

    # What is done, each with its arguments.

    def training(self, x: mt.Tensor) -> mt.Tensor:
        self.optimizer.zero_grad()
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def accumulated(self, x: mt.Tensor) -> mt.Tensor:
        (self.weight * x[:3, :2]).sum().backward()
        with mt.no_grad():
            self.weight.grad.mul_(2)
        return self.weight.grad.sum()

    def clipped(self, x: mt.Tensor) -> mt.Tensor:
        """The gradients that a call comes with are written in place, and then others, or none."""
        weight: Any = self.weight
        norm = mt.nn.utils.clip_grad_norm_([weight], 0.3)
        weight.grad = None
        (weight * x[:3, :2]).sum().backward()
        with mt.no_grad():
            weight.grad.mul_(norm)
        return norm

    def onward(self, recorded: mt.Tensor) -> None:
        (recorded * recorded).sum().backward()

    def through_a_view(self, window: mt.Tensor) -> mt.Tensor:
        window.mul_(3)
        window[0].add_(1)
        return self.memory.sum()

    def of_two_views(self, a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
        return a[:, :1] * b.reshape(-1)[:2] + mt.rand(2)

    def layout(self, images: mt.Tensor) -> tuple[mt.Tensor, list[mt.Tensor], int]:
        images.transpose(1, 0).flatten().mul_(2)
        return images.reshape(-1) * 2, [images.permute(1, 2, 0).contiguous()], 3

    def returned(self, x: mt.Tensor) -> dict[str, Any]:
        return {"same": x, "changed": x + 1, "number": 2.5, "nan": float("nan"), "nothing": None}

    def inside(self, x: mt.Tensor) -> mt.Tensor:
        own = mt.tensor([1.0, 2.0], requires_grad=True)
        (own * 2).sum().backward()
        buffer = mt.zeros(2)
        buffer[0] = 5
        return buffer * own.grad + mt.checkpoint(lambda x: x.exp(), x[0, 0])

    def nested(self, x: mt.Tensor) -> mt.Tensor:
        return mt.jit(lambda x: self.memory.add_(x.sum()))(x)


CALLS: dict[str, Callable[[World], tuple[Any, ...]]] = {
    "training": lambda world: (world.x,),
    "accumulated": lambda world: (world.x,),
    "clipped": lambda world: (world.x,),
    "onward": lambda world: (world.weight * 2,),
    "of_two_views": lambda world: (world.window, world.memory[1]),
    "layout": lambda world: (world.images,),
    "returned": lambda world: (world.x,),
    "inside": lambda world: (world.x,),
    "nested": lambda world: (world.x,),
}


def plain(value: Any) -> Any:
    leaves, _ = mt.tree.flatten(value)
    return [leaf.tolist() if isinstance(leaf, mt.Tensor) else repr(leaf) for leaf in leaves]


@pytest.mark.parametrize("name", CALLS)
def test_a_checked_call_does_what_a_call_does_once(name: str) -> None:
    worlds = World(), World()
    checked = mt.jit(getattr(worlds[0], name), check=True)
    usual = mt.jit(getattr(worlds[1], name))
    for _ in range(3):
        results = []
        for world, function in zip(worlds, (checked, usual), strict=True):
            mt.manual_seed(1)
            results.append((plain(function(*CALLS[name](world))), mt.rand(2).tolist()))
        assert results[0] == results[1]
        assert worlds[0].state() == worlds[1].state()
    assert checked.checked() and all(report.ok and not report.refused for report in checked.checked())


@pytest.mark.parametrize("new", [lambda: None, lambda: mt.zeros(2), lambda: mt.randn(2).abs()])
def test_a_gradient_is_written_and_then_another_is_put_in_its_place(new: Call) -> None:
    """Whose memory is written is the gradient that the tensor came with, not the one that it has afterwards."""

    def call(**options: Any) -> list[Any]:
        mt.manual_seed(0)
        w = mt.ones(2, requires_grad=True)
        (w * w).sum().backward()
        before = w.grad

        def step() -> mt.Tensor:
            with mt.no_grad():
                w.grad.mul_(3)
            w.grad = new()
            return w * 2

        found = (mt.jit(step, **options) if options else step)()
        return [found.tolist(), before.tolist(), w.grad if w.grad is None else w.grad.tolist()]

    assert call(check=True) == call() == call(backend="llvm")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_happens_in_the_middle_is_undone_too(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    world = World()

    @mt.jit(check=True)
    def step(x: mt.Tensor, window: mt.Tensor) -> mt.Tensor:
        loss = world.training(x)
        window.add_(1)
        if "INTERRUPTED" in os.environ:
            raise error
        return loss

    window = world.window.clone()
    step(world.x, window)
    before = world.state(), window.tolist()
    monkeypatch.setenv("INTERRUPTED", "yes")
    with pytest.raises(MismatchError if error is ValueError else error) as caught:
        step(world.x, window)
    assert error is not ValueError or "MT504: run by itself, step does something else" in str(caught.value)
    assert (world.state(), window.tolist()) == before
    monkeypatch.delenv("INTERRUPTED")
    step(world.x, window)


def test_an_error_of_the_function_is_that_of_the_call() -> None:
    f = mt.jit(lambda x, i: x[i], check=True)
    with pytest.raises(IndexError):
        f(mt.ones(3), mt.tensor([5]))
    assert f(mt.ones(3), mt.tensor([2])).tolist() == [1]


def test_nobody_hears_of_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Callbacks are called once, and whoever watches sees the compiled call; Python's own print is not held back."""
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")

    @mt.jit(check=True)
    def f(x: mt.Tensor) -> mt.Tensor:
        mt.debug.print("debug {}", x)
        mt.debug.breakpoint()
        print("python")
        return x + 1

    f(mt.ones(2))
    capsys.readouterr()
    with mt.profile() as profile:
        f(mt.ones(2))
    assert capsys.readouterr().out == "python\ndebug [1. 1.]\n"
    assert not [row for row in profile.rows() if row.kind == "operation"]


def test_what_cannot_be_put_back_is_said() -> None:
    seen: list[int] = []

    def appends(x: mt.Tensor) -> mt.Tensor:
        seen.append(1)
        return x + 1

    f = mt.jit(appends, check=True)
    with pytest.warns(UserWarning, match="MT105"):
        f(mt.ones(2))
    f(mt.ones(2))
    (report,) = f.checked()
    assert seen == [1] and report.ok and "`seen`" in report.refused and "not run" in str(report)


# A wrong trace -------------------------------------------------------------------------------------------------------


def changed_later(monkeypatch: pytest.MonkeyPatch) -> Call:
    return lambda: mt.jit(lambda x: x * random.random(), check=True)(mt.ones(2))


def another_type(monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("TYPE", "float64")
    f = mt.jit(lambda x: x.to(getattr(mt, os.environ["TYPE"])), check=True)
    f(mt.ones(2))
    monkeypatch.setenv("TYPE", "int32")
    return lambda: f(mt.ones(2))


def another_structure(monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("MANY", "1")
    f = mt.jit(lambda x: [x + 1] * int(os.environ["MANY"]), check=True)
    f(mt.ones(2))
    monkeypatch.setenv("MANY", "2")
    return lambda: f(mt.ones(2))


def another_number(monkeypatch: pytest.MonkeyPatch) -> Call:
    return lambda: mt.jit(lambda x: (x, random.random()), check=True)(mt.ones(2))


def a_view_for_a_copy(monkeypatch: pytest.MonkeyPatch) -> Call:
    """As it was: every reshape in a trace a view."""
    monkeypatch.setattr(binding, "reshape_is_view", lambda *_: True)
    x = mt.ones(2, 3).t()
    return lambda: mt.jit(lambda x: x.flatten().mul_(2), check=True)(x)


def a_copy_for_a_view(monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setattr(binding, "reshape_is_view", lambda *_: False)
    x = mt.ones(2, 3)
    return lambda: mt.jit(lambda x: x.flatten().mul_(2), check=True)(x)


def _ignored_writes(dtype: mt.DType, monkeypatch: pytest.MonkeyPatch) -> None:
    assign = CallStaging.assign

    def forgetful(self: CallStaging, tensor: mt.Tensor, value: mt.Tensor) -> Handle | None:
        return None if tensor.dtype is dtype else assign(self, tensor, value)

    monkeypatch.setattr(CallStaging, "assign", forgetful)


def a_dropped_write(monkeypatch: pytest.MonkeyPatch) -> Call:
    _ignored_writes(mt.float32, monkeypatch)
    memory, x = mt.zeros(4), mt.ones(2)
    return lambda: mt.jit(lambda x: memory[1:3].add_(x).numel(), check=True)(x)


def a_draw_that_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> Call:
    _ignored_writes(mt.int64, monkeypatch)
    return lambda: mt.jit(lambda x: F.dropout(x, 0.5), check=True)(mt.ones(20))


def a_dropped_gradient(monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setattr(Staging, "set_grad", lambda self, tensor, grad: None)
    w = mt.ones(2, requires_grad=True)
    return lambda: mt.jit(lambda x: (w * x).sum().backward(), check=True)(mt.ones(2))


def a_gradient_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> Call:
    """The trace writes the gradient, and does not see that it is cleared afterwards."""
    monkeypatch.setattr(Staging, "set_grad", lambda self, tensor, grad: None)
    w = mt.ones(2, requires_grad=True)
    w.grad = mt.ones(2)

    def step() -> None:
        w.grad.mul_(3)
        w.grad = None

    step.__name__ = "<lambda>"
    return lambda: mt.jit(step, check=True)()


WRONG = [
    a_gradient_that_is_kept,
    changed_later,
    another_type,
    another_structure,
    another_number,
    a_view_for_a_copy,
    a_copy_for_a_view,
    a_dropped_write,
    a_dropped_gradient,
    a_draw_that_is_not_counted,
]


@pytest.mark.parametrize("plant", WRONG, ids=lambda plant: plant.__name__)
def test_a_trace_that_does_something_else_is_blamed(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    call = plant(monkeypatch)
    before = mt.default_generator.get_state().tolist()
    with pytest.raises(MismatchError, match="MT504: run by itself, <lambda> does something else than what was traced"):
        call()
    assert mt.default_generator.get_state().tolist() == before
