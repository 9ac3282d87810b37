"""The gradebook as it is: one reading of nbgrader's database, without nbgrader, which takes seconds to load.

Only reading is done here. `gradebook.py` writes, by nbgrader's own interface, and only what differs from this.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from minitorch.errors import CommandError

from ...submission.preflight import Part
from ..names import visible
from .marks import Mark, Who
from .trouble import check_empty, unusable

OF_CELLS = (
    "JOIN base_cell c ON c.id = g.cell_id JOIN notebook b ON b.id = c.notebook_id "
    "JOIN submitted_notebook n ON n.id = g.notebook_id JOIN submitted_assignment s ON s.id = n.assignment_id "
    "JOIN assignment a ON a.id = s.assignment_id AND a.name = b.name"
)  # what joins a table `g`, of grades or of comments, to students, exercises and cells
WAIT = 5.0  # seconds for another program to end its transaction; formgrader's take milliseconds


@dataclass(frozen=True)
class Cells:
    """The cells of an exercise that nbgrader has to know.

    Attributes:
        graded: the most points and the type of each graded cell.
        solutions: the names of the cells that a student fills in.
        sources: of each cell its type, whether it is locked, its source, and its checksum.
    """

    graded: dict[str, tuple[float, str]] = field(default_factory=dict)
    solutions: set[str] = field(default_factory=set)
    sources: dict[str, tuple[str, bool, str, str | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, release: list[Part]) -> Self:
        """Those of a notebook that was handed out."""
        found = cls()
        for part in release:
            if part.name is None or part.about is None:
                continue
            locked = not part.solution and (part.points is not None or bool(part.about.get("locked")))
            found.sources[part.name] = (part.kind, locked, part.source, part.about.get("checksum"))
            if part.points is not None:
                found.graded[part.name] = (part.points, part.kind)
            if part.solution:
                found.solutions.add(part.name)
        return found


@dataclass
class Ledger:
    """What is in a gradebook, by exercise, and by student and exercise."""

    cells: dict[str, Cells] = field(default_factory=dict)
    handed_in: dict[Who, datetime | None] = field(default_factory=dict)
    penalties: dict[Who, float] = field(default_factory=dict)
    marks: dict[Who, dict[str, Mark]] = field(default_factory=dict)
    comments: dict[Who, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """The content of a database; nothing if there is none yet.

        If a program was killed in the middle of a transaction, SQLite takes it back first, which is writing
        (sqlite.org/lockingv3.html, hot journals). Where nothing may be written that is done in a copy.

        Raises:
            CommandError: if it cannot be read, or holds points that are no numbers.
        """
        try:
            if not path.exists():
                return cls()
            if not path.stat().st_size:  # a program was killed when it had begun one, or all of it is lost
                check_empty(path)
                return cls()
            journal = path.with_name(f"{path.name}-journal")
            if journal.exists() and not os.access(path.parent, os.W_OK):
                with TemporaryDirectory() as folder:
                    shutil.copy(journal, folder)
                    return cls._of(Path(shutil.copy(path, folder)))
            return cls._of(path)
        except (sqlite3.Error, OSError) as error:
            raise unusable(path, error) from error

    @classmethod
    def _of(cls, path: Path) -> Self:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=WAIT)) as database:
            times, penalties = _submissions(database)
            return cls(_cells(database), times, penalties, _marks(database, path), _comments(database))


def _cells(database: sqlite3.Connection) -> dict[str, Cells]:
    exercises = database.execute("SELECT a.name FROM notebook n JOIN assignment a ON a.id = n.assignment_id")
    found = {name: Cells() for (name,) in exercises}

    def rows(columns: str, table: str) -> Any:
        notebook = "notebook n ON n.id = c.notebook_id JOIN assignment a ON a.id = n.assignment_id AND a.name = n.name"
        return database.execute(f"SELECT a.name, c.name{columns} FROM {table} JOIN {notebook}")

    for exercise, cell, most, kind in rows(", g.max_score, g.cell_type", "grade_cells g JOIN base_cell c USING (id)"):
        found[exercise].graded[cell] = (most, kind)
    for exercise, cell in rows("", "solution_cells s JOIN base_cell c USING (id)"):
        found[exercise].solutions.add(cell)
    for exercise, cell, kind, locked, text, check in rows(
        ", c.cell_type, c.locked, c.source, c.checksum", "source_cell c"
    ):
        found[exercise].sources[cell] = (kind, bool(locked), text, check)
    return found


def _submissions(database: sqlite3.Connection) -> tuple[dict[Who, datetime | None], dict[Who, float]]:
    times: dict[Who, datetime | None] = {}
    penalties: dict[Who, float] = {}
    query = (
        "SELECT s.student_id, a.name, s.timestamp, sum(n.late_submission_penalty) FROM submitted_assignment s "
        "JOIN assignment a ON a.id = s.assignment_id "
        "LEFT JOIN submitted_notebook n ON n.assignment_id = s.id GROUP BY s.id"
    )
    for student, exercise, time, penalty in database.execute(query):
        times[student, exercise] = datetime.fromisoformat(time) if time else None
        penalties[student, exercise] = penalty or 0.0
    return times, penalties


def _marks(database: sqlite3.Connection, path: Path) -> dict[Who, dict[str, Mark]]:
    """Read the points. A text among them, which another program wrote, is refused: SQLite keeps what it is given."""
    found: dict[Who, dict[str, Mark]] = {}
    query = (
        "SELECT s.student_id, a.name, c.name, g.auto_score, g.manual_score, g.extra_credit, "
        f"m.max_score, g.needs_manual_grade FROM grade g {OF_CELLS} JOIN grade_cells m ON m.id = c.id"
    )
    rows: Any = database.execute(query)
    wrong = []
    for student, exercise, cell, program, person, extra, of, waits in rows:
        for column, value in (("auto_score", program), ("manual_score", person), ("extra_credit", extra)):
            if isinstance(value, str | bytes):
                wrong.append(f"{student} {exercise} {cell}: {column} is `{visible(value)[:40]}`")
        found.setdefault((student, exercise), {})[cell] = Mark(program, person, extra, of, bool(waits))
    if wrong:
        raise CommandError(
            f"{path} has points that are no numbers: {'; '.join(wrong)}. Put a number there, or NULL for none: "
            f"sqlite3 {path.name} \"UPDATE grade SET manual_score = NULL WHERE typeof(manual_score) = 'text'\""
        )
    return found


def _comments(database: sqlite3.Connection) -> dict[Who, dict[str, str]]:
    """Read what persons wrote in formgrader, by the cell that it is about."""
    found: dict[Who, dict[str, str]] = {}
    query = f"SELECT s.student_id, a.name, c.name, g.manual_comment FROM comment g {OF_CELLS} ORDER BY g.id"
    for student, exercise, cell, text in database.execute(query):
        if text and str(text).strip():
            found.setdefault((student, exercise), {})[cell] = str(text)
    return found
