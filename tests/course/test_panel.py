"""Panels: the counts are the engine's, an impossible size is said, and one experiment follows many clicks."""

from __future__ import annotations

import asyncio
from typing import Any

import nbformat
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import course
from minitorch.compiler.fusion import FUSIONS
from minitorch_course.panels import experiment
from minitorch_course.panels import panel as panels
from minitorch_course.panels.experiment import Controls, Experiment, Subject
from minitorch_course.panels.panel_views import VIEWS

pytest.importorskip("ipywidgets", reason="panels are made of ipywidgets, of the extra 'course'")

from minitorch_course.panels.panel_widget import Live, size_of
from tools.clone import NOTEBOOKS


def softmax_panel(**options: Any) -> panels.Panel:
    return course.panel(lambda x: x.softmax(1), ("rows", "columns"), rows=64, columns=32, **options)


@pytest.fixture
def live() -> Live:
    """A panel outside of an event loop: each change is answered before the next one."""
    return Live(softmax_panel())


def test_the_counts_are_those_of_the_engine() -> None:
    """What ablation finds and what a panel shows are the same."""
    f = mt.jit(lambda x, w: F.gelu(x @ w).softmax(1))
    subject = Subject(f.function, (("n", "n"), ("n", "n")))
    whole = Experiment(subject, Controls({"n": 48}))
    cost = f.cost(mt.ones(48, 48), mt.ones(48, 48))
    assert whole.costs["eager"] == (cost.unfused.nodes, cost.unfused, cost.unfused.peak_bytes)
    assert whole.costs["all on"] == (cost.kernels, cost, cost.peak_bytes)
    rows = {row.without: row for row in f.ablate(mt.ones(48, 48), mt.ones(48, 48), seconds=0).variants}
    for name in FUSIONS:
        found = Experiment(subject, Controls({"n": 48}, fusions=frozenset([name]))).chosen.cost
        wanted = rows[f"fusion: {name}"]
        assert (found.kernels, found.bytes, found.peak_bytes) == (wanted.kernels, wanted.bytes, wanted.peak_bytes)
    for name in experiment.PASSES:
        found = Experiment(subject, Controls({"n": 48}, passes=frozenset([name]))).chosen.cost
        wanted = rows[f"pass: {name}"]
        assert (found.kernels, found.bytes, found.peak_bytes) == (wanted.kernels, wanted.bytes, wanted.peak_bytes)


def test_parts_that_change_nothing_are_left_out() -> None:
    found = list(Experiment(Subject(lambda x: x.softmax(1), (("n", 8),)), Controls({"n": 8})).parts())
    assert [row[0] for row in found] == ["nothing", "fusion: shared rows"]
    assert found[0][2] < found[1][2], "bytes"


def test_an_experiment_leaves_everything_as_it_was() -> None:
    """The random state, the number of threads, and parameters that the function writes to."""
    weight, before = mt.ones(4), mt.get_num_threads()

    def step(x: mt.Tensor) -> mt.Tensor:
        weight.add_(x.sum(0))
        return weight.sum()

    mt.manual_seed(3)
    wanted = mt.randn(2).tolist()
    mt.manual_seed(3)
    made = Experiment(Subject(step, (("n", 4),)), Controls({"n": 8}, threads=before + 1))
    assert len(made.rows) == 7 and made.verdict
    assert mt.randn(2).tolist() == wanted
    assert mt.get_num_threads() == before
    assert weight.tolist() == [1.0] * 4


def test_wrong_uses_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the sizes \['n'\], and given are \['m'\]"):
        course.panel(lambda x: x, ("n",), m=3)
    with pytest.raises(ValueError, match="there is no view 'picture'; there is kernels, ledger"):
        softmax_panel(view="picture")
    with pytest.raises(ValueError, match="there is no group 'sizes'"):
        softmax_panel(groups=["sizes"])


# The widget ---------------------------------------------------------------------------------------------------------


def test_every_control_changes_what_is_shown(live: Live) -> None:
    seen = [live.facts.value]
    for change in (
        lambda: setattr(live.sizes["rows"], "value", "128"),
        lambda: setattr(live.dtype, "value", "float64"),
        lambda: setattr(live.fusions["shared rows"], "value", False),
        lambda: setattr(live.passes["algebra"], "value", False),
    ):
        change()
        assert live.status.value.count("ready") == 1
        seen.append(live.facts.value)
    assert len(set(seen)) == 5
    for at, text in enumerate(("8.19 kB", "16.4 kB", "32.8 kB")):  # twice the rows, then twice the bytes of each
        assert f"<td>{text}</td>" in seen[at]
    assert "<th scope='col'>as set</th>" in seen[3] and "as set" not in seen[2]
    pictures = set()
    for view in VIEWS:
        live.view.value = view
        pictures.add(live.picture.value)
    assert len(pictures) == len(VIEWS)
    assert live.runs == 5, "another picture needs no other measurement"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0", "rows is &#x27;0&#x27;: a size is a whole number, and at least 1"),
        ("many", "rows is &#x27;many&#x27;"),
        ("", "rows is &#x27;&#x27;"),
        ("²", "rows is &#x27;²&#x27;"),
        ("1,000,000,000,000", "the arguments take 128000 GB, and a panel tries 1.07 GB at most"),
        ("6000000", "one by one, the operations hold 2.33 GB"),
    ],
)
def test_an_impossible_size_is_said_in_the_panel(live: Live, text: str, said: str) -> None:
    live.sizes["rows"].value = text
    assert "trouble" in live.status.value and said in live.status.value
    assert live.facts.value == live.picture.value == ""
    live.sizes["rows"].value = "64"
    assert "ready" in live.status.value and live.facts.value and live.picture.value


def test_an_error_of_the_function_is_said_in_the_panel() -> None:
    live = Live(course.panel(lambda x, w: x @ w, ("n", "k"), ("m", 4), n=2, k=8, m=8))
    live.sizes["m"].value = "9"
    assert "trouble" in live.status.value and "[2,8]" in live.status.value.replace(" ", "")
    live.sizes["k"].value = "9"
    assert "ready" in live.status.value


def test_sizes_are_read_as_people_write_them() -> None:
    assert [size_of(text, "n") for text in ("7", " 7 ", "4,096", "4_096")] == [7, 7, 4096, 4096]


def test_buttons_halve_and_double_a_size_and_switch_a_group(live: Live) -> None:
    def press(text: str) -> None:
        (button,) = [each for each in _all(live.box) if getattr(each, "tooltip", None) == text]
        button.click()

    press("half of rows")
    assert live.sizes["rows"].value == "32"
    press("twice rows")
    press("twice rows")
    assert live.sizes["rows"].value == "128"
    press("fusion: none")
    assert live.controls().fusions == frozenset(FUSIONS) and not live.controls().passes
    press("fusion: all")
    assert live.controls().is_whole


def _all(widget: Any) -> list[Any]:
    found = [widget]
    for each in found:
        found += getattr(each, "children", ())
    return found


def test_a_panel_has_the_groups_that_it_is_given() -> None:
    boxes = {each.description for each in _all(Live(softmax_panel(groups=["fusion"])).box) if hasattr(each, "indent")}
    assert boxes == set(FUSIONS)
    assert softmax_panel(groups=["fusion"]).views == list(VIEWS)
    small = softmax_panel(groups=["threads"])
    assert "each part" in VIEWS and "each part" not in small.views and "without" not in repr(small)


def test_many_changes_lead_to_one_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while an experiment runs: what has been clicked until it ends is tried once."""
    monkeypatch.setattr("minitorch.course.panels.panel_widget.WAIT", 0.05)

    async def click() -> tuple[int, int, str]:
        live = Live(softmax_panel())
        for size in range(10, 40):
            live.sizes["rows"].value = str(size)
        assert live.runs == 1 and "working" in live.status.value
        assert "busy" in live.shown._dom_classes and "aria-busy='true'" in live.facts.value, "old numbers are dimmed"
        while "working" in live.status.value:
            await asyncio.sleep(0.01)
        once = live.runs
        live.view.value = "ledger"
        assert "busy" not in live.shown._dom_classes and "aria-busy='false'" in live.facts.value
        for size in range(40, 60):
            live.sizes["rows"].value = str(size)
            await asyncio.sleep(0)
        while "working" in live.status.value:
            await asyncio.sleep(0.01)
        return once, live.runs, live.facts.value

    once, twice, shown = asyncio.run(click())
    assert (once, twice) == (2, 3)
    assert "7.55 kB" in shown  # 59 rows


# Without a reader ---------------------------------------------------------------------------------------------------


def test_without_a_reader_it_is_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "")
    bundle = softmax_panel()._repr_mimebundle_()
    assert list(bundle) == ["text/plain"]
    title, head, *rows = bundle["text/plain"].splitlines()
    assert title == f"rows = 64, columns = 32, float32, {_threads()}" and head.split() == ["eager", "all", "on"]
    assert rows[0].split() == ["kernels,", "or", "operations", "9", "1"]
    assert "fusion: shared rows" in bundle["text/plain"]


def _threads() -> str:
    count = mt.get_num_threads()
    return f"{count} thread{'s' if count != 1 else ''}"


def test_in_an_opened_notebook_there_is_a_widget_and_the_table_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "/somewhere/a.ipynb")
    bundle = softmax_panel()._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert bundle["text/plain"].startswith("rows = 64")


@pytest.mark.parametrize("number", ["01", "06", "07", "08", "11"])
def test_notebooks_in_which_something_can_be_tried_have_a_panel(number: str) -> None:
    (path,) = NOTEBOOKS.glob(f"{number}-*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    (at,) = [at for at, cell in enumerate(cells) if "course.panel(" in cell.source]
    assert cells[at - 1].cell_type == "markdown" and "glossary.md#panel" in cells[at - 1].source, "it says what to try"
