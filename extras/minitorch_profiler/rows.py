"""From a recorder's events to counts: the work of each operation, node and kernel, and rows that add it up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from minitorch.dtypes import BY_NUMPY
from minitorch.graph import Graph, cost
from minitorch.ir import INPUT, Node, Source, Spec

from .recorder import ArrayMeta, Operation, Recorder

TIMED = ("operation", "node", "kernel")  # events that compute


@dataclass(frozen=True)
class Work(cost.Traffic):
    """The work of one run of an operation or a kernel.

    Attributes:
        name: of the primitive or the kernel.
        kind: ``"eager"``, ``"node"``, or the kernel's kind.
        sources: the user's lines.
        dtype: the type that it computes in.
        bytes_read, bytes_written: from and to memory.
        flops, transcendentals: as `minitorch.graph.Cost` counts them; of a kernel, as its loops do them.
    """

    name: str
    kind: str
    sources: tuple[Source, ...]
    dtype: str
    bytes_read: int
    bytes_written: int
    flops: int
    transcendentals: int


@dataclass
class Row(cost.Traffic):
    """The added-up runs of one operation or kernel; a row of a table.

    Attributes:
        name, kind, where: of the operation or kernel, and the user's lines.
        calls, seconds: the number of runs, and their time.
        bytes_read, bytes_written, flops, transcendentals: of all calls.
        flops_by_type: the flops, by the type that they are done in.

    Example:
        >>> row = Row("add", "eager", "train.py:3")
        >>> row.add(Work("add", "eager", (), "float32", 80, 40, 10, 0), seconds=1e-6)
        >>> row.calls, row.bytes, row.flops_by_type
        (1, 120, {'float32': 10})
    """

    name: str
    kind: str
    where: str
    calls: int = 0
    seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    flops: int = 0
    transcendentals: int = 0
    flops_by_type: dict[str, int] = field(default_factory=dict)

    def add(self, work: Work, seconds: float) -> None:
        """Add one run."""
        self.calls += 1
        self.seconds += seconds
        self.bytes_read += work.bytes_read
        self.bytes_written += work.bytes_written
        self.flops += work.flops
        self.transcendentals += work.transcendentals
        self.flops_by_type[work.dtype] = self.flops_by_type.get(work.dtype, 0) + work.flops


def works(recorder: Recorder) -> Iterator[tuple[int, int, Any, Work]]:
    """Every run of an operation, node or kernel: begin, end, name, and its work."""
    graphs = {id(what): what for _, _, _, what in recorder.events if isinstance(what, Graph)}
    nodes = {node: each for graph in graphs.values() for node, each in _of_graph(graph)}
    operations: dict[tuple[Any, ...], Work] = {}
    kernels: dict[int, Work] = {}
    for begin, end, kind, what in recorder.events:
        if kind == "operation":
            if what not in operations:
                operations[what] = _of_operation(Operation.of(what))
            yield begin, end, what[0], operations[what]
        elif kind == "node":
            yield begin, end, what, nodes[what]
        elif kind == "kernel":
            if id(what) not in kernels:
                kernels[id(what)] = _of_kernel(what)
            yield begin, end, what, kernels[id(what)]


def _of_graph(graph: Graph) -> Iterator[tuple[Node, Work]]:
    for node, each in cost.costs(graph).items():
        sources = (node.source,) if node.source else ()
        yield node, Work(node.primitive.name, "node", sources, _computed_in([node]), *each)


def _of_kernel(kernel: Any) -> Work:
    sources = tuple(dict.fromkeys(node.source for node in kernel.nodes if node.source))
    counts = kernel.bytes_read, kernel.bytes_written, kernel.flops, kernel.transcendentals
    return Work(kernel.name, kernel.kind, sources, _computed_in(kernel.nodes), *counts)


def _of_operation(operation: Operation) -> Work:
    """The work of an eager operation, counted as a node of a graph; its operands may be broadcast."""
    operands = tuple(Node(INPUT, (), {}, Spec(shape, BY_NUMPY[dtype])) for shape, dtype, _ in operation.inputs)
    spec = Spec(operation.shape, BY_NUMPY[operation.dtype])
    node = Node(operation.primitive, operands, {"dim": operation.dim}, spec)
    read = written = 0
    if not operation.primitive.is_view or operation.owns:
        read = sum(_distinct(*layout) for layout in _read(operation))
        written = spec.nbytes
    sources = (Source(*operation.place),) if operation.place else ()
    counts = read, written, cost.flops(node), cost.transcendentals(node)
    return Work(operation.primitive.name, "eager", sources, _computed_in([node]), *counts)


def _read(operation: Operation) -> Iterator[ArrayMeta]:
    """The layouts of the different arrays among the inputs; one that is given twice looks alike both times."""
    surplus = len(operation.inputs) - operation.different
    seen = set()
    for layout in operation.inputs:
        if surplus and layout in seen:
            surplus -= 1
        else:
            seen.add(layout)
            yield layout


def _distinct(shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...]) -> int:
    """The distinct bytes behind a view: each element of an expanded or unfolded view once."""
    once = prod(length for length, stride in zip(shape, strides, strict=True) if stride)
    span = 1 + sum((length - 1) * abs(stride) for length, stride in zip(shape, strides, strict=True)) // dtype.itemsize
    return dtype.itemsize * min(once, span) if prod(shape) else 0


def _computed_in(nodes: Iterable[Node]) -> str:
    """The type of most of the arithmetic; of a comparison the type of its operands."""
    found: dict[str, int] = {}
    for node in nodes:
        dtype = (node.inputs[0] if node.inputs and node.dtype.name == "bool" else node).dtype.name
        found[dtype] = found.get(dtype, 0) + cost.flops(node) + cost.transcendentals(node)
    return max(found, key=lambda dtype: found[dtype])


def label(sources: Iterable[Source]) -> str:
    """Several lines in short: ``"train.py:12,14; loss.py:3"``.

    Example:
        >>> label([Source("/a/train.py", 14), Source("/a/train.py", 12)])
        'train.py:12,14'
    """
    files: dict[str, list[Source]] = {}
    for source in sorted(set(sources), key=lambda source: (source.file, source.line)):
        files.setdefault(source.file, []).append(source)
    return "; ".join(",".join([str(first), *(str(each.line) for each in rest)]) for first, *rest in files.values())


# The groupings of rows: the key of a run, and the name of its row.
GROUPS: dict[str, Callable[[Any, Work], tuple[Any, str]]] = {
    "operation": lambda what, work: (
        (id(what) if work.kind not in ("eager", "node") else work.name, work.kind),
        work.name,
    ),
    "line": lambda what, work: (label(work.sources), label(work.sources) or "(no line)"),
}


def rows(recorder: Recorder, by: str = "operation") -> list[Row]:
    """The runs added up: by operation or kernel, or by the lines that asked for them; the longest first.

    Raises:
        ValueError: if there is no such grouping.
    """
    if by not in GROUPS:
        raise ValueError(f"rows are grouped by {' or '.join(map(repr, GROUPS))}, not by {by!r}")
    found: dict[Any, Row] = {}
    sources: dict[Any, dict[Source, None]] = {}
    names: dict[Any, dict[str, None]] = {}
    for begin, end, what, work in works(recorder):
        key, name = GROUPS[by](what, work)
        row = found.setdefault(key, Row(name, work.kind, ""))
        row.add(work, (end - begin) / 1e9)
        sources.setdefault(key, {}).update(dict.fromkeys(work.sources))
        names.setdefault(key, {})[work.name] = None
    for key, row in found.items():
        row.where = label(sources[key]) if by == "operation" else ", ".join(names[key])
    return sorted(found.values(), key=lambda row: -row.seconds)
