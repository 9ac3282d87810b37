"""Drawings of ledgers: kernels as clusters, with their operations inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.kernels.ledger import Ledger
from minitorch.graph.cost import in_units
from minitorch.graph.text import node_names
from minitorch.graph.values import is_splat
from minitorch.ir import Node
from minitorch.primitives import constant

from ..colours import KERNELS
from .drawing import INSIDE, MEMORY, VALUE, Arrow, Cluster, Drawing, Mark
from .graphs import Setting, given, heading, ids_of, literal, loops_of, operation, results

NOWHERE = (("kernel", "none: a view of the same memory"),)


def cluster_of(kernel: Kernel, id: str) -> Cluster:
    """A kernel as a cluster."""
    details = (
        ("class", f"{kernel.kind}, {KERNELS[kernel.kind][0]}"),
        ("operations", str(len(kernel.nodes))),
        ("bytes", f"{kernel.bytes_read:,} read, {kernel.bytes_written:,} written"),
        ("FLOPs", f"{kernel.flops:,}"),
        ("exp, log and the like", f"{kernel.transcendentals:,}"),
    )
    return Cluster(id, kernel.kind, f"{kernel.name} · {kernel.kind} {KERNELS[kernel.kind][0]}", details)


def of_ledger(ledger: Ledger, setting: Setting | None = None, ids: Mapping[Node, str] | None = None) -> Drawing:
    """The drawing of a ledger's kernels.

    What several kernels compute, each for itself, is drawn in each of them. An arrow within a kernel is a value in a
    register; one from kernel to kernel is memory that is written and read, and has the ledger's reason for it.

    Args:
        setting: what the inputs and outputs of its graph are.
        ids: an id for each input and node with a name.

    Example:
        >>> import minitorch as mt
        >>> drawing = of_ledger(mt.jit(lambda x: x.softmax(1)).ledger(mt.ones(8, 4)))
        >>> [cluster.kind for cluster in drawing.clusters], len(drawing.marks)
        (['K3'], 11)
    """
    graph, setting = ledger.graph, setting or Setting()
    names = node_names(graph)
    ids = ids_of(graph, names) | dict(ids or {})
    reasons = {(edge.producer, edge.consumer): edge for edge in ledger.edges}
    clusters = tuple(cluster_of(kernel, f"k{number}") for number, kernel in enumerate(ledger.kernels))
    homes: dict[Node, list[int]] = {}  # the kernels that compute a node
    for number, kernel in enumerate(ledger.kernels):
        for node in kernel.nodes:
            homes.setdefault(node, []).append(number)
    stored = {node: home for node, found in homes.items() for home in found if node in ledger.kernels[home].writes}

    made = [node for node in stored if is_splat(node)]  # a number that a kernel writes, for one that reads memory
    ids |= {node: f"s{place}" for place, node in enumerate(made)}
    groups = loops_of(graph, ids)
    later = {node for group in groups.values() for node in group[1:]}
    read_by: set[tuple[str, int]] = set()  # reads of kernels, once for all uses there

    def place(node: Node, kernel: int | None) -> str:
        """The mark from which a kernel, or the outside, takes a value."""
        found = homes.get(node)
        if found is None:
            return ids[node]
        home = kernel if kernel in found else stored.get(node, found[0])
        return f"{ids[node]}.k{home}"

    def is_repeated(node: Node, kernel: int) -> bool:
        """Whether a kernel has a number of its own that another one writes."""
        return node in made and kernel in homes[node]

    def arrow(operand: Node, node: Node, kernel: int | None) -> Arrow:
        tail, head = place(operand, kernel), place(node, kernel)
        found = reasons.get((operand, node))
        detail = found.reason if found else ""
        if kernel is not None and kernel in homes.get(operand, ()):
            return Arrow(tail, head, INSIDE, detail=detail)
        if kernel is None or operand.primitive is constant:
            return Arrow(tail, head, VALUE, detail=detail)
        label = "" if (tail, kernel) in read_by else in_units(operand.spec.nbytes, "B")
        read_by.add((tail, kernel))
        return Arrow(tail, head, MEMORY, label, detail)

    marks: list[Mark] = given(graph, setting, names, ids)
    arrows: list[Arrow] = []
    for node in graph.nodes:
        if node not in ids or node in later:
            continue
        if node.primitive is constant:
            mark = literal(node, names, place(node, None))
            marks.append(replace(mark, cluster=f"k{stored[node]}") if node in made else mark)
            continue
        operands = [operand for operand in dict.fromkeys(node.inputs) if operand in ids]
        _, scope = setting.scopes.get(node, (None, ""))
        if node not in homes:
            marks.append(operation(node, names, (0, 0), ids[node], scope, None, NOWHERE))
            arrows += [arrow(operand, node, None) for operand in operands]
        group = groups.get(node, [node])
        for home in homes.get(node, ()):
            reads = [each for each in operands if stored.get(each, home) == home or not is_repeated(each, home)]
            read = sum(operand.spec.nbytes for operand in reads if home not in homes.get(operand, ()))
            written = sum(each.spec.nbytes for each in group if each in ledger.kernels[home].writes)
            more = (("kernel", clusters[home].title),)
            mark = operation(node, names, (read, written), place(node, home), scope, f"k{home}", more, group)
            marks.append(mark)
            arrows += [arrow(operand, node, home) for operand in reads]
    ends, last = results(graph, setting, {node: place(node, None) for node in ids})
    stores = {mark.id: mark for mark in marks if mark.work.written}
    last = [replace(each, kind=MEMORY) if each.tail in stores else each for each in last]
    count = f"{len(clusters)} kernel{'s' if len(clusters) != 1 else ''}"
    return Drawing(f"{heading(graph)} in {count}", (*marks, *ends), (*arrows, *last), clusters)
