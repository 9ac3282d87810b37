"""Points into nbgrader's gradebook, by nbgrader's own interface. Only the parent process has it open.

Recording the same result twice changes nothing, and points that a person gave are left alone.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ....errors import CommandError
from ...imports import quick_imports
from ..results import Result
from ..submission.preflight import Part
from .private import opened


@dataclass(frozen=True)
class Total:
    """A student's points for an exercise, those that it can give, and whether a person has still to look at it."""

    student: str
    points: float
    of: float
    by_hand: bool


class Book:
    """The gradebook of a course; a context manager."""

    def __init__(self, path: Path) -> None:
        try:
            with quick_imports():
                from nbgrader.api import Gradebook
        except ImportError:
            raise CommandError("grading needs the course extra: pip install 'minitorch[course]'") from None
        os.close(opened(path, os.O_RDWR))  # an empty file is an empty database, and its owner's alone
        with _programs_of_this_python():  # to stamp a new database it runs `alembic`
            try:
                self._book: Any = Gradebook(f"sqlite:///{path}")
            except Exception as error:  # SQLAlchemy's, of which there are many, with the database's own inside
                reason = next(iter(str(error).splitlines()), type(error).__name__)
                raise CommandError(
                    f"{path} cannot be used as a gradebook: {reason}; move it away to begin one"
                ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._book.close()

    def exercise(self, name: str, release: list[Part]) -> None:
        """Make the exercise known, cell by cell."""
        book = self._book
        book.update_or_create_assignment(name)
        book.update_or_create_notebook(name, name)
        for part in release:
            if part.name is None or part.about is None:
                continue
            if part.points is not None:
                book.update_or_create_grade_cell(part.name, name, name, max_score=part.points, cell_type=part.kind)
            if part.solution:
                book.update_or_create_solution_cell(part.name, name, name)
            about = {"cell_type": part.kind, "source": part.source, "checksum": part.about.get("checksum")}
            locked = not part.solution and (part.points is not None or bool(part.about.get("locked")))
            book.update_or_create_source_cell(part.name, name, name, locked=locked, **about)

    def record(self, student: str, exercise: str, result: Result, handed_in: datetime | None = None) -> None:
        """Put a result in. Where a person should look, formgrader says that grading by hand is needed."""
        book = self._book
        book.update_or_create_student(student)
        about = {} if handed_in is None else {"timestamp": handed_in}
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Object of type", module=r"nbgrader\.api"
            )  # SQLAlchemy's, on every new one
            book.update_or_create_submission(exercise, student, **about)
        for graded in result.graded:
            grade = book.find_grade(graded.cell, exercise, exercise, student)
            grade.auto_score = None if graded.manual else graded.points
            grade.needs_manual_grade = graded.manual or result.look or grade.manual_score is not None
        book.db.commit()

    def scores(self) -> dict[tuple[str, str, str], float]:
        """All points by student, exercise and cell, those that a person gave before those of a program."""
        found = {}
        for exercise in self._book.assignments:
            for submission in exercise.submissions:
                for notebook in submission.notebooks:
                    for grade in notebook.grades:
                        found[submission.student.id, exercise.name, grade.name] = grade.score
        return found

    def exercises(self) -> list[str]:
        """The names of all exercises that are known."""
        return sorted(exercise.name for exercise in self._book.assignments)

    def totals(self, exercise: str) -> list[Total]:
        """The points of all who handed in an exercise."""
        rows = self._book.submission_dicts(exercise)
        return [Total(row["student"], row["score"], row["max_score"], bool(row["needs_manual_grade"])) for row in rows]


@contextmanager
def _programs_of_this_python() -> Iterator[None]:
    """Find the programs beside this interpreter, even if its environment is not activated."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before
