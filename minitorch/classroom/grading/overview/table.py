"""The figures of a class for a terminal, and as CSV."""

from __future__ import annotations

import csv
import io

from ..course.history import Event
from ..course.names import visible
from ..sheets import plain
from .figures import BINS, Exercise, Overview, Task

WIDTH = 40  # characters of the longest bar
SHOWN = 15  # submissions of the queue, and changes, in a terminal


def text(found: Overview) -> str:
    """The figures for a terminal."""
    parts = [line for exercise in found.exercises for line in _exercise(exercise)]
    if len(found.hardest) > 1:
        parts += [
            "",
            "The hardest tasks",
            *(f"  {_share(task)}  {task.exercise} {task.name}" for task in found.hardest[:5]),
        ]
    parts += ["", f"For a person to look at: {len(found.queue)}"]
    for each in found.queue[:SHOWN]:
        parts.append(f"  {each.student} {each.exercise}: {_short('; '.join(each.why), 160)}")
    if len(found.queue) > SHOWN:
        parts.append(f"  ... and {len(found.queue) - SHOWN} more; the page and --json have all")
    if found.changes:
        parts += [
            "",
            "Points that persons changed, the latest first",
            *(f"  {said(each)}" for each in found.changes[:SHOWN]),
        ]
    return "\n".join([*parts, *(line for note in found.notes for line in ("", note))]).strip()


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


def _share(task: Task) -> str:
    return f"{task.share:>4.0%}"


def label(number: int) -> str:
    """The part of all points that a bar of a histogram stands for.

    Example:
        >>> label(0), label(9)
        ('0-9 %', '90-100 %')
    """
    step = 100 // BINS
    return f"{number * step}-{100 if number == BINS - 1 else (number + 1) * step - 1} %"


def _exercise(exercise: Exercise) -> list[str]:
    lines = [
        "",
        f"{exercise.name}: {exercise.students} submissions, mean {exercise.mean:.1f}, median {exercise.median:g} of "
        f"{exercise.of:g} points",
    ]
    most = max(*exercise.histogram, 1)
    for number, count in enumerate(exercise.histogram):
        lines.append(f"  {label(number):>9} {'█' * round(WIDTH * count / most)} {count or ''}".rstrip())
    for task in exercise.tasks:
        lines.append(
            f"  {_share(task)}  {task.name}: mean {task.mean:.1f} of {task.of:g}, all points {task.all_points}, "
            f"none {task.no_points}"
        )
        lines += [f"        {count:>4} × {_short(reason, 110)}" for reason, count in task.reasons[:3]]
    lines += [f"  {each}" for each in exercise.bests]
    if exercise.incidents:
        lines.append(f"  incidents: {', '.join(f'{kind} {count}' for kind, count in exercise.incidents)}")
    if exercise.missing:
        lines.append(f"  handed in nothing: {', '.join(exercise.missing)}")
    if exercise.late:
        lines.append(f"  late: {costs(exercise)}; these points come off those above")
    return lines


def costs(exercise: Exercise) -> str:
    """The points that being late costs, by student.

    Example:
        >>> costs(Exercise("a", 1, 9.0, 9.0, 9.0, (), (), (), (), (("ana", 2.5), ("bob", 1.0))))
        'ana -2.5, bob -1'
    """
    return ", ".join(f"{student} {-cost:g}" for student, cost in exercise.late)


def sheet(found: Overview) -> str:
    """A line for each student, exercise and task, as CSV."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(("student", "exercise", "cell", "points", "of", "by hand", "late", "incidents"))
    most = {(each.name, task.cell): task.of for each in found.exercises for task in each.tasks}
    for line in found.lines:
        name, incidents = plain(line.student), " ".join(line.incidents)
        for cell, points in line.cells.items():
            by_hand = "yes" if cell in line.by_hand else ""
            writer.writerow(
                (name, line.exercise, cell, f"{points:g}", f"{most[line.exercise, cell]:g}", by_hand, "", "")
            )
        by_hand, late = "yes" if line.by_hand else "", f"{-line.penalty:g}" if line.penalty else ""
        writer.writerow((name, line.exercise, "", f"{line.points:g}", f"{line.of:g}", by_hand, late, incidents))
    return file.getvalue()
