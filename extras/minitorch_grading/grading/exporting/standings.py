"""Each student's points for an exercise, out of the gradebook, with what is taken for being late.

Penalties are entered into the gradebook, so that formgrader and `nbgrader export` show the same as `minitorch export`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from minitorch.errors import CommandError

from ..collecting.attempts import ABOUT, current
from ..collecting.collect import absent, strangers
from ..course.bests import Best, bests_of
from ..course.folders import Course
from ..course.gradebook.gradebook import Book
from ..course.gradebook.ledger import Ledger
from ..course.gradebook.marks import Who
from ..course.handed_in import handed_in
from ..course.journal.journal import Journal
from ..course.names import sentences, visible
from ..course.report import Row
from ..course.running.keys import work_of
from ..enrolment.deadlines import FILE, Deadlines, Rules
from ..limits import Limits
from ..submission.preflight import read

UNTIMED = (
    "Whether it is late is not known, since there is a due date and no time: {}. `minitorch collect --worksheet` with "
    f"Moodle's worksheet, `timestamp.txt`, or `handed_in` in {FILE} says when it was handed in."
)


@dataclass(frozen=True)
class Standings:
    """All points of some exercises.

    Attributes:
        exercises: their names.
        rows: those that are graded, in order.
        waiting: the work that is not graded yet, or whose time is not known.
        notes: why it is not known.
        bests: the best counts of the class.
    """

    exercises: tuple[str, ...]
    rows: dict[Who, Row]
    waiting: tuple[Who, ...]
    notes: tuple[str, ...] = ()
    bests: tuple[Best, ...] = ()

    def graded(self, student: str | None, exercise: str) -> Row | None:
        """The row of a student who has points; None also if they are not known before a person has looked."""
        row = self.rows.get((student or "", exercise))
        return None if row is None or row.is_undecided else row

    def has_work(self, student: str, exercise: str) -> bool:
        """Whether a student has handed in something, graded or not."""
        return (student, exercise) in self.rows or (student, exercise) in self.waiting

    def untimed(self, exercises: Collection[str]) -> list[str]:
        """Return a note on work that has a due date and no time, and of which no platform says whether it is late."""
        rows = (row for row in self.rows.values() if row.exercise in exercises and not row.penalty.is_known)
        theirs = [row for row in rows if not (row.attempt and row.attempt.has_mark)]
        return sentences((UNTIMED, [f"{row.student} {row.exercise}" for row in theirs]))

    def maximum(self, exercise: str) -> float:
        """The points that an exercise can give."""
        return max((each.of for each in self.rows.values() if each.exercise == exercise), default=0.0)


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
    ledger, entries = Ledger.read(course.gradebook), Journal(course.journal).read().entries
    marked = sorted(who for who, marks in ledger.marks.items() if marks and (not only or who[1] in only))
    exercises = tuple(sorted({exercise for _, exercise in marked}))
    if strange := [name for name in only if name not in exercises]:
        raise CommandError(f"nothing was graded for {strange[0]}")
    folders = [each for name in exercises for each in course.submitted.glob(f"[!.]*/{name}") if each.is_dir()]
    rows, notes = {}, []
    for who in marked:
        folder = course.submitted.joinpath(*who)
        try:
            attempt, entry = current(course.root, *who, folder), entries.get(who)
        except (ValueError, KeyError, TypeError, OSError) as error:
            notes.append(f"What was collected of {' '.join(who)} cannot be read ({visible(error)}): mend {ABOUT}.")
            continue
        if attempt and (entry is None or entry.work != work_of(read(folder, who[1], Limits().notebook))):
            continue  # another attempt was graded than the one that counts now
        row = replace(Row.read(who, ledger, entry, folder), attempt=attempt)
        when, is_late = (handed_in(folder)[0], False) if attempt is None else (attempt.first, attempt.late)
        rows[who] = replace(row, penalty=deadlines.penalty(*who, when, is_late, row.points, row.of))
    waiting = sorted({(each.parent.name, each.name) for each in folders} - rows.keys())
    return Standings(exercises, rows, tuple(waiting), tuple(notes), bests_of(entries))


def apply(rules: Rules, course: Course, exercises: Iterable[str]) -> list[str]:
    """Enter penalties into the gradebook; returns notes on who was late and who handed in nothing."""
    exercises = list(exercises)
    before, untimed = Ledger.read(course.gradebook), list[str]()
    if before.marks and ((course.root / FILE).is_file() or any(before.penalties.values())):
        enter_penalties(course, found := standings(course, rules.deadlines))
        untimed = found.untimed(exercises)
    late: dict[str, list[str]] = {exercise: [] for exercise in exercises}
    for (student, exercise), points in sorted(Ledger.read(course.gradebook).penalties.items()):
        if points and exercise in late:
            late[exercise].append(f"{student} {-points:g}")
    missing = absent(course, rules.roster, exercises)
    notes = sentences(
        *(
            (f"Being late costs points in {name}, which the table has not taken off: {{}}.", late[name])
            for name in late
        ),
        *((f"Nothing was handed in for {name} by {{}}.", missing[name]) for name in missing),
    )
    return [*untimed, *notes, *strangers(course, rules.roster)]


def enter_penalties(course: Course, found: Standings) -> None:
    """Make the penalties in the gradebook those of the rules; points stay as they are."""
    before = Ledger.read(course.gradebook).penalties
    changed = {
        who: row.penalty.points
        for who, row in found.rows.items()
        if not row.is_undecided and abs(row.penalty.points - before.get(who, 0.0)) > 1e-9
    }
    if changed:
        with closing(Book(course.gradebook)) as book, book.transaction():
            for who, points in changed.items():
                book.penalise(who, points)
