"""Keys of programs: pairs of things that can share a compiled program, and pairs that cannot.

The student's function makes keys. A driver says of each pair whether a dict takes the second key for the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from ..harness import Driver
from ..harness.plain import Fault, described
from .reasons import hint
from .task import Task, Verdict


def key_task(
    driver: Driver,
    parts: Mapping[str, int],
    cases: Callable[[Any], list[tuple[str, Any]]],
    apart: Callable[[Any, Any], str],
    alike: Callable[[Any], str],
    about: Callable[[Any], str],
    things: str,
    draws: Callable[[int], Any] = Random,
) -> Task:
    """A task in which the function that makes keys is written.

    Args:
        driver: of the task.
        parts: its points; the pairs of the first part can share programs, and no other part counts without it.
        cases, draws: pairs, as of `Task`.
        apart: why two things cannot share a program; empty if they can.
        alike: why a pair that was told apart can share one.
        about: a pair in words.
        things: what they are, as a plural.
    """
    name, first = driver.name.rpartition(".")[2], next(iter(parts))

    def wrong(part: str, pair: Any, answer: Any) -> str | None:
        if type(answer) is not bool:
            return f"two {name}s were to be compared, and that gives {described(answer)}"
        why = apart(*pair)
        if answer and why:
            return f"two {things} have one {name}, and cannot share a program: {why}"
        if not answer and not why:
            return f"two {things} have two {name}s, and can share a program: {alike(pair)}"
        return None

    def unhashable(part: str, fault: Fault) -> str:
        why = f"a {name} is that of a dict: it has to be hashable, such as a tuple of tuples"
        return hint("unhashable" in fault.text, why)

    def refine(said: dict[str, Verdict], answers: list[Any]) -> Mapping[str, Verdict]:
        everything = answers and all(answer is True for answer in answers)
        return dict.fromkeys(parts, f"all {things} have one {name}: nothing is told apart") if everything else said

    # Whatever writes everything down tells all apart, so no other part counts without the first.
    return Task(driver, parts, cases, wrong, draws=draws, about=about, on_fault=unhashable, refine=refine, after=first)
