"""Summaries of large drawings: several marks become one, and the picture says so.

Operations are grouped by kernel, by module, or by the user's line, in runs of the program's order, so that the result
has no cycles. If that is still too much, neighbouring runs are merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from minitorch.ir import PRIMITIVES

from ..colours import FAMILIES, KERNELS, ROLES
from ..painting.layout import MOST_LETTERS
from .drawing import LOOP, MEMORY, VALUE, Arrow, Cluster, Drawing, Mark, Work

MOST_GROUPS = 40  # marks in a summary; raising it shows more detail
FEW_GROUPS = 12  # runs of a program that has a single line
MOST_NAMES = 20  # in a title
_ROLES = {role.name for role in ROLES}
# The most telling property of a group comes first.
_ORDER = ("contraction", "decomposition", "reduction", "argreduction", "scan", "sort", "indexing", "random")
_WORK = {
    name: _ORDER.index(primitive.kind) if primitive.kind in _ORDER else len(_ORDER) + (primitive.kind == "movement")
    for name, primitive in PRIMITIVES.items()
}
_SIDE = ("parameter", "constant", "update")  # values that come in, or go out, at the side of what is computed
_FAMILIES = [family.name for family in FAMILIES]


@dataclass(frozen=True)
class _Run:
    """Operations that become one mark, and their common label."""

    label: str
    marks: tuple[Mark, ...]
    cluster: Cluster | None = None
    caption: str = ""


def summarised(drawing: Drawing) -> Drawing:
    """The drawing with a mark for several operations each, and a note that says so.

    Example:
        >>> from minitorch.graph import Graph
        >>> from minitorch_inspect.drawings.graphs import of_graph
        >>> nodes = " ".join(f"%{n + 1} = neg(%{n})" for n in range(500))
        >>> drawing = of_graph(Graph.parse(f"graph(x: f32[2]): %0 = exp(x) {nodes} return %500"))
        >>> small = summarised(drawing)
        >>> len(drawing.marks), len(small.marks)
        (503, 15)
        >>> small.marks[1].heading, small.marks[1].caption
        ('%0 to %40', '41: 40 neg, 1 exp')
    """
    runs, by = _runs(drawing)
    if len(runs) > MOST_GROUPS:
        runs, by = _merged(runs), f"{by}, several of them together"
    groups: dict[str, str] = {}  # the new mark of each mark
    marks = []
    for number, run in enumerate(runs):
        marks.append(run.marks[0] if len(run.marks) == 1 else _together(run, f"g{number}"))
        groups |= {mark.id: marks[-1].id for mark in run.marks}
    outside = _values(drawing, groups)
    first = [mark for mark in outside if mark.kind in ("input", "parameter", "constant")]
    last = [mark for mark in outside if mark not in first]
    note = f"summarised by {by}: a box with a double edge stands for several operations; limit=None draws all"
    everything = tuple(replace(mark, cluster=None) for mark in (*first, *marks, *last))
    return Drawing(drawing.title, everything, _arrows(drawing, groups), notes=(*drawing.notes, note))


def closed(drawing: Drawing) -> Drawing:
    """The drawing with each loop or branch as a mark alone, without its bodies; the drawing itself if it has none."""
    frames = {cluster.id for cluster in drawing.clusters if cluster.kind == LOOP}
    if not frames:
        return drawing

    def end(id: str) -> str:
        """The mark of the loop that a mark is in the body of."""
        return id.partition("/")[0]

    marks = tuple(mark for mark in drawing.marks if mark.cluster not in frames)
    arrows = [replace(arrow, tail=end(arrow.tail), head=end(arrow.head)) for arrow in drawing.arrows]
    outside = tuple(dict.fromkeys(arrow for arrow in arrows if arrow.tail != arrow.head))
    clusters = tuple(cluster for cluster in drawing.clusters if cluster.id not in frames)
    note = "without the bodies of loops and branches; limit=None draws them"
    return replace(drawing, marks=marks, arrows=outside, clusters=clusters, notes=(*drawing.notes, note))


def bare(drawing: Drawing) -> Drawing:
    """A summary without most of its values, where these make it too wide to be read: the operations, what they start
    from and what they end in are left. The tooltips of the operations have the omitted values, as bytes.

    Example:
        >>> from minitorch_inspect.drawings.drawing import Drawing, Mark
        >>> marks = Mark("i0", "input", "x", "x", ""), Mark("i1", "parameter", "w", "w", "")
        >>> [mark.name for mark in bare(Drawing("f", marks, ())).marks]
        ['x']
    """
    producers: dict[str, set[str]] = {}
    for arrow in drawing.arrows:
        producers.setdefault(arrow.head, set()).add(arrow.tail)
    shown = tuple(
        mark
        for mark in drawing.marks
        if mark.kind not in _SIDE and not (mark.kind == "output" and len(producers.get(mark.id, ())) > 1)
    )
    left = {mark.id for mark in shown}
    arrows = tuple(arrow for arrow in drawing.arrows if arrow.tail in left and arrow.head in left)
    note = "left out, to be readable: parameters, constants, updates, and what several of the boxes hand out together"
    return replace(drawing, marks=shown, arrows=arrows, notes=(*drawing.notes, note))


def _runs(drawing: Drawing) -> tuple[list[_Run], str]:
    """The operations in runs, and the property that groups them."""
    clusters = {cluster.id: cluster for cluster in drawing.clusters}
    operations = [mark for mark in drawing.marks if mark.kind not in _ROLES]
    if any(cluster.kind in KERNELS for cluster in drawing.clusters):
        inside: dict[str, list[Mark]] = {cluster.id: [] for cluster in drawing.clusters}
        home = {mark.id: mark.cluster for mark in operations if mark.cluster}
        operands: dict[str, list[str]] = {}
        for arrow in drawing.arrows:
            operands.setdefault(arrow.head, []).append(arrow.tail)
        alone = []
        for mark in operations:  # a node in no kernel is a view: it goes with its base
            found = mark.cluster or next((home[each] for each in operands.get(mark.id, ()) if each in home), None)
            if found is None:
                alone.append(_Run(mark.heading, (mark,)))
            else:
                home[mark.id] = found
                inside[found].append(mark)
        kernels = []
        for id, marks in inside.items():
            name, _, kind = clusters[id].title.partition(" · ")
            kernels.append(_Run(name, tuple(marks), clusters[id], f"{kind}: {len(marks)} operations"))
        return alone + kernels, "kernel"
    if clusters:
        return _in_order(operations, lambda mark: mark.cluster or mark.source), "module"
    runs = _in_order(operations, lambda mark: mark.source)
    return (runs, "line of the program") if len(runs) > 1 else (_cut(runs[0]), "place in the program")


def _in_order(marks: Iterable[Mark], key: Callable[[Mark], Hashable]) -> list[_Run]:
    """Runs of marks that have the same key."""
    runs: list[tuple[Hashable, list[Mark]]] = []
    for mark in marks:
        if not runs or runs[-1][0] != key(mark):
            runs.append((key(mark), []))
        runs[-1][1].append(mark)
    return [_labelled(tuple(found)) for _, found in runs]


def _labelled(marks: tuple[Mark, ...]) -> _Run:
    """The label of a run with a common module or line."""
    first = marks[0]
    if first.scope:
        return _Run(first.scope, marks)
    if first.code:
        return _Run(first.code, marks, caption=f"{first.source}: {_operations(len(marks))}")
    return _Run(first.source or f"{first.name} to {marks[-1].name}", marks)


def _operations(count: int) -> str:
    return f"{count:,} operation{'s' if count != 1 else ''}"


def _cut(run: _Run) -> list[_Run]:
    """Runs of equal length, where source lines give no groups."""
    size = max(len(run.marks) // FEW_GROUPS, 1)
    parts = [run.marks[begin : begin + size] for begin in range(0, len(run.marks), size)]
    return [_Run(f"{marks[0].name} to {marks[-1].name}", marks) for marks in parts]


def _merged(runs: Sequence[_Run]) -> list[_Run]:
    """Neighbouring runs merged into few enough, each with about as many operations."""
    most = sum(len(run.marks) for run in runs) / MOST_GROUPS
    groups: list[list[_Run]] = []
    size = 0.0
    for run in runs:
        if not groups or size + len(run.marks) / 2 > most:
            groups.append([])
            size = 0.0
        groups[-1].append(run)
        size += len(run.marks)
    return [
        _Run(_from_to([run.label for run in group]), tuple(mark for run in group for mark in run.marks))
        for group in groups
    ]


def _from_to(labels: Sequence[str]) -> str:
    """Several labels as one: lines of one file as a range."""
    different = list(dict.fromkeys(labels))
    if len(different) == 1:
        return different[0]
    parts = [label.rpartition(":") for label in different]
    if all(line.isdigit() and file == parts[0][0] for file, _, line in parts):
        lines = [int(line) for _, _, line in parts]
        return f"{parts[0][0]}:{min(lines)}–{max(lines)}"
    return f"{different[0]} … {different[-1]}"


def _kind(run: _Run) -> str:
    """The class of the kernel; else the family with most arithmetic, or with most operations."""
    if run.cluster is not None:
        return run.cluster.kind
    amounts: Counter[str] = Counter()
    for mark in run.marks:
        amounts[mark.kind] += mark.work.flops + mark.work.transcendentals
    if not any(amounts.values()):
        amounts = Counter(mark.kind for mark in run.marks)
    return max(_FAMILIES, key=lambda name: amounts[name])


def _together(run: _Run, id: str) -> Mark:
    """Several operations as one mark."""
    kinds = Counter(mark.label.split("(")[0] for mark in run.marks)
    counted = [
        f"{kinds[name]} {name}" for name in sorted(kinds, key=lambda name: (_WORK.get(name, 0), -kinds[name], name))
    ]
    work = Work(*map(sum, zip(*(mark.work for mark in run.marks), strict=True)))
    details = run.cluster.details if run.cluster else work.details
    return Mark(
        id,
        _kind(run),
        "",
        run.label,
        run.caption or _short(counted, len(run.marks)),
        (
            ("operations", f"{len(run.marks)}: {', '.join(counted)}"),
            *details,
            ("shapes", _first(dict.fromkeys(mark.caption for mark in run.marks))),
            ("lines", _first(dict.fromkeys(f"{mark.source} {mark.code}" for mark in run.marks if mark.source))),
        ),
        work=work,
        count=len(run.marks),
    )


def together(label: str, marks: Sequence[Mark], id: str) -> Mark:
    """Several operations as one mark, coloured as most of their work.

    Example:
        >>> marks = [Mark(f"n{n}", "pointwise", f"%{n}", "neg(x)", "f32[2]") for n in range(3)]
        >>> together("all of them", marks, "g").caption
        '3: 3 neg'
    """
    return _together(_Run(label, tuple(marks)), id)


def _short(counted: Sequence[str], count: int) -> str:
    """The number of operations, and as many of the kinds as there is room for."""
    text = f"{count}: {counted[0]}"
    for each in counted[1:]:
        if len(text) + len(each) + 4 > MOST_LETTERS:
            return f"{text}, …"
        text = f"{text}, {each}"
    return text


def _first(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - MOST_NAMES} more" if len(every) > MOST_NAMES else ""
    return f"{', '.join(every[:MOST_NAMES])}{more}"


def _values(drawing: Drawing, groups: dict[str, str]) -> list[Mark]:
    """The values, those of one kind with the same users (or the same producer) as one; `groups` is added to."""
    near: dict[str, dict[str, None]] = {mark.id: {} for mark in drawing.marks if mark.kind in _ROLES}
    for arrow in drawing.arrows:
        for one, other in ((arrow.tail, arrow.head), (arrow.head, arrow.tail)):
            if one in near:
                near[one][groups.get(other, other)] = None
    alike: dict[Hashable, list[Mark]] = {}
    for mark in drawing.marks:
        if mark.kind in _ROLES:
            alike.setdefault((mark.kind, tuple(sorted(near[mark.id]))), []).append(mark)
    shown: list[Mark] = []
    for number, marks in enumerate(alike.values()):
        together = marks[0] if len(marks) == 1 else _values_together(marks, f"v{number}")
        groups |= {mark.id: together.id for mark in marks}
        shown.append(together)
    return shown


def _values_together(marks: Sequence[Mark], id: str) -> Mark:
    label = f"{len(marks)} {marks[0].kind}s"
    names = _first(mark.name or mark.label for mark in marks)
    shapes = _first(dict.fromkeys(mark.caption for mark in marks))
    details = (("names", names), ("shapes", shapes), ("FLOPs", "0"))
    sizes = dict.fromkeys(mark.caption for mark in marks)
    caption = next(iter(sizes)) if len(sizes) == 1 else f"{len(sizes)} shapes"
    return Mark(id, marks[0].kind, "", label, caption, details, count=len(marks))


def _arrows(drawing: Drawing, groups: dict[str, str]) -> tuple[Arrow, ...]:
    """One arrow for all values between two marks."""
    tails: dict[tuple[str, str], list[Arrow]] = {}
    for arrow in drawing.arrows:
        ends = groups[arrow.tail], groups[arrow.head]
        if ends[0] != ends[1]:
            tails.setdefault(ends, []).append(arrow)
    found = []
    for (tail, head), arrows in tails.items():
        count = len({arrow.tail for arrow in arrows})
        kind = MEMORY if any(arrow.kind == MEMORY for arrow in arrows) else VALUE
        said = tail.startswith("v") or head.startswith("v")  # by the mark: "4 parameters"
        found.append(Arrow(tail, head, kind, "" if said else f"{count} values" if count > 1 else arrows[0].label))
    return tuple(found)
