"""What an instructor reads when a class is graded: a table, what to look at, and the same as plain data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from .submission import Result


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
    """All results, and the paths among the submissions that were not graded because they are none."""

    rows: list[Row]
    strays: list[Path]

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"submissions": [row.to_json() for row in self.rows], "not_graded": [str(path) for path in self.strays]}

    def __str__(self) -> str:
        exercises = dict.fromkeys(row.exercise for row in self.rows)
        parts = [part for exercise in exercises for part in self._exercise(exercise)]
        if self.strays:
            parts += ["", "Not graded, since it is no folder of an exercise:", *(f"  {path}" for path in self.strays)]
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
