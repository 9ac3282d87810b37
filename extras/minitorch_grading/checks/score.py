"""`Score`: points, and the reason why they are not more."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

MIME = "application/vnd.minitorch.score+json"


@dataclass(frozen=True)
class Count:
    """The number by which a right answer is scored (`golf.py`).

    Attributes:
        unit: of what was counted.
        yours: the student's number.
        best: the best that is known.
        fraction: the part of the points that it earns.
    """

    unit: str
    yours: int
    best: int
    fraction: float

    def __str__(self) -> str:
        if self.yours < self.best:
            return f"yours: {self.yours} {self.unit}, fewer than the best known: {self.best}"
        return f"yours: {self.yours} {self.unit}; best known: {self.best}"


@dataclass(frozen=True)
class Part:
    """One of the things that a task asks for.

    Attributes:
        name: what it is.
        points: what was earned, in steps of half a point.
        of: what can be earned.
        reason: why it is not all; empty if it is.
        count: the number that the points depend on, if it is one.
    """

    name: str
    points: float
    of: int
    reason: str = ""
    count: Count | None = None

    @property
    def shown(self) -> str:
        """The reason, or the number of a part with all points."""
        return self.reason or (str(self.count) if self.count else "")

    def to_json(self) -> dict[str, Any]:
        """As plain data; ``"count"`` is there if there is one."""
        found = {"name": self.name, "points": self.points, "of": self.of, "reason": self.reason}
        return found | ({"count": vars(self.count)} if self.count else {})


@dataclass(frozen=True)
class Score:
    """The outcome of a task.

    In a notebook it is shown as a small table. nbgrader reads its plain text, the points.

    Example:
        >>> print(Score("eager.example", (Part("shape", 4, 4), Part("values", 0, 6, "the sum is missing"))))
        eager.example: 4 of 10 points
          4 of 4  shape
          0 of 6  values: the sum is missing
    """

    task: str
    parts: tuple[Part, ...]

    @property
    def points(self) -> float:
        """The points earned."""
        return float(sum(part.points for part in self.parts))

    @property
    def of(self) -> int:
        """The maximum of points."""
        return sum(part.of for part in self.parts)

    @property
    def reason(self) -> str:
        """Why it is not all: the reason of each part that lacks points.

        Of those that differ in numbers only, there is one, and none that ends with the sentence of an earlier one.
        """
        said: dict[str, str] = {}
        for part in self.parts:
            words = re.sub(r"\b(?:inf|nan)\b|[^a-z]+", " ", part.reason.partition("\n")[0]).split()
            key = f" {' '.join(words)}"
            if part.reason and not any(key.endswith(each) for each in said):
                said[key] = part.reason
        return "\n".join(said.values())

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        parts = [part.to_json() for part in self.parts]
        return {"task": self.task, "points": self.points, "of": self.of, "reason": self.reason, "parts": parts}

    def __str__(self) -> str:
        lines = [f"{self.task}: {self.points:g} of {self.of} points"]
        for part in self.parts:
            head = f"{part.points:g} of {part.of}"
            first, *more = part.shown.splitlines() or [""]
            lines.append(f"  {head}  {part.name}" + (f": {first}" if first else ""))
            lines += [f"    {line}" for line in more]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": f"{self.points:g}", "text/html": self._html(), MIME: self.to_json()}

    def _html(self) -> str:
        above = ["", *(part.reason for part in self.parts)]
        rows = "".join(
            f"<tr><td style='{_CELL};text-align:right'>{part.points:g} of {part.of}</td>"
            f"<td style='{_CELL}'>{'✓' if part.points == part.of else '✗'} {html.escape(part.name)}</td>"
            f"<td style='text-align:left'>{'as above' if part.reason == last != '' else _html_of(part.shown)}</td></tr>"
            for part, last in zip(self.parts, above, strict=False)
        )
        title = f"{html.escape(self.task)}: {self.points:g} of {self.of} points"
        return f"<p><b>{title}</b></p><div style='overflow-x:auto'><table style='margin:0'>{rows}</table></div>"


_CELL = "text-align:left;white-space:nowrap;vertical-align:top"
_LISTING = "font-family:monospace;background:none;margin:0.3em 0 0 0"


def _html_of(reason: str) -> str:
    """The first line as text; the others, a listing or a table, as they are."""
    first, _, more = reason.partition("\n")
    return html.escape(first) + (f"<pre style='{_LISTING}'>{html.escape(more)}</pre>" if more else "")


def weakest(scores: Sequence[Score]) -> Score:
    """One score of several on different inputs: a part counts as it does where it counts least."""
    columns: Iterable[tuple[Part, ...]] = zip(*(score.parts for score in scores), strict=True)
    return Score(scores[0].task, tuple(min(column, key=lambda part: part.points) for column in columns))


def in_halves(fraction: float | Fraction, of: int) -> float:
    """So much of the points, rounded down to halves, and less than all unless it is all.

    Example:
        >>> in_halves(0.5, 5), in_halves(0.999, 5), in_halves(1, 5)
        (2.5, 4.5, 5.0)
    """
    return int(min(max(fraction, 0), 1) * of * 2) / 2
