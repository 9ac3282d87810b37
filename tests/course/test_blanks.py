"""Blanks: what the reader types is checked as the cell runs; until it is right, the answer is taken."""

from __future__ import annotations

import linecache
import math
import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any

import nbformat
import pytest

import minitorch as mt
from minitorch_course import Blank, blank, blanking, blanks
from minitorch_course.blanking import Outcome, as_typed, different, is_blank
from minitorch_course.blanks import autograd
from tools.clone import NOTEBOOKS

TOPICS = [each.name for each in pkgutil.iter_modules(blanks.__path__)]
ALL = {
    (topic, name): row for topic in TOPICS for name, row in import_module(f"{blanks.__name__}.{topic}").BLANKS.items()
}
every = pytest.mark.parametrize("row", ALL.values(), ids=["-".join(each) for each in ALL])


@every
def test_the_answer_is_right_and_is_no_blank(row: Blank) -> None:
    assert row.wrong(row.answer) == "" and not is_blank(row.answer)
    assert 3 <= len(blanking.source(row.answer).splitlines()) <= 24 and list(row.cases())


@every
def test_each_mistake_is_told_by_its_sentence(row: Blank) -> None:
    assert {sentence: row.wrong(row.mistaken(sentence)) for sentence in row.mistakes} == {
        sentence: sentence for sentence in row.mistakes
    }


@every
def test_a_function_that_does_nothing_is_wrong(row: Blank) -> None:
    assert row.wrong(blanking.as_typed(lambda *_, **__: None, row.answer))


@pytest.mark.parametrize("value", [1.5, mt.tensor(1.5)], ids=["a number", "a tensor"])
def test_later_notebooks_import_the_var_that_notebook_02_builds(value: Any) -> None:
    cells = nbformat.read(NOTEBOOKS / "02-autograd.ipynb", as_version=4).cells
    names: dict[str, Any] = {"math": math}
    exec(next(cell.source for cell in cells if cell.id == "tape"), names)

    def gradient(var: Any, tape: list[Any], program: Callable[[Any], Any]) -> tuple[float, float, int]:
        tape.clear()
        x = var(value)
        end = program(x)
        as_typed(autograd.backward, var.__init__)(end)
        return float(end.value), float(x.grad), len(tape)

    for _, program in autograd._programs():
        built, imported = gradient(names["Var"], names["tape"], program), gradient(autograd.Var, autograd.tape, program)
        assert built == imported and built[1] == mt.grad(program)(mt.tensor(1.5)).item()


# What the reader is told, and what the name is bound to -------------------------------------------------------------


def double(x: Any) -> Any:
    """Return twice x."""
    return FACTOR * x


FACTOR = 2
ROW = Blank(double, lambda: [("For 3", 3.0), ("For 0", 0.0)], {"That is the square.": lambda x: x * x})


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Outcome]:
    """What was shown below the cells."""
    found: list[Outcome] = []
    module = type("module", (), {"BLANKS": {"double": ROW}})
    monkeypatch.setattr(blanking, "import_module", lambda _: module)
    monkeypatch.setattr(blanking, "display", found.append)
    return found


def typed(text: str, **names: Any) -> Callable[..., Any]:
    """A function of a notebook in which `names` are defined, as the decorator leaves it."""
    lines = [f"{line}\n" for line in f"@blank('here')\ndef double(x):\n    {text}".splitlines()]
    linecache.cache["<cell>"] = (0, None, lines, "<cell>")
    names |= {"blank": blank}
    exec(compile("".join(lines), "<cell>", "exec"), names)
    made: Callable[..., Any] = names["double"]
    return made


def test_a_blank_is_said_and_the_answer_takes_its_place(told: list[Outcome]) -> None:
    function = typed("return ...", FACTOR=5)
    assert function(3) == 15, "the answer runs with the names of the notebook"
    assert told[0].reason is None and "double is blank" in repr(told[0])
    assert "<details><summary>The answer</summary><pre>def double(x):" in told[0]._repr_html_()
    assert "FACTOR * x" not in repr(told[0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("return x * x", "That is the square."),
        ("return x + x + 1", "For 3: the result is 7 and should be 6"),
        ("return y", "For 3: it raises NameError (in line 3): name 'y' is not defined"),
        ("return 'a'", "For 3: the result is of type str and should be of type float"),
        ("return x, x", "For 3: it returns tuple in place of float"),
        ("return x[..., 0]", "For 3: it raises TypeError"),
    ],
)
def test_a_wrong_function_is_told_why_and_the_answer_takes_its_place(told: list[Outcome], text: str, says: str) -> None:
    function = typed(text, FACTOR=2)
    assert told[0].reason is not None and told[0].reason.startswith(says)
    assert f"is not right yet. {says}" in repr(told[0]) and function(4) == 8


def test_a_right_function_stays(told: list[Outcome]) -> None:
    function = typed("return x + x", FACTOR=2)
    assert told[0].reason == "" and "is right" in repr(told[0])
    assert function.__code__.co_names == () and function(4) == 8, "it is the reader's"


def test_a_name_without_an_answer_is_refused(told: list[Outcome]) -> None:
    with pytest.raises(ValueError, match="no 'triple'; there is 'double'"):
        blank("here")(triple)


def triple(x: Any) -> Any:
    """Return three times x."""


@pytest.mark.parametrize(
    ("found", "right", "says"),
    [
        (mt.tensor([1.0, 2.0]), mt.tensor([1.0, 3.0]), "the result has, at [1], 2 and should have 3"),
        (mt.ones(2), mt.ones(3), "the result has the shape [2] and should have [3]"),
        (mt.ones(2), mt.ones(2, dtype=mt.float64), "the result has the type minitorch.float32 and should have"),
        (mt.ones(2).numpy(), mt.ones(2), "the result is of type ndarray and should be of type tensor"),
        ((1, 2.0), (1, 2.5), "result 1 is 2 and should be 2.5"),
        (True, 1, "the result is True and should be 1"),
        (float("nan"), float("nan"), ""),
        (float("inf"), 1.0, "the result is inf and should be 1"),
        ([1.0, 2.0 + 1e-9], [1.0, 2.0], ""),
    ],
)
def test_differences_are_said(found: Any, right: Any, says: str) -> None:
    said = different(found, right, 1e-5)
    assert said.startswith(says) if says else said == ""
