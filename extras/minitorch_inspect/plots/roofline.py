"""`plot_roofline`: every kernel's rates beside the machine's roofs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from minitorch.backends.interpret import Interpreted
from minitorch.functional.creation.creation import ones
from minitorch.graph.cost import in_units
from minitorch.modes.ways_in.jit import jit
from minitorch_profiler import Machine, machine, profile
from minitorch_profiler.rows import Row
from minitorch_profiler.texts import shares

from .. import colours
from .plot import Plot, bar, duration, footnote, jitted, place, plain_ticks, short, tidy, write
from .theme import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONG = 0.3  # seconds; no further round after that
ROUNDS = 3, 30  # at least and at most
LEAST = 0.01  # share of the total time below which the picture leaves operations out
MOST_ROWS, MOST_LABELS = 24, 10
MARKERS = "osD^vPX*hd"  # of kernels, in turn


@dataclass(frozen=True)
class RooflineRow:
    """A kernel, or an operation by itself.

    Attributes:
        name, kind: of a kernel, as the ledger has them; of an operation, its name and ``"node"``; of a
            kernel in a picture that says its name alone, ``""``.
        calls: the number of its runs in one call of the function.
        seconds: of one call of the function, the shortest that was seen.
        bytes: moved.
        operations: arithmetic, an exp or the like as one.
        of_bandwidth: its bytes in a second, as a share of those of a copy; above 1 for what lies in the caches.
        of_peak: its arithmetic in a second (without exp and the like) as a share of the machine's.
        overhead: the share of its time that a call takes which adds two numbers.
    """

    name: str
    kind: str
    calls: int
    seconds: float
    bytes: int
    operations: int
    of_bandwidth: float
    of_peak: float
    overhead: float = 0.0

    @property
    def intensity(self) -> float:
        """Arithmetic intensity: operations per byte moved."""
        return self.operations / self.bytes if self.bytes else 0.0

    @property
    def rate(self) -> float:
        """Operations per second."""
        return self.operations / self.seconds if self.seconds else 0.0

    @property
    def regime(self) -> str:
        """The largest of the three shares: what most of its time goes to."""
        shares = {"bandwidth": self.of_bandwidth, "arithmetic": self.of_peak, "overhead": self.overhead}
        return max(shares, key=lambda name: shares[name])

    @property
    def fused(self) -> bool:
        """Whether it is a kernel."""
        return self.kind != "node"


def plot_roofline(f: Any, *args: Any, **kwargs: Any) -> Plot:
    """The roofline model of Williams, Waterman and Patterson (2009): operations per byte and per second.

    Under the slope a kernel waits for memory, under the flat roof for arithmetic; the distance to the roof is what
    could still be gained. For few numbers a third limit is lower: the overhead of a call, which is the same for one
    number and for a thousand. It is measured by a call that adds two numbers, and drawn for as many bytes as a kernel
    moves on average. The roofs are those that `minitorch.machine` measured; the times are the shortest of some profiled
    calls, on copies of the arguments. The operations of the graph, after its passes, run one by one by NumPy, are shown
    for comparison.

    Args:
        f: a jitted function; another one is jitted first.

    Returns:
        A `Plot`, whose rows are `RooflineRow`: the kernels, then the operations one by one.

    Example:
        >>> import minitorch as mt
        >>> plot = mt.inspect.plot_roofline(lambda x: (x * 2 + 1).sum(), mt.ones(1000))
        >>> [(row.name, row.intensity) for row in plot.rows if row.fused]
        [('k0_reduce_sum', 0.74...)]
    """
    f = jitted(f)
    program, arrays = f.program(*args, **kwargs)
    roofs = machine()
    probe, one = jit(lambda x: x + x, backend=f.backend).program(ones(1))
    kernels, nodes = (
        _with_overhead(_measured(run, arrays, roofs), _measured(shortest, one, roofs))
        for run, shortest in (
            (program.compiled, probe.compiled),
            (Interpreted(program.pipeline.graph), Interpreted(probe.pipeline.graph)),
        )
    )
    rows = tuple(kernels if not kernels or not kernels[0].fused else [*kernels, *nodes])
    what = "kernels" if any(row.fused for row in rows) else "operations"
    return roofline_of(rows, roofs, f"Roofline of {f.__name__}: its {what} against what this machine can do")


def roofline_of(rows: tuple[RooflineRow, ...], roofs: Machine, title: str) -> Plot:
    """Draw rows that were measured on a machine."""
    return Plot(title, _text(rows, roofs), rows, partial(_draw, rows, roofs), 5.2)


def together(rows: Sequence[RooflineRow], name: str) -> RooflineRow | None:
    """Rows as one: their bytes, operations and seconds together; None if they move or compute nothing.

    Example:
        >>> add, exp = (RooflineRow(name, "node", 1, 2.0, 8, 4, 0.5, 0.25) for name in ("add", "exp"))
        >>> both = together([add, exp], "both")
        >>> both.intensity, both.rate, both.of_bandwidth
        (0.5, 2.0, 0.5)
    """
    seconds, size = sum(row.seconds for row in rows), sum(row.bytes for row in rows)
    operations = sum(row.operations for row in rows)
    if not (seconds and size and operations):
        return None
    names = ("of_bandwidth", "of_peak", "overhead")
    shares = [sum(getattr(row, each) * row.seconds for row in rows) / seconds for each in names]
    return RooflineRow(name, rows[0].kind, sum(row.calls for row in rows), seconds, size, operations, *shares)


def _measured(execute: Any, arrays: Sequence[Any], roofs: Machine) -> list[RooflineRow]:
    best: dict[tuple[str, str], Row] = {}
    end = time.perf_counter() + LONG
    execute(arrays)
    for number in range(ROUNDS[1]):
        if number >= ROUNDS[0] and time.perf_counter() > end:
            break
        with profile() as found:
            execute(arrays)
        for row in found.rows():
            key = row.name, row.kind
            if key not in best or row.seconds < best[key].seconds:
                best[key] = row
    rows = [
        RooflineRow(
            row.name, row.kind, row.calls, row.seconds, row.bytes, row.flops + row.transcendentals, *shares(row, roofs)
        )
        for row in best.values()
        if row.bytes
    ]
    return sorted(rows, key=lambda row: -row.seconds)


def _with_overhead(rows: Sequence[RooflineRow], shortest: Sequence[RooflineRow]) -> list[RooflineRow]:
    call = min((row.seconds for row in shortest), default=0.0)
    return [replace(row, overhead=min(1.0, call * row.calls / row.seconds) if row.seconds else 0.0) for row in rows]


def _text(rows: Sequence[RooflineRow], roofs: Machine) -> str:
    width = max((len(row.name) for row in rows), default=0) + 2
    peak = roofs.flops["float32"]
    lines = [
        f"{'':<{width}}{'kind':<6}{'us':>10}{'ops/byte':>10}{'Gop/s':>9}{'of copy':>9}{'of peak':>9}{'overhead':>10}"
        "  the largest of the three shares"
    ]
    for fused in (True, False):
        found = [row for row in rows if row.fused is fused]
        for row in found[:MOST_ROWS]:
            share = max(row.of_bandwidth, row.of_peak, row.overhead)
            drawn = bar((min(share, 1.0), "#"), most=1.0, width=20) + (">" if share > 1 else "") + f" {row.regime}"
            lines.append(
                f"{row.name:<{width}}{row.kind:<6}{row.seconds * 1e6:>10.1f}{row.intensity:>10.2f}"
                f"{row.rate / 1e9:>9.2f}{row.of_bandwidth:>9.0%}{row.of_peak:>9.0%}{row.overhead:>10.0%}  {drawn}"
            )
        if len(found) > MOST_ROWS:
            lines.append(f"and {len(found) - MOST_ROWS} more")
    before, after = _before_and_after(rows)
    if before and after:
        lines.append(
            f"together: from {before.intensity:.2f} to {after.intensity:.2f} operations per byte, "
            f"from {duration(before.seconds)} to {duration(after.seconds)}"
        )
    return "\n".join([*lines, _roofs(roofs), f"the roofs meet at {peak / roofs.bandwidth:.1f} operations per byte"])


def _before_and_after(rows: Sequence[RooflineRow]) -> tuple[RooflineRow | None, RooflineRow | None]:
    """All operations as one, and all kernels as one."""
    found = ([row for row in rows if row.fused is fused] for fused in (False, True))
    before, after = (together(each, name) for each, name in zip(found, ("operations", "kernels"), strict=True))
    return before, after


def _roofs(roofs: Machine) -> str:
    return (
        f"measured on {roofs.processor}, {roofs.threads} thread{'s' * (roofs.threads != 1)}: a copy moves "
        f"{roofs.bandwidth / 1e9:.1f} GB/s, float32 peaks at {roofs.flops['float32'] / 1e9:.0f} GFLOP/s\n"
        "above a roof: in the caches, or the roofs were measured on a busy machine"
    )


def _draw(rows: Sequence[RooflineRow], roofs: Machine, figure: Figure) -> None:
    axes = figure.subplots()
    kernels, alone = ([row for row in rows if row.fused is fused] for fused in (True, False))
    alone = [row for row in alone if row.seconds > LEAST * sum(each.seconds for each in alone)]
    shown = [row for row in (*kernels, *alone) if row.operations and row.seconds]
    bandwidth, peak = roofs.bandwidth / 1e9, roofs.flops["float32"] / 1e9
    ridge = peak / bandwidth
    low = min([row.intensity for row in shown] + [0.05]) / 2
    high = max([row.intensity for row in shown] + [ridge * 4]) * 2
    bottom = min([row.rate / 1e9 for row in shown] + [bandwidth * low]) / 4
    calls, size = (sum(getattr(row, each) for row in kernels or shown) for each in ("calls", "bytes"))
    overhead = sum(row.overhead * row.seconds for row in kernels or shown)  # of all calls
    if overhead and (slope := size / overhead / 1e9) < bandwidth:  # GB/s of calls that are as short as they can be
        lowered = [low, min(peak / slope, high), high], [slope * low, min(peak, slope * high), min(peak, slope * high)]
        axes.plot(*lowered, color=colours.VERMILION, linewidth=1, linestyle="--")
        axes.fill_between(*lowered, bottom, color=colours.VERMILION, alpha=0.06, linewidth=0)
        note = f"overhead: {duration(overhead / calls)} a call, {in_units(size / calls, 'B')} moved"
        write(axes, 0.98, 0.03, note, transform=axes.transAxes, ha="right")
    axes.plot([low, ridge], [bandwidth * low, peak], color=INK, linewidth=1.5)
    axes.plot([ridge, high], [peak, peak], color=INK, linewidth=1.5)
    axes.fill_between([low, ridge, high], [bandwidth * low, peak, peak], bottom, color=INK, alpha=0.04)
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, peak * 5))
    axes.set_xlabel("operations per byte moved (an exp counts as one)")
    axes.set_ylabel("billion operations per second")
    write(axes, high / 1.1, peak * 1.2, f"arithmetic: {peak:.0f} GFLOP/s of float32", ha="right")
    corner = {"transform": axes.transAxes, "va": "top"}  # where no mark comes: little to do for a byte, and much done
    write(axes, 0.02, 0.96, f"the slope is memory: {bandwidth:.1f} GB/s", **corner)
    for number, row in enumerate(kernels):
        nothing = "" if row.operations else ", no arithmetic"
        facts = f" ({row.kind}, {duration(row.seconds)}, {row.regime}{nothing})" if row.kind else ""
        mark: dict[str, Any] = {"markeredgecolor": INK, "markersize": 9, "zorder": 3}
        mark["label"] = f"{short(row.name, 26)}{facts}" if number < MOST_LABELS else None
        mark["color"] = colours.KERNELS.get(row.kind, ("", colours.GREY))[1]
        axes.plot(row.intensity, row.rate / 1e9, MARKERS[number % len(MARKERS)], **mark)
    alone = [row for row in alone if row.operations]
    crosses = [row.intensity for row in alone], [row.rate / 1e9 for row in alone]
    label = "operations one by one, by NumPy" if alone or not kernels else None
    axes.plot(*crosses, "x", color=INK, label=label, zorder=4)  # seen also where a kernel is as fast as its operations
    labels = [(row.intensity, row.rate / 1e9, row.name) for row in alone[:MOST_LABELS]]
    before, after = _before_and_after(rows)
    if before and after:
        ends = [(row.intensity, row.rate / 1e9) for row in (before, after)]
        label = f"all together: from {duration(before.seconds)} to {duration(after.seconds)}"
        style: dict[str, Any] = {"color": colours.VERMILION, "linewidth": 2}
        mark = {"markevery": [0], "mfc": "white", "markersize": 9, "zorder": 5, **style}
        axes.plot(*zip(*ends, strict=True), "o-", label=label, **mark)
        arrow = {"arrowstyle": "-|>", "shrinkA": 5, "shrinkB": 5, **style}
        axes.annotate("", ends[1], ends[0], arrowprops=arrow, zorder=5)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    tidy(axes)
    footnote(figure, _roofs(roofs))
    place(axes, labels, [(row.intensity, row.rate / 1e9) for row in shown])
