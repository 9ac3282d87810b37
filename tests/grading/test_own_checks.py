"""Own checks: docs/own-checks.md as it is typed, and all that an instructor can get wrong, with its line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from minitorch.__main__ import main
from minitorch.errors import CommandError
from minitorch_grading.checks import Task
from minitorch_grading.own_checks import PACKAGED, checks_from, sources_in
from tests.grading.classes import ROOT, grade, hand_in, kinds, known, needs_bubblewrap
from tests.grading.test_grading_page import commands

pytest.importorskip("nbgrader", reason="releasing needs the course extra")

EXERCISE = "10-mean"
PAGE = (ROOT / "docs" / "own-checks.md").read_text()
COMMANDS = commands(PAGE)
BLOCKS = dict(re.findall(r"^```python\n# ([^\n]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
ANSWER, CHECK = "10-mean.ipynb, running-mean", "10-mean.ipynb, running-mean-check, 5 points"
MEAN = "def mean(numbers):\n    return sum(numbers) / len(numbers) if numbers else 0.0"


def typed(course: Path, line: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": ""}
    return subprocess.run(line, shell=True, cwd=course, env=environment, text=True, capture_output=True)


def write(path: Path, text: str, mode: str = "w") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode) as file:
        file.write(text)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course in which the page was followed to its end."""
    root = tmp_path_factory.mktemp("course")
    assert len(COMMANDS) == 4
    for line in COMMANDS:
        done = typed(root, line)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    written = (root / "solutions" / EXERCISE / "checks.py").read_text()
    assert written == BLOCKS.pop("solutions/10-mean/checks.py")
    notebook = root / "solutions" / EXERCISE / f"{EXERCISE}.ipynb"
    content = json.loads(notebook.read_text())
    content["cells"] += [
        known(BLOCKS.pop(ANSWER), "running-mean", solution=True, locked=False),
        known(BLOCKS.pop(CHECK), "running-mean-check", grade=True, points=5),
    ]
    notebook.write_text(json.dumps(content))
    for name, text in list(BLOCKS.items()):
        write(root / name.removesuffix(", at its end"), text, "a" if name.endswith("at its end") else "w")
    assert main(["release", "--source", str(root / "solutions"), "--to", str(root / "exercises")]) == 0
    return root


def test_the_page_names_the_files_that_are_written(course: Path) -> None:
    named = set(re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE))
    here = {
        str(path.relative_to(course))
        for top in ("solutions", "wrong_solutions")
        for path in (course / top).rglob("*.*")
    }
    assert named | {"wrong_solutions/10-mean/running.py"} == {name for name in here if "__pycache__" not in name}
    assert (course / "package" / f"{EXERCISE}.zip").is_file()


def test_the_solutions_of_the_page_get_what_they_must(course: Path) -> None:
    done = typed(course, f"minitorch wrong-solutions {EXERCISE} --json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {each["name"]: (each["points"], each["of"]) for each in json.loads(done.stdout)}
    assert found == {
        "the solution of 10-mean": (20, 20),
        "forgets_to_divide": (3, 15),
        "divides_by_two": (11, 15),
        "forgets_the_empty_list": (12, 15),
        "empties_the_list": (10, 15),
        "goes_through_the_list": (15, 15),
        "takes_the_last_two": (0, 5),
        "keeps_the_sum": (5, 5),
    }


# --- graded -------------------------------------------------------------------------------------------------------


def work(course: Path, mean: str, running_mean: str, more: str = "") -> str:
    content = json.loads((course / "exercises" / EXERCISE / f"{EXERCISE}.ipynb").read_text())
    for cell in content["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = {"mean": mean, "running-mean": running_mean}.get(name, cell["source"])
        if cell["id"] == "setup":
            cell["source"] = f"import checks\n{more}"
    return json.dumps(content)


RUNNING = """
def running_mean():
    seen = []
    return lambda number: (seen.append(number), sum(seen) / len(seen))[1]
"""
LOOK = """
import importlib.util, sys
import minitorch as mt
twice = mt.jit(lambda x: x + x)(mt.ones(2)).tolist()
found = [name for name in ("checks", "harness") if importlib.util.find_spec(name)]
names = sorted(name for name in vars(checks) if not name.startswith("_"))
print(found, names, twice)
"""
CLASS = {
    "right": (MEAN, RUNNING, LOOK),
    "half": ("def mean(numbers):\n    return sum(numbers) / 2", "def running_mean():\n    return lambda number: 0", ""),
    "forges": ("def mean(numbers):\n    return 0", RUNNING, "checks.mean = lambda *_: 10"),
    "changes": (
        MEAN,
        RUNNING,
        "import harness\nharness.running_mean.function.__code__ = (lambda call, case: 7).__code__",
    ),
    "blank": ("raise NotImplementedError()", "raise NotImplementedError()", ""),
}


@pytest.fixture(scope="module")
def graded(course: Path) -> dict[str, dict[str, Any]]:
    needs_bubblewrap()
    for student, (mean, running_mean, more) in CLASS.items():
        hand_in(course, student, work(course, mean, running_mean, more), exercise=EXERCISE)
    return grade(course)


def points(row: dict[str, Any]) -> dict[str, float]:
    return {each["cell"]: each["points"] for each in row["graded"]}


def test_own_checks_are_judged_outside(graded: dict[str, dict[str, Any]]) -> None:
    everything = {"mean-check": 10, "mean-tests": 5, "running-mean-check": 5}
    assert {student: points(row) for student, row in graded.items()} == {
        "right": everything,
        "half": {"mean-check": 6, "mean-tests": 5, "running-mean-check": 0},
        "forges": {"mean-check": 0, "mean-tests": 0, "running-mean-check": 5},
        "changes": everything,
        "blank": dict.fromkeys(everything, 0),
    }
    reasons = {each["cell"]: each["reason"] for each in graded["half"]["graded"]}
    assert "and should be" in reasons["mean-check"] and "element 0: an int was expected" not in reasons["mean-check"]
    assert reasons["running-mean-check"] == "element 0: a float was expected, and it is 0"
    assert {student: kinds(row) for student, row in graded.items() if row["incidents"]} == {
        "changes": ["tampered"],
        "forges": ["tampered"],
    }


def test_beside_student_code_there_are_asks_alone(course: Path, graded: dict[str, dict[str, Any]]) -> None:
    shown = (course / "autograded" / "right" / EXERCISE / f"{EXERCISE}.ipynb").read_text()
    printed = "['checks', 'harness'] ['Needs', 'call_with_arguments', 'driver', 'mean', 'running_mean'] [2.0, 2.0]"
    assert printed in shown
    inside = checks_from(sources_in(course / "solutions" / EXERCISE), "here").inside
    assert set(inside) == {"checks", "harness"} and "wrong" not in inside["checks"] + inside["harness"]


def test_a_change_of_own_checks_is_graded_again(course: Path, graded: dict[str, dict[str, Any]]) -> None:
    path = course / "solutions" / EXERCISE / "checks.py"
    text = path.read_text()
    lines = (course / "grading.jsonl").read_text().count("\n")
    grade(course, "--only", "right")
    assert (course / "grading.jsonl").read_text().count("\n") == lines
    try:
        path.write_text(text.replace("wrong_value(answer, 0.0)", '"it is never right"'))
        assert points(grade(course, "--only", "right")["right"])["mean-check"] == 7
    finally:
        path.write_text(text)


# --- what can be wrong ---------------------------------------------------------------------------------------------

CHECKS = """
from minitorch.classroom.checks.own import task, wrong_value
import harness
def cases(seed):
    yield "a", (1,)
def wrong(part, arguments, answer):
    return wrong_value(answer, 1)
f = task("f", {"a": 1}, cases, wrong, driver=harness.f)
""".lstrip()
HARNESS = """
from minitorch.classroom.harness import Needs, driver
@driver("f", Needs())
def f(call, case):
    return call(case[1][0])
""".lstrip()


def own(checks: str = CHECKS, harness: str = HARNESS) -> dict[str, Task]:
    return dict(checks_from({"checks": checks, "harness": harness}, "there").tasks)


def test_checks_are_loaded_as_a_notebook_does() -> None:
    before = dict(sys.modules)
    found = own()
    assert list(found) == ["f"] and found["f"].score(lambda x: x, (0,)).points == 1
    assert {name: sys.modules.get(name) for name in ("harness", "checks")} == {
        name: before.get(name) for name in ("harness", "checks")
    }
    assert checks_from({}, "there") is PACKAGED


@pytest.mark.parametrize(
    ("checks", "harness", "says"),
    [
        (CHECKS.replace('{"a": 1}', '{"a": 1'), HARNESS, "there/checks.py, line 7: SyntaxError"),
        (CHECKS.replace("driver=harness.f", "driver=harness.g"), HARNESS, "there/checks.py, line 7: AttributeError"),
        (
            CHECKS,
            HARNESS.replace("Needs()", "Need()"),
            "there/harness.py, line 2: NameError: name 'Need' is not defined",
        ),
        (CHECKS.replace("(1,)", "(1 / 0,)"), HARNESS, "there/checks.py, line 4: ZeroDivisionError"),
        (CHECKS.replace('yield "a"', 'yield "b"'), HARNESS, "a case of f is for 'b', which is none of its parts: a"),
        (CHECKS.replace("(1,)", "1"), HARNESS, "a case of f is a part and a tuple of arguments, and not 1"),
        (
            CHECKS.replace("(1,)", "({1},)"),
            HARNESS,
            "a case of f has a set, which is no plain data: make it in harness.py",
        ),
        (
            CHECKS.replace('{"a": 1}', '{"a": 1, "b": 1}'),
            HARNESS,
            "no case of f is for 'b': its points would be for nothing",
        ),
        (CHECKS.replace('{"a": 1}', '{"a": 0}'), HARNESS, "there/checks.py, line 7: ValueError: the parts of f have"),
        (CHECKS.replace('task("f"', 'task("f.g"'), HARNESS, "'f.g' is no name in Python"),
        (CHECKS.replace("f = task", "g = task"), HARNESS, "the task f has to have its own name, and is called g"),
        (CHECKS.replace("f = task", "_ = [task") + "]", HARNESS, "defines no task"),
        (
            CHECKS.replace("harness.f", "harness.g"),
            HARNESS.replace("def f(", "def g("),
            "has to be in harness.py, under the name f",
        ),
        ("import sys; sys.exit(1)", HARNESS, "there/checks.py, line 1: SystemExit: 1"),
    ],
)
def test_a_mistake_is_said_with_its_file_and_line(checks: str, harness: str, says: str) -> None:
    with pytest.raises(CommandError) as caught:
        own(checks, harness)
    assert says in str(caught.value) and len(str(caught.value).splitlines()) == 1
    assert str(caught.value).startswith("there/")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace("mean = task", "average = task"), "has to have its own name"),
        (lambda text: text.replace('"no numbers": 3', '"no numbers": 4'), "says 10 points, and checks.py gives 11"),
        (lambda text: text.replace("def wrong(", "def wrong(:"), "checks.py, line 20: SyntaxError"),
        (None, "asks for the task mean, which is none of minitorch's, and there is no checks.py beside it"),
    ],
    ids=["another name", "other points", "syntax", "gone"],
)
def test_grading_does_not_begin_with_checks_that_are_wrong(
    course: Path, change, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = course / "solutions" / EXERCISE / "checks.py"
    text = path.read_text()
    hand_in(course, "right", work(course, MEAN, RUNNING), exercise=EXERCISE)
    try:
        path.write_text(change(text)) if change else path.unlink()
        assert main(["grade", str(course / "submitted"), "--unsafe", "--only", "right"]) == 2
    finally:
        path.write_text(text)
    said = capsys.readouterr().err
    assert says in said and len(said.splitlines()) == 1


# --- new exercises and wrong solutions ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../up", "-rf", "", "a b", "x" * 65])
def test_an_exercise_needs_a_name_for_a_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-exercise", "--", name]) == 2
    assert "is no name for an exercise" in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_an_exercise_that_is_there_is_left_alone(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = ["--source", str(course / "solutions"), "--wrong", str(course / "wrong_solutions")]
    assert main(["new-exercise", EXERCISE, *folders]) == 2
    assert "is there already" in capsys.readouterr().err


BAD = """
from minitorch.classroom.wrong_solutions import right, wrong
@wrong("mean", says="it is the sum")
def is_right(numbers):
    return sum(numbers) / len(numbers) if numbers else 0.0
@wrong("mean", says="quite another reason")
def for_another_reason(numbers):
    return float(sum(numbers))
@wrong("mean", part="two numbers", says="it is")
def in_another_part(numbers):
    return sum(numbers) / 2
@wrong("mean", says="it is", points=1)
def with_other_points(numbers):
    return float(sum(numbers))
@right("mean")
def is_wrong(numbers):
    if numbers:
        return 0
"""


def test_a_solution_that_does_not_get_what_it_must_is_named(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / EXERCISE / "bad.py", BAD)
    arguments = ["wrong-solutions", EXERCISE, "--source", str(course / "solutions"), "--wrong", str(tmp_path)]
    assert main([*arguments, "--json"]) == 1
    assert {each["name"]: each["wrong"] for each in json.loads(capsys.readouterr().out)} == {
        "the solution of 10-mean": "",
        "is_right": "it gets all points, and is wrong",
        "for_another_reason": "the reason must say 'quite another reason'",
        "in_another_part": "the part 'two numbers' must lose points",
        "with_other_points": "it must get 1 points",
        "is_wrong": "it must have all points: it is right",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "there is no wrong solution in"),
        ("def f(:", "bad.py, line 1: SyntaxError"),
        ("import math\nmath.tau.x", "bad.py, line 2: AttributeError"),
        (BAD.replace('"mean"', '"median"'), "uses `median`, which median-is_right is for"),
        (BAD + "    while True:\n        pass\n", "a solution that does not end"),
    ],
    ids=["empty", "syntax", "fails", "for no task", "does not end"],
)
def test_solutions_that_cannot_be_run_are_said_in_a_sentence(
    text: str | None, says: str, course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        write(tmp_path / EXERCISE / "bad.py", text)
    arguments = [
        "wrong-solutions",
        EXERCISE,
        "--source",
        str(course / "solutions"),
        "--wrong",
        str(tmp_path),
        "--time",
        "2",
    ]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert says in said and len(said.splitlines()) == 1


def test_a_name_that_was_imported_is_the_check(course: Path, tmp_path: Path) -> None:
    """`from checks import mean as check_mean`, in a notebook that is checked and in one that is graded."""
    text = (course / "exercises" / EXERCISE / f"{EXERCISE}.ipynb").read_text()
    assert "import checks" in text
    other = tmp_path / "other"
    for folder in ("solutions", "exercises"):
        for path in (course / folder / EXERCISE).glob("*.*"):
            changed = path.read_text()
            if path.suffix == ".ipynb":
                changed = changed.replace(
                    '"import checks"', '"from checks import mean as check_mean, running_mean as check_running"'
                )
                changed = changed.replace("checks.mean(", "check_mean(").replace(
                    "checks.running_mean(", "check_running("
                )
            write(other / folder / EXERCISE / path.name, changed)
    done = typed(other, f"minitorch check solutions/{EXERCISE} --json")
    assert [row["task"] for row in json.loads(done.stdout)[0]["tasks"]] == ["mean", "mean-tests", "running_mean"]
    assert done.returncode == 0
    hand_in(other, "half", (other / "solutions" / EXERCISE / f"{EXERCISE}.ipynb").read_text(), exercise=EXERCISE)
    needs_bubblewrap()
    row = grade(other)["half"]
    assert points(row) == {"mean-check": 10, "mean-tests": 5, "running-mean-check": 5}
    assert {each["cell"]: bool(each["score"]) for each in row["graded"]} == {
        "mean-check": True,
        "mean-tests": False,
        "running-mean-check": True,
    }
