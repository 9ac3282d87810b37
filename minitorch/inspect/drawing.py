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

MODULE = "module"  # the kind of a cluster that is the call of a module; the others are classes of kernels


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing in a drawing: an operation, a value from outside, a result, or several of one kind taken together.

    Attributes:
        id: unique in the drawing, and the same whenever the same thing is drawn.
        kind: the name of a `Family` (an operation) or of a `Role` (a value), see `minitorch.inspect.colours`.
        name: what listings call it: ``"%3"``, ``"x"``; empty for what has no name.
        label: what it is, short: ``"mul(%2, 0.5)"``.
        caption: the line below: shape and type, ``"f32[32,10]"``.
        details: what there is to know besides, in order: ``("shape", "(32, 10)")``.
        cluster: the `id` of the cluster that it stands in, or None.
        source: the line that asked for it, ``"train.py:12"``, if known.
        code: the text of that line, if it can be read.
        scope: the module that it is a part of, ``"layers.0"``, if known.
        flops, transcendentals, read, written: arithmetic, and bytes to and from memory, as `minitorch.graph.cost` has
            them.
        count: how many operations or values it stands for.
    """

    id: str
    kind: str
    name: str
    label: str
    caption: str
    details: tuple[tuple[str, str], ...] = ()
    cluster: str | None = None
    source: str = ""
    code: str = ""
    scope: str = ""
    flops: int = 0
    transcendentals: int = 0
    read: int = 0
    written: int = 0
    count: int = 1

    @property
    def heading(self) -> str:
        """Name and label: ``"%3 = mul(%2, 0.5)"``."""
        return f"{self.name} = {self.label}" if self.name and self.name != self.label else self.label

    @property
    def title(self) -> str:
        """All of it as text, line by line: what is shown when the mouse rests on it."""
        return "\n".join([self.heading, *(f"{name}: {value}" for name, value in self.details)])


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
