"""Exercise 09, reductions: stable sums of exponentials, one pass, partial results, and attention for a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any

import numpy as np

from ..harness import Driver
from ..harness import reductions as harness
from ..harness.plain import Array
from ..harness.reductions import counted
from .golf import Golf
from .machines.records import Arrays, run
from .reasons import expect, hint
from .samples import unforeseen
from .task import Cases, Table, Task

REGISTERS = 8
LONG = 24  # elements of a row that no eight registers hold
RIGHT, LARGE, SMALL, RISING, ONE_PASS = "right numbers", "large numbers", "small numbers", "rising numbers", "one pass"
FAR, ACCESSES = "far from zero", "few accesses"

Draw = Callable[[np.random.Generator, int], Array]


DRAWS: dict[str, Draw] = {
    RIGHT: lambda random, size: random.normal(0, 2, size),
    # Near -1000 and 1000 in turn: only the largest can be subtracted, and neither the first nor the mean.
    LARGE: lambda random, size: np.asarray(random.uniform(800, 1000, size) * np.where(np.arange(size) % 2, 1, -1)),
    SMALL: lambda random, size: random.uniform(-1000, -800, size),  # their exponentials vanish
    RISING: lambda random, size: np.sort(random.uniform(-3, 3, size)),  # each is the largest so far
    FAR: lambda random, size: random.choice([-1.0, 1.0]) * random.uniform(3e7, 2e8) + random.normal(0, 1, size),
}


@dataclass(frozen=True)
class Kernel:
    """A kernel that is asked for.

    Attributes:
        right: from the arrays to what has to be in `out`.
        hint: ``(arrays, found) -> the misconception``, for the end of a reason.
        draws: how the numbers of each part are drawn.
        tolerance: relative, of each element.
        registers: how many the machine has.
    """

    right: Callable[[Arrays], Any]
    hint: Callable[[Arrays, Array], str]
    draws: Mapping[str, Draw] = field(default_factory=DRAWS.copy)
    tolerance: float = 1e-9
    registers: int = REGISTERS

    def wrong(self, part: str, shapes: Mapping[str, Any], text: Any) -> str | None:
        """Why a record is wrong; None if it is right. It is there before the numbers that it is run on."""
        random, results = unforeseen(), tuple(name for name in shapes if name in ("out", "scratch"))
        arrays = {
            name: np.zeros(prod(shape)) if name in results else self.draws[part](random, prod(shape))
            for name, shape in shapes.items()
        }
        right = np.ravel(self.right({name: array.reshape(shapes[name]) for name, array in arrays.items()}))
        if reason := run(text, arrays, results):
            return reason
        out = arrays["out"]
        near = np.isclose(out, right, rtol=self.tolerance, atol=1e-300, equal_nan=False)
        if not near.all():
            at = int(np.argmin(near))
            return f"out[{at}] is {out[at]:.6g} and should be {right[at]:.6g}{self.hint(arrays, out)}"
        found = counted(text)
        if found.registers > self.registers:
            return (
                f"{found.registers} numbers are held at once, and the machine has {self.registers} registers: "
                "what is needed again later is loaded again, or kept as a total"
            )
        loads = found.loads.get("x", 0)
        if part == ONE_PASS and loads > prod(shapes["x"]):
            return (
                f"{loads} loads of x, which has {prod(shapes['x'])} elements: that is more than one pass. "
                "Load each once, and carry what you know so far from element to element"
            )
        return None


def _about(shapes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} of shape {list(shape)}" for name, shape in shapes.items())


def _task(driver: Driver, parts: Mapping[str, int], kernel: Kernel, out: int | None = None) -> Task:
    """A task in which a kernel is written for rows; `out` is how many numbers it makes, one for each by default."""

    def rows(random: Random) -> Cases:
        sizes = (LONG, random.randint(3, 7), random.randint(8, 20))
        return [(part, {"x": [size], "out": [out or size]}) for part in parts for size in sizes]

    return Task(driver, parts, rows, kernel.wrong, about=_about)


def _exponentials(x: Array) -> Array:
    return np.asarray(np.exp(x - x.max()))


# --- softmax ------------------------------------------------------------------------------------------------------


def _softmax_hint(arrays: Arrays, out: Array) -> str:
    x, finite = arrays["x"], np.isfinite(out).all()
    return hint(
        not finite and x.max() < 0,
        "if the largest number starts at 0, it is above all of these and every exponential is 0: start with x[0]",
        not finite,
        "exp(1000) is infinite and infinity over infinity is NaN: subtract the largest number first, and no other, "
        "since numbers near -1000 and 1000 stand in one row",
        np.allclose(out, _exponentials(x)),
        "those are the exponentials: divide each by their sum",
        np.allclose(out, _exponentials(x) / len(x)),
        "the sum is that of the exponentials, and not how many there are",
        not np.isclose(out.sum(), 1),
        f"the elements of a softmax add up to 1, and these to {out.sum():.4g}",
    )


_SOFTMAX = Kernel(lambda arrays: _exponentials(arrays["x"]) / _exponentials(arrays["x"]).sum(), _softmax_hint)
softmax = _task(harness.softmax, {RIGHT: 6, LARGE: 5, SMALL: 4}, _SOFTMAX)

# --- largest_and_total --------------------------------------------------------------------------------------------


def _never_scaled(x: Array) -> Any:
    return np.exp(x - np.maximum.accumulate(x)).sum()


def _total_hint(arrays: Arrays, out: Array) -> str:
    x = arrays["x"]
    return hint(
        not np.isfinite(out).all(),
        "exp(1000) is infinite: subtract the largest number so far from each, and scale by exp(old - new)",
        out[0] == 0 and x.max() != 0,
        "out[0] is the largest number; one that starts at 0 stays there if all are below",
        not np.isclose(out[0], x.max()),
        "out[0] is the largest number",
        np.isclose(out[1], _never_scaled(x)),
        "when the largest number rises, the total so far has to be scaled down to it: times exp(old - new)",
    )


_TOTAL = Kernel(
    lambda arrays: [arrays["x"].max(), _exponentials(arrays["x"]).sum()],
    _total_hint,
    DRAWS | {ONE_PASS: DRAWS[SMALL]},
)
largest_and_total = _task(harness.largest_and_total, {RIGHT: 2, LARGE: 2, RISING: 3, ONE_PASS: 8}, _TOTAL, 2)

# --- merge_moments: count, mean and sum of squared differences of two parts (Chan, Golub and LeVeque, 1979) --------

Moments = tuple[int, float, float]
NOTHING: Moments = (0, 0.0, 0.0)
MERGE = {"two blocks": 5, FAR: 5, "nothing so far": 5}


def moments(numbers: list[float]) -> Moments:
    """How many numbers, their mean, and the sum of the squares of the differences from it."""
    mean = math.fsum(numbers) / len(numbers)
    return len(numbers), mean, math.fsum((number - mean) ** 2 for number in numbers)


def _blocks(random: Random) -> Table:
    a = [random.gauss(1, 2) for _ in range(random.randint(2, 5))]
    b = [random.gauss(-3, 1) for _ in range(random.randint(6, 9))]
    one, other = moments(a), moments(b)
    return {
        "two blocks": [(one, other), (other, one)],
        FAR: [tuple(moments([1e8 + number for number in each]) for each in (a, b)), _of_one_mean(random)],
        "nothing so far": [(NOTHING, other), (one, NOTHING), (NOTHING, NOTHING)],
    }


def _of_one_mean(random: Random) -> tuple[Moments, Moments]:
    """Two blocks of the same mean, which their weighted mean misses by a rounding."""
    while True:
        (one, other), mean = random.sample(range(2, 10), 2), 1e8 + random.random()
        if (one * mean + other * mean) / (one + other) != mean:
            return (one, mean, random.uniform(1, 9)), (other, mean, random.uniform(1, 9))


def _about_blocks(case: tuple[Moments, Moments]) -> str:
    return "merging " + " and ".join(f"({n}, {m:.10g}, {s:.5g})" for n, m, s in case)


def _wrong_moments(part: str, case: tuple[Moments, Moments], answer: Any) -> str | None:
    expect(answer, tuple[int, float, float], "a tuple (count, mean, squares) of an int and two floats")
    (n, a, a_squares), (m, b, b_squares) = case
    count, gap, is_far = n + m, b - a, part == FAR
    mean = a + gap * m / count if count else 0.0
    squares = a_squares + b_squares + (gap * gap * n * m / count if count else 0.0)
    if answer[0] != count:
        return f"count is {answer[0]} and should be {count}"
    if is_far and not gap and answer[1] != mean:
        why = "a weighted mean is rounded, far from zero to few digits: move one mean by a share of the gap, which is 0"
        return f"both means are {mean!r}, and that of all is {answer[1]!r}: {why}"
    if not math.isclose(answer[1], mean, rel_tol=1e-12 if is_far else 1e-9, abs_tol=1e-12):
        return f"mean is {answer[1]:.10g} and should be {mean:.10g}" + hint(
            math.isclose(answer[1], (a + b) / 2),
            "the mean of two means is right only for blocks of one size: weigh each by its count",
        )
    if not math.isclose(answer[2], squares, rel_tol=1e-5 if is_far else 1e-9, abs_tol=1e-12):
        return f"squares is {answer[2]:.6g} and should be {squares:.6g}" + hint(
            math.isclose(answer[2], a_squares + b_squares, rel_tol=1e-9),
            "the sums were added as they are, but each was taken around its own mean",
            is_far,
            "if it is right near zero: far from zero the square of a mean has no digits for the difference: use gaps",
        )
    return None


merge_moments = Task(harness.merge_moments, MERGE, _blocks, _wrong_moments, about=_about_blocks)

# --- logsumexp ----------------------------------------------------------------------------------------------------


def _log_hint(arrays: Arrays, out: Array) -> str:
    x = arrays["x"]
    return hint(
        np.isclose(out[0], x.max() + np.log(_never_scaled(x)), rtol=1e-12),
        "the total so far was never scaled: `largest` has its new value already where the old one is needed",
        x.max() < -100,
        "a largest number that starts at 0 is above all of these, and log(0) is -inf: start below all numbers",
        not np.isfinite(out[0]),
        "something overflows, or infinity is subtracted from infinity: subtract the largest number so far, and no "
        "other, since numbers near -1000 and 1000 stand in one row",
    )


_LOGSUMEXP = Kernel(
    lambda arrays: arrays["x"].max() + np.log(_exponentials(arrays["x"]).sum()),
    _log_hint,
    DRAWS | {ONE_PASS: DRAWS[LARGE]},
)
logsumexp = _task(harness.logsumexp, {RIGHT: 3, SMALL: 3, RISING: 3, ONE_PASS: 6}, _LOGSUMEXP, 1)

# --- variance -----------------------------------------------------------------------------------------------------


def _variance_hint(arrays: Arrays, out: Array) -> str:
    x = arrays["x"] - arrays["x"][0]
    means = np.cumsum(x) / np.arange(1, len(x) + 1)  # of the numbers so far
    return hint(
        np.allclose(out[0] * len(x), ((x - means) ** 2).sum(), 1e-5)
        or np.allclose(out[0] * len(x), ((x[1:] - means[:-1]) ** 2).sum(), 1e-5),
        "one of the two differences is from the mean before this number, the other from the mean with it",
        np.isclose(out[0], x.var(ddof=1)),
        "divide by how many numbers there are, and not by one less",
        np.isclose(out[0], x.var() * len(x)),
        "that is the sum of the squares of the differences: divide it by how many there are",
        np.isclose(out[0], x.std()),
        "that is the standard deviation: there is no root in a variance",
        abs(arrays["x"].mean()) > 1e6,
        "if it is right near zero: far from zero, the mean of squares and the square of the mean agree in all digits "
        "that a float has, so add up squares of differences",
    )


_VARIANCE = Kernel(lambda arrays: arrays["x"].var(), _variance_hint, DRAWS | {ONE_PASS: DRAWS[FAR]}, tolerance=1e-5)
variance = _task(harness.variance, {RIGHT: 4, FAR: 6, ONE_PASS: 10}, _VARIANCE, 1)

# --- attention_row ------------------------------------------------------------------------------------------------

WIDTH = 4
ATTENTION = {RIGHT: 5, LARGE: 5, ACCESSES: 10}

# Of the record for 24 keys. Best: q, the keys, the values and the result, each once, of which nobody can leave one out.
# Par: scores that wait in memory. Start: scores that are computed again in each of three passes.
FEW = Golf("accesses", start=676, par=296, best=WIDTH * (1 + 2 * LONG + 1))


def _attention(arrays: Arrays) -> Array:
    weights = _exponentials(arrays["keys"] @ arrays["q"])
    return np.asarray(weights / weights.sum() @ arrays["values"])


def _attention_hint(arrays: Arrays, out: Array) -> str:
    keys, values = (arrays[name].reshape(-1, WIDTH) for name in ("keys", "values"))
    scores = keys @ arrays["q"]
    running = np.maximum.accumulate(scores)
    weights = np.exp(scores - running)
    total = 0.0
    for weight, step in zip(weights, np.exp([0.0, *(running[:-1] - running[1:])]), strict=True):
        total = total * step + weight
    return hint(
        not np.isfinite(out).all(),
        "exp of a large score is infinite: subtract the largest score so far",
        np.allclose(out, _exponentials(scores) @ values),
        "the weights add up to 1: divide by the sum of the exponentials",
        np.allclose(out, weights @ values / weights.sum()),
        "when the largest score rises, the total and all sums of values so far have to be scaled down to it",
        np.allclose(out, weights @ values / total),
        "the total was scaled down and the sums of values were not",
    )


def _scores(spread: float) -> Draw:
    return lambda random, size: random.normal(0, spread, size)


_SCORES = {RIGHT: _scores(1), LARGE: _scores(40), ACCESSES: _scores(1)}
_ROW = Kernel(_attention, _attention_hint, _SCORES, tolerance=1e-8, registers=16)


def _keys(random: Random) -> Cases:
    sizes = [(part, size) for part in (RIGHT, LARGE) for size in (LONG, random.randint(3, 9))]
    return [
        (part, {"q": [WIDTH], "keys": [size, WIDTH], "values": [size, WIDTH], "scratch": [size], "out": [WIDTH]})
        for part, size in (*sizes, (ACCESSES, LONG))
    ]


attention_row = Task(
    harness.attention_row,
    ATTENTION,
    _keys,
    _ROW.wrong,
    about=_about,
    golf={ACCESSES: FEW},
    count=lambda part, shapes, answer: counted(answer).accesses,
)

TASKS = (softmax, largest_and_total, merge_moments, logsumexp, variance, attention_row)
