"""``minitorch collect``: the work of a class, from a platform's download into `submitted/`.

The same command again changes nothing. What was handed in goes to `collected/` first, whole and for good; then one
attempt of each student is chosen for `submitted/`. A run that is killed is completed by the next one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from minitorch.errors import CommandError

from ..course.folders import Course
from ..course.journal.journal import Journal
from ..course.names import sentences, visible
from ..course.private import lock
from ..enrolment.deadlines import FILE as DEADLINES
from ..enrolment.deadlines import Rules, deadlines_of
from ..enrolment.roster import Roster, students_of
from ..enrolment.worksheet import Participant
from .attempts import keep, keep_by_hand, put
from .exercises import Exercises
from .gather import LeftOut, attempt_of, gathered
from .platforms import People

UNTIMED = "due, and handed in nobody knows when (Moodle's times: --worksheet)"
# What one student's folders can be at fault for; a full disk concerns all.
_ONE_FOLDER = (IsADirectoryError, NotADirectoryError, PermissionError, FileExistsError)


@dataclass(frozen=True)
class Row:
    """What became of a student's work for an exercise: ``"new"``, ``"replaced"`` or ``"unchanged"``, and a remark."""

    student: str
    exercise: str
    what: str
    remark: str = ""


@dataclass(frozen=True)
class Collected:
    """What was collected: a row for each student and exercise, who handed in nothing, what was left out and why.

    `late` has those of the rows that are late, and since when, by exercise; `untimed` those of which nobody knows it.
    """

    rows: list[Row]
    absent: dict[str, list[str]] = field(default_factory=dict)
    late: dict[str, list[str]] = field(default_factory=dict)
    untimed: dict[str, list[str]] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def look(self) -> bool:
        """Whether a person should look at it."""
        return bool(self.left_out or self.untimed or any(row.remark for row in self.rows))

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        left_out = [{"what": what, "reason": reason} for what, reason in self.left_out]
        rows = [vars(row) for row in self.rows]
        about = {"collected": rows, "handed_in_nothing": self.absent, "late": self.late}
        return {**about, "without_a_time": self.untimed, "left_out": left_out, "notes": self.notes}

    def __str__(self) -> str:
        lines = []
        for exercise in sorted({row.exercise for row in self.rows}):
            counts = Counter(row.what for row in self.rows if row.exercise == exercise)
            named = ", ".join(f"{counts[what]} {what}" for what in ("new", "replaced", "unchanged"))
            lines.append(f"{exercise}: {counts.total()} students; {named}")
            for said, names in {"handed in nothing": self.absent, "late": self.late, UNTIMED: self.untimed}.items():
                if found := names.get(exercise):
                    lines.append(f"  {said} ({len(found)}): {', '.join(found)}")
        lines += [f"  {row.student} {row.exercise}: {row.remark}" for row in self.rows if row.remark]
        lines += ["", "Left out:"] * bool(self.left_out) + [f"  {what}: {reason}" for what, reason in self.left_out]
        return "\n".join(lines + [f"\n{note}" for note in self.notes]) or "nothing was handed in"


def collect(
    source: Path,
    course: Course,
    rules: Rules,
    participants: Mapping[str, Participant] | None = None,
    exercise: str | None = None,
) -> Collected:
    """Collect a download.

    Args:
        source: a folder or a zip.
        course: where the work goes.
        rules: who is in the course, and when work is late.
        participants: Moodle's people by their numbers, from grading worksheets.
        exercise: what all of the download is for; by default its name says it.

    Raises:
        CommandError: if there is no such download, or it does not fit the course.
    """
    exercises, roster = Exercises(course, exercise), rules.roster
    target = course.submitted.resolve()
    if target != source.resolve() and source.resolve() in [target.parent, *target.parents]:
        raise CommandError(f"{source} is the folder of the course, or around it; name the download alone")
    people = People(roster, participants or {}, students_of(course.root))
    journal = Journal(course.journal).read()
    late: dict[str, list[str]] = {}
    untimed: dict[str, list[str]] = {}
    rows = []
    with _alone(course.root), gathered(source, exercises, people) as (found, left_out):
        for (student, name), parcels in sorted(found.items(), key=itemgetter(0)):
            try:
                keep_by_hand(course, exercises, student, name)
                is_empty = True
                while parcels:  # of which the files are large, so one is read at a time
                    if made := attempt_of(parcels.pop(0), name, exercises, people):
                        attempt, files, faults = made
                        keep(course.root, student, name, attempt, files)
                        left_out += [(f"{student} {name}", fault) for fault in faults]
                        is_empty = False
                if is_empty:
                    continue
                attempt, what, remark = put(course, rules.deadlines, exercises, journal, student, name)
            except (ValueError, TypeError, KeyError, *_ONE_FOLDER) as error:
                left_out.append((f"{student} {name}", f"{type(error).__name__}: {visible(error)}"))
                continue
            rows.append(Row(student, name, what, remark))
            penalty = rules.deadlines.penalty(student, name, attempt.first, attempt.late, 0.0, 0.0)
            if days := penalty.days:
                late.setdefault(name, []).append(f"{student} {days} day{'s' if days > 1 else ''}")
            elif not (penalty.is_known or attempt.has_mark):
                untimed.setdefault(name, []).append(student)
    notes = _notes(course, roster, participants or {})
    try:
        deadlines_of(course.root, roster.by_student if roster else None)  # now everybody is known
    except CommandError as error:
        left_out.append((DEADLINES, str(error)))
    missing = absent(course, roster, [row.exercise for row in rows])
    return Collected(rows, missing, late, untimed, left_out, notes)


def absent(course: Course, roster: Roster | None, names: Sequence[str]) -> dict[str, list[str]]:
    """For each exercise those on the roster who handed in nothing."""
    return {
        name: [person.student for person in roster.people if not (course.submitted / person.student / name).is_dir()]
        for name in sorted(set(names))
        if roster is not None
    }


def _notes(course: Course, roster: Roster | None, participants: Mapping[str, Participant]) -> list[str]:
    """Times that were not understood, and who has work and is not on a roster that was made, or changed, later."""
    notes = []
    if unread := [each.unread for each in participants.values() if each.unread]:
        notes.append(
            f"{len(unread)} times in the worksheet are not understood, such as `{visible(unread[0])}`: "
            "set Moodle to English, and download it again"
        )
    return [*notes, *strangers(course, roster)]


def strangers(course: Course, roster: Roster | None) -> list[str]:
    """A note on those who have work and are not on the roster."""
    found = [] if roster is None else [each for each in students_of(course.root) if each not in roster.by_student]
    return sentences((f"In {course.submitted} and not on the roster: {{}}", map(visible, found)))


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """While this lasts, no other process collects into the course."""
    place = root / "collected"
    place.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as stack:
        if os.name == "posix":
            handle = os.open(place, os.O_RDONLY)
            stack.callback(os.close, handle)
            try:
                lock(handle)
            except BlockingIOError:
                raise CommandError(f"another process is collecting into {place}") from None
        yield
