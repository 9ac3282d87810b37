"""A simulated class (`tests.simulated`), graded by a command that is killed in between: all is as it has to be."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from minitorch_grading.checks import EXERCISES as TASKS_OF
from tests import simulated
from tests.grading import classes
from tests.simulated import EXERCISES, Class
from tests.support.helpers import require

STUDENTS, KILLS, SEED = 6, 2, 12
HOW = ("--workers", "2")


@dataclass(frozen=True)
class Graded:
    """A class that was graded: the course, what has to come of it, and the report."""

    root: Path
    made: Class
    said: dict[str, Any]


@pytest.fixture(scope="module")
def graded() -> Iterator[Graded]:
    classes.needs_bubblewrap()
    made = simulated.simulated(SEED, STUDENTS)
    with tempfile.TemporaryDirectory(prefix="minitorch-class-") as folder:
        made.make(Path(folder))
        said = simulated.kill_and_finish(Path(folder), HOW, SEED, KILLS, len(made.entries))
        yield Graded(Path(folder), made, said)


def test_all_that_can_happen_is_in_the_class() -> None:
    entries = list(simulated.simulated(SEED, STUDENTS).entries.values())
    assert any(len(entry.attempts) > 1 for entry in entries), "handed in twice"
    assert any(entry.cost(100, 100) for entry in entries), "late"
    assert any(entry.work.kinds for entry in entries), "hostile"
    assert any(entry.counts < len(entry.attempts) - 1 for entry in entries), "damaged the second time"
    assert simulated.simulated(SEED, STUDENTS).absent, "nothing handed in"
    assert any(simulated.ALL in entry.work.worth.values() for entry in entries)
    assert simulated.simulated(SEED, STUDENTS).entries == simulated.simulated(SEED, STUDENTS).entries
    assert simulated.simulated(SEED + 1, STUDENTS).entries != simulated.simulated(SEED, STUDENTS).entries


def test_scores_incidents_penalties_and_attempts_are_as_expected(graded: Graded) -> None:
    assert not simulated.wrong(graded.root, graded.made, graded.said)


def points_changed(graded: Graded, said: dict[str, Any]) -> None:
    said["submissions"][0]["graded"][0]["points"] += 1


def row_lost(graded: Graded, said: dict[str, Any]) -> None:
    said["submissions"].pop()


def incident_lost(graded: Graded, said: dict[str, Any]) -> None:
    next(row for row in said["submissions"] if row["incidents"])["incidents"] = []


def note_lost(graded: Graded, said: dict[str, Any]) -> None:
    said["notes"] = []


@pytest.mark.parametrize("change", [points_changed, row_lost, incident_lost, note_lost])
def test_what_is_wrong_is_seen(graded: Graded, change: Callable[[Graded, dict[str, Any]], None]) -> None:
    said = deepcopy(graded.said)
    change(graded, said)
    assert simulated.wrong(graded.root, graded.made, said)


@pytest.mark.parametrize(
    "table", ["grade SET auto_score = 0.5", "submitted_notebook SET late_submission_penalty = 0.5"]
)
def test_another_gradebook_is_seen(graded: Graded, table: str) -> None:
    book = graded.root / "gradebook.db"
    before = book.read_bytes()
    try:
        with closing(sqlite3.connect(book)) as database, database:
            database.execute(f"UPDATE {table}")
        assert len(simulated.wrong(graded.root, graded.made, graded.said)) >= len(graded.made.entries)
    finally:
        book.write_bytes(before)


def test_a_second_run_grades_nothing(graded: Graded) -> None:
    journal = graded.root / "grading.jsonl"
    before = journal.read_bytes()
    assert simulated.kill_and_finish(graded.root, HOW, SEED, 0, 0) == graded.said
    assert journal.read_bytes() == before


def test_nbgrader_agrees_on_the_notebooks_as_they_were_run(graded: Graded) -> None:
    import nbformat
    from nbgrader.utils import determine_grade, is_grade

    rows = [row for row in graded.said["submissions"] if "not-json" not in classes.kinds(row)]
    for row in rows:
        path = graded.root / "autograded" / row["student"] / row["exercise"] / f"{row['exercise']}.ipynb"
        executed = nbformat.read(path, as_version=4)
        nbformat.validate(executed)
        found = [determine_grade(cell)[0] for cell in executed.cells if is_grade(cell)]
        assert found == list(classes.points(row).values()), (row["student"], row["exercise"])


def test_formgrader_shows_the_scores(graded: Graded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("selenium", reason="the tests in a browser need selenium, of the extra 'dev'")
    from tests.support import browser as browsers

    require("chromium", browsers.missing())
    monkeypatch.chdir(graded.root)  # where an instructor starts JupyterLab
    browser = browsers.Browser(tmp_path / "profile")
    try:
        with browsers.lab_server(graded.root, tmp_path / "lab") as address:
            browser.driver.get(f"{address}lab?reset")
            browser.wait(lambda: choose(browser, "Nbgrader", "Formgrader"), "formgrader in a menu")
            browser.driver.switch_to.frame(browser.one("iframe[src*='formgrader']"))
            browser.wait(lambda: EXERCISES[0] in rows(browser), "the exercise in formgrader")
            browser.one("a[href$='manage_students']").click()
            browser.wait(lambda: len(rows(browser)) > STUDENTS, "a row for each student")
            shown = rows(browser)
    finally:
        browser.close()
    most = sum(task.points for exercise in EXERCISES for task in TASKS_OF[exercise])
    totals = dict.fromkeys(
        [student for student, _ in graded.made.entries], 0.0
    )  # in this list nbgrader has no penalties
    for row in graded.said["submissions"]:
        totals[row["student"]] += row["points"]
    assert {student: shown[student][-1] for student in totals} == {
        student: f"{points:g} / {most:g}" for student, points in totals.items()
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
