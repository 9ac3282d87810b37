"""Exporting: what a platform reads out of the file is what the gradebook says, less what being late costs."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from minitorch.__main__ import main
from minitorch_grading.grading.course.folders import Course
from minitorch_grading.grading.course.gradebook.ledger import Ledger
from minitorch_grading.grading.course.gradebook.recorder import Recorder
from minitorch_grading.grading.course.journal.journal import Entry, Journal
from minitorch_grading.grading.course.report import Row
from minitorch_grading.grading.course.running.keys import work_of
from minitorch_grading.grading.enrolment.deadlines import Rules
from minitorch_grading.grading.exporting.standings import apply
from minitorch_grading.grading.incidents import KINDS, Incident
from minitorch_grading.grading.overview import overview, sheet
from minitorch_grading.grading.results import Graded, Result
from minitorch_grading.grading.sheets import is_formula
from minitorch_grading.grading.submission.feedback import page
from minitorch_grading.grading.submission.preflight import read, released
from tests.grading.classes import EXERCISE, course, hand_in
from tests.grading.collecting.downloads import (
    ALL,
    BLANK,
    DONE,
    canvas,
    collect,
    exchange,
    folder,
    moodle,
    packed,
    submitted,
)

ROSTER = (
    "student id,name,e-mail,canvas,number\n"
    "ana,Ana López,ana@uni.edu,1234,u1\nbo,Bo Li,bo@uni.edu,1235,u2\n"
    "eve,Eve Roe,eve@uni.edu,1236,u3\ndan,Dan Ro,,1237,u4\n"
)
RULES = f'[late]\nper_day = "10 %"\n[exercises.{EXERCISE}]\ndue = 2026-11-22T12:00:00\n'
DOWNLOADS = {
    "canvas": canvas("lopezana", 1234, 1, ALL)
    | canvas("libo", 1235, 2, DONE, late=True)
    | canvas("rodan", 1237, 3, BLANK),
    "moodle": moodle("Ana López", 901, ALL) | moodle("Bo Li", 902, DONE, end="") | moodle("Dan Ro", 904, BLANK),
    "nbgrader": exchange("ana", "2026-11-22 10:00:00 UTC", ALL)
    | exchange("bo", "2026-11-22 13:00:00 UTC", DONE)
    | exchange("dan", "2026-11-22 10:00:00 UTC", BLANK),
}
EARNED = {"ana": 60.0, "bo": 30.0}  # of 60; dan is not graded yet, and eve handed in nothing
COUNTS = {"ana": 60.0, "bo": 24.0}  # bo was a day late
WORKSHEET = (
    'Identifier,"Full name","Email address",Status,Grade,"Maximum grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"\r\n'
    'Participant 901,"Ana López",ana@uni.edu,Submitted,,60.00,Yes,"Sunday, 22 November 2026, 10:00 AM",-,\r\n'
    'Participant 902,"Bo Li",bo@uni.edu,Submitted,,60.00,Yes,"Sunday, 22 November 2026, 1:00 PM",-,\r\n'
    'Participant 903,"=HYPERLINK(1)",eve@uni.edu,"No submission",,60.00,Yes,-,"Monday, 2 November 2026, 1:00 PM",\r\n'
    'Participant 904,"Dan Ro",dan@uni.edu,Submitted,,60.00,Yes,-,-,\r\n'
)
GRADEBOOK = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Essay (70),01 Sample (77),Final Score\r\n"
    ",,,,,,Manual Posting,\r\n"
    "    Points Possible,,,,,10,60,(read only)\r\n"
    '"López, Ana",1234,u1,ana,Group 1,9,,50\r\n"Li, Bo",1235,u2,bo,Group 1,8,,50\r\n'
    '"=cmd|\'/c calc\'!A1",1236,u3,eve,=Group,7,,50\r\n"Ro, Dan",1237,u4,dan,Group 1,7,,50\r\n'
    '"Student, Test",9,,abcdef,Group 1,,,\r\n'
)

Run = Callable[..., tuple[int, dict[str, Any]]]


def graded(root: Path, student: str, points: float, *incidents: str) -> None:
    """Enter points as grading does, with a page."""
    here = Course(root / "submitted", root / "exercises")
    result = Result(
        [Graded("first-check", min(points, 30), 30, ""), Graded("second-check", max(0, points - 30), 30, "")],
        [Incident(kind) for kind in incidents],
    )
    work = work_of(read(root / "submitted" / student / EXERCISE, EXERCISE, 10**6))
    with Journal(here.journal) as journal, Recorder(here, journal.entries) as recorder:
        recorder.exercise(EXERCISE, released(here.release(EXERCISE)))
        recorder.record((student, EXERCISE), result, f"{work} {points}", None)
        journal.add((student, EXERCISE), Entry("conditions", work, result))
    path = here.feedback(student, EXERCISE)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(Row(student, EXERCISE, result)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A course whose work came from each platform."""
    roots = {}
    for platform, files in DOWNLOADS.items():
        root = roots[platform] = course(tmp_path_factory.mktemp(platform) / "course")
        (root / "roster.csv").write_text(ROSTER)
        (root / "deadlines.toml").write_text(RULES)
        (root.parent / "Grades.csv").write_text(WORKSHEET)
        source = packed(root.parent / "download.zip", files)
        more = ["--worksheet", str(root.parent / "Grades.csv")] if platform == "moodle" else []
        assert main(["collect", str(source), "--to", str(root / "submitted"), *more]) in (0, 1)
        for student, points in EARNED.items():
            graded(root, student, points)
    return roots


@pytest.fixture(params=DOWNLOADS)
def root(request: pytest.FixtureRequest, made: dict[str, Path], tmp_path: Path) -> Path:
    return shutil.copytree(made[request.param], tmp_path / "course")


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def do(root: Path, *options: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        status = main(["export", *options, "--course", str(root), "--json"])
        said = capsys.readouterr()
        return status, json.loads(said.out) if said.out else {"error": said.err}

    return do


def table(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))


def canvas_reads(path: Path) -> dict[str, dict[str, str]]:
    """The grades that Canvas takes from a file: by the number of the assignment, and by that of the student."""
    header, *rows = table(path)
    assert "Student" in header[0] and "ID" in header[1] and "Section" in header
    numbers = {index: found[1] for index, name in enumerate(header) if (found := re.search(r"\((\d+)\)$", name))}
    people = [row for row in rows if row[1].isdigit()]
    return {number: {row[1]: row[index] for row in people} for index, number in numbers.items()}


# Canvas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["empty", "zero"])
def test_canvas_reads_the_points_that_count(missing: str, root: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "g.csv").write_text(GRADEBOOK)
    status, said = run(root, "canvas", str(tmp_path / "g.csv"), "--to", str(tmp_path / "up.csv"), "--missing", missing)
    nothing = "0" if missing == "zero" else ""
    assert canvas_reads(tmp_path / "up.csv") == {
        "77": {"1234": "60", "1235": "24", "1236": nothing, "1237": "", "9": ""}
    }
    assert said["count"] == 2 and status == 1 and "dan" in said["notes"][0]
    assert [note for note in said["notes"] if "Cells with 0" in note] == [
        "Cells with 0, since nothing was handed in: 1." for _ in range(missing == "zero")
    ]
    (late,) = said["late"]
    assert (late["student"], late["earned"], late["points"]) == ("bo", 30, 24)


def test_who_is_not_on_the_roster_has_no_zero(made: dict[str, Path], tmp_path: Path, run: Run) -> None:
    (tmp_path / "g.csv").write_text(GRADEBOOK + '"Guest, A",77,g9,guest,Group 1,,,\r\n')
    run(made["canvas"], "canvas", str(tmp_path / "g.csv"), "--to", str(tmp_path / "up.csv"), "--missing", "zero")
    found = canvas_reads(tmp_path / "up.csv")["77"]
    assert (found["1236"], found["77"]) == ("0", "")


def test_a_damaged_note_on_an_attempt_is_one_student_s(made: dict[str, Path], tmp_path: Path, run: Run) -> None:
    root = shutil.copytree(made["moodle"], tmp_path / "course")
    next((root / "collected" / "ana").rglob("attempt.json")).write_text("{")
    status, said = run(root, "moodle", "--to", str(tmp_path / "up.csv"))
    assert (status, said["count"]) == (1, 1) and "ana 01-sample cannot be read" in said["notes"][0]


def test_canvas_s_own_rows_and_forms_stay(root: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "g.csv").write_text(GRADEBOOK)
    run(root, "canvas", str(tmp_path / "g.csv"), "--to", str(tmp_path / "up.csv"))
    before, after = table(tmp_path / "g.csv"), table(tmp_path / "up.csv")
    assert after[0] == [*before[0][:5], "01 Sample (77)"]  # as Canvas wrote it, and nothing else
    assert after[1][-1] == "Manual Posting" and after[2] == ["    Points Possible", "", "", "", "", "60"]
    assert (tmp_path / "up.csv").read_bytes().startswith(b"\xef\xbb\xbf") and [row[1] for row in after] == [
        row[1] for row in before
    ]


def test_no_cell_is_a_formula_and_no_key_is_changed(root: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "g.csv").write_text(GRADEBOOK)
    run(root, "canvas", str(tmp_path / "g.csv"), "--to", str(tmp_path / "up.csv"))
    cells = [cell for row in table(tmp_path / "up.csv") for cell in row]
    assert not [cell for cell in cells if is_formula(cell)]
    assert "'=cmd|'/c calc'!A1" in cells and "'=Group" in cells and "1236" in cells


def test_an_export_is_a_fixed_point(root: Path, tmp_path: Path, run: Run) -> None:
    """What was imported and exported again by Canvas gives the same file; what a person typed there stays."""
    (tmp_path / "g.csv").write_text(GRADEBOOK.replace('7,,50\r\n"Ro', '7,EX,50\r\n"Ro'))
    run(root, "canvas", str(tmp_path / "g.csv"), "--to", str(tmp_path / "one.csv"), "--missing", "zero")
    run(root, "canvas", str(tmp_path / "one.csv"), "--to", str(tmp_path / "two.csv"), "--missing", "zero")
    assert canvas_reads(tmp_path / "one.csv")["77"]["1236"] == "EX"
    assert canvas_reads(tmp_path / "one.csv") == canvas_reads(tmp_path / "two.csv")


@pytest.mark.parametrize(
    ("change", "options", "reason"),
    [
        (("01 Sample", "Exercise 1"), (), "--column"),
        (
            ("01 Sample", "Exercise 1"),
            ("--column", f"{EXERCISE}=Two (2)"),
            "Two (2); it has Essay (70), Exercise 1 (77)",
        ),
        (("Essay (70)", "01-sample (70)"), (), "2 columns"),
        (("10,60,", "10,100,"), (), "--scale"),
        (("Section", "Group"), (), "no gradebook"),
        (("ID", "Id"), (), "no gradebook"),
    ],
)
def test_a_gradebook_that_does_not_fit_is_refused(
    change: tuple[str, str], options: tuple[str, ...], reason: str, made: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    (tmp_path / "g.csv").write_text(GRADEBOOK.replace(*change))
    to = tmp_path / "up.csv"
    status, said = run(made["canvas"], "canvas", str(tmp_path / "g.csv"), "--to", str(to), *options)
    assert status == 2 and reason in str(said["error"]) and not to.exists()


def test_a_column_can_be_named_and_points_be_scaled(made: dict[str, Path], tmp_path: Path, run: Run) -> None:
    (tmp_path / "g.csv").write_text(GRADEBOOK.replace("01 Sample", "Graphs").replace("10,60,", "10,10,"))
    options = ("--column", f"{EXERCISE}=Graphs (77)", "--scale")
    run(made["canvas"], "canvas", str(tmp_path / "g.csv"), "--to", str(tmp_path / "up.csv"), *options)
    assert canvas_reads(tmp_path / "up.csv")["77"] == {"1234": "10", "1235": "4", "1236": "", "1237": "", "9": ""}


def test_semicolons_stay_semicolons(made: dict[str, Path], tmp_path: Path, run: Run) -> None:
    text = "\n".join(";".join(row) for row in csv.reader(io.StringIO(GRADEBOOK.lstrip("\ufeff"))))
    (tmp_path / "g.csv").write_text(text)
    run(made["canvas"], "canvas", str(tmp_path / "g.csv"), "--to", str(tmp_path / "up.csv"))
    assert "López, Ana;1234;u1;ana;Group 1;60" in (tmp_path / "up.csv").read_text()


def test_an_exercise_without_a_column_is_no_complete_export(made: dict[str, Path], tmp_path: Path, run: Run) -> None:
    root = shutil.copytree(made["canvas"], tmp_path / "course")
    shutil.rmtree(root / "submitted" / "dan")
    (tmp_path / "g.csv").write_text(GRADEBOOK)
    where = ("canvas", str(tmp_path / "g.csv"), "--to", str(tmp_path / "up.csv"))
    assert run(root, *where)[0] == 0
    for place in ("exercises", "solutions"):
        shutil.copytree(root / place / EXERCISE, root / place / "02-other")
        (root / place / "02-other" / f"{EXERCISE}.ipynb").rename(root / place / "02-other" / "02-other.ipynb")
    hand_in(root, "ana", ALL, exercise="02-other")
    here = Course.at(root)
    with Journal(here.journal) as journal, Recorder(here, journal.entries) as recorder:
        recorder.exercise("02-other", released(here.release("02-other")))
        recorder.record(("ana", "02-other"), Result([Graded("first-check", 30, 30, "")]), "work", None)
    status, said = run(root, *where)
    assert status == 1 and "g.csv to which nothing was written: Essay (70)." in str(said["notes"])
    assert run(root, *where, "--exercise", EXERCISE)[0] == 0


# Moodle ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["empty", "zero"])
def test_moodle_reads_the_points_that_count(missing: str, root: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "w.csv").write_text(WORKSHEET)
    to = tmp_path / "up.csv"
    status, _ = run(root, "worksheet", str(tmp_path / "w.csv"), "--to", str(to), "--missing", missing)
    before, after = table(tmp_path / "w.csv"), table(to)
    grade = before[0].index("Grade")
    assert [row[grade] for row in after[1:]] == ["60", "24", "0" if missing == "zero" else "", ""] and status == 1
    for name in ("Identifier", "Last modified (grade)", "Email address", "Maximum grade"):
        column = before[0].index(name)
        assert [row[column] for row in after] == [row[column] for row in before]
    assert "1 day late" in after[2][-1] and after[1][-1] == ""
    assert not [cell for row in after for cell in row if is_formula(cell)]
    changed = [
        b for old, new in zip(before, after, strict=True) for b, a in zip(old[:-1], new[:-1], strict=True) if b != a
    ]
    assert {each for each in changed if each} == {"=HYPERLINK(1)"}, "points and formulas alone"


def test_what_moodle_has_closed_stays(made: dict[str, Path], tmp_path: Path, run: Run) -> None:
    (tmp_path / "w.csv").write_text(WORKSHEET.replace("60.00,Yes", "60.00,No", 1))
    _, said = run(made["moodle"], "worksheet", str(tmp_path / "w.csv"), "--to", str(tmp_path / "up.csv"))
    assert table(tmp_path / "up.csv")[1][4] == "" and "ana" in str(said["notes"])


def test_a_worksheet_in_another_language(made: dict[str, Path], tmp_path: Path, run: Run) -> None:
    text = WORKSHEET.replace("Identifier", "Identificador").replace(",Grade,", ",Calificación,")
    (tmp_path / "w.csv").write_text(text.replace("Participant ", "Participante"))
    where = (str(tmp_path / "w.csv"), "--to", str(tmp_path / "up.csv"))
    assert run(made["moodle"], "worksheet", *where)[0] == 2
    run(made["moodle"], "worksheet", *where, "--column", "Grade=Calificación")
    assert [row[4] for row in table(tmp_path / "up.csv")[1:]] == ["60", "24", "", ""]


def test_the_file_for_moodle_s_gradebook(root: Path, tmp_path: Path, run: Run) -> None:
    run(root, "moodle", "--to", str(tmp_path / "up.csv"), "--missing", "zero")
    header, *rows = table(tmp_path / "up.csv")
    assert header == ["Email address", "ID number", "Full name", EXERCISE, f"{EXERCISE} feedback"]
    assert {row[1]: row[3] for row in rows} == {"u1": "60", "u2": "24", "u3": "0", "u4": ""}
    assert rows[0][0] == "ana@uni.edu"


def test_without_addresses_moodle_finds_nobody(made: dict[str, Path], tmp_path: Path, run: Run) -> None:
    (tmp_path / "r.csv").write_text("student id,name\nana,Ana\n")
    options = ("moodle", "--to", str(tmp_path / "up.csv"), "--roster", str(tmp_path / "r.csv"))
    assert "e-mail" in str(run(made["moodle"], *options)[1]["error"])


# Without a roster ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", DOWNLOADS)
def test_without_a_roster_the_download_tells_whose_a_row_is(
    platform: str, made: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    root = shutil.copytree(made[platform], tmp_path / "course")
    (root / "roster.csv").unlink()
    file, form = (WORKSHEET, "worksheet") if platform == "moodle" else (GRADEBOOK, "canvas")
    (tmp_path / "in.csv").write_text(file)
    _, said = run(root, form, str(tmp_path / "in.csv"), "--to", str(tmp_path / "up.csv"))
    assert said["count"] == 2


# Feedback --------------------------------------------------------------------------------------------------------

NAMES = {
    "moodle": [
        "Ana López_901_assignsubmission_file_/01-sample.html",
        "Bo Li_902_assignsubmission_file_/01-sample.html",
    ],
    "canvas": ["libo_LATE_1235_2_01-sample.html", "lopezana_1234_1_01-sample.html"],
}


@pytest.mark.parametrize("platform", NAMES)
def test_feedback_goes_back_by_the_names_of_the_download(
    platform: str, made: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    run(made[platform], "feedback", "--to", str(tmp_path / "one.zip"))
    run(made[platform], "feedback", "--to", str(tmp_path / "two.zip"))
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert sorted(archive.namelist()) == NAMES[platform]
        pages = {name: archive.read(name).decode() for name in archive.namelist()}
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    (late,) = [name for name, text in pages.items() if "1 day late" in html.unescape(text)]
    assert late.casefold().startswith(("bo", "libo"))


def test_feedback_as_one_file_for_each_student(root: Path, tmp_path: Path, run: Run) -> None:
    run(root, "feedback", "--to", str(tmp_path / "pages"))
    assert sorted(path.name for path in (tmp_path / "pages" / EXERCISE).iterdir()) == ["ana.html", "bo.html"]
    assert "6 points less" in (tmp_path / "pages" / EXERCISE / "bo.html").read_text()


def test_work_of_no_platform_has_no_zip(made: dict[str, Path], tmp_path: Path, run: Run) -> None:
    status, said = run(made["nbgrader"], "feedback", "--to", str(tmp_path / "f.zip"))
    assert status == 2 and "folder" in str(said["error"]) and not (tmp_path / "f.zip").exists()


def test_who_handed_in_no_notebook_has_a_page_and_points_all_the_same(tmp_path: Path, run: Run) -> None:
    root = course(tmp_path / "course")
    files = moodle("Ana López", 901, ALL) | moodle("Bo Li", 902, "%PDF", "report.pdf")
    main(["collect", str(packed(tmp_path / "d.zip", files)), "--to", str(root / "submitted")])
    for student, points in (("ana-lópez", 60), ("bo-li", 0)):
        graded(root, student, points)
    status, said = run(root, "feedback", "--to", str(tmp_path / "f.zip"))
    assert said["count"] == 2 and status == 0


# What a person has still to look at ------------------------------------------------------------------------------

FORMS = {
    "canvas": ("canvas", GRADEBOOK, lambda rows: {row[1]: row[5] for row in rows[3:]}, {"ana": "1234", "bo": "1235"}),
    "worksheet": ("worksheet", WORKSHEET, lambda rows: {row[2]: row[4] for row in rows}, {}),
    "moodle": ("moodle", "", lambda rows: {row[0]: row[3] for row in rows}, {}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["too-large", "not-json", "background"])
def test_no_points_for_a_reason_to_look_at_are_never_zero(
    form: str, kind: str, made: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    assert KINDS[kind].look
    root = shutil.copytree(made["moodle"], tmp_path / "course")
    name, given, points_of, numbers = FORMS[form]
    (tmp_path / "in.csv").write_text(given)
    source = (str(tmp_path / "in.csv"),) if given else ()

    def exported() -> tuple[str, str, int]:
        """The cells of ana and bo, and the status."""
        (root / "submitted" / "dan").exists() and shutil.rmtree(root / "submitted" / "dan")
        status, _ = run(root, name, *source, "--to", str(tmp_path / "up.csv"), "--missing", "zero")
        found = points_of(table(tmp_path / "up.csv"))
        ana, bo = (found[numbers.get(student, f"{student}@uni.edu")] for student in ("ana", "bo"))
        return ana, bo, status

    assert exported() == ("60", "24", 0), "nothing went wrong"
    graded(root, "ana", 0, kind)
    graded(root, "bo", 10, kind)
    said = run(root, "feedback", "--to", str(tmp_path / "pages"))[1]["notes"]
    assert said[0].startswith("Without points until a person has looked") and "ana" in said[0]
    assert exported() == ("", "4", 1), "points that were earned count while somebody looks"
    here = Course(root / "submitted", root / "exercises")
    (row, _) = overview(here).lines
    assert row.is_undecided and row.score == "?/60"
    (made_of,) = overview(here).exercises
    assert made_of.mean == 10 and sum(made_of.histogram) == 1
    assert {line.split(",")[3] for line in sheet(overview(here)).splitlines() if line.startswith("ana,")} == {""}
    (asking,) = [cell for cell, mark in Ledger.read(here.gradebook).marks["ana", EXERCISE].items() if mark.waits]
    with Gradebook(f"sqlite:///{here.gradebook}") as book:  # a person has looked, and found nothing
        grade = book.find_grade(asking, EXERCISE, EXERCISE, "ana")
        grade.manual_score, grade.needs_manual_grade = 0, False
        book.db.commit()
    assert exported()[0] == "0" and not overview(here).lines[0].is_undecided


# Times that nobody says ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", DOWNLOADS)
def test_work_that_is_due_and_has_no_time_is_named_by_every_command(form: str, tmp_path: Path, run: Run) -> None:
    """Moodle without its worksheet, and an exchange without times; Canvas says of all work whether it is late."""
    root = course(tmp_path / "course")
    (root / "roster.csv").write_text(ROSTER)
    files = {name: text for name, text in DOWNLOADS[form].items() if not name.endswith("timestamp.txt")}
    if form == "nbgrader":
        files = submitted("ana", ALL) | submitted("bo", DONE)
    source = packed(tmp_path / f"{EXERCISE}.zip", files) if form != "nbgrader" else folder(tmp_path / "d", files)

    def said() -> list[bool]:
        """Which commands say it: collect, grade, report, and an export, by note and status."""
        status, told = collect(root, source)
        shutil.rmtree(root / "submitted" / "dan", ignore_errors=True)
        for student in ("ana", "bo"):
            graded(root, student, 60)
        notes = apply(Rules.of(root), Course.at(root), [EXERCISE])
        exported, also = run(root, "moodle", "--to", str(tmp_path / "up.csv"))
        found = [told["without_a_time"].get(EXERCISE, [])[:2] == ["ana", "bo"], status == 1, exported == 1]
        named = f"ana {EXERCISE}, bo {EXERCISE}"
        return found + [named in str(each) for each in (notes, overview(Course.at(root)).notes, also["notes"])]

    assert not any(said()), "nothing is due"
    (root / "deadlines.toml").write_text(RULES)
    assert all(said()) == any(said()) == (form != "canvas")
    (root / "deadlines.toml").write_text(
        f"{RULES}handed_in = {{ ana = 2026-11-22T08:30:00, bo = 2026-11-22T08:30:00, dan = 2026-11-22T08:30:00 }}\n"
    )
    assert not any(said())


def test_a_folder_that_cannot_be_graded_is_not_promised(made: dict[str, Path], tmp_path: Path, run: Run) -> None:
    root = shutil.copytree(made["moodle"], tmp_path / "course")
    (root / "submitted" / "dan").rename(root / "submitted" / "Lee Kim")
    status, said = run(root, "moodle", "--to", str(tmp_path / "up.csv"))
    assert status == 1 and "goes on" not in str(said["notes"]) and "rename the folder: Lee Kim" in str(said["notes"])
    assert "not on the roster: Lee Kim" in str(apply(Rules.of(root), Course.at(root), [EXERCISE]))


# What is not up to date ------------------------------------------------------------------------------------------


def test_points_of_another_attempt_do_not_count(made: dict[str, Path], tmp_path: Path, run: Run) -> None:
    """Work that was collected after grading has to be graded first."""
    root = shutil.copytree(made["nbgrader"], tmp_path / "course")
    source = folder(tmp_path / "d", exchange("ana", "2026-11-22 11:00:00 UTC", DONE))
    main(["collect", str(source), "--to", str(root / "submitted")])
    _, said = run(root, "moodle", "--to", str(tmp_path / "up.csv"))
    assert said["count"] == 1 and "ana 01-sample" in str(said["notes"])
    graded(root, "ana", 30)
    _, said = run(root, "moodle", "--to", str(tmp_path / "up.csv"))
    assert said["count"] == 2


def test_work_that_was_put_there_by_hand_counts_as_it_is(tmp_path: Path, run: Run) -> None:
    root = course(tmp_path / "course")
    (root / "roster.csv").write_text(ROSTER)
    (root / "deadlines.toml").write_text(RULES)
    folder(root / "submitted", submitted("ana", ALL))
    (root / "submitted" / "ana" / EXERCISE / "timestamp.txt").write_text("2026-11-23 12:30:00 UTC")
    graded(root, "ana", 60)
    _, said = run(root, "moodle", "--to", str(tmp_path / "up.csv"))
    assert said["late"][0]["points"] == 48 and said["late"][0]["days"] == 2


def test_without_a_gradebook_there_is_one_sentence(tmp_path: Path, run: Run) -> None:
    root = course(tmp_path / "course")
    status, said = run(root, "moodle", "--to", str(tmp_path / "up.csv"))
    assert status == 2 and "minitorch grade" in str(said["error"])


# The gradebook ---------------------------------------------------------------------------------------------------


def test_nbgrader_shows_the_same_penalties(root: Path, tmp_path: Path, run: Run) -> None:
    def read() -> dict[str, float]:
        with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as book:
            found = book.assignment_submissions(EXERCISE)
            return {each.student.id: max(0.0, each.score - each.late_submission_penalty) for each in found}

    run(root, "moodle", "--to", str(tmp_path / "up.csv"))
    assert read() == COUNTS
    (root / "deadlines.toml").unlink()  # and when the rules change, so do they
    run(root, "moodle", "--to", str(tmp_path / "up.csv"))
    assert read() == EARNED


def test_a_grading_run_says_who_was_late_and_who_handed_in_nothing(root: Path) -> None:
    notes = apply(Rules.of(root), Course.at(root), [EXERCISE])
    assert notes == [
        f"Being late costs points in {EXERCISE}, which the table has not taken off: bo -6.",
        f"Nothing was handed in for {EXERCISE} by eve.",
    ]
