"""A graded class as a whole: points by task, histograms, the commonest reasons, incidents, and the queue for a person.

Points come from the gradebook, in which a person may have given others than the checks; reasons and incidents come from
the journal. So the report says what formgrader and the exports say. It is shown in a terminal, as an HTML page, as CSV.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean, median
from typing import Any

from minitorch.errors import CommandError

from .course.bests import Best, bests_of
from .course.folders import Course, chosen
from .course.gradebook.ledger import Cells, Ledger
from .course.gradebook.recorder import noticed
from .course.journal.history import PERSON, Event, History, now
from .course.journal.journal import Journal
from .course.names import visible
from .course.report import Row
from .enrolment.deadlines import FILE, deadlines_of
from .enrolment.roster import roster_of
from .exporting.standings import standings
from .pages import render
from .results import Graded
from .sheets import Sheet, plain

BINS = 10  # bars of a histogram, from no point to all of them
REASONS = 8  # reasons that are shown of each task
CHANGES = 100  # changes by persons that are shown, the latest first


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

    Submissions whose points are unknown until a person has looked are left out of all means. `late` says by student
    how many points being late costs, `bests` has the best counts where points depend on them.
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

    @property
    def summary(self) -> str:
        """The submissions and their points in words."""
        return f"{self.students} submissions, mean {self.mean:.1f}, median {self.median:g} of {self.of:g} points"

    @property
    def remarks(self) -> list[str]:
        """What else there is to know, in words.

        Example:
            >>> Exercise("a", 1, 9.0, 9.0, 9.0, (), (), (), (), (("ana", 2.5), ("bob", 1.0))).remarks
            ['late: ana -2.5, bob -1; these points come off those above']
        """
        found = [str(each) for each in self.bests]
        if self.incidents:
            found.append(f"incidents: {', '.join(f'{kind} {count}' for kind, count in self.incidents)}")
        if self.missing:
            found.append(f"handed in nothing: {', '.join(self.missing)}")
        if self.late:
            costs = ", ".join(f"{student} {-cost:g}" for student, cost in self.late)
            found.append(f"late: {costs}; these points come off those above")
        return found


@dataclass(frozen=True)
class Waiting:
    """A submission that a person has to look at: formgrader says "needs manual grade"."""

    student: str
    exercise: str
    why: tuple[str, ...]
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Overview:
    """A class."""

    exercises: tuple[Exercise, ...]
    lines: tuple[Row, ...]
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
        lines = [
            {
                "student": each.student,
                "exercise": each.exercise,
                "points": None if each.is_undecided else each.points,
                "of": each.of,
                "cells": {cell: mark.points for cell, mark in each.marks.items()},
                "by_hand": list(each.by_hand),
                "incidents": list(each.kinds),
                "penalty": each.penalty.points,
            }
            for each in self.lines
        ]
        return {**asdict(replace(self, lines=())), "lines": lines, "hardest": hardest}


def overview(course: Course, only: Sequence[str] = ()) -> Overview:
    """The figures of a course, as it was graded last; nothing is written.

    Args:
        course: where things are.
        only: names of students, of exercises, or of both; all by default.

    Raises:
        CommandError: if nothing was graded, or a name is none of theirs.
    """
    ledger = Ledger.read(course.gradebook)
    journal = Journal(course.journal).read()
    if not ledger.marks:
        raise CommandError(f"nothing was graded in {course.root}: `minitorch grade {course.submitted}` does it")
    kept = chosen(course, sorted(ledger.marks), only)
    rows = [Row.read(who, ledger, journal.entries.get(who), course.submitted.joinpath(*who)) for who in kept]
    roster = roster_of(course.root)
    history = History(course.history)
    changes = [*history.events, *noticed(ledger, history, journal.entries, now())]
    by_hand = [event for event in reversed(changes) if event.who == PERSON and (event.student, event.exercise) in kept]
    exercises = []
    for name in sorted({exercise for _, exercise in kept}):
        missing = [] if only or roster is None else [each for each in roster.by_student if (each, name) not in kept]
        theirs = [row for row in rows if row.exercise == name]
        bests = bests_of({who: each for who, each in journal.entries.items() if who in kept and who[1] == name})
        exercises.append(_exercise(name, theirs, ledger.cells[name], sorted(filter(None, missing)), bests))
    waiting = [row for row in rows if row.waits or row.why]
    queue = tuple(Waiting(row.student, row.exercise, tuple(row.why), tuple(row.waits)) for row in waiting)
    found = standings(course, deadlines_of(course.root)) if (course.root / FILE).is_file() else None
    untimed = found.untimed({name for _, name in kept}) if found else []
    notes = (*journal.notes, *history.notes, *untimed)
    return Overview(tuple(exercises), tuple(rows), queue, tuple(by_hand[:CHANGES]), notes)


def _exercise(name: str, rows: list[Row], cells: Cells, missing: list[str], bests: tuple[Best, ...]) -> Exercise:
    decided = [row for row in rows if not row.is_undecided]
    totals = [row.points for row in decided] or [0.0]
    of = sum(most for most, _ in cells.graded.values())
    histogram = [0] * BINS
    for row in decided:
        histogram[max(0, min(BINS - 1, int(row.points / of * BINS) if of else 0))] += 1
    kinds = Counter(kind for row in rows for kind in row.kinds)
    tasks = tuple(_task(name, cell, most, decided) for cell, (most, _) in cells.graded.items())
    late = tuple((row.student, row.penalty.points) for row in rows if row.penalty.points)
    return Exercise(
        name, len(rows), of, mean(totals), median(totals), tuple(histogram), tasks, tuple(kinds.most_common()),
        tuple(missing), late, bests,
    )  # fmt: skip


def _task(exercise: str, cell: str, most: float, rows: list[Row]) -> Task:
    graded = [each for row in rows for each in row.result.graded if each.cell == cell]
    name = graded[0].task if graded else cell
    points = [row.marks[cell].points for row in rows if cell in row.marks]
    return Task(
        exercise, cell, name, most, mean(points) if points else 0.0,
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
        parts = each.parts or [{"reason": each.reason}]
        for reason in {str(part["reason"]).partition("\n")[0][:200] for part in parts if part["reason"]}:
            forms.setdefault(re.sub(r"\d+", "#", reason), Counter())[reason] += 1
    counted = [(form.most_common(1)[0][0], form.total()) for form in forms.values()]
    return tuple(sorted(counted, key=lambda each: (-each[1], each[0]))[:REASONS])


WIDTH = 40  # characters of the longest bar
SHOWN = 15  # submissions of the queue, and changes, in a terminal


def text(found: Overview) -> str:
    """Return the figures for a terminal."""
    lines = [line for exercise in found.exercises for line in _figures(exercise)]
    if len(found.hardest) > 1:
        lines += ["", "The hardest tasks"]
        lines += [f"  {task.share:>4.0%}  {task.exercise} {task.name}" for task in found.hardest[:5]]
    lines += ["", f"For a person to look at: {len(found.queue)}"]
    lines += [f"  {each.student} {each.exercise}: {_short('; '.join(each.why), 160)}" for each in found.queue[:SHOWN]]
    if len(found.queue) > SHOWN:
        lines.append(f"  ... and {len(found.queue) - SHOWN} more; the page and --json have all")
    if found.changes:
        lines += [
            "",
            "Points that persons changed, the latest first",
            *(f"  {said(each)}" for each in found.changes[:SHOWN]),
        ]
    return "\n".join([*lines, *(line for note in found.notes for line in ("", note))]).strip()


def page(found: Overview) -> str:
    """Return the figures at full length as an HTML page."""
    return render("report", title="The class", found=found, label=label, said=said)


def said(event: Event) -> str:
    """A change of points in words."""
    when = f"between {event.since} and {event.at}" if event.since else event.at
    words = {"person": "points", "extra": "extra credit", "waits": "to be looked at"}
    changes = [
        f"{each.cell} {words[each.field]} {_value(each.before)} → {_value(each.after)}"
        for each in event.changes
        if each.field in words
    ]
    return f"{event.student} {event.exercise}: {', '.join(changes)} ({when})"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:g}" if isinstance(value, float | int) else visible(value)


def _short(text: str, most: int) -> str:
    """A text for a line of a terminal."""
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 3].rstrip()}..."


def label(number: int) -> str:
    """The part of all points that a bar of a histogram stands for.

    Example:
        >>> label(0), label(9)
        ('0-9 %', '90-100 %')
    """
    step = 100 // BINS
    return f"{number * step}-{100 if number == BINS - 1 else (number + 1) * step - 1} %"


def _figures(exercise: Exercise) -> list[str]:
    lines = ["", f"{exercise.name}: {exercise.summary}"]
    most = max(*exercise.histogram, 1)
    for number, count in enumerate(exercise.histogram):
        lines.append(f"  {label(number):>9} {'█' * round(WIDTH * count / most)} {count or ''}".rstrip())
    for task in exercise.tasks:
        lines.append(
            f"  {task.share:>4.0%}  {task.name}: mean {task.mean:.1f} of {task.of:g}, all points {task.all_points}, "
            f"none {task.no_points}"
        )
        lines += [f"        {count:>4} × {_short(reason, 110)}" for reason, count in task.reasons[:3]]
    return lines + [f"  {each}" for each in exercise.remarks]


def sheet(found: Overview) -> str:
    """A line for each student, exercise and task, as CSV."""
    header = ["student", "exercise", "cell", "points", "of", "by hand", "late", "incidents"]
    rows = []
    for line in found.lines:
        name = plain(line.student)
        for cell, mark in line.marks.items():
            by_hand = "yes" if mark.is_by_hand else ""
            points = "" if line.is_undecided else f"{mark.points:g}"
            rows.append([name, line.exercise, cell, points, f"{mark.of:g}", by_hand, "", ""])
        by_hand, late = "yes" if line.by_hand else "", f"{-line.penalty.points:g}" if line.penalty.points else ""
        total = "" if line.is_undecided else f"{line.points:g}"
        rows.append([name, line.exercise, "", total, f"{line.of:g}", by_hand, late, " ".join(line.kinds)])
    return Sheet(header, rows).text()
