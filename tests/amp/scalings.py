"""Runs of a `GradScaler` and of training in mixed precision, for this library and for PyTorch: they are recorded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Step = Callable[[Any], Any]

# The scaler's settings, and the steps whose gradients overflow.
SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "grows": ({"init_scale": 4.0, "growth_interval": 3}, "........."),
    "backs off": ({"init_scale": 65536.0, "growth_interval": 2}, "xx..x...x"),
    "odd factors": (
        {"init_scale": 3.0, "growth_factor": 1.3, "backoff_factor": 0.7, "growth_interval": 2},
        "...x..xx..",
    ),
    "up to infinity": ({"init_scale": 2.0**126, "growth_interval": 1}, "...x.."),
}
OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "SGD": lambda lib, parameters: lib.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda lib, parameters: lib.optim.Adam(parameters, lr=0.1),
}

# How a step is run: at once, or compiled.
Compile = Callable[[Step], Step]


def trajectory(lib: Any, name: str, optimizer: str, compiled: Compile = lambda step: step) -> list[list[float]]:
    """After each step: the scale, the count of good steps, and a weight; the gradients are given."""
    settings, pattern = SETTINGS[name]
    w = lib.tensor([1.0, -2.0], requires_grad=True)
    scaler, chosen = lib.amp.GradScaler("cpu", **settings), OPTIMIZERS[optimizer](lib, [w])
    # The gradient of w is scale * x; as 1 / scale would underflow, x takes care of that.
    factor = 2.0**-130 if name == "up to infinity" else 1.0

    def step(x: Any) -> Any:
        chosen.zero_grad()
        loss = (w * x).sum()
        scaler.scale(loss).backward()
        scaler.step(chosen)
        scaler.update()
        return loss

    run, rows = compiled(step), []
    for number, sign in enumerate(pattern):
        run(lib.tensor([math.inf if sign == "x" else (number + 1.0) * factor, -factor]))
        state = scaler.state_dict()
        rows.append([state["scale"], state["_growth_tracker"], w[0].item()])
    return rows


def wave(lib: Any, *shape: int, by: float) -> Any:
    """Numbers without a generator: sines of the elements' places."""
    count = math.prod(shape)
    return lib.tensor([math.sin(by * (place + 1)) for place in range(count)]).reshape(*shape)


STEPS, OVERFLOWS = 12, (2, 7)


def training(lib: Any, F: Any, lower: str, init_scale: float, compiled: Compile = lambda step: step) -> dict[str, Any]:
    """Losses and scales of a small network in mixed precision, and its weights; two of the batches are infinite."""
    shapes = (16, 8), (16,), (4, 16), (4,)
    weights = [(0.4 * wave(lib, *shape, by=1.7 + at)).requires_grad_() for at, shape in enumerate(shapes)]
    optimizer = lib.optim.SGD(weights, lr=0.1, momentum=0.9)
    scaler = lib.amp.GradScaler("cpu", init_scale=init_scale, growth_interval=4)
    dtype = getattr(lib, lower)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        with lib.autocast("cpu", dtype):
            hidden = F.relu(F.linear(x, weights[0], weights[1]))
            loss = F.cross_entropy(F.linear(hidden, weights[2], weights[3]), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    labels, run = lib.tensor([place % 4 for place in range(12)]), compiled(step)
    losses, scales = [], []
    for number in range(STEPS):
        x = wave(lib, 12, 8, by=0.9)
        losses.append(run(x * math.inf if number in OVERFLOWS else x).item())
        scales.append(scaler.get_scale())
    return {"losses": losses, "scales": scales, "weights": [weight.detach().tolist() for weight in weights]}


TRAININGS = {"bfloat16": ("bfloat16", 2.0**16), "float16": ("float16", 2.0**10), "too large": ("float16", 2.0**24)}


def all_of(lib: Any, F: Any) -> dict[str, Any]:
    """All that is recorded, by name."""
    rows: dict[str, Any] = {
        f"{name}, {optimizer}": trajectory(lib, name, optimizer) for name in SETTINGS for optimizer in OPTIMIZERS
    }
    return rows | {f"training, {name}": training(lib, F, *options) for name, options in TRAININGS.items()}
