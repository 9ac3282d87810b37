"""Points as cells of a platform's file, and what an instructor has to know about them before they are published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....errors import CommandError
from .standings import Standing, Standings

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
            student: whose, if that is known.
            exercise: for what.
            before: what is there.
            possible: the platform's maximum.

        Raises:
            CommandError: if that is another than ours, and nobody asked for scaling.
        """
        self.met.add(student or "")
        standing = self.found.graded.get((student or "", exercise))
        if standing is None:
            if before or not self.choices.zero or self.found.has_work(student, exercise):
                return before
            self.zeros += 1
            return "0"
        if before in EXCUSED:
            self.notes.append(
                f"{student} {exercise} stays {before}, though there are {number(standing.points)} points."
            )
            return before
        self.count += 1
        return number(standing.points * self._scale(possible, standing))

    def _scale(self, possible: str, standing: Standing) -> float:
        try:
            theirs = float(possible.replace(",", "."))
        except ValueError:
            return 1.0
        if abs(theirs - standing.of) < 1e-6:
            return 1.0
        if not self.choices.scale or not standing.of:
            raise CommandError(
                f"{standing.exercise} gives {standing.of:g} points, and the platform has {theirs:g} for it: "
                "change that, or add --scale to have points scaled"
            )
        return theirs / standing.of


@dataclass(frozen=True)
class Export:
    """What was written: files, the number of points in them, those who were late, and notes for a person to read.

    `is_complete` says whether everybody who handed something in has points there.
    """

    written: list[Path]
    count: int
    late: list[Standing]
    notes: list[str]
    is_complete: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        late = [
            {"student": each.student, "exercise": each.exercise, "earned": each.earned, "points": each.points}
            | {"penalty": each.penalty.points, "days": each.penalty.days, "assumed": each.penalty.assumed}
            for each in self.late
        ]
        return {"written": [str(path) for path in self.written], "count": self.count, "late": late, "notes": self.notes}

    def __str__(self) -> str:
        lines = [f"{self.count} written to {', '.join(map(str, self.written))}"]
        lines += ["", "Late:"] if self.late else []
        lines += [
            f"  {each.student} {each.exercise}: {each.earned:g} earned, {each.penalty}, {each.points:g} count"
            for each in self.late
        ]
        return "\n".join([*lines, *(line for note in self.notes for line in ("", note))])


def notes(found: Standings, exercises: Sequence[str], met: set[str] | None) -> Iterator[str]:
    """Yield what an instructor should know before the points of some exercises are published.

    Args:
        found: all points.
        exercises: those that are exported.
        met: the students that the file has a row for; None for pages, which have no cells.
    """
    by_hand = [who for who, each in found.graded.items() if each.by_hand]
    lost = [who for who in found.graded if met is not None and who[0] not in met]
    nothing = "without points" if met is None else "left empty"
    for whose, said in (
        (found.waiting, f"Not graded yet, and {nothing}: {{}}. `minitorch grade` goes on."),
        (
            found.undecided,
            nothing.capitalize() + " until a person has looked, since an incident took all points: {}.",
        ),
        (by_hand, "A person has still to look at: {}."),
        (lost, "With points, but not in the file: {}."),
    ):
        if names := [" ".join(who) for who in sorted(whose) if who[1] in exercises]:
            yield said.format(", ".join(names))


def number(points: float) -> str:
    """Return points as a cell, with two decimals at most, as platforms keep them."""
    return f"{round(points, 2):g}"


def comment(standing: Standing | None) -> str:
    """Return a sentence about a penalty; empty if there is none."""
    if standing is None or not standing.penalty.days:
        return ""
    return f"{number(standing.earned)} points were earned; {standing.penalty}, so {number(standing.points)} count."
