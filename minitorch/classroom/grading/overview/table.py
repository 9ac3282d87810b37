"""The figures of a class for a terminal, as an HTML page, and as CSV."""

from __future__ import annotations

from ..course.history import Event
from ..course.names import visible
from ..pages import render
from ..sheets import Sheet, plain
from .figures import BINS, Exercise, Overview

WIDTH = 40  # characters of the longest bar
SHOWN = 15  # submissions of the queue, and changes, in a terminal


def text(found: Overview) -> str:
    """Return the figures for a terminal."""
    lines = [line for exercise in found.exercises for line in _exercise(exercise)]
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


def _exercise(exercise: Exercise) -> list[str]:
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
        for cell, mark in (line.marks or {}).items():
            by_hand = "yes" if mark.is_by_hand else ""
            points = "" if line.is_undecided else f"{mark.points:g}"
            rows.append([name, line.exercise, cell, points, f"{mark.of:g}", by_hand, "", ""])
        by_hand, late = "yes" if line.by_hand else "", f"{-line.penalty:g}" if line.penalty else ""
        total = "" if line.is_undecided else f"{line.points:g}"
        rows.append([name, line.exercise, "", total, f"{line.of:g}", by_hand, late, " ".join(line.kinds)])
    return Sheet(header, rows).text()
