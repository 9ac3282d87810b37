"""Drawings as text: from the results back to their operands; kernel by kernel, if there are any."""

from __future__ import annotations

from collections.abc import Iterator

from ..colours import ROLES
from ..drawings.drawing import LOOP, MEMORY, Drawing, Mark

COLUMN = 64  # the column of shapes and types, at most
MOST_INDENT = 40  # depth; deeper branches are not indented further
_ROLES = {role.name for role in ROLES}


def text(drawing: Drawing) -> str:
    """The drawing as lines of text.

    A value that has one operand stands above it, at the same depth; of several operands, each has a branch of its own.
    What was written down before is only named.

    Example:
        >>> from minitorch.graph import Graph
        >>> from minitorch_inspect.drawings.graphs import of_graph
        >>> graph = Graph.parse("graph(x: f32[2]): %0 = exp(x) %1 = neg(%0) %2 = add(%0, %1) return %2")
        >>> print(text(of_graph(graph)))
        graph: 3 operations
        output: f32[2]
        %2 = add(%0, %1)  f32[2]
        ├─%0 = exp(x)     f32[2]
        │ x               f32[2], input
        └─%1 = neg(%0)    f32[2]
          %0, see above
    """
    frames = any(cluster.kind != LOOP for cluster in drawing.clusters)
    rows = _by_cluster(drawing) if frames else list(_tree(drawing))
    width = max((len(left) for left, right in rows if right and len(left) <= COLUMN), default=0)
    lines = [f"{left.ljust(width)}  {right}" if right else left for left, right in rows]
    return "\n".join([drawing.title, *drawing.notes, *lines])


def _right(mark: Mark) -> str:
    return f"{mark.caption}, {mark.kind}" if mark.kind in _ROLES else mark.caption


def _operands(drawing: Drawing) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {mark.id: [] for mark in drawing.marks}
    for arrow in drawing.arrows:
        found[arrow.head].append(arrow.tail)
    return found


def _tree(drawing: Drawing) -> Iterator[tuple[str, str]]:
    """The rows of a drawing without clusters: left and right part."""
    marks = {mark.id: mark for mark in drawing.marks}
    operands = _operands(drawing)
    used = {arrow.tail for arrow in drawing.arrows}
    seen: set[str] = set()
    for end in (mark for mark in drawing.marks if mark.id not in used):
        pending = [(end.id, "", "")]  # the mark, its prefix, the prefix of its operands
        while pending:
            id, before, below = pending.pop()
            mark = marks[id]
            if id in seen:
                yield f"{before}{mark.name or mark.label}, see above", ""
                continue
            seen.add(id)
            if end is mark and mark.kind in _ROLES and operands[id]:
                yield f"{mark.label}: {mark.caption}", ""
            else:
                yield f"{before}{mark.heading}", _right(mark)
            below = below if len(below) < MOST_INDENT else ""
            *branches, last = operands[id] or [""]
            if not last:
                continue
            pending.append((last, f"{below}└─" if branches else below, f"{below}  " if branches else below))
            pending += [(each, f"{below}├─", f"{below}│ ") for each in reversed(branches)]


def _by_cluster(drawing: Drawing) -> list[tuple[str, str]]:
    """The rows of a drawing with clusters: the marks outside, then each cluster with its reads from memory."""
    names = {mark.id: mark.name or mark.label for mark in drawing.marks}
    rows = [(f"{mark.heading}", _right(mark)) for mark in drawing.marks if mark.cluster is None and mark.kind in _ROLES]
    homes = {mark.id: mark.cluster for mark in drawing.marks}
    for cluster in drawing.clusters:
        read = dict.fromkeys(
            names[arrow.tail] for arrow in drawing.arrows if arrow.kind == MEMORY and homes[arrow.head] == cluster.id
        )
        rows.append((cluster.title, ""))
        rows += [(f"  {name}: {value}", "") for name, value in cluster.details if name in ("bytes", "FLOPs")]
        rows.append((f"  reads {', '.join(read)}", "")) if read else None
        rows += [(f"    {mark.heading}", mark.caption) for mark in drawing.marks if mark.cluster == cluster.id]
    return rows
