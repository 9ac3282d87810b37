"""Count, mean and sum of squared differences of two parts of a row, merged (Chan, Golub and LeVeque, 1979)."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from ...asks import reductions as asks
from ...asks.plain import described
from ..task import Task, cases_with

Moments = tuple[int, float, float]
NOTHING: Moments = (0, 0.0, 0.0)
MERGE = {"two blocks": 5, "far from zero": 5, "nothing so far": 5}


def moments(numbers: list[float]) -> Moments:
    """How many numbers, their mean, and the sum of the squares of the differences from it."""
    if not numbers:
        return NOTHING
    mean = math.fsum(numbers) / len(numbers)
    return len(numbers), mean, math.fsum((number - mean) ** 2 for number in numbers)


def _made(seed: int) -> list[tuple[str, Any]]:
    random = Random(seed)
    a = [random.gauss(1, 2) for _ in range(random.randint(2, 5))]
    b = [random.gauss(-3, 1) for _ in range(random.randint(6, 9))]
    one, other = moments(a), moments(b)
    far = [moments([1e8 + number for number in each]) for each in (a, b)]
    return [
        ("two blocks", (one, other)),
        ("two blocks", (other, one)),
        ("far from zero", (far[0], far[1])),
        ("far from zero", _of_one_mean(random)),
        ("nothing so far", (NOTHING, other)),
        ("nothing so far", (one, NOTHING)),
        ("nothing so far", (NOTHING, NOTHING)),
    ]


def _of_one_mean(random: Random) -> tuple[Moments, Moments]:
    """Two blocks of the same mean, which their weighted mean misses by a rounding."""
    while True:
        (one, other), mean = random.sample(range(2, 10), 2), 1e8 + random.random()
        if (one * mean + other * mean) / (one + other) != mean:
            return (one, mean, random.uniform(1, 9)), (other, mean, random.uniform(1, 9))


def _about(case: tuple[str, Any]) -> str:
    return "merging " + " and ".join(f"({n}, {m:.10g}, {s:.5g})" for n, m, s in case[1])


def _wrong(case: tuple[str, Any], answer: Any) -> str | None:
    part, (a, b) = case
    if type(answer) is not tuple or [type(each) for each in answer] != [int, float, float]:
        return f"a tuple (count, mean, squares) of an int and two floats was expected, and it is {described(answer)}"
    count = a[0] + b[0]
    gap = b[1] - a[1]
    mean = a[1] + gap * b[0] / count if count else 0.0
    squares = a[2] + b[2] + (gap * gap * a[0] * b[0] / count if count else 0.0)
    where = _about(case)
    if answer[0] != count:
        return f"count is {answer[0]} and should be {count}; {where}"
    if part == "far from zero" and not gap and answer[1] != mean:
        why = "a weighted mean is rounded, far from zero to few digits: move one mean by a share of the gap, which is 0"
        return f"both means are {mean!r}, and that of all is {answer[1]!r}: {why}; {where}"
    tolerance = 1e-5 if part == "far from zero" else 1e-9
    if not math.isclose(answer[1], mean, rel_tol=1e-12 if part == "far from zero" else 1e-9, abs_tol=1e-12):
        middle = math.isclose(answer[1], (a[1] + b[1]) / 2)
        why = "; the mean of two means is right only for blocks of one size: weigh each by its count" if middle else ""
        return f"mean is {answer[1]:.10g} and should be {mean:.10g}{why}; {where}"
    if not math.isclose(answer[2], squares, rel_tol=tolerance, abs_tol=1e-12):
        why = ""
        if math.isclose(answer[2], a[2] + b[2], rel_tol=1e-9):
            why = "; the sums were added as they are, but each was taken around its own mean"
        elif part == "far from zero":
            why = "; far from zero the square of a mean has no digits for the difference: use the gap of the means"
        return f"squares is {answer[2]:.6g} and should be {squares:.6g}{why}; {where}"
    return None


merge_moments = Task(asks.merge_moments, MERGE, _made, cases_with(MERGE, _wrong, with_part=True, about=_about))
