"""The tools of the notebooks: verdicts follow from times, guesses are kept, errors are shown whole."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import warnings
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread
from nbclient import NotebookClient

from minitorch import course
from minitorch_course import predicting
from minitorch_course.libraries import pytorch, records
from minitorch_course.stopwatch import Comparison, Times
from tests.recorded_functions import called, read
from tools.operators import COMMAND, KINDS

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
    ratio = found["a"].seconds / found["b"].seconds  # of the two columns beside it
    assert repr(found).count("\n") == 2 and repr(found).endswith(f"{ratio:.2f} times as fast")


def test_a_measurement_that_is_too_noisy_gives_no_answer(tmp_path, monkeypatch, capsys) -> None:
    steady, noisy = (Times(wall, wall, 1) for wall in ((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 9.0, 9.0)))
    found = Comparison({"a": steady, "b": noisy})
    assert found.ratio("a", "b") is None and found.fastest() is None
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "a.ipynb"))
    question = predicting.Prediction("Which?", choices=["a", "b"])
    question.keep("a")
    question.answer(found.fastest())
    assert "too noisy" in capsys.readouterr().out.lower() and question.value is None and question.guess == "a"
    question.answer("a")
    assert question.is_right


@given(st.lists(positive, min_size=1, max_size=12))
def test_nothing_is_faster_than_itself(wall: list[float]) -> None:
    found = Comparison({"a": times(wall), "b": times(wall)})
    assert found.faster("a", "b") is None


def test_a_large_ratio_is_written_out() -> None:
    found = Comparison({name: Times((seconds,) * 4, (1.0,) * 4, 1) for name, seconds in (("a", 1.0), ("b", 1834.0))})
    assert found.verdict("a", "b") == "a is 1800 times as fast as b"


def test_a_slower_machine_changes_no_verdict() -> None:
    """Something that slows down whole rounds slows down all contenders."""
    slow = [1.0, 1.0, 1.3, 1.0, 1.4, 1.0, 1.0, 1.0]
    quiet = Comparison({"a": times([1.0] * 8), "b": times([2.0] * 8)})
    busy = Comparison({"a": times(slow), "b": times([2 * each for each in slow])})
    assert quiet.verdict("a", "b") == busy.verdict("a", "b") == "a is 2 times as fast as b"
    assert (
        Comparison({"a": times([1.0] * 8), "b": times([113.0] * 8)}).verdict("a", "b") == "a is 110 times as fast as b"
    )


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


FOLDS = """
import warnings
from minitorch.course import caught
with caught("theirs", fold=True):
    raise ValueError("first <line>\\n" + "word " * 40)
with caught("theirs", fold=True):
    print("no error")
"""


def test_a_folded_message_is_whole_where_it_is_opened_and_where_it_is_printed(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(FOLDS)])
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    folded, printed = notebook.cells[0].outputs
    assert folded.data["text/html"].startswith(
        "<details><summary><b>theirs:</b> ValueError: first &lt;line&gt;</summary>"
    )
    assert folded.data["text/html"].count("word") == folded.data["text/plain"].count("word") == 40
    assert printed.text == "no error\n"


def test_a_folded_message_is_printed_where_there_is_no_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    with course.caught("theirs", fold=True):
        raise ValueError("first\nsecond")
    assert capsys.readouterr().out == "── theirs ──\nValueError: first\nsecond\n"


def test_a_message_names_cells_as_the_notebook_does(tmp_path: Path) -> None:
    lines = "import inspect\nfrom minitorch_course.catching import in_cells\n"
    lines += "file = inspect.currentframe().f_code.co_filename\n"
    lines += "print(in_cells(f'at {file}:7 for jit; File \"{file}\", line 8, in f'))"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1"), nbformat.v4.new_code_cell(lines)])
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert notebook.cells[1].outputs[0].text == "at In[2]:7 for jit; File In[2]:8, in f\n"


# PyTorch, installed or recorded -------------------------------------------------------------------------------------


def doubles(torch: Any) -> float:
    print("torch", torch.__name__)
    warnings.warn("mind the gap", stacklevel=1)
    print("to stderr", file=sys.stderr)
    return 2.0


@pytest.mark.parametrize(
    ("package", "kept"),
    [("torch", pytorch.RECORD), ("onnxruntime", pytorch.RUNTIME_RECORD)],
    ids=["torch", "onnxruntime"],
)
def test_every_function_that_needs_a_package_is_recorded_as_it_stands(package: str, kept: Path) -> None:
    record = json.loads(kept.read_text(encoding="utf-8"))
    sources = {name: source for notebook in read() for name, source in called(notebook, f"with_{package}").items()}
    assert sources, f"no notebook uses {package}"
    assert {name: each["source"] for name, each in record["functions"].items()} == sources
    assert record["where"].startswith(f"{package} ") and all(each["output"] for each in record["functions"].values())


def test_what_pytorch_does_is_shown(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(pytorch, "version_of", lambda package: "0.0")
    monkeypatch.setattr(pytorch, "import_module", lambda name: pytorch)
    assert course.with_torch(doubles) == 2.0
    out, err = capfd.readouterr()
    assert (
        out == "── run here, torch 0.0 ──\ntorch minitorch_course.libraries.pytorch\nUserWarning: mind the gap\n"
        and not err
    )
    assert records.RAN["doubles"][1] == 2.0


def test_a_record_is_shown_where_there_is_no_pytorch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pytorch, "version_of", lambda package: "")
    monkeypatch.setattr(pytorch, "RECORD", tmp_path / "torch.json")
    functions = {"doubles": {"source": [], "output": ["one", "two"], "value": 2}}
    pytorch.RECORD.write_text(json.dumps({"where": "torch 1 on a machine", "functions": functions}))
    assert course.with_torch(doubles) == 2
    told = "── PyTorch is not installed; recorded with torch 1 on a machine ──\none\ntwo\n"
    assert capsys.readouterr().out == told
    with pytest.raises(LookupError, match="no record of <lambda>"):
        course.with_torch(lambda torch: None)


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
    wrong = "✗ Not this time; read on to see why. How many kernels? 4. You guessed 5."
    assert capsys.readouterr().out == f"{wrong}\n"
    again.keep(4.0)  # too late
    assert again.guess == 5.0 and not again.is_right
    assert repr(course.predictions()).splitlines() == [
        "Questions: 1. Guesses that were right: 0 of 1.",
        "✗ How many kernels? 4. You guessed 5. Read section 3 again.",
    ]
    assert os.listdir(opened.parent) == [opened.name]


def test_right_and_wrong_differ_in_colour_and_in_words(opened: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[predicting.Verdict] = []
    monkeypatch.setattr(predicting, "display", shown.append)
    for guess in (1.0, 2.0):
        question = course.predict(f"How many < {guess}?")
        question.keep(guess)
        question.answer(1)
    right, wrong = (each._repr_html_() for each in shown)
    assert "success" in right and "✓ Right! How many &lt; 1.0? 1, as you guessed." in right
    assert "warn" in wrong and "✗ Not this time" in wrong and "You guessed 2." in wrong


def test_a_question_in_a_widget_shows_code_as_code() -> None:
    question = predicting.Prediction("Is `x < 1` true, & why?")
    assert question.asked == "<b>Predict:</b> Is <code>x &lt; 1</code> true, &amp; why?"


def test_an_order_is_clicked_and_begun_again(opened: Path) -> None:
    ipywidgets = pytest.importorskip("ipywidgets")
    from minitorch_course import widget

    names = ["f(a, b)", "`exp`"]
    question = course.predict("Which of `f` and `exp` first?", order=names)
    *things, again = widget._order(question, ipywidgets.HTML()).children
    assert [each.description for each in (*things, again)] == ["f(a, b)", "exp", "begin again"] and again.disabled
    for _ in range(2):
        things[1].click()
        assert things[1].description == "1. exp" and things[1].disabled and not again.disabled
        again.click()
        assert not things[1].disabled and again.disabled and question.guess is None
    for each in reversed(things):
        each.click()
    question.answer(names)
    assert repr(course.predictions()).splitlines()[1] == (
        "✗ Which of `f` and `exp` first? f(a, b); `exp`. You guessed `exp`; f(a, b)."
    )
    page = course.predictions()._repr_html_()
    assert "`" not in page and "Which of f and exp first?" in page


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
    assert "<table" in page._repr_html_()


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


def run(folder: Path, sources: Sequence[str] = CELLS, **surroundings: str) -> list[dict[str, str]]:
    """What cells show that run from top to bottom, all forms of their outputs."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
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
    assert "application/vnd.jupyter.widget-view+json" in shown[0]
    assert shown[1]["text/plain"] == "How many? 3.\n", "and nobody has guessed"


def test_plots_of_a_notebook_have_no_ground(tmp_path: Path) -> None:
    settings, pyplot = "from minitorch import course; course.settings();", "import matplotlib.pyplot as plt"
    for first in (f"{pyplot}\n{settings}", f"{settings}\n{pyplot}"):
        (shown,) = [each for each in run(tmp_path, [first, "plt.plot([1, 2]);"]) if "image/png" in each]
        picture = imread(io.BytesIO(b64decode(shown["image/png"])))
        assert not picture[0, 0, 3] and not picture[picture.shape[0] // 4, picture.shape[1] // 4, 3]


# Records ------------------------------------------------------------------------------------------------------------


def test_every_operator_of_the_record_has_one_kind() -> None:
    record = course.record("pytorch-operators")
    assert sum(kind["count"] for kind in record["kinds"].values()) == record["overloads"]
    assert set(record["kinds"]) == set(KINDS) and record["command"] == COMMAND
    assert len(record["fused"]) == record["kinds"]["fused by hand"]["count"]
    assert record["core"]["overloads"] < record["decompositions"] < record["overloads"]


def test_a_record_that_is_not_there_is_missed() -> None:
    with pytest.raises(FileNotFoundError):
        course.record("no such record")


# Memory -------------------------------------------------------------------------------------------------------------


def test_a_new_process_has_a_peak_of_its_own() -> None:
    """And not that of the process that started it, as `getrusage` says on Linux."""
    program = """
import numpy as np
from minitorch.course import peak_memory
before = peak_memory()
array = np.ones(50_000_000, np.uint8)
after = peak_memory()
del array
print(before, after, peak_memory())
"""
    large = np.ones(500_000_000, np.uint8)
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    before, after, later = map(int, told.split())
    assert before < len(large) < course.peak_memory()
    assert 45_000_000 < after - before < 60_000_000 and later > after - 2_000_000
