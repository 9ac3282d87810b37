"""Training on batches in pieces of any size: a mean over the batch is no mean of the means of its pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...asks import devices as asks
from ...asks.plain import Array, Value
from ..compare import wrong_tensor
from ..task import by_case

Batch = list[tuple[Array, Array]]
Given = tuple[Array, list[Batch], float]
Case = tuple[str, Given]

TRAIN = {"pieces of one size": 5, "pieces of different sizes": 10, "several batches": 5, "an empty piece": 5}


def _batch(random: np.random.Generator, sizes: tuple[int, ...], width: int) -> Batch:
    return [
        (random.normal(size=(rows, width)).astype(np.float32), random.normal(size=rows).astype(np.float32))
        for rows in sizes
    ]


def _cases(seed: int) -> list[Case]:
    random = np.random.default_rng(seed)
    width, rows = int(random.integers(2, 5)), int(random.integers(2, 5))
    weight = random.normal(size=width).astype(np.float32)
    batches: dict[str, list[Batch]] = {
        "pieces of one size": [_batch(random, (rows, rows), width)],
        "pieces of different sizes": [_batch(random, (9 * rows, rows), width)],
        "several batches": [_batch(random, (1, rows, 6), width) for _ in range(3)],
        "an empty piece": [_batch(random, (rows, 0, 2 * rows), width)],
    }
    return [(part, (weight, found, 0.1)) for part, found in batches.items()]


def trained(weight: Array, batches: list[Batch], rate: float, kind: str = "") -> Array:
    """The weight after an update for each batch; or as those have it who make a mistake of some kind."""
    w, gradient = weight.astype(np.float64), np.zeros(len(weight))
    for batch in batches:
        rows = sum(len(y) for _, y in batch)
        if kind != "kept":
            gradient = np.zeros(len(weight))
        for x, y in batch:
            own = x.T.astype(np.float64) @ (2 * (x @ w - y))
            gradient += own / {"means": len(batch) * max(len(y), 1), "sums": 1, "added means": max(len(y), 1)}.get(
                kind, rows
            )
            if kind == "each":
                w, gradient = w - rate * own / max(len(y), 1), np.zeros(len(weight))
        w = w - rate * gradient
    return w.astype(np.float32)


MISTAKES = {
    "means": "the mean of the pieces' means: a row of a small piece counts more than one of a large piece",
    "sums": "the sum of all losses, which grows with the batch: divide by the rows of the whole batch",
    "added means": "the sum of the pieces' means: it grows with the number of pieces",
    "kept": "the gradients of earlier batches are still in w.grad: clear it after each update",
    "each": "the weight is updated after each piece; a batch is one update",
}


def _about(given: Given) -> str:
    sizes = " and ".join(str([len(y) for _, y in batch]) for batch in given[1])
    return f"pieces of {sizes} rows"


def _wrong(part: str, given: Given, answer: Any) -> str | None:
    reason = wrong_tensor(answer, trained(*given), 1e-4)
    if reason is None:
        return None
    if type(answer) is Value and answer.array.shape == given[0].shape:
        for kind, told in MISTAKES.items():
            if np.allclose(answer.array, trained(*given, kind), atol=1e-4):
                return told
    return reason


train = by_case(asks.train, TRAIN, _cases, _wrong, about=_about)
