"""A lazy value: what is run, when, and how often."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from ...asks import deferred as asks
from ...asks.deferred import OPERATIONS, PROGRAMS
from ...asks.plain import described
from ..smaller import indented
from ..task import Task, by_case

Cases = list[tuple[str, Any]]

LAZY = {
    "the right numbers": 5,
    "nothing runs unasked": 5,
    "all that waits runs at once": 5,
    "nothing runs twice": 5,
}


class Eager(float):
    """A number that computes at once, as a run does."""

    def __add__(self, other: float) -> Eager:
        return Eager(OPERATIONS["add"](self, other))

    def __mul__(self, other: float) -> Eager:
        return Eager(OPERATIONS["mul"](self, other))


def _cases(seed: int) -> Cases:
    names = list(PROGRAMS)
    Random(seed).shuffle(names)
    return [(PROGRAMS[name][0], (name,)) for name in names]


def _wrong(case: tuple[str], answer: Any) -> str | None:
    (name,) = case
    _, program, wanted = PROGRAMS[name]
    numbers, ran = answer
    right = [float(each) for each in program(Eager)]
    if type(numbers) is not list or not all(type(each) is float for each in numbers) or numbers != right:
        return f"{name}: the numbers are {described(numbers)} and should be {right}{_elsewhere(numbers, right, ran)}"
    counts = [len(rows) for rows in ran]
    listing = "\n" + indented("\n".join(f"run {at + 1}: {rows}" for at, rows in enumerate(ran))) if ran else ""
    if counts == wanted:
        return None
    if not ran:
        return f"{name}: run was never called; what is computed in another way is not deferred"
    if not wanted:
        why = "a number that is known needs no run" if "float" in name else "nobody has asked for a value"
        return f"{name}: there {'was a run' if len(ran) == 1 else f'were {len(ran)} runs'}, and {why}{listing}"
    if len(counts) > len(wanted):
        why = "a value that was computed is kept" if 0 in counts or sum(counts) > sum(wanted) else "all that waits runs"
        return f"{name}: {len(counts)} runs, and {len(wanted)} will do: {why}{listing}"
    if sum(counts) > sum(wanted):
        again = f"{sum(counts)} operations were run, and the program has {sum(wanted)}"
        return f"{name}: {again}: what was run waits no more{listing}"
    return f"{name}: runs of {counts} operations, and {wanted} were expected: all that waits runs, in one run{listing}"


def _elsewhere(numbers: Any, right: list[float], ran: list[Any]) -> str:
    """Whether numbers are right up to the rounding of a run, which Python's own have not gone through."""
    if type(numbers) is not list or len(numbers) != len(right) or not all(type(each) is float for each in numbers):
        return ""
    near = all(math.isclose(have, wanted, rel_tol=1e-6) for have, wanted in zip(numbers, right, strict=True))
    if not near:
        return ""
    called = "they were not computed by run" if ran else "run was never called"
    return f"; run rounds to 32 bits: {called}, and what is computed in another way is not deferred"


def _judge(cases: Cases, answers: Any) -> Any:
    said = dict(by_case(LAZY, cases, answers, _wrong))
    if said["the right numbers"]:
        said = {part: reason or "it counts when the part 'the right numbers' is right" for part, reason in said.items()}
    return said


lazy = Task(asks.lazy, LAZY, _cases, _judge)
