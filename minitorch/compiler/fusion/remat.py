"""Rematerialisation: a value that several kernels read is stored, or recomputed by each, whichever costs less.

Recomputing an activation or an added bias costs arithmetic alone, so every reader does it. Recomputing a sum of two
arrays reads two arrays instead of one. In a residual network, ``x = x + f(x)`` layer after layer, the last layer would
read the results of all layers before it, and traffic would grow with the square of the depth: there the sums are
stored. An expensive value costs arithmetic. But a value too large for the caches has to go to memory and back, and a
core executes about ten vector instructions in the time in which it moves one vector. So a training step that needs the
argument of a large `tanh` in its backward pass stores the argument, and recomputes the `tanh`.

One comparison in picoseconds of `cost_model` decides all of them. The kernels are those of a first fusion, in which
every value in question is a root. The values are visited in program order, cheap ones first. A value that is not stored
is replaced by its operands in all of its readers, before the next is judged. That is a heuristic: for given kernels the
least cost is a minimum cut, but the kernels depend on the choice.

The second fusion is without the values that are recomputed, and its kernels are compiled. Only if one of them does too
much of its arithmetic again are the values that are computed often judged once more, each as a root, by that alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Mapping, Set
from dataclasses import dataclass

from ...graph import Graph
from ...graph.cost import in_units
from ...ir import POINTWISE, Node
from ...passes.lowering.contract import labels_of, space_of
from ..loop_ir.index import Variable, extent_of
from ..loop_ir.lower import At
from ..target import Target
from . import RECOMPUTING
from .cost_model import BYTE, HIDDEN, KERNEL, MOST_WORK, noticed, spreads, times_of, weight
from .evaluations import Work, computed, evaluations
from .fuse import fuse
from .fusion_groups import Group, variables
from .roots import AGAIN, SHARED, TILE_BY_TILE, base_of, count_readers, find_roots, output_base, packings

IN_QUESTION = "several kernels may read it"
# Operand arrays of a recomputed value, where storing it would move no more bytes. Raising it stores fewer values.
MOST_READ = 8
MOST_TIME = 64 * HIDDEN  # picoseconds for an element; longer times are not added up further
NEGLIGIBLE = 8  # ratio: an amount this many times smaller than another is neglected


@dataclass(frozen=True)
class Decisions:
    """The stored values, and those that share a kernel.

    Attributes:
        roots: the values that are stored, each with the reason.
        again: expensive values that several kernels read, and that are not.
        order: the kernels, as `fuse` returns them.
    """

    roots: dict[Node, str]
    again: Set[Node]
    order: list[Group | Node]


def decide(graph: Graph, transient: Collection[Node], without: Set[str], target: Target) -> Decisions:
    """Decide for each value that several kernels may read whether it is stored, and fuse."""

    def fused(roots: dict[Node, str], again: Set[Node] = frozenset()) -> Decisions:
        return Decisions(roots, again, fuse(roots, transient, without))

    roots = find_roots(graph, transient, store_all=RECOMPUTING in without)
    if RECOMPUTING in without:
        return fused(roots)
    cheap = dict.fromkeys(_in_question(graph, roots, transient, target), IN_QUESTION)
    first, large = fused(find_roots(graph, transient, cheap) if cheap else roots), target.caches[1]
    expensive = [node for node, reason in first.roots.items() if reason == SHARED and node.spec.nbytes > large]
    if not cheap and not expensive:
        return first
    kernels = _Kernels(graph, first, transient, target)
    kept = {node: reason for node in cheap if (reason := kernels.why_keep(node))}
    again = {node for node in expensive if kernels.is_cheaper_again(node)}
    found = fused(find_roots(graph, transient, kept, again), again)
    asked = evaluations(graph, found.roots, transient)
    often = [node for node in cheap if node not in kept and asked[node] > MOST_WORK * node.spec.size]
    if often and _Kernels(graph, found, transient, target).are_too_much(often):
        # values between them and a kernel were roots when they were judged, but no longer are
        roots = find_roots(graph, transient, {**kept, **dict.fromkeys(often, IN_QUESTION)}, again)
        kernels = _Kernels(graph, fused(roots), transient, target)
        kept |= {node: reason for node in reversed(often) if (reason := kernels.why_often(node))}
        found = fused(find_roots(graph, transient, kept, again), again)
    return found


def _in_question(graph: Graph, roots: Container[Node], transient: Container[Node], target: Target) -> list[Node]:
    """Return values that may cost less to store: computed by several kernels, or repeatedly by one.

    Those have more bytes of operands than of their own, many operand arrays, or many operations.
    """
    users = graph.users()
    asked = evaluations(graph, roots, transient)
    made_of: dict[Node, dict[Node, int]] = {}  # the stored values that a value is computed from, with the bytes read
    arithmetic: dict[Node, int] = {}  # picoseconds for an element
    spread: set[Node] = set()  # what is still a view or a padding of a value with numbers between its elements
    found: list[Node] = []
    for node in graph.nodes:
        if node in roots or node in transient:
            continue
        is_padded = node.primitive.name == "pad"
        if spreads(node) or ((node.primitive.is_view or is_padded) and node.inputs[0] in spread):
            spread.add(node)
        sources: dict[Node, int] = {}
        for operand in node.inputs:
            for source, size in made_of.get(operand, {operand: operand.spec.nbytes}).items():
                sources[source] = min(size, node.spec.size * source.dtype.itemsize)
        time = min(weight(node) + sum(arithmetic.get(operand, 0) for operand in node.inputs), MOST_TIME)
        read = sum(sources.values())
        more = read * BYTE >= KERNEL // NEGLIGIBLE and read * NEGLIGIBLE > node.spec.nbytes * (NEGLIGIBLE + 1)
        size = node.spec.size
        is_joined = node.primitive.name == "concatenate"
        again = (more or time > HIDDEN or is_joined) and count_readers(node, users) > 1
        is_last = len(users[node]) != 1 or users[node][0].primitive.kind not in POINTWISE  # at its place
        times = HIDDEN * size < time * (asked[node] - size) or (time > 0 and asked[node] > MOST_WORK * size)
        again = again or (is_last and times)
        is_kind = node.primitive.kind in POINTWISE or is_joined or (is_padded and node in spread)
        if is_kind and size and (again or _is_made_of_many(node, sources, target)):
            found.append(node)
        else:
            made_of[node], arithmetic[node] = sources, time
    return found


def _is_made_of_many(node: Node, sources: Mapping[Node, int], target: Target) -> bool:
    """Return whether a value too large for the caches has many operand arrays of its size, all in memory for it."""
    large = node.spec.nbytes > target.caches[1]
    return large and sum(size >= node.spec.nbytes for size in sources.values()) > MOST_READ


@dataclass
class _Read:
    """The reads of a value by a root.

    Attributes:
        bytes: that are read.
        distinct: elements, each once.
        elements: as often as they are read, if loop-invariant values are moved out of loops.
        points: as often as they are read, without moving.
    """

    bytes: int = 0
    distinct: int = 0
    elements: int = 0
    points: int = 0


class _Kernels:
    """The reads and the kernel of each root; a value that is not stored is taken out."""

    def __init__(self, graph: Graph, decided: Decisions, transient: Iterable[Node], target: Target) -> None:
        self.target = target
        self.roots = {**dict.fromkeys(transient, TILE_BY_TILE), **decided.roots}  # each is computed once in a kernel
        self.outputs = set(map(output_base, graph.outputs))
        self.home: dict[Node, int] = {}  # the kernel that computes a root
        self.reads: dict[Node, dict[Node, _Read]] = {}  # of a root: the values that it is computed from
        self.readers: dict[Node, dict[Node, None]] = {}  # of a value: the roots that are computed from it
        self.members: dict[int, list[Node]] = {}  # the roots of a kernel
        self.work = [Work()] * len(decided.order)  # of each kernel
        self.sums: set[int] = set()  # kernels in which something waits for a sum, so that they have more than one loop
        for kernel, item in enumerate(decided.order):
            if not isinstance(item, Group):
                self._add(item, kernel, ((base, ()) for base in map(base_of, item.inputs)), 0)
                continue
            sums = {member.node for member in item.members if member.is_reduction}
            for member in item.members:
                self._add(member.node, kernel, member.reads, math.prod(member.space))
                if not item.is_contraction and any(root in sums for root, _ in member.reads):
                    self.sums.add(kernel)

    def _add(self, root: Node, kernel: int, reads: Iterable[tuple[Node, At]], times: int) -> None:
        self.home[root], self.reads[root] = kernel, {}
        self.work[kernel] = self.work[kernel].with_root(root, self.roots)
        self.members.setdefault(kernel, []).append(root)
        for node, at in reads:
            distinct = min(node.spec.size, _elements(node, at))
            read = self.reads[root].setdefault(node, _Read())
            read.distinct = min(node.spec.size, read.distinct + distinct)
            read.bytes = read.distinct * node.dtype.itemsize
            is_packed = root.primitive.kind == "contraction"
            elements, points = _packed(root, at) if is_packed else (min(times, extent_of(_variables(at))), times)
            read.elements += elements or distinct
            read.points += points or distinct
            self.readers.setdefault(node, {})[root] = None

    def why_keep(self, node: Node) -> str:
        """Return the reason for storing a cheap value; empty if it is recomputed and no longer a root."""
        others, kept, again = self._traffic(node)
        arithmetic = self._arithmetic(node, others)
        if self._is_too_often(node, others):
            return self._too_often(node, others)
        if (again - kept) * BYTE + arithmetic >= self._least(node):
            if again <= kept:
                return self._too_often(node, others)
            return f"stored: {in_units(kept, 'B')} of traffic, against {in_units(again, 'B')} to recompute it"
        sources = {source: read.bytes for source, read in self.reads[node].items()}
        if others and again >= kept and _is_made_of_many(node, sources, self.target):
            return f"stored: it is computed from more than {MOST_READ} arrays, and recomputing it moves no fewer bytes"
        self._take_out(node)
        return ""

    def is_cheaper_again(self, node: Node) -> bool:
        """Return whether recomputing an expensive value in every kernel costs less; then it is no longer a root."""
        others, kept, again = self._traffic(node)
        once = self.home[node] not in self.sums
        cheaper = bool(others) and once and (again - kept) * BYTE + self._arithmetic(node, others) < 0
        if cheaper:
            self._take_out(node)
        return cheaper

    def _traffic(self, node: Node) -> tuple[set[int], int, int]:
        """Return the other kernels that read a value, and the bytes moved if it is stored, and if it is recomputed."""
        others = {self.home[reader] for reader in self.readers.get(node, ())} - {self.home[node]}
        kept = node.spec.nbytes + sum(self._read(kernel, node) for kernel in others)
        again = sum(self._read_instead(kernel, node) for kernel in others) + self._moved_at_home(node, others)
        return others, kept, again

    def _arithmetic(self, node: Node, others: Set[int]) -> int:
        """Return the picoseconds if all other kernels compute a value, and its own kernel only if it uses it."""
        cheap, expensive = times_of(computed(node, self.roots))
        total = 0
        for reader in self._readers(node, others):
            elements = self.reads[reader][node].elements
            total += noticed(cheap * elements, expensive * elements, HIDDEN * self._moved(reader, node))
        if total and not self._is_used_at_home(node):
            total -= noticed(cheap, expensive) * node.spec.size
        return total

    def why_often(self, node: Node) -> str:
        """Return the reason for storing a value, however little time that saves; empty if it is no longer a root."""
        others, *_ = self._traffic(node)
        if self._is_too_often(node, others):
            return self._too_often(node, others)
        self._take_out(node)
        return ""

    def _is_too_often(self, node: Node, others: Set[int]) -> bool:
        """Return whether recomputing a value makes a kernel take too much longer than computing its nodes once."""
        return any(self._is_too_much(kernel, each) for kernel, each in self._works(node, others).items())

    def are_too_much(self, nodes: Collection[Node]) -> bool:
        """Return whether a kernel that computes one of some nodes takes too much longer."""
        works = ((kernel, each) for kernel, each in enumerate(self.work) if not each.nodes.isdisjoint(nodes))
        return any(self._is_too_much(kernel, each) for kernel, each in works)

    def _is_too_much(self, kernel: int, work: Work) -> bool:
        more = work.done - MOST_WORK * work.once  # picoseconds; traffic is in both
        return more > 0 and more > (MOST_WORK - 1) * BYTE * self._traffic_of(kernel)

    def _traffic_of(self, kernel: int) -> int:
        """Return the bytes that a kernel reads and writes."""
        reads = {source for root in self.members[kernel] for source in self.reads.get(root, ())}
        written = [root for root in self.members[kernel] if self.home.get(root) == kernel]
        inside = sum(self._read(kernel, source) for source in reads if self.home.get(source) != kernel)
        return inside + sum(root.spec.nbytes for root in written if root in self.outputs or not self._stays(root))

    def _too_often(self, node: Node, others: Set[int]) -> str:
        return f"{AGAIN}, each element {self._points(node, {*others, self.home[node]}) // node.spec.size} times"

    def _works(self, node: Node, others: Set[int]) -> dict[int, Work]:
        """Return the work of other kernels if they compute a value, and of its own if several of its loops do."""
        nodes, own = computed(node, self.roots), self.home[node]
        points = {
            kernel: sum(self.reads[each][node].points for each in self._readers(node, {kernel})) for kernel in others
        }
        if len(inside := self._readers(node, {own})) > 1:
            points[own] = sum(self.reads[each][node].points for each in inside) - node.spec.size
        return {kernel: self.work[kernel].plus(nodes, times) for kernel, times in points.items()}

    def _points(self, node: Node, kernels: Set[int]) -> int:
        """Return how often some kernels read elements of a value."""
        return sum(self.reads[reader][node].points for reader in self._readers(node, kernels))

    def _readers(self, node: Node, kernels: Set[int]) -> list[Node]:
        """Return the roots in some kernels that read a value."""
        return [reader for reader in self.readers.get(node, ()) if self.home[reader] in kernels]

    def _moved(self, reader: Node, node: Node) -> int:
        """Return the elements that move to and from memory while a root is computed from a value.

        A contraction reads its packed operands from a cache, but for the first time.
        """
        reads = self.reads[reader]
        if reader.primitive.kind == "contraction":
            return reads[node].distinct
        return min(reads[node].elements, reader.spec.size + sum(read.distinct for read in reads.values()))

    def _is_used_at_home(self, node: Node) -> bool:
        """Return whether the kernel that computes a value reads it, too."""
        return any(self.home[reader] == self.home[node] for reader in self.readers.get(node, ()))

    def _read(self, kernel: int, node: Node, but: Node | None = None) -> int:
        """Return the bytes of a value that a kernel reads, without the reads of one of its roots."""
        roots = [root for root in self.readers[node] if self.home[root] == kernel and root is not but]
        return min(node.spec.nbytes, sum(self.reads[root][node].bytes for root in roots))

    def _read_instead(self, kernel: int, node: Node) -> int:
        """Return the additional bytes that a kernel reads to compute a value instead of reading it."""
        share = self._read(kernel, node)
        return sum(
            max(0, min(read.bytes, share * read.bytes // node.spec.nbytes) - self._read(kernel, source))
            for source, read in self.reads[node].items()
            if self.home.get(source) != kernel
        )

    def _least(self, node: Node) -> int:
        """Return the picoseconds that one more kernel has to save.

        A kernel of sums reads in one pass with others like it, as long as nothing follows the sums: then it is a share
        of what they read.
        """
        own = self.home[node]
        if any(root.primitive.kind == "contraction" for root in self.members[own]):
            return KERNEL
        reads = {source for root in self.members[own] for source in self.reads.get(root, ())}
        read = sum(self._read(own, source) for source in reads if self.home.get(source) != own)
        return max(KERNEL, read // NEGLIGIBLE * BYTE)

    def _moved_at_home(self, node: Node, others: Set[int]) -> int:
        """Return the additional bytes that its own kernel moves if it does not store a value; may be negative.

        A kernel that does not use it need not read its operands; operands that the kernel computes are read by others.
        """
        own, total, is_used = self.home[node], 0, self._is_used_at_home(node)
        for source, read in self.reads[node].items():
            if self.home.get(source) != own:
                total -= 0 if is_used else max(0, read.bytes - self._read(own, source, but=node))
            elif others and source not in self.outputs and self._stays(source):
                total += source.spec.nbytes
        return total

    def _stays(self, node: Node) -> bool:
        """Return whether only the kernel that computes a value reads it, so that it need not be in memory."""
        return all(self.home[reader] == self.home[node] for reader in self.readers.get(node, ()))

    def _take_out(self, node: Node) -> None:
        """Make the readers of a value read its operands."""
        others = {self.home[reader] for reader in self.readers.get(node, ())} - {self.home[node]}
        for kernel, work in self._works(node, others).items():
            self.work[kernel] = work
        del self.roots[node], self.home[node]
        sources = self.reads.pop(node)
        for source in sources:
            del self.readers[source][node]
        for reader in self.readers.pop(node, ()):
            share = self.reads[reader].pop(node)
            for source, read in sources.items():
                part = -(-share.bytes * read.bytes // max(node.spec.nbytes, 1))
                known = self.reads[reader].setdefault(source, _Read())
                known.bytes = min(read.bytes, max(part, known.bytes))
                known.distinct = known.bytes // source.dtype.itemsize
                times = max(1, read.points // node.spec.size)
                known.elements = max(known.elements, share.elements * times)
                known.points += share.points * times  # at its own place, if in doubt
                self.readers[source][reader] = None


def _elements(node: Node, at: At) -> int:
    """Return an upper bound of the elements of a value that are read at some indices."""
    lengths = (high - low + 1 for low, high in (index.bounds for index in at))
    return math.prod(lengths)


def _variables(at: At) -> frozenset[Variable]:
    return frozenset[Variable]().union(*(index.variables for index in at))


def _packed(contraction: Node, at: At) -> tuple[int, int]:
    """Return the `elements` and `points` of `_Read` for elements at some indices in a contraction's space."""
    own = _variables(at)
    labels = {label for label, index in enumerate(variables(space_of(contraction))) if index.variables & own}
    times, points = min(
        (times, operand.spec.size * times)
        for (operand, times), dims in zip(packings(contraction), labels_of(contraction), strict=True)
        if labels <= {label for dim in dims for label in dim}
    )
    return extent_of(own) * times, points
