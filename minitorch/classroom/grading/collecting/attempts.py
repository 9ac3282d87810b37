"""Attempts: all that students have ever handed in, in `collected/STUDENT/EXERCISE/TIME-DIGEST/`.

An attempt is known by its notebooks, so collecting it again changes nothing, and none is ever deleted. `attempt.json`
says where it came from and when, and what is wrong with it; `files/` has what was handed in beside the notebook.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..course.private import folder as make_folder
from ..course.private import replace as write

ABOUT = "attempt.json"
BY_HAND = "by hand"
TIMES = ("first", "last", "seen")


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
        platform: where it came from, and so does its time.
        mark: by which the platform knows its feedback (`Handed.mark`).
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
        data |= {name: datetime.fromisoformat(data[name]) for name in TIMES if data[name]}
        return cls(**{**data, "points": Points(**data["points"]) if data["points"] else None})


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


def digest_of(paths: Sequence[Path]) -> str:
    """A digest of some files, whatever they are called."""
    contents = sorted(hashlib.sha256(path.read_bytes()).digest() for path in paths)
    return hashlib.sha256(b"".join(contents)).hexdigest()


def keep(course: Path, student: str, exercise: str, attempt: Attempt, files: Mapping[str, Path]) -> None:
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
    for name, path in files.items():
        if not (place / name).exists() and (before is None or name.startswith("files/")):
            make_folder((place / name).parent)
            shutil.copyfile(path, place / ".part")
            os.replace(place / ".part", place / name)
    seen = datetime.now(UTC).replace(tzinfo=None)
    after = replace(attempt, seen=seen) if before is None else _merged(before, attempt)
    if after != before:
        write(place / ABOUT, after.to_text())
        os.rename(place, folder / after.name)


def _merged(before: Attempt, now: Attempt) -> Attempt:
    """What is known of an attempt when the same is handed in again, or learned from another download."""
    if before.platform == BY_HAND and (now.mark or now.first):  # the platform knows better than the clock of a file
        return replace(now, seen=before.seen, points=before.points)
    return replace(
        before,
        platform=before.platform if before.mark else now.platform,
        mark=before.mark or now.mark,
        first=min(filter(None, (before.first, now.first)), default=None),
        last=max(filter(None, (before.last, now.last)), default=None),
        order=max(before.order, now.order),
        late=before.late and now.late,  # the first time may have been in time
    )


def note_points(course: Path, student: str, exercise: str, folder: Path, points: Points) -> None:
    """Note the points of the attempt that was graded, for the best to be chosen; nothing if it was not collected."""
    attempt = current(course, student, exercise, folder)
    if attempt is not None and attempt.points != points:
        write(home(course, student, exercise) / attempt.name / ABOUT, replace(attempt, points=points).to_text())


def notebooks_in(folder: Path) -> list[Path]:
    """The notebooks in a folder that are files, in order; none if it is not there."""
    return sorted(path for path in folder.glob("*.ipynb") if path.is_file() and not path.is_symlink())


def current(course: Path, student: str, exercise: str, folder: Path) -> Attempt | None:
    """The attempt whose notebooks lie in a folder; None if none was collected that is the same."""
    known = attempts(course, student, exercise)
    digest = digest_of(notebooks_in(folder)) if known else ""
    return next((each for each in known if each.digest == digest), None)
