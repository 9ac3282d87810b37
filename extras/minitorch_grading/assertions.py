"""Assert cells: graded cells of plain assertions, as nbgrader knows them, which call no check.

Such a cell has all of its points if it comes to its end, and none if it raises an exception. If it shows a number, that
many points are partial credit, as in nbgrader. It runs where the student's code runs, so whoever wants to deceive it
can; a check is judged elsewhere. Its hidden tests are in `solutions/` alone, and no line of them is in a reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[str, str] = MappingProxyType({})

LONGEST = 50  # characters of a number that a cell shows
BEGIN, END = "BEGIN HIDDEN TESTS", "END HIDDEN TESTS"  # nbgrader's marks


def task_named(source: str, imported: Mapping[str, str] = NOTHING) -> str | None:
    """The task that a check's cell asks for; None for an assert cell.

    Args:
        source: of the cell.
        imported: the task's name of each name that the notebook imports from its own checks (`imported_tasks`).

    Example:
        >>> task_named("checks.graph.order(order)"), task_named("checks.mean(mean)")  # an instructor's own
        ('graph.order', 'mean')
        >>> task_named("assert order([]) == []")
    """
    found = re.search(r"\bchecks\.(\w+(?:\.\w+)?)\(", source)
    if found is None and imported:
        found = re.search(rf"(?<![\w.])({'|'.join(imported)})\(", source)
        return imported[found[1]] if found else None
    return found[1] if found else None


def imported_tasks(sources: Iterable[str]) -> dict[str, str]:
    """The names that cells import from the exercise's own checks, each with the task's name.

    Example:
        >>> imported_tasks(["from checks import mean as check_mean, median"])
        {'check_mean': 'mean', 'median': 'median'}
    """
    found = re.findall(r"^from checks import (?:\(([^)]+)\)|([^\n(]+))", "\n".join(sources), re.MULTILINE)
    names = [piece.split() for each in found for piece in re.sub(r"#.*", "", "".join(each)).split(",")]
    return {each[-1]: each[0] for each in names if len(each) in (1, 3)}


def visible(source: str) -> str:
    """A cell without its hidden tests, as nbgrader releases it.

    Example:
        >>> lines = ["assert f(1)", "### BEGIN HIDDEN TESTS", "assert f(2)", "### END HIDDEN TESTS"]
        >>> print(visible(chr(10).join(lines)))
        assert f(1)
    """
    hidden = hidden_lines(source)
    return "\n".join(line for number, line in enumerate(source.split("\n"), 1) if number not in hidden)


def hidden_lines(source: str) -> set[int]:
    """The numbers of the lines of hidden tests, from 1, with the marks around them."""
    found: set[int] = set()
    inside = False
    for number, line in enumerate(source.split("\n"), 1):
        inside = inside or BEGIN in line
        if inside:
            found.add(number)
        inside = inside and END not in line
    return found


def why_not(error: Mapping[str, Any], source: str) -> str:
    """Why an assert cell has no points, in a sentence that shows the assertion unless that is hidden.

    Args:
        error: the output that is the error, as a notebook keeps it.
        source: the cell as it was run.

    Example:
        >>> error = {"ename": "AssertionError", "evalue": "", "traceback": ["Cell In[3], line 1"]}
        >>> why_not(error, "assert mean([1, 2]) == 1.5")
        '`assert mean([1, 2]) == 1.5` fails'
        >>> why_not(error | {"evalue": "the mean of two"}, "### BEGIN HIDDEN TESTS")
        'a hidden test fails: the mean of two'
    """
    kind, text = str(error["ename"])[:200], (str(error["evalue"]).splitlines() or [""])[0][:500]
    number = _line(error["traceback"])
    if kind == "NotImplementedError":
        return "it has not been written yet"
    says = "fails" if kind == "AssertionError" else f"raises {kind}"
    says += f": {text}" if text else ""
    if number in hidden_lines(source):
        return f"a hidden test {says}"
    statement = _statement(source, number)
    return f"`{statement}` {says}" if statement else f"the cell {says}"


def _line(traceback: Iterable[str]) -> int:
    """The line of the graded cell in which an error came up: that of the outermost frame; 0 if it is not known."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(map(str, traceback)))
    found = re.search(r"^ {0,8}Cell In\[\d{0,6}\], line (\d{1,6})\b", plain, re.MULTILINE)  # in linear time
    return int(found[1]) if found else 0


def _statement(source: str, number: int) -> str:
    """The first line of the innermost statement in a line of a source; empty if there is no such line."""
    lines = source.split("\n")
    if not 1 <= number <= len(lines):
        return ""
    try:
        inner = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
        first = max(each.lineno for each in inner if each.lineno <= number <= (each.end_lineno or 0))
    except (SyntaxError, ValueError):
        first = number
    return lines[first - 1].strip()


def credit(outputs: Iterable[Mapping[str, Any]], of: float) -> tuple[float, str]:
    """The points of an assert cell that came to its end, and why they are not all.

    Args:
        outputs: of the cell.
        of: its points.

    Example:
        >>> shown = [{"output_type": "execute_result", "data": {"text/plain": "2.5"}}]
        >>> credit(shown, 10), credit([], 10)
        ((2.5, 'the cell gives 2.5 of its 10 points'), (10, ''))
    """
    shown = next((each["data"].get("text/plain") for each in outputs if each["output_type"] == "execute_result"), None)
    try:
        points = float(shown) if isinstance(shown, str) and len(shown) < LONGEST else of
    except ValueError:
        return of, ""
    if points > of:
        return 0.0, f"the cell gives {points:g} points, and {of:g} is the most"
    return (points, f"the cell gives {points:g} of its {of:g} points") if 0 <= points < of else (of, "")
