"""The gradebook: report, formgrader and nbgrader's export say the same, whatever is changed, regraded or killed."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from minitorch.__main__ import main
from minitorch.errors import CommandError
from minitorch_grading.grading.course.folders import Course
from minitorch_grading.grading.course.gradebook.gradebook import Book
from minitorch_grading.grading.course.gradebook.ledger import Ledger
from minitorch_grading.grading.course.gradebook.marks import Who
from minitorch_grading.grading.course.journal.history import PERSON, History
from minitorch_grading.grading.course.journal.journal import Journal
from minitorch_grading.grading.course.report import Report
from minitorch_grading.grading.course.running import grade as courses
from minitorch_grading.grading.course.running import keeper, plan
from minitorch_grading.grading.incidents import Incident
from minitorch_grading.grading.limits import Limits
from minitorch_grading.grading.overview import overview, page, sheet, text
from minitorch_grading.grading.results import Graded, Result
from minitorch_grading.grading.submission import feedback
from minitorch_grading.grading.submission.autograded import BOX
from minitorch_grading.grading.submission.preflight import released
from minitorch_grading.grading.submission.worker import Job
from tests.grading import classes
from tests.grading.classes import EXERCISE, added, hand_in, known, notebook

pytest.importorskip("nbgrader", reason="the gradebook is nbgrader's")

STUDENTS = {"ana": 1.0, "bob": 0.5, "eve": 0.0}  # the part of all points that each earns


def exercise(**points: float) -> str:
    """An exercise with a task for each name."""
    cells = [known("setup", "setup")]
    for name, most in points.items():
        cells.append(known(f"def {name}(): ...", name, solution=True, locked=False))
        cells.append(known(f"checks.sample.{name}({name})", f"{name}-check", grade=True, points=most))
    return notebook([*cells, added("# the end")])


BEFORE = {"first": 30, "second": 50}
CHANGES: dict[str, dict[str, float]] = {
    "dropped": {"first": 30},
    "renamed": {"first": 30, "other": 50},
    "re-weighted": {"first": 20, "second": 50},
    "added": {"first": 30, "second": 50, "third": 20},
    "in another order": {"second": 50, "first": 30},
    "everything": {"third": 40, "first": 60},
}


class Grader:
    """In the place of the worker processes: results by the name of the student, and faults when they are asked for."""

    def __init__(self) -> None:
        self.part = dict(STUDENTS)
        self.incidents: dict[str, list[Incident]] = {}
        self.damaged: set[str] = set()
        self.graded: list[str] = []
        self.exercises: list[str] = []

    @contextmanager
    def __call__(self, jobs: Mapping[Who, Job], _: object) -> Iterator[Iterator[Any]]:
        yield ((who, self.answer(who[0], job)) for who, job in jobs.items())

    def answer(self, student: str, job: Job) -> dict[str, Any]:
        self.graded.append(student)
        self.exercises.append(job.exercise)
        parts = [part for part in job.release if part.points is not None]
        part = self.part[student]
        found = [Graded(one.name or "", (one.points or 0) * part, one.points or 0, "a reason") for one in parts]
        if student in self.damaged:
            none = [Graded(each.cell, 0, each.of, "damaged", manual=True) for each in found]
            return Result(none, [Incident("not-json")]).to_json()
        made = Result(found, list(self.incidents.get(student, [])), {"cells": []})
        return {**made.to_json(), "notebook": '{"cells": []}', "shown": feedback.notebook(made)}


@pytest.fixture
def grader(monkeypatch: pytest.MonkeyPatch) -> Grader:
    found = Grader()
    monkeypatch.setattr(courses, "here", found)
    monkeypatch.setattr(courses, "read_release", lambda course, name: released(course.release(name)))
    return found


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gradebook without a line; nbgrader takes seconds to make one."""
    path = tmp_path_factory.mktemp("empty") / "gradebook.db"
    Book(path).close()
    return path


def made(root: Path, empty: Path, *students: str) -> Course:
    classes.course(root, exercise(**BEFORE))
    for student in students:
        hand_in(root, student, exercise(**BEFORE))
    shutil.copy(empty, root / "gradebook.db")
    return Course(root / "submitted", root / "exercises")


@pytest.fixture
def course(tmp_path: Path, empty: Path) -> Course:
    return made(tmp_path, empty, *STUDENTS)


def run(course: Course, *only: str, **options: Any) -> Report:
    return courses.grade(course, Limits(), 1, safe=False, only=only, **options)


def change(course: Course, points: Mapping[str, float]) -> None:
    course.release(EXERCISE).write_text(exercise(**points))


@contextmanager
def formgrader(course: Course) -> Iterator[Any]:
    from nbgrader.api import Gradebook

    with closing(Gradebook(f"sqlite:///{course.gradebook}")) as book:
        yield book
        book.db.commit()


def give(course: Course, student: str, cell: str, points: float | None) -> None:
    """As formgrader does when somebody types points."""
    with formgrader(course) as book:
        grade = book.find_grade(cell, EXERCISE, EXERCISE, student)
        grade.manual_score, grade.needs_manual_grade = points, False


def write(course: Course, student: str, cell: str, text: str) -> None:
    """As formgrader does when somebody types a comment."""
    with formgrader(course) as book:
        book.find_comment(cell, EXERCISE, EXERCISE, student).manual_comment = text


def agreed(course: Course, report: Report) -> dict[str, tuple[float, float]]:
    """The points of each student and their maximum, if report, formgrader and export say the same of each."""
    from nbgrader.plugins import CsvExportPlugin

    shown = {row.student: (row.points, row.of) for row in report.rows}
    with formgrader(course) as book:
        plugin = CsvExportPlugin()
        plugin.to = str(course.root / "grades.csv")
        plugin.export(book)
        found = {each.student.id: (each.score, each.max_score) for each in book.assignment_submissions(EXERCISE)}
        cells = {cell.name for cell in book.find_notebook(EXERCISE, EXERCISE).grade_cells}
        for submission in book.assignment_submissions(EXERCISE):
            assert {grade.name for each in submission.notebooks for grade in each.grades} == cells, "one for each cell"
        solutions = {cell.name for cell in book.find_notebook(EXERCISE, EXERCISE).solution_cells}
        for submission in book.assignment_submissions(EXERCISE):
            names = {comment.name for each in submission.notebooks for comment in each.comments}
            assert names == solutions
    with (course.root / "grades.csv").open() as file:
        exported = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    assert found == exported
    assert {name: found[name] for name in shown} == shown
    ledger = Ledger.read(course.gradebook)
    totals = {who[0]: sum(mark.points for mark in marks.values()) for who, marks in ledger.marks.items()}
    assert totals == {name: points for name, (points, _) in found.items()}
    return found


def expected(points: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    return {student: (sum(points.values()) * part, sum(points.values())) for student, part in STUDENTS.items()}


# --- an exercise that is changed after it was graded --------------------------------------------------------------


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("first", [(), ("ana",), ("bob", "eve")])
def test_everything_says_the_same_after_a_change(
    course: Course, grader: Grader, what: str, first: tuple[str, ...]
) -> None:
    report = run(course)
    assert not report.notes and agreed(course, report) == expected(BEFORE)
    change(course, CHANGES[what])
    if first:  # the others have not been graded again yet
        agreed(course, run(course, *first))
    assert agreed(course, run(course)) == expected(CHANGES[what])
    change(course, BEFORE)
    assert agreed(course, run(course)) == expected(BEFORE)
    assert len(grader.graded) == 9


@pytest.mark.parametrize("what", CHANGES)
def test_points_that_a_person_gave_stay_where_their_cell_stays(course: Course, grader: Grader, what: str) -> None:
    run(course)
    give(course, "ana", "first-check", 7)
    give(course, "bob", "second-check", 9)
    give(course, "eve", "second-check", 11)
    points = CHANGES[what]
    change(course, points)
    report = run(course)
    found = agreed(course, report)
    assert found["ana"][0] == sum(points.values()) - points["first"] + 7
    if "second" in points:
        assert found["bob"][0] == points["first"] / 2 + points.get("third", 0) / 2 + 9
        assert not any("went with it" in note for note in report.notes)
    else:
        assert found["bob"][0] == sum(points.values()) / 2
        (note,) = [note for note in report.notes if "went with it" in note]
        assert "second-check is no longer in 01-sample" in note and "bob 9, eve 11" in note
        gone = [each for event in History(course.history).events for each in event.changes if each.field == "cell"]
        assert {each.before["person"] for each in gone} == {None, 9, 11}


def test_what_is_not_graded_again_yet_waits_in_formgrader(course: Course, grader: Grader) -> None:
    run(course)
    change(course, CHANGES["re-weighted"])
    run(course, "ana")
    marks = Ledger.read(course.gradebook).marks["bob", EXERCISE]
    assert (marks["first-check"].points, marks["first-check"].waits) == (0, True)
    assert (marks["second-check"].points, marks["second-check"].waits) == (25, False)


KILLED_WHILE_WRITING = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA cache_spill = 1")
database.execute("PRAGMA cache_size = 1")  # so that pages are written before the end of the transaction
database.execute("UPDATE grade SET auto_score = 1")
database.execute("UPDATE source_cell SET source = hex(randomblob(100000))")
os._exit(1)
"""


def test_a_gradebook_in_which_a_killed_run_was_writing_is_as_it_was_before(course: Course, grader: Grader) -> None:
    run(course)
    before = Ledger.read(course.gradebook)
    subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(course.gradebook)], check=False)
    assert course.gradebook.with_name("gradebook.db-journal").stat().st_size
    assert Ledger.read(course.gradebook) == before
    assert [row.points for row in run(course).rows] == [80, 40, 0]
    assert not course.gradebook.with_name("gradebook.db-journal").exists()


def test_one_exercise_is_graded_after_the_other(course: Course, grader: Grader) -> None:
    classes.course(course.root, exercise(**BEFORE), "02-other")
    for student in STUDENTS:
        hand_in(course.root, student, exercise(**BEFORE), exercise="02-other")
    report = run(course)
    assert grader.exercises == [EXERCISE] * 3 + ["02-other"] * 3, "a sandbox is started for each exercise once"
    assert [row.exercise for row in report.rows] == [EXERCISE, "02-other"] * 3


def test_what_fails_in_the_middle_leaves_nothing_of_it(course: Course, grader: Grader) -> None:
    run(course)
    before = Ledger.read(course.gradebook)
    with closing(Book(course.gradebook)) as book, pytest.raises(ZeroDivisionError), book.transaction():
        book.record(("new", EXERCISE), {})
        raise ZeroDivisionError
    with formgrader(course) as left:
        assert sorted(student.id for student in left.students) == sorted(STUDENTS)
    assert Ledger.read(course.gradebook) == before


class Killed(BaseException):
    """In the place of SIGKILL: nothing catches it."""


STEPS = (
    (Journal, "_write"),
    (History, "add"),
    (Book, "exercise"),
    (Book, "refit"),
    (Book, "record"),
    (keeper, "write"),
)


def test_a_run_that_is_killed_anywhere_is_put_right_by_the_next(
    tmp_path: Path, empty: Path, grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            nonlocal steps
            for _ in range(2):  # before it, or after it
                steps -= 1
                if steps == 0:
                    raise Killed
                if _ == 0:
                    made = function(*arguments, **options)
            return made

        return step

    for owner, name in STEPS:
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    for kill in range(1, 200):
        course = made(tmp_path / str(kill), empty, "ana", "bob")
        steps = 0
        run(course)
        give(course, "ana", "first-check", 7)
        give(course, "bob", "second-check", 9)
        change(course, CHANGES["everything"])
        steps = kill
        with suppress(Killed):
            run(course)
        was_killed, steps = steps == 0, 0
        report = run(course)
        assert agreed(course, report) == {"ana": (47, 100), "bob": (50, 100)}, kill
        before = course.gradebook.read_bytes()
        run(course)
        assert course.gradebook.read_bytes() == before
        events = History(course.history).events
        by_hand = [(event.student, each.after) for event in events if event.who == PERSON for each in event.changes]
        assert {("ana", 7), ("bob", 9)} <= set(by_hand), kill
        assert not [event for event in events if event.who not in (PERSON,) and "minitorch" not in event.who], kill
        if not was_killed:
            assert kill > 15
            return


# --- who changed what ---------------------------------------------------------------------------------------------


def test_the_history_tells_who_changed_which_points(course: Course, grader: Grader) -> None:
    run(course)
    give(course, "bob", "first-check", 22)
    grader.part["bob"] = 0.75
    run(course, "bob", again=True)
    found = [
        (event.who.partition(",")[0], each.cell, each.field, each.before, each.after)
        for event in History(course.history).events
        if event.student == "bob"
        for each in event.changes
        if each.field in ("program", "person")
    ]
    assert found == [
        ("minitorch grade", "first-check", "program", None, 15),
        ("minitorch grade", "second-check", "program", None, 25),
        ("a person", "first-check", "person", None, 22),
        ("minitorch grade", "first-check", "program", 15, 22.5),
        ("minitorch grade", "second-check", "program", 25, 37.5),
    ]
    by_hand = next(event for event in History(course.history).events if event.who == PERSON)
    assert by_hand.since <= by_hand.at and by_hand.since


def test_what_another_program_changed_is_told_and_put_right(course: Course, grader: Grader) -> None:
    run(course)
    with formgrader(course) as book:
        book.find_grade("first-check", EXERCISE, EXERCISE, "ana").auto_score = 1
    assert agreed(course, run(course)) == expected(BEFORE)
    events = [event for event in History(course.history).events if event.student == "ana"][1:]
    assert [(event.who.partition(",")[0], event.changes[0].after) for event in events] == [
        ("another program", 1),
        ("minitorch grade", 30),
    ]


def test_a_person_is_asked_once_to_look_at_the_same(course: Course, grader: Grader) -> None:
    def waits() -> bool:
        return any(mark.waits for mark in Ledger.read(course.gradebook).marks["ana", EXERCISE].values())

    grader.incidents["ana"] = [Incident("background", "x")]
    run(course)
    assert waits()
    marks = Ledger.read(course.gradebook).marks["ana", EXERCISE]
    (asking,) = [cell for cell, mark in marks.items() if mark.waits]
    assert asking == "first-check", "the first, if none lacks points"
    give(course, "ana", asking, 3)
    assert not waits(), "a look at the incidents takes one saving, and leaves the other cells to the checks"
    run(course)
    assert not waits(), "a rerun asks nobody again"
    run(course, again=True)
    assert not waits(), "nor does the same result"
    hand_in(course.root, "ana", exercise(first=30, second=50, third=1))
    run(course)
    assert waits(), "another submission does"


def test_of_a_submission_with_incidents_one_cell_asks_whichever_asked_before(course: Course, grader: Grader) -> None:
    def asking() -> list[str]:
        return [cell for cell, mark in Ledger.read(course.gradebook).marks["ana", EXERCISE].items() if mark.waits]

    grader.incidents["ana"] = [Incident("background", "x")]
    run(course)
    with formgrader(course) as book:  # as an earlier version wrote it
        for grade in book.find_submission(EXERCISE, "ana").notebooks[0].grades:
            grade.needs_manual_grade = True
        book.db.commit()
    assert asking() == ["first-check", "second-check"]
    change(course, CHANGES["re-weighted"])
    run(course)
    assert asking() == ["first-check"]


def test_a_rerun_writes_nothing(course: Course, grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    report = run(course)
    paths = (course.gradebook, course.journal, course.history)
    before = [path.read_bytes() for path in paths]
    monkeypatch.setattr(Book, "__init__", None)  # it is not even opened
    assert [row.to_json() for row in run(course).rows] == [row.to_json() for row in report.rows]
    assert [path.read_bytes() for path in paths] == before and len(grader.graded) == 3


def test_a_gradebook_that_was_moved_away_is_made_again(course: Course, grader: Grader) -> None:
    run(course)
    course.gradebook.unlink()
    assert agreed(course, run(course)) == expected(BEFORE) and len(grader.graded) == 3


def test_a_new_gradebook_is_the_one_that_nbgrader_makes(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the version of its tables, which nbgrader asks another program for."""
    from nbgrader.api import Gradebook

    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    Gradebook(f"sqlite:///{tmp_path / 'theirs.db'}").close()

    def content(path: Path) -> list[Any]:
        with closing(sqlite3.connect(path)) as book:
            version = book.execute("SELECT version_num FROM alembic_version").fetchall()
            return [version, *book.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name")]

    assert content(empty)[0][0] and sorted(map(str, content(empty))) == sorted(
        map(str, content(tmp_path / "theirs.db"))
    )


# --- one submission never ends the run ----------------------------------------------------------------------------


def kinds(report: Report) -> dict[str, list[str]]:
    return {row.student: [incident.kind for incident in row.result.incidents] for row in report.rows}


@pytest.mark.parametrize("where", ["looking", "writing", "recording", "time"])
def test_an_exception_of_ours_is_one_submissions_incident(
    course: Course, grader: Grader, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name = {
        "looking": (plan, "read"),
        "writing": (keeper, "write"),
        "recording": (Book, "record"),
        "time": (plan, "handed_in"),
    }[where]
    works = getattr(owner, name)

    def fails(*arguments: Any, **options: Any) -> Any:
        if "bob" in str(arguments):
            raise RecursionError("maximum recursion depth exceeded")
        return works(*arguments, **options)

    monkeypatch.setattr(owner, name, fails)
    report = run(course)
    assert kinds(report) == {"ana": [], "bob": ["grader"], "eve": []}
    assert [row.points for row in report.rows if row.student != "bob"] == [80, 0]
    monkeypatch.setattr(owner, name, works)
    assert kinds(run(course))["bob"] == []
    assert agreed(course, run(course)) == expected(BEFORE)


def test_the_grader_is_not_tried_without_end(course: Course, grader: Grader) -> None:
    grader.incidents["bob"] = [Incident("grader", "its worker process ended")]
    reports = [run(course) for _ in range(4)]
    assert grader.graded == ["ana", "bob", "eve", "bob"]
    assert "bob 01-sample; the same command tries once more" in reports[0].notes[-1]
    assert all("which stays so; `--again`" in report.notes[-1] for report in reports[1:])
    assert all(kinds(report)["bob"] == ["grader"] and report.rows[1].result.look for report in reports)
    run(course, "bob", again=True)
    assert grader.graded[-1] == "bob" and len(grader.graded) == 5
    hand_in(course.root, "bob", exercise(first=30))
    run(course)
    assert len(grader.graded) == 6, "another submission is another matter"


def test_a_time_that_cannot_be_read_is_on_the_page(course: Course, grader: Grader) -> None:
    (course.submitted / "bob" / EXERCISE / "timestamp.txt").write_text("yesterday")
    (course.submitted / "ana" / EXERCISE / "timestamp.txt").write_text("2026-01-02 03:04:05 UTC")
    assert kinds(run(course)) == {"ana": [], "bob": ["timestamp"], "eve": []}
    assert "yesterday" in course.feedback("bob", EXERCISE).read_text()
    assert kinds(run(course))["bob"] == ["timestamp"]
    assert str(Ledger.read(course.gradebook).handed_in["ana", EXERCISE]) == "2026-01-02 03:04:05"
    (course.submitted / "bob" / EXERCISE / "timestamp.txt").unlink()
    assert kinds(run(course))["bob"] == [] and len(grader.graded) == 3


def test_a_full_disk_ends_the_run_and_loses_nothing(
    course: Course, grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = keeper.write

    def full(course: Course, who: Who, result: Result) -> None:
        if who[0] == "bob":
            raise OSError(28, "No space left on device")
        works(course, who, result)

    monkeypatch.setattr(keeper, "write", full)
    with pytest.raises(OSError, match="No space"):
        run(course)
    monkeypatch.setattr(keeper, "write", works)
    assert agreed(course, run(course)) == expected(BEFORE)
    assert grader.graded == ["ana", "bob", "bob", "eve"]


def test_a_crash_of_the_grader_has_a_status_of_its_own(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise AssertionError("a fault of ours")

    monkeypatch.setattr(courses, "grade", broken)
    assert main(["grade", str(course.submitted)]) == 3
    assert "a fault of ours" in capsys.readouterr().err


# --- one task -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["second", "second-check", "sample.second"])
def test_one_task_is_graded_again(course: Course, grader: Grader, name: str) -> None:
    grader.incidents["ana"] = [Incident("cell-time", "x", "first"), Incident("memory", "x", "second-check")]
    run(course)
    grader.part = {"ana": 0.5, "bob": 1.0, "eve": 1.0}
    grader.incidents["ana"] = [Incident("cell-time", "y", "second")]
    report = run(course, task=name)
    assert agreed(course, report) == {"ana": (55, 80), "bob": (65, 80), "eve": (50, 80)}
    assert [(each.kind, each.cell) for each in report.rows[0].result.incidents] == [
        ("cell-time", "first"),
        ("cell-time", "second"),
    ]
    shown = course.feedback("ana", EXERCISE).read_text()
    assert "55 of 80 points" in shown and shown.count("The notebook, as it was run") == shown.count("</html>") == 1
    grader.graded.clear()
    assert agreed(course, run(course)) == {"ana": (55, 80), "bob": (65, 80), "eve": (50, 80)}
    assert not grader.graded, "everything counts as graded"


def test_one_task_of_another_weight_is_graded_again(course: Course, grader: Grader) -> None:
    run(course)
    change(course, {"first": 30, "second": 10})
    assert agreed(course, run(course, task="second")) == expected({"first": 30, "second": 10})
    change(course, {"first": 20, "second": 20})
    with pytest.raises(CommandError, match="01-sample has changed in first-check since ana was graded"):
        run(course, task="second")


def test_one_task_of_work_that_has_changed_is_passed_over(course: Course, grader: Grader) -> None:
    run(course, "ana", "eve")
    hand_in(course.root, "ana", exercise(first=30))
    grader.part = dict.fromkeys(STUDENTS, 0.5)
    report = run(course, task="first")
    assert [row.student for row in report.rows] == ["eve"]
    assert "ana 01-sample, bob 01-sample" in report.notes[-1]
    with pytest.raises(CommandError, match="there is no task third; there is first-check, second-check"):
        run(course, task="third")


def test_an_earlier_journal_is_graded_again(course: Course, grader: Grader) -> None:
    course.journal.write_text(
        json.dumps({"seeds": [1, 2, 3]})
        + "\n"
        + json.dumps({"student": "ana", "exercise": EXERCISE, "key": "x", "result": {"graded": [], "incidents": []}})
        + "\n"
    )
    with suppress(CommandError):
        assert agreed(course, run(course)) == expected(BEFORE)
    assert grader.graded == ["ana", "bob", "eve"]


# --- what persons give and write is said everywhere ---------------------------------------------------------------


def better(course: Course, grader: Grader) -> None:
    grader.part["bob"] = 1.0
    hand_in(course.root, "bob", exercise(first=30, second=50, third=1))
    run(course)


def damaged(course: Course, grader: Grader) -> None:
    grader.damaged.add("bob")
    hand_in(course.root, "bob", "no notebook")
    run(course)


def untimed(course: Course, _: Grader) -> None:
    (course.submitted / "bob" / EXERCISE / "timestamp.txt").write_text("yesterday")
    run(course)


def timed(course: Course, _: Grader) -> None:
    (course.submitted / "bob" / EXERCISE / "timestamp.txt").write_text("2026-01-02 03:04:05 UTC")
    run(course)


def outside(course: Course, grader: Grader) -> None:
    grader.incidents["bob"] = [Incident("outside", "x")]
    run(course, "bob", again=True)


def given(points: float | None) -> Callable[[Course, Grader], None]:
    def gives(course: Course, _: Grader) -> None:
        give(course, "bob", "first-check", points)

    return gives


def commented(course: Course, _: Grader) -> None:
    write(course, "bob", "first", "Look at <b>page 3</b>.")


def nbgraders_page(course: Course, _: Grader) -> None:
    course.feedback("bob", EXERCISE).write_text("<!DOCTYPE html>\n<html>nbgrader's</html>\n")


def regraded(course: Course, grader: Grader) -> None:
    run(course, "bob", again=True)


def damaged_copy(course: Course, _: Grader) -> None:
    course.autograded("ana", EXERCISE).write_text("{")
    give(course, "ana", "first-check", 29)
    course.autograded("eve", EXERCISE).write_bytes(b"\xff")


Deeds = tuple[Callable[[Course, Grader], None], ...]
DEEDS: dict[
    str, tuple[Deeds, float | None, bool]
] = {  # what is done, the points then, and whether a person has to look
    "points": ((given(10),), 35, False),
    "all of them": ((given(30), commented), 55, False),
    "none": ((given(0),), 25, False),
    "too many": ((given(31),), 56, False),
    "points that are taken back": ((given(10), regraded, given(None)), 40, False),
    "a comment": ((commented,), 40, False),
    "a better resubmission": ((given(10), better), 60, True),
    "a better one, and looked at": ((given(10), better, given(10)), 60, False),
    "a better one, and taken back": ((given(10), better, given(None)), 80, False),
    "a damaged one": ((damaged,), None, True),
    "none for a damaged one": ((damaged, given(0)), 0, False),
    "some for a damaged one": ((damaged, given(5), commented), 5, False),
    "one in place of a damaged one": ((damaged, given(5), timed), 5, False),
    "no time": ((untimed,), 40, True),
    "no time, and looked at": ((untimed, given(15)), 40, False),
    "a time that was mended": ((untimed, timed), 40, False),
    "a time that was mended, and looked at": ((untimed, given(10), timed), 35, False),
    "an incident, then points": ((outside, given(20)), 45, False),
    "an incident after points": ((given(20), outside), 45, True),
    "copies that another program has damaged": ((damaged_copy, given(10)), 35, False),
    "nbgrader's page": ((given(10), nbgraders_page), 35, False),
}


@pytest.mark.parametrize("name", DEEDS)
def test_what_persons_give_and_write_is_said_everywhere(course: Course, grader: Grader, name: str) -> None:
    deeds, points, look = DEEDS[name]
    run(course)
    for deed in deeds:
        deed(course, grader)
    report = run(course)
    agreed(course, report)
    found, (_, row, _) = overview(course), report.rows
    marks = Ledger.read(course.gradebook).marks["bob", EXERCISE]
    said = "?" if points is None else f"{points:g}"
    (line,) = [line for line in str(report).splitlines() if line.strip().startswith("bob")]
    assert line.split()[1] == f"{said}/80" and ("← look at it" in line) == look
    by_hand = [mark for mark in marks.values() if mark.person is not None]
    assert ("1 by hand" in line) == bool(by_hand)
    differ = sum((mark.person or 0) - (mark.program or 0) for mark in by_hand if mark.program is not None)
    assert (f"{abs(differ):g} {'fewer' if differ < 0 else 'more'} than the checks give now" in line) == bool(differ)
    waiting = [each for each in found.queue if each.student == "bob"]
    assert bool(waiting) == (look or name == "too many") and all(each.why for each in waiting)
    totals = [
        each for each in csv.DictReader(sheet(found).splitlines()) if each["student"] == "bob" and not each["cell"]
    ]
    assert [(each["points"], each["incidents"]) for each in totals] == [(said.strip("?"), " ".join(row.kinds))]
    assert row.kinds == found.lines[1].kinds
    box = course.autograded("bob", EXERCISE).read_text()
    for reason in (*map(str, row.result.incidents), *(why for each in waiting for why in each.why)):
        assert json.dumps(reason, ensure_ascii=False)[1:-1] in box and reason in text(found) + box
    assert (BOX in box) == bool(waiting or row.result.incidents)
    page = course.feedback("bob", EXERCISE).read_text()
    assert ("No points yet of 80" if points is None else f"{points:g} of 80 points<") in page
    assert page.count("by a person</td>") == len(by_hand)
    assert ("Look at &lt;b&gt;page 3&lt;/b&gt;." in page) == (commented in deeds)
    assert all(str(incident.kind) in page for incident in row.result.incidents) and "nbgrader's" not in page
    assert main(["export", "feedback", "--to", str(course.root / "pages"), "--course", str(course.root)]) in (0, 1)
    assert (course.root / "pages" / EXERCISE / "bob.html").read_text() == page


# --- the class as a whole -----------------------------------------------------------------------------------------


def test_the_report_says_what_the_gradebook_says(course: Course, grader: Grader, tmp_path: Path) -> None:
    grader.incidents["eve"] = [Incident("tampered", "<script>alert(1)</script>", "first")]
    run(course)
    give(course, "bob", "first-check", 31)
    with closing(Book(course.gradebook)) as book, book.transaction():
        book.penalise(("bob", EXERCISE), 2.5)
    (course.root / "roster.csv").write_text("student id,name\nana,Ana\nzoe,Zoe\n")
    found = overview(course)
    (made,) = found.exercises
    assert (made.students, made.of, made.mean, made.median) == (3, 80, 68, 68)
    assert made.histogram == (0, 0, 0, 0, 0, 0, 0, 1, 0, 1) and made.missing == ("zoe",)
    first, second = made.tasks
    assert (first.name, first.of, first.all_points, first.no_points) == ("first-check", 30, 2, 0)
    assert second.reasons == (("a reason", 2),) and found.hardest[0] == second
    assert made.incidents == (("tampered", 1),)
    assert {(each.student, each.why[0][:8]) for each in found.queue} == {("bob", "first-ch"), ("eve", "tampered")}
    assert [(each.student, each.changes[0].after) for each in found.changes] == [("bob", 31)]
    assert "bob 01-sample: first-check points none → 31" in text(found)
    made_page = page(found)
    assert all("ate: bob -2.5; these points come off" in each for each in (text(found), made_page))
    assert "<script" not in made_page and "&lt;script&gt;" in made_page and "default-src 'none'" in made_page
    rows = list(csv.DictReader(sheet(found).splitlines()))
    assert {row["student"]: row["points"] for row in rows if not row["cell"]} == {"ana": "80", "bob": "56", "eve": ""}
    assert sum(float(row["points"] or 0) for row in rows if row["cell"]) == 136
    assert json.loads(json.dumps(found.to_json()))["hardest"][0] == "01-sample second-check"
    assert [line.student for line in overview(course, ["bob", EXERCISE]).lines] == ["bob"]
    give(course, "eve", "first-check", 1)
    assert [each.student for each in overview(course).queue] == ["bob"], "formgrader takes submissions off the queue"


def test_the_report_is_a_command(course: Course, grader: Grader, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(course.root)]) == 2
    assert "nothing was graded" in capsys.readouterr().err
    run(course)
    before = [path.read_bytes() for path in (course.gradebook, course.journal, course.history)]
    for where in (course.root, course.submitted):
        assert main(["report", str(where)]) == 0
        assert "mean 40.0, median 40 of 80 points" in capsys.readouterr().out
    assert (course.root / "report.html").stat().st_mode & 0o777 == 0o600
    assert main(["report", str(course.root), "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "ana,01-sample,first-check,30,30,,,"
    assert main(["report", str(course.root), "--json", "--only", "ana", "--only", "bob"]) == 0
    assert len(json.loads(capsys.readouterr().out)["lines"]) == 2
    assert main(["report", str(course.root), "--json", "--only", "ana"]) == 0
    assert len(json.loads(capsys.readouterr().out)["lines"]) == 1
    assert [path.read_bytes() for path in (course.gradebook, course.journal, course.history)] == before
