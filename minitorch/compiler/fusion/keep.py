"""Recompute or keep: cheap values that several kernels read.

`roots` lets every reader compute a cheap value for itself. An activation, or a bias that is added, is read together
with what it is made of, and costs arithmetic alone. A sum of two arrays does not: who computes it reads two arrays
instead of one. And in ``x = x + f(x)``, again and again, the last layer would read the results of all layers before it:
the traffic of the whole would grow with the square of its depth.

So a cheap value is kept if its readers would move more bytes to compute it than to read it. Which kernels there are is
known after a first fusion, in which every value in question is a root. They are gone through in program order; one that
is not kept is replaced, in all that reads it, by what it is made of, and the next are judged by what is left. That is a
heuristic: with the kernels given, the least traffic of all is a minimum cut, but the kernels depend on the choice.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Mapping, Sequence, Set

from ...graph import Graph
from ...graph.cost import in_units
from ...ir import POINTWISE, Node
from ..loop_ir.lower import At
from ..target import Target
from .again import MOST_OPERATIONS, operations
from .fuse import Group, fuse, reads_of
from .roots import base_of, count_readers, find_roots, is_call, output_base

IN_QUESTION = "several kernels may read it"
WORTH_IT = 1 << 12  # bytes that are moved in the time that the call of a kernel takes: less is not worth other kernels
MOST_READ = 8  # arrays that a value is made of, if it moves no more bytes to store it on the way
NEGLIGIBLE = 8  # what a value is made of and is so many times smaller than the value adds next to no traffic


def worth_keeping(graph: Graph, transient: Collection[Node], without: Set[str], target: Target) -> dict[Node, str]:
    """The cheap values that are stored because several kernels read them, each with the reason."""
    asked = _in_question(graph, find_roots(graph, transient), transient, target)
    if not asked:
        return {}
    roots = find_roots(graph, transient, dict.fromkeys(asked, IN_QUESTION))
    calls = {node: is_call(node) for node in roots}
    kernels = _Kernels(graph, fuse(roots, calls, transient, without), roots, target)
    reasons = {node: kernels.decide(node) for node in asked}
    return {node: reason for node, reason in reasons.items() if reason}


def _in_question(graph: Graph, roots: Container[Node], transient: Container[Node], target: Target) -> list[Node]:
    """Values that are read more than once and made of more bytes than their own, or of many arrays or operations."""
    users = graph.users()
    made_of: dict[Node, dict[Node, int]] = {}  # what is read to compute a value, and how many bytes of it
    work: dict[Node, int] = {}  # operations for an element
    found: list[Node] = []
    for node in graph.nodes:
        if node in roots or node in transient:
            continue
        sources: dict[Node, int] = {}
        for operand in node.inputs:
            for source, size in made_of.get(operand, {operand: operand.spec.nbytes}).items():
                sources[source] = min(size, node.spec.size * source.dtype.itemsize)
        is_pointwise = node.primitive.kind in POINTWISE
        count = min(is_pointwise + sum(work.get(operand, 0) for operand in node.inputs), MOST_OPERATIONS + 1)
        read = sum(sources.values())
        more = read >= WORTH_IT // NEGLIGIBLE and read * NEGLIGIBLE > node.spec.nbytes * (NEGLIGIBLE + 1)
        again = (more or count > MOST_OPERATIONS) and count_readers(node, users) > 1
        if is_pointwise and node.spec.size and (again or _many(node, sources, target)):
            found.append(node)
        else:
            made_of[node], work[node] = sources, count
    return found


def _many(node: Node, sources: Mapping[Node, int], target: Target) -> bool:
    """Whether a value that no cache holds is made of many arrays of its size, which all have to be in memory for it."""
    large = node.spec.nbytes > target.caches[1]
    return large and sum(size >= node.spec.nbytes for size in sources.values()) > MOST_READ


class _Kernels:
    """Which root reads how many bytes of what, and in which kernel it is. What is not kept is taken out."""

    def __init__(self, graph: Graph, order: Sequence[Group | Node], roots: Mapping[Node, str], target: Target) -> None:
        self.target = target
        self.roots = dict(roots)
        self.outputs = set(map(output_base, graph.outputs))
        self.home: dict[Node, int] = {}  # the kernel that computes a root
        self.reads: dict[Node, dict[Node, int]] = {}  # of a root: bytes of each value that it is computed from
        self.readers: dict[Node, dict[Node, None]] = {}  # of a value: the roots that are computed from it
        self.members: dict[int, list[Node]] = {}  # the roots of a kernel
        for kernel, item in enumerate(order):
            if isinstance(item, Group):
                for member in item.members:
                    self._add(member.node, kernel, reads_of(member, roots))
            else:
                self._add(item, kernel, ((base, ()) for base in map(base_of, item.inputs)))

    def _add(self, root: Node, kernel: int, reads: Iterable[tuple[Node, At]]) -> None:
        self.home[root], self.reads[root] = kernel, {}
        self.members.setdefault(kernel, []).append(root)
        for node, at in reads:
            size = _elements(node, at) * node.dtype.itemsize
            self.reads[root][node] = min(node.spec.nbytes, self.reads[root].get(node, 0) + size)
            self.readers.setdefault(node, {})[root] = None

    def decide(self, node: Node) -> str:
        """Why a value is kept; empty if it is not, and is no root any more."""
        others = {self.home[reader] for reader in self.readers.get(node, ())} - {self.home[node]}
        kept = node.spec.nbytes + sum(self._read(kernel, node) for kernel in others)
        again = sum(self._read_instead(kernel, node) for kernel in others) + self._moved_at_home(node, others)
        if again - kept >= self._least(node):
            return f"kept: {in_units(kept, 'B')} are moved for it, and {in_units(again, 'B')} to compute it again"
        if others and again >= kept and _many(node, self.reads[node], self.target):
            return f"kept: it is made of more than {MOST_READ} arrays, and to compute it again moves no less"
        if others and node.spec.nbytes >= WORTH_IT and len(list(operations(node, self.roots))) > MOST_OPERATIONS:
            return f"kept: to compute it again takes more than {MOST_OPERATIONS} operations"
        self._take_out(node)
        return ""

    def _read(self, kernel: int, node: Node, but: Node | None = None) -> int:
        """How many bytes of a value a kernel reads; without what one of its roots does."""
        roots = [root for root in self.readers[node] if self.home[root] == kernel and root is not but]
        return min(node.spec.nbytes, sum(self.reads[root][node] for root in roots))

    def _read_instead(self, kernel: int, node: Node) -> int:
        """How many bytes more a kernel reads to compute a value that it does not read any more."""
        share = self._read(kernel, node)
        return sum(
            max(0, min(size, share * size // node.spec.nbytes) - self._read(kernel, source))
            for source, size in self.reads[node].items()
            if self.home.get(source) != kernel
        )

    def _least(self, node: Node) -> int:
        """How many bytes should be saved for that to be worth it.

        A kernel of sums reads in one pass with others like it, as long as nothing follows the sums: then it is a share
        of what they read.
        """
        own = self.home[node]
        if any(root.primitive.kind == "contraction" for root in self.members[own]):
            return WORTH_IT
        reads = {source for root in self.members[own] for source in self.reads.get(root, ())}
        read = sum(self._read(own, source) for source in reads if self.home.get(source) != own)
        return max(WORTH_IT, read // NEGLIGIBLE)

    def _moved_at_home(self, node: Node, others: Set[int]) -> int:
        """How many bytes more its own kernel moves if it does not store a value, which may be less than none.

        If it has no use for it, it need not read what it is made of; what of that it makes itself, others will read.
        """
        own, total = self.home[node], 0
        is_used = self._read(own, node) > 0
        for source, size in self.reads[node].items():
            if self.home.get(source) != own:
                total -= 0 if is_used else max(0, size - self._read(own, source, but=node))
            elif others and source not in self.outputs and self._stays(source):
                total += source.spec.nbytes
        return total

    def _stays(self, node: Node) -> bool:
        """Whether only the kernel that computes a value reads it, so that it is not in memory."""
        return all(self.home[reader] == self.home[node] for reader in self.readers[node])

    def _take_out(self, node: Node) -> None:
        """Whatever reads a value reads what that is made of."""
        del self.roots[node], self.home[node]
        sources = self.reads.pop(node)
        for source in sources:
            del self.readers[source][node]
        for reader in self.readers.pop(node, ()):
            share = self.reads[reader].pop(node)
            for source, size in sources.items():
                part = -(-share * size // max(node.spec.nbytes, 1))
                self.reads[reader][source] = min(size, max(part, self.reads[reader].get(source, 0)))
                self.readers[source][reader] = None


def _elements(node: Node, at: At) -> int:
    """How many elements of a value are read at some indices, at most."""
    lengths = (high - low + 1 for low, high in (index.bounds for index in at))
    return math.prod(lengths)
