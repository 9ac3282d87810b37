"""Folding: a drawing of thousands of marks as boxes in boxes, each of which is laid out by itself.

Operations are grouped by the calls of modules that they are a part of, gradients inside a box for the backward pass,
everything else by the line that asked for it. Boxes that would still be too full are divided in program order. An open
box shows its own marks and boxes, and a *port* for each neighbour outside of it that values come from or go to.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..colours import CONSTANT, INPUT, OTHER, OUTPUT, PARAMETER, ROLES, UPDATE
from ..drawings.drawing import Arrow, Drawing, Mark
from ..drawings.scopes import Nesting
from ..painting.layout import Box, Curve, Positions, lay_out

MOST_MEMBERS = 40  # of a box; raising it makes an open box too large to be read, and Graphviz slow
MOST_NEIGHBOURS = 12  # of a mark that connects others; what has more, such as a learning rate, belongs to all of them
FEW_MEMBERS = 10  # of a box for what belongs together; raising it makes fewer boxes of several such parts
MOST_PORTS = 8  # of a box in one direction; raising it tells more neighbours apart, and makes an open box wider
GAP = 16.0  # points between marks of a row
WIDE = 1100.0  # points; what is wider stands in several rows
ROW = 30.0  # points between rows
FEWEST_MEMBERS = 3  # of a line of the program that gets a box
PORT = "port"
_VALUES = {role.name for role in ROLES}


@dataclass
class Group:
    """A box: marks and further boxes.

    Attributes:
        label: its name.
        parent: the number of the box that it lies in; None for the outermost one.
        members: marks by `id`, and numbers of boxes, in program order.
        ports: neighbours outside, by whether values come from them: as a member of the box where both are, or None if
            there are too many of them to be told apart.
        ways: arrows inside, each with the numbers of the drawing's arrows that it stands for.
    """

    label: str
    parent: int | None
    members: list[str | int] = field(default_factory=list)
    ports: dict[tuple[bool, str | int | None], str] = field(default_factory=dict)
    ways: dict[tuple[str, str], list[int]] = field(default_factory=dict)


def key_of(member: str | int) -> str:
    """The id of a member in the layout of its box."""
    return member if isinstance(member, str) else f"g{member}"


def port_id(number: int) -> str:
    """The id of a port in the layout of its box."""
    return f"port{number}"


def folded(drawing: Drawing, paths: Mapping[str, Nesting], by_line: bool = True) -> list[Group]:
    """The boxes of a drawing, the outermost first, without their layout.

    Args:
        paths: the groups of each mark that has some, by its `id`.
        by_line: whether others are grouped by the line of the program.

    Example:
        >>> from minitorch.graph import Graph
        >>> from minitorch_inspect.drawings.graphs import of_graph
        >>> nodes = " ".join(f"%{n + 1} = neg(%{n})" for n in range(99))
        >>> drawing = of_graph(Graph.parse(f"graph(x: f32[2]): %0 = exp(x) {nodes} return %99"))
        >>> boxes = folded(drawing, {"n0": (("a", "first"),), "n1": (("a", "first"),)})
        >>> [(box.label, len(box.members)) for box in boxes]
        [('', 6), ('first', 2), ('1 of 3', 33), ('2 of 3', 33), ('3 of 3', 32)]
        >>> boxes[1].ways, [name for name in boxes[1].ports.values()]
        ({('n0', 'n1'): [1], ('port0', 'n0'): [0], ('n1', 'port1'): [2]}, ['x', '1 of 3'])
    """
    groups = [Group("", None)]
    number: dict[tuple[str, ...], int] = {(): 0}
    for id, path in _complete(drawing, paths, by_line).items():
        at: tuple[str, ...] = ()
        for step, name in path:
            outer, at = number[at], (*at, step)
            if at not in number:
                number[at] = len(groups)
                groups[outer].members.append(len(groups))
                groups.append(Group(name, outer))
        groups[number[at]].members.append(id)
    _chains(groups)
    for place in range(len(groups)):
        _divide(groups, place, drawing)
    kept = _in_order(groups)
    _connect(kept, drawing)
    return kept


def _complete(drawing: Drawing, paths: Mapping[str, Nesting], by_line: bool) -> dict[str, Nesting]:
    """A path for every mark, in program order: of values, that of the first user or of the producer.

    Operations that several kernels compute, each for itself, are marks with the same beginning of their ids.
    """
    users: dict[str, list[str]] = {}
    makers: dict[str, list[str]] = {}
    for arrow in drawing.arrows:
        users.setdefault(arrow.tail, []).append(arrow.head)
        makers.setdefault(arrow.head, []).append(arrow.tail)
    found: dict[str, Nesting] = {}
    lines: dict[str, list[Mark]] = {}
    for mark in drawing.marks:
        if by_line and mark.kind not in _VALUES and mark.id not in paths and "." not in mark.id:
            lines.setdefault(mark.source, []).append(mark)
    for source, marks in lines.items():
        line: Nesting = ((f"l{source}", marks[0].code or source),) if len(marks) >= FEWEST_MEMBERS and source else ()
        found |= {mark.id: line for mark in marks}
    found |= {mark.id: paths[mark.id] for mark in drawing.marks if mark.id in paths}
    for mark in drawing.marks:
        if "/" in mark.id:  # in the body of a loop
            continue
        if mark.kind in (PARAMETER.name, CONSTANT.name):
            found[mark.id] = next((found[user] for user in users.get(mark.id, ()) if user in found), ())
        elif mark.kind == UPDATE.name:
            found[mark.id] = next((found[maker] for maker in makers.get(mark.id, ()) if maker in found), ())
        elif mark.kind in (INPUT.name, OUTPUT.name):
            found[mark.id] = ()
    order = {mark.id: number for number, mark in enumerate(drawing.marks)}
    bases = {id: id.partition(".")[0] for id in order}
    again = {id: base if base in order else id for id, base in bases.items()}
    ids = sorted(order, key=lambda each: (order[again[each]], order[each]))
    return {id: found.get(again[id], ()) for id in ids}


def _chains(groups: list[Group]) -> None:
    """A box that holds nothing but another box is left out."""
    for at in range(len(groups) - 1, 0, -1):
        group = groups[at]
        if len(group.members) == 1 and isinstance(inner := group.members[0], int) and group.parent is not None:
            outer = groups[group.parent]
            outer.members[outer.members.index(at)] = inner
            groups[inner].parent, group.parent, group.members = group.parent, None, []
            groups[inner].label = groups[inner].label if " · " in groups[inner].label else group.label


def _divide(groups: list[Group], at: int, drawing: Drawing) -> None:
    """A box with too many members gets boxes for those that belong together, or else that follow one another."""
    members = groups[at].members
    marks = {mark.id: mark for mark in drawing.marks}
    loose = [each for each in members if isinstance(each, str) and not (at == 0 and marks[each].kind in _VALUES)]
    if len(members) <= MOST_MEMBERS or len(loose) <= len(members) / 2:
        return
    parts = [part for chain in _chained(loose, drawing) for part in _cut(chain)]
    packed: list[list[str]] = []
    for part in parts:  # short chains share a box, and others where there would be too many boxes
        small = packed and (min(len(part), len(packed[-1])) < FEW_MEMBERS or len(parts) > 2 * MOST_MEMBERS)
        if small and len(packed[-1]) + len(part) <= MOST_MEMBERS:
            packed[-1] += part
        else:
            packed.append(list(part))
    made = []
    for number, part in enumerate(packed):
        news = [marks[id].label for id in part if marks[id].kind == UPDATE.name]
        name = ", ".join(dict.fromkeys(news)) or f"{groups[at].label}, {number + 1} of {len(packed)}".lstrip(", ")
        made.append(len(groups))
        groups.append(Group(name, at, list(part)))
    inside = set(loose)
    first = next(place for place, each in enumerate(members) if each in inside)
    rest = [each for each in members if each not in inside]
    groups[at].members = [*rest[:first], *made, *rest[first:]]


def _chained(loose: Sequence[str], drawing: Drawing) -> list[list[str]]:
    """The marks that are connected with each other, without those that are connected with many."""
    inside = set(loose)
    ways = [(arrow.tail, arrow.head) for arrow in drawing.arrows if arrow.tail in inside and arrow.head in inside]
    degree = Counter(end for way in ways for end in way)
    leader = {id: id for id in loose}

    def lead(id: str) -> str:
        while leader[id] != id:
            leader[id] = id = leader[leader[id]]
        return id

    for tail, head in ways:
        if degree[tail] <= MOST_NEIGHBOURS and degree[head] <= MOST_NEIGHBOURS:
            leader[lead(tail)] = lead(head)
    found: dict[str, list[str]] = {}
    for id in loose:
        found.setdefault(lead(id), []).append(id)
    alone = [id for chain in found.values() if len(chain) == 1 for id in chain]
    return [*([alone] if alone else []), *(chain for chain in found.values() if len(chain) > 1)]


def _cut(chain: Sequence[str]) -> list[list[str]]:
    """Parts of about equal length, none of them too long."""
    parts = -(-len(chain) // MOST_MEMBERS)
    size = -(-len(chain) // parts)
    return [list(chain[begin : begin + size]) for begin in range(0, len(chain), size)]


def _in_order(groups: list[Group]) -> list[Group]:
    """The boxes that are left, numbered anew, each after the one that it lies in."""
    order, number = [0], {0: 0}
    for at in order:
        for each in groups[at].members:
            if isinstance(each, int):
                number[each] = len(order)
                order.append(each)
    kept = []
    for at in order:
        group = groups[at]
        members = [each if isinstance(each, str) else number[each] for each in group.members]
        kept.append(Group(group.label, None if group.parent is None else number[group.parent], members))
    return kept


def _connect(groups: Sequence[Group], drawing: Drawing) -> None:
    """The arrows inside each box, and its ports."""
    home = {each: at for at, group in enumerate(groups) for each in group.members if isinstance(each, str)}
    labels = {mark.id: mark.name or mark.label for mark in drawing.marks}

    def chain(id: str) -> list[str | int]:
        found: list[str | int] = [id]
        at: int | None = home[id]
        while at:
            found.append(at)
            at = groups[at].parent
        return found[::-1]

    def name(member: str | int) -> str:
        return labels[member] if isinstance(member, str) else groups[member].label

    crossing: list[tuple[int, bool, int, str | int, str | int]] = []
    for number, arrow in enumerate(drawing.arrows):
        one, other = chain(arrow.tail), chain(arrow.head)
        same = 0
        while one[same] == other[same]:
            same += 1
        at = one[same - 1] if same else 0
        assert isinstance(at, int)
        groups[at].ways.setdefault((key_of(one[same]), key_of(other[same])), []).append(number)
        for is_source, inner, outer in ((False, one, other[same]), (True, other, one[same])):
            for box, member in zip(inner[same:], inner[same + 1 :], strict=False):
                assert isinstance(box, int)
                crossing.append((number, is_source, box, member, outer))
    neighbours: dict[tuple[int, bool], set[str | int]] = {}
    for _, is_source, box, _, outer in crossing:
        neighbours.setdefault((box, is_source), set()).add(outer)
    for number, is_source, box, member, outer in crossing:
        count = len(neighbours[box, is_source])
        key = is_source, outer if count <= MOST_PORTS else None
        ports = groups[box].ports
        ports.setdefault(key, name(outer) if count <= MOST_PORTS else f"{count} neighbours")
        port = port_id(list(ports).index(key))
        way = (port, key_of(member)) if is_source else (key_of(member), port)
        groups[box].ways.setdefault(way, []).append(number)


def content(group: Group, marks: Mapping[str, Mark], boxes: Mapping[int, Mark]) -> Drawing:
    """What is drawn in an open box.

    Args:
        marks: by `id`.
        boxes: the folded boxes, as marks, by number.
    """
    return Drawing(group.label, tuple(_content(group, marks, boxes)), tuple(Arrow(*way) for way in group.ways))


def _content(group: Group, marks: Mapping[str, Mark], boxes: Mapping[int, Mark]) -> Iterator[Mark]:
    for number, ((is_source, _), label) in enumerate(group.ports.items()):
        if is_source:
            yield Mark(port_id(number), PORT, "", f"from {label}", "")
    for member in group.members:
        if isinstance(member, str):
            yield replace(marks[member], cluster=None)
        else:
            yield boxes[member]
    for number, ((is_source, _), label) in enumerate(group.ports.items()):
        if not is_source:
            yield Mark(port_id(number), PORT, "", f"to {label}", "")


def laid_out(groups: Sequence[Group], drawing: Drawing, boxes: Mapping[int, Mark]) -> list[Positions]:
    """Lay out every box by itself; a drawing that is not folded keeps its frames around marks."""
    marks = {mark.id: mark for mark in drawing.marks}
    if len(groups) == 1:
        return [lay_out(drawing)]
    contents = [content(group, marks, boxes) for group in groups]
    return [in_rows(lay_out(each, orders=1), each) for each in contents]


def in_rows(layout: Positions, drawing: Drawing) -> Positions:
    """A layout in which everything that has the same height stands in several rows, where one would be too wide.

    Example:
        >>> marks = tuple(Mark(f"n{n}", "pointwise", "", "exp", "f32[2]") for n in range(90))
        >>> drawing = Drawing("", marks, ())
        >>> layout = lay_out(drawing, orders=1)
        >>> layout.width > 4000, in_rows(layout, drawing).width <= WIDE
        (True, True)
    """
    if layout.width <= WIDE:
        return layout
    ranks: dict[float, list[str]] = {}
    for id, box in sorted(layout.marks.items(), key=lambda each: (each[1].y, each[1].x)):
        ranks.setdefault(box.y, []).append(id)
    rows: list[list[str]] = []
    for rank in ranks.values():
        total = sum(layout.marks[id].width + GAP for id in rank)
        most, width = total / math.ceil(total / WIDE), 0.0
        rows.append([])
        for id in rank:
            if rows[-1] and width + layout.marks[id].width > min(most * 1.02, WIDE):
                rows.append([])
                width = 0.0
            rows[-1].append(id)
            width += layout.marks[id].width + GAP
    widths = [sum(layout.marks[id].width + GAP for id in row) - GAP for row in rows]
    whole, y = max(widths), 0.0
    boxes: dict[str, Box] = {}
    for row, width in zip(rows, widths, strict=True):
        x, height = (whole - width) / 2, max(layout.marks[id].height for id in row)
        for id in row:
            old = layout.marks[id]
            boxes[id] = Box(x + old.width / 2, y + height / 2, old.width, old.height)
            x += old.width + GAP
        y += height + ROW
    curves = tuple(_curve(boxes[arrow.tail], boxes[arrow.head]) for arrow in drawing.arrows)
    return Positions(whole, y - ROW, boxes, {}, curves)


def _curve(tail: Box, head: Box) -> Curve:
    """An arrow downwards, or upwards where its head is not below its tail."""
    way = 1 if head.y > tail.y else -1
    start, tip = tail.y + way * tail.height / 2, head.y - way * head.height / 2
    end, bend = tip - way * 6, (tip - start) / 2
    points = ((tail.x, start), (tail.x, start + bend), (head.x, end - bend), (head.x, end))
    return Curve(points, (head.x, tip), None)


def flat(drawing: Drawing) -> list[Group]:
    """A drawing as a single box, in which all marks are seen."""
    ways = {(arrow.tail, arrow.head): [number] for number, arrow in enumerate(drawing.arrows)}
    return [Group("", None, [mark.id for mark in drawing.marks], ways=ways)]


def marks_inside(groups: Sequence[Group]) -> list[frozenset[str]]:
    """The marks in each box, those of the boxes in it included."""
    found: list[frozenset[str]] = [frozenset()] * len(groups)
    for at in range(len(groups) - 1, -1, -1):
        parts = [frozenset([each]) if isinstance(each, str) else found[each] for each in groups[at].members]
        found[at] = frozenset().union(*parts)
    return found


def box_mark(number: int, label: str, caption: str) -> Mark:
    """A folded box."""
    return Mark(f"g{number}", OTHER.name, "", label, caption, count=2)
