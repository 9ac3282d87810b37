"""Each student's points for an exercise, out of the gradebook, with what is taken for being late."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ....errors import CommandError
from ..collecting.attempts import Attempt, current
from ..course.folders import Course
from ..course.handed_in import handed_in
from ..course.journal import Journal
from ..course.ledger import Ledger
from ..course.marks import Who
from ..course.report import Row
from ..enrolment.deadlines import Deadlines, Penalty
from ..results import Result


@dataclass(frozen=True)
class Standing:
    """A student's points for an exercise.

    Attributes:
        student, exercise: whose they are, and for what.
        earned, of: as graded, and as many as there are.
        penalty: for being late.
        by_hand: whether a person has still to look at it.
        attempt: the attempt that was graded, if it was collected.
    """

    student: str
    exercise: str
    earned: float
    of: float
    penalty: Penalty
    by_hand: bool = False
    attempt: Attempt | None = None

    @property
    def points(self) -> float:
        """What counts."""
        return max(0.0, self.earned - self.penalty.points)


@dataclass(frozen=True)
class Standings:
    """All points of some exercises.

    Attributes:
        exercises: their names.
        graded: those with points.
        undecided: those without, for a reason that a person has still to look at.
        waiting: those without that are not graded yet.
    """

    exercises: tuple[str, ...]
    graded: dict[Who, Standing]
    undecided: dict[Who, Standing]
    waiting: tuple[Who, ...]

    @property
    def all(self) -> list[Standing]:
        """All that were graded, in order."""
        return [each for _, each in sorted({**self.graded, **self.undecided}.items())]

    def has_work(self, student: str | None, exercise: str) -> bool:
        """Whether a student has handed in something that has no points yet: that is never 0."""
        return (student, exercise) in self.waiting or (student, exercise) in self.undecided

    def maximum(self, exercise: str) -> float:
        """The points that an exercise can give."""
        return max((each.of for each in self.all if each.exercise == exercise), default=0.0)


def standings(course: Course, deadlines: Deadlines, only: Sequence[str] = ()) -> Standings:
    """The points of a course.

    Args:
        course: where things are.
        deadlines: the rules of being late.
        only: exercises; all that were graded by default.

    Raises:
        CommandError: if nothing was graded.
    """
    if not course.gradebook.is_file():
        raise CommandError(f"there is no {course.gradebook}: `minitorch grade {course.submitted}` makes it")
    marks = {
        who: each for who, each in Ledger.read(course.gradebook).marks.items() if each and (not only or who[1] in only)
    }
    exercises = sorted({exercise for _, exercise in marks})
    if strange := [name for name in only if name not in exercises]:
        raise CommandError(f"nothing was graded for {strange[0]}")
    entries = Journal(course.journal).read().entries
    graded: dict[Who, Standing] = {}
    undecided: dict[Who, Standing] = {}
    waiting = set(_handed_in(course, exercises))
    for who, cells in marks.items():
        attempt, when = _attempt(course, *who)
        if attempt is not None and attempt.points is None:
            continue  # another attempt was graded than the one that counts now
        row = Row(*who, Result.from_json(entries[who].result) if who in entries else Result(), cells)
        penalty = deadlines.penalty(*who, when, attempt is not None and attempt.late, row.points, row.of)
        by_hand = any(mark.waits for mark in cells.values())
        standing = Standing(*who, row.points, row.of, penalty, by_hand, attempt)
        (undecided if row.is_undecided else graded)[who] = standing
        waiting.discard(who)
    return Standings(tuple(exercises), graded, undecided, tuple(sorted(waiting)))


def _handed_in(course: Course, exercises: Iterable[str]) -> Iterable[tuple[str, str]]:
    for exercise in exercises:
        for folder in course.submitted.glob(f"*/{exercise}"):
            if folder.is_dir() and not folder.parent.name.startswith("."):
                yield folder.parent.name, exercise


def _attempt(course: Course, student: str, exercise: str) -> tuple[Attempt | None, datetime | None]:
    """The attempt that lies in `submitted/`, and when it was handed in."""
    folder = course.submitted / student / exercise
    attempt = current(course.root, student, exercise, folder)
    return attempt, handed_in(folder)[0] if attempt is None else attempt.first
