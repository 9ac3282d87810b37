"""Every wrong solution loses points for the reason that it is wrong for, every right one keeps them all."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Iterator
from functools import partial
from types import CodeType
from typing import Any

import nbformat
import pytest

from minitorch_grading.checks import EXERCISES, TASKS, Task
from tests.grading.checks.examining import examined
from tests.grading.wrong_solutions import KNOWN_SOLUTIONS, KnownSolution, as_cell
from tools.clone import SOLUTIONS

HIDDEN = (20, 21)  # other seeds than those of the student's own checks

by_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("solution", KNOWN_SOLUTIONS, ids=lambda solution: solution.name)
def test_a_solution_gets_what_it_deserves(solution: KnownSolution) -> None:
    score = TASKS[solution.task](solution.function)
    assert "cannot be read" not in score.reason
    if solution.says:
        assert score.points < score.of
        assert solution.says in score.reason, score
    else:
        assert score.points == score.of, score
    if solution.points is not None:
        assert score.points == solution.points, score


@pytest.mark.parametrize(
    "solution", [each for each in KNOWN_SOLUTIONS if not each.says], ids=lambda solution: solution.name
)
def test_a_right_one_is_right_on_other_inputs_and_through_json(solution: KnownSolution) -> None:
    task = TASKS[solution.task]
    score = examined(task, partial(task.driver.answering, solution.function), HIDDEN)
    assert score.points == task.points, score


@by_task
def test_there_are_three_wrong_ones_and_a_right_one(task: Task) -> None:
    says = [solution.says for solution in KNOWN_SOLUTIONS if solution.task == task.name]
    assert len(list(filter(None, says))) >= 3
    assert "" in says


@by_task
def test_a_blank_gets_nothing(task: Task) -> None:
    def blank(*arguments: object) -> object:
        raise NotImplementedError()

    score = task(blank)
    assert score.points == 0
    assert score.reason == "it has not been written yet"


@by_task
@pytest.mark.parametrize(
    "nonsense", [None, lambda *arguments: None, str], ids=["no function", "returns None", "a class"]
)
def test_nonsense_gets_nothing_and_breaks_nothing(task: Task, nonsense: object) -> None:
    score = task(nonsense)
    assert score.points == 0
    assert "cannot be read" not in score.reason, score


# --- the solutions ----------------------------------------------------------------------------------------------


def solutions() -> list[tuple[str, str, str]]:
    """Of every exercise, each task with the cells that its solution needs."""
    found = []
    for name, tasks in EXERCISES.items():
        cells = nbformat.read(SOLUTIONS / name / f"{name}.ipynb", as_version=4).cells
        by_id = {cell.id: cell.source for cell in cells}
        for task in tasks:
            wanted = task.name.partition(".")[2]
            example = by_id.get(f"{wanted.replace('_', '-')}-example", "")
            names = "x, y = wildcard('x'), wildcard('y')" if "wildcard(" in example else ""
            found.append((task.name, "\n".join([by_id["setup"], names]), by_id[wanted.replace("_", "-")]))
    return found


@pytest.mark.parametrize(("name", "setup", "source"), solutions(), ids=[row[0] for row in solutions()])
def test_a_solution_keeps_all_points(name: str, setup: str, source: str) -> None:
    namespace: dict[str, object] = {}
    exec(setup, namespace)
    exec(source, namespace)
    score = TASKS[name](namespace[name.partition(".")[2]], seeds=HIDDEN)
    assert score is not None and score.points == score.of, score


@pytest.mark.parametrize("name", EXERCISES)
def test_a_solution_fits_into_a_notebook(name: str) -> None:
    """`as_cell` needs nothing but the first cell, and what a task's example defines."""
    setups = {row[0]: row[1] for row in solutions()}
    for solution in KNOWN_SOLUTIONS:
        if solution.task in {task.name for task in EXERCISES[name]}:
            namespace: dict[str, object] = {}
            exec(f"{setups[solution.task]}\n{as_cell(solution)}", namespace)
            function: Any = namespace[solution.task.partition(".")[2]]
            missing = {
                each for each in names(function.__code__) if each not in namespace and not hasattr(builtins, each)
            }
            assert not missing, solution.name


def names(code: CodeType) -> Iterator[str]:
    """The global names that a function reads."""
    yield from (each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL")
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from names(inner)
