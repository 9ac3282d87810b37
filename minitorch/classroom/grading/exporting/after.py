"""The rest of a grading run: penalties for being late in the gradebook, and who handed in nothing.

Formgrader and `nbgrader export` then show the same penalties as `minitorch export`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass

from ..collecting.collect import absent
from ..course.folders import Course
from ..course.gradebook import Book
from ..course.ledger import Ledger
from ..enrolment.deadlines import FILE, Deadlines, deadlines_of
from ..enrolment.roster import Roster, roster_of
from .standings import standings


@dataclass(frozen=True)
class Rules:
    """The roster and the due dates of a course. Grading reads them first, and says a mistake in them at once."""

    deadlines: Deadlines
    roster: Roster | None

    @classmethod
    def of(cls, course: Course) -> Rules:
        """Those in the folder of a course.

        Raises:
            CommandError: if they cannot be read.
        """
        return cls(deadlines_of(course.root), roster_of(course.root))

    def apply(self, course: Course, exercises: Iterable[str]) -> list[str]:
        """Enter penalties into the gradebook; returns notes on who was late and who handed in nothing."""
        enter_penalties(course, self.deadlines)
        exercises = list(exercises)
        late: dict[str, list[str]] = {exercise: [] for exercise in exercises}
        for (student, exercise), points in sorted(Ledger.read(course.gradebook).penalties.items()):
            if points and exercise in late:
                late[exercise].append(f"{student} {-points:g}")
        return [
            f"Being late costs points in {exercise}, which the table has not taken off: {', '.join(costs)}."
            for exercise, costs in late.items()
            if costs
        ] + [
            f"Nothing was handed in for {exercise} by {', '.join(missing)}."
            for exercise, missing in absent(course, self.roster, exercises).items()
            if missing
        ]


def enter_penalties(course: Course, deadlines: Deadlines) -> None:
    """Make the penalties in the gradebook those of the rules; points stay as they are."""
    before = Ledger.read(course.gradebook)
    if not before.marks or not ((course.root / FILE).is_file() or any(before.penalties.values())):
        return
    found = standings(course, deadlines).graded
    changed = {
        who: standing.penalty.points
        for who, standing in found.items()
        if abs(standing.penalty.points - before.penalties.get(who, 0.0)) > 1e-9
    }
    if changed:
        with closing(Book(course.gradebook)) as book, book.transaction():
            for who, points in sorted(changed.items()):
                book.penalise(who, points)
