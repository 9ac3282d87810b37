"""The folders of a course, in nbgrader's forms: where things are, what was handed in, and writing files as a whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ....errors import CommandError


@dataclass(frozen=True)
class Course:
    """Where things are: nbgrader's folders, below one root."""

    submitted: Path
    exercises: Path

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

    def autograded(self, student: str, exercise: str) -> Path:
        """The notebook as it was run."""
        return self.root / "autograded" / student / exercise / f"{exercise}.ipynb"

    def feedback(self, student: str, exercise: str) -> Path:
        """The student's page."""
        return self.root / "feedback" / student / exercise / f"{exercise}.html"

    def release(self, exercise: str) -> Path:
        """The notebook that was handed out."""
        return self.exercises / exercise / f"{exercise}.ipynb"


@dataclass(frozen=True)
class Submission:
    """One student's folder for one exercise."""

    student: str
    exercise: str
    folder: Path


def submissions(course: Course, only: Sequence[str] = ()) -> tuple[list[Submission], list[Path]]:
    """The submissions of a course in order, and what lies among them and is none.

    Raises:
        CommandError: if there are none, or a name in `only` is none of theirs.
    """
    if not course.submitted.is_dir():
        raise CommandError(f"there is no folder {course.submitted}; collect submissions as submitted/STUDENT/EXERCISE/")
    if (course.submitted / "submitted").is_dir():  # or solutions would be graded as a student's
        raise CommandError(f"{course.submitted} is the folder of a course: grade {course.submitted / 'submitted'}")
    found: list[Submission] = []
    strays: list[Path] = []
    for student in sorted(course.submitted.iterdir()):
        inside = _inside(student) if student.name.isprintable() else []  # neither terminal escapes nor broken Unicode
        if not inside:
            strays.append(student)
        for folder in inside:
            if course.release(folder.name).is_file() and _is_folder(folder):
                found.append(Submission(student.name, folder.name, folder))
            else:
                strays.append(folder)
    names = {name for each in found for name in (each.student, each.exercise)}
    if strange := [name for name in only if name not in names]:
        raise CommandError(
            f"nothing to grade for {strange[0]}: no student and no exercise in {course.submitted} has that name"
        )
    found = [each for each in found if not only or each.student in only or each.exercise in only]
    strays = [path for path in strays if not path.name.startswith(".")]
    if not found:
        raise CommandError(
            f"nothing to grade: no folder {course.submitted}/STUDENT/EXERCISE with an EXERCISE of {course.exercises}"
        )
    return found, strays


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir() and not path.is_symlink()
    except OSError:  # of a folder that may not be entered
        return False


def _inside(path: Path) -> list[Path]:
    """The entries of a folder; none if it is no folder, or may not be read."""
    try:
        return sorted(path.iterdir()) if _is_folder(path) else []
    except OSError:
        return []


def replace(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.write_text(text, encoding="utf-8", errors="replace")
    os.replace(unfinished, path)


# Where nbgrader looks for things if it is started in the folder of a course, as formgrader is.
NBGRADER = """c = get_config()  # noqa: F821  nbgrader gives it
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
"""


def configure(course: Course) -> None:
    """See that formgrader finds the course; what an instructor has written stays."""
    path = course.root / "nbgrader_config.py"
    if not path.exists():
        replace(path, NBGRADER)
