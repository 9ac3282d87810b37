"""Attempts: all that students have ever handed in, in `collected/STUDENT/EXERCISE/TIME-DIGEST/`.

An attempt is known by its content, so collecting it again changes nothing, and none is ever deleted. `attempt.json`
says where it came from and when, and what is wrong with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..course.private import folder as make_folder
from ..course.private import replace as write

ABOUT = "attempt.json"


@dataclass(frozen=True)
class Points:
    """The points of an attempt when it was graded, those it could have, and a digest of the exercise as it was then."""

    points: float
    of: float
    release: str


@dataclass(frozen=True)
class Attempt:
    """Something that a student handed in for an exercise. Times are in UTC.

    Attributes:
        digest: of its notebooks.
        platform: where it came from.
        mark: by which the platform knows its feedback (`Sender.mark`).
        first, last: the first and the last time at which this was handed in; None if nobody says.
        order: a number that is greater for a later file of the same platform; 0 if there is none.
        late: whether the platform calls it late.
        seen: when it was collected first.
        problem: why it cannot be graded; empty if it can.
        points: if it was graded.
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
    points: Points | None = None

    @property
    def name(self) -> str:
        """The name of its folder, which begins with the time."""
        time = f"{self.last:%Y-%m-%dT%H.%M.%SZ}" if self.last else f"unknown-{self.order:012}"
        return f"{time}-{self.digest[:12]}"

    def to_text(self) -> str:
        """As JSON."""
        data = {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(self).items()
        }
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Attempt:
        """What `to_text` gave."""
        data: dict[str, Any] = json.loads(text)
        for name in ("first", "last", "seen"):
            data[name] = datetime.fromisoformat(data[name]) if data[name] else None
        data["points"] = Points(**data["points"]) if data["points"] else None
        return cls(**data)


def home(course: Path, student: str, exercise: str) -> Path:
    """The folder of a student's attempts at an exercise."""
    return course / "collected" / student / exercise


def attempts(course: Path, student: str, exercise: str) -> list[Attempt]:
    """All attempts of a student at an exercise, the newest last."""
    folder = home(course, student, exercise)
    found = []
    for path in sorted(folder.glob(f"*/{ABOUT}")):
        if path.parent.name.startswith("."):
            continue
        attempt = Attempt.from_text(path.read_text(encoding="utf-8"))
        if path.parent.name != attempt.name:  # killed before it was renamed
            os.rename(path.parent, folder / attempt.name)
        found.append(attempt)
    by_order = all(each.order for each in found)
    found.sort(key=lambda each: (each.order,) if by_order else (each.last or each.seen, each.order, each.digest))
    return found


def notebooks(course: Path, student: str, exercise: str, attempt: Attempt) -> list[Path]:
    """The notebooks of an attempt."""
    return sorted((home(course, student, exercise) / attempt.name).glob("*.ipynb"))


def digest_of(paths: Sequence[Path], otherwise: str = "") -> str:
    """A digest of some notebooks, whatever they are called; of another text if there are none."""
    contents = sorted(hashlib.sha256(path.read_bytes()).digest() for path in paths)
    return hashlib.sha256(b"".join(contents) or otherwise.encode(errors="replace")).hexdigest()


def keep(course: Path, student: str, exercise: str, attempt: Attempt, files: dict[str, Path]) -> bool:
    """Put an attempt among the others, as a whole or not at all. Returns whether its content is new.

    Args:
        course, student, exercise: whose it is, and for what.
        attempt: what is known of it.
        files: its notebooks, by the names that they get.
    """
    folder = home(course, student, exercise)
    known = {each.digest: each for each in attempts(course, student, exercise)}
    before = known.get(attempt.digest)
    if before is not None:
        after = _merged(before, attempt)
        if after != before:
            write(folder / before.name / ABOUT, after.to_text())
            attempts(course, student, exercise)  # which gives its folder the new time
        return False
    unfinished = folder / f".{attempt.digest}.part"
    shutil.rmtree(unfinished, ignore_errors=True)
    make_folder(unfinished)
    for name, path in files.items():
        shutil.copyfile(path, unfinished / name)
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    write(unfinished / ABOUT, replace(attempt, seen=now).to_text())
    os.rename(unfinished, folder / attempt.name)
    return True


def _merged(before: Attempt, now: Attempt) -> Attempt:
    """What is known of an attempt when the same is handed in again, or learned from another download."""
    firsts = [each.first for each in (before, now) if each.first]
    lasts = [each.last for each in (before, now) if each.last]
    return replace(
        before,
        platform=before.platform if before.mark else now.platform,
        mark=before.mark or now.mark,
        first=min(firsts, default=None),
        last=max(lasts, default=None),
        order=max(before.order, now.order),
        late=before.late and now.late,  # the first time may have been in time
    )


def note_points(course: Path, student: str, exercise: str, folder: Path, points: Points) -> None:
    """Note the points of the attempt that was graded, for the best to be chosen; nothing if it was not collected."""
    attempt = current(course, student, exercise, folder)
    if attempt is not None and attempt.points != points:
        write(home(course, student, exercise) / attempt.name / ABOUT, replace(attempt, points=points).to_text())


def current(course: Path, student: str, exercise: str, folder: Path) -> Attempt | None:
    """The attempt whose notebooks lie in a folder, or the newest one without any if there are none; None if neither."""
    known = attempts(course, student, exercise)
    if not known:
        return None
    there = sorted(path for path in folder.glob("*.ipynb") if path.is_file() and not path.is_symlink())
    digest = digest_of(there)
    empty = [each for each in known if not there and not notebooks(course, student, exercise, each)]
    return next((each for each in known if each.digest == digest), empty[-1] if empty else None)
