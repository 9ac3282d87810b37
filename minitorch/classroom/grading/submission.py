"""One submission, from its file to points: mend it, run it in the sandbox, judge its answers out here.

A check's cell runs inside like every other, but gives answers for hidden inputs; points are given by `Task.assess`
in this process, which student code has no way into. A cell that takes the kernel with it is left out when the cells
before it are run again in a new one, so that every other task keeps its points.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..checks import MIME, TASKS, Score, Task
from .incidents import Incident
from .kernel import Kernel, Message, Ran
from .preflight import DamagedError, Part, find, mend
from .sandbox import Sandbox

GUARD = Path(__file__).with_name("guard.py").read_text()
GUARD_MIME = "application/vnd.minitorch.guard+json"
WARM_UP = "import minitorch.classroom.checks; del minitorch"  # loading the engine is not part of any cell's time
JUDGE_SECONDS = 60  # for one task; the answers may have been made to take long

# What an error that ends a cell says about it: by its name, and by the number that an OSError shows.
ERRORS = {
    "MemoryError": "memory",
    "StdinNotImplementedError": "input",
    "FileNotFoundError": "outside",
    "PermissionError": "outside",
    "URLError": "outside",
    "gaierror": "outside",
    "ConnectionError": "outside",
}
NUMBERS = {11: "processes", 12: "memory", 27: "disk", 28: "disk", 30: "outside", 101: "outside"}


@dataclass(frozen=True)
class Graded:
    """The points of one check, or why it has none.

    Attributes:
        cell: the `grade_id`.
        points: what was earned.
        of: what can be earned.
        reason: why it is not all; empty if it is.
        score: the parts of it as `Score.to_json` gives them, if there were answers.
        manual: whether a person has to give the points.
    """

    cell: str
    points: float
    of: float
    reason: str
    score: dict[str, Any] | None = None
    manual: bool = False


@dataclass
class Result:
    """What came of a submission. `notebook` is what was run, with its outputs; None if nothing could be."""

    graded: list[Graded] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    notebook: dict[str, Any] | None = None
    seconds: float = 0.0

    @property
    def points(self) -> float:
        """What was earned."""
        return sum(each.points for each in self.graded)

    @property
    def of(self) -> float:
        """What can be earned."""
        return sum(each.of for each in self.graded)

    @property
    def look(self) -> bool:
        """Whether a person should look at it."""
        return any(incident.look for incident in self.incidents)

    def to_json(self) -> dict[str, Any]:
        """As plain data, but for the notebook."""
        return {
            "graded": [vars(each) for each in self.graded],
            "incidents": [vars(each) for each in self.incidents],
            "seconds": round(self.seconds, 1),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Result:
        """What `to_json` gave, as a result again."""
        graded = [Graded(**each) for each in data["graded"]]
        return cls(graded, [Incident(**each) for each in data["incidents"]], data.get("notebook"), data["seconds"])


def grade(folder: Path, exercise: str, release: list[Part], seeds: Sequence[int], sandbox: Sandbox) -> Result:
    """Grade what a student has handed in.

    Args:
        folder: the student's files for this exercise.
        exercise: its name, which is also the notebook's.
        release: the cells that were handed out.
        seeds: from which the checks make their inputs; hidden from the student.
        sandbox: where student code runs.
    """
    began = time.monotonic()
    result = Result()
    names = {part.name for part in release if part.name}
    try:
        notebook, wrong = find(folder, exercise, names, sandbox.limits.notebook)
        parts, more = mend(notebook, release)
    except DamagedError as damaged:
        result.incidents.append(damaged.incident)
        reason = f"not graded: {damaged.incident.text}"
        result.graded = [_none(part, reason) for part in release if part.points is not None]
        return result
    result.incidents += [*wrong, *more]
    _Run(parts, seeds, sandbox, result).all()
    result.seconds = time.monotonic() - began
    return result


def _none(part: Part, reason: str, manual: bool = False) -> Graded:
    return Graded(part.name or "", 0.0, part.points or 0.0, reason, manual=manual)


class _Run:
    """The cells of one submission, one after the other, in as many kernels as it takes."""

    def __init__(self, parts: list[Part], seeds: Sequence[int], sandbox: Sandbox, result: Result) -> None:
        self.parts, self.seeds, self.sandbox, self.result = parts, seeds, sandbox, result
        self.limits = sandbox.limits
        self.end = time.monotonic() + self.limits.seconds
        self.done: list[Part] = []  # what a new kernel has to run before it can go on
        self.outputs: dict[int, list[Message]] = {}
        self.kernel: Kernel | None = None

    def all(self) -> None:
        """Run and judge everything."""
        try:
            for number, part in enumerate(self.parts):
                if part.kind == "code":
                    self._cell(number, part)
            self._leftovers()
        finally:
            self._drop()
        for part in self.parts:
            if part.points is not None and part.solution:
                reason = "left as it was handed out" if part.blank else "a person reads this answer"
                self.result.graded.append(_none(part, reason, manual=not part.blank))
        self.result.notebook = as_notebook(self.parts, self.outputs)

    def _cell(self, number: int, part: Part) -> None:
        if self.left <= 0:
            if not any(each.kind == "submission-time" for each in self.result.incidents):
                self._note(Incident("submission-time", f"more than {self.limits.seconds:g} s"), part)
            if part.is_check:
                self.result.graded.append(_none(part, "not run: the time for the whole notebook was over"))
            return
        if not self._ready():
            return self._cell(number, part)  # the time went into getting ready
        ran = self._check(number, part) if part.is_check else self._execute(part.source)
        self.outputs.setdefault(number, ran.outputs)
        incident = ran.incident or of_error(ran.error)
        if incident is not None:
            self._note(incident, part)
        if not ran.alive:
            self._drop()
        elif not part.is_check:
            self.done.append(part)

    @property
    def left(self) -> float:
        """Seconds."""
        return self.end - time.monotonic()

    def _execute(self, source: str) -> Ran:
        assert self.kernel is not None
        return self.kernel.execute(source, max(0.1, min(self.limits.cell_seconds, self.left)))

    def _ready(self) -> bool:
        """See to a kernel in which all cells so far have run; whether there was time for that."""
        if self.kernel is not None and self.kernel.is_alive:
            return True
        if self.kernel is not None:  # it ended between two cells
            self._note(self.kernel.watch.incident or Incident("kernel-died", "between two cells"), None)
        while self.left > 0:
            self._drop()
            self.kernel = Kernel(self.sandbox).__enter__()
            if not self.kernel.execute(WARM_UP, self.limits.start_seconds).alive:
                continue
            for part in list(self.done):
                if self.left <= 0:
                    return False
                if not self._execute(part.source).alive:
                    self.done.remove(part)  # it went well once: whatever it does, it cannot be relied on
                    self._note(Incident("kernel-died", "when it was run again"), part)
                    break
            else:
                return True
        return False

    def _drop(self) -> None:
        if self.kernel is not None:
            self.kernel.__exit__(None, None, None)
            self.kernel = None

    def _note(self, incident: Incident, part: Part | None) -> None:
        found = Incident(incident.kind, incident.detail, incident.cell or (part.name if part else None))
        if found not in self.result.incidents:
            self.result.incidents.append(found)

    def _leftovers(self) -> None:
        names = self.kernel.leftovers() if self.kernel is not None and self.kernel.is_alive else []
        if names:
            self._note(Incident("background", ", ".join(sorted(set(names)))[:200]), None)

    def _check(self, number: int, part: Part) -> Ran:
        """Let the check's cell give its answers, and judge them."""
        task = task_of(part)
        call = f"\nguard({list(self.seeds)})\n"
        renewed = self._execute(f"exec({GUARD + call!r}, {{}})")
        for changes in data_of(renewed.outputs, GUARD_MIME):
            if changes:
                self._note(Incident("tampered", ", ".join(map(str, changes))[:300]), part)
        ran = self._execute(part.source) if renewed.alive else renewed
        found = data_of(ran.outputs, MIME)
        # What student code has shown in between may be anything; answers are read by the judge, and are not for eyes.
        ran.outputs = [output for output in ran.outputs if MIME not in output.get("data", {})]
        if len(found) > 1:
            self._note(Incident("tampered", f"{len(found)} sets of answers where the check gives one"), part)
        if not found:
            reason = why_no_answers(ran)
            if ran.incident is None and ran.error is None:
                self._note(Incident("no-answers"), part)
            self.result.graded.append(_none(part, reason))
            return ran
        for kind in faults(found[-1]):
            self._note(Incident(kind), part)
        score = self._judge(task, found[-1], part)
        if score is None:
            self.result.graded.append(_none(part, "the answers could not be judged"))
        else:
            self.result.graded.append(
                Graded(part.name or "", score.points, float(score.of), score.reason, score.to_json())
            )
            ran.outputs.append(_shown(score))
        return ran

    def _judge(self, task: Task, answers: object, part: Part) -> Score | None:
        try:
            with deadline(JUDGE_SECONDS):
                return task.assess(answers, self.seeds)
        except Exception as error:
            self._note(Incident("grader", f"judging {task.name}: {type(error).__name__}: {error}"[:300]), part)
        return None


def task_of(part: Part) -> Task:
    """The task that a check's cell names, as it was handed out.

    Raises:
        GradingError: if there is no such task, or it gives other points than the cell says.
    """
    found = re.search(r"checks\.(\w+\.\w+)\(", part.source)
    task = TASKS.get(found[1]) if found else None
    if task is None:
        raise GradingError(f"the graded cell {part.name} calls no check of minitorch.classroom.checks")
    if task.points != part.points:
        raise GradingError(f"the cell {part.name} says {part.points:g} points and its task has {task.points}")
    return task


class GradingError(Exception):
    """The exercise itself cannot be graded: a fault of whoever made it."""


def data_of(outputs: list[Message], mime: str) -> list[Any]:
    """What was shown with this type, in order."""
    return [output["data"][mime] for output in outputs if mime in output.get("data", {})]


def why_no_answers(ran: Ran) -> str:
    """Why a check gave no answers, for the student."""
    if ran.incident is not None:
        return f"not judged: {ran.incident.text}"
    if ran.error is not None:
        return f"the check stopped with {ran.error['ename']}: {ran.error['evalue'][:500]}"
    return "the check came to its end without answers"


def faults(collected: object) -> Iterator[str]:
    """The kinds of incident that a check's answers tell of: calls that took too long, or asked for input."""
    text = json.dumps(collected)
    for kind, name in (("call-time", "timeout"), *((kind, name) for name, kind in ERRORS.items())):
        if f'{{"fault": ["{name}"' in text:
            yield kind


def of_error(error: Message | None) -> Incident | None:
    """The incident that an error is; None for the errors that everybody makes."""
    if error is None:
        return None
    name, text = error["ename"], error["evalue"]
    number = re.search(r"\[Errno (\d+)\]", text)
    kind = NUMBERS.get(int(number[1])) if number else None
    kind = kind or ERRORS.get(name)
    return Incident(kind, f"{name}: {text}"[:200]) if kind else None


def _shown(score: Score) -> Message:
    """What the student's own notebook would show, and nbgrader reads."""
    shown = score._repr_mimebundle_()
    return {"output_type": "execute_result", "data": shown, "metadata": {}, "execution_count": None}


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` after `seconds`, where the system can (not on Windows)."""
    import signal

    if not hasattr(signal, "setitimer"):
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def as_notebook(parts: list[Part], outputs: dict[int, list[Message]]) -> dict[str, Any]:
    """What was run, as a notebook that nbgrader's formgrader opens."""
    cells = []
    for number, part in enumerate(parts):
        cell: dict[str, Any] = {
            "cell_type": part.kind,
            "id": re.sub(r"[^a-zA-Z0-9_-]", "-", part.name or f"cell-{number}")[:64],
            "metadata": {"nbgrader": part.about} if part.about else {},
            "source": part.source,
        }
        if part.kind == "code":
            cell |= {"execution_count": None, "outputs": outputs.get(number, [])}
        cells.append(cell)
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
