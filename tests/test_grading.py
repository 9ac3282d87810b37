"""Grading a class: what an instructor meets on the way, from a folder that is none to a disk that is full."""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import os
import sys
from collections.abc import Iterator
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from minitorch.__main__ import main
from minitorch.classroom.grading.course import grade as courses
from minitorch.classroom.grading.course import journal
from minitorch.classroom.grading.course.folders import Course, configure, submissions
from minitorch.classroom.grading.course.gradebook import Book, handed_in_at
from minitorch.classroom.grading.course.journal import Journal
from minitorch.classroom.grading.course.progress import Progress
from minitorch.classroom.grading.course.report import Report
from minitorch.classroom.grading.incidents import KINDS, Incident
from minitorch.classroom.grading.limits import Limits
from minitorch.classroom.grading.results import Graded, Result
from minitorch.classroom.grading.sandbox import bubblewrap as sandbox
from minitorch.classroom.grading.sandbox.kernel import Ran, harmless
from minitorch.classroom.grading.submission import feedback
from minitorch.classroom.grading.submission.autograded import as_notebook, verbatim
from minitorch.classroom.grading.submission.outcomes import of_cell, why_no_answers
from minitorch.classroom.grading.submission.preflight import Part, released
from minitorch.errors import CommandError
from tests import classes
from tests.classes import RIGHT, hand_in, notebook, sample

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


def test_an_environment_in_a_folder_for_files_that_come_and_go_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "interpreter", lambda: [Path("/tmp/clone/.venv")])
    options = sandbox.Sandbox(Limits()).bubblewrap(Path("/tmp/shared"))
    empty = options.index("--tmpfs")
    assert max(n for n, option in enumerate(options) if option == "--tmpfs") < options.index("/tmp/clone/.venv")
    assert empty < options.index("/tmp/clone") and options[options.index("/tmp") - 1] == "--tmpfs"


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
    for name in ("red\x1b[31m", "half\udc80"):  # a terminal would obey the one, and no gradebook takes the other
        (course.submitted / name / classes.EXERCISE).mkdir(parents=True)
    found, strays = submissions(course)
    assert [each.student for each in found] == ["ana"]
    assert [path.name for path in strays] == ["homework", "eve", "half\udc80", "notes.txt", "red\x1b[31m"]
    shown = str(Report([], strays))
    assert "half\\udc80" in shown and "red\\x1b[31m" in shown and shown.encode()


def test_a_folder_that_may_not_be_read_is_reported(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_in(course.root, "bob", notebook(sample()))
    entries = Path.iterdir

    def closed(path: Path) -> Iterator[Path]:
        if path.name == "bob":
            raise PermissionError(13, "Permission denied", str(path))
        return entries(path)

    monkeypatch.setattr(Path, "iterdir", closed)
    found, strays = submissions(course)
    assert [each.student for each in found] == ["ana"]
    assert [path.name for path in strays] == ["bob"]


def test_the_folder_above_is_no_folder_of_submissions(course: Course) -> None:
    with pytest.raises(CommandError, match=r"is the folder of a course: grade .*/submitted"):
        submissions(Course(course.root, course.exercises))


def test_a_time_of_handing_in_is_read_from_a_small_file_only(tmp_path: Path) -> None:
    path = tmp_path / "timestamp.txt"
    path.write_text("2026-01-02 03:04:05 UTC")
    assert handed_in_at(tmp_path) == datetime(2026, 1, 2, 3, 4, 5)
    for text in ("yesterday", "9" * 30, "2026" + " " * 200):
        path.write_text(text)
        assert handed_in_at(tmp_path) is None
    path.unlink()
    path.symlink_to("/dev/zero")
    assert handed_in_at(tmp_path) is None
    path.unlink()
    os.mkfifo(path)
    assert handed_in_at(tmp_path) is None


def test_a_gradebook_that_is_none_is_said_in_a_sentence(course: Course) -> None:
    course.gradebook.write_bytes(b"no database" * 100)
    with pytest.raises(CommandError, match=r"gradebook.db cannot be used as a gradebook: .* move it away"):
        Book(course.gradebook)


def test_a_full_disk_is_said_in_a_sentence(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "feedback")

    monkeypatch.setattr(courses, "grade", full)
    assert main(["grade", str(course.submitted)]) == 2
    assert capsys.readouterr().err == (
        "minitorch grade: feedback: No space left on device; what is done is kept, run it again\n"
    )


def test_a_configuration_of_the_instructors_is_kept(course: Course) -> None:
    path = course.root / "nbgrader_config.py"
    configure(course)
    assert 'release_directory = "exercises"' in path.read_text()
    path.write_text("c = get_config()\n")
    configure(course)
    assert path.read_text() == "c = get_config()\n"


@pytest.mark.parametrize("kind", ["markdown", "raw"])
@pytest.mark.parametrize(
    "before", ["", "```\n", "~~~\n", "````text\n```\n", "$$\n", "    ", "<pre>\n", "[a]: b\n", "> ```\n"]
)
def test_formgrader_runs_nothing_that_a_student_wrote(kind: str, before: str) -> None:
    import nbformat
    from nbconvert.exporters import HTMLExporter
    from nbgrader.server_extensions.formgrader.handlers import template_path

    exporter = HTMLExporter(template_name="formgrade", extra_template_basedirs=[template_path])
    outputs = [
        {"output_type": "display_data", "metadata": {}, "data": harmless({"text/html": HOSTILE, "image/png": HOSTILE})}
    ]
    text = f"{before}{HOSTILE}\n[link](javascript:alert(1))"
    parts = [Part("<b>ours</b>", "markdown"), Part(text, kind), Part(f"# {HOSTILE}", "code")]
    made = as_notebook(parts, {2: outputs}, {"<b>ours</b>"})
    nbformat.validate(made)
    names = ("base_url", "mathjax_url", "last_name", "first_name", "submission_id", "notebook_id", "assignment_id")
    resources = {**dict.fromkeys(names, ""), "index": 0, "total": 1}
    page, _ = exporter.from_notebook_node(nbformat.from_dict(made), resources=resources)
    requests = [each or "" for each in Tags(page).requests if not str(each).startswith("data:")]
    assert "<b>ours</b>" in page
    assert not [each for each in requests if "example.org" in each or "javascript:" in each]


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


def test_a_check_says_which_cell_above_it_did_not_run() -> None:
    missing = Ran(error={"ename": "NameError", "evalue": "name 'merge' is not defined"})
    source = "def merge(a, b):\n    return a +"
    ends = {
        "SyntaxError: invalid syntax": Ran(error={"ename": "SyntaxError", "evalue": "invalid syntax"}),
        "memory": Ran(incident=Incident("memory")),
    }
    for why, ran in ends.items():
        stopped = of_cell("merge", source, ran)
        assert stopped is not None and why in why_no_answers(missing, [stopped])
        assert why_no_answers(missing, [stopped]).startswith("the cell `merge` above did not run (")
    assert of_cell("merge", source, Ran()) is None
    assert why_no_answers(missing).startswith("no cell above defines `merge` (NameError)")
    assert why_no_answers(Ran(error={"ename": "TypeError", "evalue": "no"})) == "the check stopped with TypeError: no"


def test_feedback_shows_the_instructors_text_as_it_is_meant_and_a_students_as_it_is_written() -> None:
    texts = [
        "# Task *1*\n\n| a | b |\n|---|---|\n| `x` | 2 |\n\n[to](https://example.org) ![of](https://example.org/x.png)",
        verbatim(f"# Not *mine*\n```\n</code></pre>{HOSTILE}\n````\n[to](javascript:alert(1))\n"),
    ]
    cells = [{"cell_type": "markdown", "metadata": {}, "source": text} for text in texts]
    page = feedback.page("ana", "03-graph", Result([], [], {"cells": cells}))
    tags = Tags(page)
    assert {"h1", "em", "table", "code"} <= tags.names and "a" not in tags.names and not tags.requests
    assert not tags.names & {"script", "img"} and "<h1>Task <em>1</em></h1>" in page
    assert "# Not *mine*" in page and "[to](javascript:alert(1))" in page


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


def test_the_instructors_page_names_every_incident() -> None:
    page = (classes.ROOT / "docs" / "grading.md").read_text()
    assert not [kind for kind in KINDS if f"`{kind}`" not in page]
