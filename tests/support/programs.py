"""Programs that several test files look at."""

from __future__ import annotations

from collections.abc import Callable

import minitorch as mt
from minitorch.nn import functional as F

Step = Callable[[mt.Tensor, mt.Tensor], mt.Tensor]


def classifier(inputs: int, hidden: int, classes: int) -> tuple[mt.nn.Module, Step]:
    """A small network, and its training step: from inputs [batch, inputs] and labels [batch] to the loss."""
    mt.manual_seed(0)
    model = mt.nn.Sequential(mt.nn.Linear(inputs, hidden), mt.nn.GELU(), mt.nn.Linear(hidden, classes))
    optimizer = mt.optim.Adam(model.parameters(), lr=0.01)

    def step(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, step
