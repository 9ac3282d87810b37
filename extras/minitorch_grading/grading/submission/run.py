"""One submission, from its file to points: align it with its exercise, run it, judge its answers out here.

A check's cell runs inside like every other, but answers questions with hidden inputs; points are given by
`Task.examine` in this process, which student code has no way into. A cell that takes the kernel with it is left out
when the cells before it are run again in a new one, so that every other task keeps its points.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minitorch.errors import CommandError

from ...assertions import credit, visible, why_not
from ...checks import Task
from ...checks.score import Score
from ...own_checks import PACKAGED, Checks, checks_from, sources_in
from ..incidents import Incident
from ..limits import Limits
from ..results import Graded, Result
from ..sandbox.execution import Message, Ran, execute
from ..sandbox.outputs import length
from ..sandbox.server import StartError
from .alignment import mend, same
from .autograded import as_notebook
from .judging import Examination
from .outcomes import Stopped, of_cell, of_error, why_missing, why_no_answers
from .preflight import DamagedError, Files, Part, find, of_released, parsed

if TYPE_CHECKING:
    from ..sandbox.kernel import Kernel
    from .alone import Process

PAUSES = (1.0, 5.0)  # seconds before another attempt to start a kernel


@dataclass(frozen=True)
class Setting:
    """The conditions under which a submission is graded; a student's own check has the same with other seeds.

    Attributes:
        release: the cells that were handed out.
        seeds: from which the checks make their inputs.
        start: starts a process in which cells can be run.
        limits: of a submission.
        checks: the tasks of the exercise.
    """

    release: list[Part]
    seeds: Sequence[int]
    start: Callable[[], Kernel | Process]
    limits: Limits
    checks: Checks = PACKAGED


def grade(files: Files, exercise: str, setting: Setting) -> Result:
    """Grade what a student has handed in: the notebooks of a folder, as `preflight.read` gives them."""
    wrong: list[Incident] = []
    try:
        notebook, wrong = find(files, exercise, {part.name for part in setting.release if part.name})
        result = graded(notebook, setting)
    except DamagedError as damaged:
        result = ungraded(setting.release, "not graded", damaged.incident)
    result.incidents[:0] = wrong
    return result


def graded(notebook: Any, setting: Setting) -> Result:
    """Grade a notebook that was read (`preflight.load`).

    Raises:
        DamagedError: if no cell of the exercise is in the notebook.
        GradingError: if the exercise itself cannot be graded.
    """
    return run(*mend(notebook, setting.release), setting)


def run(parts: list[Part], mended: list[Incident], setting: Setting) -> Result:
    """Run cells and judge those that are checks; the incidents come after those of mending them."""
    began = time.monotonic()
    result = Result(incidents=[*mended])
    _Run(parts, setting, result).all()
    result.seconds = time.monotonic() - began
    return result


def ungraded(release: Iterable[Part], what: str, incident: Incident) -> Result:
    """A result in which no points are known yet, because of an incident."""
    reason = f"{what}: {incident.text}"
    return Result([_none(part, reason, manual=True) for part in release if part.points is not None], [incident])


def _none(part: Part, reason: str, manual: bool = False) -> Graded:
    return Graded(part.name or "", 0.0, part.points or 0.0, reason, manual=manual, task=part.task or "")


class _Run:
    """The cells of one submission, one after the other, in as many kernels as it takes."""

    def __init__(self, parts: list[Part], setting: Setting, result: Result) -> None:
        self.parts, self.setting, self.limits, self.result = parts, setting, setting.limits, result
        self.end = time.monotonic() + self.limits.seconds
        self.done: list[Part] = []  # what a new kernel has to run before it can go on
        self.stopped: list[Stopped] = []
        self.outputs: dict[int, list[Message]] = {}
        self.kept = 0  # characters of them
        self.kernel: Kernel | Process | None = None

    def all(self) -> None:
        """Run and judge everything."""
        try:
            for number, part in enumerate(self.parts):
                if part.kind == "code" and not part.skipped:
                    self._cell(number, part)
            self._leftovers()
        finally:
            self._drop()
        for part in self.parts:
            if part.points is not None and part.solution:
                reason = "left as it was handed out" if part.blank else "a person reads this answer"
                self.result.graded.append(_none(part, reason, manual=not part.blank))
        self.result.notebook = as_notebook(self.parts, self.outputs, {part.source for part in self.setting.release})

    def _cell(self, number: int, part: Part) -> None:
        if self.left <= 0:
            if not any(each.kind == "submission-time" for each in self.result.incidents):
                self._note(Incident("submission-time", f"more than {self.limits.seconds:g} s"), part)
            if part.is_check:
                self.result.graded.append(_none(part, "not run: the time for the whole notebook was over"))
            return
        if not self._ready():
            return self._cell(number, part)  # the time went into getting ready
        task = task_of(part, self.setting.checks) if part.is_check else None
        if task is not None:
            ran = self._check(task, part)
        else:
            ran = self._assertions(part) if part.is_check else self._execute(part.source)
        if not part.is_check and (stopped := of_cell(part.name or str(number + 1), part.source, ran)):
            self.stopped.append(stopped)
        if ran.tampered:
            self._note(Incident("tampered", ran.tampered), part)
        self._keep(number, ran, part)
        incident = ran.incident or of_error(ran.error)
        if incident is not None:
            self._note(incident, part)
        if not ran.alive:
            self._drop()
        elif task is None:
            self.done.append(part)

    def _keep(self, number: int, ran: Ran, part: Part) -> None:
        """Keep the outputs of a cell, but of many cells no more than anybody can look at."""
        size = sum(map(length, ran.outputs))
        if self.kept + size > self.limits.outputs:
            self._note(Incident("output", f"all cells together more than {self.limits.outputs // 1024} KiB"), part)
            ran.outputs, size = ran.outputs[-1:] if part.is_check else [], 0  # the last one is the score
        self.kept += size
        self.outputs.setdefault(number, ran.outputs)

    @property
    def left(self) -> float:
        """Seconds."""
        return self.end - time.monotonic()

    def _execute(self, source: str, questions: Examination | None = None) -> Ran:
        assert self.kernel is not None
        return execute(self.kernel, source, max(0.1, min(self.limits.cell_seconds, self.left)), questions)

    def _ready(self) -> bool:
        """See to a kernel in which all cells so far have run; whether there was time for that."""
        if self.kernel is not None and self.kernel.is_alive:
            return True
        if self.kernel is not None:  # it ended between two cells
            self._note(self.kernel.incident or Incident("kernel-died", "between two cells"), None)
        while self.left > 0:
            self._drop()
            self.kernel = self._started()
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

    def _started(self) -> Kernel | Process:
        """A kernel; on a machine that is busy it may take more than one attempt."""
        for seconds in PAUSES:
            try:
                return self.setting.start()
            except StartError:
                time.sleep(seconds)
        return self.setting.start()

    def _drop(self) -> None:
        if self.kernel is not None:
            self.kernel.close()
            self.kernel = None

    def _note(self, incident: Incident, part: Part | None) -> None:
        found = Incident(incident.kind, incident.detail, incident.cell or (part.name if part else None))
        if found not in self.result.incidents:
            self.result.incidents.append(found)

    def _leftovers(self) -> None:
        names = self.kernel.leftovers() if self.kernel is not None and self.kernel.is_alive else []
        if names:
            self._note(Incident("background", ", ".join(sorted(set(names)))[:200]), None)

    def _assertions(self, part: Part) -> Ran:
        """Run an assert cell with its hidden tests, no line of which is in what it leaves behind."""
        source = part.source if part.tests is None else part.tests
        of = part.points or 0.0
        ran = self._execute(source)
        if ran.incident is not None or not ran.alive:
            points, reason = 0.0, f"not judged: {ran.incident.text}" if ran.incident else "the cell ended the kernel"
        elif ran.error is not None:
            missing = why_missing(ran.error["ename"], ran.error["evalue"][:500], self.stopped)
            points, reason = 0.0, missing or why_not(ran.error, source)
        else:
            points, reason = credit(ran.outputs, of)
        if ran.error is not None and source != part.source:  # lines around the one that failed are in the traceback
            ran.error["traceback"] = [reason]
        self.result.graded.append(Graded(part.name or "", points, of, reason))
        return ran

    def _check(self, task: Task, part: Part) -> Ran:
        """Let the check's cell give its answers, and judge them."""
        examination = Examination(task, self.setting.seeds)
        ran = self._execute(part.source, examination)
        if ran.changed:
            self._note(Incident("tampered", ", ".join(ran.changed)[:300]), part)
        verdict = examination.verdict
        if verdict is None:
            reason = why_no_answers(ran, self.stopped)
            if ran.incident is None and ran.error is None:
                self._note(Incident("no-answers"), part)
            self.result.graded.append(_none(part, reason))
            return ran
        for kind in examination.faults:
            self._note(Incident(kind), part)
        if isinstance(verdict, Incident):
            self._note(verdict, part)
            self.result.graded.append(_none(part, verdict.text))
        else:
            self.result.graded.append(
                Graded(part.name or "", verdict.points, float(verdict.of), verdict.reason, verdict.to_json())
            )
            ran.outputs.append(_shown(verdict))
        return ran


def task_of(part: Part, checks: Checks = PACKAGED) -> Task | None:
    """The task that a check's cell names, as it was handed out; None for an assert cell.

    Raises:
        GradingError: if there is no such task, or it gives other points than the cell says.
    """
    if part.task is None:
        return None
    task = checks.tasks.get(part.task)
    if task is None:
        whose = (
            "none of its checks.py" if checks.sources else "none of minitorch's, and there is no checks.py beside it"
        )
        raise GradingError(f"the graded cell {part.name} asks for the task {part.task}, which is {whose}")
    if task.points != part.points:
        raise GradingError(
            f"the cell {part.name} says {part.points:g} points, "
            f"and {'checks.py' if checks.sources else 'minitorch'} gives {task.points} for its task {task.name}"
        )
    return task


def refuse_other_points(content: bytes, source: Path) -> None:
    """Refuse a notebook whose cells ask for no task, or say other points than it gives, before it is handed out.

    Raises:
        CommandError: naming the cell.
    """
    checks = checks_from(sources_in(source), str(source))
    try:
        for part in of_released(parsed(content)["cells"]):
            if part.is_check:
                task_of(part, checks)
    except GradingError as error:
        raise CommandError(f"{source}: {error}") from None


def with_tests(release: Sequence[Part], solution: Sequence[Part]) -> list[Part]:
    """The cells that were handed out, of which assert cells have their hidden tests.

    Raises:
        GradingError: if an assert cell was not made of the solution's, or there is a check in its hidden tests.
    """
    known = {part.name: part for part in solution if part.name}
    made = []
    for part in release:
        if part.is_check and part.task is None:
            whole = known.get(part.name or "")
            if whole is None or not same(visible(whole.source), part.source):
                raise GradingError(f"the assert cell {part.name} is not that of the solution")
            if whole.task is not None:
                raise GradingError(
                    f"the hidden tests of the assert cell {part.name} call a check, which cannot be hidden"
                )
            part = replace(part, tests=whole.source)
        made.append(part)
    return made


class GradingError(Exception):
    """The exercise itself cannot be graded: a fault of whoever made it."""


def _shown(score: Score) -> Message:
    """The output that the student's own notebook would show, and nbgrader reads."""
    shown = score._repr_mimebundle_()
    return {"output_type": "execute_result", "data": shown, "metadata": {}, "execution_count": None}
