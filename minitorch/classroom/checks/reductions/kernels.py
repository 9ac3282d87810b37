"""Kernels of the exercise: softmax in passes, its two sums in one, variance, log of a sum, attention for a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import numpy as np

from ...asks import reductions as asks
from ...asks.ask import Ask
from ...asks.plain import Array
from ...asks.reductions import counted
from ..golf import Golf, played
from ..samples import unforeseen
from ..task import Task, Verdict, cases_with
from .machine import Arrays, run

REGISTERS = 8
LONG = 24  # elements of a row that no eight registers hold

Draw = Callable[[np.random.Generator, int], Array]
Cases = list[tuple[str, Any]]


def ordinary(random: np.random.Generator, size: int) -> Array:
    """Numbers around zero."""
    return random.normal(0, 2, size)


def large(random: np.random.Generator, size: int) -> Array:
    """Numbers near -1000 and 1000 in turn: only the largest can be subtracted, and neither the first nor the mean."""
    found: Array = random.uniform(800, 1000, size) * np.where(np.arange(size) % 2, 1, -1)
    return found


def small(random: np.random.Generator, size: int) -> Array:
    """Numbers of which the exponentials vanish."""
    return random.uniform(-1000, -800, size)


def far(random: np.random.Generator, size: int) -> Array:
    """Numbers that are near to each other, and far from zero."""
    centre = float(random.choice([-1.0, 1.0]) * random.uniform(3e7, 2e8))
    return centre + random.normal(0, 1, size)


def rising(random: np.random.Generator, size: int) -> Array:
    """Numbers each of which is the largest so far."""
    return np.sort(random.uniform(-3, 3, size))


@dataclass(frozen=True)
class Kernel:
    """A kernel that is asked for.

    Attributes:
        right: from the arrays to what has to be in `out`.
        draws: how the numbers of each part are drawn.
        tolerance: relative, of each element.
        hint: ``(arrays, found) -> the misconception``, where one is known; empty if none is.
        registers: how many the machine has.
        once: the parts in which every element of `x` may be loaded once alone.
    """

    right: Callable[[Arrays], Array]
    draws: Mapping[str, Draw]
    hint: Callable[[Arrays, Array], str]
    tolerance: float = 1e-9
    registers: int = REGISTERS
    once: tuple[str, ...] = ()

    def wrong(self, case: tuple[str, Mapping[str, Any]], text: Any) -> str | None:
        """Why a record is wrong; None if it is right. It is there before the numbers that it is run on."""
        part, shapes = case
        random = unforeseen()
        arrays = {
            name: np.zeros(prod(shape)) if name in ("out", "scratch") else self.draws[part](random, prod(shape))
            for name, shape in shapes.items()
        }
        right = self.right({name: array.reshape(shapes[name]) for name, array in arrays.items()})
        results = tuple(name for name in arrays if name in ("out", "scratch"))
        where = _about(case)
        if reason := run(text, arrays, results):
            return f"{reason}; {where}"
        out = arrays["out"]
        near = np.isclose(out, right.ravel(), rtol=self.tolerance, atol=1e-300, equal_nan=False)
        if not near.all():
            at = int(np.argmin(near))
            why = self.hint(arrays, out)
            return f"out[{at}] is {out[at]:.6g} and should be {right.ravel()[at]:.6g}{why and '; ' + why}; {where}"
        found = counted(text)
        if found.registers > self.registers:
            return (
                f"{found.registers} numbers are held at once, and the machine has {self.registers} registers: "
                f"what is needed again later is loaded again, or kept as a total; {where}"
            )
        loads = found.loads.get("x", 0)
        if part in self.once and loads > prod(shapes["x"]):
            return (
                f"{loads} loads of x, which has {prod(shapes['x'])} elements: that is more than one pass. "
                "Load each once, and carry what you know so far from element to element"
            )
        return None


def _task(ask: Ask, parts: Mapping[str, int], kernel: Kernel, shapes: Callable[[int], Mapping[str, Any]]) -> Task:
    """A task in which a kernel is written for rows of a length, short ones of several lengths among them."""

    def make(seed: int) -> Cases:
        random = Random(seed)
        sizes = (LONG, random.randint(3, 7), random.randint(8, 20))
        return [(part, {name: list(shape) for name, shape in shapes(n).items()}) for part in parts for n in sizes]

    return Task(ask, parts, make, cases_with(parts, kernel.wrong, with_part=True, about=_about))


def _about(case: tuple[str, Mapping[str, Any]]) -> str:
    return ", ".join(f"{name} of shape {list(shape)}" for name, shape in case[1].items())


def _row(out: int | None = None) -> Callable[[int], Mapping[str, Any]]:
    return lambda size: {"x": (size,), "out": (size if out is None else out,)}


def _exponentials(x: Array) -> Array:
    found: Array = np.exp(x - x.max())
    return found


# --- softmax ----------------------------------------------------------------------------------------------------


def _softmax_hint(arrays: Arrays, out: Array) -> str:
    x = arrays["x"]
    if not np.isfinite(out).all() and x.max() < 0:
        return "if the largest number starts at 0, it is above all of these and every exponential is 0: start with x[0]"
    if not np.isfinite(out).all():
        return (
            "exp(1000) is infinite and infinity over infinity is NaN: subtract the largest number first, and no other, "
            "since numbers near -1000 and 1000 stand in one row"
        )
    if np.allclose(out, _exponentials(x)):
        return "those are the exponentials: divide each by their sum"
    if np.allclose(out, _exponentials(x) / len(x)):
        return "the sum is that of the exponentials, and not how many there are"
    if not np.isclose(out.sum(), 1):
        return f"the elements of a softmax add up to 1, and these to {out.sum():.4g}"
    return ""


SOFTMAX = {"right numbers": 6, "large numbers": 5, "small numbers": 4}
softmax = _task(
    asks.softmax,
    SOFTMAX,
    Kernel(
        lambda arrays: _exponentials(arrays["x"]) / _exponentials(arrays["x"]).sum(),
        {"right numbers": ordinary, "large numbers": large, "small numbers": small},
        _softmax_hint,
    ),
    _row(),
)

# --- largest_and_total ------------------------------------------------------------------------------------------


def _never_scaled(x: Array) -> Any:
    return np.exp(x - np.maximum.accumulate(x)).sum()


def _total_hint(arrays: Arrays, out: Array) -> str:
    x = arrays["x"]
    if not np.isfinite(out).all():
        return "exp(1000) is infinite: subtract the largest number so far"
    if not np.isclose(out[0], x.max()):
        return "out[0] is the largest number" + (
            "; one that starts at 0 stays there if all are below" if out[0] == 0 else ""
        )
    if np.isclose(out[1], _never_scaled(x)):
        return "when the largest number rises, the total so far has to be scaled down to it: times exp(old - new)"
    return ""


def _pair(arrays: Arrays) -> Array:
    return np.array([arrays["x"].max(), _exponentials(arrays["x"]).sum()])


TOTAL = {"right numbers": 2, "large numbers": 2, "rising numbers": 3, "one pass": 8}
largest_and_total = _task(
    asks.largest_and_total,
    TOTAL,
    Kernel(
        _pair,
        {"right numbers": ordinary, "large numbers": large, "rising numbers": rising, "one pass": small},
        _total_hint,
        once=("one pass",),
    ),
    _row(2),
)

# --- variance ---------------------------------------------------------------------------------------------------


def _variance_hint(arrays: Arrays, out: Array) -> str:
    x = arrays["x"]
    if abs(x.mean()) > 1e6:
        return (
            "far from zero, the mean of squares and the square of the mean agree in all digits that a float has: "
            "add up squares of differences"
        )
    if np.isclose(out[0], x.var(ddof=1)):
        return "divide by how many numbers there are, and not by one less"
    if np.isclose(out[0], x.var() * len(x)):
        return "that is the sum of the squares of the differences: divide it by how many there are"
    if np.isclose(out[0], x.std()):
        return "that is the standard deviation: there is no root in a variance"
    return ""


VARIANCE = {"right numbers": 4, "far from zero": 6, "one pass": 10}
variance = _task(
    asks.variance,
    VARIANCE,
    Kernel(
        lambda arrays: np.array([arrays["x"].var()]),
        {"right numbers": ordinary, "far from zero": far, "one pass": far},
        _variance_hint,
        tolerance=1e-5,
        once=("one pass",),
    ),
    _row(1),
)

# --- logsumexp --------------------------------------------------------------------------------------------------


def _log_hint(arrays: Arrays, out: Array) -> str:
    x = arrays["x"]
    if np.isclose(out[0], x.max() + np.log(_never_scaled(x)), rtol=1e-12):
        return "the total so far was never scaled: `largest` has its new value already where the old one is needed"
    if x.max() < -100:
        return "a largest number that starts at 0 is above all of these, and log(0) is -inf: start below all numbers"
    if np.isinf(out[0]) or np.isnan(out[0]):
        return (
            "something overflows, or infinity is subtracted from infinity: subtract the largest number so far, and no "
            "other, since numbers near -1000 and 1000 stand in one row"
        )
    return ""


LOGSUMEXP = {"right numbers": 3, "small numbers": 3, "rising numbers": 3, "one pass": 6}
logsumexp = _task(
    asks.logsumexp,
    LOGSUMEXP,
    Kernel(
        lambda arrays: np.array([arrays["x"].max() + np.log(_exponentials(arrays["x"]).sum())]),
        {"right numbers": ordinary, "small numbers": small, "rising numbers": rising, "one pass": large},
        _log_hint,
        once=("one pass",),
    ),
    _row(1),
)

# --- attention_row ----------------------------------------------------------------------------------------------

WIDTH = 4
ATTENTION = {"right numbers": 5, "large numbers": 5, "few accesses": 10}

# Of the record for 24 keys. Best: q, the keys, the values and the result, each once, of which nobody can leave one out.
# Par: scores that wait in memory. Start: scores that are computed again in each of three passes.
ACCESSES = Golf("accesses", start=676, par=296, best=WIDTH * (1 + 2 * LONG + 1))


def _attention(arrays: Arrays) -> Array:
    weights = _exponentials(arrays["keys"] @ arrays["q"])
    found: Array = weights / weights.sum() @ arrays["values"]
    return found


def _attention_hint(arrays: Arrays, out: Array) -> str:
    keys, values = (arrays[name].reshape(-1, WIDTH) for name in ("keys", "values"))
    scores = keys @ arrays["q"]
    if not np.isfinite(out).all():
        return "exp of a large score is infinite: subtract the largest score so far"
    if np.allclose(out, _exponentials(scores) @ values):
        return "the weights add up to 1: divide by the sum of the exponentials"
    running = np.maximum.accumulate(scores)
    weights = np.exp(scores - running)
    if any(np.allclose(out, top @ values / weights.sum()) for top in (weights,)):
        return "when the largest score rises, the total and all sums of values so far have to be scaled down to it"
    steps = np.exp(np.concatenate([[0], running[:-1] - running[1:]]))
    total = 0.0
    for weight, step in zip(weights, steps, strict=True):
        total = total * step + weight
    if np.allclose(out, weights @ values / total):
        return "the total was scaled down and the sums of values were not"
    return ""


def _scores(random: np.random.Generator, size: int) -> Array:
    return random.normal(0, 1, size)


def _large_scores(random: np.random.Generator, size: int) -> Array:
    return random.normal(0, 40, size)


_ROW = Kernel(
    _attention,
    {"right numbers": _scores, "large numbers": _large_scores, "few accesses": _scores},
    _attention_hint,
    tolerance=1e-8,
    registers=16,
)


def _attention_cases(seed: int) -> Cases:
    random = Random(seed)

    def shapes(keys: int) -> Mapping[str, Any]:
        matrix = [keys, WIDTH]
        return {"q": [WIDTH], "keys": matrix, "values": matrix, "scratch": [keys], "out": [WIDTH]}

    sizes: Iterable[tuple[str, int]] = [
        (part, size) for part in ("right numbers", "large numbers") for size in (LONG, random.randint(3, 9))
    ]
    return [(part, shapes(size)) for part, size in (*sizes, ("few accesses", LONG))]


def _judge_attention(cases: Cases, answers: Any) -> Mapping[str, Verdict]:
    said = cases_with(ATTENTION, _ROW.wrong, with_part=True, about=_about)(cases, answers)
    counts = (
        counted(answer).accesses for (part, _), answer in zip(cases, answers, strict=True) if part == "few accesses"
    )
    return played(said, "few accesses", ACCESSES, counts, after=("right numbers", "large numbers"))


attention_row = Task(asks.attention_row, ATTENTION, _attention_cases, _judge_attention)
