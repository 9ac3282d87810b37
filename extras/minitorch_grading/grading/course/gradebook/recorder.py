"""From results to the gradebook: what differs is written, with a line in the history, and everything else stays.

The journal says which points the checks gave; the gradebook follows it whenever the command is run. So a run that is
killed anywhere, or a gradebook that another program has changed, is put right by the next run. Points that a person
gave are the gradebook's alone, and stay as long as the cell does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from ...incidents import NOTHING
from ...results import Result
from ...submission.preflight import Part
from ..folders import Course
from ..journal.history import OTHER, PERSON, Change, Event, History, changes, now, program
from ..journal.journal import Entry
from .gradebook import Book
from .ledger import Cells, Ledger
from .marks import Mark, Who

CHANGED = "the exercise was changed"


class Recorder(ExitStack):
    """The gradebook and its history, while they are written; a context manager.

    Attributes:
        ledger: what is in the gradebook now.
        history: who changed what.
        notes: what the instructor has to know of it.
    """

    def __init__(self, course: Course, entries: Mapping[Who, Entry]) -> None:
        super().__init__()
        self.course = course
        self.ledger = Ledger.read(course.gradebook)
        self.history = History(course.history)
        self.notes = [*self.history.notes]
        self._book: Book | None = None
        self.history.add(noticed(self.ledger, self.history, entries, _changed_at(course)))

    @contextmanager
    def _writing(self) -> Iterator[Book]:
        """The gradebook, opened when there is something to write; nothing of what fails is kept."""
        if self._book is None:
            self._book = self.enter_context(closing(Book(self.course.gradebook)))
        with self._book.transaction():
            yield self._book

    def exercise(self, name: str, release: list[Part]) -> None:
        """Make the gradebook fit the exercise as it is handed out now.

        Cells that are no longer in it go, with their grades. Where the maximum of points is another one, or the cell is
        new, the points of the checks are unknown until the submission is graded again, and formgrader says so.
        """
        wanted = Cells.of(release)
        known = self.ledger.cells.get(name)
        theirs = {who: marks for who, marks in self.ledger.marks.items() if who[1] == name}
        new = {who: _refitted(marks, wanted) for who, marks in theirs.items()}
        if wanted == known and new == theirs:
            return
        events = []
        for who, marks in new.items():
            if found := changes(theirs[who], marks):
                events.append(Event(now(), program(), *who, found, CHANGED))
        self._lament(name, theirs, new)
        self.history.add(events)  # first, since points that a person gave are nowhere else
        with self._writing() as book:
            book.exercise(name, wanted)
            book.refit(name, new)
        self.ledger.cells[name] = wanted
        self.ledger.marks |= new

    def _lament(self, name: str, before: dict[Who, dict[str, Mark]], after: dict[Who, dict[str, Mark]]) -> None:
        """Say which points that a person gave went with their cells."""
        lost: dict[str, list[str]] = {}
        for who, marks in before.items():
            for cell, mark in marks.items():
                if cell not in after[who] and mark.is_by_hand:
                    lost.setdefault(cell, []).append(f"{who[0]} {mark.points:g}")
        for cell, students in lost.items():
            self.notes.append(
                f"The cell {cell} is no longer in {name}. Points that a person gave for it went with it: "
                f"{', '.join(students)} ({self.course.history.name} keeps them)."
            )

    def record(self, who: Who, result: Result, work: str, handed_in: datetime | None, why: str = "") -> None:
        """Put a result in, if it is not there. Where a person should look, formgrader says "needs manual grade".

        Of incidents one cell asks, so that looking at a submission takes one saving, and not points for every cell.
        A person is asked once: who has given points in formgrader, or saved them there, is asked again only if the
        submission, its points or its incidents have become others.

        Args:
            who: the student and the exercise.
            result: the points of the checks, and the incidents.
            work: a digest of the submission.
            handed_in: when, if that is known.
            why: the reason for new points.
        """
        seen = {"work": work, "looks": sorted({each.kind for each in result.incidents if each.look})}
        last = self.history.seen.get(who)
        is_new = last is not None and last != seen
        is_more = last is not None and (last["work"] != work or not {*seen["looks"]} <= {*last["looks"]})
        before = self.ledger.marks.get(who, {})
        after = dict(before)
        is_asked = False
        for graded in result.graded:
            points = None if graded.manual else graded.points
            old = before.get(graded.cell)
            is_other = old is None or (old.program, old.of) != (points, graded.of)
            if is_new or is_other:
                is_asked, old = True, old or Mark(None)
                waits = (graded.manual or old.person is not None) and (is_more or is_other or old.waits)
                after[graded.cell] = replace(old, program=points, of=graded.of, waits=waits)
        if is_asked and result.look and (cell := _asking(result)):
            is_nothing = any(each.kind in NOTHING for each in result.incidents)
            for each in result.graded:  # a cell that asked before asks no more, but for its own sake
                old = after[each.cell]
                is_own = (each.manual and not is_nothing) or old.person is not None
                after[each.cell] = replace(old, waits=each.cell == cell or (old.waits and is_own))
        is_later = handed_in is not None and self.ledger.handed_in.get(who) != handed_in
        if after != before or is_later or who not in self.ledger.handed_in:
            with self._writing() as book:
                book.record(who, after, handed_in)
            self.ledger.marks[who] = after
            self.ledger.handed_in[who] = handed_in or self.ledger.handed_in.get(who)
        found = changes(before, after)
        if found or last != seen:
            self.history.add([Event(now(), program(), *who, found, why, seen=seen)])


def _asking(result: Result) -> str:
    """The cell that asks for a look at incidents: the first without all of its points, or else the first; none if "".

    Example:
        >>> from minitorch.classroom.grading.results import Graded
        >>> _asking(Result([Graded("a", 2, 2, ""), Graded("b", 1, 2, ""), Graded("c", 0, 2, "")]))
        'b'
    """
    cells = [each.cell for each in result.graded]
    return next((each.cell for each in result.graded if each.points < each.of), cells[0] if cells else "")


def _refitted(marks: dict[str, Mark], wanted: Cells) -> dict[str, Mark]:
    """The marks for the cells as they are now."""
    found = {}
    for cell, (most, _) in wanted.graded.items():
        old = marks.get(cell)
        if old is None or old.of != most:
            found[cell] = replace(old or Mark(None), program=None, of=most, waits=True)
        else:
            found[cell] = old
    return found


def noticed(ledger: Ledger, history: History, entries: Mapping[Who, Entry], changed_at: str) -> list[Event]:
    """What is in the gradebook and not in the history: somebody else's changes, and those of a run that was killed."""
    since = history.events[-1].at if history.events else ""
    last = {(event.student, event.exercise): event.why for event in history.events}
    found: list[Event] = []
    for who in sorted(ledger.marks.keys() | history.marks.keys()):
        marks, entry = ledger.marks.get(who, {}), entries.get(who)
        ours = {each.cell: each.points for each in entry.result.graded} if entry else {}
        by: dict[str, list[Change]] = {}
        for change in changes(history.marks.get(who, {}), marks):
            author = _author(change, marks.get(change.cell), ours)
            if author == OTHER and last.get(who) == CHANGED:  # written down, and killed before it was done
                author = program()
            by.setdefault(author, []).append(change)
        for author, theirs in by.items():
            found.append(Event(changed_at, author, *who, tuple(theirs), "found in the gradebook", since))
    return found


def _author(change: Change, mark: Mark | None, ours: dict[str, float]) -> str:
    if change.field in ("person", "extra"):
        return PERSON
    if mark is None or (change.field == "program" and mark.program is not None):
        return program() if mark is not None and ours.get(change.cell) == mark.program else OTHER
    if change.field == "waits":
        return program() if mark.waits else PERSON
    return program()


def _changed_at(course: Course) -> str:
    try:
        return datetime.fromtimestamp(course.gradebook.stat().st_mtime, UTC).isoformat(timespec="seconds")
    except OSError:
        return now()
