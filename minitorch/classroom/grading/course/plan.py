"""Which submissions have to be graded: those of which no result is known that was made from the same things.

Whatever a folder does when it is looked at concerns this one submission, and is its incident.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....errors import CommandError
from ..results import Result
from ..submission.preflight import Part
from .folders import Course, Submission
from .journal import Entry
from .keys import work_of
from .marks import Who


@dataclass(frozen=True)
class Item:
    """One submission, and what is known of it.

    Attributes:
        submission: the folder.
        conditions: a digest of those under which it would be graded now.
        work: a digest of what is in the folder now.
        before: its last line in the journal.
        attempt: the number of the attempt, if it is graded now.
        trouble: why the folder could not be looked at; empty if it could.
    """

    submission: Submission
    conditions: str
    work: str
    before: Entry | None
    attempt: int = 1
    trouble: str = ""

    @property
    def who(self) -> Who:
        """The student and the exercise."""
        return self.submission.student, self.submission.exercise

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


def items(
    found: Iterable[Submission], conditions: Mapping[str, str], entries: Mapping[Who, Entry], largest: int
) -> list[Item]:
    """Look at each submission's folder.

    Args:
        found: the submissions.
        conditions: of each exercise.
        entries: of the journal.
        largest: number of bytes of the largest notebook that is graded.
    """
    made = []
    for each in found:
        before = entries.get((each.student, each.exercise))
        try:
            work, trouble = work_of(each.folder, largest), ""
        except Exception as error:  # whatever it is, it is this submission's alone
            work, trouble = "", f"looking at its folder: {type(error).__name__}: {error}"
        made.append(Item(each, conditions[each.exercise], work, before, 1, trouble))
    return made


def planned(course: Course, looked_at: Iterable[Item], again: bool) -> Plan:
    """Everything that is not known, or `again` everything; a failure of the grader's twice, and then no more."""
    plan = Plan()
    for item in looked_at:
        page = course.feedback(*item.who)
        before = item.before
        if again or before is None or not item.is_known:
            plan.todo.append(item)
        elif before.failed and not before.is_final:
            plan.todo.append(_retried(item, before))
        elif before.failed or page.exists():
            plan.kept.append(item)
        else:
            plan.todo.append(item)
    return plan


def _retried(item: Item, before: Entry) -> Item:
    return replace(item, attempt=before.attempt + 1)


# --- one task alone ----------------------------------------------------------------------------------------------


def exercises_with(task: str, releases: Mapping[str, list[Part]], names: Mapping[str, str]) -> dict[str, str]:
    """The graded cell of a task, by exercise.

    Args:
        task: its name (`eager.unbroadcast`, or the last part of it), or that of its cell with or without `-check`.
        releases: the cells of each exercise.
        names: the task of each graded cell.

    Raises:
        CommandError: if no exercise has it, or one has several.
    """
    found: dict[str, str] = {}
    for exercise, release in releases.items():
        for part in release:
            cell = part.name or ""
            name = names.get(cell, "") if part.is_check else ""
            if part.is_check and task in (cell, cell.removesuffix("-check"), name, name.rpartition(".")[2]):
                if exercise in found:
                    raise CommandError(f"{task} could be {found[exercise]} or {cell} of {exercise}: name the cell")
                found[exercise] = cell
    if not found:
        cells = [part.name or "" for release in releases.values() for part in release if part.is_check]
        raise CommandError(f"there is no task {task}; there is {', '.join(dict.fromkeys(cells))}")
    return found


def planned_task(looked_at: Iterable[Item], cells: Mapping[str, str], releases: Mapping[str, list[Part]]) -> Plan:
    """The submissions of which one task can be graded anew, while all else stays as it was recorded.

    That needs a result of this very work. Whatever has changed since, or was never graded, is passed over.

    Raises:
        CommandError: if other tasks of the exercise have changed, too.
    """
    plan = Plan()
    for item in looked_at:
        exercise = item.submission.exercise
        if item.before is None or item.before.failed or item.before.work != item.work or item.trouble:
            plan.passed_over.append(item)
            continue
        known = {each["cell"]: each["of"] for each in item.before.result["graded"]}
        others = {part.name: part.points for part in releases[exercise] if part.points is not None}
        differing = [cell for cell in known.keys() | others.keys() if known.get(cell) != others.get(cell)]
        if changed := sorted(str(cell) for cell in differing if cell != cells[exercise]):
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
