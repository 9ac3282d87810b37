"""The results as one picture: for every case, how long each contender takes, relative to `jax.jit`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .contenders import BASELINE, CONTENDERS, ours
from .report import Row, geometric_mean
from .run import Results
from .targets import NATIVE

INK, QUIET, GRID, OURS = "#22223b", "#8d8d99", "#e6e6ec", "#d62839"


def draw(results: Results, table: Sequence[Row], machine: str, path: Path) -> bool:
    """Write a PNG, if there is something to compare and matplotlib to draw it.

    Returns:
        Whether there was.
    """
    best = ours(results.contenders)
    shown = [row for row in table if BASELINE in row.seconds and best in row.seconds]
    if best is None or not shown:
        return False
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    # A line per case, and one for every group's heading.
    heights: dict[str, float] = {}
    headings: list[tuple[str, float]] = []
    line, group = 0.0, ""
    for row in shown:
        if row.case.group != group:
            group = row.case.group
            line += 0.4 if headings else 0
            headings.append((group, line))
            line += 1
        heights[row.case.name] = line
        line += 1

    tall = 0.21 * line + 1.9
    figure, axes = plt.subplots(figsize=(10.5, tall), dpi=150)
    figure.subplots_adjust(left=0.27, right=0.9, top=1 - 1.25 / tall, bottom=0.75 / tall)
    axes.set_xscale("log")
    axes.set_ylim(line - 0.3, -0.7)
    relative = {
        name: {row.case.name: row.seconds[name] / row.seconds[BASELINE] for row in shown if name in row.seconds}
        for name in results.contenders
    }
    values = [value for times in relative.values() for value in times.values()]
    left, right = max(min(values) / 1.5, 0.02), min(max(values) * 1.3, 60.0)
    axes.set_xlim(left, right)
    axes.axvspan(left, 1, color="#fdf1f2", zorder=0, linewidth=0)
    axes.axvline(1, color=INK, linewidth=1.2, zorder=2)

    for name, times in relative.items():
        if name in (best, BASELINE):
            continue
        contender = CONTENDERS[name]
        axes.scatter(
            [min(max(value, left), right) for value in times.values()],
            [heights[case] for case in times],
            s=17, marker=contender.marker, color=contender.colour, alpha=0.75, linewidths=0, label=name, zorder=3,
        )  # fmt: skip
    for row in shown:
        x, y = relative[best][row.case.name], heights[row.case.name]
        axes.plot([1, x], [y, y], color=OURS, linewidth=2.4, alpha=0.35, solid_capstyle="butt", zorder=3)
        speed = 1 / x if row.speedup is None else row.speedup.median
        axes.text(
            1.01, y, f"{speed:.1f} ×" if speed < 9.95 else f"{speed:.0f} ×", transform=axes.get_yaxis_transform(),
            va="center", fontsize=8, color=OURS if speed >= 1 else QUIET, fontweight="bold" if speed >= 1 else "normal",
        )  # fmt: skip
    axes.scatter(
        list(relative[best].values()), [heights[case] for case in relative[best]],
        s=46, color=OURS, edgecolors="white", linewidths=0.8, label=f"minitorch ({best})", zorder=4,
    )  # fmt: skip

    axes.set_yticks(list(heights.values()), list(heights), fontsize=8, color=INK)
    for text, y in headings:
        axes.text(
            -0.01, y, text, transform=axes.get_yaxis_transform(),
            ha="right", va="center", fontsize=8.5, fontweight="bold", color=QUIET,
        )  # fmt: skip
    ticks = [tick for tick in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if left <= tick <= right]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} ×"))
    axes.grid(axis="x", color=GRID, linewidth=0.8, zorder=1)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=INK, labelsize=8)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(f"time of a call, relative to {BASELINE} (further left is faster)", fontsize=9, color=INK)

    mean = geometric_mean([row.speedup.median for row in shown if row.speedup]) or 1.0
    title = f"minitorch ({best}) is {mean:.2f} times as fast as {BASELINE}"
    title += "" if results.target == NATIVE else f", restricted to {results.target}"
    figure.text(0.02, 1 - 0.38 / tall, title, fontsize=15, fontweight="bold", color=INK)
    figure.text(
        0.02, 1 - 0.66 / tall, f"geometric mean; cases: {len(shown)}; float32, on the CPU", fontsize=10, color=QUIET
    )
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=8, fontsize=8.5, frameon=False,
        handletextpad=0.2, columnspacing=1.4,
    )  # fmt: skip
    figure.text(0.02, 0.14 / tall, machine, fontsize=7.5, color=QUIET)
    figure.savefig(path)
    plt.close(figure)
    return True
