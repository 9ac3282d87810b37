"""`Drawing`: the content of a picture as data, without layout or paint.

A drawing knows nothing of Graphviz, SVG or notebooks, so everything that shows a graph starts from the same facts: the
static picture, its text, and the widget.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

Details = tuple[tuple[str, str], ...]  # facts and their names

# The kinds of arrows.
VALUE = "value"  # in a graph, where memory is not shown
INSIDE = "fused"  # within a kernel, without memory
MEMORY = "memory"  # written by one kernel, read by another

MODULE = "module"  # the kind of a cluster for a module's call; the other kinds are classes of kernels
LOOP = "loop"  # the kind of a cluster for a body


class Work(NamedTuple):
    """Counts of an operation, as `minitorch.graph.cost` has them."""

    flops: int = 0
    transcendentals: int = 0
    read: int = 0
    written: int = 0

    @property
    def details(self) -> Details:
        """The counts as text."""
        found = [("FLOPs", f"{self.flops:,}"), ("bytes", f"{self.read:,} read, {self.written:,} written")]
        special = [("exp, log and the like", f"{self.transcendentals:,}")] if self.transcendentals else []
        return (found[0], *special, found[1])


NO_WORK = Work()


@dataclass(frozen=True, slots=True)
class Mark:
    """A node of a drawing: an operation, a value from outside, a result, or a summary of several.

    Attributes:
        id: unique in the drawing, and the same whenever the same thing is drawn.
        kind: the name of a `Family` (an operation) or of a `Role` (a value), see `minitorch.inspect.colours`.
        name: its name in listings: ``"%3"``, ``"x"``; may be empty.
        label: the operation in short: ``"mul(%2, 0.5)"``.
        caption: the line below: shape and type, ``"f32[32,10]"``.
        details: what there is to know besides, in order: ``("shape", "(32, 10)")``.
        cluster: the `id` of its cluster, or None.
        source: the user's line, ``"train.py:12"``, if known.
        code: the text of that line, if it can be read.
        scope: its module, ``"layers.0"``, if known.
        work: its arithmetic, and bytes from and to memory.
        count: the number of operations or values that it stands for.
    """

    id: str
    kind: str
    name: str
    label: str
    caption: str
    details: Details = ()
    cluster: str | None = None
    source: str = ""
    code: str = ""
    scope: str = ""
    work: Work = NO_WORK
    count: int = 1

    @property
    def heading(self) -> str:
        """Name and label: ``"%3 = mul(%2, 0.5)"``."""
        return f"{self.name} = {self.label}" if self.name and self.name != self.label else self.label

    @property
    def title(self) -> str:
        """All its facts as text, line by line: its tooltip."""
        return "\n".join([self.heading, *(f"{name}: {value}" for name, value in self.details)])


@dataclass(frozen=True, slots=True)
class Arrow:
    """One use of a value.

    Attributes:
        tail, head: the `id`s of the marks it goes from and to.
        kind: `VALUE`, `INSIDE` or `MEMORY`.
        label: written beside it, such as a number of bytes.
        detail: what there is to know besides, such as why it was not fused.
    """

    tail: str
    head: str
    kind: str = VALUE
    label: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A frame around marks, such as those of a kernel.

    Attributes:
        id: unique in the drawing.
        kind: the class of the kernel, ``"K1"`` to ``"K5"`` or ``"call"``, ``"module"`` or ``"loop"``.
        title: written above the frame.
        details: what there is to know besides.
    """

    id: str
    kind: str
    title: str
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Drawing:
    """The content of a picture.

    Attributes:
        title: a line about the subject.
        marks: in program order; an arrow's tail comes before its head.
        arrows: in the order of their heads.
        clusters: in the order in which they run.
        notes: further lines, such as a note on summarised marks, and how to see all of them.
    """

    title: str
    marks: tuple[Mark, ...]
    arrows: tuple[Arrow, ...]
    clusters: tuple[Cluster, ...] = ()
    notes: tuple[str, ...] = field(default=())
