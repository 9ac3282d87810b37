"""Lateness: whose word counts for the time, which exercise work is for, and what being late costs."""

from __future__ import annotations

import io
import json
import unicodedata
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitorch.__main__ import main
from minitorch.errors import CommandError
from minitorch_grading.grading.collecting.attempts import attempts
from minitorch_grading.grading.enrolment.deadlines import Amount, Deadline, Deadlines, Late, deadlines_of
from tests.grading.classes import EXERCISE, added, course, hand_in, notebook
from tests.grading.collecting.downloads import (
    ALL,
    DONE,
    Files,
    canvas,
    collect,
    exchange,
    folder,
    moodle,
    packed,
    submitted,
    work,
)

EARLY, LATE = "2026-11-01 10:00:00 UTC", "2026-11-24 10:00:00 UTC"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return course(tmp_path / "course")


# Whose word counts -----------------------------------------------------------------------------------------------


def own(files: Files) -> str:
    """A zip that a student has made, as the text that `packed` writes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue().decode("latin-1")


STUDENT_SAYS: dict[str, tuple[Files, Files]] = {  # what was handed in, and the student's own note of the time
    "Canvas": (canvas("lopezana", 7, 8, DONE, late=True), {"lopezana_LATE_7_9_timestamp.txt": EARLY}),
    "Canvas, in a folder": (
        {f"lopezana_LATE_7_8_work/{EXERCISE}.ipynb": DONE},
        {"lopezana_LATE_7_8_work/timestamp.txt": EARLY},
    ),
    "Moodle": (moodle("Ana", 1, DONE), moodle("Ana", 1, EARLY, "timestamp.txt")),
    "Moodle, as in nbgrader's course": (
        moodle("Ana", 1, DONE, f"ana/{EXERCISE}/{EXERCISE}.ipynb"),
        moodle("Ana", 1, EARLY, f"ana/{EXERCISE}/timestamp.txt"),
    ),
    "nbgrader's course, further down": (
        submitted("ana", DONE),
        {f"ana/{EXERCISE}/{EXERCISE}/timestamp.txt": EARLY, f"ana/{EXERCISE}/x/ana/{EXERCISE}/timestamp.txt": EARLY},
    ),
}


@pytest.mark.parametrize(("files", "note"), STUDENT_SAYS.values(), ids=STUDENT_SAYS)
@pytest.mark.parametrize("made", ["folder", "zip"])
def test_no_student_s_note_of_the_time_is_believed(files: Files, note: Files, made: str, tmp_path: Path) -> None:
    rules = f'[late]\nper_day = "10 %"\n[exercises.{EXERCISE}]\ndue = 2026-11-22T12:00:00\n'
    found = []
    for number, each in enumerate((files, files | note)):
        here = course(tmp_path / str(number))
        (here / "deadlines.toml").write_text(rules)
        source = tmp_path / f"d{number}"
        collect(here, folder(source, each) if made == "folder" else packed(source.with_suffix(".zip"), each))
        (student,) = work(here)
        (attempt,) = attempts(here, student, EXERCISE)
        assert attempt.first is None and not list((here / "submitted").rglob("timestamp.txt"))
        found.append(deadlines_of(here).penalty(student, EXERCISE, attempt.first, attempt.late, 60, 60))
    assert found[0] == found[1]


def test_no_note_in_a_student_s_zip_is_believed(root: Path, tmp_path: Path) -> None:
    inner = {f"{EXERCISE}.ipynb": DONE, "timestamp.txt": EARLY, f"ana/{EXERCISE}/timestamp.txt": EARLY}
    content = own(inner).encode("latin-1")
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        for name in ("lopezana_LATE_7_8_work.zip", "Bo_1_assignsubmission_file_/work.zip", f"eve/{EXERCISE}/work.zip"):
            archive.writestr(name, content)
    collect(root, tmp_path / "d.zip")
    assert work(root).keys() == {"lopezana-7", "bo", "eve"} and not list(root.rglob("timestamp.txt"))
    assert attempts(root, "lopezana-7", EXERCISE)[0].late


def test_nbgrader_s_own_note_is_believed(root: Path, tmp_path: Path) -> None:
    collect(root, folder(tmp_path / "a", submitted("ana", DONE) | {f"ana/{EXERCISE}/timestamp.txt": LATE}))
    collect(root, folder(tmp_path / "b", exchange("bo", LATE, DONE)))
    stampless = exchange("eve", LATE.replace(" UTC", " Nowhere"), DONE)
    collect(root, folder(tmp_path / "c", {**stampless, next(name for name in stampless if "stamp" in name): LATE}))
    for student in ("ana", "bo", "eve"):
        assert (root / "submitted" / student / EXERCISE / "timestamp.txt").read_text() == LATE


def test_in_the_exchange_nobody_takes_another_platform_s_form(root: Path, tmp_path: Path) -> None:
    """Everybody can write there; a name in Moodle's form is somebody's who has an owner, and no time."""
    inner = own(moodle("Ana", 1, ALL)).encode("latin-1")
    forms = moodle("ana", 1, ALL) | canvas("ana", 1, 2, ALL) | submitted("ana", ALL)
    source = folder(tmp_path / "inbound", exchange("ana", LATE, DONE) | forms)
    (source / "x.zip").write_bytes(inner)
    status, said = collect(root, source)
    assert work(root) == {"ana": DONE} and status == 1 and len(said["left_out"]) == 4


def test_in_the_exchange_nobody_is_there_under_two_names(root: Path, tmp_path: Path) -> None:
    (root / "roster.csv").write_text("student id,e-mail\nana,ana@uni.edu\n")
    files = exchange("ana", EARLY, DONE) | exchange("ana@uni.edu", LATE, ALL)
    status, said = collect(root, folder(tmp_path / "inbound", files))
    assert work(root) == {"ana": DONE} and status == 1 and len(said["left_out"]) == 1


def test_a_name_in_the_form_of_the_exchange_says_nothing_in_moodle(root: Path, tmp_path: Path) -> None:
    """Students choose their names in Moodle; what it puts behind them counts."""
    name = f"bo+{EXERCISE}+2026-01-01 00.00.00 UTC"
    collect(root, packed(tmp_path / "d.zip", moodle(name, 1, ALL) | moodle("bo", 2, DONE)))
    assert work(root)["bo"] == DONE and not list(root.rglob("timestamp.txt"))


@pytest.mark.parametrize("late", [False, True])
def test_work_that_the_instructor_has_mended_is_as_late_as_it_was(late: bool, root: Path, tmp_path: Path) -> None:
    """Canvas says no time, and when the instructor saves is long after; the page goes back to the same student."""
    two = canvas("li", 7, 8, DONE, "a.ipynb", late) | canvas("li", 7, 8, ALL, "b.ipynb", late)
    source = packed(tmp_path / "d.zip", two)
    assert collect(root, source)[0] == 1
    hand_in(root, "li-7", DONE)
    assert collect(root, source)[0] == 0 and work(root) == {"li-7": DONE}
    before, mended = attempts(root, "li-7", EXERCISE)
    assert (mended.first, mended.late, mended.mark) == (None, late, before.mark) and not mended.problem
    assert deadlines_of(root).penalty("li-7", EXERCISE, mended.first, mended.late, 60, 60).days == late
    collect(root, packed(tmp_path / "e.zip", canvas("li", 7, 9, ALL)))
    assert work(root) == {"li-7": ALL}  # handed in anew


def test_collecting_names_who_is_late(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "deadlines.toml").write_text(f"[exercises.{EXERCISE}]\ndue = 2026-11-22T12:00:00\n")
    files = canvas("li", 7, 8, DONE, late=True) | exchange("ana", LATE, DONE) | exchange("bo", EARLY, DONE)
    source = folder(tmp_path / "d", {name: text for name, text in files.items() if "LATE" in name})
    assert collect(root, source)[1]["late"] == {EXERCISE: ["li-7 1 day"]}
    source = folder(tmp_path / "e", {name: text for name, text in files.items() if "LATE" not in name})
    assert collect(root, source)[1]["late"] == {EXERCISE: ["ana 2 days"]}
    main(["collect", str(source), "--to", str(root / "submitted")])
    assert "  late (1): ana 2 days" in capsys.readouterr().out


# Which exercise --------------------------------------------------------------------------------------------------


def other(root: Path) -> str:
    """A second exercise in the course; a notebook for it."""
    text = notebook([{**added("x = 1"), "metadata": {"nbgrader": {"grade_id": "else", "solution": True}}}])
    path = root / "exercises" / "02-other" / "02-other.ipynb"
    path.parent.mkdir()
    path.write_text(text)
    return text


@pytest.mark.parametrize("name", ["02-other.zip", "CS101-02 OTHER-4711.zip", "download.zip", "02-other/x.zip"])
@pytest.mark.parametrize("files", [moodle("Ana", 1, DONE), canvas("ana", 1, 2, DONE)], ids=["Moodle", "Canvas"])
def test_the_slot_decides_and_not_what_is_handed_in(name: str, files: Files, root: Path, tmp_path: Path) -> None:
    """Old work in a later slot is no late work for the old one; it is named, and the good one is not touched."""
    right = other(root)
    collect(root, packed(tmp_path / f"{EXERCISE}.zip", files))
    before = work(root)
    more = [] if "other" in name.casefold() else ["--exercise", "02-other"]
    path = packed(tmp_path / name, files | moodle("Bo", 9, right, f"{EXERCISE}.ipynb"))
    status, said = collect(root, path if "/" not in name else path.parent, *more)
    assert status == 1 and work(root) == before
    (row,) = (row for row in said["collected"] if row["remark"])
    assert row["exercise"] == "02-other" and f"cells of {EXERCISE} are" in row["remark"]
    assert work(root, "02-other") == {"bo": right, row["student"]: DONE}


def test_a_download_that_names_no_exercise_is_refused_before_anything_is_kept(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other(root)
    path = packed(tmp_path / "download.zip", moodle("Ana", 1, DONE, "02-other.ipynb"))
    assert main(["collect", str(path), "--to", str(root / "submitted")]) == 2
    assert "--exercise NAME" in capsys.readouterr().err
    assert not (root / "submitted").exists()


# Who and what there is -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[exercises.01-smaple]\n", f"did you mean {EXERCISE}"),
        (f"[exercises.{EXERCISE}]\nextensions = {{ S00 = '3 days' }}\n", "did you mean s00"),
        (f"[exercises.{EXERCISE}]\nextensions = {{ nobody = '3 days' }}\n", "no student nobody; there is ana, s00"),
        (f"[exercises.{EXERCISE}]\nhanded_in = {{ ana-lopez = 2026-11-24T08:30:00 }}\n", "no student ana-lopez"),
    ],
)
@pytest.mark.parametrize("has_roster", [True, False])
def test_a_name_that_nobody_has_is_an_error(
    text: str, said: str, has_roster: bool, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a roster, people are those who have handed in something; collecting is what they become known by."""
    if has_roster:
        (root / "roster.csv").write_text("student id\nana\ns00\n")
    (root / "deadlines.toml").write_text(text)
    source = folder(tmp_path / "d", exchange("ana", EARLY, DONE) | exchange("s00", EARLY, DONE))
    status = main(["collect", str(source), "--to", str(root / "submitted")])
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
    assert status == (1 if "student" in said or "s00" in said else 2) if not has_roster else status == 2
    with pytest.raises(CommandError, match=said):
        deadlines_of(root)


NAMES = {
    "case": ("Ana", "ana"),
    "NFC and NFD": ("jos\u00e9", "jose\u0301"),
    "both": ("JOSE\u0301", "jos\u00e9"),
    "Cyrillic": ("\u0439od", "\u0438\u0306od"),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_two_names_that_are_one_folder_elsewhere_are_told(names: tuple[str, str], root: Path, tmp_path: Path) -> None:
    files = exchange(names[0], EARLY, DONE) | exchange(names[1], LATE, ALL)
    status, said = collect(root, packed(tmp_path / "d.zip", files))
    assert status == 1 and len(work(root)) == 1
    (left,) = said["left_out"]
    look_alike = unicodedata.normalize("NFC", names[0]) == unicodedata.normalize("NFC", names[1])
    assert all((ascii(name)[1:-1] if look_alike else name) in left["reason"] for name in names)
    for name in names:
        hand_in(root, name, DONE)
    with pytest.raises(CommandError, match="are one folder on some file systems"):
        deadlines_of(root)
    (root / "roster.csv").write_text("student id\n" + "\n".join(names) + "\n")
    assert main(["collect", str(tmp_path / "d.zip"), "--to", str(root / "submitted")]) == 2


def test_a_roster_in_another_normal_form_knows_its_people(root: Path, tmp_path: Path) -> None:
    (root / "roster.csv").write_text("student id,name\njose\u0301,Jose\u0301 Roe\n")
    collect(root, packed(tmp_path / "d.zip", exchange("jos\u00e9", EARLY, DONE)))
    assert work(root) == {"jose\u0301": DONE}


# What cannot be graded, and why ----------------------------------------------------------------------------------


def test_a_notebook_with_thirty_megabytes_of_output_is_collected_without_them(root: Path, tmp_path: Path) -> None:
    cells = json.loads(DONE)
    for cell in cells["cells"]:
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 6_000_000}]
    status, _ = collect(root, packed(tmp_path / "d.zip", moodle("Ana", 1, json.dumps(cells))))
    assert status == 0 and json.loads(work(root)["ana"]) == json.loads(DONE)


# What it costs ---------------------------------------------------------------------------------------------------

RULES = """
zone = "Europe/Madrid"

[late]
grace = "15 minutes"
per_day = "10 %"
at_most = "50 %"
until = "7 days"

[exercises.03-graph]
due = 2026-11-22T23:59:00
extensions = { ana = "3 days", ben = 2026-12-01T12:00:00 }
handed_in = { eve = 2026-11-24T08:30:00 }

[exercises.06-rewriting]
due = 2026-11-22T23:59:00+00:00
late = { per_day = 4, at_most = "100 %" }
"""


@pytest.mark.parametrize(
    ("student", "exercise", "when", "days", "points"),
    [
        ("bo", "03-graph", "2026-11-22T22:59:00", 0, 0),  # 23:59 in Madrid
        ("bo", "03-graph", "2026-11-22T23:14:00", 0, 0),  # within the time of grace
        ("bo", "03-graph", "2026-11-22T23:15:00", 1, 10),
        ("bo", "03-graph", "2026-11-23T23:00:00", 2, 20),
        ("bo", "03-graph", "2026-11-29T22:00:00", 7, 50),  # at most
        ("bo", "03-graph", "2026-11-30T00:00:00", 8, 80),  # too late: all that was earned
        ("ana", "03-graph", "2026-11-25T22:59:00", 0, 0),
        ("ana", "03-graph", "2026-11-26T22:59:00", 1, 10),
        ("ben", "03-graph", "2026-12-01T11:00:00", 0, 0),
        ("eve", "03-graph", None, 2, 20),
        ("bo", "06-rewriting", "2026-11-23T00:15:00", 1, 4),
        ("bo", "06-rewriting", "2026-11-25T00:15:00", 3, 12),
        ("bo", "01-eager", "2026-11-25T00:15:00", 0, 0),  # no due date
        ("bo", "03-graph", None, 0, 0),
    ],
)
def test_penalties(student: str, exercise: str, when: str | None, days: int, points: float, tmp_path: Path) -> None:
    (tmp_path / "deadlines.toml").write_text(RULES)
    rules = deadlines_of(tmp_path)
    found = rules.penalty(student, exercise, datetime.fromisoformat(when) if when else None, False, 80, 100)
    assert (found.days, found.points) == (days, points)


def test_late_without_a_time_is_one_day_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "deadlines.toml").write_text(RULES)
    rules = deadlines_of(tmp_path)
    found = rules.penalty("bo", "03-graph", None, True, 80, 100)
    assert (found.days, found.points, found.assumed) == (1, 10, True) and "as the platform marks it" in str(found)
    assert rules.penalty("ana", "03-graph", None, True, 80, 100).points == 0  # the extension is another platform's
    (tmp_path / "deadlines.toml").write_text(RULES.replace('"7 days"', '"12 hours"'))
    assert deadlines_of(tmp_path).penalty("bo", "03-graph", None, True, 80, 100).points == 10  # not known to be over


@given(
    st.floats(0, 100),
    st.floats(0, 50),
    st.floats(0, 1),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
)
def test_a_penalty_grows_with_time_and_never_takes_more_than_was_earned(
    earned: float, per_day: float, share: float, minutes: int, more: int
) -> None:
    due = datetime(2026, 11, 22)
    late = Late(per_day=Amount(per_day, share), until=timedelta(days=30))
    rules = Deadlines(exercises={"x": Deadline(due, late)})
    one, two = (
        rules.penalty("a", "x", due + timedelta(minutes=each), False, earned, 100).points
        for each in (minutes, minutes + more)
    )
    assert 0 <= one <= two <= earned


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("due = 2026-01-01", "has no due"),
        ('keep = "first"', "latest or best"),
        ('zone = "Mars"', "time zone"),
        ("[late]\nper_day = -1", "no number of points"),
        ('[late]\nper_day = "ten"', "no number of points"),
        ("[late]\ngrace = 15", "no time span"),
        ("[exercises.x]\ndue = 2026-11-22", "no time such as"),
        ("[exercises.x]\nduedate = 2026-11-22T00:00:00", "has no duedate"),
        ("exercises = 3", "has to be a table"),
        ("[exercises.x]\nextensions = 3", "has to be a table"),
        ("keep = ", "Invalid value"),
    ],
)
def test_rules_that_are_wrong_are_refused_with_the_place(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "deadlines.toml").write_text(text)
    with pytest.raises(CommandError, match=reason):
        deadlines_of(tmp_path)


def test_a_mark_that_a_text_editor_puts_in_front_is_no_fault(root: Path) -> None:
    (root / "deadlines.toml").write_text('\ufeffkeep = "best"\n', encoding="utf-8")
    assert deadlines_of(root).keep == "best"
