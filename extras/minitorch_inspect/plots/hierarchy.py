"""`plot_hierarchy`: registers, caches and main memory, with this machine's sizes and measured speeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log2
from typing import TYPE_CHECKING, Any

from minitorch.compiler.codegen.host import host
from minitorch.graph.cost import in_units
from minitorch_profiler.hierarchy import Level, hierarchy

from .. import colours
from .plot import Plot, bar, duration, footnote
from .theme import INK, ON_FILL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILLS = (colours.ORANGE, colours.YELLOW, colours.GREEN, colours.SKY, colours.BLUE)  # from near to far
NAMES = {"L1": "L1 cache", "L2": "L2 cache", "L3": "L3 cache", "memory": "main memory"}
PALE = 0.45  # opacity of the boxes, under black letters
MARGIN = 0.02  # beside a box
ROUND = "round,pad=0,rounding_size=0.04"  # its corners
BOX, GAP = 0.6, 0.4  # heights of a box and of the pipe above it
NARROWEST = 0.22  # width of the smallest level's box, of the panel; the largest one's is 1
PIPE = NARROWEST - 2 * MARGIN  # width of the widest pipe
LABELLED = 2.0  # length of the axis of bars beside the longest bar: the label behind that one has nine letters


@dataclass(frozen=True)
class HierarchyRow:
    """A level, and the arrays that it is the smallest to hold.

    Attributes:
        level: name, size and speeds.
        holds: names of arrays, with their sizes.
    """

    level: Level
    holds: tuple[str, ...]


def plot_hierarchy(arrays: Mapping[str, Any] | None = None, again: bool = False) -> Plot:
    """The memory hierarchy: registers, caches and main memory of this machine, as one core sees them.

    Sizes are the system's. Bandwidth and latency are measured, once in a process (`minitorch.profiler.hierarchy`).

    Args:
        arrays: arrays, or numbers of bytes, by name; each is shown beside the smallest level that is large enough.
        again: measure now, and keep the better numbers.

    Returns:
        A `Plot`, whose rows are `HierarchyRow`, the nearest level first.

    Example:
        >>> import minitorch as mt
        >>> plot = mt.inspect.plot_hierarchy({"a batch": mt.zeros(32, 64), "a film": 1 << 40})
        >>> [(row.level.name, row.holds) for row in plot.rows if row.holds]
        [('L1', ('a batch (8.19 kB)',)), ('memory', ('a film (1,100 GB)',))]
    """
    levels = hierarchy(again)
    held: dict[str, list[str]] = {level.name: [] for level in levels}
    for name, array in (arrays or {}).items():
        size = int(getattr(array, "nbytes", array))
        held[smallest(levels, size).name].append(f"{name} ({_decimal(size)})")
    rows = tuple(HierarchyRow(level, tuple(held[level.name])) for level in levels)
    title = "Registers, caches and main memory of this machine, as one core sees them"
    return Plot(title, _text(rows), rows, partial(_draw, rows), 0.8 + 0.72 * len(rows))


def smallest(levels: Sequence[Level], size: int) -> Level:
    """The smallest level that holds so many bytes; registers hold no arrays, and main memory is taken to hold all.

    Example:
        >>> sizes = {"registers": 512, "L1": 1024, "memory": 0}
        >>> levels = [Level(name, size, 1.0, 1.0, 0) for name, size in sizes.items()]
        >>> smallest(levels, 4).name, smallest(levels, 1025).name
        ('L1', 'memory')
    """
    return next((level for level in levels[1:-1] if size <= level.bytes), levels[-1])


def _decimal(size: int) -> str:
    return in_units(size, "B") if size < 1e12 else f"{size / 1e9:,.0f} GB"


def size_of(level: Level) -> str:
    """A level's size, in the powers of two that caches have.

    Example:
        >>> size_of(Level("L2", 1280 << 10, 1.0, 1.0, 0)), size_of(Level("memory", 0, 1.0, 1.0, 0))
        ('1.25 MB', '')
    """
    for factor, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if level.bytes >= factor:
            return f"{level.bytes / factor:.3g} {unit}"
    return f"{level.bytes} B" if level.bytes else ""


def _latency(level: Level) -> str:
    return f"{level.latency * 1e9:.2g} ns" if 0 < level.latency < 10e-9 else duration(level.latency)


def _bandwidth(level: Level) -> str:
    rate = level.bandwidth / 1e9
    return f"{rate:.0f} GB/s" if rate >= 10 else f"{rate:.2g} GB/s"


def _text(rows: Sequence[HierarchyRow]) -> str:
    most = max(row.level.bandwidth for row in rows)
    lines = [f"{'':10}{'size':>9}{'bandwidth':>13}{'latency':>10}  # bandwidth"]
    for row in rows:
        level = row.level
        waiting = _latency(level) if level.latency else "-"
        drawn = bar((level.bandwidth, "#"), most=most, width=36)
        holds = f"  <- {', '.join(row.holds)}" if row.holds else ""
        lines.append(f"{level.name:10}{size_of(level):>9}{_bandwidth(level):>13}{waiting:>10}  {drawn}{holds}")
    return "\n".join([*lines, _measured(rows)])


def _measured(rows: Sequence[HierarchyRow]) -> str:
    sizes = ", ".join(_decimal(row.level.array) for row in rows if row.level.array)
    return (
        f"measured on one core of {host().cpu}, with arrays of {sizes}; bandwidth: reading in order (registers: "
        "operands of\nmultiply-adds at the peak rate); latency: loads from random places, "
        "each of which needs the one before it"
    )


def _draw(rows: Sequence[HierarchyRow], figure: Figure) -> None:
    boxes, rates, waits = figure.subplots(1, 3, width_ratios=(2.3, 1, 1))
    levels = [row.level for row in rows]
    _boxes(boxes, rows)
    _bars(rates, levels, [level.bandwidth for level in levels], "bandwidth", list(map(_bandwidth, levels)))
    words = [_latency(level) if level.latency else "there at once" for level in levels]
    _bars(waits, levels, [level.latency for level in levels], "latency", words)
    footnote(figure, _measured(rows))


def _boxes(axes: Any, rows: Sequence[HierarchyRow]) -> None:
    from matplotlib.patches import FancyBboxPatch

    widths = _widths([row.level.bytes for row in rows])
    fastest = max(row.level.bandwidth for row in rows)
    for number, (row, width) in enumerate(zip(rows, widths, strict=True)):
        level, top = row.level, number - BOX / 2
        pipe = PIPE * level.bandwidth / fastest
        axes.bar(0, GAP, pipe, top - GAP, color=INK, alpha=0.55, linewidth=0, zorder=1)
        look: dict[str, Any] = {"facecolor": _mixed(FILLS[number]), "edgecolor": INK, "linewidth": 1, "zorder": 2}
        corner = -width / 2 + MARGIN, top
        axes.add_patch(FancyBboxPatch(corner, width - 2 * MARGIN, BOX, ROUND, mutation_aspect=3, **look))
        text = {"ha": "center", "va": "center", "color": ON_FILL, "zorder": 3}
        axes.text(0, number - (0.12 if row.holds else 0), size_of(level), fontsize=9, **text)
        axes.text(0, number + 0.13, ", ".join(row.holds), fontsize=8, style="italic", **text)
    axes.text(0, -BOX / 2 - GAP - 0.07, "arithmetic", fontsize=9, fontweight="bold", ha="center", color=INK)
    axes.set(xlim=(-0.52, 0.52), ylim=(len(rows) - 0.6, -BOX / 2 - GAP - 0.35))
    axes.set_yticks(range(len(rows)), [NAMES.get(row.level.name, row.level.name) for row in rows])
    for tick in axes.get_yticklabels():
        tick.set(fontweight="bold", fontsize=9, color=INK)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    axes.set_xlabel("box: size, logarithmic; the pipe above it: bandwidth, linear", fontsize=8, color=INK)


def _widths(sizes: Sequence[int]) -> list[float]:
    """Of the boxes: logarithmic, from the smallest to the largest; a size that nobody knows is the largest."""
    known = [size for size in sizes if size]
    low, high = log2(min(known)), log2(max(known))
    scale = (1 - NARROWEST) / (high - low) if high > low else 0.0
    return [NARROWEST + scale * (log2(size) - low) if size else 1.0 for size in sizes]


def _mixed(colour: str) -> tuple[float, ...]:
    """The colour on white, opaque, so that no pipe shows through."""
    from matplotlib.colors import to_rgb

    return tuple(1 - PALE * (1 - part) for part in to_rgb(colour))


def _bars(axes: Any, levels: Sequence[Level], values: Sequence[float], title: str, words: Sequence[str]) -> None:
    most = max(values) or 1.0
    for number, (value, word) in enumerate(zip(values, words, strict=True)):
        axes.barh(number, value, height=BOX * 0.7, color=_mixed(FILLS[number]), edgecolor=INK, linewidth=0.8)
        axes.text(value + 0.03 * most, number, word, va="center", fontsize=9, color=INK).set_in_layout(False)
    axes.set(xlim=(0, LABELLED * most), ylim=(len(levels) - 0.6, -BOX / 2 - GAP - 0.35))
    axes.set_title(title, loc="left", fontsize=9, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(INK)
