"""Grading a class: every score as expected, whatever happens to the run; and what an instructor meets on the way."""

from __future__ import annotations

import dataclasses
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from minitorch.classroom.checks import EXERCISES, TASKS
from minitorch.classroom.grading import course as courses
from minitorch.classroom.grading import feedback, journal, sandbox
from minitorch.classroom.grading.folders import Course, submissions
from minitorch.classroom.grading.gradebook import Book
from minitorch.classroom.grading.incidents import Incident
from minitorch.classroom.grading.journal import Journal
from minitorch.classroom.grading.limits import Limits
from minitorch.classroom.grading.preflight import released
from minitorch.classroom.grading.progress import Progress
from minitorch.classroom.grading.results import Graded, Result
from minitorch.errors import CommandError
from tests import classes
from tests.classes import RIGHT, hand_in, notebook, sample
from tests.helpers import require
from tests.test_adversarial import processes, scores
from tests.zoo import ANIMALS, Animal, as_cell

pytestmark = pytest.mark.xdist_group("one at a time")  # each of them keeps all cores busy by itself

# --- a class of 30 ---------------------------------------------------------------------------------------------

EXERCISE = "01-eager"
TASK_NAMES = [task.name for task in EXERCISES[EXERCISE]]
LIMITS = ("--cell-time", "6", "--time", "90", "--memory", "600", "--workers", "3")

# What ends a first cell that is right until then, how many do so, and whether the function survives.
HOSTILE_ENDS = {
    "endless": ("while True: pass", 2, True),
    "exit": ("import os; os._exit(0)", 2, False),
    "memory": ("x = []\nwhile True: x.append(bytearray(10**7))", 1, False),
}


@dataclass(frozen=True)
class Student:
    """The source that is handed in for each task (none: as it was handed out), and whose points it should get.

    An entry of `worth` is an animal of the zoo, or whether all points or none are expected.
    """

    sources: dict[str, str]
    worth: dict[str, Animal | bool]

    def expected(self, seeds: Sequence[int]) -> dict[str, float]:
        """The points for each cell, with the animals judged here, in this process."""
        found: dict[str, float] = {}
        for name, worth in self.worth.items():
            task = TASKS[name]
            if isinstance(worth, Animal):
                found[cell_of(name)] = task.assess(
                    json.loads(json.dumps(task.collect(worth.function, seeds))), seeds
                ).points
            else:
                found[cell_of(name)] = task.points * worth
        return found


def cell_of(task: str) -> str:
    """The grade_id of the cell in which a task is solved."""
    return task.partition(".")[2].replace("_", "-")


def read(folder: str) -> dict[str, Any]:
    return json.loads((classes.ROOT / folder / EXERCISE / f"{EXERCISE}.ipynb").read_text())


def solutions() -> dict[str, str]:
    """The right source for each task."""
    by_id = {cell["id"]: "".join(cell["source"]) for cell in read("solutions")["cells"]}
    return {name: by_id[cell_of(name)] for name in TASK_NAMES}


def zoo(wrong: bool) -> Iterator[Student]:
    """Students who hand in the n-th wrong (or the n-th right) animal for each task, over and over."""
    animals = {name: [a for a in ANIMALS if a.task == name and bool(a.says) is wrong] for name in TASK_NAMES}
    for number in count():
        chosen = {name: found[number % len(found)] for name, found in animals.items()}
        yield Student({name: as_cell(animal) for name, animal in chosen.items()}, dict(chosen))


def students() -> dict[str, Student]:
    """All 30, in an order that mixes them."""
    solved = solutions()
    everything = dict.fromkeys(TASK_NAMES, True)
    found = {f"{number:02}-right": Student(solved, everything) for number in range(6)}
    for number in range(5):
        left_out = TASK_NAMES[number % len(TASK_NAMES)]
        some = {name: source for name, source in solved.items() if name != left_out}
        found[f"{number:02}-partly"] = Student(some, everything | {left_out: False})
    found |= {f"{number:02}-zoo": student for number, student in enumerate(islice(zoo(wrong=True), 8))}
    found |= {f"{number:02}-differently": student for number, student in enumerate(islice(zoo(wrong=False), 2))}
    found |= {f"{number:02}-blank": Student({}, dict.fromkeys(TASK_NAMES, False)) for number in range(4)}
    first = TASK_NAMES[0]
    for kind, (end, how_many, survives) in HOSTILE_ENDS.items():
        hostile = Student(solved | {first: f"{solved[first]}\n{end}"}, everything | {first: survives})
        found |= {f"{number:02}-{kind}": hostile for number in range(how_many)}
    return dict(sorted(found.items()))


def handed_in(student: Student) -> str:
    """A student's notebook."""
    made = read("exercises")
    sources = {cell_of(name): source for name, source in student.sources.items()}
    for cell in made["cells"]:
        cell["source"] = sources.get(cell["id"], cell["source"])
    return json.dumps(made)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]], list[str]]:
    """A class graded in two runs, of which the first is killed: the course, the report, the journal in between."""
    classes.needs_bubblewrap()
    root = classes.course(tmp_path_factory.mktemp("class"), json.dumps(read("exercises")), EXERCISE)
    for name, student in students().items():
        hand_in(root, name, handed_in(student), exercise=EXERCISE)
    first = subprocess.Popen(
        classes.command(root, *LIMITS), env=classes.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    done = root / "grading.jsonl"
    end = time.monotonic() + 300
    while time.monotonic() < end and not (done.exists() and len(done.read_text().splitlines()) > 9):
        assert first.poll() is None, "it came to its end before it could be killed"
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = done.read_text()
    return root, classes.grade(root, *LIMITS), before.splitlines()


def test_a_class_of_30_is_graded_as_expected(graded: Any) -> None:
    root, report, before = graded
    seeds = json.loads(before[0])["seeds"]
    expected = {name: student.expected(seeds) for name, student in students().items()}
    assert len(expected) == 30
    assert {name: classes.points(row) for name, row in report.items()} == expected
    written = {(student, cell.removesuffix("-check")): score for (student, cell), score in scores(root).items()}
    assert written == {(name, cell): score for name, cells in expected.items() for cell, score in cells.items()}


def test_resuming_keeps_what_was_done(graded: Any) -> None:
    root, report, before = graded
    after = (root / "grading.jsonl").read_text().splitlines()
    assert 9 < len(before) < 31
    assert after[: len(before)] == before
    assert len(after) == 1 + len(report), "each submission was graded once"


def test_nothing_of_the_killed_run_is_left(graded: Any) -> None:
    assert not processes()


def test_a_second_run_grades_nothing(graded: Any) -> None:
    root, report, _ = graded
    journal_before = (root / "grading.jsonl").read_bytes()
    assert classes.grade(root, *LIMITS) == report
    assert (root / "grading.jsonl").read_bytes() == journal_before


def test_nbgrader_agrees_on_the_notebooks_as_they_were_run(graded: Any) -> None:
    import nbformat
    from nbgrader.utils import determine_grade, is_grade

    root, report, _ = graded
    for student in ("00-right", "00-partly", "00-zoo"):
        path = root / "autograded" / student / EXERCISE / f"{EXERCISE}.ipynb"
        executed = nbformat.read(path, as_version=4)
        nbformat.validate(executed)
        found = [determine_grade(cell)[0] for cell in executed.cells if is_grade(cell)]
        assert found == list(classes.points(report[student]).values())


def test_formgrader_shows_the_scores(graded: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("selenium", reason="the tests in a browser need selenium, of the extra 'dev'")
    from tests import browser as browsers

    require("chromium", browsers.missing())
    root, report, _ = graded
    monkeypatch.chdir(root)  # where an instructor starts JupyterLab
    browser = browsers.Browser(tmp_path / "profile")
    try:
        with browsers.lab_server(root, tmp_path / "lab") as address:
            browser.driver.get(f"{address}lab?reset")
            browser.wait(lambda: choose(browser, "Nbgrader", "Formgrader"), "formgrader in a menu")
            browser.driver.switch_to.frame(browser.one("iframe[src*='formgrader']"))
            browser.wait(lambda: EXERCISE in rows(browser), "the exercise in formgrader")
            browser.one("a[href$='manage_students']").click()
            browser.wait(lambda: len(rows(browser)) > 30, "a row for each student")
            shown = rows(browser)
    finally:
        browser.close()
    assert {student: shown[student][-1] for student in report} == {
        student: f"{row['points']:g} / 100" for student, row in report.items()
    }


def choose(browser: Any, menu: str, entry: str) -> bool:
    """Choose from a menu of JupyterLab's, once it is there."""
    titles = [title for title in browser.all(".lm-MenuBar-item") if title.text == menu]
    if titles and not browser.all(".lm-Menu-item"):
        titles[0].click()
    entries = [item for item in browser.all(".lm-Menu-item") if item.text == entry]
    if entries:
        entries[0].click()
    return bool(entries)


def rows(browser: Any) -> dict[str, list[str]]:
    """The cells of a table of formgrader's, without empty ones, by each of them."""
    script = (
        "return [...document.querySelectorAll('table tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))"
    )
    found = [[text.strip() for text in row if text.strip()] for row in browser.script(script)]
    return {text: row for row in found for text in row}


# --- before the first kernel starts ----------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path: Path) -> Course:
    root = classes.course(tmp_path)
    hand_in(root, "ana", notebook(sample()))
    return Course(root / "submitted", root / "exercises")


def test_without_a_sandbox_grading_refuses(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "unavailable", lambda: "the sandbox needs bubblewrap")
    with pytest.raises(CommandError, match=r"needs bubblewrap: .*; --unsafe runs the students' code with your rights"):
        courses.grade(course, Limits(), 1)
    assert not course.gradebook.exists()


def test_unsafe_grades_without_a_sandbox(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "unavailable", lambda: "the sandbox needs bubblewrap")
    hand_in(course.root, "ana", notebook(sample(RIGHT)))
    report = courses.grade(course, Limits(), 1, safe=False)
    assert [classes.points(row.to_json()) for row in report.rows] == [{"first": 30, "second": 0}]
    assert "ana" in str(report) and "30/60" in str(report)


def test_the_reason_for_no_sandbox_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "bubblewrap" in str(sandbox.unavailable.__wrapped__()) or sys.platform != "linux"


def test_a_course_inside_what_students_see_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "interpreter", lambda: [tmp_path])
    monkeypatch.setattr(sandbox, "unavailable", lambda: None)
    root = classes.course(tmp_path / "inside")
    hand_in(root, "ana", notebook(sample()))
    with pytest.raises(CommandError, match=r"which student code can read: move .*inside elsewhere"):
        courses.grade(Course(root / "submitted", root / "exercises"), Limits(), 1)


def test_nothing_to_grade_is_an_error(course: Course) -> None:
    with pytest.raises(CommandError, match=r"nothing to grade for bob: no student and no exercise"):
        submissions(course, ["bob"])
    with pytest.raises(CommandError, match="there is no folder"):
        submissions(Course(course.root / "elsewhere", course.exercises))


def test_what_is_no_submission_is_reported(course: Course) -> None:
    hand_in(course.root, "bob", "", exercise="homework")
    (course.submitted / "notes.txt").write_text("")
    (course.submitted / "eve").symlink_to(course.submitted / "ana")
    found, strays = submissions(course)
    assert [each.student for each in found] == ["ana"]
    assert [path.name for path in strays] == ["homework", "eve", "notes.txt"]


def test_an_exercise_that_fits_no_check_is_refused(course: Course) -> None:
    path = course.release(classes.EXERCISE)
    content = path.read_text()
    path.write_text(content.replace('"points": 30', '"points": 20', 1))
    with pytest.raises(CommandError, match="the cell first-check says 20 points and its task has 30"):
        courses.read_release(course, classes.EXERCISE)
    path.write_text(content.replace("checks.eager.unbroadcast(first)", "assert first"))
    with pytest.raises(CommandError, match="the graded cell first-check calls no check"):
        courses.read_release(course, classes.EXERCISE)


# --- the journal -----------------------------------------------------------------------------------------------


def test_half_a_line_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path) as first:
        seeds = first.seeds
        first.add("ana", "x", "key", {"points": 1})
        first.add("bob", "x", "key", {"points": 2})
    path.write_bytes(path.read_bytes()[:-9])
    with Journal(path) as second:
        assert second.seeds == seeds
        assert second.done("ana", "x", "key") == {"points": 1}
        assert second.done("bob", "x", "key") is None
        second.add("bob", "x", "key", {"points": 3})
    with Journal(path) as third:
        assert third.done("bob", "x", "key") == {"points": 3}


def test_a_result_counts_for_what_it_was_made_from(tmp_path: Path) -> None:
    root = classes.course(tmp_path)
    release = root / "exercises" / classes.EXERCISE / f"{classes.EXERCISE}.ipynb"
    path = hand_in(root, "ana", notebook(sample()))
    keys = [journal.key_of(path.parent, release, Limits(), True)]
    keys.append(journal.key_of(path.parent, release, Limits(cell_seconds=1), True))
    path.write_text(notebook(sample(RIGHT)))
    keys.append(journal.key_of(path.parent, release, Limits(), True))
    path.rename(path.with_name("other.ipynb"))
    keys.append(journal.key_of(path.parent, release, Limits(), True))
    assert len(set(keys)) == len(keys)


def test_a_course_is_graded_by_one_process(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="files are not locked on Windows")
    with Journal(tmp_path / "journal"), pytest.raises(CommandError, match="another process is grading"):
        Journal(tmp_path / "journal").__enter__()


def test_a_damaged_journal_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("{}\n")
    with pytest.raises(CommandError, match="damaged; move it away"):
        Journal(tmp_path / "journal").__enter__()


# --- the gradebook ---------------------------------------------------------------------------------------------


def test_points_that_a_person_gave_stay_and_what_needs_one_is_marked(course: Course) -> None:
    release = released(course.release(classes.EXERCISE))
    result = Result([Graded("first-check", 10, 30, "a reason"), Graded("second-check", 30, 30, "")])
    with Book(course.gradebook) as book:
        book.exercise(classes.EXERCISE, release)
        book.record("ana", classes.EXERCISE, result, datetime(2026, 1, 2))
        grade = book._book.find_grade("first-check", classes.EXERCISE, classes.EXERCISE, "ana")
        assert (grade.score, grade.needs_manual_grade) == (10, False)
        grade.manual_score = 25
        book._book.db.commit()
        book.exercise(classes.EXERCISE, release)
        book.record("ana", classes.EXERCISE, result)
        assert book.scores()["ana", classes.EXERCISE, "first-check"] == 25
        damaged = Result(
            [Graded("first-check", 0, 30, "a"), Graded("second-check", 0, 30, "b")], [Incident("not-json")]
        )
        book.record("bob", classes.EXERCISE, damaged)
        assert book._book.find_grade("first-check", classes.EXERCISE, classes.EXERCISE, "bob").needs_manual_grade


# --- feedback and progress -------------------------------------------------------------------------------------

HOSTILE = "<script src='https://example.org/x.js'></script><img src=https://example.org/x.png>"


class Tags(HTMLParser):
    """The names of all tags of a page, and all that it would ask for."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.requests: list[str | None] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.requests += [value for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]


def test_feedback_holds_nothing_of_a_students_as_html() -> None:
    data = {"text/html": HOSTILE, "text/plain": HOSTILE, "image/svg+xml": HOSTILE}
    outputs = [
        {"output_type": "display_data", "data": data},
        {"output_type": "display_data", "data": {"image/png": f"'>{HOSTILE}"}},
        {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=\n"}},
        {"output_type": "stream", "name": "stdout", "text": HOSTILE},
        {"output_type": "error", "traceback": [HOSTILE]},
    ]
    cells = [
        {"cell_type": "code", "metadata": {}, "source": HOSTILE, "outputs": outputs},
        {"cell_type": "markdown", "metadata": {}, "source": HOSTILE},
    ]
    result = Result([Graded(HOSTILE, 0, 10, HOSTILE)], [Incident("outside", HOSTILE, HOSTILE)], {"cells": cells})
    page = feedback.page(HOSTILE, HOSTILE, result)
    tags = Tags(page)
    assert not tags.names & {"script", "link", "iframe", "object", "svg"}
    assert tags.requests == ["data:image/png;base64,iVBORw0KGgo="]
    assert "default-src 'none'" in page


def test_progress_says_how_long_it_will_take() -> None:
    out = io.StringIO()
    progress = Progress(out)
    progress.begin(12, 4)
    progress._began -= 600  # ten minutes ago
    progress.step("ana 03-graph 85/100", alert=False)
    lines = ["4 of 12 were graded before, and are kept", "[ 5/12] ana 03-graph 85/100  ·  1 h 10 min left"]
    assert out.getvalue().splitlines() == lines


def test_a_reader_of_results_gets_what_was_written() -> None:
    result = Result([Graded("a", 1, 2, "b", {"parts": []}, True)], [Incident("memory", "x", "a")], None, 1.5)
    assert Result.from_json(json.loads(json.dumps(result.to_json()))) == dataclasses.replace(result)
