"""Undoing a broadcast: the gradient of an operand that was expanded."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...asks import eager as asks
from ...asks.eager import ENGINE
from ...asks.plain import Array, Value
from ..compare import wrong_tensor
from ..task import Task, cases_with

Cases = list[tuple[str, Any]]

UNBROADCAST = {"new dimensions in front": 9, "dimensions of length 1": 9, "both, or neither": 6, ENGINE: 6}

_SHAPES = (  # the part, from which shape, to which
    ("both, or neither", (2, 3), (2, 3)),
    ("both, or neither", (), ()),
    ("new dimensions in front", (3,), (2, 3)),
    ("new dimensions in front", (), (2, 2)),
    ("new dimensions in front", (2, 3), (4, 2, 3)),
    ("dimensions of length 1", (2, 1), (2, 3)),
    ("dimensions of length 1", (1, 3), (2, 3)),
    ("dimensions of length 1", (1, 1), (2, 3)),
    ("both, or neither", (2, 1), (3, 2, 4)),
    ("both, or neither", (1,), (3, 2)),
)


def _broadcasts(seed: int) -> Cases:
    random = np.random.default_rng(seed)
    cases = []
    for part, before, after in _SHAPES:
        # Lengths that are not 1 grow with the seed, so that none of them can be counted on.
        more = int(random.integers(0, 3)) if seed else 0
        old, new = (tuple(n + more if n > 1 else n for n in shape) for shape in (before, after))
        gradient = random.integers(1, 10, new).astype(np.float32)
        cases.append((part, (gradient, old)))
    column, row = random.integers(1, 10, (3, 1)).astype(np.float32), random.integers(1, 10, 4).astype(np.float32)
    return [*cases, (ENGINE, (column, row)), (ENGINE, (row, column))]


def _sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    front = gradient.ndim - len(shape)
    dims = (*range(front), *(front + i for i, n in enumerate(shape) if n == 1 and gradient.shape[front + i] > 1))
    return np.asarray(gradient.sum(axis=dims, dtype=np.float32).reshape(shape))


def _where(case: tuple[Array, Any]) -> str:
    gradient, shape = case
    if isinstance(shape, np.ndarray):
        return f"(a * b).sum() with shapes {list(gradient.shape)} and {list(shape.shape)}, by a"
    return f"{list(gradient.shape)} back to {list(shape)}"


def _wrong_unbroadcast(case: tuple[Array, Any], answer: Any) -> str | None:
    gradient, shape = case
    if isinstance(shape, np.ndarray):
        right = _sum_to(np.broadcast_to(shape, np.broadcast_shapes(gradient.shape, shape.shape)), gradient.shape)
        reason = wrong_tensor(answer, right)
        return reason and f"{_where(case)}: {reason}"
    right = _sum_to(gradient, shape)
    reason = wrong_tensor(answer, right)
    if reason is None:
        return None
    where = _where(case)
    if type(answer) is not Value or not answer.is_tensor:
        return f"{where}: {reason}"
    given = answer.array
    copies = gradient.size // max(right.size, 1)
    if given.shape == gradient.shape != shape:
        return (
            f"{where}: the gradient still has the shape of the broadcast; every copy of an element gave a share of it"
        )
    if given.shape != shape and given.size == right.size:
        return f"{where}: a dimension of length 1 is lost; sum with keepdim=True, or reshape at the end ({reason})"
    if copies > 1 and given.shape == shape and np.allclose(given * copies, right):
        return f"{where}: the shares were averaged; each copy changes the result by its whole share, so they add up"
    if given.shape == shape and given.size and copies > 1 and given.flat[0] == gradient.flat[0]:
        return f"{where}: the share of one copy was kept, and those of the other {copies - 1} left out; add them up"
    if given.shape != shape:
        return f"{where}: not every dimension that was expanded is summed ({reason})"
    return f"{where}: {reason}"


_judge = cases_with(UNBROADCAST, _wrong_unbroadcast, about=_where)
unbroadcast = Task(asks.unbroadcast, UNBROADCAST, _broadcasts, _judge)
