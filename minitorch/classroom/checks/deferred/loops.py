"""A loop over lazy numbers, to be repaired: it looks in every round, and each round is another program."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from ...asks import deferred as asks
from ...asks.deferred import rounded
from ...asks.plain import described
from ..task import Task, by_case

Cases = list[tuple[str, Any]]

ROUNDED = 1e-5  # lazy numbers have 32 bits
MOST = 5  # operations of a round; three will do
DESCEND = {"the right numbers": 5, "few runs": 8, "one program": 7}


def _cases(seed: int) -> Cases:
    random = Random(seed)
    found = []
    for part in DESCEND:
        for every, times in ((3, 4), (5, 2), (1, 3)):
            rates = [random.uniform(0.05, 0.4) for _ in range(every * times)]
            found.append((part, (random.uniform(1, 3), rates, every)))
    return found


def _wrong(case: Any, answer: Any) -> str | None:
    part, (start, rates, every) = case
    losses, runs, programs, most = answer
    right, x = [], start
    for rate in rates:
        x = x - rate * x
        right.append(x * x)
    what = f"{len(rates)} rounds, {every} of which may wait"
    if type(losses) is not list or len(losses) != len(right) or not all(type(each) is float for each in losses):
        return f"{what}: a list of {len(right)} floats was expected, and it is {described(losses)}"
    off = [at for at in range(len(right)) if not math.isclose(losses[at], right[at], rel_tol=ROUNDED)]
    if off:
        return f"{what}: the loss of round {off[0] + 1} is {losses[off[0]]:.6g} and should be {right[off[0]]:.6g}"
    if part == "the right numbers":
        return None
    wanted = len(rates) // every
    if not runs or any(rounded(each) != each for each in losses):
        none = "there was no run" if not runs else "lazy numbers are rounded to 32 bits, and the losses are not"
        return f"{what}: {none}: the losses were not computed with lazy numbers"
    if most > MOST * every:
        return f"{what}: {most} operations waited at once, of more than {every} rounds: memory grows with the loop"
    if runs < wanted:
        return f"{what}: {runs} runs, and more than {every} rounds waited for one: memory grows with the loop"
    if part == "few runs" and runs > wanted:
        why = "each `float` asks for a value, and runs all that waits" if runs >= len(rates) else "look less often"
        return f"{what}: {runs} runs, and {wanted} will do; {why}"
    if part == "one program" and programs > 1:
        why = "a plain number is a part of the program; made a tensor, it is an input"
        return f"{what}: {programs} programs were compiled, and one will do; {why}"
    return None


descend = Task(
    asks.descend,
    DESCEND,
    _cases,
    lambda cases, answers: by_case(DESCEND, [(part, (part, case)) for part, case in cases], answers, _wrong),
)
