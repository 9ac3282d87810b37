"""Who changed which points, and when: a file with a line for each change, to which lines are only ever added.

Programs say what they change. nbgrader keeps a change that a person makes in formgrader without name and time. Such one
is found by comparing the gradebook with what the history knows, and lies between two times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import Any

from ..gradebook.marks import Mark, Who
from .lines import Lines

Marks = Mapping[str, Mark]
NEW = Mark(None)
PERSON = "a person, in formgrader"
OTHER = "another program"


@dataclass(frozen=True)
class Change:
    """One value of one cell.

    Attributes:
        cell: the `grade_id`.
        field: one of `Mark`'s, or ``"cell"`` where the cell itself has gone.
        before: its value; of a cell, all of them.
        after: its value now.
    """

    cell: str
    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Event:
    """Changes of one student's points for one exercise.

    Attributes:
        at: when, or when it was found; in UTC, ISO 8601.
        since: after when, if that is all that is known.
        who: the program with the user who ran it, or `PERSON`.
        why: the reason.
        seen: what of a submission was recorded, so that a person is not asked twice to look at the same.
    """

    at: str
    who: str
    student: str
    exercise: str
    changes: tuple[Change, ...]
    why: str = ""
    since: str = ""
    seen: Any = None


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def program() -> str:
    """Who changes points when this program does."""
    name = ""
    with suppress(OSError, KeyError, ImportError):  # a user without a name
        name = getuser()
    return f"minitorch grade, run by {name}" if name else "minitorch grade"


def changes(before: Marks, after: Marks) -> tuple[Change, ...]:
    """The differences between two states of a student's marks for an exercise."""
    found = [Change(cell, "cell", vars(mark), None) for cell, mark in before.items() if cell not in after]
    for cell, mark in after.items():
        old = vars(before.get(cell, NEW))
        found += [Change(cell, name, old[name], value) for name, value in vars(mark).items() if old[name] != value]
    return tuple(found)


class History:
    """The history of a course. `marks` and `seen` are its last states, `notes` names its damaged lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[Event] = []
        self.marks: dict[Who, dict[str, Mark]] = {}
        self.seen: dict[Who, Any] = {}
        self._lines = Lines(path, self._take)
        self.notes = self._lines.notes

    def _take(self, line: dict[str, Any]) -> None:
        self._fold(Event(**{**line, "changes": tuple(Change(*each) for each in line["changes"])}))

    def _fold(self, event: Event) -> None:
        who = (event.student, event.exercise)
        marks = dict(self.marks.get(who, {}))
        for change in event.changes:
            if change.field == "cell":
                marks.pop(change.cell, None)
            else:
                marks[change.cell] = replace(marks.get(change.cell, NEW), **{change.field: change.after})
        self.marks[who] = marks
        if event.seen is not None:
            self.seen[who] = event.seen
        self.events.append(event)

    def add(self, events: Iterable[Event]) -> None:
        """Write some events down; when this returns they are on the disk."""
        lines = []
        for event in events:
            fields = {**vars(event), "changes": [[*vars(each).values()] for each in event.changes]}
            lines.append({name: value for name, value in fields.items() if value not in ("", None)})
            self._fold(event)
        self._lines.add(lines)
