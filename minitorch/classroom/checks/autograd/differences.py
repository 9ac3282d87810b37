"""Finite differences: judged by the error, and by the points at which the function was evaluated."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from ...asks import autograd as asks
from ...asks.plain import described
from ..task import Task, by_case

Cases = list[tuple[str, Any]]

DIFFERENCE = {"one number": 4, "several numbers": 5, "large numbers": 3, "the numbers as they were": 3}
TOLERANCE = 5e-9  # of the gradient: a difference to both sides has a tenth of it, one to one side several times as much

GRADIENTS: dict[str, Any] = {
    "exp(c * x)": lambda c, x: [c * math.exp(c * x)],
    "c * x ** 3": lambda c, x: [3 * c * x * x],
    "c * sin(x) * y + z * z": lambda c, x, y, z: [c * math.cos(x) * y, c * math.sin(x), 2 * z],
    "c * x * y * y": lambda c, x, y: [c * y * y, 2 * c * x * y],
    "c * x * x": lambda c, x: [2 * c * x],
    "c * x * exp(y)": lambda c, x, y: [c * math.exp(y), c * x * math.exp(y)],
}


def _cases(seed: int) -> Cases:
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
    return [(part, (name, random.uniform(0.7, 1.2), at)) for part, name, at in found]


def _wrong(case: Any, answer: Any) -> str | None:
    part, (name, c, numbers) = case
    gradient, points, after = answer
    where = f"f = {name} with c = {c:.3g} at {[float(f'{each:.6g}') for each in numbers]}"
    if part == "the numbers as they were" and after != numbers:
        return f"{where}: afterwards the list is {after}; move a copy, the list is the caller's"
    if type(gradient) is not list or len(gradient) != len(numbers) or not all(type(e) is float for e in gradient):
        floats = f"{len(numbers)} float{'s' * (len(numbers) > 1)}"
        return f"{where}: a list of {floats} was expected, and it is {described(gradient)}"
    right = GRADIENTS[name](c, *numbers)
    for place, (have, wanted) in enumerate(zip(gradient, right, strict=True)):
        off = abs(have - wanted)
        if not off <= TOLERANCE * max(1.0, abs(wanted)):
            said = f"element {place} is {have:.10g} and should be {wanted:.10g}"
            return f"{where}: {said}{_why(numbers, place, points)}"
    if not points:
        return f"{where}: f was never called"
    return None


def _why(numbers: list[float], place: int, points: list[list[float]]) -> str:
    """What the points at which f was called say about the error."""
    moved = [
        [(at, point[at] - numbers[at]) for at in range(len(numbers)) if point[at] != numbers[at]]
        for point in points
        if len(point) == len(numbers)
    ]
    if any(len({at for at, _ in each}) > 1 for each in moved):
        return "; several elements were moved at once: put each back before the next one is moved"
    steps = [step for each in moved for at, step in each if at == place]
    if not steps:
        return "; f was never called with this element moved, or the step is lost in rounding beside so large a number"
    share = max(map(abs, steps)) / max(1.0, abs(numbers[place]))
    if share > 1e-4:
        return f"; the step is {max(map(abs, steps)):.1g}: so wide that the curve is cut off"
    if share < 1e-7 or (abs(numbers[place]) > 1e3 and share < 1e-9):
        side = ", and to one side only" if all(step > 0 for step in steps) or all(step < 0 for step in steps) else ""
        return f"; the step is {max(map(abs, steps)):.1g}{side}: so small beside the number that rounding is most of it"
    if all(step > 0 for step in steps) or all(step < 0 for step in steps):
        return "; f was called on one side only: with a step to both sides the error is far smaller"
    return ""


difference = Task(
    asks.difference,
    DIFFERENCE,
    _cases,
    lambda cases, answers: by_case(DIFFERENCE, [(part, (part, case)) for part, case in cases], answers, _wrong),
)
