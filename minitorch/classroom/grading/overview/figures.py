"""The figures of a class: points by task, histograms, the commonest reasons, incidents, and the queue for a person.

Points come from the gradebook, in which a person may have given others than the checks; reasons and incidents come from
the journal. So the report says what formgrader and the exports say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean, median
from typing import Any

from ....errors import CommandError
from ..course.bests import Best, bests_of
from ..course.folders import Course, Submission, chosen
from ..course.history import PERSON, Event, History, now
from ..course.journal import Entry, Journal
from ..course.ledger import Ledger, Mark, Who
from ..course.recorder import noticed
from ..enrolment.roster import roster_of
from ..results import Graded, Result

BINS = 10
"""Bars of a histogram, from no point to all of them."""
REASONS = 8
"""Reasons that are shown of each task."""
CHANGES = 100
"""Changes by persons that are shown, the latest first."""


@dataclass(frozen=True)
class Task:
    """One task: its mean, how many have all of its points and how many none, and the commonest reasons with counts."""

    exercise: str
    cell: str
    name: str
    of: float
    mean: float
    all_points: int
    no_points: int
    students: int
    reasons: tuple[tuple[str, int], ...]

    @property
    def share(self) -> float:
        """The mean as a part of what can be earned."""
        return self.mean / self.of if self.of else 1.0


@dataclass(frozen=True)
class Exercise:
    """One exercise: its submissions, the spread of their points, its tasks and incidents, and who handed in nothing.

    `late` says by student how many points being late costs, `bests` has the best counts where points depend on them.
    """

    name: str
    students: int
    of: float
    mean: float
    median: float
    histogram: tuple[int, ...]
    tasks: tuple[Task, ...]
    incidents: tuple[tuple[str, int], ...]
    missing: tuple[str, ...]
    late: tuple[tuple[str, float], ...] = ()
    bests: tuple[Best, ...] = ()


@dataclass(frozen=True)
class Waiting:
    """A submission that a person has to look at: formgrader says "needs manual grade"."""

    student: str
    exercise: str
    why: tuple[str, ...]
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """One student's points for an exercise, by cell, the kinds of incidents, and what being late costs beyond."""

    student: str
    exercise: str
    points: float
    of: float
    cells: Mapping[str, float]
    by_hand: tuple[str, ...]
    incidents: tuple[str, ...]
    penalty: float = 0.0


@dataclass(frozen=True)
class Overview:
    """A class."""

    exercises: tuple[Exercise, ...]
    lines: tuple[Line, ...]
    queue: tuple[Waiting, ...]
    changes: tuple[Event, ...]
    notes: tuple[str, ...] = ()

    @property
    def hardest(self) -> list[Task]:
        """All tasks, those with the smallest part of their points first."""
        return sorted((task for each in self.exercises for task in each.tasks), key=lambda task: task.share)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        hardest = [f"{task.exercise} {task.name}" for task in self.hardest]
        return {**asdict(self), "hardest": hardest}


def overview(course: Course, only: Sequence[str] = ()) -> Overview:
    """The figures of a course, as it was graded last.

    Args:
        course: where things are.
        only: names of students, of exercises, or of both; all by default.

    Raises:
        CommandError: if nothing was graded, or a name is none of theirs.
    """
    ledger = Ledger.read(course.gradebook)
    journal = Journal(course.journal).read()
    entries = journal.entries
    if not ledger.marks:
        raise CommandError(f"nothing was graded in {course.root}: `minitorch grade {course.submitted}` does it")
    found = [Submission(*who, course.submitted / who[0] / who[1]) for who in sorted(ledger.marks)]
    kept = [(each.student, each.exercise) for each in chosen(course, found, only)]
    roster = roster_of(course.root)
    history = History(course.history)
    changes = [*history.events, *noticed(ledger, history, entries, now())]
    by_hand = [event for event in reversed(changes) if event.who == PERSON and (event.student, event.exercise) in kept]
    exercises = []
    for name in sorted({exercise for _, exercise in kept}):
        students = [student for student, exercise in kept if exercise == name]
        missing = [] if only or roster is None else [each for each in roster.by_student if (each, name) not in kept]
        exercises.append(_exercise(name, students, ledger, entries, sorted(filter(None, missing))))
    queue = [each for who in kept if (each := _waiting(who, ledger.marks[who], entries.get(who)))]
    lines = [_line(who, ledger, entries.get(who)) for who in kept]
    return Overview(
        tuple(exercises), tuple(lines), tuple(queue), tuple(by_hand[:CHANGES]), (*journal.notes, *history.notes)
    )


def _exercise(
    name: str, students: list[str], ledger: Ledger, entries: Mapping[Who, Entry], missing: list[str]
) -> Exercise:
    marks = {student: ledger.marks[student, name] for student in students}
    totals = [sum(mark.points for mark in theirs.values()) for theirs in marks.values()]
    cells = ledger.cells[name].graded
    of = sum(most for most, _ in cells.values())
    histogram = [0] * BINS
    for total in totals:
        histogram[max(0, min(BINS - 1, int(total / of * BINS) if of else 0))] += 1
    results = {student: _result(entries.get((student, name))) for student in students}
    kinds = Counter(kind for each in results.values() for kind in {incident.kind for incident in each.incidents})
    tasks = tuple(
        _task(name, cell, most, [theirs[cell] for theirs in marks.values() if cell in theirs], results.values())
        for cell, (most, _) in cells.items()
    )
    late = tuple((each, cost) for each in students if (cost := ledger.penalties.get((each, name))))
    return Exercise(
        name, len(students), of, mean(totals), median(totals), tuple(histogram), tasks,
        tuple(kinds.most_common()), tuple(missing), late,
        bests_of({(each, name): entries[each, name] for each in students if (each, name) in entries}),
    )  # fmt: skip


def _task(exercise: str, cell: str, most: float, marks: list[Mark], results: Iterable[Result]) -> Task:
    graded = [each for result in results for each in result.graded if each.cell == cell]
    names = [each.score["task"] for each in graded if each.score]
    points = [mark.points for mark in marks]
    return Task(
        exercise, cell, names[0] if names else cell, most, mean(points) if points else 0.0,
        sum(each >= most for each in points), sum(each <= 0 for each in points), len(points), commonest(graded),
    )  # fmt: skip


def commonest(graded: Iterable[Graded]) -> tuple[tuple[str, int], ...]:
    """The commonest reasons of a task with the numbers of submissions; numbers in a reason make no difference.

    Example:
        >>> commonest([Graded("a", 0, 1, f"the sum is {n}") for n in (3, 4, 4)] + [Graded("a", 1, 1, "")])
        (('the sum is 4', 3),)
    """
    forms: dict[str, Counter[str]] = {}
    for each in graded:
        parts = (each.score or {}).get("parts") or [{"reason": each.reason}]
        for reason in {str(part["reason"]).partition("\n")[0][:200] for part in parts if part["reason"]}:
            forms.setdefault(re.sub(r"\d+", "#", reason), Counter())[reason] += 1
    counted = [(form.most_common(1)[0][0], form.total()) for form in forms.values()]
    return tuple(sorted(counted, key=lambda each: (-each[1], each[0]))[:REASONS])


def _waiting(who: Who, marks: Mapping[str, Mark], entry: Entry | None) -> Waiting | None:
    cells = [cell for cell, mark in marks.items() if mark.waits]
    above = [
        f"{cell} has {mark.points:g} points by hand, of {mark.of:g}" for cell, mark in marks.items() if _above(mark)
    ]
    if not cells and not above:
        return None
    result = _result(entry)
    why = [str(incident) for incident in result.incidents if incident.look]
    why += [f"{each.cell}: a person reads this answer" for each in result.graded if each.manual and each.cell in cells]
    given = [cell for cell in cells if marks[cell].person is not None]
    if given:
        why.append(f"{', '.join(given)}: graded again since a person gave points")
    ungraded = [cell for cell in cells if marks[cell].program is None and marks[cell].person is None]
    if not why and ungraded:
        why.append(f"{', '.join(ungraded)}: not graded since the exercise was changed")
    return Waiting(*who, (*why, *above), tuple(cells))


def _above(mark: Mark) -> bool:
    return mark.person is not None and mark.person > mark.of


def _line(who: Who, ledger: Ledger, entry: Entry | None) -> Line:
    marks, penalty = ledger.marks[who], ledger.penalties.get(who, 0.0)
    points = {cell: mark.points for cell, mark in marks.items()}
    by_hand = tuple(cell for cell, mark in marks.items() if mark.is_by_hand)
    kinds = tuple(dict.fromkeys(incident.kind for incident in _result(entry).incidents))
    return Line(*who, sum(points.values()), sum(mark.of for mark in marks.values()), points, by_hand, kinds, penalty)


def _result(entry: Entry | None) -> Result:
    return Result.from_json(entry.result) if entry else Result()
