"""The zoo: for every task, wrong solutions that people hand in, each with what its reason must say, and right ones.

One file per exercise, and one with those that a check was wrong about. An animal is a plain function that needs nothing
but what the notebook's first cell imports, so that `as_cell` can put it into a notebook.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

FILES = ("eager", "graph", "rewriting", "fusion", "shortcuts")


@dataclass(frozen=True)
class Animal:
    """One solution.

    Attributes:
        task: which it solves, or does not.
        function: the solution.
        says: what the reason must say, the misconception; empty for a right solution.
        points: what it gets, where that is part of the point.
    """

    task: str
    function: Callable[..., Any]
    says: str = ""
    points: float | None = None

    @property
    def name(self) -> str:
        return f"{self.task}-{self.function.__name__}"


ANIMALS: list[Animal] = []


def wrong(task: str, says: str, points: float | None = None) -> Callable[[Any], Any]:
    """A solution that must lose points, for a reason that says this."""

    def keep(function: Any) -> Any:
        ANIMALS.append(Animal(task, function, says, points))
        return function

    return keep


def right(task: str) -> Callable[[Any], Any]:
    """A solution that is written differently from ours, and must keep all points."""

    def keep(function: Any) -> Any:
        ANIMALS.append(Animal(task, function))
        return function

    return keep


def as_cell(animal: Animal) -> str:
    """The source of a notebook's cell that hands this solution in."""
    lines = inspect.getsource(animal.function).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("def "))
    wanted = animal.task.partition(".")[2]
    return "\n".join([*lines[start:], "", "", f"{wanted} = {animal.function.__name__}"])


for _file in FILES:
    import_module(f"{__name__}.{_file}")
