"""`plot_traffic`: the bytes that each operation moves alone, beside those of its kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.kernels.ledger import Ledger
from minitorch.graph.cost import Traffic, costs, in_units

from .. import colours
from .plot import Plot, bar, footnote, jitted, legend, named, short, tidy, write
from .theme import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BARS = 30
WRITTEN = 0.45  # opacity of the written part of a bar


@dataclass(frozen=True)
class TrafficRow(Traffic):
    """A bar: operations run one by one, or a kernel.

    Attributes:
        name: of the operation or the kernel.
        fused: whether it is a kernel.
        kernel: the name of the kernel; for an operation, of the one that computes it first.
        bytes_read, bytes_written: from and to memory.
    """

    name: str
    fused: bool
    kernel: str
    bytes_read: int
    bytes_written: int


def plot_traffic(f: Any, *args: Any, **kwargs: Any) -> Plot:
    """Memory traffic of the operations one by one, and of the kernels that they became.

    Counted, not measured: the kernels' sum is that of ``f.cost(*args)``. The operations are those that the passes have
    left, so that each stands with the kernel that computes it first; those that only view their input move nothing, and
    are left out.

    Args:
        f: a jitted function; another one is jitted first.

    Returns:
        A `Plot`, whose rows are `TrafficRow`: bytes of every operation and of every kernel.

    Example:
        >>> import minitorch as mt
        >>> plot = mt.inspect.plot_traffic(lambda x: (x * 2 + 1).exp(), mt.ones(1000))
        >>> [(row.name, row.bytes) for row in plot.rows]
        [('mul', 8000), ('add', 8000), ('exp', 8000), ('k0_exp', 8000)]
    """
    f = jitted(f)
    ledger = f.ledger(*args, **kwargs)
    groups = _groups(ledger)
    rows = tuple(row for group in groups for row in group)
    before = sum(row.bytes for row in rows if not row.fused)
    after = sum(row.bytes for row in rows if row.fused)
    less = f"{before / after:.1f} times" if before > 1.05 * after else "no"
    ratio = f" ({less} less)" if after else ""
    kernels = f"{len(groups)} kernel{'s' * (len(groups) != 1)}"
    sums = f"{in_units(before, 'B')} node by node, {in_units(after, 'B')} in {kernels}{ratio}"
    title = f"Memory traffic of {f.__name__}: {sums}"
    bars = summarised(groups)
    together = totals(rows) if len(rows) > 2 else []  # of one bar each there is nothing to add up
    height = max(2.4, 1.3 + 0.23 * (len(bars) + len(together)))
    return Plot(title, _text(bars, together), rows, partial(_draw, bars, together), height)


def totals(rows: Sequence[TrafficRow]) -> list[TrafficRow]:
    """The bytes of all operations together, and those of all kernels.

    Example:
        >>> rows = [TrafficRow("add", False, "k0", 8, 4), TrafficRow("k0", True, "k0", 8, 4)]
        >>> [(row.name, row.bytes) for row in totals([*rows, *rows])]
        [('all 2 operations', 24), ('all 2 kernels', 24)]
    """
    found = []
    for fused, name in ((False, "operation"), (True, "kernel")):
        if several := [row for row in rows if row.fused is fused]:
            number = f"all {len(several)} {name}s" if len(several) > 1 else f"the {name}"
            found.append(_sum(several, number, number))
    return found


def _groups(ledger: Ledger) -> list[list[TrafficRow]]:
    """For each kernel the rows of its operations, and its own as the last."""
    moved, seen = costs(ledger.graph), set()
    groups = []
    for kernel in ledger.kernels:
        new = [node for node in kernel.nodes if node in moved and node not in seen]
        seen.update(new)
        rows = [TrafficRow(node.primitive.name, False, kernel.name, *moved[node][:2]) for node in new]
        groups.append([*(row for row in rows if row.bytes), _of_kernel(kernel)])
    return groups


def _of_kernel(kernel: Kernel) -> TrafficRow:
    return TrafficRow(kernel.name, True, kernel.name, kernel.bytes_read, kernel.bytes_written)


def _sum(rows: Sequence[TrafficRow], name: str, kernel: str) -> TrafficRow:
    read, written = sum(row.bytes_read for row in rows), sum(row.bytes_written for row in rows)
    return TrafficRow(name, rows[0].fused, kernel, read, written)


def summarised(groups: Sequence[Sequence[TrafficRow]], most: int = MOST_BARS) -> list[TrafficRow]:
    """At most so many bars: if there are too many, like operations of a kernel as one, then all of them, then kernels.

    Nothing is lost on the way: the sums stay as they are.
    """
    found = next((shorter for way in WAYS if sum(map(len, shorter := list(map(way, groups)))) <= most), None)
    groups = list(map(_as_one, groups)) if found is None else found
    if sum(map(len, groups)) > most:
        order = sorted(range(len(groups)), key=lambda number: -sum(row.bytes for row in groups[number]))
        shown, rest = sorted(order[: most // 2 - 1]), [groups[number] for number in sorted(order[most // 2 - 1 :])]
        operations, kernels = (
            [row for group in rest for row in group if row.fused is fused] for fused in (False, True)
        )
        name = f"{len(rest)} smaller kernels"
        both = [_sum(operations, "their operations", name)] if operations else []
        groups = [*(groups[number] for number in shown), [*both, _sum(kernels, name, name)]]
    return [row for group in groups for row in group]


def _by_name(group: Sequence[TrafficRow]) -> list[TrafficRow]:
    *operations, kernel = group
    found: dict[str, list[TrafficRow]] = {}
    for row in operations:
        found.setdefault(row.name, []).append(row)
    return [
        *(_sum(rows, f"{len(rows)} x {name}" if len(rows) > 1 else name, kernel.name) for name, rows in found.items()),
        kernel,
    ]


def _as_one(group: Sequence[TrafficRow]) -> list[TrafficRow]:
    *operations, kernel = group
    return [*([_sum(operations, named([row.name for row in operations]), kernel.name)] if operations else []), kernel]


# The forms of a kernel's operations, from the longest to the shortest.
WAYS: tuple[Callable[[Sequence[TrafficRow]], list[TrafficRow]], ...] = (list, _by_name, _as_one)


def _text(bars: Sequence[TrafficRow], sums: Sequence[TrafficRow]) -> str:
    most = max((row.bytes for row in (*bars, *sums)), default=0)
    width = max((len(row.name) for row in (*bars, *sums)), default=0) + 4
    lines = [f"{'':<{width}}{'read':>10}{'written':>10}  # read, = written"]
    for row in (*bars, *sums):
        if sums and row is sums[0]:
            lines.append("together")
        name = f"-> {row.name}" if row.fused else f"    {row.name}"
        sizes = f"{in_units(row.bytes_read, 'B'):>10}{in_units(row.bytes_written, 'B'):>10}"
        lines.append(
            f"{name:<{width}}{sizes}  {bar((row.bytes_read, '#'), (row.bytes_written, '='), most=most)}".rstrip()
        )
    return "\n".join([*lines, "-> is a kernel; above it are the operations that it does, one by one"])


def _draw(bars: Sequence[TrafficRow], sums: Sequence[TrafficRow], figure: Figure) -> None:
    axes = figure.subplots()
    # A gap after every kernel, and a line above the sums.
    places, place = [], 0.0
    for row in (*bars, *sums):
        if sums and row is sums[0]:
            place += 0.5
            axes.axhline(place - 1.05, color=INK, linewidth=0.8)
        places.append(place)
        place += 1.6 if row.fused else 1.0
    bars = [*bars, *sums]
    scale = _scale(max((row.bytes for row in bars), default=0))
    most = max([row.bytes for row in bars] + [1]) / scale[0]
    for row, at in zip(bars, places, strict=True):
        colour = colours.BLUE if row.fused else colours.ORANGE
        read, written = row.bytes_read / scale[0], row.bytes_written / scale[0]
        axes.barh(at, read, color=colour, height=0.8)
        axes.barh(at, written, left=read, color=colour, alpha=WRITTEN, height=0.8)
        label = in_units(row.bytes, "B")
        write(axes, read + written + most * 0.008, at, label, va="center", fontsize=7.5)
    axes.set_yticks(places, [short(row.name, 34) for row in bars])
    for tick, row in zip(axes.get_yticklabels(), bars, strict=True):
        tick.set_fontweight("bold" if row.fused or row in sums else "normal")
    axes.invert_yaxis()
    axes.set_xlim(0, most * 1.1)
    axes.set_xlabel(f"{scale[1]} moved between the processor and memory")
    axes.tick_params(axis="y", length=0)
    reads = {colours.ORANGE: "one operation alone: reads", colours.BLUE: "the kernel they became: reads"}
    looks: list[dict[str, Any]] = []
    for colour, label in reads.items():
        looks += [{"color": colour, "label": label}, {"color": colour, "label": "and writes", "alpha": WRITTEN}]
    legend(axes, looks, 4)
    tidy(axes)
    footnote(
        figure, "counted from shapes and loops, not measured: each value once per operation or kernel that uses it"
    )


def _scale(most: float) -> tuple[float, str]:
    """The unit of an axis, and its name."""
    return next(((size, name) for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if most >= size), (1.0, "B"))
