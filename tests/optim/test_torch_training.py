"""Training in float64 beside PyTorch, step by step: overlapping poolings, residual blocks, momentum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F

torch = pytest.importorskip("torch")

SHAPES = {
    "stem": (8, 3, 7, 7),
    "first": (8, 8, 3, 3),
    "second": (8, 8, 3, 3),
    "third": (16, 8, 3, 3),
    "shortcut": (16, 8, 1, 1),
    "head": (10, 16),
}


def logits(F: Any, p: dict[str, Any], x: Any) -> Any:
    """A ResNet of two blocks; `F` is either library's."""

    def layer(x: Any, name: str, step: int, padding: int) -> Any:
        x = F.conv2d(x, p[name], None, step, padding)
        return F.batch_norm(x, None, None, p[f"{name} scale"], p[f"{name} shift"], True)

    x = F.max_pool2d(F.relu(layer(x, "stem", 2, 3)), 3, 2, 1)
    x = F.relu(layer(F.relu(layer(x, "first", 1, 1)), "second", 1, 1) + x)
    x = F.relu(layer(x, "third", 2, 1) + F.conv2d(x, p["shortcut"], None, 2))
    return F.linear(F.max_pool2d(x, 2, 1).mean((2, 3)), p["head"])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_training_does_not_part_from_pytorch(compiled: bool) -> None:
    random = np.random.default_rng(0)
    values = {name: random.normal(size=shape) * 0.2 for name, shape in SHAPES.items()}
    for name in ("stem", "first", "second", "third"):
        values |= {f"{name} scale": np.ones(SHAPES[name][0]), f"{name} shift": random.normal(size=SHAPES[name][0])}
    images, labels = random.normal(size=(6, 3, 33, 33)), random.integers(0, 10, 6)
    theirs = {name: torch.tensor(value, requires_grad=True) for name, value in values.items()}
    ours = {name: mt.from_numpy(value.copy()).requires_grad_() for name, value in values.items()}
    their_optimizer = torch.optim.SGD(theirs.values(), 0.1, momentum=0.9)
    optimizer = mt.optim.SGD(list(ours.values()), 0.1, momentum=0.9)

    def step(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(logits(F, ours, x), y)
        loss.backward()
        optimizer.step()
        return loss

    step = mt.jit(step) if compiled else step
    for _ in range(8):
        their_optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            logits(torch.nn.functional, theirs, torch.tensor(images)), torch.tensor(labels)
        )
        loss.backward()
        their_optimizer.step()
        assert step(mt.from_numpy(images), mt.from_numpy(labels)).item() == pytest.approx(loss.item(), rel=1e-12)
        for name, value in ours.items():
            np.testing.assert_allclose(value.detach().numpy(), theirs[name].detach().numpy(), rtol=1e-10, atol=1e-13)
