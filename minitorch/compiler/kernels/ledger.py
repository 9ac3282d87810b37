"""The ledger of a graph: its kernels in order, and every edge with the reason why it was fused or not.

A kernel is either generated loops (kinds K1 pointwise, K2 reduction, K3 row-resident, K4 contraction) or a call into
NumPy (operations without loops). Bytes are the least that a kernel has to move: every buffer once.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from ...graph import Graph, topological_order
from ...graph.cost import in_units
from ...graph.values import siblings
from ...ir import INPUT, Node, Source
from ...passes.eight_bits import kept_in_floats
from ...tables import Table, Tabular
from ..fusion import ALL_ON, PHASES, RECOMPUTING, ROWS, SIDE_BY_SIDE, SPLITTING, TRANSIENT
from ..fusion.fusion_groups import Group, structure
from ..fusion.remat import decide
from ..fusion.roots import (
    CONTRACTION,
    OPERAND,
    OUTPUT,
    REDUCTION,
    TILE_BY_TILE,
    Transient,
    base_of,
    is_stored_already,
    output_base,
)
from ..loop_ir.loops import LoopKernel
from ..scheduling.nests import PARTIAL
from ..scheduling.nests.build import bounds_of, build_kernel
from ..scheduling.schedules.choice import Own
from ..target import Target, target_named
from .kernel import Kernel, table_of
from .placement import place

FUSED = "fused"
UNUSED = "nothing needs the result"
AGAIN = "recomputing it costs less than storing and reading it"
LATER = "in a later phase of the same kernel"
EMPTY = "a kernel over it has no elements"
TWISTED = "a kernel computes it by rows and by columns"

# The loops of groups by their structure, and the number of each buffer's node in it; partial results have none.
Built = dict[Hashable, tuple[LoopKernel, list[int | Node]]]


@dataclass(frozen=True)
class Edge:
    """One use of a value.

    Attributes:
        producer, consumer: the nodes.
        fused: whether the value goes from one to the other without memory.
        reason: why not, or ``"fused"``, or that the value is computed again rather than stored.
        bytes: a write and a read of the value, which fusing saves.
    """

    producer: Node
    consumer: Node
    fused: bool
    reason: str
    bytes: int


@dataclass(frozen=True, repr=False)
class Ledger(Tabular):
    """The kernels of a graph in the order in which they run, and why edges were fused or not.

    Attributes:
        graph: the program.
        target: the machine that the kernels are made for.
        kernels: in order.
        edges: one per use of a computed value.
        without: the classes of fusion that are switched off.
        own: the user's own schedules.
    """

    graph: Graph
    target: Target
    kernels: tuple[Kernel, ...]
    edges: tuple[Edge, ...] = field(default=())
    without: Set[str] = ALL_ON
    own: Own | None = field(default=None, repr=False)

    def for_target(self, target: str | Target) -> Ledger:
        """Return the ledger of the same graph for another machine, to print and count it on this one.

        Schedules of the user's own apply there, too, where the kernels have the same loops.

        Args:
            target: ``"sse2"``, ``"avx2"``, ``"avx512"``, ``"neon"`` or ``"apple-m1"``, or any `Target`.

        Raises:
            ValueError: if no target has that name.

        Example:
            >>> import minitorch as mt
            >>> ledger = mt.jit(lambda x: x * 2).ledger(mt.ones(1024))
            >>> for name in ("sse2", "avx2", "neon"):
            ...     (kernel,) = ledger.for_target(name).kernels
            ...     print(name, kernel.flops, "ymm" in kernel.assembly, ".4s" in kernel.assembly)
            sse2 1024 False False
            avx2 1024 True False
            neon 1024 False True
        """
        named = target_named(target) if isinstance(target, str) else target
        return ledger_of(self.graph, named, self.without, self.own)

    def by_source(self) -> dict[Source, tuple[str, ...]]:
        """Return the names of the kernels that each line is a part of."""
        found: dict[Source, dict[str, None]] = {}
        for kernel in self.kernels:
            for node in kernel.nodes:
                if node.source is not None:
                    found.setdefault(node.source, {})[kernel.name] = None
        return {source: tuple(names) for source, names in found.items()}

    def _parts(self) -> Iterator[Table | str]:
        placement = place(self.graph, self.kernels)
        saved = max(self.graph.cost().bytes - sum(each.bytes_read + each.bytes_written for each in self.kernels), 0)
        kept = [edge for edge in self.edges if not edge.fused]
        count = f"{len(self.kernels)} kernel{'s' if len(self.kernels) != 1 else ''}"
        yield table_of(self.kernels, count)
        yield f"{len(self.edges) - len(kept)} of {len(self.edges)} edges fused, {in_units(saved, 'B')} not moved"
        intermediate, arena = in_units(placement.intermediate_bytes, "B"), in_units(placement.arena_bytes, "B")
        yield f"intermediates: {intermediate} in an arena of {arena}"
        alike: dict[tuple[str, str, str], list[int]] = {}
        for edge in kept:
            key = edge.producer.primitive.name, edge.consumer.primitive.name, edge.reason
            alike.setdefault(key, []).append(edge.bytes)
        for reason in (TILE_BY_TILE, AGAIN):
            again = list(dict.fromkeys(at.producer.primitive.name for at in self.edges if at.reason == reason))
            if again:
                yield f"{', '.join(again)}: {reason}"
        if kept:
            yield f"not fused, {in_units(sum(edge.bytes for edge in kept), 'B')} moved for it:"
            rows = []
            for (producer, consumer, reason), sizes in alike.items():
                times = f" ({len(sizes)} times)" if len(sizes) > 1 else ""
                rows.append((f"{producer} -> {consumer}{times}", in_units(sum(sizes), "B"), reason))
            yield Table("  {:<34}{:>10}  {}", rows)
        yield from (f"{each.name}: a schedule is refused: {reason}" for each in self.kernels for reason in each.refused)
        for node, reason in kept_in_floats(self.graph):
            yield f"{node.source or node.primitive.name}: quantised operands are multiplied as floats: {reason}"


def ledger_of(graph: Graph, target: Target, without: Set[str] = ALL_ON, own: Own | None = None) -> Ledger:
    """Partition a graph into kernels for a target.

    Args:
        graph: as it is; `minitorch.passes.LOWERING` brings one into the form that fuses best.
        target: the machine that they are made for.
        without: the classes of fusion that are switched off, of `FUSIONS`.
        own: the user's own schedules.
    """
    refused: dict[Node, str] = {}  # contractions that no schedule computes in tiles, each with the reason
    is_asked = True
    while is_asked:
        transient = Transient() if without & {TRANSIENT, ROWS, RECOMPUTING} else _transient(graph, refused)
        decided = decide(graph, transient.values, without, target)
        roots, order = decided.roots, decided.order
        kernels = _kernels(graph, order, roots, target, SPLITTING not in without)
        is_asked = bool(transient.values) and _refuse(order, kernels, refused)
    kernels = [kernel for kernel in kernels if kernel.writes]  # dead code has no kernel
    if len(kernels) > 1:
        from .merge import merge_siblings, merge_small

        kernels = kernels if SIDE_BY_SIDE in without else merge_siblings(kernels)
        kernels = kernels if PHASES in without else merge_small(kernels)
    if own:
        kernels = [_with_own(kernel, own) for kernel in kernels]
    edges = _edges(graph, kernels, roots, transient, decided.again, _apart(order, roots))
    return Ledger(graph, target, tuple(kernels), edges, without, own)


def _transient(graph: Graph, refused: Mapping[Node, str]) -> Transient:
    """Propose contractions that are never stored, which others sum over."""
    if sum(node.primitive.kind == "contraction" for node in graph.nodes) < 2:
        return Transient()
    from ..fusion.transient import find_transient

    return find_transient(graph, refused)


def _refuse(order: Sequence[Group | Node], kernels: Sequence[Kernel], refused: dict[Node, str]) -> bool:
    """Refuse the contractions of kernels of tiles that no schedule knows, and of those that share one with them.

    Returns:
        Whether there are any.
    """
    before, groups = len(refused), list[set[Node]]()
    for item, kernel in zip(order, kernels, strict=True):
        if isinstance(item, Group) and item.tiles:
            groups.append({node for node, _ in item.tiles})
            reason = TWISTED if len(groups[-1]) < len(item.tiles) else ""
            if not reason and any(part.is_as_defined for part in kernel.scheduled):
                reason = (*kernel.refused, EMPTY)[0]
            refused |= dict.fromkeys(groups[-1], reason) if reason else {}
    for tiles in groups:
        reasons = [refused[node] for node in tiles if node in refused]
        refused |= dict.fromkeys(tiles - refused.keys(), reasons[0]) if reasons else {}
    return len(refused) > before


def _with_own(kernel: Kernel, own: Own) -> Kernel:
    """Return a kernel with the user's own schedules; facts known of the engine's schedule are found again."""
    found = [own.get((nest, buffers)) for nest, buffers, _ in kernel.loops.parts] if kernel.loops else []
    return replace(kernel, own=tuple(found)) if any(each is not None for each in found) else kernel


def _kernels(
    graph: Graph, order: Sequence[Group | Node], roots: dict[Node, str], target: Target, cut: bool
) -> list[Kernel]:
    needed = _stored(graph, order)
    together = siblings(item for item in order if not isinstance(item, Group))
    later = {node for group in together.values() for node in group[1:]}
    built: Built = {}
    return [
        _loop_kernel(number, item, roots, needed, target, cut, built)
        if isinstance(item, Group)
        else _call_kernel(number, together.get(item, [item]), target)
        for number, item in enumerate(item for item in order if isinstance(item, Group) or item not in later)
    ]


def _stored(graph: Graph, order: Sequence[Group | Node]) -> set[Node]:
    """Return the roots that are stored in memory: outputs, and values that another kernel reads."""
    needed = set(map(output_base, graph.outputs))
    for item in order:
        if isinstance(item, Group):
            needed |= item.reads
        else:
            needed |= {base_of(operand) for operand in item.inputs}
    return needed


def _loop_kernel(
    number: int, group: Group, roots: dict[Node, str], needed: set[Node], target: Target, cut: bool, built: Built
) -> Kernel:
    stored, nodes = {node for node in group.nodes if node in needed}, _covered(group, roots)
    key, numbers = structure(group, nodes, roots, stored)
    key = key, *(bounds_of(node, roots) for node in numbers)
    if key in built:
        loops, places = built[key]
        every = list(numbers)
        buffers = [every[at] if isinstance(at, int) else _anew(at) for at in places]
    else:
        loops, buffers = build_kernel("kernel", group, roots, stored, target, cut)
        built[key] = loops, [numbers.get(node, node) for node in buffers]
    written = {number for number, buffer in enumerate(loops.buffers) if buffer.written}
    reductions = sum(member.is_reduction for member in group.members)
    kind = "K1" if not reductions else "K2" if reductions == len(group.members) else "K3"
    kind = "K4" if group.is_contraction or group.tiles else kind
    names = "_".join(dict.fromkeys(member.node.primitive.name for member in group.members))
    return Kernel(
        f"k{number}_{names}"[:34],
        kind,
        (nodes,),
        tuple(node for place, node in enumerate(buffers) if place not in written),
        tuple(node for place, node in enumerate(buffers) if place in written and node.primitive is not PARTIAL),
        target,
        loops,
        tuple(buffers),
    )


def _anew(node: Node) -> Node:
    """Return a partial result of another kernel's; the lengths of a call are the same for all kernels."""
    return Node(PARTIAL, (), {}, node.spec) if node.primitive is PARTIAL else node


def _covered(group: Group, roots: dict[Node, str]) -> tuple[Node, ...]:
    """Return all nodes that a group computes, in program order."""
    found: dict[Node, None] = {}
    for member in group.members:
        pending, seen, outside = [member.node], {member.node}, set()
        while pending:
            for operand in pending.pop().inputs:
                if operand in roots or is_stored_already(operand):
                    outside.add(operand)
                elif operand not in seen:
                    seen.add(operand)
                    pending.append(operand)
        found |= dict.fromkeys(topological_order([member.node], outside))
    return tuple(found)


def _call_kernel(number: int, nodes: Sequence[Node], target: Target) -> Kernel:
    reads = tuple(dict.fromkeys(base_of(operand) for operand in nodes[0].inputs))
    return Kernel(f"k{number}_{nodes[0].primitive.name}", "call", (tuple(nodes),), reads, tuple(nodes), target)


def _apart(order: Sequence[Group | Node], roots: dict[Node, str]) -> dict[tuple[Node, Node], str]:
    """Return why a root is not in the group of a node that reads it, for each such pair."""
    groups = [item for item in reversed(order) if isinstance(item, Group)]  # of several readers, the first counts
    return {
        (operand, node): group.apart[operand]
        for group in groups
        for node in _covered(group, roots)
        for operand in node.inputs
        if operand in group.apart
    }


def _edges(
    graph: Graph,
    kernels: Sequence[Kernel],
    roots: dict[Node, str],
    transient: Transient,
    again: Container[Node],
    apart: Mapping[tuple[Node, Node], str],
) -> tuple[Edge, ...]:
    """Return every use of a computed value: fused, or the reason against it."""
    home: dict[Node, set[tuple[int, int]]] = {}  # by kernel and phase
    for number, kernel in enumerate(kernels):
        for phase, nodes in enumerate(kernel.phases):
            for node in nodes:
                home.setdefault(node, set()).add((number, phase))
    calls = {node for kernel in kernels if kernel.loops is None for node in kernel.nodes}
    shown = {node for node in graph.outputs if node.primitive.name == "reshape"}  # views of the same memory
    edges = []
    for node in graph.nodes:
        for operand in dict.fromkeys(node.inputs):
            if operand.primitive is INPUT or operand.primitive.name == "constant":
                continue
            here, there = home.get(node, set()), home.get(operand, set())
            free = (operand.primitive.is_view and operand not in home) or (node in shown and node not in home)
            is_fused = bool(here & there or free)
            if is_fused:
                reason = AGAIN if operand in again else FUSED
                reason = TILE_BY_TILE if operand in transient.values and len(there) > 1 else reason
            elif not here:
                reason = UNUSED
            elif {kernel for kernel, _ in here} & {kernel for kernel, _ in there}:
                reason = LATER
            elif operand in calls:
                reason = roots[operand]
            elif operand in transient.refused:
                reason = transient.refused[operand]
            elif node in calls:
                reason = OPERAND
            else:
                reason = roots.get(operand, REDUCTION)
                if reason in (REDUCTION, CONTRACTION, OUTPUT):  # an operand may be left out of the loops that are made
                    reason = apart.get((operand, node), UNUSED)
            edges.append(Edge(operand, node, is_fused, reason, 2 * operand.spec.nbytes))
    return tuple(edges)
