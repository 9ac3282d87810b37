"""The folders of a course, in nbgrader's forms: where things are, and what was handed in."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Self

from minitorch.errors import CommandError

from ...handing_out.release import exercises_in
from ..submission.preflight import DamagedError, Part, released
from .gradebook.marks import Who
from .names import refused

# Entries of a student's folder that are looked at for what is no exercise; exercises are looked up by their names.
ENTRIES = 200


@dataclass(frozen=True)
class Course:
    """Where things are: nbgrader's folders, below one root."""

    submitted: Path
    exercises: Path

    @classmethod
    def at(cls, root: Path) -> Self:
        """The course in a folder; that of its submissions is taken for it."""
        root = root.resolve()
        if root.name == "submitted" and not (root / "submitted").is_dir():
            root = root.parent
        return cls(root / "submitted", root / "exercises")

    @property
    def root(self) -> Path:
        """The folder of the course."""
        return self.submitted.resolve().parent

    @property
    def gradebook(self) -> Path:
        """nbgrader's database."""
        return self.root / "gradebook.db"

    @property
    def journal(self) -> Path:
        """The results so far."""
        return self.root / "grading.jsonl"

    @property
    def history(self) -> Path:
        """Who changed which points, and when."""
        return self.root / "history.jsonl"

    def autograded(self, student: str, exercise: str) -> Path:
        """The notebook as it was run."""
        return self.root / "autograded" / student / exercise / f"{exercise}.ipynb"

    def feedback(self, student: str, exercise: str) -> Path:
        """The student's page."""
        return self.root / "feedback" / student / exercise / f"{exercise}.html"

    def release(self, exercise: str) -> Path:
        """The notebook that was handed out."""
        return self.exercises / exercise / f"{exercise}.ipynb"

    def solution(self, exercise: str) -> Path:
        """The notebook of which it was made, with its hidden tests."""
        return self.root / "solutions" / exercise / f"{exercise}.ipynb"

    @property
    def private(self) -> tuple[Path, ...]:
        """What is for whoever grades alone."""
        return (self.journal, self.history, self.gradebook, self.root / "autograded", self.root / "feedback")


def read_exercise(course: Course, name: str) -> list[Part]:
    """The cells of an exercise as it was handed out.

    Raises:
        CommandError: if it cannot be read.
    """
    path = course.release(name)
    try:
        return released(path)
    except DamagedError as error:
        raise CommandError(f"{path}: {error.incident.text}; `minitorch release` makes it again") from None


@dataclass(frozen=True)
class Stray:
    """A path among the submissions that is not graded, and why not."""

    path: Path
    reason: str = "it is no folder of an exercise"


def submissions(course: Course, only: Sequence[str] = ()) -> tuple[list[Who], list[Stray]]:
    """The submissions of a course in order, and what lies among them and is none.

    Args:
        course: where things are.
        only: names of students, of exercises, or of both: then those students' work for those exercises.

    Raises:
        CommandError: if there are none, or a name in `only` is none of theirs.
    """
    if not course.submitted.is_dir():
        raise CommandError(f"there is no folder {course.submitted}; collect submissions as submitted/STUDENT/EXERCISE/")
    if (course.submitted / "submitted").is_dir():  # or solutions would be graded as a student's
        raise CommandError(f"{course.submitted} is the folder of a course: grade {course.submitted / 'submitted'}")
    exercises = exercises_in(course.exercises)
    found: list[Who] = []
    strays: list[Stray] = []
    for student in _inside(course.submitted):
        if student.name.startswith("."):
            continue
        reason = refused(student.name)
        theirs = [] if reason or not _is_folder(student) else [name for name in exercises if _is_folder(student / name)]
        others = [] if reason else [path for path in _inside(student, ENTRIES) if path.name not in theirs]
        found += [(student.name, name) for name in theirs]
        strays += [Stray(path) for path in others if not path.name.startswith(".")]
        if reason or not (theirs or others):
            strays.append(Stray(student, reason) if reason else Stray(student))
    if not found and not only:
        raise CommandError(
            f"nothing to grade: no folder {course.submitted}/STUDENT/EXERCISE with an EXERCISE of {course.exercises}"
        )
    return chosen(course, found, only), strays


def chosen(course: Course, found: list[Who], only: Sequence[str]) -> list[Who]:
    """Those of some students, of some exercises, or of some students for some exercises.

    Raises:
        CommandError: if a name is none of theirs, or there is nothing by these students for these exercises.
    """
    names = {name for who in found for name in who}
    if strange := [name for name in only if name not in names]:
        near = " or ".join(get_close_matches(strange[0], sorted(names)))
        said = f"no student and no exercise in {course.submitted} is called {strange[0]}"
        raise CommandError(f"{said}; did you mean {near}?" if near else said)
    students = {student for student, _ in found}.intersection(only)
    exercises = {exercise for _, exercise in found}.intersection(only)
    kept = [who for who in found if who[0] in (students or who) and who[1] in (exercises or who)]
    if not kept:
        raise CommandError(
            f"nothing to grade: {', '.join(sorted(students))} handed in no {', '.join(sorted(exercises))}"
        )
    return kept


def _is_folder(path: Path) -> bool:
    """Whether it is a folder, and no link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):  # of a folder that may not be entered
        return False


def _inside(path: Path, at_most: int | None = None) -> list[Path]:
    """The entries of a folder, in order; none if it is no folder, or may not be read."""
    try:
        if not _is_folder(path):
            return []
        with os.scandir(path) as entries:
            return sorted(Path(entry.path) for entry in islice(entries, at_most))
    except OSError:
        return []
