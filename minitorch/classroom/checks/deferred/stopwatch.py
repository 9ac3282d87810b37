"""The stopwatch trap: what a stopwatch shows for each line of a lazy program."""

from __future__ import annotations

from random import Random
from typing import Any

from ...asks import deferred as asks
from ...asks.plain import described
from ..task import Task, by_case

Cases = list[tuple[str, Any]]

SEEN = {"lines that ask": 4, "lines that record": 3, "the end of the block": 3}


def _cases(seed: int) -> Cases:
    random = Random(seed)

    def lines(*asks_for_a_value: bool) -> list[tuple[int, bool]]:
        return [(random.randrange(1, 90), asks) for asks in asks_for_a_value]

    programs = [
        lines(False, False, False, True),
        lines(False, True, False, True, False),
        lines(True, True, False),
        lines(False, False),
        lines(*(random.random() < 0.3 for _ in range(8)), False, True, False),
    ]
    return [(part, (program,)) for part in SEEN for program in programs]


def right(lines: list[tuple[int, bool]]) -> list[int]:
    """What the stopwatch shows, and last the time of the end of the block.

    Example:
        >>> right([(5, False), (2, True), (7, False)])
        [0, 7, 0, 7]
    """
    found, waiting = [], 0
    for work, asks_for_a_value in [*lines, (0, True)]:
        waiting += work
        found.append(waiting if asks_for_a_value else 0)
        waiting = 0 if asks_for_a_value else waiting
    return found


def _wrong(case: Any, answer: Any) -> str | None:
    part, (lines,) = case
    wanted = right(lines)
    what = ", ".join(f"{work} ms{' and asks' if asks_for_a_value else ''}" for work, asks_for_a_value in lines)
    if type(answer) is not list or len(answer) != len(wanted) or not all(type(each) is int for each in answer):
        return f"lines of {what}: a list of {len(wanted)} whole numbers was expected, and it is {described(answer)}"
    asked = [each for _, each in lines]
    places = {
        "lines that ask": [at for at, each in enumerate(asked) if each],
        "lines that record": [at for at, each in enumerate(asked) if not each],
        "the end of the block": [len(lines)],
    }[part]
    wrong = [at for at in places if answer[at] != wanted[at]]
    if not wrong:
        return None
    at = wrong[0]
    why = ""
    if at < len(lines) and answer[at] == lines[at][0]:
        why = "; that is the line's own work, as in eager mode"
    elif at < len(lines) and answer[at] == sum(work for work, _ in lines[: at + 1]):
        why = "; what has been run before is not run again"
    elif at == len(lines):
        why = "; the end of the block runs what is left"
    elif answer[at] == wanted[at] - lines[at][0]:
        why = "; the operations of the line itself run, too"
    name = f"line {at + 1}" if at < len(lines) else "the end"
    return f"lines of {what}: {name} shows {answer[at]} ms and should show {wanted[at]} ms{why}"


def _judge(cases: Cases, answers: Any) -> Any:
    said = by_case(SEEN, [(part, (part, case)) for part, case in cases], answers, _wrong)
    if all(type(answer) is list and not any(answer) for answer in answers):  # right for lines that record, by chance
        return dict.fromkeys(SEEN, "no line takes any time, and neither does the end: nothing ever runs")
    return said


seen = Task(asks.seen, SEEN, _cases, _judge)
