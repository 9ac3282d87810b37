"""A class of 30, graded by one command that is killed in between: every score as expected, and nbgrader agrees."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from minitorch.classroom.checks import EXERCISES, TASKS
from tests import classes
from tests.classes import hand_in
from tests.helpers import require
from tests.test_adversarial import scores
from tests.zoo import ANIMALS, Animal, as_cell

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
                found[cell_of(name)] = task.score(worth.function, seeds).points
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
    everything: dict[str, Any] = dict.fromkeys(TASK_NAMES, True)
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
        classes.command(root, *LIMITS),
        env=classes.environment(root),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
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
    assert not classes.left_running(graded[0])
    assert not list(classes.temporary(graded[0]).iterdir()), "a worker cleans up when whoever started it is gone"


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
