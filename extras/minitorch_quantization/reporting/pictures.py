"""A report as a table, as histograms with the quantisation grid, and as a graph of layers coloured by error."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.tables import Table
from minitorch_inspect.colours import ERRORS, SKY, VERMILION
from minitorch_inspect.drawings.drawing import Arrow, Drawing, Mark
from minitorch_inspect.drawings.subjects import drawing_of
from minitorch_inspect.picture import Picture
from minitorch_inspect.plots.plot import Plot, footnote, tidy
from minitorch_inspect.plots.theme import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .report import LayerReport, Report

COLUMNS = 3  # of histograms
MOST_LINES = 65  # of a grid; with more, every second one is drawn, or every fourth
VALUES = ("input", "parameter", "constant", "output", "update")  # kinds of marks that are no operations


def heading(report: Report) -> str:
    """A line with both accuracies."""
    return f"{report.model} in int8: {report.measure} {report.quantized:.2f} %, in float {report.accuracy:.2f} %"


def parts(report: Report) -> list[Table | str]:
    """The rows and the recommendation."""
    width = max([5, *(len(row.name) for row in report.rows)])
    head = ("layer", "kind", "output SNR", "weight SNR", "clipped", "in float", "range of the input")
    rows = [
        (
            *(row.name, row.kind, f"{row.decibels:.1f} dB", f"{row.weight_decibels:.1f} dB"),
            *(_share(row.clipped), f"{row.accuracy:.2f}%", f"{row.low:.3g} to {row.high:.3g}"),
        )
        for row in report.rows
    ]
    shown = Table(f"{{:<{width}}}  {{:<7}}{{:>12}}{{:>12}}{{:>9}}{{:>10}}  {{}}", rows, head)
    return [heading(report), shown, "leave in float:", *(f"  {each}" for each in report.reasons)]


def histograms(report: Report) -> Plot:
    """The numbers that each layer is given, and the grid that they are rounded to."""
    height = 0.6 + 1.9 * -(-len(report.rows) // COLUMNS)
    return Plot(heading(report), str(report), report.rows, lambda figure: _draw(figure, report.rows), height)


def _draw(figure: Figure, rows: tuple[LayerReport, ...]) -> None:
    count = -(-len(rows) // COLUMNS)
    grid = figure.subplots(count, COLUMNS, squeeze=False)
    for axes in grid.flat[len(rows) :]:
        axes.axis("off")
    for axes, row in zip(grid.flat, rows, strict=False):
        edges = np.linspace(row.low, row.high, len(row.counts) + 1)
        axes.stairs(np.maximum(row.counts, 0.5), edges, fill=True, color=SKY)
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.3)
        axes.set_title(f"{row.name} ({row.kind}), {row.decibels:.1f} dB", loc="left")
        steps = round((row.grid[1] - row.grid[0]) / row.scale)
        every = 1
        while steps / every >= MOST_LINES:
            every *= 2
        lines = row.grid[0] + row.scale * np.arange(0, steps + 1, every)
        axes.vlines(lines, 0, 0.06, transform=axes.get_xaxis_transform(), color=INK, linewidth=0.6)
        for end in row.grid:
            axes.axvline(end, color=VERMILION, linewidth=1.2)
        grid_of = f"input; scale {row.scale:.3g}" + (f", every {every}th step" if every > 1 else "")
        axes.set_xlabel(grid_of + f"\n{_share(row.clipped)} clipped" * bool(row.clipped))
        tidy(axes)
    for axes in grid[:, 0]:
        axes.set_ylabel("numbers")
    footnote(figure, "bars: the numbers given to each layer; ticks: the grid they are rounded to; orange: its ends")


def graph(report: Report) -> Picture:
    """One mark for each call of a module without modules of its own, coloured by its signal-to-noise ratio.

    What a module with others in it does by itself, such as the sum of a residual block, stays as it is: in one mark, it
    would come before and after its own parts.
    """
    drawing = drawing_of(report.floats, report.example, {}, False)
    found = {row.name: row for row in report.rows}
    titles = {cluster.id: cluster.title for cluster in drawing.clusters}
    names = {id: title.partition(" · ")[0] for id, title in titles.items()}
    parents = {above for name in names.values() for above in _ancestors(name)}
    around = {id for id, name in names.items() if name in parents}
    marks: dict[str, Mark] = {}
    place: dict[str, str] = {}
    for mark in drawing.marks:
        if mark.kind in ("parameter", "constant"):
            continue
        if mark.cluster is None or mark.cluster in around or mark.kind in VALUES:
            marks[mark.id], place[mark.id] = mark, mark.id
            continue
        place[mark.id] = mark.cluster
        marks.setdefault(mark.cluster, _layer(mark, titles[mark.cluster], found))
    arrows: dict[tuple[str, str], Arrow] = {}
    for arrow in drawing.arrows:
        ends: Any = place.get(arrow.tail), place.get(arrow.head)
        if None not in ends and ends[0] != ends[1]:
            arrows[ends] = replace(arrow, tail=ends[0], head=ends[1])
    title = f"{report.model} in int8: {report.quantized:.2f} %, float {report.accuracy:.2f} %"
    return Picture(Drawing(title, tuple(marks.values()), tuple(arrows.values())))


def _ancestors(name: str) -> list[str]:
    """The names of the modules around a module."""
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _share(part: float) -> str:
    """A share in per cent; what is not nothing does not look like it.

    Example:
        >>> _share(0.0), _share(0.00002), _share(0.0123)
        ('0 %', '<0.01 %', '1.23 %')
    """
    return "0 %" if not part else "<0.01 %" if part < 0.00005 else f"{100 * part:.2f} %"


def _layer(mark: Mark, title: str, found: dict[str, LayerReport]) -> Mark:
    """A call of a module: its error, if it is quantised."""
    row = found.get(title.partition(" · ")[0])
    if row is None:
        return Mark(str(mark.cluster), "other", "", title, "")
    kind = next(each.name for each in ERRORS if row.decibels >= each.least)
    details = (
        ("SNR of the output", f"{row.decibels:.1f} dB"),
        ("SNR of the weight", f"{row.weight_decibels:.1f} dB"),
        ("clipped", _share(row.clipped)),
        ("accuracy with it in float", f"{row.accuracy:.2f} %"),
    )
    return Mark(str(mark.cluster), kind, "", title, f"{row.decibels:.1f} dB, {_share(row.clipped)} clipped", details)
