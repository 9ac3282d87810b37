"""The operation that made the first NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...asks import eager as asks
from ...asks.eager import records_of
from ...asks.plain import Array, described
from ..task import Task, cases_with

Cases = list[tuple[str, Any]]

FIRST_BAD = {"a NaN that an operation makes": 8, "an infinity": 5, "a NaN that was there before": 7}

# Programs of one operation a step: name, which values it reads (0 and 1 are the inputs), and the numbers in x and y.
_RUNS: tuple[tuple[str, tuple[tuple[str, tuple[int, ...]], ...], list[float], list[float]], ...] = (
    (
        "a NaN that an operation makes",
        (("sub", (0, 0)), ("div", (2, 2)), ("add", (3, 1)), ("sum", (4,))),
        [1, 2],
        [1, 2],
    ),
    ("a NaN that an operation makes", (("add", (0, 1)), ("sqrt", (2,)), ("mul", (3, 1))), [-5, 2], [1, 2]),
    ("a NaN that an operation makes", (("sqrt", (0,)), ("sqrt", (1,)), ("add", (2, 3))), [-5, 2], [-1, 2]),
    ("an infinity", (("mul", (0, 1)), ("log", (2,)), ("exp", (3,)), ("add", (4, 1))), [0, 2], [1, 2]),
    ("an infinity", (("add", (0, 1)), ("exp", (2,)), ("sub", (3, 3))), [1000, 2], [1, 2]),
    ("a NaN that was there before", (("add", (0, 1)), ("sum", (2,))), [math.nan, 1], [1, 2]),
    ("a NaN that was there before", (("add", (0, 1)), ("sub", (1, 1)), ("div", (3, 3))), [math.nan, 1], [1, 2]),
    ("a NaN that was there before", (("add", (0, 1)), ("mul", (2, 2))), [1, 2], [3, 4]),
    ("a NaN that was there before", (("add", (0, 1)), ("sum", (2,))), [1, 2], [math.nan, 4]),
)


def _runs(seed: int) -> Cases:
    random = np.random.default_rng(seed)
    cases: Cases = []
    for part, steps, x, y in _RUNS:
        # In front, steps that do no harm; behind the numbers, others that do none.
        more = random.integers(1, 9, int(random.integers(0, 3))).tolist()
        before = [("mul", (1, 1))] * int(random.integers(0, 4)) if seed else []
        shift = len(before)
        moved = [(name, [at + shift if at > 1 else at for at in reads]) for name, reads in steps]
        cases.append((part, ([(name, list(reads)) for name, reads in before] + moved, [*x, *more], [*y, *more])))
    return cases


def _bad(array: Array) -> bool:
    return not np.isfinite(array).all()


def _shown(array: Array) -> str:
    return str(np.round(array.astype(np.float64), 4).tolist())


def _wrong_first_bad(case: Any, answer: Any) -> str | None:
    records = records_of(case)
    right = next(
        (i for i, (_, operands, made) in enumerate(records) if _bad(made) and not any(map(_bad, operands))), None
    )
    if type(answer) is type(right) and answer == right:
        return None
    trace = "\n".join(
        f"  {i}: {name} of {' and '.join(map(_shown, operands))} gives {_shown(made)}"
        for i, (name, operands, made) in enumerate(records)
    )
    if answer is not None and type(answer) is not int:
        return f"a position or None was expected, and it is {described(answer)}\n{trace}"
    if type(answer) is int and 0 <= answer < len(records) and any(map(_bad, records[answer][1])):
        first = "no operation makes it" if right is None else f"the first that makes it is {right}"
        return f"operation {answer} only passes on what it got; {first}\n{trace}"
    if right is None:
        return f"no operation makes a NaN or an infinity of finite numbers, so it is None, not {answer}\n{trace}"
    if type(answer) is int and right < answer < len(records):
        return f"operation {answer} makes one, too, but {right} is the first\n{trace}"
    infinity = "; an infinity counts, too" if np.isinf(records[right][2]).any() else ""
    return f"it is operation {right}, not {answer}{infinity}\n{trace}"


first_bad = Task(asks.first_bad, FIRST_BAD, _runs, cases_with(FIRST_BAD, _wrong_first_bad))
