"""`explore`: the stops of a journey as a widget with a slider. Its appearance is in `static/explore.js` and `.css`.

The widget is given everything at once and asks for nothing afterwards, so it works without a kernel too, and no request
leaves the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from minitorch.modes.ways_in.stages import Stages

from ..colours import FAMILIES, KERNELS
from ..drawings.drawing import Mark
from ..drawings.subjects import setting_of
from ..drawings.summary import together
from ..painting.layout import SHAPES, Box, Curve, Positions, shortened, size_of
from ..painting.scene import outlines
from ..painting.svg import number
from .boxes import Group, box_mark, flat, folded, key_of, laid_out, marks_inside, port_id
from .correspondence import ADDED, CHANGES, REMOVED, REWRITTEN
from .journey import Stop, journey, union

STATIC = Path(__file__).parents[1] / "static"
EDGE = 16.0  # around the drawing
MOST_FLAT = 200  # marks that are drawn side by side; raising it gives unreadable pictures
MOST_SOURCES = 3  # lines of the program, in the details of a box
MOST_PLACES = 20_000  # marks in boxes; raising it lets the reader wait for minutes, and the browser hold gigabytes

MISSING = (
    "the slider needs anywidget, which is not installed: pip install anywidget. "
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
HELP_BOXES = (
    "A box with a double outline stands for several operations: a click or Enter opens it, and closes it again. "
    "The field for searching finds nodes by name, operation and line, and opens the boxes on the way."
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

    ``groups`` say what lies where, once: the first one is the whole drawing, the others are boxes in it, each laid out
    by itself. ``forms`` say what is seen of it: of a place the number of one of the ``marks``, or None; of a box the
    number of one of the ``boxes``, or None; of an edge how it is drawn, or None. ``positions`` are those of the slider,
    each with the number of its form.

    Raises:
        ValueError: for a program that is too large to be looked at in this way.
    """
    drawing = union(stops)
    if len(drawing.marks) > MOST_PLACES:
        raise ValueError(
            f"the program has {len(drawing.marks):,} operations and values on its way; the slider shows "
            f"{MOST_PLACES:,} at most. Explore a part of it, such as one layer or one step of a loop; "
            "print(f.stages(*args)) lists the passes"
        )
    is_large = len(drawing.marks) > MOST_FLAT
    order = {mark.id: place for place, mark in enumerate(drawing.marks)}
    ways = [(arrow.tail, arrow.head) for arrow in drawing.arrows]
    seen = list({id(stop.drawing): stop for stop in reversed(stops)}.values())[::-1]
    paths = stops[0].paths
    if not is_large:  # loops alone are boxes
        paths = {id: path[-1:] for id, path in paths.items() if path[-1][0].endswith("/")}
    groups = folded(drawing, paths, is_large) if is_large or paths else flat(drawing)
    marks: dict[tuple[Any, ...], int] = {}
    boxes: dict[tuple[Any, ...], int] = {}
    forms = [
        _form(stop, list(order), ways, {mark.id: Box(0, 0, *size_of(mark)) for mark in drawing.marks}, marks)
        for stop in seen
    ]
    inside = marks_inside(groups)
    largest: dict[int, Mark] = {}  # each box with the longest of its texts
    for stop, form in zip(seen, forms, strict=True):
        form["groups"] = [
            _box_at(stop, groups[at], ids, boxes, largest, at) if at else None for at, ids in enumerate(inside)
        ]
    layouts = laid_out(groups, drawing, largest)
    first_kernel = len(stops) - len(drawing.clusters)
    number = {id(stop.drawing): at for at, stop in enumerate(seen)}
    kinds = dict.fromkeys(mark.kind for stop in seen for mark in stop.drawing.marks if mark.kind in FILLS)
    return {
        "groups": [_group(group, layout, order) for group, layout in zip(groups, layouts, strict=True)],
        "edges": len(ways),
        "kernels": [
            {
                **(_box(layouts[0].clusters[cluster.id]) if cluster.id in layouts[0].clusters else {}),
                "title": cluster.title,
                "colour": KERNELS[cluster.kind][1],
                "position": first_kernel + at,
            }
            for at, cluster in enumerate(drawing.clusters)
        ],
        "marks": [dict(zip(MARK, row, strict=True)) for row in marks],
        "boxes": [dict(zip(BOX, row, strict=True)) for row in boxes],
        "forms": forms,
        "positions": [{**_position(stop, order), "form": number[id(stop.drawing)]} for stop in stops],
        "legend": [{"change": change, "text": text} for change, text in LEGEND],
        "families": [{"colour": FILLS[kind], "text": kind} for kind in kinds],
        "help": f"{HELP} {HELP_BOXES}" if len(groups) > 1 else HELP,
    }


def _group(group: Group, layout: Positions, order: Mapping[str, int]) -> dict[str, Any]:
    """One box: its parts, and the edges between them."""
    items: list[dict[str, Any]] = []
    numbers: dict[str, int] = {}

    def add(id: str, what: dict[str, Any]) -> None:
        numbers[id] = len(items)
        items.append({**what, **_box(layout.marks[id])})

    for member in group.members:
        add(key_of(member), {"place": order[member]} if isinstance(member, str) else {"group": member})
    for at, ((is_source, outer), label) in enumerate(group.ports.items()):
        to = None if outer is None else {"place": order[outer]} if isinstance(outer, str) else {"group": outer}
        add(port_id(at), {"port": f"{'from' if is_source else 'to'} {label}", "to": to})
    return {
        "label": group.label,
        "parent": group.parent,
        "size": [layout.width + 2 * EDGE, layout.height + 2 * EDGE],
        "items": items,
        "edges": [
            {"tail": numbers[tail], "head": numbers[head], "points": _points(curve), "of": of}
            for ((tail, head), of), curve in zip(group.ways.items(), layout.curves, strict=True)
        ],
    }


def _box_at(
    stop: Stop,
    group: Group,
    ids: frozenset[str],
    boxes: dict[tuple[Any, ...], int],
    largest: dict[int, Mark],
    number: int,
) -> int | None:
    """A folded box at one stop; None if nothing is in it."""
    there = [mark for mark in stop.drawing.marks if mark.id in ids]
    work = [mark for mark in there if mark.kind in FILLS]
    if not there:
        largest.setdefault(number, box_mark(number, group.label, ""))
        return None
    mark = together(group.label, work or there, "")
    counts = Counter(change for each in there if (change := stop.changes.get(each.id)))
    told = [f"{counts[change]} {change}" for change in CHANGES if counts[change]]
    change = next(iter(counts)) if len(counts) == 1 else REWRITTEN if counts else "kept"
    badge = " ".join(f"{SIGNS[change]}{counts[change]}" for change in CHANGES if counts[change])
    known = [f"{name}: {value}" for name, value in mark.details if name not in ("shapes", "lines")]
    lines = list(dict.fromkeys(f"{each.source}  {each.code}" for each in work if each.source))
    known += lines[:MOST_SOURCES] + (
        [f"and {len(lines) - MOST_SOURCES} more lines"] if len(lines) > MOST_SOURCES else []
    )
    title = "\n".join([group.label, *known, *([f"changed here: {', '.join(told)}"] if told else [])])
    best = largest.setdefault(number, box_mark(number, group.label, mark.caption))
    if len(mark.caption) > len(best.caption):
        largest[number] = replace(best, caption=mark.caption)
    row = (FILLS.get(mark.kind, ""), shortened(group.label), mark.caption, title, change, badge)
    return boxes.setdefault(row, len(boxes))


MARK = ("kind", "colour", "outline", "label", "caption", "title", "change", "kernel")
BOX = ("colour", "label", "caption", "title", "change", "badge")
SIGNS = {ADDED: "+", REMOVED: "−", REWRITTEN: "~"}


def _form(
    stop: Stop,
    order: list[str],
    ways: list[tuple[str, str]],
    boxes: Any,
    marks: dict[tuple[Any, ...], int],
) -> dict[str, Any]:
    """What is seen at a stop; marks that no stop before had are added to `marks`."""
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
        "kernels": bool(stop.drawing.clusters),
        "marks": [there.get(id) for id in order],
        "edges": [drawn.get(way) for way in ways],
    }


def _position(stop: Stop, order: Mapping[str, int]) -> dict[str, Any]:
    """What the panel at the side says at a stop."""
    numbers = {cluster.id: at for at, cluster in enumerate(stop.drawing.clusters)}
    return {
        "title": stop.title,
        "doc": stop.doc,
        "summary": stop.summary,
        "facts": list(stop.facts),
        "lines": [_line(line, order, numbers) for line in stop.lines],
        "source": stop.source,
        "selected": stop.kernel,
    }


def _line(line: tuple[str, str, str], order: Mapping[str, int], kernels: dict[str, int]) -> dict[str, Any]:
    """A line of the panel, and the place or kernel that it refers to."""
    change, text, id = line
    return {"change": change, "text": text, "place": order.get(id), "kernel": kernels.get(id)}


# Lengths as text --------------------------------------------------------------------------------------------


def _box(box: Box) -> dict[str, float]:
    return {
        "x": round(box.x + EDGE, 2),
        "y": round(box.y + EDGE, 2),
        "w": round(box.width, 2),
        "h": round(box.height, 2),
    }


def _outline(kind: str, box: Box) -> str:
    return _outlined(SHAPES.get(kind, "box"), box.width, box.height)


@cache
def _outlined(shape: str, width: float, height: float) -> str:
    """The outline of a mark, around its middle, as SVG writes it."""
    parts = outlines(shape, Box(0.0, 0.0, width, height), "")
    return " ".join(
        f"{step[0]}{' '.join(number(float(each)) for each in step[1:])}" for part in parts for step in part.steps
    )


def _points(curve: Curve) -> list[float]:
    """The points of Bézier curves, then the tip, coordinate by coordinate."""
    return [round(each + EDGE, 1) for point in (*curve.points, curve.tip) for each in point]
