"""Collecting a class's work: every platform's form; the same again changes nothing; damage replaces nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from minitorch.__main__ import main
from minitorch.errors import CommandError
from minitorch_grading.grading.collecting import collect as collecting
from minitorch_grading.grading.collecting.attempts import attempts
from minitorch_grading.grading.course.journal.journal import Entry, Journal
from minitorch_grading.grading.course.running.keys import work_of
from minitorch_grading.grading.results import Graded, Result
from minitorch_grading.grading.submission.preflight import read
from tests.grading.classes import EXERCISE, added, course, grade, hand_in, kinds, needs_bubblewrap, notebook
from tests.grading.collecting.downloads import (
    ALL,
    BLANK,
    DAMAGED,
    DONE,
    Files,
    canvas,
    collect,
    exchange,
    folder,
    moodle,
    moodle_flat,
    packed,
    submitted,
    tree,
    work,
)

TIME = "2026-11-22 10:00:00 UTC"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return course(tmp_path / "course")


def count_files(root: Path) -> int:
    """The number of files below a folder that another process is changing."""
    return sum(len(files) for _, _, files in os.walk(root))


def rows(said: dict[str, Any]) -> dict[str, str]:
    return {row["student"]: row["what"] for row in said["collected"]}


# The forms -------------------------------------------------------------------------------------------------------

FORMS: dict[str, tuple[Files, dict[str, str]]] = {
    "Moodle before 4.1": (
        moodle("Ana López", 12345, DONE) | moodle("Bo Li", 12346, ALL),
        {"ana-lópez": DONE, "bo-li": ALL},
    ),
    "Moodle since 4.1": (
        moodle("Ana López", 12345, DONE, end="") | moodle("Bo Li", 12346, ALL, end=""),
        {"ana-lópez": DONE, "bo-li": ALL},
    ),
    "Moodle without folders": (
        moodle_flat("Ana López", 12345, DONE) | moodle_flat("Bo Li", 12346, ALL),
        {"ana-lópez": DONE, "bo-li": ALL},
    ),
    "Moodle, with folders of the student's": (
        moodle("Ana López", 12345, DONE, f"my work/{EXERCISE}.ipynb"),
        {"ana-lópez": DONE},
    ),
    "Moodle, anonymous": (moodle("Participant", 12345, DONE), {"participant-12345": DONE}),
    "Moodle, with online text": (
        moodle("Ana", 1, DONE) | {"Ana_1_assignsubmission_onlinetext_/onlinetext.html": "hello"},
        {"ana": DONE},
    ),
    "Canvas": (
        canvas("lopezana", 1234, 5678, DONE) | canvas("libo", 1235, 5679, ALL, late=True),
        {"lopezana-1234": DONE, "libo-1235": ALL},
    ),
    "Canvas, resubmitted": (
        canvas("lopezana", 1234, 5678, DONE, f"{EXERCISE}-2.ipynb"),
        {"lopezana-1234": DONE},
    ),
    "Canvas, anonymous": ({f"anon_x7Kp2_991_{EXERCISE}.ipynb": DONE}, {"anon-x7Kp2": DONE}),
    "nbgrader's exchange": (
        exchange("ana", TIME, DONE) | exchange("bo@uni.edu", "2026-11-22 11:00:00.123456 UTC", ALL),
        {"ana": DONE, "bo@uni.edu": ALL},
    ),
    "nbgrader's course": (submitted("ana", DONE) | submitted("bo", ALL), {"ana": DONE, "bo": ALL}),
    "renamed": (moodle("Ana", 1, DONE, "Untitled (3).ipynb"), {"ana": DONE}),
    "renamed, and in a zip's folder": (moodle("Ana", 1, DONE, "a/b/c/final FINAL.ipynb"), {"ana": DONE}),
}
each_form = pytest.mark.parametrize(("files", "expected"), FORMS.values(), ids=FORMS)


@each_form
@pytest.mark.parametrize("made", ["folder", "zip", "folder with a zip"])
def test_every_form_is_collected_and_the_same_again_changes_nothing(
    files: Files, expected: dict[str, str], made: str, root: Path, tmp_path: Path
) -> None:
    source = folder(tmp_path / "download", files) if made == "folder" else packed(tmp_path / "in" / "d.zip", files)
    if made == "folder with a zip":
        source = source.parent
    status, said = collect(root, source)
    assert work(root) == expected and set(rows(said).values()) == {"new"}
    before = tree(root)
    again, same = collect(root, source)
    assert again == status and set(rows(same).values()) == {"unchanged"}
    after = tree(root)
    assert {name: content for name, (_, content) in after.items()} == {
        name: content for name, (_, content) in before.items()
    }
    changed = [name for name in before if before[name][0] != after[name][0] and (root / name).is_file()]
    assert not changed


def test_a_class_of_many_exercises_in_one_folder(root: Path, tmp_path: Path) -> None:
    other = notebook([{**added("x = 1"), "metadata": {"nbgrader": {"grade_id": "else", "solution": True}}}])
    path = root / "exercises" / "02-other" / "02-other.ipynb"
    path.parent.mkdir()
    path.write_text(other)
    folder(tmp_path / "d" / EXERCISE, moodle("Ana", 1, DONE))
    packed(
        tmp_path / "d" / "CS101-02 Other-4711.zip",
        moodle("Ana", 99, other, "02-other.ipynb") | canvas("libo", 7, 8, other, "x.ipynb"),
    )
    collect(root, tmp_path / "d")
    assert work(root) == {"ana": DONE}
    assert work(root, "02-other") == {"ana": other, "libo-7": other}


def test_a_zip_that_a_student_made_is_looked_into(root: Path, tmp_path: Path) -> None:
    inner = packed(tmp_path / "inner.zip", {f"work/{EXERCISE}.ipynb": DONE, "__MACOSX/._x": "noise", "notes.txt": "n"})
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.write(inner, "Ana_1_assignsubmission_file_/work.zip")
        archive.write(inner, "libo_7_8_work.zip")
    collect(root, tmp_path / "d.zip")
    assert work(root) == {"ana": DONE, "libo-7": DONE}


# Several attempts ------------------------------------------------------------------------------------------------

RESUBMITTED: dict[str, tuple[Files, Files, str]] = {  # an earlier download, a later one, the student
    "Canvas": (canvas("li", 7, 10, DONE), canvas("li", 7, 11, ALL, f"{EXERCISE}-1.ipynb"), "li-7"),
    "exchange": (exchange("ana", TIME, DONE), exchange("ana", "2026-11-23 10:00:00 UTC", ALL), "ana"),
}


@pytest.mark.parametrize(("early", "late", "student"), RESUBMITTED.values(), ids=RESUBMITTED)
@pytest.mark.parametrize("order", ["early first", "late first", "together"])
def test_the_latest_is_kept_in_whichever_order_downloads_come(
    early: Files, late: Files, student: str, order: str, root: Path, tmp_path: Path
) -> None:
    one, two = packed(tmp_path / "d" / "1.zip", early), packed(tmp_path / "d" / "2.zip", late)
    for source in {"early first": [one, two], "late first": [two, one], "together": [tmp_path / "d"]}[order]:
        collect(root, source)
    assert work(root) == {student: ALL}
    assert [each.problem for each in attempts(root, student, EXERCISE)] == ["", ""]


DAMAGES: dict[str, str] = {
    "half a file": DAMAGED,
    "empty": "",
    "no notebook": "<html>sign in</html>",
    "another notebook": notebook([added("x = 1")]),
    "too large": notebook([added("x" * 6_000_000)]),
    "nested": "[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["good first", "damaged first"])
def test_a_damaged_resubmission_replaces_nothing(
    damage: str, order: tuple[int, int], root: Path, tmp_path: Path
) -> None:
    downloads = [
        packed(tmp_path / "1.zip", canvas("li", 7, 10, DONE)),
        packed(tmp_path / "2.zip", canvas("li", 7, 11, damage, f"{EXERCISE}-1.ipynb")),
    ]
    for number in order:
        status, said = collect(root, downloads[number])
    assert work(root) == {"li-7": DONE}
    good, damaged = attempts(root, "li-7", EXERCISE)
    assert not good.problem and damaged.problem
    (row,) = said["collected"]
    assert status == 1 and "cannot be graded" in row["remark"] and "is kept" in row["remark"]


def test_handing_in_no_notebook_replaces_nothing(root: Path, tmp_path: Path) -> None:
    collect(root, packed(tmp_path / "1.zip", moodle("Ana", 1, DONE) | moodle("Bo", 2, DONE)))
    status, said = collect(
        root, packed(tmp_path / "2.zip", moodle("Ana", 1, "%PDF", "report.pdf") | moodle("Bo", 2, DONE))
    )
    assert work(root) == {"ana": DONE, "bo": DONE} and status == 1
    assert "report.pdf" in said["collected"][0]["remark"]


def test_what_only_is_damaged_is_for_the_grader_to_name(root: Path, tmp_path: Path) -> None:
    files = moodle("Ana", 1, DAMAGED) | moodle("Bo", 2, DONE) | moodle("Eve", 3, "%PDF", "report.pdf")
    status, _ = collect(root, packed(tmp_path / "d.zip", files))
    found = work(root)
    assert status == 1 and "report.pdf" in found.pop("eve") and found == {"ana": DAMAGED, "bo": DONE}
    (kept,) = (root / "collected" / "eve" / EXERCISE).glob("*/files/*")
    assert kept.read_text() == "%PDF" and kept.suffix == ".pdf"


def test_what_cannot_be_graded_is_told_with_its_own_reason(root: Path, tmp_path: Path) -> None:
    """In the table and on the student's page."""
    needs_bubblewrap()
    files = moodle("Ana", 1, "%PDF", "report.pdf") | moodle("Bo", 2, "PK", "work.zip") | moodle("Eve", 3, DONE)
    collect(root, packed(tmp_path / "d.zip", files))
    table = grade(root)
    for student, reason in {"ana": "no notebook was handed in, but report.pdf", "bo": "work.zip: it cannot be"}.items():
        (incident,) = table[student]["incidents"]
        assert incident["kind"] == "unreadable" and reason in incident["detail"]
        assert reason in (root / "feedback" / student / EXERCISE / f"{EXERCISE}.html").read_text()
    assert not kinds(table["eve"])


def test_several_notebooks(root: Path, tmp_path: Path) -> None:
    """The one with the right name; else the only one of the exercise; else none, and the instructor has to say it."""
    name = "Ana_1_assignsubmission_file_"
    right = {f"{name}/{EXERCISE}.ipynb": DONE, f"{name}/old.ipynb": BLANK}
    only = {"Bo_2_assignsubmission_file_/x.ipynb": DONE, "Bo_2_assignsubmission_file_/y.ipynb": notebook([added("1")])}
    both = {"Eve_3_assignsubmission_file_/x.ipynb": DONE, "Eve_3_assignsubmission_file_/y.ipynb": ALL}
    collect(root, packed(tmp_path / "d.zip", right | only | both))
    found = work(root)
    assert "2 notebooks could be" in found.pop("eve") and found == {"ana": DONE, "bo": DONE}
    kept = (root / "collected" / "eve" / EXERCISE).glob("*/files/*.ipynb")
    assert {path.read_text() for path in kept} == {DONE, ALL}


def test_work_that_was_put_there_by_hand_is_kept(root: Path, tmp_path: Path) -> None:
    """It counts as handed in when it was written; whatever replaces it, it stays among the attempts."""
    hand_in(root, "ana", BLANK)
    os.utime(root / "submitted" / "ana" / EXERCISE / f"{EXERCISE}.ipynb", (10**9, 10**9))
    source = packed(tmp_path / "d.zip", exchange("ana", TIME, DONE))
    collect(root, source)
    assert work(root) == {"ana": DONE}
    hand_in(root, "ana", ALL)  # mended by the instructor, now, which is after TIME or else a day later
    os.utime(root / "submitted" / "ana" / EXERCISE / f"{EXERCISE}.ipynb", (2 * 10**9, 2 * 10**9))
    (root / "submitted" / "ana" / EXERCISE / "timestamp.txt").unlink()
    collect(root, source)
    assert work(root) == {"ana": ALL}
    assert [each.platform for each in attempts(root, "ana", EXERCISE)] == ["by hand", "nbgrader", "by hand"]


def test_the_best_is_kept_if_the_course_says_so(root: Path, tmp_path: Path) -> None:
    (root / "deadlines.toml").write_text('keep = "best"\n')
    source = folder(tmp_path / "d", exchange("ana", TIME, ALL) | exchange("ana", "2026-11-23 10:00:00 UTC", BLANK))
    submitted_now = root / "submitted" / "ana" / EXERCISE

    def grade_as(points: float, of: float) -> None:
        result = Result([Graded(f"{name}-check", points / 2, of / 2, "") for name in ("first", "second")])
        with Journal(root / "grading.jsonl") as journal:
            journal.add(("ana", EXERCISE), Entry("", work_of(read(submitted_now, EXERCISE, 10**6)), result))

    for content, points in ((BLANK, 0.0), (ALL, 60.0)):
        _, said = collect(root, source)
        assert work(root) == {"ana": content} and "not graded yet" in said["collected"][0]["remark"]
        grade_as(points, 60)
    _, said = collect(root, source)
    assert work(root) == {"ana": ALL} and "worth more" in said["collected"][0]["remark"]
    grade_as(40, 40)  # of another version of the exercise
    assert "not graded yet" in collect(root, source)[1]["collected"][0]["remark"]


# People ----------------------------------------------------------------------------------------------------------

ROSTER = "student id,name,e-mail,canvas\nana,Ana López,ana@uni.edu,1234\nbo,Bo Li,bo@uni.edu,1235\neve,Eve Roe,,\n"
GRADEBOOK = (
    "Student,ID,SIS User ID,SIS Login ID,Section,01-sample (77)\r\n"
    "    Points Possible,,,,,60\r\n"
    '"López, Ana",1234,u1,ana,Group 1,\r\n"Li, Bo",1235,u2,bo,Group 1,\r\n"Roe, Eve",1236,u3,eve,Group 2,\r\n'
    '"Student, Test",9,,abcdef,Group 1,\r\n'
)
PARTICIPANTS = (
    "First name,Last name,ID number,Email address,Username\n"
    "Ana,López,u1,ana@uni.edu,ana\nBo,Li,u2,bo@uni.edu,bo\nEve,Roe,u3,eve@uni.edu,eve\n"
)


@pytest.mark.parametrize(
    "roster", [ROSTER, GRADEBOOK, PARTICIPANTS], ids=["own", "Canvas's gradebook", "Moodle's list"]
)
@pytest.mark.parametrize(
    "files",
    [
        moodle("Ana López", 1, DONE) | moodle("Bo Li", 2, ALL),
        moodle("Ana Lopez", 1, DONE) | moodle("LI Bo", 2, ALL),
        canvas("lopezana", 1234, 8, DONE) | canvas("libo", 1235, 9, ALL),
        exchange("ana", TIME, DONE) | exchange("bo", TIME, ALL),
    ],
    ids=["Moodle", "Moodle, otherwise", "Canvas", "exchange"],
)
def test_a_roster_names_people_and_who_is_missing(files: Files, roster: str, root: Path, tmp_path: Path) -> None:
    (root / "roster.csv").write_text("\ufeff" + roster)
    _, said = collect(root, packed(tmp_path / "d.zip", files))
    assert work(root) == {"ana": DONE, "bo": ALL}
    assert said["handed_in_nothing"] == {EXERCISE: ["eve"]}


def test_somebody_who_is_not_on_the_roster_is_named_and_left_out(root: Path, tmp_path: Path) -> None:
    (root / "roster.csv").write_text(ROSTER)
    status, said = collect(root, packed(tmp_path / "d.zip", moodle("Mallory", 9, DONE) | moodle("Bo Li", 2, ALL)))
    assert work(root) == {"bo": ALL} and status == 1
    (left,) = said["left_out"]
    assert "Mallory" in left["what"] and "not on the roster" in left["reason"]


def test_a_roster_that_comes_late_names_who_is_not_on_it(root: Path, tmp_path: Path) -> None:
    source = packed(tmp_path / "d.zip", moodle("Bo Li", 2, ALL))
    assert collect(root, source)[1]["notes"] == []
    (root / "roster.csv").write_text(ROSTER)
    (note,) = collect(root, source)[1]["notes"]
    assert note == f"In {root / 'submitted'} and not on the roster: bo-li"


def test_two_people_of_one_name_are_not_mixed_up(root: Path, tmp_path: Path) -> None:
    source = packed(tmp_path / "d.zip", moodle("Ana Li", 1, DONE) | moodle("Ana Li", 2, ALL))
    status, said = collect(root, source)
    assert status == 1 and any("name of two people" in each["reason"] for each in said["left_out"])
    (root / "submitted" / "ana-li" / EXERCISE / f"{EXERCISE}.ipynb").unlink()
    (root / "roster.csv").write_text("student id,name,email\nana1,Ana Li,a1@uni.edu\nana2,Ana Li,a2@uni.edu\n")
    sheet = tmp_path / "Grades.csv"
    sheet.write_text(
        'Identifier,"Full name","Email address",Grade,"Last modified (submission)"\n'
        'Participant 1,"Ana Li",a1@uni.edu,,"Sunday, 22 November 2026, 11:30 PM"\n'
        'Participant 2,"Ana Li",a2@uni.edu,,-\n'
    )
    assert collect(root, source)[1]["collected"] == []
    collect(root, source, "--worksheet", str(sheet))
    assert work(root) == {"ana1": DONE, "ana2": ALL}
    assert (root / "submitted/ana1" / EXERCISE / "timestamp.txt").read_text() == "2026-11-22 23:30:00 UTC"


def test_a_worksheet_tells_times_in_the_zone_of_the_course(root: Path, tmp_path: Path) -> None:
    (root / "deadlines.toml").write_text('zone = "Europe/Madrid"\n')
    source = packed(tmp_path / "d.zip", moodle("Ana", 1, DONE))
    collect(root, source)
    assert not (root / "submitted/ana" / EXERCISE / "timestamp.txt").exists()
    sheet = tmp_path / "Grades.csv"
    sheet.write_text(
        'Identifier,Full name,Last modified (submission)\nParticipant 1,Ana,"Sunday, 1 November 2026, 9:05 AM"\n'
    )
    _, said = collect(root, source, "--worksheet", str(sheet))
    assert rows(said) == {"ana": "replaced"}  # the time is new
    assert (root / "submitted/ana" / EXERCISE / "timestamp.txt").read_text() == "2026-11-01 08:05:00 UTC"
    assert len(attempts(root, "ana", EXERCISE)) == 1
    sheet.write_text('Identifier,Full name,Last modified (submission)\nParticipant 1,Ana,"domingo, 1 de noviembre"\n')
    assert "not understood" in collect(root, source, "--worksheet", str(sheet))[1]["notes"][0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2\n", "no column"),
        ("student id\nana\nana\n", "two people"),
        ("student id,email\nana,a@x\nbo,A@x\n", "two people"),
        ("student id\n../../etc\n", "character|begins"),
        ("student id\n=cmd\n", "formula"),
        ("student id,email\nana,=HYPERLINK()\n", "formula"),
        ("", "empty"),
    ],
)
def test_a_roster_that_is_wrong_is_refused_with_the_place(text: str, reason: str, root: Path, tmp_path: Path) -> None:
    (root / "roster.csv").write_text(text)
    from minitorch_grading.grading.enrolment.roster import roster_of

    with pytest.raises(CommandError, match=reason):
        roster_of(root)


@pytest.mark.parametrize(
    "name", ["<img onerror=alert(1)>", "../../../tmp/x", "a\x1b[31m", "$(touch x)", "-rf", "x" * 99]
)
def test_no_name_of_a_platform_becomes_a_dangerous_folder(name: str, root: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    source = packed(tmp_path / "d.zip", {f"{name}_12_assignsubmission_file_/{EXERCISE}.ipynb": DONE})
    collect(root, source)
    from minitorch_grading.grading.course.names import refused

    made = [path.name for path in (root / "submitted").iterdir()] if (root / "submitted").exists() else []
    assert all(refused(each) is None for each in made)
    assert {each.split("/")[0] for each in tree(tmp_path)} - {each.split("/")[0] for each in before} <= {"d.zip"}


def test_nobody_hands_in_for_somebody_else(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the exchange everybody may write; whoever owns a folder of that name is who handed it in."""
    forged = exchange("ana", "2026-11-23 10:00:00 UTC", BLANK)
    source = folder(tmp_path / "inbound", exchange("ana", TIME, DONE) | exchange("mallory", TIME, ALL) | forged)
    by = {"ana+01-sample+2026-11-22": "ana", "mallory": "mallory", "ana+01-sample+2026-11-23": "mallory"}
    monkeypatch.setattr(
        "minitorch.classroom.grading.collecting.gather.owner_of",
        lambda path: next(owner for start, owner in by.items() if path.parent.name.startswith(start)),
    )
    status, said = collect(root, source)
    assert work(root) == {"ana": DONE, "mallory": ALL} and status == 1
    assert "belongs to mallory" in said["left_out"][0]["reason"]


# Interruptions ---------------------------------------------------------------------------------------------------


def test_a_run_that_is_killed_is_completed_by_the_next(root: Path, tmp_path: Path) -> None:
    """Nothing is half written at any time: a notebook is the old one or the new one."""
    rng = random.Random(0)
    early = {name: content for n in range(40) for name, content in canvas(f"s{n}", n, n + 1, DONE).items()}
    late = {name: content for n in range(40) for name, content in canvas(f"s{n}", n, n + 100, ALL).items()}
    downloads = [packed(tmp_path / "1.zip", early), packed(tmp_path / "2.zip", late)]
    killed = 0
    code = "import sys; from minitorch.__main__ import main; sys.exit(main(sys.argv[1:]))"
    for source in downloads:
        command = [sys.executable, "-c", code, "collect", str(source), "--to", str(root / "submitted")]
        for _ in range(4):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
            enough = count_files(root) + rng.randrange(1, 60)
            while process.poll() is None and count_files(root) < enough:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)  # which does nothing if it has ended
            killed += process.wait() == -signal.SIGKILL
            assert set(work(root).values()) <= {DONE, ALL}
        assert subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0
    assert killed
    assert work(root) == {f"s{n}-{n}": ALL for n in range(40)}
    assert all(len(attempts(root, f"s{n}-{n}", EXERCISE)) == 2 for n in range(40))
    assert not list(root.rglob(".*"))


def test_what_one_student_hands_in_is_read_one_after_the_other(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: Files = {}
    for minute in range(4):
        files |= exchange("ana", f"2026-11-22 10:0{minute}:00 UTC", notebook([added(f"{minute}")]))
    steps: list[str] = []
    for name in ("attempt_of", "keep"):
        before = getattr(collecting, name)
        monkeypatch.setattr(collecting, name, lambda *about, of=before, name=name: steps.append(name) or of(*about))
    collect(root, folder(tmp_path / "inbound", files))
    assert steps == ["attempt_of", "keep"] * 4, "a class's work may not lie in memory at once"


def test_two_at_once_are_refused(root: Path, tmp_path: Path) -> None:
    import fcntl

    (root / "collected").mkdir()
    handle = os.open(root / "collected", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert (
        main(["collect", str(packed(tmp_path / "d.zip", moodle("A", 1, DONE))), "--to", str(root / "submitted")]) == 2
    )
    os.close(handle)


@pytest.mark.parametrize("source", [".", "..", "nothing", "exercises/01-sample/01-sample.ipynb"])
def test_what_is_no_download_is_refused(source: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", str(root / source), "--to", str(root / "submitted")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
