"""`plot_breakeven`: the number of calls after which compiling has paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from minitorch.compiler.codegen.host import host
from minitorch_profiler.breakeven import BreakEven

from .. import colours
from .plot import Plot, bar, duration, footnote, jitted, plain_ticks, tidy
from .theme import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CALLS = tuple(10**power for power in range(7))


@dataclass(frozen=True)
class BreakEvenRow:
    """A number of calls, and the average seconds per call, eager and compiled, compiling included."""

    calls: int
    eager: float
    compiled: float


def plot_breakeven(f: Any, *args: Any, **kwargs: Any) -> Plot:
    """Time per call against the number of calls, compiling included: where the curves cross, it has paid.

    Measured, by ``f.break_even(*args)``: the traced operations one by one, and a compiled call, on copies of the
    arguments. Tracing and compiling are timed in *this* process; code that an earlier one left in the disk cache
    (``python -m minitorch cache info``) shortens them.

    Args:
        f: a jitted function; another one is jitted first. Or a `BreakEven` that was measured before.

    Returns:
        A `Plot`, whose rows are `BreakEvenRow`.

    Example:
        >>> import minitorch as mt
        >>> plot = mt.inspect.plot_breakeven(lambda x: x * 2 + 1, mt.ones(1000))
        >>> [row.calls for row in plot.rows][:3], plot.rows[0].compiled > plot.rows[-1].compiled
        ([1, 10, 100], True)
    """
    if isinstance(f, BreakEven):
        found, name, backend = f, "Compiling", "compiled"
    else:
        f = jitted(f)
        found, backend = f.break_even(*args, **kwargs), f"compiled ({f.backend})"
        name = f"Compiling {f.__name__} on backend {f.backend!r}"
    points = sorted({*CALLS, *([found.calls] if found.calls else ())})
    rows = tuple(BreakEvenRow(calls, found.eager, found.per_call(calls)) for calls in points)
    verdict = f"pays after {found.calls:,} call{'s' * (found.calls != 1)}" if found.calls else "never pays"
    return Plot(f"{name} {verdict}", _text(rows, found), rows, partial(_draw, found, backend), 3.8)


def _text(rows: Sequence[BreakEvenRow], found: BreakEven) -> str:
    lines = [
        f"{'calls':>9}{'eager':>14}{'compiled':>14}   us per call; # how compiled compares with eager (40 = equal)"
    ]
    for row in rows:
        share = row.compiled / row.eager
        drawn = bar((min(share, 1.5), "#"), most=1.5, width=60) + (">" if share > 1.5 else "")
        mark = "  <- here it has paid" if row.calls == found.calls else ""
        lines.append(f"{row.calls:>9,}{row.eager * 1e6:>14,.1f}{row.compiled * 1e6:>14,.1f}   {drawn}{mark}")
    return "\n".join([*lines, _measured(found)])


def _measured(found: BreakEven) -> str:
    return (
        f"measured on {host().cpu}: tracing and compiling {duration(found.spent)}, once; "
        f"a call {duration(found.eager)} eagerly, {duration(found.compiled)} compiled"
    )


def _beside(found: BreakEven, most: float) -> float:
    """The number of calls at which the curve is farthest from both lines, so that its label covers neither."""

    def distance(calls: float) -> float:
        return min(abs(math.log(found.per_call(calls) / line)) for line in (found.eager, found.compiled))

    between = math.sqrt(found.eager * found.compiled) - found.compiled
    places: list[float] = [most**0.04, *([found.spent / between] if between > 0 else ())]
    return max((each for each in places if 1 <= each <= most**0.6), key=distance)


def _draw(found: BreakEven, name: str, figure: Figure) -> None:
    axes = figure.subplots()
    most = max(CALLS[4], 10 * (found.calls or 0))
    calls = [most ** (step / 200) for step in range(201)]
    axes.plot(calls, [found.per_call(each) for each in calls], color=colours.BLUE, linewidth=2)
    axes.plot([1, most], [found.eager] * 2, color=colours.VERMILION, linewidth=2, linestyle="--")
    axes.axhline(found.compiled, color=colours.BLUE, linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", xlim=(1, most))
    bottom, top = axes.get_ylim()
    room = (top / bottom) ** 0.1  # for words above the highest line and below the lowest
    axes.set_ylim(bottom / room, top * room)
    small: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9, "color": INK}
    eager, compiled = ((0, 4), (0, -11)) if found.calls else ((0, -11), (0, 4))  # above and below both lines
    axes.annotate("a compiled call, compiling not counted", (1.1, found.compiled), xytext=compiled, **small)
    near = _beside(found, most)
    label = f"{name}, with {duration(found.spent)} of compiling"
    axes.annotate(label, (near, found.per_call(near)), xytext=(8, 4), **small)
    axes.annotate("eager", (most / 1.1, found.eager), xytext=eager, ha="right", **small)
    if found.calls:
        axes.plot(found.calls, found.eager, "o", color=INK, markersize=8, zorder=3, clip_on=False)
        label = f"paid after {found.calls:,} call{'s' * (found.calls != 1)}"
        late = found.calls > most**0.7  # no room to the right
        heights = [axes.transData.transform((1, each))[1] for each in (found.eager, found.compiled)]
        between = (heights[0] - heights[1]) * 72 / figure.dpi  # in points
        low = -14 - (between if between < 24 else 0)  # below both lines, if there is no room between them
        beside: dict[str, Any] = {"xytext": (-10, low), "ha": "right"} if late else {"xytext": (10, 8)}
        axes.annotate(label, (found.calls, found.eager), **beside, **small)
    axes.set_xlabel("calls")
    axes.set_ylabel("time per call, on average")
    plain_ticks(axes.xaxis, "{:,.0f}".format)
    plain_ticks(axes.yaxis, duration)
    tidy(axes)
    footnote(figure, _measured(found))
