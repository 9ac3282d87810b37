"""`Scene`: a drawing with its layout, as outlines and lines of text, which `svg` and `png` write.

It has no ground, as plots have none: ink is legible on light and dark pages, and letters on fills are black.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..colours import BLACK, ERRORS, FAMILIES, INK, KERNELS, ROLES, WHITE
from ..drawings.drawing import INSIDE, LOOP, MEMORY, MODULE, VALUE, Arrow, Cluster, Drawing, Mark
from .layout import LETTER, LINE, SHAPES, SIZE, SMALL, Box, Curve, Point, Positions, lines_of, text_width

EDGE = 12.0  # around the whole picture
NARROWEST = 360.0
FILLS = {each.name: each.colour for each in (*FAMILIES, *ROLES, *ERRORS)} | {
    kind: row[1] for kind, row in KERNELS.items()
}
# The width and the dashes of arrows: memory traffic stands out.
STROKES: dict[str, tuple[float, tuple[float, ...]]] = {VALUE: (1.0, ()), INSIDE: (1.0, ()), MEMORY: (2.4, ())}
CLUSTER_DASHES = (5.0, 3.0)
ROUND = 4.0  # the corners of an operation


@dataclass(frozen=True, slots=True)
class Outline:
    """A line or an area: steps ``("M", x, y)``, ``("L", x, y)``, ``("C", x1, y1, x2, y2, x, y)`` and ``("Z",)``."""

    steps: tuple[tuple[str | float, ...], ...]
    fill: str = ""
    stroke: str = INK
    width: float = 1.0
    dashes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text; `x` is its middle, or its beginning unless `centred`; `y` is its base line."""

    x: float
    y: float
    text: str
    size: float
    colour: str = BLACK
    bold: bool = False
    centred: bool = True


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of a scene that share a tooltip."""

    name: str
    title: str
    parts: tuple[Outline | Line, ...]


@dataclass(frozen=True)
class Scene:
    """All outlines and lines of a picture, from back to front."""

    width: float
    height: float
    title: str
    groups: tuple[Group, ...] = field(default=())


def _polygon(points: Sequence[Point]) -> tuple[tuple[str | float, ...], ...]:
    (x, y), *rest = points
    return ("M", x, y), *(("L", *point) for point in rest), ("Z",)


def _rounded(x: float, y: float, w: float, h: float, r: float) -> tuple[tuple[str | float, ...], ...]:
    k = r * 0.45
    return (
        ("M", x + r, y), ("L", x + w - r, y), ("C", x + w - k, y, x + w, y + k, x + w, y + r),
        ("L", x + w, y + h - r), ("C", x + w, y + h - k, x + w - k, y + h, x + w - r, y + h),
        ("L", x + r, y + h), ("C", x + k, y + h, x, y + h - k, x, y + h - r),
        ("L", x, y + r), ("C", x, y + k, x + k, y, x + r, y), ("Z",),
    )  # fmt: skip


def _ellipse(box: Box) -> tuple[tuple[str | float, ...], ...]:
    x, y, a, b = box.x, box.y, box.width / 2, box.height / 2
    p, q = a * 0.5523, b * 0.5523  # the usual approximation of a quarter by one cubic
    return (
        ("M", x - a, y), ("C", x - a, y - q, x - p, y - b, x, y - b), ("C", x + p, y - b, x + a, y - q, x + a, y),
        ("C", x + a, y + q, x + p, y + b, x, y + b), ("C", x - p, y + b, x - a, y + q, x - a, y), ("Z",),
    )  # fmt: skip


def outlines(shape: str, box: Box, fill: str, double: bool = False) -> tuple[Outline, ...]:
    """The outline of a mark, without its text."""
    w, h = box.width, box.height
    x, y = box.x - w / 2, box.y - h / 2
    if shape == "ellipse":
        return (Outline(_ellipse(box), fill),)
    if shape == "octagon":
        c = min(9.0, h / 3)
        corners = [(x + c, y), (x + w - c, y), (x + w, y + c), (x + w, y + h - c),
                   (x + w - c, y + h), (x + c, y + h), (x, y + h - c), (x, y + c)]  # fmt: skip
        return (Outline(_polygon(corners), fill, width=1.8),)
    if shape == "parallelogram":
        s = 14.0
        return (Outline(_polygon([(x + s, y), (x + w, y), (x + w - s, y + h), (x, y + h)]), fill, width=1.8),)
    if shape == "note":
        c = 8.0
        body = _polygon([(x, y), (x + w - c, y), (x + w, y + c), (x + w, y + h), (x, y + h)])
        return Outline(body, fill), Outline((("M", x + w - c, y), ("L", x + w - c, y + c), ("L", x + w, y + c)))
    if shape == "cylinder":
        b = 4.5  # half the height of the lid
        k = b * 1.33
        lid = ("C", x, y + b + k, x + w, y + b + k, x + w, y + b)
        body = (
            ("M", x, y + b), ("C", x, y + b - k, x + w, y + b - k, x + w, y + b), ("L", x + w, y + h - b),
            ("C", x + w, y + h - b + k, x, y + h - b + k, x, y + h - b), ("Z",),
        )  # fmt: skip
        return Outline(body, fill), Outline((("M", x, y + b), lid))
    plain = Outline(_rounded(x, y, w, h, ROUND), fill)
    behind = Outline(_rounded(x + 3, y + 3, w, h, ROUND), WHITE)
    return (behind, plain) if double else (plain,)


def _mark(mark: Mark, box: Box) -> Group:
    shape = SHAPES.get(mark.kind, "box")
    first, second = lines_of(mark)
    middle = box.y + (4.0 if shape == "cylinder" else 0.0)
    texts = [Line(box.x, middle + SIZE * 0.35, first, SIZE)]
    if second:
        top = middle - (SIZE + SMALL) * LINE / 2
        texts = [
            Line(box.x, top + SIZE * 0.98, first, SIZE),
            Line(box.x, top + SIZE * LINE + SMALL * 0.95, second, SMALL),
        ]
    return Group(mark.id, mark.title, (*outlines(shape, box, FILLS[mark.kind], mark.count > 1), *texts))


def _arrow(number: int, arrow: Arrow, curve: Curve) -> Group:
    width, dashes = STROKES[arrow.kind]
    (x, y), *rest = curve.points
    triples = zip(*[iter(rest)] * 3, strict=True)
    path = Outline((("M", x, y), *(("C", *a, *b, *c) for a, b, c in triples)), "", INK, width, dashes)
    (fx, fy), (tx, ty) = curve.points[-1], curve.tip
    length = max(((tx - fx) ** 2 + (ty - fy) ** 2) ** 0.5, 0.01)
    half = 2.6 + width / 2
    dx, dy = -(ty - fy) / length * half, (tx - fx) / length * half
    tip = Outline(_polygon([(fx + dx, fy + dy), (tx, ty), (fx - dx, fy - dy)]), INK, INK, 0.5)
    label = [Line(curve.label[0], curve.label[1] + SMALL * 0.35, arrow.label, SMALL, INK)] if curve.label else []
    title = "\n".join(text for text in (arrow.label, arrow.detail) if text)
    return Group(f"a{number}", title, (path, tip, *label))


def _cluster(cluster: Cluster, box: Box) -> tuple[Group, Group]:
    """The frame, which lies behind the arrows, and the title, which lies before them."""
    colour = KERNELS[cluster.kind][1] if cluster.kind in KERNELS else INK
    x, y = box.x - box.width / 2, box.y - box.height / 2
    frame = Outline(_rounded(x, y, box.width, box.height, 8.0), "", colour, 2.0, CLUSTER_DASHES)
    title = "\n".join([cluster.title, *(f"{name}: {value}" for name, value in cluster.details)])
    half = text_width(cluster.title, SIZE) / 2 + 4
    label = Outline(_rounded(box.x - half, y + 4, 2 * half, SIZE * 1.5, 2.0), colour, colour)
    text = Line(box.x, y + 6 + SIZE, cluster.title, SIZE, bold=True)
    return Group(cluster.id, title, (frame,)), Group(f"{cluster.id}-title", title, (label, text))


FRAMES = {MODULE: ("module", "one call of it"), LOOP: ("body", "what a loop repeats, or a branch")}


def _legend(drawing: Drawing, width: float, top: float) -> tuple[list[Group], float]:
    """The legend of the kinds that occur, in rows, and the y coordinate of its end."""
    present = {mark.kind for mark in drawing.marks}
    shown = [(each.name, each.doc, each.colour) for each in (*FAMILIES, *ROLES, *ERRORS) if each.name in present]
    shown += [
        (f"{kind} {name}", "a class of kernels", colour) for kind, (name, colour) in KERNELS.items() if kind in present
    ]
    entries: list[tuple[str, str, list[Outline], float]] = []
    for name, doc, colour in shown:
        shape = SHAPES.get(name, "box")
        entries.append((name, doc, list(outlines(shape, Box(14.0, 0.0, 28.0, 16.0), colour)), 28.0))
    if any(mark.count > 1 and mark.kind not in SHAPES for mark in drawing.marks):
        stack = list(outlines("box", Box(14.0, 0.0, 28.0, 14.0), WHITE, double=True))
        entries.append(("several together", "coloured as most of their work", stack, 28.0))
    if any(arrow.kind == MEMORY for arrow in drawing.arrows):
        thick = [Outline((("M", 0.0, 0.0), ("L", 28.0, 0.0)), "", INK, STROKES[MEMORY][0])]
        entries.append(("through memory", "bytes that a kernel reads", thick, 28.0))
    if drawing.clusters:
        frame = [Outline(_rounded(0.0, -8.0, 28.0, 16.0, 4.0), "", INK, 1.5, CLUSTER_DASHES)]
        frames = [FRAMES.get(each.kind, ("kernel", "run as one: no memory in between")) for each in drawing.clusters]
        entries += [(name, doc, frame, 28.0) for name, doc in dict.fromkeys(frames)]
    groups, x, y = [], EDGE, top + 10
    for name, doc, parts, wide in entries:
        length = wide + 6 + text_width(name, SMALL)
        if x > EDGE and x + length > width - EDGE:
            x, y = EDGE, y + 22
        moved = tuple(_moved(part, x, y) for part in parts)
        line = Line(x + wide + 6, y + SMALL * 0.35, name, SMALL, INK, centred=False)
        groups.append(Group(f"legend-{name.split(',')[0].replace(' ', '-')}", doc, (*moved, line)))
        x += length + 16
    return groups, y + 14 if entries else top


def _moved(outline: Outline, dx: float, dy: float) -> Outline:
    shift = (dx, dy)
    steps = tuple(
        (step[0], *(float(number) + shift[place % 2] for place, number in enumerate(step[1:])))
        for step in outline.steps
    )
    return Outline(steps, outline.fill, outline.stroke, outline.width, outline.dashes)


def wrapped(text: str, width: float, size: float) -> Iterator[str]:
    """A text in lines of limited length, broken at spaces."""
    most, line = max(int(width / (LETTER * size)), 12), ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > most:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    if line:
        yield line


def scene(drawing: Drawing, layout: Positions) -> Scene:
    """Paint a drawing: its title, clusters, arrows, marks, then a legend of what occurs in it, and its notes."""
    width = max(layout.width + 2 * EDGE, NARROWEST)
    head = [Line(EDGE, EDGE + SIZE, drawing.title, SIZE, INK, bold=True, centred=False)]
    y = EDGE + SIZE + 4
    for note in drawing.notes:
        for line in wrapped(note, width - 2 * EDGE, SMALL):
            y += SMALL * LINE + 1
            head.append(Line(EDGE, y, line, SMALL, INK, centred=False))
    dx, dy = (width - layout.width) / 2, y + 10

    def box(at: Box) -> Box:
        return Box(at.x + dx, at.y + dy, at.width, at.height)

    def curve(at: Curve) -> Curve:
        points = tuple((x + dx, y + dy) for x, y in (*at.points, at.tip))
        return Curve(points[:-1], points[-1], (at.label[0] + dx, at.label[1] + dy) if at.label else None)

    groups = [Group("heading", "", tuple(head))]
    clusters = [
        _cluster(each, box(layout.clusters[each.id])) for each in drawing.clusters if each.id in layout.clusters
    ]
    groups += [behind for behind, _ in clusters]
    groups += [
        _arrow(number, arrow, curve(at))
        for number, (arrow, at) in enumerate(zip(drawing.arrows, layout.curves, strict=True))
    ]
    groups += [before for _, before in clusters]
    groups += [_mark(mark, box(layout.marks[mark.id])) for mark in drawing.marks]
    legend, bottom = _legend(drawing, width, dy + layout.height + 12)
    return Scene(width, bottom + EDGE / 2, drawing.title, (*groups, *legend))
