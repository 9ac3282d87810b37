"""Points as cells of a platform's file, whose row is whose, and what to know before points are published."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from minitorch.errors import CommandError

from ..course.names import refused, sentences, visible
from ..course.report import Row
from ..enrolment.roster import Person, Roster, folder_name
from .standings import Standings

EXCUSED = ("EX", "N/A")  # grades of Canvas that are none: excused, and not assigned to this student


@dataclass(frozen=True)
class Choices:
    """The instructor's choices.

    Attributes:
        zero: whether those who handed in nothing have 0 points; else their cells stay as they are.
        scale: whether points are scaled to the platform's maximum if that is another.
        columns: headings, by exercises or by Moodle's English headings.
    """

    zero: bool = False
    scale: bool = False
    columns: dict[str, str] = field(default_factory=dict)


@dataclass
class Filling:
    """A file while it is filled in: it counts points, and remembers students that it has a row for."""

    found: Standings
    choices: Choices
    met: set[str] = field(default_factory=set)
    count: int = 0
    zeros: int = 0
    notes: list[str] = field(default_factory=list)

    def cell(self, student: str | None, exercise: str, before: str = "", possible: str = "") -> str:
        """Return a cell: the points, if there are any, or else what is there.

        Args:
            student: whose; None for somebody who is not in the course, whose cell stays as it is.
            exercise: for what.
            before: what is there.
            possible: the platform's maximum.

        Raises:
            CommandError: if that is another than ours, and nobody asked for scaling.
        """
        if student is None:
            return before
        self.met.add(student)
        row = self.found.graded(student, exercise)
        if row is None:
            if before or not self.choices.zero or self.found.has_work(student, exercise):
                return before
            self.zeros += 1
            return "0"
        if before in EXCUSED:
            self.notes.append(f"{student} {exercise} stays {before}, though there are {number(row.counts)} points.")
            return before
        self.count += 1
        return number(row.counts * self._scale(possible, row))

    def _scale(self, possible: str, row: Row) -> float:
        try:
            theirs = float(possible.replace(",", "."))
        except ValueError:
            return 1.0
        if abs(theirs - row.of) < 1e-6:
            return 1.0
        if not self.choices.scale or not row.of:
            raise CommandError(
                f"{row.exercise} gives {row.of:g} points, and the platform has {theirs:g} for it: "
                "change that, or add --scale to have points scaled"
            )
        return theirs / row.of

    def said(self, exercises: Sequence[str], has_cells: bool) -> tuple[list[str], bool]:
        """Return what an instructor should know before points are published, and whether everybody has some there.

        Args:
            exercises: those that are exported.
            has_cells: whether there are cells, and not pages.
        """
        rows = [row for row in self.found.rows.values() if row.exercise in exercises]
        undecided = [row for row in rows if row.is_undecided]
        graded = [row for row in rows if not row.is_undecided]
        lost = [row for row in graded if has_cells and row.student not in self.met]
        waiting = [" ".join(who) for who in self.found.waiting if who[1] in exercises and not refused(who[0])]
        unnamed = [" ".join(who) for who in self.found.waiting if who[1] in exercises and refused(who[0])]
        untimed = self.found.untimed(exercises)
        nothing = "left empty" if has_cells else "without points"
        until = f"{nothing.capitalize()} until a person has looked, since an incident took all points: {{}}."
        notes = sentences(
            (f"Not graded yet, and {nothing}: {{}}. `minitorch grade` goes on.", waiting),
            ("Never graded, since no student can be called that; rename the folder: {}.", map(visible, unnamed)),
            (until, _names(undecided)),
            ("A person has still to look at: {}.", _names([row for row in graded if row.waits])),
            ("With points, but not in the file: {}.", _names(lost)),
        )
        return [*self.found.notes, *untimed, *notes, *self.notes], not (
            waiting or unnamed or lost or (has_cells and (undecided or untimed))
        )


def _names(rows: Sequence[Row]) -> list[str]:
    return [f"{row.student} {row.exercise}" for row in rows]


def number(points: float) -> str:
    """Return points as a cell, with two decimals at most, as platforms keep them."""
    return f"{round(points, 2):g}"


def comment(row: Row | None) -> str:
    """Return a sentence about a penalty; empty if there is none."""
    if row is None or not row.penalty.days:
        return ""
    return f"{number(row.points)} points were earned; {row.penalty}, so {number(row.counts)} count."


# Where a platform's number of a person is in the mark of an attempt.
MARKS = {"canvas": re.compile(r"_(\d+)_\d+_$"), "moodle": re.compile(r"_(\d+)_assignsubmission_file_?$")}


class Students:
    """The students of a course, by whatever a platform knows of them."""

    def __init__(self, roster: Roster | None, found: Standings) -> None:
        self._roster = roster
        self._names = {student for student, _ in (*found.rows, *found.waiting)}
        self._known: dict[tuple[str, str], str] = {}
        for row in found.rows.values():
            for platform, pattern in MARKS.items():
                if row.attempt is not None and (number := pattern.search(row.attempt.mark)):
                    self._known[platform, number[1]] = row.student

    def find(
        self, name: str, canvas: str = "", login: str = "", number: str = "", email: str = "", moodle: str = ""
    ) -> str | None:
        """The student with these names and numbers, as far as a platform gives them.

        None for somebody who is not on the roster. Without one it is "" for whoever has handed in nothing.
        """
        if known := self._known.get(("canvas", canvas)) or self._known.get(("moodle", moodle)):
            return known
        if self._roster is not None:
            person: Person | None = self._roster.find(name, canvas=canvas, login=login, number=number, email=email)
            return person.student if person else None
        guesses = (login, number, email, "" if canvas else folder_name(name))  # as collecting names folders
        return next((each for each in guesses if each in self._names), "")
