"""The tools of the notebooks: verdicts follow from times, guesses are kept, errors are shown whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbclient import NotebookClient

from minitorch import course
from minitorch.course import predicting
from minitorch.course.stopwatch import Comparison, Times

# The stopwatch ------------------------------------------------------------------------------------------------------

positive = st.floats(1e-9, 1e3)
rounds = st.integers(1, 12).flatmap(lambda n: st.tuples(*[st.lists(positive, min_size=n, max_size=n)] * 2))


def times(wall: list[float]) -> Times:
    return Times(tuple(wall), tuple(wall), 1)


@given(rounds)
def test_a_verdict_is_the_same_from_both_sides(walls: tuple[list[float], list[float]]) -> None:
    found = Comparison({"a": times(walls[0]), "b": times(walls[1])})
    one, other = found.faster("a", "b"), found.faster("b", "a")
    assert (one, other) in ((None, None), (True, False), (False, True))
    assert ("too noisy" in found.verdict("a", "b")) == ("too noisy" in found.verdict("b", "a"))
    assert repr(found).count("\n") == 2


@given(st.lists(positive, min_size=1, max_size=12))
def test_nothing_is_faster_than_itself(wall: list[float]) -> None:
    found = Comparison({"a": times(wall), "b": times(wall)})
    assert found.faster("a", "b") is None


def test_a_slower_machine_changes_no_verdict() -> None:
    """Something that slows down whole rounds slows down all contenders."""
    slow = [1.0, 1.0, 1.3, 1.0, 1.4, 1.0, 1.0, 1.0]
    quiet = Comparison({"a": times([1.0] * 8), "b": times([2.0] * 8)})
    busy = Comparison({"a": times(slow), "b": times([2 * each for each in slow])})
    assert quiet.verdict("a", "b") == busy.verdict("a", "b") == "a is 2 times as fast as b"


def test_contenders_take_turns() -> None:
    order: list[str] = []

    def contender(name: str) -> None:
        order.append(name)
        for _ in range(100_000):
            pass

    found = course.compare({name: lambda name=name: contender(name) for name in "abc"}, rounds=3)  # type: ignore[misc]
    turns = "".join(each for each, before in zip(order, ["", *order], strict=False) if each != before)
    assert turns.endswith("abcbcacab")
    assert {name: order.count(name) for name in "abc"} == {name: 4 + 3 * found[name].calls for name in "abc"}
    assert all(len(found[name].wall) == len(found[name].cpu) == 3 for name in "abc")


def test_a_comparison_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a contender"):
        course.compare({})
    with pytest.raises(ValueError, match="and a round"):
        course.measure(len, [], rounds=0)


# Settings -----------------------------------------------------------------------------------------------------------

SETTINGS = """
import os, sys
{before}
from minitorch import backends, course
found = course.settings({arguments})
assert "jax" not in sys.modules or {jax!r}
from threadpoolctl import threadpool_info
blas = {{each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}}
print(backends.get_num_threads(), blas, sorted(found.limited), os.environ.get("XLA_FLAGS", ""))
folder = os.environ["MINITORCH_CACHE_DIR"]
print(os.path.isdir(folder), os.listdir(folder))
print(found)
"""


def told(arguments: str, before: str = "") -> list[str]:
    program = SETTINGS.format(arguments=arguments, before=before, jax="jax" in before)
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.splitlines()


def test_every_contender_gets_one_thread() -> None:
    first, folder, *shown = told("")
    assert first.startswith("1 {1} ['JAX', 'NumPy', 'minitorch']")
    assert first.endswith("--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    assert folder == "True []"
    assert shown[-1] == "threads: 1 for minitorch, NumPy, JAX" and shown[0].startswith("minitorch ")


def test_settings_do_not_claim_what_does_not_hold() -> None:
    assert "['NumPy', 'minitorch']" in told("", before="import jax")[0], "JAX has read its flags already"
    assert "['NumPy', 'minitorch']" in told("threads=2")[0], "JAX knows one thread or all"


def test_settings_may_leave_threads_alone() -> None:
    lines = told("threads=None")
    assert " [] " in lines[0] and not any(line.startswith("threads") for line in lines)
    with pytest.raises(ValueError, match="at least one"):
        course.settings(threads=0)


# Errors and the debugger --------------------------------------------------------------------------------------------


def test_a_whole_message_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with course.caught("ours") as found:
        warnings.warn("mind the gap", stacklevel=1)
        raise ValueError("first\n  second " + "word " * 40)
    out = capsys.readouterr().out
    assert out.startswith("── ours ──\nValueError: first\n  second word")
    assert out.count("word") == 40 and max(map(len, out.splitlines())) <= 100
    assert out.rstrip().endswith("UserWarning: mind the gap")
    assert isinstance(found.error, ValueError) and found.warnings == ["UserWarning: mind the gap"]


def test_another_error_is_not_caught() -> None:
    with pytest.raises(KeyError), course.caught(kind=ValueError, show=False):
        raise KeyError("x")
    with pytest.raises(AssertionError, match="ValueError was expected"), course.caught(kind=ValueError):
        pass
    with pytest.raises(KeyboardInterrupt), course.caught():
        raise KeyboardInterrupt


def test_a_heading_stands_above_what_the_block_prints(capsys: pytest.CaptureFixture[str]) -> None:
    with course.caught("theirs"):
        print("no error")
    assert capsys.readouterr().out == "── theirs ──\nno error\n\n"


def test_commands_are_typed_at_a_breakpoint(capsys: pytest.CaptureFixture[str]) -> None:
    def halve(x: float) -> float:
        breakpoint()
        return x / 2

    before = sys.breakpointhook
    with pytest.raises(ZeroDivisionError), course.typed("p x + 1", "!x = 8", "c"):
        assert halve(6) == 4
        raise ZeroDivisionError
    assert "(Pdb) p x + 1\n7\n" in capsys.readouterr().out
    assert sys.breakpointhook is before


# Predictions --------------------------------------------------------------------------------------------------------


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook that was opened in JupyterLab."""
    monkeypatch.setattr(predicting, "KEPT", {})
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "00-start.ipynb"))
    return tmp_path / ".predictions" / "00-start.json"


def test_a_guess_is_kept_beside_the_notebook(opened: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = course.predict("How many kernels?", read="section 3")
    question.keep(5.0)
    assert json.loads(opened.read_text())["How many kernels?"] == {"guess": 5.0, "answer": None, "right": False}
    again = course.predict("How many kernels?", read="section 3")
    assert again.guess == 5.0
    capsys.readouterr()
    again.answer(4)
    assert capsys.readouterr().out == "How many kernels? 4. You guessed 5.\n"
    again.keep(4.0)  # too late
    assert again.guess == 5.0 and not again.is_right
    assert repr(course.predictions()).splitlines() == [
        "Questions: 1. Guesses that were right: 0 of 1.",
        "✗ How many kernels? 4. You guessed 5. Read section 3 again.",
    ]
    assert os.listdir(opened.parent) == [opened.name]


def test_choices_and_orders_are_right_as_a_whole(opened: Path) -> None:
    which = course.predict("Which?", choices=["a", "b"])
    order = course.predict("In which order?", order=["x", "y", "z"])
    which.keep("b")
    order.keep(["z", "x", "y"])
    with pytest.raises(ValueError, match="one of"):
        which.answer("c")
    with pytest.raises(ValueError, match="an order of"):
        order.answer(["x", "y"])
    which.answer("b")
    order.answer(("z", "y", "x"))
    assert (which.is_right, order.is_right) == (True, False)
    page = course.predictions()
    assert repr(page).startswith("Questions: 2. Guesses that were right: 1 of 2.")
    assert "<table>" in page._repr_html_()


def test_a_number_may_be_near(opened: Path) -> None:
    about = course.predict("How many?", within=0.5)
    about.keep(80.0)
    about.answer(100)
    assert about.is_right


@pytest.mark.parametrize("content", ["", "[1]", '{"How many?": 3}', "\x00"])
def test_a_file_that_somebody_has_edited_does_no_harm(opened: Path, content: str) -> None:
    opened.parent.mkdir()
    opened.write_text(content)
    question = course.predict("How many?")
    question.keep(3.0)
    question.answer(3)
    assert question.is_right


def test_no_text_becomes_html(opened: Path) -> None:
    question = course.predict("<b>How</b>?", choices=["<i>", "b"], read="<u>")
    question.keep("<i>")
    question.answer("b")
    page = course.predictions()._repr_html_()
    assert "<b>" not in page and "<i>" not in page and "<u>" not in page


CELLS = [
    "from minitorch import course\nquestion = course.predict('How many?')",
    "question.answer(3)",
    "course.predictions()",
]


def run(folder: Path, **surroundings: str) -> list[dict[str, str]]:
    """What cells show that run from top to bottom, all forms of their outputs."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = NotebookClient(notebook, resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, **surroundings}, cleanup_kc=True)
    return [each.get("data") or {"text/plain": each["text"]} for cell in notebook.cells for each in cell.outputs]


def test_a_run_from_top_to_bottom_asks_nothing(tmp_path: Path) -> None:
    shown = run(tmp_path, JPY_SESSION_NAME="")
    assert [each["text/plain"] for each in shown] == [
        "Predict: How many? (a number)\n",
        "How many? 3.\n",
        "Questions: 1. No guess was made.",
    ]
    assert os.listdir(tmp_path) == []


def test_in_an_opened_notebook_there_is_a_widget(tmp_path: Path) -> None:
    shown = run(tmp_path, JPY_SESSION_NAME=str(tmp_path / "a.ipynb"))
    assert "application/vnd.jupyter.widget-view+json" in shown[1]
    assert shown[2]["text/plain"] == "How many? 3.\n", "and nobody has guessed"
