"""Undoing a broadcast: the gradient of an operand that was expanded."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ....autograd import Function
from ....primitives import mul
from ....tensor import Tensor
from ..compare import wrong_tensor
from ..limit import Limited, limited
from ..plain import Array, Value
from ..task import Task, by_case

Cases = list[tuple[str, Any]]

UNBROADCAST = {"new dimensions in front": 9, "dimensions of length 1": 9, "both, or neither": 6, "in the engine": 6}

ENGINE = "in the engine"

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


def _gradient(unbroadcast: Any, a: Array, b: Array) -> Any:
    """The gradient of ``(a * b).sum()`` by `a`, by a product whose way back is the student's."""

    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
            ctx.save_for_backward(x, y)
            return mul(x, y)

        @staticmethod
        def backward(ctx: Any, *cotangents: Tensor) -> Any:
            (gradient,), (x, y) = cotangents, ctx.saved_tensors
            return unbroadcast(mul(gradient, y), tuple(x.shape)), unbroadcast(mul(gradient, x), tuple(y.shape))

    x, y = Tensor(a), Tensor(b)
    x.requires_grad = y.requires_grad = True
    Product.apply(x, y).sum().backward()
    return x.grad


def _ask(call: Limited, case: tuple[str, Any]) -> Any:
    part, (first, second) = case
    if part == ENGINE:
        return limited(partial(_gradient, call.function, first, second), call.seconds)
    return call(Tensor(first), second)


def _sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    front = gradient.ndim - len(shape)
    dims = (*range(front), *(front + i for i, n in enumerate(shape) if n == 1 and gradient.shape[front + i] > 1))
    return np.asarray(gradient.sum(axis=dims, dtype=np.float32).reshape(shape))


def _wrong_unbroadcast(case: tuple[Array, Any], answer: Any) -> str | None:
    gradient, shape = case
    if isinstance(shape, np.ndarray):
        right = _sum_to(np.broadcast_to(shape, np.broadcast_shapes(gradient.shape, shape.shape)), gradient.shape)
        reason = wrong_tensor(answer, right)
        return reason and f"(a * b).sum() with shapes {list(gradient.shape)} and {list(shape.shape)}, by a: {reason}"
    right = _sum_to(gradient, shape)
    reason = wrong_tensor(answer, right)
    if reason is None:
        return None
    where = f"{list(gradient.shape)} back to {list(shape)}"
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


def _judge_unbroadcast(cases: Cases, answers: Any) -> Any:
    return by_case(UNBROADCAST, cases, answers, _wrong_unbroadcast)


unbroadcast = Task("eager.unbroadcast", UNBROADCAST, _broadcasts, _ask, _judge_unbroadcast)
