"""Grading a class: what an instructor meets on the way, from a folder that is none to a disk that is full."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import errno
import io
import json
import os
import queue
import re
import shutil
import subprocess
import sys
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from minitorch.__main__ import main
from minitorch.errors import CommandError
from minitorch_grading.grading.course.config import FOLDERS, configure, lets_code_run
from minitorch_grading.grading.course.folders import Course, Stray, submissions
from minitorch_grading.grading.course.gradebook.gradebook import Book
from minitorch_grading.grading.course.gradebook.ledger import Ledger
from minitorch_grading.grading.course.gradebook.recorder import Recorder
from minitorch_grading.grading.course.handed_in import handed_in, parsed
from minitorch_grading.grading.course.journal.journal import Entry, Journal
from minitorch_grading.grading.course.private import replace, tighten
from minitorch_grading.grading.course.report import Report, Row
from minitorch_grading.grading.course.running import grade as courses
from minitorch_grading.grading.course.running import keys, local
from minitorch_grading.grading.course.running.keys import conditions_of, work_of
from minitorch_grading.grading.course.running.progress import Progress
from minitorch_grading.grading.incidents import KINDS, Incident
from minitorch_grading.grading.limits import Limits
from minitorch_grading.grading.results import Graded, Result
from minitorch_grading.grading.sandbox import bubblewrap as sandbox
from minitorch_grading.grading.sandbox.execution import Ran
from minitorch_grading.grading.sandbox.outputs import harmless
from minitorch_grading.grading.submission import feedback
from minitorch_grading.grading.submission.autograded import as_notebook, boxed, verbatim, without_box
from minitorch_grading.grading.submission.outcomes import of_cell, why_no_answers
from minitorch_grading.grading.submission.preflight import (
    ENTRIES,
    DamagedError,
    Part,
    contents,
    notebooks,
    read,
    released,
)
from minitorch_grading.grading.submission.worker import Job
from tests.grading import classes
from tests.grading.classes import EXERCISE, RIGHT, hand_in, notebook, sample

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


def test_nothing_to_grade_is_an_error(course: Course) -> None:
    hand_in(course.root, "ana", "")
    with pytest.raises(CommandError, match=r"no student and no exercise in \S+ is called bob$"):
        submissions(course, ["bob"])
    with pytest.raises(CommandError, match=r"is called anna; did you mean ana\?"):
        submissions(course, ["anna"])
    with pytest.raises(CommandError, match="there is no folder"):
        submissions(Course(course.root / "elsewhere", course.exercises))


def test_what_is_no_submission_is_reported(course: Course) -> None:
    hand_in(course.root, "bob", "", exercise="homework")
    (course.submitted / "notes.txt").write_text("")
    (course.submitted / "eve").symlink_to(course.submitted / "ana")
    for name in ("red\x1b[31m", "half\udc80"):  # a terminal would obey the one, and no gradebook takes the other
        (course.submitted / name / classes.EXERCISE).mkdir(parents=True)
    found, strays = submissions(course)
    assert [student for student, _ in found] == ["ana"]
    assert [each.path.name for each in strays] == ["homework", "eve", "half\udc80", "notes.txt", "red\x1b[31m"]
    shown = str(Report([], strays))
    assert "half\\udc80" in shown and "red\\x1b[31m" in shown and shown.encode()


REFUSED = {
    "<img src=x onerror=alert(1)>": "begins with `<`",
    "-rf": "begins with `-`",
    "_ana": "begins with `_`",
    "=1+1": "begins with `=`",
    "+1": "begins with `+`",
    "ana$(id)": "has the character `$`",
    "ana;ls": "has the character `;`",
    "ana bob": "has the character ` `",
    "ana\u202ebob": "has the character `\\u202e`",
    "a" * 65: "has 65 characters, and 64 are taken",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_is_not_safe_everywhere_is_refused(course: Course, name: str) -> None:
    hand_in(course.root, name, notebook(sample()))
    found, strays = submissions(course)
    assert [student for student, _ in found] == ["ana"]
    assert [(each.path.name, REFUSED[name] in each.reason) for each in strays] == [(name, True)]
    with pytest.raises(CommandError, match="no student and no exercise"):
        submissions(course, [name])


@pytest.mark.parametrize(
    "name", ["ana", "7", "søren.k", "李雷", "अनीता", "e\u0301mile", "a@b.example", "x_y-z+1", "a" * 64]
)
def test_names_of_any_script_are_names(course: Course, name: str) -> None:
    hand_in(course.root, name, notebook(sample()))
    found, strays = submissions(course, [name])
    assert [student for student, _ in found] == [name] and not strays


def test_students_and_exercises_are_chosen_together(course: Course) -> None:
    for exercise in ("02-other", "03-third"):
        classes.course(course.root / exercise, exercise=exercise)
        (course.root / exercise / "exercises" / exercise).rename(course.exercises / exercise)
    for student, exercise in (("ana", "02-other"), ("bob", "02-other"), ("bob", "03-third"), ("eve", "03-third")):
        hand_in(course.root, student, notebook(sample()), exercise=exercise)

    def chosen(*only: str) -> list[str]:
        return [f"{student} {exercise[:2]}" for student, exercise in submissions(course, only)[0]]

    assert chosen("ana") == ["ana 01", "ana 02"]
    assert chosen("02-other") == ["ana 02", "bob 02"]
    assert chosen("ana", "02-other") == ["ana 02"]
    assert chosen("ana", "bob", "02-other") == ["ana 02", "bob 02"]
    assert chosen("bob", "02-other", "03-third") == ["bob 02", "bob 03"]
    with pytest.raises(CommandError, match="ana handed in no 03-third"):
        chosen("ana", "03-third")


def test_a_folder_that_may_not_be_read_is_reported(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    (course.submitted / "bob").mkdir()
    entries = os.scandir

    def closed(path: Path) -> Any:
        if Path(path).name == "bob":
            raise PermissionError(13, "Permission denied", str(path))
        return entries(path)

    monkeypatch.setattr(os, "scandir", closed)
    found, strays = submissions(course)
    assert [student for student, _ in found] == ["ana"]
    assert strays == [Stray(course.submitted / "bob")]


def test_the_folder_above_is_no_folder_of_submissions(course: Course) -> None:
    with pytest.raises(CommandError, match=r"is the folder of a course: grade .*/submitted"):
        submissions(Course(course.root, course.exercises))


TIMES = {
    "2026-01-02 03:04:05 UTC": datetime(2026, 1, 2, 3, 4, 5),
    "2026-01-02 03:04:05.678901 UTC": datetime(2026, 1, 2, 3, 4, 5, 678901),
    "2026-01-02 03:04:05.5 +0100": datetime(2026, 1, 2, 2, 4, 5, 500000),
    "2026-07-02 03:04:05 Europe/Berlin": datetime(2026, 7, 2, 1, 4, 5),
    "2026-01-02T03:04:05Z": datetime(2026, 1, 2, 3, 4, 5),
    "2026-01-02T03:04:05-05:30": datetime(2026, 1, 2, 8, 34, 5),
    "\ufeff2026-01-02T03:04\r\n": datetime(2026, 1, 2, 3, 4),
}
NO_TIMES = [
    *("", "yesterday", "9" * 30, "2026" + " " * 200, "2026-02-30 00:00:00 UTC", "2026-01-02 03:04:05 Nowhere/At_all"),
    *("2026-01-02 03:04:05 ../../etc/passwd", "2026-01-02 03:04:05 /etc/passwd", "0001-01-01T00:00:00+23:59"),
    *("9999-12-31T23:59:59-23:59", "2026-01-02T03:04:05+99:99", "2026-01-02 03:04:05 +2400", "1e9999", "[" * 90),
    *("٢٠٢٦-01-02 03:04:05", "2026-01-02 03:04:05 Europe", "2026-W01-1", "2026-01-02 25:00:00"),
]


@pytest.mark.parametrize("text", TIMES)
def test_times_of_handing_in_are_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "timestamp.txt").write_text(text)
    assert handed_in(tmp_path) == (TIMES[text], None)
    assert handed_in(tmp_path / "nothing") == (None, None)


@pytest.mark.parametrize("text", NO_TIMES)
def test_a_time_that_cannot_be_read_is_an_incident(tmp_path: Path, text: str) -> None:
    (tmp_path / "timestamp.txt").write_text(text)
    when, incident = handed_in(tmp_path)
    assert when is None and incident is not None and incident.kind == "timestamp"


def test_a_folder_named_like_a_notebook_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DamagedError) as damaged:
        contents(tmp_path, 100)
    assert damaged.value.incident.kind == "not-a-file"


def test_a_time_of_handing_in_is_read_from_a_small_file_only(tmp_path: Path) -> None:
    path = tmp_path / "timestamp.txt"
    makers = (
        lambda: path.symlink_to("/dev/zero"),
        lambda: path.symlink_to(tmp_path / "nowhere"),
        path.mkdir,
        lambda: os.mkfifo(path),
        lambda: path.write_bytes(b"\xff\xfe\0"),
    )
    for make in makers:
        make()
        when, incident = handed_in(tmp_path)
        assert when is None and incident is not None and incident.kind == "timestamp"
        path.rmdir() if path.is_dir() else path.unlink()


@settings(max_examples=300, deadline=None)
@given(strategies.text(max_size=60) | strategies.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.{0,20}", fullmatch=True))
def test_no_text_is_an_exception(text: str) -> None:
    with contextlib.suppress(ValueError, OverflowError):
        assert parsed(text).tzinfo is None


def test_a_gradebook_that_is_none_is_said_in_a_sentence(course: Course) -> None:
    course.gradebook.write_bytes(b"no database" * 100)
    with pytest.raises(CommandError, match=r"gradebook.db is damaged .*: put back a copy"):
        Ledger.read(course.gradebook)
    with pytest.raises(CommandError, match=r"gradebook.db is damaged .*: put back a copy"):
        Book(course.gradebook)


def test_a_full_disk_is_said_in_a_sentence(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "feedback")

    monkeypatch.setattr(courses, "grade", full)
    assert main(["grade", str(course.submitted)]) == 2
    assert capsys.readouterr().err == (
        "minitorch grade: feedback: No space left on device (make room on the disk, and type the same command again); "
        "what is done is kept\n"
    )


def test_a_configuration_of_the_instructors_is_kept(course: Course) -> None:
    path = course.root / "nbgrader_config.py"
    path.write_text(FOLDERS)  # as earlier versions wrote it
    configure(course)
    assert 'release_directory = "exercises"' in path.read_text()
    assert lets_code_run(course.root) is None
    for text in ("c = get_config()\n", "this is no Python", "c = get_config()\nc.Autograde.exporter_class = 'html'\n"):
        path.write_text(text)
        configure(course)
        assert path.read_text() == text
        assert "add to" in str(lets_code_run(course.root))
    path.write_text(
        "from minitorch_grading.grading.course.refuse import NoAutograde\nc = get_config()\n"
        "c.Autograde.exporter_class = NoAutograde\nc.CourseDirectory.course_id = 'x'\n"
    )
    assert lets_code_run(course.root) is None


@pytest.mark.parametrize("is_ours", [True, False])
def test_formgraders_autograde_runs_no_students_code(
    course: Course, is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbgrader.apps import NbGraderAPI
    from nbgrader.apps.nbgraderapp import NbGraderApp

    ran = course.root / "ran"
    path = hand_in(course.root, "ana", notebook(sample(f"open({str(ran)!r}, 'w')\n{RIGHT}")))
    with Recorder(course, {}) as recorder:
        recorder.exercise(classes.EXERCISE, released(course.release(classes.EXERCISE)))
        recorder.record(("ana", classes.EXERCISE), Result([Graded("first-check", 30, 30, "")]), "work", None)
    configure(course)
    if not is_ours:  # so that the test shows that it would run
        steps = 'c.Autograde.autograde_preprocessors = ["nbgrader.preprocessors.Execute"]'
        text = f"{FOLDERS}c.Autograde.sanitize_preprocessors = []\n{steps}\n"
        (course.root / "nbgrader_config.py").write_text(text)
    kept = course.autograded("ana", classes.EXERCISE)
    kept.parent.mkdir(parents=True)
    kept.write_text(path.read_text())
    monkeypatch.chdir(course.root)
    app = NbGraderApp()
    app.load_config_file()
    app.config.CourseDirectory.root = str(course.root)
    said = NbGraderAPI(config=app.config).autograde(classes.EXERCISE, "ana")
    assert said["success"] is not is_ours and ran.exists() is not is_ours
    if is_ours:
        assert "students' code is not run here" in said["log"] and "minitorch grade" in said["log"]
        assert kept.read_text() == path.read_text(), "nothing that was there is removed"
        assert Ledger.read(course.gradebook).marks["ana", classes.EXERCISE]["first-check"].points == 30


def test_what_is_written_is_its_owners_alone(course: Course) -> None:
    old = course.autograded("ana", classes.EXERCISE)
    old.parent.mkdir(parents=True)
    for path in (course.journal, course.gradebook, old):
        path.touch()
        path.chmod(0o664)
    assert not tighten(*course.private, course.root / "nowhere")
    replace(course.feedback("bob", classes.EXERCISE), "page")
    with Journal(course.root / "new"):
        Book(course.root / "new.db").close()
    written = [course.journal, course.gradebook, old, course.feedback("bob", classes.EXERCISE)]
    written += [course.root / "new", course.root / "new.db"]
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}
    folders = [course.root / "autograded", old.parent, old.parent.parent, course.root / "feedback" / "bob"]
    assert {path.stat().st_mode & 0o777 for path in folders} <= {0o700}


def test_files_behind_a_link_are_left_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "website").mkdir()
    page = tmp_path / "website" / "page.html"
    page.touch(0o644)
    page.chmod(0o644)
    for name in ("feedback", "autograded/ana"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(tmp_path / "website")
    assert not tighten(tmp_path / "feedback", tmp_path / "autograded")
    assert page.stat().st_mode & 0o777 == 0o644


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
    incidents = [Incident("outside", f"{before}{HOSTILE}", "first"), Incident("renamed", HOSTILE)]
    bare = as_notebook(parts, {2: outputs}, {"<b>ours</b>"})
    made = boxed(bare, [*map(str, incidents)])
    assert without_box(made) == bare == without_box(bare)
    nbformat.validate(made)
    names = ("base_url", "mathjax_url", "last_name", "first_name", "submission_id", "notebook_id", "assignment_id")
    resources = {**dict.fromkeys(names, ""), "index": 0, "total": 1}
    page, _ = exporter.from_notebook_node(nbformat.from_dict(made), resources=resources)
    requests = [each or "" for each in Tags(page).requests if not str(each).startswith("data:")]
    assert "<b>ours</b>" in page
    assert page.index("outside in cell first") < page.index("renamed: the notebook") < page.index("<b>ours</b>")
    assert not [each for each in requests if "example.org" in each or "javascript:" in each]


def test_an_exercise_that_fits_no_check_is_refused(course: Course) -> None:
    path = course.release(classes.EXERCISE)
    content = path.read_text()
    path.write_text(content.replace('"points": 30', '"points": 20', 1))
    with pytest.raises(
        CommandError,
        match="says 20 points, and minitorch gives 30 for its task",
    ):
        courses.read_release(course, classes.EXERCISE)
    path.write_text(content.replace("checks.eager.unbroadcast(first)", "checks.eager.first(first)"))
    with pytest.raises(CommandError, match=r"first-check asks for the task eager\.first, which is none of minitorch's"):
        courses.read_release(course, classes.EXERCISE)


# --- the journal -----------------------------------------------------------------------------------------------


def result(points: float) -> Result:
    return Result([Graded("first-check", points, 30, "a reason")])


def test_half_a_line_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    ana, bob = ("ana", "x"), ("bob", "x")
    with Journal(path) as first:
        seeds = first.seeds
        first.add(ana, Entry("conditions", "work", result(1)))
        first.add(bob, Entry("conditions", "work", result(2)))
    path.write_bytes(path.read_bytes()[:-9])
    with Journal(path) as second:
        assert second.seeds == seeds
        assert second.entries[ana].result == result(1) and bob not in second.entries
        second.add(bob, Entry("conditions", "work", result(3), 2))
    with Journal(path) as third:
        assert (third.entries[bob].result, third.entries[bob].attempt) == (result(3), 2)


def test_a_change_of_what_decides_on_points_is_graded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "classroom"
    shutil.copytree(keys.ROOM, room, ignore=shutil.ignore_patterns("grading", "__pycache__"))
    monkeypatch.setattr(keys, "ROOM", room)
    before = keys.judging.__wrapped__()
    for name in ("harness/graph.py", "harness/needs.py", "checks/graph.py", "dependencies.py", "withheld.py"):
        content = (room / name).read_bytes()
        (room / name).write_bytes(content + b"\n")
        assert keys.judging.__wrapped__() != before, name
        (room / name).write_bytes(content)
    (room / "lab.py").write_text("")
    assert keys.judging.__wrapped__() == before


def test_a_result_is_that_of_the_work_that_lay_there_when_its_turn_came(tmp_path: Path) -> None:
    classes.needs_bubblewrap()
    root = classes.course(tmp_path)
    for student in ("ana", "bob", "eve"):
        hand_in(root, student, notebook(sample()))

    class HandingIn(Progress):
        def step(self, said: str, look: bool) -> None:
            if said.startswith("ana"):
                hand_in(root, "eve", notebook(sample(RIGHT)))

    course = Course.at(root)
    report = courses.grade(course, Limits(), workers=1, progress=HandingIn(io.StringIO()))
    assert [row.points for row in report.rows][::2] == [0, 30]
    entry = Journal(course.journal).read().entries["eve", EXERCISE]
    assert entry.work == work_of(read(course.submitted / "eve" / EXERCISE, EXERCISE, 10**6))


def test_a_result_counts_for_what_it_was_made_from(tmp_path: Path) -> None:
    root = classes.course(tmp_path)
    release = released(root / "exercises" / classes.EXERCISE / f"{classes.EXERCISE}.ipynb")
    path = hand_in(root, "ana", notebook(sample()))
    others: Any = (
        (release, {}, Limits(cell_seconds=1), True),
        (release, {}, Limits(), False),
        (release, {"checks": ""}, Limits(), True),
        (release[:-1], {}, Limits(), True),
        ([*release[:-1], dataclasses.replace(release[-1], tests="a hidden one")], {}, Limits(), True),
    )
    assert conditions_of(release, {}, Limits(), True) not in {conditions_of(*each) for each in others}
    works = [work_of(read(path.parent, EXERCISE, 10**6))]
    path.write_text(notebook(sample(RIGHT)))
    works.append(work_of(read(path.parent, EXERCISE, 10**6)))
    path.rename(path.with_name("other.ipynb"))
    works.append(work_of(read(path.parent, EXERCISE, 10**6)))
    (path.parent / "below").mkdir()
    path.with_name("other.ipynb").rename(path.parent / "below" / "other.ipynb")
    works.append(work_of(read(path.parent, EXERCISE, 10**6)))
    path.mkdir()
    works.append(work_of(read(path.parent, EXERCISE, 10**6)))
    assert len(set(works)) == len(works)
    (path.parent / "notes.txt").write_text("what is no notebook does not count")
    assert work_of(read(path.parent, EXERCISE, 10**6)) == works[-1]


def test_looking_at_a_folder_has_bounds(tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    deep.mkdir()
    handle = os.open(deep, os.O_RDONLY)
    for _ in range(1000):  # deeper than any path can say
        os.mkdir("x", dir_fd=handle)
        below = os.open("x", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    (deep / "a.ipynb").write_text("{}")
    wide = tmp_path / "wide"
    wide.mkdir()
    for number in range(1000):
        (wide / f"{number}.ipynb").symlink_to("/dev/zero")
    (tmp_path / "round").symlink_to(tmp_path)
    try:
        assert [path.name for path in notebooks(deep)] == ["a.ipynb"]
        assert len(notebooks(wide)) == ENTRIES and not notebooks(tmp_path / "nowhere")
        assert len({work_of(read(each, "x", 100)) for each in (wide, wide, deep)}) == 2
    finally:
        subprocess.run(["rm", "-rf", deep], check=True)


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


def shown(student: str, exercise: str, result: Result) -> str:
    """The page of a result, with its notebook."""
    return feedback.page(Row(student, exercise, dataclasses.replace(result, shown=feedback.notebook(result))))


def test_feedback_holds_nothing_of_a_students_as_html() -> None:
    data = {"text/html": HOSTILE, "text/plain": HOSTILE, "image/svg+xml": HOSTILE}
    pixel = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1").decode()
    pictures = (f"'>{HOSTILE}", f"{pixel}'>{HOSTILE}", f"{pixel}\n")
    outputs = [
        {"output_type": "display_data", "data": data},
        *({"output_type": "display_data", "data": harmless({"image/png": each})} for each in pictures),
        {"output_type": "stream", "name": "stdout", "text": HOSTILE},
        {"output_type": "error", "traceback": [HOSTILE]},
    ]
    cells = [
        {"cell_type": "code", "metadata": {}, "source": HOSTILE, "outputs": outputs},
        {"cell_type": "markdown", "metadata": {}, "source": HOSTILE},
    ]
    result = Result([Graded(HOSTILE, 0, 10, HOSTILE)], [Incident("outside", HOSTILE, HOSTILE)], {"cells": cells})
    page = shown(HOSTILE, HOSTILE, result)
    tags = Tags(page)
    assert not tags.names & {"script", "link", "iframe", "object", "svg"}
    assert tags.requests == [f"data:image/png;base64,{pixel}"]
    assert "default-src 'none'" in page


def test_a_page_shows_no_zero_where_there_are_no_points_yet() -> None:
    rows = [Graded("first", 0, 30, "not graded", manual=True), Graded("second", 0, 20, "wrong")]
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", "", feedback.page(Row("ana", "01", Result(rows)))))
    assert "? of 30first" in text and "✗ 0 of 20second" in text


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
    page = shown("ana", "03-graph", Result([], [], {"cells": cells}))
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
    result = Result([Graded("a", 1, 2, "b", {"task": "c", "parts": []})], [Incident("memory", "x", "a")], None, 1.5)
    assert Result.from_json(json.loads(json.dumps(result.to_json()))) == dataclasses.replace(result)


def test_the_instructors_page_names_every_incident() -> None:
    page = (classes.ROOT / "docs" / "grading.md").read_text()
    assert not [kind for kind in KINDS if f"`{kind}`" not in page]


def test_a_worker_does_the_next_submission_while_an_answer_is_written(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: queue.Queue[str] = queue.Queue()

    class Fake:
        def __enter__(self) -> Fake:
            return self

        def __exit__(self, *_: object) -> None:
            return

        def do(self, job: Job) -> dict[str, Any]:
            begun.put(job.exercise)
            return {"of": job.exercise}

    monkeypatch.setattr(local, "Worker", Fake)
    names = ("ana", "bob", "eve")
    jobs = {(name, EXERCISE): Job(course.root, name, [], (1,), Limits(), True, seconds=1) for name in names}
    with local.here(jobs, 1) as answers:
        assert next(answers)[1]["of"] == "ana"
        assert [begun.get(timeout=60) for _ in range(2)] == ["ana", "bob"]
        assert [answer["of"] for _, answer in answers] == ["bob", "eve"]
