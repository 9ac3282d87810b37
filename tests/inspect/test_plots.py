"""The plots show what is counted elsewhere: their sums and peaks are those of `f.cost`, as text and as pictures."""

from __future__ import annotations

import io
import struct
import sys
from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Annotation, Text

import minitorch as mt
from minitorch.graph.cost import always
from minitorch_inspect import colours, plots
from minitorch_inspect.plots.breakeven import CALLS
from minitorch_inspect.plots.classes import CLASSES
from minitorch_inspect.plots.memory import Block, Step
from minitorch_inspect.plots.plot import MISSING, place, short
from minitorch_inspect.plots.roofline import together
from minitorch_inspect.plots.theme import INK, ON_FILL
from minitorch_inspect.plots.traffic import MOST_BARS, TrafficRow, summarised, totals
from minitorch_profiler.breakeven import BreakEven
from tests.support.programs import classifier

OTHERS = ("plot_hierarchy", "plot_kernel_classes")  # are not of a program
NAMES = tuple(name for name in plots.__all__ if name.startswith("plot_") and name not in OTHERS)


def several(x, w):
    """Kernels of most kinds, and library calls."""
    h = (x @ w).relu()
    return h / h.sum(0), (h @ w.T).sort()[0]


def programs():
    _, step = classifier(8, 16, 4)
    return {
        "pointwise": (lambda x: (x * 2 + 1).exp(), (mt.rand(64),)),
        "softmax": (lambda x: x.softmax(1), (mt.rand(16, 32),)),
        "several": (several, (mt.rand(16, 8), mt.rand(8, 12))),
        "step": (step, (mt.rand(5, 8), mt.tensor([0, 1, 2, 3, 0]))),
        "nothing to do": (lambda x: x, (mt.rand(4),)),
        "one number": (lambda x: x + 1, (mt.tensor(1.0),)),
        "nothing in it": (lambda x: x + 1, (mt.zeros(0, 3),)),
    }


PROGRAMS = programs()
every_program = pytest.mark.parametrize("name", PROGRAMS)


@every_program
def test_traffic_adds_up_to_the_cost(name):
    function, args = PROGRAMS[name]
    f = mt.jit(function)
    rows, cost = mt.inspect.plot_traffic(f, *args).rows, f.cost(*args)
    for fused, counted in ((False, f.ledger(*args).graph.cost()), (True, cost)):
        assert sum(row.bytes_read for row in rows if row.fused is fused) == counted.bytes_read
        assert sum(row.bytes_written for row in rows if row.fused is fused) == counted.bytes_written
    assert sum(row.fused for row in rows) == cost.kernels


@pytest.mark.parametrize("kernels, operations", [(1, 3), (1, 200), (14, 3), (40, 2), (200, 1), (40, 0)])
def test_many_bars_are_summarised_without_loss(kernels, operations):
    groups = [
        [
            *(TrafficRow(f"op{n}", False, f"k{k}", n, k) for n in range(operations)),
            TrafficRow(f"k{k}", True, f"k{k}", k, 1),
        ]
        for k in range(kernels)
    ]
    bars = summarised(groups)
    assert len(bars) <= MOST_BARS
    for fused in (False, True):
        rows = [row for group in groups for row in group if row.fused is fused]
        assert sum(row.bytes for row in bars if row.fused is fused) == sum(row.bytes for row in rows)


@every_program
def test_memory_has_the_peaks_of_the_cost(name):
    function, args = PROGRAMS[name]
    f = mt.jit(function)
    rows, cost = mt.inspect.plot_memory(f, *args).rows, f.cost(*args)
    graph = f.ledger(*args).graph
    there = always(graph)
    steps = [row for row in rows if isinstance(row, Step)]
    blocks = [row for row in rows if isinstance(row, Block)]
    assert max([row.bytes for row in steps] + [there]) == graph.cost().peak_bytes
    arena = [row for row in blocks if row.where == "arena"]
    assert sum(row.bytes for row in arena) == cost.intermediate_bytes
    assert all(row.offset + row.bytes <= cost.arena_bytes for row in arena)
    for one in blocks:
        for other in blocks:  # one may take the place of another, in the kernel that reads that last
            if one is not other and one.first < other.last and other.first < one.last:
                assert one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset


@every_program
def test_the_roofline_has_the_kernels_of_the_ledger_and_their_bytes(name):
    function, args = PROGRAMS[name]
    f = mt.jit(function)
    rows, ledger = mt.inspect.plot_roofline(f, *args).rows, f.ledger(*args)
    kernels = {kernel.name: kernel.bytes_read + kernel.bytes_written for kernel in ledger.kernels}
    assert {row.name: row.bytes for row in rows if row.fused} == {name: size for name, size in kernels.items() if size}
    graph = f.stages(*args).graph  # as NumPy runs it
    assert sum(row.bytes for row in rows if not row.fused) == graph.cost().bytes_read + graph.cost().bytes_written


def test_without_kernels_the_roofline_has_the_operations():
    rows = mt.inspect.plot_roofline(mt.jit(lambda x: x + 1, backend="interpret"), mt.rand(8)).rows
    assert [(row.name, row.kind) for row in rows] == [("add", "node")]


def test_break_even_is_where_a_call_costs_the_same():
    f = mt.jit(lambda x: (x * 2 + 1).exp())
    plot = mt.inspect.plot_breakeven(f, mt.rand(8))
    assert {row.calls for row in plot.rows} >= set(CALLS)
    assert len({row.eager for row in plot.rows}) == 1
    found = BreakEven(spent=1.0, eager=0.3, compiled=0.1)
    assert found.per_call(found.calls) == pytest.approx(found.eager)
    assert found.per_call(found.calls - 1) > found.eager


@pytest.mark.parametrize("compiled, verdict", [(0.1, "pays after 5 calls"), (0.3, "never pays")])
def test_break_even_says_whether_it_pays(monkeypatch, compiled, verdict):
    f = mt.jit(lambda x: x)
    monkeypatch.setattr(f, "break_even", lambda x: BreakEven(1.0, 0.3, compiled))
    plot = mt.inspect.plot_breakeven(f, mt.rand(2))
    assert verdict in plot.title and plot.png
    assert ("here it has paid" in str(plot)) is (compiled == 0.1)
    again = mt.inspect.plot_breakeven(BreakEven(1.0, 0.3, compiled))
    assert again.rows == plot.rows and verdict in again.title and again.png


@pytest.mark.parametrize("spent", [1e-3, 0.02, 0.5])
@pytest.mark.parametrize(
    "eager, compiled", [(1.4e-5, 3e-6), (2e-6, 3e-6), (2e-2, 2e-3), (1.6e-3, 1.2e-3), (1e-4, 3e-5)]
)
def test_no_word_of_the_break_even_covers_another_or_a_line(spent, eager, compiled):
    figure = mt.inspect.plot_breakeven(BreakEven(spent, eager, compiled)).figure
    figure.draw_without_rendering()
    (axes,) = figure.axes
    heights = [axes.transData.transform((1, each))[1] for each in (eager, compiled)]
    boxes = [Text.get_window_extent(each) for each in axes.texts]
    assert not [box for box in boxes for height in heights if box.y0 < height < box.y1]
    assert not [1 for one, other in combinations(boxes, 2) if one.overlaps(other)]


@pytest.mark.parametrize("name", ["several", "step", "nothing to do", "nothing in it"])
@pytest.mark.parametrize("plot", NAMES)
def test_every_plot_is_a_picture_and_a_text(plot, name):
    function, args = PROGRAMS[name]
    found = getattr(mt.inspect, plot)(function, *args)
    data, metadata = found._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    width, height = struct.unpack(">II", data["image/png"][16:24])
    assert width == 2 * metadata["image/png"]["width"] and 400 < height < 2 * width
    assert data["text/plain"].startswith(found.title)
    assert max(map(len, data["text/plain"].splitlines())) < 160


def test_a_counted_plot_is_the_same_to_the_byte():
    function, args = PROGRAMS["several"]
    for name in ("plot_traffic", "plot_memory"):
        one, other = (getattr(mt.inspect, name)(mt.jit(function), *args) for _ in range(2))
        assert one.text == other.text and one.png == other.png


def test_looking_trains_nothing():
    model, step = classifier(8, 16, 4)
    f = mt.jit(step)
    before = [parameter.detach().numpy().copy() for parameter in model.parameters()]
    for name in NAMES:
        getattr(mt.inspect, name)(f, *PROGRAMS["step"][1])
    after = [parameter.detach().numpy() for parameter in model.parameters()]
    assert all((one == other).all() for one, other in zip(before, after, strict=True))


def test_without_matplotlib_the_text_is_left_and_says_what_to_install(monkeypatch):
    plot = mt.inspect.plot_traffic(lambda x: x + 1, mt.rand(4))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install matplotlib" in MISSING
    with pytest.raises(ModuleNotFoundError, match="pip install matplotlib"):
        plot.figure  # noqa: B018
    data, _ = plot._repr_mimebundle_()
    assert set(data) == {"text/plain"} and MISSING in data["text/plain"] and plot.text in data["text/plain"]


def test_a_picture_can_be_saved(tmp_path):
    mt.inspect.plot_memory(lambda x: x + 1, mt.rand(4)).save(tmp_path / "memory.svg")
    assert "<svg" in (tmp_path / "memory.svg").read_text()


@pytest.mark.parametrize(
    "name", ["k0_reduce_max_sub_exp", "k0_dot_add then ...", "9 operations: mul, add, …", "a..b.c"]
)
def test_a_name_that_is_cut_says_so_once(name):
    for length in range(8, 30):
        found = short(name, length)
        assert len(found) <= length and (found == name if len(name) <= length else found.count("…") == 1)
        assert found == name or (".…" not in found and "…." not in found)


@every_program
def test_bars_of_the_sums_are_those_of_all_rows(name):
    function, args = PROGRAMS[name]
    plot = mt.inspect.plot_traffic(function, *args)
    for row in totals(plot.rows):
        assert row.bytes == sum(each.bytes for each in plot.rows if each.fused is row.fused)
    assert ("\ntogether\n" in plot.text) is (len(plot.rows) > 2)


def test_the_roofline_has_an_arrow_from_all_operations_to_all_kernels():
    plot = mt.inspect.plot_roofline(lambda x: (x * 2 + 1).exp(), mt.rand(4096))
    before, after = (together([row for row in plot.rows if row.fused is fused], "all") for fused in (False, True))
    assert before.bytes == 3 * after.bytes and before.operations == after.operations
    (axes,) = plot.figure.axes
    (arrow,) = [each for each in axes.texts if isinstance(each, Annotation) and not each.get_text()]
    assert arrow.xy == (after.intensity, after.rate / 1e9)
    assert arrow.xyann == (before.intensity, before.rate / 1e9)
    assert f"from {before.intensity:.2f} to {after.intensity:.2f} operations per byte" in plot.text
    for function in (lambda x: x.clone(), lambda x: x):  # no arithmetic, or nothing at all
        plot = mt.inspect.plot_roofline(function, mt.rand(64))
        assert plot.png and "together" not in plot.text


def covered(figure):
    """Pairs of texts that cover each other: labels among the data, and the legend's."""
    (axes,) = figure.axes
    figure.draw_without_rendering()
    texts = [each for each in (*axes.texts, *axes.get_legend().get_texts()) if each.get_text()]
    boxes = [(each.get_text(), Text.get_window_extent(each)) for each in texts]
    return [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]


@every_program
def test_no_text_of_the_roofline_covers_another(name):
    function, args = PROGRAMS[name]
    plot = mt.inspect.plot_roofline(function, *args)
    assert covered(plot.figure) == []
    assert all(row.regime in ("overhead", "bandwidth", "arithmetic") and 0 <= row.overhead <= 1 for row in plot.rows)


def test_many_labels_at_one_point_cover_nothing():
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1])
    axes.legend([])
    place(axes, [(0.5, 0.5, f"operation {number}") for number in range(10)], [(0.5, 0.5)])
    assert covered(figure) == []
    axes.text(0.5, 0.5, "over another"), axes.text(0.5, 0.5, "text")
    assert len(covered(figure)) == 1, "the test can fail"


def luminance(colour):
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return np.dot([0.2126, 0.7152, 0.0722], parts)


def test_plots_are_legible_on_light_and_dark_pages():
    light, ink, dark = (luminance(colour) + 0.05 for colour in ("white", INK, "#111111"))
    assert light / ink > 4.2 and ink / dark > 4.2
    function, args = PROGRAMS["several"]
    found = [getattr(mt.inspect, name)(function, *args) for name in NAMES]
    for plot in (*found, mt.inspect.plot_hierarchy(), mt.inspect.plot_kernel_classes()):
        assert not imread(io.BytesIO(plot.png))[0, 0, 3], "there is no ground"
        texts = [each for each in plot.figure.findobj(Text) if each.get_text()]
        assert {each.get_color() for each in texts} <= {INK, ON_FILL}, plot.title
    assert not imread(io.BytesIO(mt.jit(function).show(*args, fused=True).png))[0, 0, 3], (
        "pictures of graphs have none, too"
    )


@pytest.mark.parametrize("row", CLASSES, ids=lambda row: row.kind)
def test_the_example_of_a_class_is_one_kernel_of_this_class(row):
    f = mt.jit(eval(f"lambda x, y, w: ({row.example})"))
    (kernel,) = f.ledger(mt.rand(64, 128), mt.rand(64, 128), mt.rand(128, 32)).kernels
    assert kernel.kind == row.kind and colours.KERNELS[row.kind][0] == row.name


def test_the_classes_are_a_picture_and_a_text():
    plot = mt.inspect.plot_kernel_classes()
    assert plot.png and all(row.doc in plot.text for row in plot.rows)
    assert [row.kind for row in plot.rows] == [kind for kind in colours.KERNELS if kind != "call"]
