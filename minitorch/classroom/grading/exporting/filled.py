"""An export that was made: what was written, and what an instructor has to know about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .standings import Standing, Standings


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


@dataclass(frozen=True)
class Export:
    """What was written: files, the number of points in them, those who were late, and notes for a person to read.

    `is_complete` says whether everybody who handed something in has points there.
    """

    written: list[Path]
    count: int
    late: list[Standing] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_complete: bool = True

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        late = [
            {
                "student": each.student,
                "exercise": each.exercise,
                "earned": each.earned,
                "points": each.points,
                "penalty": each.penalty.points,
                "days": each.penalty.days,
                "assumed": each.penalty.assumed,
            }
            for each in self.late
        ]
        return {"written": [str(path) for path in self.written], "count": self.count, "late": late, "notes": self.notes}

    def __str__(self) -> str:
        lines = [f"{self.count} written to {', '.join(map(str, self.written))}"]
        if self.late:
            lines += ["", "Late:"]
            lines += [
                f"  {each.student} {each.exercise}: {each.earned:g} earned, {each.penalty}, {each.points:g} count"
                for each in self.late
            ]
        lines += [line for note in self.notes for line in ("", note)]
        return "\n".join(lines)


def late(found: Standings, exercises: Sequence[str]) -> list[Standing]:
    """Those who were late for some exercises, in order."""
    return [each for key, each in sorted(found.graded.items()) if each.penalty.days and key[1] in exercises]


def notes(found: Standings, exercises: Sequence[str], unknown: Sequence[str] = ()) -> list[str]:
    """What an instructor should know before the points are published.

    Args:
        found: all points.
        exercises: those that are exported.
        unknown: students with points for whom the file has no row.
    """
    said = []
    if waiting := [" ".join(who) for who in found.waiting if who[1] in exercises]:
        said.append(f"Not graded yet, and left empty: {', '.join(waiting)}. `minitorch grade` goes on.")
    if undecided := [" ".join(who) for who in sorted(found.undecided) if who[1] in exercises]:
        said.append(f"Left empty until a person has looked, since an incident took all points: {', '.join(undecided)}.")
    if by_hand := [" ".join(who) for who, each in sorted(found.graded.items()) if each.by_hand and who[1] in exercises]:
        said.append(f"A person has still to look at: {', '.join(by_hand)}.")
    if unknown:
        said.append(f"With points, but not in the file: {', '.join(unknown)}.")
    return said


def number(points: float) -> str:
    """Points as a cell, with two decimals at most, as platforms keep them."""
    return f"{round(points, 2):g}"


def comment(standing: Standing) -> str:
    """A sentence about a penalty; empty if there is none."""
    if not standing.penalty.days:
        return ""
    return f"{number(standing.earned)} points were earned; {standing.penalty}, so {number(standing.points)} count."
