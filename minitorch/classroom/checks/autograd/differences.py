"""Finite differences: judged by the error, and by the points at which the function was evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from ...asks import autograd as asks
from ...asks.plain import described
from ..task import Task, cases_with

DIFFERENCE = {"one number": 4, "several numbers": 5, "large numbers": 3, "the numbers as they were": 3}
TOLERANCE = 5e-9  # of the gradient: a difference to both sides has a tenth of it, one to one side several times as much

# Of each function: what it computes, and its derivatives by all but c, which the seed draws.
FUNCTIONS: dict[str, tuple[Callable[..., float], Callable[..., list[float]]]] = {
    "exp(c * x)": (lambda c, x: math.exp(c * x), lambda c, x: [c * math.exp(c * x)]),
    "c * x ** 3": (lambda c, x: c * x * x * x, lambda c, x: [3 * c * x * x]),
    "c * sin(x) * y + z * z": (
        lambda c, x, y, z: c * math.sin(x) * y + z * z,
        lambda c, x, y, z: [c * math.cos(x) * y, c * math.sin(x), 2 * z],
    ),
    "c * x * y * y": (lambda c, x, y: c * x * y * y, lambda c, x, y: [c * y * y, 2 * c * x * y]),
    "c * x * x": (lambda c, x: c * x * x, lambda c, x: [2 * c * x]),
    "c * x * exp(y)": (lambda c, x, y: c * x * math.exp(y), lambda c, x, y: [c * math.exp(y), c * x * math.exp(y)]),
}


def _cases(seed: int) -> list[tuple[str, list[float], tuple[str, float]]]:
    """The part and the point; not sent are the name of the function, and c."""
    random = Random(seed)

    def numbers(count: int) -> list[float]:
        return [random.uniform(1, 2) for _ in range(count)]

    found = [
        ("one number", "exp(c * x)", numbers(1)),
        ("one number", "c * x ** 3", numbers(1)),
        ("several numbers", "c * sin(x) * y + z * z", numbers(3)),
        ("several numbers", "c * x * y * y", numbers(2)),
        ("large numbers", "c * x * x", [random.uniform(1e6, 2e6)]),
        ("large numbers", "c * x * y * y", [random.uniform(-2e6, -1e6), *numbers(1)]),
        ("large numbers", "c * x * exp(y)", [random.uniform(1e6, 2e6), *numbers(1)]),
        *(("the numbers as they were", "c * sin(x) * y + z * z", numbers(3)) for _ in range(4)),
    ]
    return [(part, at, (name, random.uniform(0.7, 1.2))) for part, name, at in found]


class Function:
    """The function of a case, which notes the points at which it was called."""

    def __init__(self, case: tuple[str, list[float], tuple[str, float]]) -> None:
        _, self._numbers, (name, self._c) = case
        self._function, self.seen = FUNCTIONS[name][0], list[list[float]]()

    def reply(self, point: Any) -> float:
        """The value at a point."""
        if len(point) != len(self._numbers):
            raise ValueError(f"f takes a list of {len(self._numbers)} numbers, and got {len(point)}")
        self.seen.append(point)
        return self._function(self._c, *point)


def _wrong(case: Any, answer: Any) -> str | None:
    part, numbers, (name, c) = case
    (gradient, after), points = answer
    where = f"f = {name} with c = {c:.3g} at {[float(f'{each:.6g}') for each in numbers]}"
    if part == "the numbers as they were" and after != numbers:
        return f"{where}: afterwards the list is {after}; move a copy, the list is the caller's"
    if type(gradient) is not list or len(gradient) != len(numbers) or not all(type(e) is float for e in gradient):
        floats = f"{len(numbers)} float{'s' * (len(numbers) > 1)}"
        return f"{where}: a list of {floats} was expected, and it is {described(gradient)}"
    function, derivatives = FUNCTIONS[name]
    for place, (have, wanted) in enumerate(zip(gradient, derivatives(c, *numbers), strict=True)):
        if not _is_near(have, wanted):
            said = f"element {place} is {have:.10g} and should be {wanted:.10g}"
            return f"{where}: {said}{_why(partial(function, c), numbers, place, wanted, points)}"
    if not points:
        return f"{where}: f was never called"
    return None


def _is_near(have: float, wanted: float) -> bool:
    return abs(have - wanted) <= TOLERANCE * max(1.0, abs(wanted))


def _why(f: Callable[..., float], numbers: list[float], place: int, wanted: float, points: list[list[float]]) -> str:
    """What the points at which f was called say about the error."""
    moved = [{at: point[at] - number for at, number in enumerate(numbers) if point[at] != number} for point in points]
    if any(len(each) > 1 for each in moved):
        return "; several elements were moved at once: put each back before the next one is moved"
    steps = [each[place] for each in moved if place in each]
    if not steps:
        return "; f was never called with this element moved, or the step is lost in rounding beside so large a number"
    step = max(map(abs, steps))
    one_sided = all(each > 0 for each in steps) or all(each < 0 for each in steps)
    right, wider, narrower = (_is_near(_central(f, numbers, place, step * by), wanted) for by in (1, 10, 0.1))
    if right and one_sided:
        return "; f was called on one side only: with a step to both sides the error is far smaller"
    if right:
        return f"; the step, {step:.1g}, would do: subtract the value on the left, and divide by both steps together"
    side = ", and to one side only" if one_sided else ""
    if wider or (not narrower and step < 1e-5 * max(1.0, abs(numbers[place]))):
        return f"; the step is {step:.1g}{side}: so small beside the number that rounding is most of it"
    return f"; the step is {step:.1g}{side}: so wide that the curve is cut off"


def _central(f: Callable[..., float], numbers: list[float], place: int, step: float) -> float:
    """The difference to both sides, as it should be."""
    left, right = ([*numbers[:place], numbers[place] + by, *numbers[place + 1 :]] for by in (-step, step))
    try:
        return (f(*right) - f(*left)) / (2 * step)
    except (OverflowError, ZeroDivisionError):
        return math.inf


_judge = cases_with(DIFFERENCE, _wrong, with_part=True)
difference = Task(asks.difference, DIFFERENCE, _cases, _judge, oracle=Function)
