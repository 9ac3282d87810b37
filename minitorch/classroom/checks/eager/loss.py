"""A loss that refuses to broadcast by accident."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...asks import eager as asks
from ...asks.eager import REFUSED
from ...asks.plain import Array, Fault, Value
from ..compare import wrong_tensor
from ..task import Task, by_case

Cases = list[tuple[str, Any]]

LOSS = {"equal shapes": 6, REFUSED: 9}

_LOSS_SHAPES = (
    ("equal shapes", (4,), (4,)),
    ("equal shapes", (4, 1), (4, 1)),
    ("equal shapes", (2, 3), (2, 3)),
    (REFUSED, (4, 1), (4,)),
    (REFUSED, (4,), (1,)),
    (REFUSED, (3,), (2, 3)),
    (REFUSED, (4,), ()),
)


def _losses(seed: int) -> Cases:
    random = np.random.default_rng(seed)
    return [
        (part, tuple(random.normal(size=shape).astype(np.float32) for shape in shapes))
        for part, *shapes in _LOSS_SHAPES
    ]


def _shapes(case: tuple[Array, Array]) -> str:
    return f"prediction of shape {list(case[0].shape)}, target of shape {list(case[1].shape)}"


def _wrong_loss(case: tuple[Array, Array], answer: Any) -> str | None:
    prediction, target = case
    where = _shapes(case)
    if prediction.shape == target.shape:
        squares = (prediction - target) ** 2
        reason = wrong_tensor(answer, np.asarray(squares.mean(dtype=np.float32)))
        if reason and type(answer) is Value and answer.array.shape == ():
            if np.isclose(answer.array, squares.sum()):
                return f"{where}: that is the sum; the mean divides by the number of elements"
            if np.isclose(answer.array, np.abs(prediction - target).mean()):
                return f"{where}: that is the mean of the absolute differences; they are to be squared"
            if np.isclose(answer.array, np.sqrt(squares.mean())):
                return f"{where}: that is the root of the mean square"
        return reason and f"{where}: {reason}"
    if type(answer) is not tuple:
        lengths = "×".join(map(str, np.broadcast_shapes(prediction.shape, target.shape)))
        return f"{where}: no ValueError is raised; the difference is {lengths} numbers, and nobody notices"
    if answer[0] != "ValueError":
        return f"{where}: it raises {answer[0]}: {answer[1]}; a ValueError is wanted, for callers to catch"
    text = str(answer[1]).replace(" ", "").replace(",)", ")").replace("(", "[").replace(")", "]")
    missing = [list(each.shape) for each in case if str(list(each.shape)).replace(" ", "") not in text]
    return f"{where}: the message should name both shapes; it lacks {missing[0]}" if missing else None


def _judge_loss(cases: Cases, answers: Any) -> Any:
    said = dict(by_case(LOSS, cases, answers, _wrong_loss, _shapes))
    equal = [answer for (part, _), answer in zip(cases, answers, strict=True) if part != REFUSED]
    if any(isinstance(answer, Fault) for answer in equal) and not said[REFUSED]:
        said[REFUSED] = "it counts when equal shapes are not refused"
    return said


mean_squared_error = Task(asks.mean_squared_error, LOSS, _losses, _judge_loss)
