"""Sequences of calls of a `GradScaler` with two optimisers, for this library and for PyTorch: they are recorded."""

from __future__ import annotations

import math
from typing import Any

# Words: a number or "inf" or "nan" per optimiser, for its gradient; then calls, in order. "a" and "b" are optimisers.
SCRIPTS: dict[str, list[str]] = {
    "both step": ["1 2", "step a", "step b", "update", "2 1", "step a", "step b", "update"],
    "one overflows": ["1 inf", "step a", "step b", "update", "1 2", "step a", "step b", "update"],
    "the other is NaN": ["nan 1", "step a", "step b", "update"],
    "unscaled before": ["1 2", "unscale a", "unscale b", "step b", "step a", "update"],
    "unscaled twice": ["1 2", "unscale a", "unscale a", "step a", "update"],
    "unscaled after its step": ["1 2", "step a", "unscale a", "update"],
    "stepped twice": ["1 2", "step a", "step a", "update"],
    "unscaled, overflowing, not stepped": ["inf 2", "unscale a", "step b", "update"],
    "nothing was looked at": ["1 2", "update", "step a", "update"],
    "only one": ["3 4", "step a", "update", "3 4", "step a", "update", "3 4", "step a", "update"],
    "state": ["1 2", "step a", "update", "reload", "1 2", "step a", "update", "1 inf", "step b", "update", "reload"],
    "denormal gradients": ["1e-42 1e-45", "step a", "step b", "update"],
    "a scale that is set": ["1 2", "step a", "set 0.25", "4 8", "step a", "step b", "update"],
}


def rows(lib: Any, name: str) -> list[list[Any]]:
    """After each call: whether it was refused, the scale, the count of good steps, both weights and their gradients."""
    settings = {"init_scale": 8.0, "growth_interval": 2}
    scaler = lib.amp.GradScaler("cpu", **settings)
    weights = {key: lib.tensor([1.0], requires_grad=True) for key in "ab"}
    optimizers = {key: lib.optim.SGD([weight], lr=0.5) for key, weight in weights.items()}
    found = []
    for line in SCRIPTS[name]:
        word, *rest = line.split()
        refused = False
        try:
            if word == "step":
                scaler.step(optimizers[rest[0]])
            elif word == "unscale":
                scaler.unscale_(optimizers[rest[0]])
            elif word == "update":
                scaler.update()
            elif word == "set":
                scaler.update(float(rest[0]))
            elif word == "reload":
                state = scaler.state_dict()
                scaler = lib.amp.GradScaler("cpu")
                scaler.load_state_dict(state)
            else:
                for weight, number in zip(weights.values(), (word, *rest), strict=True):
                    weight.grad = None
                    scaler.scale((weight * float(number)).sum()).backward()
        except (AssertionError, RuntimeError):
            refused = True
        state = scaler.state_dict()
        numbers = [each.item() for weight in weights.values() for each in (weight, weight.grad)]
        texts = [number if math.isfinite(number) else str(number) for number in numbers]
        found.append([refused, state["scale"], state["_growth_tracker"], *texts])
    return found


def all_of(lib: Any, F: Any) -> dict[str, Any]:
    """All that is recorded, by name."""
    return {name: rows(lib, name) for name in SCRIPTS}
