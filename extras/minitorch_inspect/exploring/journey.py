"""The journey of a program to machine code: drawings in which the same value keeps its place.

One stop per pass that changed something, then the kernels together, and each by itself. A mark has the same `id` at all
stops where it is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.kernels.ledger import Ledger
from minitorch.graph.cost import in_units
from minitorch.graph.text import node_names, operand_text
from minitorch.graph.values import is_splat
from minitorch.ir import Node
from minitorch.modes.ways_in.stages import Stages

from ..colours import KERNELS
from ..drawings.drawing import Arrow, Drawing, Mark
from ..drawings.graphs import Setting, label_of, of_graph
from ..drawings.kernels import of_ledger
from ..drawings.scopes import Nesting, scopes
from .correspondence import ADDED, REMOVED, REWRITTEN, Snapshot, follow

OPERAND = "·"  # stands for operands in labels; the arrows show them


@dataclass(frozen=True)
class Stop:
    """One position of the slider.

    Attributes:
        title, doc: the name of the step, and its purpose.
        summary: its changes, as text.
        drawing: the present marks, and those that the step removed.
        changes: the changes of marks, by `id`: `ADDED`, `REMOVED` or `REWRITTEN`.
        old: the arrows that the step removed; the drawing has them too.
        new: the arrows that it added.
        lines: what it did, change by change, or what there is: a kind of change or none, a text, and the `id` of what
            it is about.
        facts: what there is to know besides.
        labels: shorter labels of marks, by `id`.
        source: the kernel's loops, at a stop for one kernel.
        kernel: the number of that kernel.
        paths: of the whole journey: the calls of modules that a mark is a part of, by `id`.
    """

    title: str
    doc: str
    summary: str
    drawing: Drawing
    changes: Mapping[str, str] = field(default_factory=dict)
    old: frozenset[tuple[str, str]] = frozenset()
    new: frozenset[tuple[str, str]] = frozenset()
    lines: tuple[tuple[str, str, str], ...] = ()
    facts: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    kernel: int | None = None
    paths: Mapping[str, Nesting] = field(default_factory=dict)


def journey(stages: Stages, fused: bool = True, setting: Setting | None = None) -> list[Stop]:
    """Every stop of a program.

    Args:
        stages: the passes that were run.
        fused: whether to go on to the kernels.
        setting: what the inputs and outputs are.

    Example:
        >>> import minitorch as mt
        >>> f = mt.jit(lambda x: (x * 1 + 2).sum(1))
        >>> for stop in journey(f.stages(mt.ones(4, 8))):
        ...     print(f"{stop.title}: {stop.summary}")
        traced: 3 operations
        algebra: 1 removed, 1 rewritten
        kernels: 1 kernel
        k0_reduce_sum: K2, reduction
    """
    setting = setting or Setting()
    run = (*stages, *stages.lowering) if fused else stages
    snapshots = follow(stages.initial, run)
    stops = [_traced(snapshots[0], setting)]
    idle: list[str] = []
    was = stops[0].drawing  # of the last graph, without what the pass before removed
    for before, now in pairwise(snapshots):
        if now.graph is before.graph or not now.changes:
            idle.append(now.title)
            continue
        drawing = _drawn(now, setting)
        stops.append(_changed(before, now, was, drawing, idle))
        idle, was = [], drawing
    if fused:
        stops += _kernels(stages.ledger, snapshots[-1], setting, idle)
    paths = _paths(snapshots, scopes(*stages.traced.recorded))
    marks = [mark for stop in stops for mark in stop.drawing.marks]
    loops = {mark.id.partition("/")[0]: mark.scope for mark in marks if "/" in mark.id and mark.scope}
    boxes = {loop: (*paths.get(loop, ()), (f"{loop}/", label)) for loop, label in loops.items()}
    paths |= {mark.id: boxes[loop] for mark in marks if (loop := mark.id.partition("/")[0]) in boxes}
    return [replace(stop, paths=paths) for stop in stops]


def _paths(snapshots: Sequence[Snapshot], scopes: Mapping[Node, Nesting]) -> dict[str, Nesting]:
    """The calls of modules that places are a part of; those that passes add go with the first user that has some."""
    found = {place: scopes[node] for node, place in snapshots[0].places.items() if node in scopes}
    for now in snapshots[1:]:
        users: dict[Node, Nesting] = {}
        for node in reversed(now.graph.nodes):
            place = now.places.get(node)
            if place is None:
                continue
            if place not in found and now.changes.get(place) == ADDED:
                operands = (found.get(now.places.get(each, -1), ()) for each in node.inputs)
                if path := users.get(node) or next(filter(None, operands), None):
                    found[place] = path
            for operand in node.inputs if place in found else ():
                users[operand] = found[place]
    return {mark_id(place): path for place, path in found.items()}


def mark_id(place: int) -> str:
    """The `id` of the mark in a place."""
    return f"p{place}"


def short_label(node: Node) -> str:
    """A node without the names of its operands, which change from listing to listing.

    Example:
        >>> from minitorch.graph import Graph
        >>> graph = Graph.parse("graph(x: f32[2]): %0 = mul(x, 2.0) %1 = exp(%0) return %1")
        >>> [short_label(node) for node in graph.nodes if not is_splat(node)]
        ['mul(·, 2.0)', 'exp']
    """
    label = label_of(node, {operand: OPERAND for operand in node.inputs if not is_splat(operand)})
    return label.removesuffix(f"({', '.join([OPERAND] * len(node.inputs))})") if node.inputs else label


# Passes -----------------------------------------------------------------------------------------------------


def _ids(snapshot: Snapshot) -> dict[Node, str]:
    return {node: mark_id(place) for node, place in snapshot.places.items()}


def _drawn(snapshot: Snapshot, setting: Setting) -> Drawing:
    """The drawing of a graph with the bodies of its loops, which are in no frames: they are boxes."""
    return replace(of_graph(snapshot.graph, setting, _ids(snapshot), opens=True), clusters=())


def _labels(snapshot: Snapshot) -> dict[str, str]:
    nodes = set(snapshot.graph.nodes)
    return {mark_id(place): short_label(node) for node, place in snapshot.places.items() if node in nodes}


def _traced(snapshot: Snapshot, setting: Setting) -> Stop:
    drawing = _drawn(snapshot, setting)
    cost = snapshot.graph.cost()
    facts = (f"{counted(cost.bytes)} moved, run node by node",)
    return Stop(snapshot.title, snapshot.doc, operations(cost.nodes), drawing, facts=facts, labels=_labels(snapshot))


def _changed(before: Snapshot, now: Snapshot, was: Drawing, drawing: Drawing, idle: list[str]) -> Stop:
    """The stop after a pass that did something; `idle` are the passes since the last stop, which did not."""
    gone = {mark_id(place) for place, change in now.changes.items() if change == REMOVED}
    ways = [{(arrow.tail, arrow.head) for arrow in each.arrows} for each in (was, drawing)]
    old, new = ways[0] - ways[1], ways[1] - ways[0]
    # Removed marks are shown once more in their old places.
    marks = [*drawing.marks, *(mark for mark in was.marks if mark.id in gone)]
    arrows = [*drawing.arrows, *(arrow for arrow in was.arrows if (arrow.tail, arrow.head) in old)]
    costs = before.graph.cost(), now.graph.cost()
    facts = [f"{costs[0].nodes} → {operations(costs[1].nodes)}"]
    if costs[0].bytes != costs[1].bytes:
        facts.append(f"{counted(costs[0].bytes)} → {counted(costs[1].bytes)} moved, run node by node")
    if idle:
        facts.append(f"nothing to do for: {', '.join(dict.fromkeys(idle))}")
    return Stop(
        now.title,
        now.doc,
        now.summary,
        replace(drawing, marks=tuple(marks), arrows=tuple(arrows)),
        {mark_id(place): change for place, change in now.changes.items()},
        frozenset(old),
        frozenset(new),
        tuple(_lines(now, {mark.id: mark for mark in was.marks}, {mark.id: mark for mark in drawing.marks})),
        tuple(facts),
        _labels(before) | _labels(now),
    )


def _lines(now: Snapshot, was: Mapping[str, Mark], marks: Mapping[str, Mark]) -> Iterator[tuple[str, str, str]]:
    """The changes in each place."""
    names = node_names(now.graph)
    for place, change in now.changes.items():
        id = mark_id(place)
        if change == ADDED:
            yield change, f"added {marks[id].heading}", id
        elif change == REWRITTEN:
            yield change, f"rewritten {marks[id].heading}\nwas {was[id].heading}", id
        elif place in now.instead:
            yield (
                change,
                f"removed {was[id].heading}\nread instead: {operand_text(now.instead[place], None, names)}",
                id,
            )
        else:
            yield change, f"removed {was[id].heading}\nno longer needed", id


def operations(number: int) -> str:
    """A number of operations, as text."""
    return f"{number} operation{'' if number == 1 else 's'}"


def counted(number: int) -> str:
    """A number of bytes, as text."""
    return in_units(number, "B")


# Kernels ----------------------------------------------------------------------------------------------------


KERNELS_DOC = (
    "A frame is one kernel: values inside stay in registers or in the cache. Thick arrows are memory that "
    "is written and read again. A click on a frame shows its loops."
)
LOOPS_DOC = "The definition of this kernel, as Python that runs. The machine code runs it in vectors and tiles."
CALL_DOC = "No loops are generated for this one: it is run by NumPy."


def _kernels(ledger: Ledger, last: Snapshot, setting: Setting, idle: list[str]) -> Iterator[Stop]:
    """The stop for all kernels, and one for each."""
    drawing = _settled(of_ledger(ledger, setting, _ids(last)))
    known = _labels(last)
    labels = {mark.id: known[place] for mark in drawing.marks if (place := mark.id.partition(".")[0]) in known}
    number = len(ledger.kernels)
    read, written = (sum(getattr(each, name) for each in ledger.kernels) for name in ("bytes_read", "bytes_written"))
    facts = [f"{counted(read + written)} moved"]
    if idle:
        facts.append(f"nothing to do for: {', '.join(dict.fromkeys(idle))}")
    lines = tuple(("", cluster.title, cluster.id) for cluster in drawing.clusters)
    title, summary = "kernels", f"{number} kernel{'' if number == 1 else 's'}"
    yield Stop(title, KERNELS_DOC, summary, drawing, lines=lines, facts=tuple(facts), labels=labels)
    for at, kernel in enumerate(ledger.kernels):
        yield Stop(
            kernel.name,
            LOOPS_DOC if kernel.loops else CALL_DOC,
            f"{kernel.kind}, {KERNELS[kernel.kind][0]}",
            drawing,
            facts=tuple(_facts(kernel)),
            labels=labels,
            source=kernel.source,
            kernel=at,
        )


def _facts(kernel: Kernel) -> Iterator[str]:
    yield operations(sum(not is_splat(node) for node in kernel.nodes))
    yield f"{counted(kernel.bytes_read)} read, {counted(kernel.bytes_written)} written"
    yield f"{in_units(kernel.flops)} FLOPs"
    if kernel.transcendentals:
        yield f"{in_units(kernel.transcendentals)} exp, log and the like"


def _settled(drawing: Drawing) -> Drawing:
    """A drawing of kernels in which nodes keep their places; in further kernels they are drawn again."""
    ids: dict[str, str] = {}
    for mark in drawing.marks:
        place = mark.id.partition(".")[0]
        ids[mark.id] = mark.id if place in ids.values() else place
    marks = tuple(replace(mark, id=ids[mark.id]) for mark in drawing.marks)
    arrows = tuple(replace(arrow, tail=ids[arrow.tail], head=ids[arrow.head]) for arrow in drawing.arrows)
    return replace(drawing, marks=marks, arrows=arrows)


# All of them together ---------------------------------------------------------------------------------------


def union(stops: list[Stop]) -> Drawing:
    """The union of all stops' drawings, laid out once, so that every mark has a place.

    A mark gets the longest of its labels, so that there is room for all.
    """
    marks: dict[str, Mark] = {}
    ways: dict[tuple[str, str], Arrow] = {}
    seen: set[int] = set()
    for stop in stops:
        if id(stop.drawing) in seen:  # one kernel after another
            continue
        seen.add(id(stop.drawing))
        for mark in stop.drawing.marks:
            label = stop.labels.get(mark.id, mark.heading)
            best = marks.get(mark.id)
            label = max(best.label if best else "", label, key=len)
            caption = max(best.caption if best else "", mark.caption, key=len)
            marks[mark.id] = replace(mark, name="", label=label, caption=caption)
        for arrow in stop.drawing.arrows:
            ways.setdefault((arrow.tail, arrow.head), Arrow(arrow.tail, arrow.head))
    return Drawing("", tuple(marks.values()), tuple(ways.values()), stops[-1].drawing.clusters)
