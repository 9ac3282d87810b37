"""Layout: sizes by counting characters, positions by Graphviz, which pygraphviz brings along.

Graphviz measures and paints no text: it would use the fonts of the machine, and the same graph would come out
differently elsewhere. All text is monospaced, so its size is known. Lengths are in points, y goes down.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..colours import ROLES
from ..drawings.drawing import Arrow, Cluster, Drawing, Mark

MISSING = "the picture needs pygraphviz, which is not installed: pip install pygraphviz. The same as text is in .text"

SIZE, SMALL = 11.0, 9.5  # of the letters, in points
LETTER = 0.602  # the width of a monospaced letter, in units of its size
LINE = 1.25  # the height of a line, likewise
MARGIN = 7.0  # around the text of a mark
MOST_LETTERS = 32  # characters of a line in a mark; the tooltip has all

# Graphviz starts from the order of its input, and another order may give twice the width.
ORDERS = IN_ORDER, OPERATIONS_FIRST, BACKWARDS = "in order", "operations first", "backwards"
FITS = 740.0  # points; the width of a notebook's cell
MOST_TRIED = 300  # marks; larger drawings get one layout. Raising it tries more, which takes Graphviz longer

# The weight of arrows between operations, relative to those from inputs: it keeps the chain straight, which would be
# pushed aside by every input otherwise.
SPINE = 4

# With hundreds of marks, routing curves takes Graphviz minutes, and so does an optimal ranking.
MOST_CURVED = 200
CURVED, LARGE = "splines=true", "splines=line, nslimit=0.5, nslimit1=1, mclimit=0.3"

SHAPES = {role.name: role.shape for role in ROLES}
# The margins of an outline around its text:
WIDER = {"ellipse": 14.0, "octagon": 8.0, "note": 8.0, "parallelogram": 22.0}
HIGHER = {"cylinder": 8.0}

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle by its middle, its width and its height."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Curve:
    """An arrow's way: the points of Bézier curves, its tip, and where its label goes."""

    points: tuple[Point, ...]
    tip: Point
    label: Point | None


@dataclass(frozen=True)
class Positions:
    """The positions of a drawing's parts.

    Attributes:
        width, height: of the drawing.
        marks, clusters: boxes by `id`.
        curves: in the order of the drawing's arrows.
    """

    width: float
    height: float
    marks: Mapping[str, Box]
    clusters: Mapping[str, Box]
    curves: tuple[Curve, ...]


def shortened(text: str, most: int = MOST_LETTERS) -> str:
    """A text of at most so many letters; names with dots lose their beginning, others their end.

    Example:
        >>> shortened("add(%1, %2)"), shortened("add(%1, %2)", 6), shortened("layers.0.weight", 9)
        ('add(%1, %2)', 'add(%…', '…0.weight')
    """
    if len(text) <= most:
        return text
    is_path = "." in text and text.replace(".", "").replace("_", "").isalnum()
    return f"…{text[len(text) - most + 1 :]}" if is_path else f"{text[: most - 1]}…"


def lines_of(mark: Mark) -> tuple[str, str]:
    """The two lines of text in a mark."""
    return shortened(mark.heading), shortened(mark.caption, MOST_LETTERS + 4)


def text_width(text: str, size: float) -> float:
    """The width of a line."""
    return len(text) * LETTER * size


def size_of(mark: Mark) -> tuple[float, float]:
    """Width and height of a mark."""
    first, second = lines_of(mark)
    shape = SHAPES.get(mark.kind, "box")
    width = max(text_width(first, SIZE), text_width(second, SMALL), 30.0) + 2 * MARGIN + WIDER.get(shape, 0.0)
    height = LINE * SIZE + (LINE * SMALL if second else 0.0) + MARGIN + HIGHER.get(shape, 0.0)
    return round(width), round(height)


def _space(text: str, size: float) -> str:
    """Room for a line of text, as an empty table, so that Graphviz measures no text."""
    width, height = round(text_width(text, size) + 6), round(size * LINE)
    return f'<<TABLE BORDER="0" FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="{height}"><TR><TD></TD></TR></TABLE>>'


def _node(mark: Mark) -> str:
    width, height = size_of(mark)
    shape = "ellipse" if SHAPES.get(mark.kind) == "ellipse" else "box"  # where arrows end
    return f'"{mark.id}" [shape={shape}, width={width / 72:.4f}, height={height / 72:.4f}]'


def _edge(number: int, arrow: Arrow, is_spine: bool) -> str:
    label = f", label={_space(arrow.label, SMALL)}" if arrow.label else ""
    weight = f", weight={SPINE}" if is_spine else ""
    return f'"{arrow.tail}" -> "{arrow.head}" [comment="{number}"{label}{weight}]'


def _cluster(cluster: Cluster, marks: list[Mark]) -> str:
    rows = "; ".join(f'"{mark.id}"' for mark in marks)
    return f'subgraph "cluster_{cluster.id}" {{ label={_space(cluster.title, SIZE)}; margin=10; {rows} }}'


def dot(drawing: Drawing, order: str = ORDERS[0]) -> str:
    """The drawing in Graphviz's language: sizes, no text; `order` is one of `ORDERS`."""
    operations = {mark.id for mark in drawing.marks if mark.kind not in SHAPES}
    inside: dict[str | None, list[Mark]] = {}
    for mark in drawing.marks:
        inside.setdefault(mark.cluster, []).append(mark)
    style = CURVED if len(drawing.marks) <= MOST_CURVED else LARGE
    marks = list(drawing.marks)
    if order == OPERATIONS_FIRST:
        marks.sort(key=lambda mark: mark.id not in operations)
    elif order == BACKWARDS:
        marks.reverse()
    lines = [
        f"graph [rankdir=TB, nodesep=0.22, ranksep=0.32, pad=0, {style}]",
        'node [label="", fixedsize=true]',
        "edge [arrowsize=0.6]",
        *(_node(mark) for mark in marks),
        *(_cluster(cluster, inside.get(cluster.id, [])) for cluster in drawing.clusters),
        *(_edge(number, arrow, arrow.tail in operations) for number, arrow in enumerate(drawing.arrows)),
    ]
    return "digraph {\n" + "\n".join(f"  {line};" for line in lines) + "\n}\n"


def _graphviz(text: str) -> Any:
    """Graphviz's result for a text, as data."""
    try:
        import pygraphviz
    except ModuleNotFoundError:
        raise ModuleNotFoundError(MISSING) from None
    graph = pygraphviz.AGraph(string=text)
    try:
        return json.loads(graph.draw(format="json0", prog="dot"))
    finally:
        graph.close()


def _bounds(found: Any) -> tuple[float, ...]:
    return tuple(map(float, found["bb"].split(",")))


def _narrowest(drawing: Drawing, orders: int) -> Any:
    """Graphviz's result in the first order that fits, or in the narrowest."""
    best, width = None, float("inf")
    for order in ORDERS[: orders if len(drawing.marks) <= MOST_TRIED else 1]:
        found = _graphviz(dot(drawing, order))
        left, _, right, _ = _bounds(found)
        if right - left < width:
            best, width = found, right - left
        if width <= FITS:
            break
    return best


def lay_out(drawing: Drawing, orders: int = len(ORDERS)) -> Positions:
    """Compute the positions of a drawing's parts.

    Args:
        orders: how many of `ORDERS` are tried where the first one is too wide.

    Raises:
        ModuleNotFoundError: without pygraphviz; the message names the extra to install.
    """
    found = _narrowest(drawing, orders)
    left, low, right, high = _bounds(found)

    def point(text: str) -> Point:
        x, y = map(float, text.split(","))
        return round(x - left, 2), round(high - y, 2)

    marks: dict[str, Box] = {}
    clusters: dict[str, Box] = {}
    for item in found.get("objects", ()):
        if item["name"].startswith("cluster_"):
            a, b, c, d = map(float, item["bb"].split(","))
            x, y = point(f"{(a + c) / 2},{(b + d) / 2}")
            clusters[item["name"].removeprefix("cluster_")] = Box(x, y, round(c - a, 2), round(d - b, 2))
        else:
            x, y = point(item["pos"])
            marks[item["name"]] = Box(x, y, float(item["width"]) * 72, float(item["height"]) * 72)
    curves: dict[int, Curve] = {}
    for item in found.get("edges", ()):
        tip, *points = item["pos"].split()  # "e,x,y x,y x,y ...": the tip, then the curve
        label = point(item["lp"]) if "lp" in item else None
        curves[int(item["comment"])] = Curve(tuple(map(point, points)), point(tip.removeprefix("e,")), label)
    return Positions(right - left, high - low, marks, clusters, tuple(curves[number] for number in sorted(curves)))
