"""Assert cells: all points at their end, none after an exception, and hidden tests that no student gets to see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minitorch.__main__ import main
from minitorch_grading.assertions import credit, why_not
from minitorch_grading.handing_out.release import release, write
from tests.grading.classes import added, grade, hand_in, kinds, known, needs_bubblewrap, notebook

pytest.importorskip("nbgrader", reason="the gradebook is nbgrader's")

EXERCISE = "01-sample"
HIDDEN = "the mean of four is wrong"
TESTS = f"""
import math
assert mean([1, 2]) == 1.5
### BEGIN HIDDEN TESTS
assert mean([1, 2, 3, 4]) == 2.5, "{HIDDEN}"
### END HIDDEN TESTS
assert math.isclose(mean([3.0]), 3.0)
"""
RIGHT = "def mean(numbers):\n    return sum(numbers) / len(numbers)"
ONLY_TWO = "def mean(numbers):\n    return (numbers[0] + numbers[-1]) / 2 if len(numbers) < 3 else 0"
NUMBER = "2.5 if mean([1, 2]) == 1.5 else 0"  # the last line of a cell: partial credit


def cells(mean: str, tests: str = TESTS) -> list[dict[str, Any]]:
    """A notebook of two assert cells and a check."""
    task = "def first(gradient, shape):\n    raise NotImplementedError()"
    return [
        known("from minitorch.classroom import checks", "setup"),
        known(mean, "mean", solution=True, locked=False),
        known(tests, "mean-tests", grade=True, points=10),
        known(NUMBER, "number", grade=True, points=4),
        known(task, "first", solution=True, locked=False),
        known("checks.eager.unbroadcast(first)", "first-check", grade=True, points=30),
    ]


SOLUTION = notebook(cells(f"### BEGIN SOLUTION\n{RIGHT}\n### END SOLUTION"))
VISIBLE = "\n".join(line for line in TESTS.splitlines() if "HIDDEN" not in line and HIDDEN not in line)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("course")
    path = root / "solutions" / EXERCISE / f"{EXERCISE}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(SOLUTION)
    write(list(release(root / "solutions")), root / "exercises")
    return root


CLASS = {
    "right": RIGHT,
    "visible": "def mean(numbers):\n    return 0",
    "hidden": ONLY_TWO,
    "blank": "raise NotImplementedError()",
    "exits": "def mean(numbers):\n    raise SystemExit(0)",
    "interrupts": "def mean(numbers):\n    raise KeyboardInterrupt",
    "dies": "import os\ndef mean(numbers):\n    os._exit(0)",
    "endless": "def mean(numbers):\n    while True:\n        pass",
    "prints": f"{RIGHT.replace('return', 'print(numbers); return')}",
}


@pytest.fixture(scope="module")
def graded(course: Path) -> dict[str, dict[str, Any]]:
    needs_bubblewrap()
    for student, mean in CLASS.items():
        hand_in(course, student, notebook(cells(mean, VISIBLE)))
    edited = cells(CLASS["visible"], "pass")
    hand_in(course, "edited", notebook([*edited, added("mean")]))
    return grade(course, "--cell-time", "5")


def of(row: dict[str, Any], cell: str = "mean-tests") -> tuple[float, str]:
    (found,) = (each for each in row["graded"] if each["cell"] == cell)
    return found["points"], found["reason"]


VISIBLE_REASON = "`assert mean([1, 2]) == 1.5` "


@pytest.mark.parametrize(
    ("student", "points", "reason"),
    [
        ("right", 10, ""),
        ("prints", 10, ""),
        ("visible", 0, VISIBLE_REASON + "fails"),
        ("edited", 0, VISIBLE_REASON + "fails"),
        ("hidden", 0, f"a hidden test fails: {HIDDEN}"),
        ("exits", 0, "the cell raises SystemExit: 0"),
        ("interrupts", 0, VISIBLE_REASON + "raises KeyboardInterrupt"),
        ("dies", 0, "not judged: a cell ended the kernel; the other cells were run in a new one"),
        ("endless", 0, "not judged: a cell ran for too long and was stopped (more than 5 s)"),
    ],
)
def test_an_assert_cell_gives_all_points_or_none(
    graded: dict[str, dict[str, Any]], student: str, points: float, reason: str
) -> None:
    assert of(graded[student]) == (points, reason)


def test_a_name_that_is_missing_is_said_with_its_cell(graded: dict[str, dict[str, Any]]) -> None:
    points, reason = of(graded["blank"])
    assert (
        points == 0
        and reason == "no cell above defines `mean` (NameError): has it another name, or was its cell deleted?"
    )


def test_a_number_is_partial_credit(graded: dict[str, dict[str, Any]]) -> None:
    assert of(graded["right"], "number") == (2.5, "the cell gives 2.5 of its 4 points")
    assert of(graded["visible"], "number") == (0, "the cell gives 0 of its 4 points")


def test_the_incidents_are_those_of_any_cell(graded: dict[str, dict[str, Any]]) -> None:
    assert {student: kinds(row) for student, row in graded.items() if row["incidents"]} == {
        "dies": ["kernel-died"],
        "edited": ["cell-edited"],
        "endless": ["cell-time"],
    }
    assert all(of(row, "first-check") == (0, "it has not been written yet") for row in graded.values())


def test_no_line_of_a_hidden_test_is_in_what_students_get(course: Path, graded: dict[str, dict[str, Any]]) -> None:
    lines = [line for line in TESTS.splitlines() if line and line not in VISIBLE]
    assert len(lines) == 3
    given = [*course.glob("exercises/*/*"), *course.glob("feedback/*/*/*")]
    assert len(given) == len(graded) + 1
    for path in given:
        text = path.read_text()
        assert [line for line in lines if line in text or json.dumps(line)[1:-1] in text] == [], path
        assert "[1, 2, 3, 4]" not in text or path.parts[-3] == "prints"  # which is what a student can do


def test_only_what_has_changed_is_graded_again(course: Path, graded: dict[str, dict[str, Any]]) -> None:
    """Hidden tests are a condition of grading, as the notebook that was handed out is."""
    path = course / "solutions" / EXERCISE / f"{EXERCISE}.ipynb"
    line = (course / "grading.jsonl").read_text().count("\n")
    grade(course, "--cell-time", "5", "--only", "right")
    assert (course / "grading.jsonl").read_text().count("\n") == line
    try:
        path.write_text(SOLUTION.replace("== 2.5", "== 3.5"))
        assert of(grade(course, "--cell-time", "5", "--only", "right")["right"]) == (
            0,
            f"a hidden test fails: {HIDDEN}",
        )
    finally:
        path.write_text(SOLUTION)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda path: path.write_text(SOLUTION.replace("[3.0]", "[4.0]")), "mean-tests is not that of the solution"),
        (
            lambda path: path.write_text(SOLUTION.replace("assert mean([1, 2, 3, 4])", "checks.graph.run(mean)")),
            "the hidden tests of the assert cell mean-tests call a check",
        ),
        (lambda path: path.unlink(), "where the hidden tests of 01-sample are"),
        (lambda path: path.write_text("{"), "the file is damaged"),
    ],
    ids=["changed", "with a check", "missing", "damaged"],
)
def test_hidden_tests_that_are_not_there_are_said_before_anything_is_run(
    course: Path, change, says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = course / "solutions" / EXERCISE / f"{EXERCISE}.ipynb"
    hand_in(course, "right", notebook(cells(RIGHT, VISIBLE)))
    try:
        change(path)
        assert main(["grade", str(course / "submitted"), "--unsafe", "--only", "right"]) == 2
    finally:
        path.write_text(SOLUTION)
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("text", ["\n" * 300_000, " " * 300_000, "\x1b[0" * 100_000, "Cell In[" * 40_000])
def test_a_forged_traceback_is_read_in_linear_time(text: str) -> None:
    """It would take hours otherwise."""
    error = {"ename": "ValueError", "evalue": "x", "traceback": [text, "Cell In[1], line 1"]}
    assert why_not(error, "assert f(1)").startswith("`assert f(1)` raises ValueError")


def test_a_number_of_any_length_is_no_more_than_a_number() -> None:
    def shown(text: str) -> list[dict[str, Any]]:
        return [{"output_type": "execute_result", "data": {"text/plain": text}}]

    assert credit(shown("1" * 4_000_000), 5) == (5, "") == credit(shown("nan"), 5)
    assert credit(shown("inf"), 5)[0] == 0 == credit(shown("6"), 5)[0]


def test_check_shows_assert_cells_too(course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def checked(source: list[dict[str, Any]]) -> dict[str, tuple[float, float, str]]:
        (tmp_path / "some.ipynb").write_text(notebook(source))
        assert main(["check", str(tmp_path / "some.ipynb"), "--json"]) == 1
        (found,) = json.loads(capsys.readouterr().out)
        return {row["task"]: (row["points"], row["of"], row["reason"]) for row in found["tasks"]}

    assert checked(cells(RIGHT, VISIBLE)) == {
        "mean-tests": (10, 10, ""),
        "number": (2.5, 4, "the cell gives 2.5 of its 4 points"),
        "eager.unbroadcast": (0, 30, "it has not been written yet"),
    }
    assert checked(cells(CLASS["exits"], VISIBLE))["mean-tests"] == (0, 10, "the cell raises SystemExit: 0")
    assert checked(cells(CLASS["visible"], VISIBLE))["mean-tests"] == (0, 10, "`assert mean([1, 2]) == 1.5` fails")
    died = checked(cells(CLASS["dies"], VISIBLE))
    assert died["mean-tests"][2].startswith("not judged: a cell ended the kernel")
    by_hand = known("because", "essay", grade=True, solution=True, points=5) | {"cell_type": "markdown"}
    del by_hand["outputs"], by_hand["execution_count"]
    assert checked([*cells(RIGHT, VISIBLE), by_hand])["essay"] == (0, 5, "a person reads this answer")
