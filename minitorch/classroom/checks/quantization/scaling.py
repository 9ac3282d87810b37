"""A step of a loss scaler: gradients unscaled or skipped, and the scale that grows and shrinks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...asks import quantization as asks
from ...asks.plain import Array, described
from ..compare import wrong_array
from ..task import Cases, by_case

SCALER = {"unscaling": 4, "overflow": 4, "growing": 4, "shrinking": 3}
LEAST, MOST = 1.0, 2.0**24  # between which a scale stays: part of the task


def stepped(scale: float, good: int, gradients: list[Array], interval: int) -> tuple[list[Array] | None, float, int]:
    """What the optimiser gets, or None; the next scale, and how many steps in a row were good."""
    if not all(np.isfinite(each).all() for each in gradients):
        return None, max(scale / 2, LEAST), 0
    unscaled = [each / np.float32(scale) for each in gradients]
    if good + 1 == interval:
        return unscaled, min(scale * 2, MOST), 0
    return unscaled, scale, good + 1


def _cases(seed: int) -> Cases:
    draw = np.random.default_rng(seed)

    def gradients(size: float = 1.0) -> list[Array]:
        return [(size * draw.standard_normal(shape)).astype(np.float32) for shape in ((3,), (2, 2))]

    def spoilt(at: int, value: float) -> list[Array]:
        found = gradients()
        found[at].reshape(-1)[draw.integers(found[at].size)] = value
        return found

    scale = 2.0 ** int(draw.integers(6, 14))
    interval = int(draw.integers(4, 9))
    huge = [np.full(3, 3e38, np.float32), np.array([[-3e38, 3e38], [1.0, 2.0]], np.float32)]
    return [
        ("unscaling", (scale, 0, gradients(100), interval)),
        ("unscaling", (scale, 1, gradients(1e-4), interval)),
        ("overflow", (scale, 2, spoilt(1, np.inf), interval)),
        ("overflow", (scale, 2, spoilt(0, -np.inf), interval)),
        ("overflow", (scale, 1, spoilt(1, np.nan), interval)),
        ("overflow", (scale, 0, huge, interval)),
        ("growing", (scale, interval - 1, gradients(), interval)),
        ("growing", (scale, interval - 2, gradients(), interval)),
        ("growing", (MOST, interval - 1, gradients(), interval)),
        ("shrinking", (scale, interval - 1, spoilt(0, np.inf), interval)),
        ("shrinking", (LEAST, 3, spoilt(1, np.inf), interval)),
    ]


def _wrong(part: str, case: Any, answer: Any) -> str | None:
    scale, good, gradients, interval = case
    kinds = [type(each) for each in answer[1:]] if type(answer) is tuple else []
    if kinds not in ([float, int], [int, int]):  # min(2 * scale, 2**24) is an int, and right
        return f"a tuple (gradients or None, a float, an int) was expected, and it is {described(answer)}"
    unscaled, next_scale, next_good = stepped(scale, good, gradients, interval)
    if part in ("unscaling", "overflow"):
        return _wrong_gradients(part, answer[0], unscaled, gradients)
    if answer[1:] == (next_scale, next_good):
        return None
    said = f"scale and good steps are {answer[1:]} and should be {(next_scale, next_good)}"
    return f"{said}{_why(answer, unscaled is None, scale, good, interval)}"


def _about(case: Any) -> str:
    scale, good, _, interval = case
    return f"scale {scale:g}, {good} good steps so far, interval {interval}"


def _wrong_gradients(part: str, given: Any, right: list[Array] | None, gradients: list[Array]) -> str | None:
    if right is None:
        found = "an infinity" if any(np.isinf(each).any() for each in gradients) else "a NaN"
        which = next(number for number, each in enumerate(gradients) if not np.isfinite(each).all())
        return None if given is None else f"gradient {which} has {found}, so the step is skipped: None is expected"
    if given is None:
        return "all gradients are finite, also where a sum of them would not be: the step is not skipped"
    if part == "overflow":
        return None
    if type(given) is not list or len(given) != len(right):
        return f"a list of {len(right)} arrays was expected, and it is {described(given)}"
    for number, (one, other, scaled) in enumerate(zip(given, right, gradients, strict=True)):
        if said := wrong_array(one, other, 0):
            same = not wrong_array(one, scaled, 0)
            return f"gradient {number}: {said}{'; it was not divided by the scale' if same else ''}"
    return None


def _why(answer: tuple[Any, ...], skipped: bool, scale: float, good: int, interval: int) -> str:
    _, next_scale, next_good = answer
    if skipped:
        if next_scale == LEAST / 2:
            return f"; a scale does not fall below {LEAST:g}"
        if next_scale > scale:
            return "; a step that overflows does not let the scale grow, however many were good before"
        return "; a skipped step ends the row of good ones" if next_good else ""
    if next_scale == 2 * MOST:
        return f"; a scale does not grow above 2**24, {MOST:g}"
    if next_scale == scale and good + 1 == interval and scale < MOST:
        return "; this step is the last one of the row: count it before you compare"
    if next_scale == 2 * scale and good + 1 < interval:
        return "; it grows one step too early"
    return "; when the scale has grown, counting begins again" if next_good >= interval else ""


scaler_step = by_case(asks.scaler_step, SCALER, _cases, _wrong, about=_about)
