"""`Drawing`: what a picture shows, as data. How it is built, laid out and painted is said in other files.

A drawing knows nothing of Graphviz, SVG or notebooks, so everything that shows a graph starts from the same facts: the
static picture, its text, and the widget.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# How a value goes from one place to another.
VALUE = "value"  # in a graph, where nothing is said of memory
INSIDE = "fused"  # within a kernel, without memory
MEMORY = "memory"  # written by one kernel, read by another
EDGES = (VALUE, INSIDE, MEMORY)


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing in a drawing: an operation, a value from outside, a result, or several operations taken together.

    Attributes:
        id: unique in the drawing, and the same whenever the same thing is drawn.
        kind: the name of a `Family` (an operation) or of a `Role` (a value), see `minitorch.inspect.colours`.
        name: what listings call it: ``"%3"``, ``"x"``; empty for what has no name.
        label: what it is, short: ``"mul(%2, 0.5)"``.
        caption: the line below: shape and type, ``"f32[32,10]"``.
        details: what there is to know besides, in order: ``("FLOPs", "320")``.
        cluster: the `id` of the cluster that it stands in, or None.
    """

    id: str
    kind: str
    name: str
    label: str
    caption: str
    details: tuple[tuple[str, str], ...] = ()
    cluster: str | None = None

    @property
    def title(self) -> str:
        """All of it as text, line by line: what is shown when the mouse rests on it."""
        head = f"{self.name} = {self.label}" if self.name and self.name != self.label else self.label
        return "\n".join([head, *(f"{name}: {value}" for name, value in self.details)])


@dataclass(frozen=True, slots=True)
class Arrow:
    """One use of a value.

    Attributes:
        tail, head: the `id`s of the marks it goes from and to.
        kind: `VALUE`, `INSIDE` or `MEMORY`.
        label: written beside it, such as how many bytes it stands for.
        detail: what there is to know besides, such as why it was not fused.
    """

    tail: str
    head: str
    kind: str = VALUE
    label: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Marks that belong together, such as those of a kernel.

    Attributes:
        id: unique in the drawing.
        kind: the class of the kernel, ``"K1"`` to ``"K5"`` or ``"call"``, or ``"module"``.
        title: written above it.
        details: what there is to know besides.
    """

    id: str
    kind: str
    title: str
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Drawing:
    """What a picture shows.

    Attributes:
        title: what is drawn, in a line.
        marks: in program order; an arrow's tail comes before its head.
        arrows: in the order of their heads.
        clusters: in the order in which they run.
        notes: what a reader has to know besides, such as what was summarised, and how to see all of it.
    """

    title: str
    marks: tuple[Mark, ...]
    arrows: tuple[Arrow, ...]
    clusters: tuple[Cluster, ...] = ()
    notes: tuple[str, ...] = field(default=())
