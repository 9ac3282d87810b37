"""``minitorch collect``: the work of a class, from a platform's download into `submitted/`.

The same command again changes nothing. What was handed in goes to `collected/` first, whole and for good; then one
attempt of each student is chosen for `submitted/`. A run that is killed is completed by the next one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ....errors import CommandError
from ..course.folders import Course
from ..course.handed_in import handed_in
from ..course.names import visible
from ..enrolment.deadlines import Deadlines
from ..enrolment.roster import Roster
from ..enrolment.worksheet import Participant
from .attempts import Attempt, attempts, digest_of, home, keep
from .choose import choose
from .entries import entries
from .exercises import Exercises
from .fill import fill, notebooks_in
from .gather import gather
from .people import People


@dataclass(frozen=True)
class Row:
    """What became of a student's work for an exercise: ``"new"``, ``"replaced"`` or ``"unchanged"``, and a remark."""

    student: str
    exercise: str
    what: str
    remark: str = ""


@dataclass(frozen=True)
class Collected:
    """What was collected: a row for each student and exercise, who handed in nothing, what was left out and why."""

    rows: list[Row]
    absent: dict[str, list[str]] = field(default_factory=dict)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def look(self) -> bool:
        """Whether a person should look at it."""
        return bool(self.left_out or any(row.remark for row in self.rows))

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "collected": [vars(row) for row in self.rows],
            "handed_in_nothing": self.absent,
            "left_out": [{"what": what, "reason": reason} for what, reason in self.left_out],
            "notes": self.notes,
        }

    def __str__(self) -> str:
        lines = []
        for exercise in sorted({row.exercise for row in self.rows}):
            rows = [row for row in self.rows if row.exercise == exercise]
            counts = [f"{sum(row.what == what for row in rows)} {what}" for what in ("new", "replaced", "unchanged")]
            lines.append(f"{exercise}: {len(rows)} students; {', '.join(counts)}")
            if missing := self.absent.get(exercise):
                lines.append(f"  handed in nothing ({len(missing)}): {', '.join(missing)}")
        lines += [f"  {row.student} {row.exercise}: {row.remark}" for row in self.rows if row.remark]
        if self.left_out:
            lines += ["", "Left out:", *(f"  {what}: {reason}" for what, reason in self.left_out)]
        lines += [line for note in self.notes for line in ("", note)]
        return "\n".join(lines) or "nothing was handed in"


def collect(
    source: Path,
    course: Course,
    deadlines: Deadlines,
    roster: Roster | None = None,
    participants: dict[str, Participant] | None = None,
    exercise: str | None = None,
) -> Collected:
    """Collect a download.

    Args:
        source: a folder or a zip.
        course: where the work goes.
        deadlines: the rules of the course.
        roster: who is in it.
        participants: Moodle's people by their numbers, from grading worksheets.
        exercise: what all of the download is for; by default the notebooks say it.

    Raises:
        CommandError: if there is no such download, or it does not fit the course.
    """
    exercises = Exercises(course, exercise)
    target = course.submitted.resolve()
    if target != source.resolve() and source.resolve() in [target.parent, *target.parents]:
        raise CommandError(f"{source} is the folder of the course, or around it; name the download alone")
    people = People(roster, participants or {})
    with _alone(course.root) as space:
        found, left_out = gather(entries(source), exercises, people, space)
        touched = sorted({(each.student, each.exercise) for each in found})
        for student, name in touched:
            _keep_by_hand(course, exercises, student, name)
        for each in found:
            keep(course.root, each.student, each.exercise, each.attempt, each.files)
        rows = [_choose(course, deadlines, exercises, student, name) for student, name in touched]
    notes = _notes(participants) + _strangers(course, roster)
    return Collected(rows, absent(course, roster, [row.exercise for row in rows]), left_out, notes)


def absent(course: Course, roster: Roster | None, names: Sequence[str]) -> dict[str, list[str]]:
    """For each exercise those on the roster who handed in nothing."""
    return {
        name: [person.student for person in roster.people if not (course.submitted / person.student / name).is_dir()]
        for name in sorted(set(names))
        if roster is not None
    }


def _notes(participants: dict[str, Participant] | None) -> list[str]:
    unread = [each for each in (participants or {}).values() if each.unread]
    if not unread:
        return []
    return [
        f"{len(unread)} times in the worksheet are not understood, such as `{visible(unread[0].unread)}`: "
        "set Moodle to English, and download it again"
    ]


def _strangers(course: Course, roster: Roster | None) -> list[str]:
    """Those in `submitted/` who are not on the roster: it was made, or changed, after work had been collected."""
    if roster is None or not course.submitted.is_dir():
        return []
    names = sorted(path.name for path in course.submitted.iterdir() if path.is_dir() and path.name[0] != ".")
    strangers = [visible(name) for name in names if name not in roster.by_student]
    return [f"In {course.submitted} and not on the roster: {', '.join(strangers)}"] if strangers else []


def _keep_by_hand(course: Course, exercises: Exercises, student: str, exercise: str) -> None:
    """Keep what lies in `submitted/` and was not collected, so that nothing replaces it for good."""
    folder = course.submitted / student / exercise
    found = notebooks_in(folder)
    if not found:
        return
    digest = digest_of(found)
    if any(each.digest == digest for each in attempts(course.root, student, exercise)):
        return
    when = handed_in(folder)[0]
    if when is None:
        when = datetime.fromtimestamp(int(max(path.stat().st_mtime for path in found)), UTC).replace(tzinfo=None)
    files = {path.name: path for path in found}
    problem = (
        exercises.look(found[0], found[0].name)[1] if len(found) == 1 else "several notebooks could be the one meant"
    )
    keep(course.root, student, exercise, Attempt(digest, "by hand", first=when, last=when, problem=problem), files)


def _choose(course: Course, deadlines: Deadlines, exercises: Exercises, student: str, exercise: str) -> Row:
    found = attempts(course.root, student, exercise)
    chosen, remark = choose(found, student, exercise, deadlines, exercises.digest(exercise))
    folder = course.submitted / student / exercise
    was_there = bool(notebooks_in(folder))
    changed = fill(folder, home(course.root, student, exercise) / chosen.name, chosen)
    what = "unchanged" if not changed else "replaced" if was_there else "new"
    return Row(student, exercise, what, remark)


@contextmanager
def _alone(root: Path) -> Iterator[Path]:
    """A folder for temporary files, for one process at a time; whatever a killed run has left in it goes."""
    place = root / "collected"
    place.mkdir(mode=0o700, exist_ok=True)
    space = place / ".new"
    with _locked(place):
        shutil.rmtree(space, ignore_errors=True)
        space.mkdir(mode=0o700)
        try:
            yield space
        finally:
            shutil.rmtree(space, ignore_errors=True)


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """A lock that goes with the process that has it, killed or not."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(place, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CommandError(f"another process is collecting into {place}") from None
        yield
    finally:
        os.close(handle)
