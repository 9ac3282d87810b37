"""Quantisation-aware training of a layer with its normalization, scripted once for minitorch and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

# Label -> the kind of layer, its bias, whether a ReLU follows, the epoch in which statistics are frozen.
CASES: dict[str, tuple[str, bool, bool, int | None]] = {
    "ConvBn2d": ("Conv2d", False, False, None),
    "ConvBn2d with a bias": ("Conv2d", True, False, None),
    "ConvBnReLU2d": ("Conv2d", False, True, None),
    "ConvBn2d, frozen after two steps": ("Conv2d", True, False, 2),
    "ConvBn1d": ("Conv1d", True, False, None),
    "LinearBn1d": ("Linear", True, False, None),
}
STEPS, RATE, MOMENTUM = 5, 0.05, 0.9


def numbers(kind: str, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Weights of the layer and of its normalization, and the data of all steps."""
    random = np.random.RandomState(sum(map(ord, kind)) + seed)
    weight = {"Conv2d": (4, 3, 3, 3), "Conv1d": (4, 3, 3), "Linear": (4, 6)}[kind]
    given = {"Conv2d": (8, 3, 6, 6), "Conv1d": (8, 3, 9), "Linear": (8, 6)}[kind]
    found = {
        "weight": random.standard_normal(weight) * 0.5,
        "bias": random.standard_normal(4) * 0.1,
        "gamma": 1 + 0.2 * random.standard_normal(4),
        "beta": random.standard_normal(4) * 0.1,
        "x": random.standard_normal((STEPS, *given)),
        "target": random.standard_normal((STEPS, 8, 4)),
    }
    return {name: array.astype(np.float32) for name, array in found.items()}


def loss(y: Any, target: Any) -> Any:
    """The mean square of what is left of the target, after a mean over places."""
    while y.ndim > 2:
        y = y.mean(-1)
    return ((y - target) ** 2).mean()
