"""`Plot`: a picture that is drawn on demand, and the same facts as text."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.modes.ways_in.jit import Jitted, jit

from .theme import INK, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 9.0  # inches; with 100 points to the inch this is the width of a notebook's cell
POINT = 5  # points from the middle of a mark to its rim
DPI = 200  # twice that, for sharp prints

MISSING = "a picture of this needs matplotlib, which is not installed: pip install matplotlib"


@dataclass(frozen=True)
class Plot:
    """A plot; a notebook shows the picture, `print` the text.

    Attributes:
        title: a line.
        text: the facts as a table with bars.
        rows: the facts as data; each plot has its own kind.
        draw: draws it onto an empty figure.
        height: of the picture, in inches.

    Example:
        >>> import minitorch as mt
        >>> plot = mt.inspect.plot_traffic(mt.jit(lambda x: x.softmax(1)), mt.ones(256, 1000))
        >>> print(plot.title)
        Memory traffic of <lambda>: 8.2 MB node by node, 2.05 MB in 1 kernel (4.0 times less)
        >>> sorted(plot._repr_mimebundle_()[0])
        ['image/png', 'text/plain']
    """

    title: str
    text: str
    rows: tuple[Any, ...]
    draw: Callable[[Figure], None]
    height: float

    @cached_property
    def figure(self) -> Figure:
        """The picture as a matplotlib figure, to be changed or saved; pyplot does not manage it.

        Raises:
            ModuleNotFoundError: without matplotlib; the message says what to install.
        """
        try:
            from matplotlib import rc_context
            from matplotlib.figure import Figure
        except ModuleNotFoundError:
            raise ModuleNotFoundError(MISSING) from None
        figure = Figure(figsize=(WIDTH, self.height), dpi=DPI, layout="constrained", facecolor="none")
        with rc_context(STYLE):
            figure.suptitle(self.title, x=0.01, ha="left", fontsize=11, fontweight="bold")
            self.draw(figure)
        return figure

    @cached_property
    def png(self) -> bytes:
        """The picture as PNG; the same bytes whenever the rows are the same."""
        file = io.BytesIO()
        self.figure.savefig(file, format="png", metadata={"Software": None})
        return file.getvalue()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file; the ending says in which format (``.png``, ``.svg``, ``.pdf``)."""
        self.figure.savefig(path)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, int]]]:
        """The notebook's display: the picture at the width of a cell; without matplotlib the text."""
        try:
            return {"image/png": self.png, "text/plain": str(self)}, {"image/png": {"width": int(100 * WIDTH)}}
        except ModuleNotFoundError as error:
            return {"text/plain": f"{self}\n({error})"}, {}

    def __str__(self) -> str:
        return f"{self.title}\n{self.text}"

    __repr__ = __str__


def jitted(f: Any) -> Jitted[..., Any]:
    """The argument if it is a jitted function, else a jitted form of it."""
    return f if isinstance(f, Jitted) else jit(f)


def bar(*parts: tuple[float, str], most: float, width: int = 40) -> str:
    """A bar of characters: each part has a value and a character.

    Example:
        >>> bar((5, "#"), (2.5, "="), most=10, width=8)
        '####=='
        >>> bar((0.001, "#"), most=10)
        '#'
    """
    total, text = 0.0, ""
    for value, character in parts:
        total += value
        end = round(width * total / most) if most else 0
        text += character * max(end - len(text), int(value > 0 and not text))
    return text


def short(name: str, length: int) -> str:
    """A name of at most so many letters: long names are cut in the middle, lists at the end.

    Example:
        >>> short("k0_reduce_max_sub_exp", 12), short("exp", 12), short("k1_dot_add_sqrt then ...", 12)
        ('k0_reduc…exp', 'exp', 'k1_dot_add …')
    """
    if len(name) <= length:
        return name
    if name.endswith(("...", "…")):
        return f"{name[: length - 2].rstrip(' ,._…')} …"
    return f"{name[: length - 4]}…{name[-3:]}"


def duration(seconds: float) -> str:
    """A time in a readable unit.

    Example:
        >>> duration(3.3e-3), duration(4.539e-4), duration(12), duration(0)
        ('3.3 ms', '454 us', '12 s', '0 ns')
    """
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= 0.9995 * factor:
            value = seconds / factor
            return f"{value:.3g} {unit}" if value < 999.5 else f"{value:,.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def named(names: Sequence[str], most: int = 2) -> str:
    """The number of operations, with the most common names.

    Example:
        >>> named(["exp", "add", "exp"]), named("abcdef"), named(["exp"])
        ('3 operations: exp, add', '6 operations: a, b, …', 'exp')
    """
    found = [name for name, _ in Counter(names).most_common()]
    listed = ", ".join([*found[:most], *(["…"] if len(found) > most else [])])
    return listed if len(names) == 1 else f"{len(names)} operations: {listed}"


def plain_ticks(axis: Any, text: Callable[[float], str] = "{:g}".format) -> None:
    """Numbers along a logarithmic axis as people write them."""
    from matplotlib.ticker import LogLocator

    low, high = axis.get_view_interval()
    if high < 50 * low:  # else there may be one number, or none
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, _: text(value))
    axis.set_minor_formatter(lambda value, _: "")


def tidy(axes: Any) -> None:
    """The common style of all axes: no frame, small print."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.title.set_fontsize(9)
    axes.xaxis.label.set_fontsize(9)
    axes.yaxis.label.set_fontsize(9)


def legend(axes: Any, looks: Sequence[Mapping[str, Any]], columns: int, **style: Any) -> None:
    """A legend above the axes: a patch and its label in each of these looks."""
    from matplotlib.patches import Patch

    style |= {"loc": "lower left", "bbox_to_anchor": (0, 1), "frameon": False, "fontsize": 8}
    axes.legend(handles=[Patch(**look) for look in looks], ncols=columns, **style)


def write(axes: Any, x: float, y: float, text: str, **style: Any) -> None:
    """Text among the data, which takes no space of its own."""
    axes.text(x, y, text, **{"fontsize": 8, "color": INK, "va": "bottom", **style}).set_in_layout(False)


def place(axes: Any, labels: Sequence[tuple[float, float, str]], points: Sequence[tuple[float, float]]) -> None:
    """Write labels beside their points, such that none covers another one, a text that is there, a point or a line.

    Args:
        labels: each with its point.
        points: all of them, in the units of the axes.
    """
    from matplotlib.transforms import Bbox

    axes.figure.draw_without_rendering()  # which decides on the layout
    side = POINT * axes.figure.dpi / 72
    marks = axes.transData.transform(points) if points else ()
    taken = [Bbox([(x - side, y - side), (x + side, y + side)]) for x, y in marks]
    taken += [text.get_window_extent() for text in axes.texts if text.get_text()]
    for line in axes.lines:
        drawn = axes.transData.transform(line.get_xydata())
        pieces = pairwise(drawn) if line.get_linestyle() != "None" else ()
        taken += [Bbox([x, x]).padded(2) for begin, end in pieces for x in np.linspace(begin, end, 200)]
    places = [(across, along) for ring in range(20) for along in {9 * ring, -9 * ring} for across in (7, -7)]
    for x, y, name in labels:
        style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7, "va": "center", "annotation_clip": True}
        for offset in places:
            style |= {"xytext": offset, "ha": "left" if offset[0] > 0 else "right"}
            label = axes.annotate(name, (x, y), **style)
            box = label.get_window_extent()
            label.remove()
            if axes.bbox.containsx(box.x0) and axes.bbox.containsx(box.x1) and not box.count_overlaps(taken):
                break
        taken.append(box)
        line = {"arrowstyle": "-", "linewidth": 0.5, "color": INK, "shrinkA": 0, "shrinkB": POINT}
        axes.annotate(name, (x, y), arrowprops=line if offset[1] else None, **style).set_in_layout(False)


def footnote(figure: Figure, text: str) -> None:
    """A line at the foot: the source of the numbers."""
    figure.supxlabel(text, x=0.01, ha="left", fontsize=7.5)
