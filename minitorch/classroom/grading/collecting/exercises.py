"""The exercise that a notebook is for, and whether it can be graded: by its cells, its name, or what came with it."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path

from ....errors import CommandError
from ..course.folders import Course
from ..incidents import KINDS, Incident
from ..limits import Limits
from ..submission.preflight import DamagedError, grade_id, load, released
from .platforms import plain_name


def in_short(incident: Incident) -> str:
    """An incident without what follows from it, since the attempt is not graded.

    Example:
        >>> in_short(Incident("not-json", "line 1"))
        'the file is damaged and cannot be read as a notebook'
    """
    return KINDS[incident.kind].meaning.partition(";")[0]


class Exercises:
    """The exercises of a course."""

    def __init__(self, course: Course, only: str | None = None) -> None:
        self._course = course
        self.names = sorted(path.stem for path in course.exercises.glob("*/*.ipynb") if path.stem == path.parent.name)
        self.only = only
        if not self.names:
            raise CommandError(f"there are no exercises in {course.exercises}; copy what students got there")
        if only is not None and only not in self.names:
            raise CommandError(f"there is no exercise {only} in {course.exercises}; there is {', '.join(self.names)}")

    @cached_property
    def _cells(self) -> dict[str, set[str]]:
        return {name: self._ids(name) for name in self.names}

    def _ids(self, name: str) -> set[str]:
        path = self._course.release(name)
        try:
            return {part.name for part in released(path) if part.name}
        except DamagedError as error:
            raise CommandError(f"{path}: {error.incident.text}; `minitorch release` makes it again") from None

    def digest(self, name: str) -> str:
        """A digest of the exercise as it is handed out."""
        return release_digest(self._course.release(name))

    def by_name(self, file: str) -> str | None:
        """The exercise that a file is named after, whatever a platform or a browser has added."""
        stem = file[:-6] if file.casefold().endswith(".ipynb") else file
        for each in (stem, plain_name(file), plain_name(plain_name(file))):
            if each in self.names:
                return each
        return None

    def look(self, path: Path, file: str) -> tuple[str | None, str]:
        """The exercise that a notebook is for, if that can be said, and why it cannot be graded; empty if it can."""
        try:
            cells = load(path, Limits().notebook)["cells"]
        except DamagedError as error:
            return self.only or self.by_name(file), in_short(error.incident)
        ids = {name for cell in cells if (name := grade_id(cell))}
        counts = {name: len(ids & known) for name, known in self._cells.items()}
        best = max(counts.values())
        likely = [name for name, count in counts.items() if count == best > 0]
        named = self.by_name(file)
        exercise = self.only or (named if named in likely or not likely else likely[0])
        if exercise is None:
            return None, "no cell of an exercise is in the notebook"
        return exercise, "" if counts[exercise] else "no cell of the exercise is in the notebook"


def release_digest(path: Path) -> str:
    """A digest of a notebook as it was handed out."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
