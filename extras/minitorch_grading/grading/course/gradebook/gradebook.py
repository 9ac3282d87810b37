"""Writing nbgrader's gradebook, by nbgrader's own interface. Only the parent process has it open.

It is opened when there is something to write: loading nbgrader takes longer than reading a class of 300 (`ledger.py`).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from minitorch.errors import CommandError

from ....imports import quick_imports
from ..private import opened
from .ledger import Cells
from .marks import Mark, Who
from .trouble import unusable

UNFINISHED = ".gradebook-"


class Book:
    """The gradebook of a course."""

    def __init__(self, path: Path) -> None:
        try:
            with quick_imports():
                from nbgrader import api
        except ImportError:
            raise CommandError("grading needs nbgrader, which is not installed: pip install nbgrader") from None
        self._api = api
        self._path = path
        try:
            if not path.exists() or not path.stat().st_size:
                _create(path, api.Base.metadata)
            os.close(opened(path, os.O_RDWR))  # its owner's alone
            with closing(sqlite3.connect(path)) as database:  # SQLAlchemy leaves one open that is no database
                database.execute("PRAGMA schema_version")
            self._book: Any = api.Gradebook(f"sqlite:///{path}")
        except Exception as error:  # SQLAlchemy's, of which there are many, with the database's own inside
            raise unusable(path, error) from error

    def close(self) -> None:
        """Close the database."""
        self._book.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is written in it is kept together, or not at all.

        nbgrader commits after each row, which is slow as well: every commit waits for the disk. Here it only sends the
        row to the database.

        Raises:
            CommandError: if the database cannot be written to.
        """
        from sqlalchemy.exc import DatabaseError

        commit = self._book.db.commit
        self._book.db.commit = self._book.db.flush
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Object of type", module=r"nbgrader\.api")  # on every new submission
                yield
            commit()
        except DatabaseError as error:
            self._book.db.rollback()
            raise unusable(self._path, error) from error
        except BaseException:
            self._book.db.rollback()
            raise
        finally:
            del self._book.db.commit

    def exercise(self, name: str, cells: Cells) -> None:
        """Make the exercise known, cell by cell, and forget what is no longer in it, with its grades and comments."""
        book = self._book
        book.update_or_create_assignment(name)
        notebook = book.update_or_create_notebook(name, name)
        gone = [cell for cell in notebook.grade_cells if cell.name not in cells.graded]
        gone += [cell for cell in notebook.solution_cells if cell.name not in cells.solutions]
        gone += [cell for cell in notebook.task_cells if cell.name not in cells.sources]
        for cell in gone:
            for table in (self._api.Grade, self._api.Comment):
                book.db.query(table).filter(table.cell_id == cell.id).delete(synchronize_session=False)
            book.db.delete(cell)
        for cell in notebook.source_cells:
            if cell.name not in cells.sources:
                book.db.delete(cell)
        book.db.flush()
        book.db.expire_all()
        for cell, (most, kind) in cells.graded.items():
            book.update_or_create_grade_cell(cell, name, name, max_score=most, cell_type=kind)
        for cell in cells.solutions:
            book.update_or_create_solution_cell(cell, name, name)
        for cell, (kind, locked, source, checksum) in cells.sources.items():
            about = {"cell_type": kind, "locked": locked, "source": source, "checksum": checksum}
            book.update_or_create_source_cell(cell, name, name, **about)

    def refit(self, name: str, marks: Mapping[Who, Mapping[str, Mark]]) -> None:
        """Give every submission of an exercise a grade for each of its cells, and a comment for each of a student's."""
        notebook = self._book.find_notebook(name, name)
        solutions = {cell.id for cell in notebook.solution_cells}
        for submitted in notebook.submissions:
            self._grade(submitted, marks.get((submitted.student.id, name), {}))
            for cell in solutions - {comment.cell_id for comment in submitted.comments}:
                self._book.db.add(self._api.Comment(cell_id=cell, notebook=submitted))

    def record(self, who: Who, marks: Mapping[str, Mark], handed_in: datetime | None = None) -> None:
        """Put the points of the checks in; those that a person gave are left alone."""
        student, exercise = who
        book = self._book
        book.update_or_create_student(student)
        about = {} if handed_in is None else {"timestamp": handed_in}
        book.update_or_create_submission(exercise, student, **about)
        self._grade(book.find_submission_notebook(exercise, exercise, student), marks)

    def penalise(self, who: Who, points: float) -> None:
        """Enter what is taken from somebody's points for being late."""
        student, exercise = who
        self._book.find_submission_notebook(exercise, exercise, student).late_submission_penalty = points

    def _grade(self, submitted: Any, marks: Mapping[str, Mark]) -> None:
        """Put the marks into a submitted notebook, which may be older than some of its cells."""
        ids = {cell.name: cell.id for cell in submitted.notebook.grade_cells}
        grades = {grade.cell_id: grade for grade in submitted.grades}
        for cell, mark in marks.items():
            grade = grades.get(ids[cell])
            if grade is None:
                grade = self._api.Grade(cell_id=ids[cell], notebook=submitted)
                self._book.db.add(grade)
            grade.auto_score, grade.needs_manual_grade = mark.program, mark.waits


def _create(path: Path, tables: Any) -> None:
    """Make a gradebook as a whole or not at all, stamped with the version of nbgrader's tables as nbgrader would.

    nbgrader starts a program to find that version, which takes seconds. What a killed run has left in the course is
    removed by the next one.
    """
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR
    from sqlalchemy import create_engine, text

    for unfinished in path.parent.glob(f"{UNFINISHED}*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=path.parent) as folder:
        made = Path(folder) / path.name
        engine = create_engine(f"sqlite:///{made}")
        with engine.begin() as connection:
            tables.create_all(connection)
            connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
            version = {"head": ScriptDirectory(ALEMBIC_DIR).get_current_head()}
            connection.execute(text("INSERT INTO alembic_version (version_num) VALUES (:head)"), version)
        engine.dispose()
        os.replace(made, path)
