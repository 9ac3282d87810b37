"""A lazy value: what is run, when, and how often."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from ...asks import deferred as asks
from ...asks.deferred import OPERATIONS
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


# The part and the steps of each program. `t` makes a tensor of a number, `2 * 0` computes with values of earlier steps,
# `#` is a number that the seed draws, `-0` minus that of the tensor 0; `float` and `bool` ask for a value.
PROGRAMS = (
    ("the right numbers", "t; 0 * #; t; 1 + 2; float 3"),
    ("the right numbers", "t; 0 * #; 1 + #; float 2"),
    ("nothing runs unasked", "t; t; 0 * 1; 2 + #"),
    ("nothing runs unasked", "t; float 0"),
    ("all that waits runs at once", "t; t; 0 * 1; 2 * #; 2 + #; float 3; float 4; float 2"),
    ("all that waits runs at once", "t; 0 + -0; 1 + #; bool 1; float 2"),
    ("nothing runs twice", "t; 0 * #; float 1; 1 + 1; 2 * 1; float 3"),
    ("nothing runs twice", "t; 0 + #; float 1; float 1; 1 * #; float 2; float 1"),
)
NAMES = {"+": "add", "*": "mul"}


def _cases(seed: int) -> list[tuple[str, None, list[Any]]]:
    """The part, and what is not sent: the steps of a program, each of which is told when it is to be done."""
    random = Random(seed)
    found = []
    for part, program in PROGRAMS:
        steps: list[Any] = []
        for step in program.split("; "):
            number = random.randrange(1, 60) / 10
            words = step.split()
            if words == ["t"]:
                steps.append(("tensor", number))
            elif words[0] in ("float", "bool"):
                steps.append((words[0], int(words[1])))
            else:
                other = {"#": number, "-0": -steps[0][1]}.get(words[2])
                steps.append((NAMES[words[1]], int(words[0]), int(words[2]) if other is None else other))
        found.append((part, None, steps))
    return found


class Running:
    """Tells a program step by step, and runs rows; of each step it notes the answer, and the runs until then."""

    def __init__(self, case: tuple[str, None, list[Any]]) -> None:
        self._steps = case[2]
        self.seen: list[Any] = []
        self._runs: list[Any] = []
        self._told = 0

    def reply(self, question: Any) -> Any:
        """The values of rows, or the next step, given the answer to the last one."""
        what, given = question
        if what == "run":
            self._runs.append(given)
            return asks.run_rows(given)
        if self._told:
            self.seen.append((given, self._runs))
        self._runs = []
        self._told += 1
        return self._steps[self._told - 1] if self._told <= len(self._steps) else None


def _right(steps: list[Any]) -> list[tuple[float | bool | None, int]]:
    """Of each step what it answers, and how many operations are run for that; 0 if there is no run."""
    found: list[tuple[float | bool | None, int]] = []
    values: list[float] = []
    waiting: list[int] = []
    for what, first, *rest in steps:
        if what in ("float", "bool"):
            found.append((float(values[first]) if what == "float" else bool(values[first]), 0))
            if first in waiting:
                found[-1] = found[-1][0], len(waiting)
                waiting.clear()
            continue
        found.append((None, 0))
        if what != "tensor":
            other = values[rest[0]] if type(rest[0]) is int else rest[0]
            waiting.append(len(values))
        values.append(first if what == "tensor" else OPERATIONS[what](values[first], other))
    return found


def _listing(steps: list[Any]) -> str:
    lines, count = [], 0
    for what, *operands in steps:
        names = [f"v{each}" if type(each) is int else f"{each:g}" for each in operands]
        sign = {"add": " + ", "mul": " * "}.get(what)
        lines.append(sign.join(names) if sign else f"{'t' if what == 'tensor' else what}({names[0]})")
        if what not in ("float", "bool"):
            lines[-1] = f"v{count} = {lines[-1]}"
            count += 1
    return "; ".join(lines)


def _wrong(case: tuple[str, None, list[Any]], answer: Any) -> str | None:
    _, _, steps = case
    _, seen = answer
    name, rights = _listing(steps), _right(steps)
    if len(seen) != len(steps):
        return f"{name}: the program was not followed to its end"
    ran = [rows for _, runs in seen for rows in runs]
    asked = [at for at, step in enumerate(steps) if step[0] in ("float", "bool")]
    numbers, right = [seen[at][0] for at in asked], [rights[at][0] for at in asked]
    if numbers != right or [*map(type, numbers)] != [*map(type, right)]:
        return f"{name}: the numbers are {described(numbers)} and should be {right}{_elsewhere(numbers, right, ran)}"
    counts, wanted = [len(rows) for rows in ran], [count for _, count in rights if count]
    listing = "\n" + indented("\n".join(f"run {at + 1}: {rows}" for at, rows in enumerate(ran))) if ran else ""
    early = any(runs for at, (_, runs) in enumerate(seen) if at not in asked)
    if counts == wanted and not early:
        returned = {value for rows in ran for value in asks.run_rows(rows)}
        made_up = any(rights[at][1] and rights[at][0] not in returned for at in asked if steps[at][0] == "float")
        return f"{name}: the rows do not compute what was asked for{listing}" if made_up else None
    if not ran:
        return f"{name}: run was never called; what is computed in another way is not deferred"
    if not wanted or early:
        why = "nobody has asked for a value" if early else "a number that is known needs no run"
        return f"{name}: there {'was a run' if len(ran) == 1 else f'were {len(ran)} runs'}, and {why}{listing}"
    if len(counts) > len(wanted):
        why = "a value that was computed is kept" if 0 in counts or sum(counts) > sum(wanted) else "all that waits runs"
        return f"{name}: {len(counts)} runs, and {len(wanted)} will do: {why}{listing}"
    if sum(counts) > sum(wanted):
        again = f"{sum(counts)} operations were run, and the program has {sum(wanted)}"
        return f"{name}: {again}: what was run waits no more{listing}"
    return f"{name}: runs of {counts} operations, and {wanted} were expected: all that waits runs, in one run{listing}"


def _elsewhere(numbers: list[Any], right: list[Any], ran: list[Any]) -> str:
    """Whether numbers are right up to the rounding of a run, which Python's own have not gone through."""
    if [*map(type, numbers)] != [*map(type, right)]:
        return ""
    near = all(math.isclose(have, wanted, rel_tol=1e-6) for have, wanted in zip(numbers, right, strict=True))
    if not near:
        return ""
    called = "they were not computed by run" if ran else "run was never called"
    return f"; run rounds to 32 bits: {called}, and what is computed in another way is not deferred"


def _judge(cases: Cases, answers: Any) -> Any:
    said = dict(by_case(LAZY, [(case[0], case) for case in cases], answers, _wrong))
    if said["the right numbers"]:
        said = {part: reason or "it counts when the part 'the right numbers' is right" for part, reason in said.items()}
    return said


lazy = Task(asks.lazy, LAZY, _cases, _judge, oracle=Running)
