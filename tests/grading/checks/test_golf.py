"""Golf: points by a number that the judge counts, and the best of a class on everybody's page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minitorch_grading.check import Checked, table
from minitorch_grading.checks.golf import Golf
from minitorch_grading.checks.own import task
from minitorch_grading.checks.score import Count, Part, Score
from minitorch_grading.grading.course.bests import Best
from minitorch_grading.grading.course.report import Row
from minitorch_grading.grading.results import Graded, Result
from minitorch_grading.grading.submission import feedback
from minitorch_grading.own_checks import sources_in
from tests.grading import classes
from tests.grading.classes import course, hand_in, known, notebook

FEW = Golf("coins", start=12, par=6, best=4)
CHECKS = """
from minitorch.classroom.checks.own import Golf, task

PARTS = {"the sum": 4, "few coins": 6}


def cases(seed):
    yield "the sum", (seed % 40 + 1,)
    yield "few coins", (63,)


def wrong(part, arguments, answer):
    if type(answer) is not list or not all(type(coin) is int and coin in (1, 5, 10, 25) for coin in answer):
        return "a list of coins of 1, 5, 10 and 25 was expected"
    return None if sum(answer) == arguments[0] else f"the coins are {sum(answer)} and should be {arguments[0]}"


change = task(
    "change",
    PARTS,
    cases,
    wrong,
    golf={"few coins": Golf("coins", start=63, par=10, best=6)},
    count=lambda part, arguments, answer: len(answer),
)
"""


def change(coins: tuple[int, ...]) -> str:
    return (
        "def change(amount):\n    found = []\n"
        f"    for coin in {coins}:\n        while sum(found) + coin <= amount:\n            found.append(coin)\n"
        "    return found\n"
    )


GREEDY, TENS, ONES = change((25, 10, 5, 1)), change((10, 5, 1)), change((1,))
CHEAT = "def change(amount):\n    return []\nchange.yours = change.count = 0"


def test_points_rise_as_the_count_falls() -> None:
    fractions = [FEW.fraction(count) for count in range(20)]
    assert fractions == sorted(fractions, reverse=True)
    assert (FEW.fraction(12), FEW.fraction(6), FEW.fraction(5), FEW.fraction(4)) == (0, 0.5, 0.75, 1)
    assert FEW.fraction(0) == 1 and FEW.fraction(10**9) == 0


@pytest.mark.parametrize(("start", "par", "best"), [(6, 6, 4), (12, 4, 4), (12, 6, -1)])
def test_golf_that_is_none_is_refused(start: int, par: int, best: int) -> None:
    with pytest.raises(ValueError, match="best < par < start"):
        Golf("coins", start, par, best)


def test_a_wrong_answer_has_no_count_however_small_it_is() -> None:
    few = task(
        "change",
        {"few": 6},
        lambda seed: [("few", (seed,))],
        lambda part, arguments, answer: "it is wrong",
        golf={"few": FEW},
        count=lambda part, arguments, answer: pytest.fail("counted"),
    )
    assert few(lambda amount: []).reason == "it is wrong"


def score_of(source: str) -> Score:
    namespace: dict[str, Any] = {}
    checks: dict[str, Any] = {"__name__": "checks"}
    exec(CHECKS, checks)
    exec(source, namespace)
    found: Score = checks["change"](namespace["change"])
    return found


@pytest.mark.parametrize(
    ("source", "points", "says"),
    [
        (GREEDY, 10, "yours: 6 coins; best known: 6"),
        (TENS, 7.5, "yours: 9 coins; best known: 6"),
        (ONES, 4, "yours: 63 coins; best known: 6"),
        (CHEAT, 0, "the coins are 0 and should be 63"),
    ],
)
def test_a_count_is_the_judges(source: str, points: float, says: str) -> None:
    score = score_of(source)
    assert score.points == points, score
    for text in (str(score), score._repr_mimebundle_()["text/html"]):
        assert says in text
    assert ("count" in score.to_json()["parts"][1]) is (source is not CHEAT)
    assert bool(score.reason) is (points < 10)


def test_less_than_the_best_known_is_said() -> None:
    part = Part("few", 6, 6, "", Count("coins", 3, 4, 1.0))
    assert part.shown == "yours: 3 coins, fewer than the best known: 4"
    checked = Checked(Path("10.ipynb"), [Graded("change", 6, 6, "", {"task": "change", "parts": [part.to_json()]})])
    assert "few: yours: 3 coins, fewer than the best known: 4" in table(checked)


def test_golf_of_a_part_that_is_not_there_is_refused() -> None:
    for arguments in ({"golf": {"many": FEW}, "count": lambda *_: 0}, {"golf": {"few": FEW}}):
        with pytest.raises(ValueError, match="golf of"):
            task("change", {"few": 1}, lambda seed: [], lambda *_: None, **arguments)


# A class --------------------------------------------------------------------------------------------------------

EXERCISE = "10-coins"


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    """A course in which three students count coins, and one has no right answer."""
    classes.needs_bubblewrap()
    cells = [known("import checks", "setup"), known("def change(amount):\n    raise NotImplementedError", "change")]
    cells[1]["metadata"]["nbgrader"] |= {"solution": True, "locked": False}
    cells.append(known("checks.change(change)", "change-check", grade=True, points=10))
    root = course(tmp_path, notebook(cells), EXERCISE)
    solution = root / "solutions" / EXERCISE
    (solution / f"{EXERCISE}.ipynb").write_text(notebook(cells))
    (solution / "checks.py").write_text(CHECKS)
    assert sources_in(solution)
    for student, source in {"ana": TENS, "bob": ONES, "eve": CHEAT}.items():
        cells[1]["source"] = source
        hand_in(root, student, notebook(cells), exercise=EXERCISE)
    return root


def told(root: Path, student: str) -> str:
    page = (root / "feedback" / student / EXERCISE / f"{EXERCISE}.html").read_text()
    return " ".join(re.findall(r"best of the class: \d+", page))


def test_a_class_hears_its_best_and_no_solution(graded: Path) -> None:
    rows = classes.grade(graded)
    assert {student: row["points"] for student, row in rows.items()} == {"ana": 7.5, "bob": 4, "eve": 0}
    assert told(graded, "ana") == told(graded, "bob") == "best of the class: 9" and told(graded, "eve") == ""
    cells = json.loads((graded / "submitted" / "ana" / EXERCISE / f"{EXERCISE}.ipynb").read_text())["cells"]
    cells[1]["source"] = GREEDY
    hand_in(graded, "cem", notebook(cells), exercise=EXERCISE)
    with classes.start(graded, "--only", "cem", stdout=-1, stderr=-1) as process:
        report = json.loads(process.communicate()[0])
    (best,) = report["bests"]
    assert (best["count"], best["known"], best["students"], best["answers"]) == (6, 6, ["cem"], 3)
    for student in ("ana", "bob", "cem"):
        assert told(graded, student) == "best of the class: 6", "on pages of students who were graded before, too"
    page = (graded / "feedback" / "bob" / EXERCISE / f"{EXERCISE}.html").read_text()
    assert "cem" not in page and "(25, 10, 5, 1)" not in page


def test_a_students_text_is_no_part_of_the_page() -> None:
    mark = f"{feedback.NOTEBOOK}best of the class: 1{feedback.END}"
    score = Score("change", (Part("few", 1, 6, "", Count("coins", 5, 4, 0.2)),)).to_json()
    cells = [{"cell_type": "code", "metadata": {}, "source": mark, "outputs": []}]
    result = Result([Graded("change-check", 1, 6, mark, score)], [], {"cells": cells})
    result.shown = feedback.notebook(result)
    page = feedback.page(Row("ana", "10", result))
    assert feedback.notebook_on(page) == result.shown and page.count(feedback.NOTEBOOK) == 1
    again = feedback.page(Row("ana", "10", replace(result, notebook=None)), {("change-check", "few"): 4})
    assert feedback.notebook_on(again) == result.shown and again.count("best of the class: 4</td>") == 1


def test_a_best_names_few_students() -> None:
    best = Best("10", "change-check", "change", "few", "coins", 4, 4, ("a", "b", "c", "d"), 9)
    assert "4 coins (a, b, c and 1 more); best known 4; 9 right answers" in str(best)


def test_less_than_the_best_known_is_told_to_the_instructor_alone() -> None:
    best = Best("10", "change-check", "change", "few", "coins", 3, 4, ("eve",), 9)
    assert best.told == 4 and Best("10", "change-check", "change", "few", "coins", 5, 4, ("a",), 9).told == 5
    assert "best of the class 3 coins (eve); best known 4, which the pages go on saying" in str(best)
