"""`explore`: the stops of a journey as a widget with a slider. Its appearance is in `static/explore.js` and `.css`.

The widget is given everything at once and asks for nothing afterwards, so it works without a kernel too, and no request
leaves the machine.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ..modes.looking_in.stages import Stages
from .colours import FAMILIES, KERNELS
from .journey import Stop, journey, union
from .layout import SHAPES, Box, Curve, lay_out, shortened
from .places import ADDED, REMOVED, REWRITTEN
from .scene import outlines
from .subjects import setting_of
from .svg import number

STATIC = Path(__file__).parent / "static"
EDGE = 16.0  # around the drawing
MOST_PLACES = 1000  # marks; raising it takes Graphviz long, and gives unreadable pictures

MISSING = (
    "the slider needs anywidget, which is not installed: pip install 'minitorch[viz]'. "
    "print(f.stages(*args)) lists what the passes did, and show() draws one graph"
)

# The legend of changes: a place is a value, whose operation may change.
LEGEND = (
    (ADDED, "added by this pass"),
    (REMOVED, "removed by it"),
    (REWRITTEN, "rewritten: the same numbers, by another operation or from other operands"),
)
HELP = (
    "The graph. Drag or arrow keys: move; plus and minus, or the wheel after a click: zoom; 0: all of it; "
    "n and p: the next node and the one before, with details."
)
FILLS = {family.name: family.colour for family in FAMILIES}


def explored(stages: Stages, fused: bool = True) -> Any:
    """The widget of `minitorch.inspect.explore`.

    Args:
        stages: the passes that were run.
        fused: whether to go on to the kernels.

    Raises:
        ModuleNotFoundError: without anywidget or pygraphviz; the message names the extra to install.
        ValueError: for a program that is too large to be looked at in this way.
    """
    try:
        import anywidget  # noqa: F401
    except ModuleNotFoundError:
        raise ModuleNotFoundError(MISSING) from None
    return _widget()(data=payload(journey(stages, fused, setting_of(stages.traced))))


@cache
def _widget() -> Any:
    """The class of the widget; its parent is not there before anywidget is imported."""
    import anywidget
    import traitlets

    class Explorer(anywidget.AnyWidget):  # type: ignore[misc, name-defined, unused-ignore]
        """A slider over the forms of a program."""

        _esm = STATIC / "explore.js"
        _css = STATIC / "explore.css"
        data = traitlets.Dict().tag(sync=True)
        position = traitlets.Int(0).tag(sync=True)

    return Explorer


def payload(stops: list[Stop]) -> dict[str, Any]:
    """The widget's data, as plain JSON-like values.

    ``places``, ``edges`` and ``kernels`` say what lies where, once; ``positions`` say what is seen of each: of a place
    the number of one of the ``marks``, or None; of an edge how it is drawn, or None.
    """
    drawing = union(stops)
    if len(drawing.marks) > MOST_PLACES:
        raise ValueError(
            f"the program has {len(drawing.marks):,} operations and values on its way; the slider shows "
            f"{MOST_PLACES:,} at most. Explore a part of it, such as one layer or one step of a loop; "
            "print(f.stages(*args)) lists the passes"
        )
    layout = lay_out(drawing)
    order = [mark.id for mark in drawing.marks]
    ways = [(arrow.tail, arrow.head) for arrow in drawing.arrows]
    clusters = [cluster for cluster in drawing.clusters if cluster.id in layout.clusters]
    first_kernel = len(stops) - len(drawing.clusters)
    marks: dict[tuple[Any, ...], int] = {}
    positions = [_position(stop, order, ways, layout.marks, marks) for stop in stops]
    kinds = dict.fromkeys(mark.kind for stop in stops for mark in stop.drawing.marks if mark.kind in FILLS)
    return {
        "size": [layout.width + 2 * EDGE, layout.height + 2 * EDGE],
        "places": [_box(layout.marks[id]) for id in order],
        "edges": [{"path": _path(curve)} for curve in layout.curves],
        "kernels": [
            {
                **_box(layout.clusters[cluster.id]),
                "title": cluster.title,
                "colour": KERNELS[cluster.kind][1],
                "position": first_kernel + at,
            }
            for at, cluster in enumerate(clusters)
        ],
        "marks": [dict(zip(MARK, row, strict=True)) for row in marks],
        "positions": positions,
        "legend": [{"change": change, "text": text} for change, text in LEGEND],
        "families": [{"colour": FILLS[kind], "text": kind} for kind in kinds],
        "help": HELP,
    }


MARK = ("kind", "colour", "outline", "label", "caption", "title", "change", "kernel")


def _position(
    stop: Stop,
    order: list[str],
    ways: list[tuple[str, str]],
    boxes: Any,
    marks: dict[tuple[Any, ...], int],
) -> dict[str, Any]:
    """One stop; marks that no stop before had are added to `marks`."""
    numbers = {cluster.id: at for at, cluster in enumerate(stop.drawing.clusters)}
    there: dict[str, int] = {}
    for mark in stop.drawing.marks:
        row = (
            mark.kind,
            FILLS.get(mark.kind, ""),
            _outline(mark.kind, boxes[mark.id]),
            shortened(stop.labels.get(mark.id, mark.heading)),
            mark.caption,
            mark.title,
            stop.changes.get(mark.id, "kept"),
            numbers.get(mark.cluster or ""),
        )
        there[mark.id] = marks.setdefault(row, len(marks))
    drawn = {
        (arrow.tail, arrow.head): "removed"
        if (arrow.tail, arrow.head) in stop.old
        else "added"
        if (arrow.tail, arrow.head) in stop.new
        else arrow.kind
        for arrow in stop.drawing.arrows
    }
    return {
        "title": stop.title,
        "doc": stop.doc,
        "summary": stop.summary,
        "facts": list(stop.facts),
        "lines": [_line(line, order, numbers) for line in stop.lines],
        "source": stop.source,
        "selected": stop.kernel,
        "kernels": bool(stop.drawing.clusters),
        "marks": [there.get(id) for id in order],
        "edges": [drawn.get(way) for way in ways],
    }


def _line(line: tuple[str, str, str], order: list[str], kernels: dict[str, int]) -> dict[str, Any]:
    """A line of the panel, and the place or kernel that it refers to."""
    change, text, id = line
    place = order.index(id) if id in order else None
    return {"change": change, "text": text, "place": place, "kernel": kernels.get(id)}


# Lengths as text --------------------------------------------------------------------------------------------


def _box(box: Box) -> dict[str, float]:
    return {
        "x": round(box.x + EDGE, 2),
        "y": round(box.y + EDGE, 2),
        "w": round(box.width, 2),
        "h": round(box.height, 2),
    }


def _outline(kind: str, box: Box) -> str:
    """The outline of a mark of a kind, around its middle, as SVG writes it."""
    parts = outlines(SHAPES.get(kind, "box"), Box(0.0, 0.0, box.width, box.height), "")
    return " ".join(
        f"{step[0]}{' '.join(number(float(each)) for each in step[1:])}" for part in parts for step in part.steps
    )


def _path(curve: Curve) -> str:
    start, *rest = [f"{number(x + EDGE)} {number(y + EDGE)}" for x, y in curve.points]
    tip = f"{number(curve.tip[0] + EDGE)} {number(curve.tip[1] + EDGE)}"
    return f"M{start}C{' '.join(rest)}L{tip}"
