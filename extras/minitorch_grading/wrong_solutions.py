"""Wrong and right solutions of an exercise, as people hand them in, each with what it must get.

A wrong solution must lose points for a reason that is said; a right one that is written otherwise must keep them all.
So they test the checks. `minitorch wrong-solutions NAME` puts each of `wrong_solutions/NAME/*.py` into the notebook of
the instructor's solution, runs what is graded there, and compares. A solution is a function that needs nothing but what
the notebook defines before its cell.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from minitorch.errors import CommandError

from .check import cells_of, read_notebook, setting
from .grading.results import Graded
from .grading.submission.alignment import names
from .grading.submission.preflight import Part
from .grading.submission.run import run
from .own_checks import checks_from, naming_the_line, sources_in

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class KnownSolution:
    """A solution, and the verdict that it must get.

    Attributes:
        task: which it solves, or does not; its last part is the name of what students write.
        function: the solution.
        says: what the reason must say, the misconception; empty for a right solution.
        points: what it gets, where that is part of the point.
        part: the part of the task that must lose points for this reason; empty if any may.
    """

    task: str
    function: Callable[..., Any]
    says: str = ""
    points: float | None = None
    part: str = ""

    @property
    def name(self) -> str:
        """The task and the name of the function."""
        return f"{self.task}-{self.function.__name__}"

    @property
    def wanted(self) -> str:
        """The name of what students write."""
        return self.task.rpartition(".")[2]


KNOWN_SOLUTIONS: list[KnownSolution] = []  # those of the files that were loaded


def wrong(task: str, says: str, points: float | None = None, part: str = "") -> Callable[[Function], Function]:
    """A decorator: a solution that must lose points, for a reason that says this."""

    def keep(function: Function) -> Function:
        KNOWN_SOLUTIONS.append(KnownSolution(task, function, says, points, part))
        return function

    return keep


def right(task: str) -> Callable[[Function], Function]:
    """A decorator: a solution that is written differently from ours, and must keep all points."""
    return wrong(task, says="")


def as_cell(solution: KnownSolution) -> str:
    """The source of a notebook's cell that hands this solution in."""
    lines = inspect.getsource(solution.function).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("def "))
    return "\n".join([*lines[start:], "", "", f"{solution.wanted} = {solution.function.__name__}"])


def solutions_in(folder: Path) -> list[KnownSolution]:
    """The solutions in the files of a folder, in order.

    Raises:
        CommandError: if there is none, or a file fails, with its line.
    """
    before = len(KNOWN_SOLUTIONS)
    for path in sorted(folder.glob("*.py")):
        spec = spec_from_file_location(f"minitorch_solutions_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        with naming_the_line({str(path)}):
            spec.loader.exec_module(module_from_spec(spec))
    found = KNOWN_SOLUTIONS[before:]
    del KNOWN_SOLUTIONS[before:]
    if not any(solution.says for solution in found):
        raise CommandError(f"there is no wrong solution in {folder}: write functions with `@wrong(task, says=...)`")
    return found


@dataclass(frozen=True)
class Verdict:
    """What became of a solution.

    Attributes:
        name: of the function; that of the notebook for the instructor's own solution.
        points, of: of the cells that grade it.
        reason: the reasons why it has not all points.
        wrong: why that is not as it should be; empty if it is.
    """

    name: str
    points: float
    of: float
    reason: str
    wrong: str


def run_solutions(exercise: str, source: Path, folder: Path, seconds: float) -> list[Verdict]:
    """Run the solution of an exercise and its wrong and right ones, in one process.

    Args:
        exercise: its name.
        source: the folder of the solutions.
        folder: the folder of the wrong solutions.
        seconds: for all of it.

    Raises:
        CommandError: if there is no such exercise, or no wrong solution of it, or no cell grades one.
    """
    path = source / exercise / f"{exercise}.ipynb"
    solutions = solutions_in(folder / exercise)
    parts = [replace(part, points=None) if part.solution else part for part in cells_of(read_notebook(path))]
    cells, counts = list(parts), []
    for solution in solutions:
        used = [part for part in parts if part.is_check and re.search(rf"\b{solution.wanted}\b", part.source)]
        if not used:
            raise CommandError(f"no graded cell of {path} uses `{solution.wanted}`, which {solution.name} is for")
        own = [part for part in parts if part.solution and solution.wanted in names(part.source)]
        cells += [Part(as_cell(solution), "code"), *used, *own]
        counts.append(len(used))
    with setting(cells, seconds, checks_from(sources_in(path.parent), str(path.parent))) as here:
        result = run(cells, [], here)
    for each in result.incidents:
        if each.kind in ("cell-time", "submission-time", "kernel-died"):
            raise CommandError(f"{folder / exercise}: {each.text}; a solution that does not end belongs to a check")
    rows = iter(result.graded)
    own_rows = list(islice(rows, sum(part.is_check for part in parts)))
    verdicts = [Verdict(*_of(f"the solution of {exercise}", own_rows), _not_all(own_rows, "it is the solution"))]
    for solution, count in zip(solutions, counts, strict=True):
        theirs = list(islice(rows, count))
        verdicts.append(Verdict(*_of(solution.function.__name__, theirs), _mismatch(solution, theirs)))
    return verdicts


def _of(name: str, rows: Sequence[Graded]) -> tuple[str, float, float, str]:
    reasons = "\n".join(dict.fromkeys(row.reason for row in rows if row.reason))
    return name, sum(row.points for row in rows), sum(row.of for row in rows), reasons


def _not_all(rows: Sequence[Graded], why: str) -> str:
    return "" if all(row.points == row.of for row in rows) else f"it must have all points: {why}"


def _mismatch(solution: KnownSolution, rows: Sequence[Graded]) -> str:
    """Why a solution did not get what it must get; empty if it did."""
    points = sum(row.points for row in rows)
    if not solution.says:
        return _not_all(rows, "it is right")
    if all(row.points == row.of for row in rows):
        return "it gets all points, and is wrong"
    reasons = [row.reason for row in rows]
    if part := solution.part:
        named = (each for row in rows for each in row.parts if each["name"] == part)
        reasons = [each["reason"] for each in named if each["points"] < each["of"]]
    if not reasons:
        return f"the part {part!r} must lose points"
    if not any(solution.says in reason for reason in reasons):
        return f"the reason must say {solution.says!r}"
    if solution.points is not None and points != solution.points:
        return f"it must get {solution.points:g} points"
    return ""


def table(exercise: str, verdicts: Sequence[Verdict]) -> str:
    """A table for a terminal."""
    width = max(len(each.name) for each in verdicts)
    lines = []
    for each in verdicts:
        said = f"WRONG: {each.wrong}" if each.wrong else "as it must be"
        lines.append(f"  {each.name:<{width}}  {each.points:>4g} of {each.of:<3g}  {said}")
        lines += [f"    {line}" for line in each.reason.splitlines() if each.wrong]
    failed = sum(bool(each.wrong) for each in verdicts)
    head = f"{failed} not as they must be" if failed else "all as they must be"
    return "\n".join([f"{exercise}: {len(verdicts)} solutions, {head}", *lines])
