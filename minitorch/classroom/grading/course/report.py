"""The report on a graded class: a table, the submissions to look at, and the same as plain data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ..results import Result
from .folders import Stray
from .names import visible


@dataclass(frozen=True)
class Row:
    """A student's result for an exercise."""

    student: str
    exercise: str
    result: Result

    def __str__(self) -> str:
        kinds = ", ".join(dict.fromkeys(incident.kind for incident in self.result.incidents))
        points = f"{self.result.points:g}/{self.result.of:g}"
        return f"{self.student} {self.exercise} {points}" + (f"  {kinds}" if kinds else "")

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "student": self.student,
            "exercise": self.exercise,
            "points": self.result.points,
            "of": self.result.of,
            "look": self.result.look,
            **self.result.to_json(),
        }


@dataclass(frozen=True)
class Report:
    """All results, the paths among the submissions that are none and were not graded, and what else to know."""

    rows: list[Row]
    strays: list[Stray]
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "submissions": [row.to_json() for row in self.rows],
            "not_graded": [{"path": visible(each.path), "reason": each.reason} for each in self.strays],
            "notes": self.notes,
        }

    def __str__(self) -> str:
        exercises = dict.fromkeys(row.exercise for row in self.rows)
        parts = [part for exercise in exercises for part in self._exercise(exercise)]
        if self.strays:
            parts += [
                "",
                "Not graded:",
                *(f"  {visible(each.path)}: {each.reason}" for each in self.strays),
            ]
        parts += [line for note in self.notes for line in ("", note)]
        return "\n".join(parts).strip()

    def _exercise(self, exercise: str) -> list[str]:
        rows = [row for row in self.rows if row.exercise == exercise]
        width = max(len("student"), *(len(row.student) for row in rows))
        lines = [
            "",
            f"{exercise}: {len(rows)} submissions, median {median(row.result.points for row in rows):g} points",
        ]
        lines.append(f"  {'student':<{width}}  {'points':>9}  incidents")
        for row in rows:
            points = f"{row.result.points:g}/{row.result.of:g}"
            kinds = Counter(incident.kind for incident in row.result.incidents)
            named = ", ".join(f"{kind} ×{count}" if count > 1 else kind for kind, count in kinds.items())
            look = "  ← look at it" if row.result.look else ""
            lines.append(f"  {row.student:<{width}}  {points:>9}  {named}{look}".rstrip())
        return lines
