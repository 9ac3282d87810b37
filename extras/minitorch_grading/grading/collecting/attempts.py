"""Attempts: all that students have ever handed in, in `collected/STUDENT/EXERCISE/TIME-DIGEST/`.

An attempt is known by its notebooks, so collecting it again changes nothing, and none is ever deleted. `attempt.json`
says where it came from and when, and what is wrong with it; `files/` has what was handed in beside the notebook. The
latest or the best is put into `submitted/`. A damaged one is never taken where another can be graded, and nothing that
lay in `submitted/` is lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..course.folders import Course
from ..course.handed_in import handed_in
from ..course.journal.journal import Journal
from ..course.private import replace as write
from ..course.running.keys import work_of
from ..enrolment.deadlines import Deadlines
from ..limits import Limits
from ..submission.preflight import read
from .exercises import Exercises
from .platforms import STAMP

ABOUT = "attempt.json"
BY_HAND = "by hand"
TIMES = ("first", "last", "seen")


@dataclass(frozen=True)
class Attempt:
    """Something that a student handed in for an exercise. Times are in UTC.

    Attributes:
        digest: of its notebooks.
        platform: where it came from, and so does its time.
        mark: by which the platform knows its feedback (`Handed.mark`).
        first, last: the first and the last time at which this was handed in; None if nobody says.
        order: a number that is greater for a later file of the same platform; 0 if there is none.
        late: whether the platform calls it late.
        seen: when it was collected first.
        problem: why it cannot be graded; empty if it can.
    """

    digest: str
    platform: str = ""
    mark: str = ""
    first: datetime | None = None
    last: datetime | None = None
    order: int = 0
    late: bool = False
    seen: datetime = datetime.min
    problem: str = ""

    @property
    def name(self) -> str:
        """The name of its folder, which begins with the time."""
        time = f"{self.last:%Y-%m-%dT%H.%M.%SZ}" if self.last else f"unknown-{self.order:012}"
        return f"{time}-{self.digest[:12]}"

    @property
    def has_mark(self) -> bool:
        """Whether its platform says of all work whether it is late, and so that this is not."""
        return self.platform == "canvas"

    @property
    def said(self) -> str:
        """Its time for a person."""
        return f"{self.last:%Y-%m-%d %H:%M} UTC" if self.last else f"file {self.order}, at an unknown time"

    def to_text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False, default=datetime.isoformat) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Attempt:
        """What `to_text` gave."""
        data: dict[str, Any] = json.loads(text)
        data.pop("points", None)  # of an earlier version
        return cls(**data | {name: datetime.fromisoformat(data[name]) for name in TIMES if data[name]})


def home(course: Path, student: str, exercise: str) -> Path:
    """The folder of a student's attempts at an exercise."""
    return course / "collected" / student / exercise


def attempts(course: Path, student: str, exercise: str) -> list[Attempt]:
    """All attempts of a student at an exercise, the newest last."""
    folder = home(course, student, exercise)
    found = []
    for path in sorted(folder.glob(f"[!.]*/{ABOUT}")):
        attempt = Attempt.from_text(path.read_text(encoding="utf-8"))
        if path.parent.name != attempt.name:  # killed before it was renamed
            os.rename(path.parent, folder / attempt.name)
        found.append(attempt)
    by_order = all(each.order for each in found)
    found.sort(
        key=lambda each: (each.order, each.seen) if by_order else (each.last or each.seen, each.order, each.seen)
    )
    return found


def digest_of(contents: Iterable[bytes]) -> str:
    """A digest of some files, whatever they are called."""
    digests = sorted(hashlib.sha256(content).digest() for content in contents)
    return hashlib.sha256(b"".join(digests)).hexdigest()


def keep(course: Path, student: str, exercise: str, attempt: Attempt, files: Mapping[str, bytes]) -> None:
    """Put an attempt among the others, as a whole or not at all; if it is there already, what is new of it.

    Args:
        course, student, exercise: whose it is, and for what.
        attempt: what is known of it.
        files: its notebook, and what came with it, by the paths that they get.
    """
    folder = home(course, student, exercise)
    before = next((each for each in attempts(course, student, exercise) if each.digest == attempt.digest), None)
    place = folder / (before.name if before else f".{attempt.digest}.part")
    if before is None:
        shutil.rmtree(place, ignore_errors=True)
    for name, content in files.items():
        if not (place / name).exists() and (before is None or name.startswith("files/")):
            write(place / name, content)
    seen = datetime.now(UTC).replace(tzinfo=None)
    after = replace(attempt, seen=seen) if before is None else _merged(before, attempt)
    if after != before:
        write(place / ABOUT, after.to_text())
        os.rename(place, folder / after.name)


def _merged(before: Attempt, now: Attempt) -> Attempt:
    """What is known of an attempt when the same is handed in again, or learned from another download."""
    if before.platform == BY_HAND and (now.mark or now.first):  # the platform knows better than the clock of a file
        return replace(now, seen=before.seen)
    return replace(
        before,
        platform=before.platform if before.mark else now.platform,
        mark=before.mark or now.mark,
        first=min(filter(None, (before.first, now.first)), default=None),
        last=max(filter(None, (before.last, now.last)), default=None),
        order=max(before.order, now.order),
        late=before.late and now.late,  # the first time may have been in time
    )


def notebooks_in(folder: Path) -> dict[str, bytes]:
    """The notebooks in a folder that are files, in order; none if it is not there."""
    found = sorted(path for path in folder.glob("*.ipynb") if path.is_file() and not path.is_symlink())
    return {path.name: path.read_bytes() for path in found}


def current(course: Path, student: str, exercise: str, folder: Path) -> Attempt | None:
    """The attempt whose notebooks lie in a folder; None if none was collected that is the same."""
    known = attempts(course, student, exercise)
    digest = digest_of(notebooks_in(folder).values()) if known else ""
    return next((each for each in known if each.digest == digest), None)


def keep_by_hand(course: Course, exercises: Exercises, student: str, exercise: str) -> None:
    """Keep what lies in `submitted/` and was not collected, so that nothing replaces it for good.

    A notebook that was mended counts as handed in when the one before it was; one that was put there, when it was
    saved; `timestamp.txt` says otherwise.
    """
    folder = course.submitted / student / exercise
    found, known = notebooks_in(folder), attempts(course.root, student, exercise)
    digest = digest_of(found.values())
    if not found or any(each.digest == digest for each in known):
        return
    saved = int(max((folder / name).stat().st_mtime for name in found))
    before = known[-1] if known else Attempt("", first=datetime.fromtimestamp(saved, UTC).replace(tzinfo=None))
    when = handed_in(folder)[0] or before.first
    several = f"{len(found)} notebooks could be the one meant"
    problem = exercises.problem(next(iter(found.values())), exercise) if len(found) == 1 else several
    last = max(filter(None, (when, before.last)), default=None)
    attempt = Attempt(digest, BY_HAND, before.mark, when, last, before.order, before.late, problem=problem)
    keep(course.root, student, exercise, attempt, found)


def put(
    course: Course, deadlines: Deadlines, exercises: Exercises, journal: Journal, student: str, exercise: str
) -> tuple[Attempt, str, str]:
    """Choose an attempt for `submitted/`. Returns it, ``"new"``, ``"replaced"`` or ``"unchanged"``, and a remark."""
    found = attempts(course.root, student, exercise)
    cells = exercises.cells(exercise)

    def worth(attempt: Attempt) -> float | None:
        """The points of an attempt, less its penalty; None if it was not graded as the exercise is now."""
        files = read(home(course.root, student, exercise) / attempt.name, exercise, Limits().notebook)
        entry = journal.by_work.get((student, exercise, work_of(files)))
        if entry is None or {each.cell: each.of for each in entry.result.graded} != cells:
            return None
        earned, of = entry.result.points, entry.result.of
        return earned - deadlines.penalty(student, exercise, attempt.first, attempt.late, earned, of).points

    chosen, remark = choose(found, worth if deadlines.keep == "best" else None)
    folder = course.submitted / student / exercise
    was_there = bool(notebooks_in(folder))
    changed = _fill(folder, home(course.root, student, exercise) / chosen.name, chosen)
    return chosen, "unchanged" if not changed else "replaced" if was_there else "new", remark


def choose(found: Sequence[Attempt], worth: Callable[[Attempt], float | None] | None) -> tuple[Attempt, str]:
    """The attempt to grade, and a sentence where that is not simply the latest.

    Args:
        found: the student's attempts at the exercise, the newest last; at least one.
        worth: the points of an attempt, if it was graded; None if the latest is to be graded, whatever it is worth.
    """
    sound = [attempt for attempt in found if not attempt.problem]
    if not sound:
        return found[-1], f"cannot be graded: {found[-1].problem}"
    said = []
    if found[-1].problem:
        said.append(f"the newest ({found[-1].said}) cannot be graded: {found[-1].problem}; the one before it is kept")
    chosen = sound[-1]
    if worth is not None and len(sound) > 1:
        points = [worth(attempt) for attempt in sound]
        waiting = [each for each, known in zip(sound, points, strict=True) if known is None]
        _, place = max((known or 0.0, place) for place, known in enumerate(points))
        chosen = waiting[-1] if waiting else sound[place]
        if waiting:
            more = f"({len(waiting)} of {len(sound)} attempts are not graded yet)"
            said.append(f"grade and collect again for the best one {more}")
        elif chosen is not sound[-1]:
            said.append(f"an earlier one ({chosen.said}) is worth more and is kept")
    return chosen, "; ".join(said)


def _fill(folder: Path, source: Path, attempt: Attempt) -> bool:
    """Make the notebooks of a folder, and its time as nbgrader writes it, those of an attempt.

    Returns whether anything changed.
    """
    wanted = notebooks_in(source)
    if attempt.first is not None:
        wanted[STAMP] = f"{attempt.first:%Y-%m-%d %H:%M:%S} UTC".encode()
    changed = not folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in wanted.items():
        path = folder / name
        if path.is_symlink() or not path.is_file() or path.read_bytes() != content:
            write(path, content)
            changed = True
    for path in (*folder.glob("*.ipynb"), folder / STAMP):
        if path.name not in wanted and (path.is_symlink() or path.is_file()):
            path.unlink()
            changed = True
    return changed
