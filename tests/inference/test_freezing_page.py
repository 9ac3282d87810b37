"""The session on docs/freezing.md, and the training step in mixed precision that it shows, counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import nn
from minitorch.compiler.kernels.ledger import Ledger
from tests.support import pages


def test_the_page_about_freezing() -> None:
    """All blocks of the page, in its order, print what stands there."""
    assert pages.run("freezing.md") > 20


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def cnn() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(96, 10))


def ledger(make: Callable[[], nn.Module], lower: mt.DType | None) -> Ledger:
    """Of a training step with AdamW; master weights are in float32."""
    mt.manual_seed(0)
    (images, labels), _ = mt.data.load_digits()
    model, scaler = make(), mt.amp.GradScaler(init_scale=2.0**10, enabled=lower is not None)
    optimizer = mt.optim.AdamW(model.parameters(), lr=0.01)

    def step(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        optimizer.zero_grad()
        with mt.autocast("cpu", lower, enabled=lower is not None):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return mt.jit(step).ledger(images[:256].reshape(256, 1, 8, 8), labels[:256].clone())


def moved(of: Ledger) -> int:
    """The bytes of all kernels."""
    return sum(kernel.bytes_read + kernel.bytes_written for kernel in of.kernels)


@pytest.mark.parametrize("lower", [mt.bfloat16, mt.float16], ids=str)
@pytest.mark.parametrize("make", [mlp, cnn])
def test_no_cast_of_a_training_step_is_a_kernel(make: Callable[[], nn.Module], lower: mt.DType) -> None:
    """Casts are part of packing and stores, so that a step moves fewer bytes, in at most one kernel more."""
    plain, mixed = ledger(make, None), ledger(make, lower)
    names = [{node.primitive.name for node in kernel.nodes} for kernel in mixed.kernels]
    assert any("cast" in each for each in names)
    assert not [each for each in names if each <= {"cast", "reshape", "permute", "expand"}]
    assert len(mixed.kernels) <= len(plain.kernels) + 1
    assert moved(mixed) < 0.9 * moved(plain)
