"""A gradebook, journal or history that cannot be used: the cause is told apart, and no advice loses what is in it.

What may not be written is read-only inside of bubblewrap, where root may not write it either.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy.exc

from minitorch.__main__ import main
from minitorch.errors import CommandError
from minitorch_grading.grading.course.folders import Course
from minitorch_grading.grading.course.gradebook.ledger import Ledger
from minitorch_grading.grading.course.gradebook.recorder import Recorder
from minitorch_grading.grading.course.gradebook.trouble import unusable
from minitorch_grading.grading.course.journal.history import History
from minitorch_grading.grading.course.journal.journal import Entry, Journal
from minitorch_grading.grading.course.running import local
from minitorch_grading.grading.results import Graded, Result
from minitorch_grading.grading.submission.preflight import released
from tests.grading.classes import EXERCISE, ROOT, course, hand_in, needs_bubblewrap, notebook, sample

pytest.importorskip("nbgrader", reason="the gradebook is nbgrader's")

Run = subprocess.CompletedProcess[str]


def record(here: Course, student: str, points: float) -> None:
    """Grade as the command does, without running anything."""
    result = Result([Graded("first-check", points, 30, ""), Graded("second-check", 0, 30, "a reason")])
    with Journal(here.journal) as journal, Recorder(here, journal.entries) as recorder:
        recorder.exercise(EXERCISE, released(here.release(EXERCISE)))
        recorder.record((student, EXERCISE), result, str(points), None)
        journal.add((student, EXERCISE), Entry("conditions", str(points), result))


def give(here: Course, student: str, cell: str, value: object) -> None:
    """Write points as another program would."""
    with closing(sqlite3.connect(here.gradebook)) as book:
        theirs = "SELECT n.id FROM submitted_notebook n JOIN submitted_assignment s ON s.id = n.assignment_id"
        where = (
            f"notebook_id IN ({theirs} WHERE s.student_id = ?) AND cell_id IN (SELECT id FROM base_cell WHERE name = ?)"
        )
        assert book.execute(f"UPDATE grade SET manual_score = ? WHERE {where}", (value, student, cell)).rowcount == 1
        book.commit()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with three students, of whom ana has points that a person gave."""
    root = course(tmp_path_factory.mktemp("made") / "course")
    here = Course(root / "submitted", root / "exercises")
    here.submitted.mkdir()
    for student in ("ana", "bob", "eve"):
        record(here, student, 30)
    give(here, "ana", "first-check", 7)
    record(here, "bob", 20)  # which notices it
    return root


@pytest.fixture
def here(made: Path, tmp_path: Path) -> Course:
    root = shutil.copytree(made, tmp_path / "course")
    return Course(root / "submitted", root / "exercises")


def boxed(*options: str | Path, command: list[str] | None = None, code: str = "") -> Run:
    """Run a command, or a program, in a box that shows everything and is made with some more options."""
    needs_bubblewrap()
    what = command or ["-c", code]
    line = ["bwrap", "--dev-bind", "/", "/", *map(str, options), "--", sys.executable, *what]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": ""}
    return subprocess.run(line, text=True, capture_output=True, env=environment, check=False)


# --- the gradebook ------------------------------------------------------------------------------------------------

HOLDER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_locked_gradebook_names_who_locks_it(here: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minitorch.classroom.grading.course.gradebook.ledger.WAIT", 0)
    line = [sys.executable, "-c", HOLDER, str(here.gradebook)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(CommandError) as refused:
            Ledger.read(here.gradebook)
        other.stdin.close()
    assert f"is locked, since {Path(sys.executable).resolve().name[:6]}" in str(refused.value)
    assert f"(process {other.pid})" in str(refused.value) and "wait" in str(refused.value)
    assert Ledger.read(here.gradebook).marks, "nothing was lost"


WRITE = """
from tests.grading.course.test_trouble import Course, Path, record
root = Path({root!r})
try:
    record(Course(root / "submitted", root / "exercises"), "new", 1)
except Exception as error:
    print(type(error).__name__, error)
"""
FILL = "import shutil; shutil.copytree({source!r}, {root!r})\nopen({root!r} + '/filler', 'wb', 0).write(bytes(1 << 26))"


def test_a_gradebook_that_may_not_be_written_says_whose_it_is(here: Course) -> None:
    ran = boxed("--ro-bind", here.gradebook, here.gradebook, code=WRITE.format(root=str(here.root)))
    said = ran.stdout + ran.stderr
    assert "CommandError" in said and "gradebook.db cannot be used" in said and "yours to write" in said, said
    assert "away" not in said


def test_a_full_disk_is_called_one(here: Course) -> None:
    root = str(here.root.parent / "small" / "course")
    os.mkdir(here.root.parent / "small")
    code = FILL.format(source=str(here.root), root=root) + WRITE.format(root=root)
    ran = boxed("--size", str(1 << 20), "--tmpfs", here.root.parent / "small", code=code)
    said = ran.stdout + ran.stderr
    assert "No space left" in said or "full" in said, said
    assert "away" not in said and "another process" not in said


@pytest.mark.parametrize("content", ["middle", "header", "all"])
def test_a_damaged_gradebook_says_what_a_new_one_would_lose(here: Course, content: str) -> None:
    data = bytearray(here.gradebook.read_bytes())
    if content == "header":
        data[:100] = bytes(range(100))
    elif content == "all":
        data.clear()
    else:
        for page in range(4096, len(data), 4096):
            data[page : page + 200] = b"\xff" * 200
    here.gradebook.write_bytes(data)
    with pytest.raises(CommandError) as refused:
        Ledger.read(here.gradebook)
    said = str(refused.value)
    assert "is damaged" in said and "put back a copy" in said and "history.jsonl knows of 1" in said
    assert here.gradebook.read_bytes() == data


def test_a_database_of_something_else_is_not_called_damaged(here: Course) -> None:
    here.gradebook.unlink()
    with closing(sqlite3.connect(here.gradebook)) as book:
        book.execute("CREATE TABLE recipes (name)")
    with pytest.raises(CommandError, match="has not the tables of this nbgrader"):
        Ledger.read(here.gradebook)


def test_a_text_among_the_points_names_student_and_cell(here: Course, capsys: pytest.CaptureFixture[str]) -> None:
    give(here, "ana", "second-check", "ten\x1b[31m")
    assert main(["report", str(here.root)]) == 2
    said = capsys.readouterr().err
    assert f"ana {EXERCISE} second-check: manual_score is `ten\\x1b[31m`" in said
    mend = said.partition('"')[2].partition('"')[0]
    with closing(sqlite3.connect(here.gradebook)) as book:
        book.execute(mend)
        book.commit()
    assert main(["report", str(here.root)]) == 0, "the command of the message mends it"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("BUSY", "is locked, since another program"),
        ("FULL", "make room on the disk"),
        ("READONLY_DBMOVED", "have to be yours to write"),
        ("CANTOPEN", "have to be yours to write"),
        ("IOERR_READ", "cannot be used"),
        ("CORRUPT_INDEX", "put back a copy"),
        ("ERROR", "nbgrader db upgrade"),
        (errno.ENOSPC, "make room on the disk"),
        (errno.EROFS, "have to be yours to write"),
    ],
)
def test_every_cause_has_a_remedy_that_loses_nothing(name: str | int, words: str, tmp_path: Path) -> None:
    cause: Exception = OSError(name, "why") if isinstance(name, int) else sqlite3.OperationalError("why")
    if isinstance(name, str):
        cause.sqlite_errorname = f"SQLITE_{name}"  # type: ignore[attr-defined]
    for error in (cause, sqlalchemy.exc.OperationalError("UPDATE grade", {}, cause)):
        said = str(unusable(tmp_path / "gradebook.db", error))
        assert words in said and "away" not in said


@pytest.mark.parametrize(
    "line", [["similar", EXERCISE, "--course"], ["export", "moodle", "--to", "COURSE/x.csv", "--course"]]
)
def test_what_cannot_be_written_is_said_in_a_sentence(here: Course, line: list[str]) -> None:
    for student in ("ana", "bob"):
        hand_in(here.root, student, notebook(sample()))
    (here.root / "roster.csv").write_text("student id,name,e-mail\nana,Ana,a@b.c\n")
    command = ["-m", "minitorch", *(word.replace("COURSE", str(here.root)) for word in line), str(here.root)]
    ran = boxed("--ro-bind", here.root, here.root, command=command)
    assert ran.returncode == 2 and "Read-only file system" in ran.stderr and "Traceback" not in ran.stderr, ran.stderr


@pytest.mark.parametrize("is_hot", [False, True])
def test_a_report_of_what_may_only_be_read(here: Course, is_hot: bool) -> None:
    if is_hot:  # a program that was killed in the middle of a transaction
        from tests.grading.course.test_gradebook import KILLED_WHILE_WRITING

        before = Ledger.read(here.gradebook)
        subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(here.gradebook)], check=False)
        assert here.gradebook.with_name("gradebook.db-journal").stat().st_size
    ran = boxed("--ro-bind", here.root, here.root, command=["-m", "minitorch", "report", str(here.root)])
    assert ran.returncode == 0, ran.stderr
    assert "3 submissions" in ran.stdout and "--page FILE" in ran.stdout
    page = here.root.parent / "page.html"
    ran = boxed(
        "--ro-bind", here.root, here.root, command=["-m", "minitorch", "report", str(here.root), "--page", str(page)]
    )
    assert ran.returncode == 0 and page.is_file()
    if is_hot:
        assert Ledger.read(here.gradebook) == before


# --- journal and history ------------------------------------------------------------------------------------------

DAMAGE = {
    "no JSON": b"\x00\x1b{]\n",
    "no entry": b"[1, 2]\n",
    "no result": json.dumps({"student": "ana", "exercise": EXERCISE, "result": 3}).encode() + b"\n",
    "an incident of no kind": json.dumps(
        {"student": "z", "exercise": EXERCISE, "result": {"graded": [{}], "incidents": []}}
    ).encode()
    + b"\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_line_is_named_and_the_others_count(here: Course, damage: str) -> None:
    lines = here.journal.read_bytes().splitlines(keepends=True)
    here.journal.write_bytes(b"".join([*lines[:2], DAMAGE[damage], *lines[2:]]))
    with Journal(here.journal) as journal:
        assert sorted(student for student, _ in journal.entries) == ["ana", "bob", "eve"]
        (note,) = journal.notes
        assert f"Line 3 of {here.journal} is damaged" in note and "\x1b" not in note
        journal.add(("new", EXERCISE), journal.entries["ana", EXERCISE])
    assert ("new", EXERCISE) in Journal(here.journal).read().entries
    assert main(["report", str(here.root)]) == 1, "which says so"


def test_lost_seeds_are_drawn_anew_and_that_is_said(here: Course) -> None:
    lines = here.journal.read_bytes().splitlines(keepends=True)
    here.journal.write_bytes(b"".join([b"{\n", *lines[1:]]))
    with Journal(here.journal) as journal:
        assert len(journal.seeds) == 3 and len(journal.entries) == 3
        assert "hidden seeds were lost" in journal.notes[-1]
    assert Journal(here.journal).read().seeds == journal.seeds


def test_a_damaged_line_of_the_history_is_made_good_by_the_gradebook(here: Course) -> None:
    lines = here.history.read_bytes().splitlines(keepends=True)
    here.history.write_bytes(b"".join([lines[0][:20] + b"\n", *lines[1:]]))
    record(here, "new", 1)
    history = History(here.history)
    assert "Line 1 of" in history.notes[0] and history.marks == Ledger.read(here.gradebook).marks


def test_the_hidden_seeds_cannot_be_guessed(tmp_path: Path) -> None:
    with Journal(tmp_path / "one") as one, Journal(tmp_path / "two") as two:
        assert not set(one.seeds) & set(two.seeds)
        assert max(map(int.bit_length, one.seeds)) > 100


def test_a_journal_that_another_process_has_says_which(here: Course) -> None:
    with Journal(here.journal), pytest.raises(CommandError, match=rf"another process.*{os.getpid()}"):
        Journal(here.journal).__enter__()


@dataclass(frozen=True)
class Endless:
    """In the place of a job that does not come to its end."""

    slot: int = 0
    files: Mapping[str, bytes] = field(default_factory=dict)

    def loaded(self) -> Endless:
        return self


def test_an_interruption_waits_for_no_submission_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, killed = Event(), Event()

    class Worker(ExitStack):
        process = SimpleNamespace(kill=killed.set)

        def do(self, _: Endless) -> dict[str, str]:
            begun.set()
            assert killed.wait(60), "nobody ended it"
            return {"error": "its worker process ended"}

    def interrupted(*_: object) -> None:
        assert begun.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "Worker", Worker)
    monkeypatch.setattr(local, "wait", interrupted)
    jobs: Any = {("ana", EXERCISE): Endless()}
    with pytest.raises(KeyboardInterrupt), local.here(jobs, 1) as answers:
        next(answers)
    assert killed.is_set()
