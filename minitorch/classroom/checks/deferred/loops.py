"""A loop over lazy numbers, to be repaired: it looks in every round, and each round is another program."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from ...asks import deferred as asks
from ...asks.plain import described
from ..task import Task, cases_with

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


class Runs:
    """Runs rows; notes of each run how many there were, the program, its inputs, and the values."""

    def __init__(self, case: Any) -> None:
        self.seen: list[tuple[int, str, list[float], list[float]]] = []

    def reply(self, rows: Any) -> list[float]:
        """The values of rows."""
        values = asks.run_rows(rows)
        inputs = [each[0] for *_, operands in rows for each in operands if type(each) is tuple]
        self.seen.append((len(rows), asks.program_of(rows), inputs, values))
        return values


def _wrong(case: Any, answer: Any) -> str | None:
    part, (start, rates, every) = case
    losses, ran = answer
    right, states, x = [], [], start
    for rate in rates:
        x = x - rate * x
        right.append(x * x)
        states += [x, x * x]
    what = f"{len(rates)} rounds, {every} of which may wait"
    if type(losses) is not list or len(losses) != len(right) or not all(type(each) is float for each in losses):
        return f"{what}: a list of {len(right)} floats was expected, and it is {described(losses)}"
    off = [at for at in range(len(right)) if not _near(losses[at], right[at])]
    if off:
        return f"{what}: the loss of round {off[0] + 1} is {losses[off[0]]:.6g} and should be {right[off[0]]:.6g}"
    if part == "the right numbers":
        return None
    wanted, returned, elsewhere = len(rates) // every, set[float](), False
    for *_, inputs, values in ran:  # what comes in and is like a state has been computed by an earlier run
        elsewhere |= any(_near(each, state) for each in {*inputs} - returned for state in states)
        returned.update(values)
    if elsewhere or not returned.issuperset(losses):
        none = "" if ran else "there was no run: "
        return f"{what}: {none}the losses were not computed with lazy numbers"
    most = max(count for count, *_ in ran)
    if most > MOST * every:
        return f"{what}: {most} operations waited at once, of more than {every} rounds: memory grows with the loop"
    if len(ran) < wanted:
        return f"{what}: {len(ran)} runs, and more than {every} rounds waited for one: memory grows with the loop"
    if part == "few runs" and len(ran) > wanted:
        why = "each `float` asks for a value, and runs all that waits" if len(ran) >= len(rates) else "look less often"
        return f"{what}: {len(ran)} runs, and {wanted} will do; {why}"
    programs = len({program for _, program, *_ in ran})
    if part == "one program" and programs > 1:
        why = "a plain number is a part of the program; made a tensor, it is an input"
        return f"{what}: {programs} programs were compiled, and one will do; {why}"
    return None


def _near(have: float, wanted: float) -> bool:
    return math.isclose(have, wanted, rel_tol=ROUNDED)


descend = Task(asks.descend, DESCEND, _cases, cases_with(DESCEND, _wrong, with_part=True), oracle=Runs)
