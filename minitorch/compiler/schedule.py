"""The schedule of a graph: its kernels in order, and the ledger, which says of every edge whether it was fused and why
not.

A kernel is either generated loops (kinds K1 pointwise, K2 reduction, K3 row-resident, K4 contraction) or a call into
NumPy (whatever has no loops yet). Bytes are those that a kernel must move at least: every buffer once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..graph import Graph
from ..ir import INPUT, Node
from . import machine
from .decompose import decompose
from .emit import emit
from .fuse import Group, fuse
from .layout import units
from .loops import LoopKernel
from .nests import build_kernel
from .reshapes import reshapes_last
from .roots import CONTRACTION, OUTPUT, REDUCTION, base_of, find_roots, is_call, is_stored_already, output_base
from .source import source

FUSED = "fused"
OTHER_ROWS = "the kernels run over different rows"


@dataclass(frozen=True)
class Edge:
    """One use of a value.

    Attributes:
        producer, consumer: the nodes.
        fused: whether the value goes from one to the other without memory.
        reason: why not, or ``"fused"``.
        bytes: what is saved by fusing, or moved for want of it: a write and a read of the value.
    """

    producer: Node
    consumer: Node
    fused: bool
    reason: str
    bytes: int


@dataclass
class Kernel:
    """One unit of work.

    Attributes:
        name: short, with the operations it ends in.
        kind: ``"K1"`` pointwise, ``"K2"`` reduction, ``"K3"`` row-resident, ``"K4"`` contraction, ``"call"`` other
        calls. nodes: what it computes, in program order.
        reads, writes: the nodes whose values it reads from memory, and those that it writes.
        loops: its loops; None for a call.
        buffers: the node behind each buffer of the loops.
    """

    name: str
    kind: str
    nodes: tuple[Node, ...]
    reads: tuple[Node, ...]
    writes: tuple[Node, ...]
    loops: LoopKernel | None = None
    buffers: tuple[Node, ...] = ()
    flops: int = 0

    @property
    def bytes_read(self) -> int:
        """From memory, every value once."""
        return sum(node.spec.nbytes for node in self.reads)

    @property
    def bytes_written(self) -> int:
        """To memory."""
        return sum(node.spec.nbytes for node in self.writes)

    @cached_property
    def source(self) -> str:
        """The kernel as Python that runs; of a call, the name of what is called."""
        return source(self.loops) if self.loops else f"# {self.nodes[0].primitive.name}, run by NumPy\n"

    @cached_property
    def llvm(self) -> str:
        """The kernel as LLVM IR; empty for a call."""
        return emit(self.loops, machine.host().vector_bytes) if self.loops else ""

    @cached_property
    def assembly(self) -> str:
        """The kernel as the host's assembly language; empty for a call."""
        return machine.assembly(self.llvm) if self.loops else ""

    @property
    def units(self) -> int:
        """The length of its parallel range."""
        return units(self.loops, machine.host().vector_bytes) if self.loops else 0

    def __str__(self) -> str:
        where = ", ".join(dict.fromkeys(str(node.source) for node in self.nodes if node.source))
        return (
            f"{self.name:<34} {self.kind:<5}{len(self.nodes):>4} nodes {self.bytes_read / 1e6:>9.3f} MB read "
            f"{self.bytes_written / 1e6:>9.3f} MB written  {where[:60]}"
        ).rstrip()


@dataclass(frozen=True)
class Schedule:
    """The kernels of a graph in the order in which they run, and the ledger.

    Attributes:
        graph: what was scheduled.
        kernels: in order.
        edges: one per use of a computed value.
    """

    graph: Graph
    kernels: tuple[Kernel, ...]
    edges: tuple[Edge, ...] = field(default=())

    def __str__(self) -> str:
        saved = sum(edge.bytes for edge in self.edges if edge.fused)
        lines = [f"{len(self.kernels)} kernels", *(f"  {kernel}" for kernel in self.kernels)]
        kept = [edge for edge in self.edges if not edge.fused]
        lines.append(f"{len(self.edges) - len(kept)} of {len(self.edges)} edges fused, {saved / 1e6:.3f} MB not moved")
        for edge in kept:
            lines.append(
                f"  {edge.producer.primitive.name} -> {edge.consumer.primitive.name}: {edge.reason} "
                f"({edge.bytes / 1e6:.3f} MB)"
            )
        return "\n".join(lines)


def schedule(graph: Graph) -> Schedule:
    """Partition a graph into kernels."""
    graph = reshapes_last(decompose(graph))
    roots = find_roots(graph)
    calls = {node: is_call(node) for node in roots}
    order = fuse(roots, calls)
    needed = _stored(graph, order)
    kernels: list[Kernel] = []
    for number, item in enumerate(order):
        kernels.append(
            _loop_kernel(number, item, roots, needed) if isinstance(item, Group) else _call_kernel(number, item)
        )
    kernels = merge_siblings([kernel for kernel in kernels if kernel.writes])  # dead code has none
    return Schedule(graph, tuple(kernels), _ledger(graph, kernels, roots, calls))


def merge_siblings(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Put pointwise kernels that do not need each other side by side, in one kernel of kind K5.

    Every kernel is as late as it can be: its *depth* is the longest way from it to the end. Kernels of one depth do not
    need each other, whatever their shapes: the updates of all parameters by an optimiser are the case that matters.
    """
    depth: dict[int, int] = {}
    users: dict[Node, list[int]] = {}
    for number, kernel in enumerate(kernels):
        for node in kernel.reads:
            users.setdefault(node, []).append(number)
    for number in range(len(kernels) - 1, -1, -1):
        below = [depth[user] + 1 for node in kernels[number].writes for user in users.get(node, ())]
        depth[number] = max(below, default=0)
    levels: dict[int, list[Kernel]] = {}
    for number, kernel in enumerate(kernels):
        levels.setdefault(depth[number], []).append(kernel)
    result = []
    for level in sorted(levels, reverse=True):
        pointwise = [kernel for kernel in levels[level] if kernel.kind == "K1"]
        result += [kernel for kernel in levels[level] if kernel.kind != "K1"]
        result += [_side_by_side(pointwise)] if len(pointwise) > 1 else pointwise
    return result


def _side_by_side(kernels: Sequence[Kernel]) -> Kernel:
    buffers = tuple(node for kernel in kernels for node in kernel.buffers)
    described = tuple(buffer for kernel in kernels if kernel.loops for buffer in kernel.loops.buffers)
    nests = tuple(nest for kernel in kernels if kernel.loops for nest in kernel.loops.nests)
    sizes = [len(kernel.buffers) for kernel in kernels]
    starts = tuple(sum(sizes[:number]) for number in range(len(sizes)))
    return Kernel(
        f"{kernels[0].name.split('_')[0]}_{len(kernels)}_side_by_side",
        "K5",
        tuple(dict.fromkeys(node for kernel in kernels for node in kernel.nodes)),
        tuple(dict.fromkeys(node for kernel in kernels for node in kernel.reads)),
        tuple(node for kernel in kernels for node in kernel.writes),
        LoopKernel("kernel", described, nests, starts),
        buffers,
        sum(kernel.flops for kernel in kernels),
    )


def _stored(graph: Graph, order: Sequence[Group | Node]) -> set[Node]:
    """The roots that end in memory: outputs, and what another kernel reads."""
    needed = set(map(output_base, graph.outputs))
    for item in order:
        if isinstance(item, Group):
            needed |= item.reads
        else:
            needed |= {base_of(operand) for operand in item.inputs}
    return needed


def _loop_kernel(number: int, group: Group, roots: dict[Node, str], needed: set[Node]) -> Kernel:
    stored = {node for node in group.nodes if node in needed}
    loops, buffers = build_kernel("kernel", group, roots, stored)
    nodes = _covered(group, roots)
    written = {number for number, buffer in enumerate(loops.buffers) if buffer.written}
    reductions = sum(member.is_reduction for member in group.members)
    kind = "K1" if not reductions else "K2" if reductions == len(group.members) else "K3"
    kind = "K4" if group.is_contraction else kind
    names = "_".join(dict.fromkeys(member.node.primitive.name for member in group.members))
    return Kernel(
        f"k{number}_{names}"[:34],
        kind,
        nodes,
        tuple(node for place, node in enumerate(buffers) if place not in written),
        tuple(node for place, node in enumerate(buffers) if place in written),
        loops,
        tuple(buffers),
        _flops(nodes),
    )


def _covered(group: Group, roots: dict[Node, str]) -> tuple[Node, ...]:
    """All nodes that a group computes, in program order."""
    found: dict[Node, None] = {}
    for member in group.members:
        pending, own = [member.node], []
        while pending:
            at = pending.pop()
            own.append(at)
            pending += [operand for operand in at.inputs if operand not in roots and not is_stored_already(operand)]
        for node in reversed(own):
            found.setdefault(node)
    return tuple(found)


def _flops(nodes: Sequence[Node]) -> int:
    """One per element for arithmetic, one per operand element for a reduction; movement is free."""
    total = 0
    for node in nodes:
        if node.primitive.kind == "reduction":
            total += node.inputs[0].spec.size
        elif node.primitive.kind == "contraction":
            total += 2 * node.spec.size * node.inputs[0].shape[-1]
        elif node.primitive.kind in ("unary", "binary", "ternary") and node.primitive.name not in ("cast", "bitcast"):
            total += node.spec.size
    return total


def _call_kernel(number: int, node: Node) -> Kernel:
    reads = tuple(dict.fromkeys(base_of(operand) for operand in node.inputs))
    return Kernel(f"k{number}_{node.primitive.name}", "call", (node,), reads, (node,))


def _ledger(
    graph: Graph, kernels: Sequence[Kernel], roots: dict[Node, str], calls: dict[Node, bool]
) -> tuple[Edge, ...]:
    """Every use of a computed value: fused, or why it was not."""
    home: dict[Node, set[int]] = {}
    for number, kernel in enumerate(kernels):
        for node in kernel.nodes:
            home.setdefault(node, set()).add(number)
    shown = {node for node in graph.outputs if node.primitive.name == "reshape"}  # the same memory, seen otherwise
    edges = []
    for node in graph.nodes:
        for operand in dict.fromkeys(node.inputs):
            if operand.primitive is INPUT or operand.primitive.name == "constant":
                continue
            together = bool(home.get(node, set()) & home.get(operand, set()))
            free = (operand.primitive.is_view and operand not in home) or (node in shown and node not in home)
            if together or free:
                reason = FUSED
            elif calls.get(operand):
                reason = roots[operand]
            elif calls.get(node):
                reason = "a library call reads it from memory"
            else:
                reason = roots.get(operand, OTHER_ROWS)
                reason = OTHER_ROWS if reason in (REDUCTION, CONTRACTION, OUTPUT) else reason
            edges.append(Edge(operand, node, reason == FUSED, reason, 2 * operand.spec.nbytes))
    return tuple(edges)
