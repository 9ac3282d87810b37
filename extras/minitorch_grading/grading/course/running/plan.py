"""Which submissions have to be graded: those of which no result is known that was made from the same things.

Whatever a folder does when it is looked at concerns this one submission, and is its incident.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from minitorch.errors import CommandError

from ...incidents import Incident
from ...results import Result
from ...submission.preflight import Part, read
from ..folders import Course
from ..gradebook.marks import Who
from ..handed_in import handed_in
from ..journal.journal import Entry
from .keys import work_of


@dataclass(frozen=True)
class Item:
    """One submission, and what is known of it.

    Attributes:
        who: the student and the exercise.
        conditions: a digest of those under which it would be graded now.
        before: its last line in the journal.
        work: a digest of what is in the folder now.
        when: when it was handed in, if that is known.
        wrong: what is wrong with the time.
        trouble: why the folder could not be looked at; empty if it could.
        attempt: the number of the attempt, if it is graded now.
    """

    who: Who
    conditions: str
    before: Entry | None
    work: str = ""
    when: datetime | None = None
    wrong: Incident | None = None
    trouble: str = ""
    attempt: int = 1

    @property
    def is_known(self) -> bool:
        """Whether the last result was made from what is there now."""
        return self.before is not None and (self.before.conditions, self.before.work) == (self.conditions, self.work)


@dataclass
class Plan:
    """What is to be graded, what is kept as it is, and what cannot be graded in part."""

    todo: list[Item] = field(default_factory=list)
    kept: list[Item] = field(default_factory=list)
    passed_over: list[Item] = field(default_factory=list)


def looked_at(course: Course, who: Who, conditions: str, before: Entry | None, largest: int) -> Item:
    """Look at a submission's folder; notebooks may have this many bytes without their outputs."""
    item = Item(who, conditions, before)
    folder = course.submitted.joinpath(*who)
    try:
        when, wrong = handed_in(folder)
        return replace(item, work=work_of(read(folder, who[1], largest)), when=when, wrong=wrong)
    except Exception as error:  # whatever it is, it is this submission's alone
        return replace(item, trouble=f"looking at its folder: {type(error).__name__}: {error}")


def planned(course: Course, items: Iterable[Item], again: bool) -> Plan:
    """Everything that is not known, or `again` everything; a failure of the grader's twice, and then no more."""
    plan = Plan()
    for item in items:
        before = item.before
        if again or before is None or not item.is_known:
            plan.todo.append(item)
        elif not before.is_final:
            plan.todo.append(replace(item, attempt=before.attempt + 1))
        elif before.result.failed or all(made(*item.who).exists() for made in (course.feedback, course.autograded)):
            plan.kept.append(item)
        else:
            plan.todo.append(item)
    return plan


# --- one task alone ----------------------------------------------------------------------------------------------


def cells_of_task(task: str, releases: Mapping[str, list[Part]]) -> dict[str, str]:
    """The graded cell of a task, by exercise.

    Args:
        task: its name (`eager.unbroadcast`, or the last part of it), or that of its cell with or without `-check`.
        releases: the cells of each exercise.

    Raises:
        CommandError: if no exercise has it, or one has several.
    """
    found: dict[str, str] = {}
    checks = [(exercise, part) for exercise, release in releases.items() for part in release if part.is_check]
    for exercise, part in checks:
        cell, name = part.name or "", part.task or ""
        if task in (cell, cell.removesuffix("-check"), name, name.rpartition(".")[2]):
            if exercise in found:
                raise CommandError(f"{task} could be {found[exercise]} or {cell} of {exercise}: name the cell")
            found[exercise] = cell
    if not found:
        cells = dict.fromkeys(part.name or "" for _, part in checks)
        raise CommandError(f"there is no task {task}; there is {', '.join(cells)}")
    return found


def planned_task(items: Iterable[Item], cells: Mapping[str, str], releases: Mapping[str, list[Part]]) -> Plan:
    """The submissions of which one task can be graded anew, while all else stays as it was recorded.

    That needs a result of this very work. Whatever has changed since, or was never graded, is passed over.

    Raises:
        CommandError: if other tasks of the exercise have changed, too.
    """
    plan = Plan()
    for item in items:
        exercise = item.who[1]
        if item.before is None or item.before.result.failed or item.before.work != item.work or item.trouble:
            plan.passed_over.append(item)
            continue
        known = {each.cell: each.of for each in item.before.result.graded}
        others = {part.name or "": part.points for part in releases[exercise] if part.points is not None}
        differing = [cell for cell in known.keys() | others.keys() if known.get(cell) != others.get(cell)]
        if changed := sorted(cell for cell in differing if cell != cells[exercise]):
            raise CommandError(
                f"{exercise} has changed in {', '.join(changed)} since {item.who[0]} was graded: grade without --task"
            )
        plan.todo.append(item)
    return plan


def merged(before: Result, now: Result, cell: str, order: Sequence[str]) -> Result:
    """The result from before with one task of the result of now.

    Args:
        before: as it was recorded.
        now: of which only the task counts.
        cell: the graded cell of the task.
        order: of all graded cells.
    """
    graded = {each.cell: each for each in before.graded} | {each.cell: each for each in now.graded if each.cell == cell}
    names = (cell, cell.removesuffix("-check"))
    incidents = [each for each in before.incidents if each.cell not in names]
    incidents += [each for each in now.incidents if each.cell in names]
    found = [graded[name] for name in order]
    return replace(now, graded=found, incidents=incidents, seconds=before.seconds)
