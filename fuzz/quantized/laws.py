"""The ways to run a program in Q/DQ form, and what has to hold of their results.

An exact program has one result, to the bit, whatever the order of its sums. Of any other, sums are rounded, so the
number x before a rounding to integers is off by some e, and x + e and x may have other neighbours:

    |found - x| <= 1/2 + e        e = ROUNDINGS * 2**-24 * (bound of the sums in x) / scale

for each integer that a run finds, where x is computed in float64 from the integers that the same run has found before.
So runs are one step apart where a rounding is nearly a tie, nowhere else, and never two. A float that is returned is
within ``e * scale`` of x. Every run is held to that, eager mode included.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minitorch as mt
from minitorch.backends import interpret, passes_for
from minitorch.errors import MinitorchError, ScheduleWarning
from minitorch.modes.objects.outcome import Output
from minitorch.passes import lowered

from .graphs import Array, Evaluation, Program

# Roundings that a number may pass through from integers to integers: those of its terms, of the longest sum (300
# terms), and of what follows. Raising it lets larger errors through.
ROUNDINGS = 400
UNIT = 2.0**-24

Way = Callable[[Callable[..., Any], Sequence[mt.Tensor]], Any]


def _frozen_passes(program: Callable[..., Any], x: Sequence[mt.Tensor]) -> list[mt.Tensor]:
    """With parameters as constants, after all passes, node by node."""
    traced = mt.freeze(program, *x, backend="interpret").traced(*x)
    found = interpret.compile(lowered(traced.program.pipeline.graph))([each.numpy() for each in x])
    leaves = traced.results[1]
    return [mt.tensor(found[leaf.position]) if isinstance(leaf, Output) else x[leaf.position] for leaf in leaves]


MODES: dict[str, Way] = {
    "eager": lambda program, x: program(*x),
    "interpreted": lambda program, x: mt.jit(program, backend="interpret", passes=())(*x),
    "passes": lambda program, x: mt.jit(program, backend="interpret", passes=passes_for("llvm"))(*x),
    "frozen passes": _frozen_passes,
    "jit": lambda program, x: mt.jit(program)(*x),
    "frozen": lambda program, x: mt.freeze(program, *x)(*x),
    "shadow": lambda program, x: mt.jit(program, check=True)(*x),
}
FAILURES = (MinitorchError, ScheduleWarning, ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
CHEAP = ("interpreted", "passes", "frozen passes")  # without LLVM


@dataclass(frozen=True)
class Finding:
    """A law that a run breaks."""

    seed: int
    mode: str
    detail: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.mode}: {self.detail}"


def judge(program: Program, modes: Sequence[str] = tuple(MODES)) -> list[Finding]:
    """What is wrong with a program in some modes."""
    found: list[Finding] = []
    judged = program if program.is_exact else program.observed()
    for mode in dict.fromkeys(["eager", *modes]):
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("error", ScheduleWarning)
                arrays = [each.numpy() for each in MODES[mode](judged.function(), judged.arguments())]
                wrong = fault(judged, arrays)
        except FAILURES as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            found.append(Finding(program.seed, mode, wrong))
    return found


def fault(program: Program, found: Sequence[Array]) -> str:
    """How results break the law of their program; empty if they do not."""
    results = dict(zip(program.results, found, strict=True))
    known = {} if program.is_exact else {place: mt.tensor(results[place]) for place in program.rounded}
    tensors = {name: mt.tensor(array) for name, array in program.arrays.items()}
    run = Evaluation(tensors, is_wide=True, integers=known)
    values = run.values(program.steps)
    for place, array in results.items():
        step, right = program.steps[place], values[place].numpy()
        if array.shape != right.shape or (step.name == "quantize" and array.dtype != right.dtype):
            return f"v{place} is {array.dtype}{list(array.shape)}, not {right.dtype}{list(right.shape)}"
        allowed = np.zeros(()) if program.is_exact else ROUNDINGS * UNIT * np.asarray(program.largest[place])
        if place in known:
            right = run.numbers[place]
            grid, operand = step.options["grid"], step.operands[0]
            scale = program.arrays[grid.scale]
            scale = (
                scale if grid.axis is None else scale.reshape([-1 if axis == 1 else 1 for axis in range(right.ndim)])
            )
            allowed = 0.5 + ROUNDINGS * UNIT * program.largest[operand] / scale
        apart = np.abs(array.astype(np.float64) - right)
        same = (array == right) | (np.isnan(right) & np.isnan(array.astype(np.float64)))
        wrong = ~same & ~(apart <= allowed)
        if wrong.any():
            at = tuple(int(index) for index in np.argwhere(wrong)[0])
            return (
                f"v{place} = {step.name} at {list(at)} is {array[at]}, and {right[at]} exactly "
                f"({int(wrong.sum())} of {wrong.size} elements)"
            )
    return ""
