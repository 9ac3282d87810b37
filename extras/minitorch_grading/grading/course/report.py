"""The report on a graded class: a table, the submissions to look at, and the same as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self

from ..enrolment.deadlines import IN_TIME, Penalty
from ..results import Result
from .bests import Best
from .folders import Stray
from .gradebook.ledger import Ledger
from .gradebook.marks import Mark, Who
from .handed_in import handed_in, with_time
from .journal.journal import Entry
from .names import visible

if TYPE_CHECKING:
    from ..collecting.attempts import Attempt


@dataclass(frozen=True)
class Row:
    """A student's result for an exercise, as every report and every export sees it.

    Attributes:
        student, exercise: whose it is, and for what.
        result: points, reasons and incidents, as the grader found them.
        marks: the points in the gradebook, by cell; a person may have given others.
        penalty: for being late.
        attempt: the attempt that was graded, if it was collected.
        comments: what a person wrote, by cell.
    """

    student: str
    exercise: str
    result: Result
    marks: Mapping[str, Mark] = field(default_factory=dict)
    penalty: Penalty = IN_TIME
    attempt: Attempt | None = None
    comments: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, who: Who, ledger: Ledger, entry: Entry | None, folder: Path) -> Self:
        """What gradebook, journal and the time in the folder say of a submission."""
        result = with_time(entry.result if entry else Result(), handed_in(folder)[1])
        penalty, comments = Penalty(ledger.penalties.get(who, 0.0)), ledger.comments.get(who, {})
        return cls(*who, result, ledger.marks.get(who, {}), penalty, comments=comments)

    @property
    def waits(self) -> list[str]:
        """The cells of which formgrader says that a person has still to give points or to look."""
        return [cell for cell, mark in self.marks.items() if mark.waits]

    @property
    def regraded(self) -> list[str]:
        """The cells that were graded again since a person gave points for them."""
        return [cell for cell in self.waits if self.marks[cell].person is not None]

    @property
    def why(self) -> list[str]:
        """Why cells wait, and which have more points by hand than they can give."""
        waits = self.waits
        why = [str(incident) for incident in self.result.incidents if incident.look] if waits else []
        why += [f"{each.cell}: {each.reason}" for each in self.result.graded if each.manual and each.cell in waits]
        if self.regraded:
            why.append(f"{', '.join(self.regraded)}: graded again since a person gave points ({self.hand})")
        ungraded = [cell for cell in waits if self.marks[cell].program is None and self.marks[cell].person is None]
        if not why and ungraded:
            why.append(f"{', '.join(ungraded)}: not graded since the exercise was changed")
        above = {cell: mark for cell, mark in self.marks.items() if mark.person is not None and mark.person > mark.of}
        return why + [f"{cell} has {mark.points:g} points by hand, of {mark.of:g}" for cell, mark in above.items()]

    @property
    def look(self) -> bool:
        """Whether a person has still to look at its incidents."""
        return self.result.look and bool(self.waits or not self.marks)

    @property
    def is_undecided(self) -> bool:
        """Whether it has no points because of what a person has still to look at: they are not known yet."""
        return self.look and not self.points

    @property
    def score(self) -> str:
        """The points in words; none as long as they are unknown."""
        return f"{'?' if self.is_undecided else f'{self.points:g}'}/{self.of:g}"

    @property
    def counts(self) -> float:
        """The points that count: less what being late costs."""
        return max(0.0, self.points - self.penalty.points)

    @property
    def kinds(self) -> Counter[str]:
        """The kinds of incidents with their numbers."""
        return Counter(incident.kind for incident in self.result.incidents)

    @property
    def points(self) -> float:
        """The points that were earned, or that a person gave."""
        return sum(mark.points for mark in self.marks.values()) if self.marks else self.result.points

    @property
    def of(self) -> float:
        """The maximum of points."""
        return sum(mark.of for mark in self.marks.values()) if self.marks else self.result.of

    @property
    def by_hand(self) -> dict[str, float]:
        """The points that a person gave, extra credit included, by cell."""
        return {cell: mark.points for cell, mark in self.marks.items() if mark.is_by_hand}

    @property
    def hand(self) -> str:
        """How many cells have points by hand, and how these differ from what the checks give now; empty if none has."""
        marks = [mark for mark in self.marks.values() if mark.is_by_hand]
        differ = sum(mark.points - mark.program for mark in marks if mark.program is not None)
        more = f", {abs(differ):g} {'more' if differ > 0 else 'fewer'} than the checks give now" if differ else ""
        return f"{len(marks)} by hand{more}" if marks else ""

    def __str__(self) -> str:
        return f"{self.student} {self.exercise} {self.score}" + (f"  {', '.join(self.kinds)}" if self.kinds else "")

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "student": self.student,
            "exercise": self.exercise,
            "points": self.points,
            "of": self.of,
            "by_hand": self.by_hand,
            "look": self.look,
            **self.result.to_json(),
        }


@dataclass(frozen=True)
class Report:
    """All results, the paths among the submissions that were not graded, the best counts, and what else to know."""

    rows: list[Row]
    strays: list[Stray]
    notes: list[str] = field(default_factory=list)
    bests: Sequence[Best] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "submissions": [row.to_json() for row in self.rows],
            "not_graded": [{"path": visible(each.path), "reason": each.reason} for each in self.strays],
            "bests": [each.to_json() for each in self.bests],
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
            f"{exercise}: {len(rows)} submission{'' if len(rows) == 1 else 's'}, "
            f"median {median([row.points for row in rows if not row.is_undecided] or [0]):g} points",
        ]
        lines.append(f"  {'student':<{width}}  {'points':>9}  incidents")
        for row in rows:
            named = ", ".join(f"{kind} ×{count}" if count > 1 else kind for kind, count in row.kinds.items())
            look = "  ← look at it" if row.look or row.regraded else ""
            hand = f"  {row.hand}" if row.hand else ""
            lines.append(f"  {row.student:<{width}}  {row.score:>9}  {named}{hand}{look}".rstrip())
        lines += [f"  {each}" for each in self.bests if each.exercise == exercise]
        return lines
