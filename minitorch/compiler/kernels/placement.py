"""Memory planning: each value lies in the arena, in an array for the caller, or in the memory of an input.

An output is written over an input that it replaces (or that was donated) if the kernel that writes is the last to read
the input, and reads each element before it writes the same one. From that kernel on nothing may fail: an input is never
left half overwritten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...graph import Graph
from ...ir import Node
from ..fusion.roots import is_stored_already, output_base
from ..loop_ir.expressions import ALWAYS, Load
from ..loop_ir.loops import Nest, Write
from .arena import Lifetime, aligned, lower_bound, plan
from .kernel import Kernel


@dataclass(frozen=True)
class Placement:
    """The memory of each value of a schedule.

    Attributes:
        offsets: of each value in the arena, in bytes.
        overwritten: the input whose memory an output is written into, both by position.
        arena_bytes: the size of the arena.
        peak_bytes: the most that a call takes: the arena, the outputs, and the results of library calls.
        live: of each value that takes new memory, the numbers of the kernels that write it and that read it last; for
            an output the second is the number of all kernels.
    """

    offsets: Mapping[Node, int]
    overwritten: Mapping[int, int]
    arena_bytes: int
    peak_bytes: int
    live: Mapping[Node, tuple[int, int]]

    @property
    def intermediate_bytes(self) -> int:
        """Bytes of the values in the arena if they shared no memory."""
        return sum(node.spec.nbytes for node in self.offsets)


def place(
    graph: Graph, kernels: Sequence[Kernel], updates: Mapping[int, int] | None = None, donated: Collection[int] = ()
) -> Placement:
    """Find memory for every value.

    Args:
        graph: the program.
        kernels: the kernels that compute it, in order.
        updates: outputs that replace an input, by position, each with the position of the input.
        donated: positions of inputs that are not needed after the call.
    """
    lives = _Lives(graph, kernels)
    overwritten = dict(_overwritten(lives, updates or {}, donated))
    elsewhere = {lives.bases[output] for output in overwritten}  # in existing memory
    computed = [node for node in lives.written if node not in elsewhere]
    returned = [node for node in computed if not lives.by_loops(node)]
    outputs = [node for node in computed if lives.by_loops(node) and node in lives.kept]
    inside = [node for node in computed if lives.by_loops(node) and node not in lives.kept]
    arena = plan(lives.lifetimes(inside))
    return Placement(
        dict(zip(inside, arena.offsets, strict=True)),
        overwritten,
        arena.size,
        arena.size + sum(aligned(node.spec.nbytes) for node in outputs) + lower_bound(lives.lifetimes(returned)),
        {node: (life.first, life.last) for node, life in zip(computed, lives.lifetimes(computed), strict=True)},
    )


class _Lives:
    """The live range of each value: the kernels that write it and that read it last."""

    def __init__(self, graph: Graph, kernels: Sequence[Kernel]) -> None:
        self.kernels = kernels
        self.inputs = graph.inputs
        self.bases = [output_base(node) for node in graph.outputs]
        self.kept = Counter(self.bases)
        self.written = {node: number for number, kernel in enumerate(self.kernels) for node in kernel.made}
        self.last_read: dict[Node, int] = {}
        for number, kernel in enumerate(self.kernels):
            self.last_read.update(dict.fromkeys(kernel.reads, number))
        failing = [number for number, kernel in enumerate(self.kernels) if _can_fail(kernel)]
        self.safe_from = failing[-1] + 1 if failing else 0
        self._taking_over: dict[int, set[tuple[Node, Node]]] = {}

    def by_loops(self, node: Node) -> bool:
        """Return whether a generated kernel writes the value; the result of a library call has its own memory."""
        return self.kernels[self.written[node]].loops is not None

    def takes_over(self, new: Node, old: Node) -> bool:
        """Return whether the kernel that writes `new` may write it over `old`, which it reads."""
        number = self.written[new]
        if number not in self._taking_over:
            self._taking_over[number] = set(takes_over(self.kernels[number]))
        return (new, old) in self._taking_over[number]

    def lifetimes(self, nodes: Collection[Node]) -> list[Lifetime]:
        """Return the live ranges of some values, and which of the others each may be written over."""
        numbers = {node: number for number, node in enumerate(nodes)}
        found = []
        for node in nodes:
            first = self.written[node]
            last = len(self.kernels) if node in self.kept else max(first, self.last_read.get(node, first))
            dying = [old for old in self.kernels[first].reads if old in numbers and self.last_read[old] == first]
            over = [numbers[old] for old in dying if old not in self.kept and self.takes_over(node, old)]
            found.append(Lifetime(node.spec.nbytes, first, last, tuple(over)))
        return found


def _can_fail(kernel: Kernel) -> bool:
    return kernel.loops is None or kernel.loops.looks_up


def _overwritten(lives: _Lives, updates: Mapping[int, int], donated: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield the outputs that are written into inputs, and those inputs."""
    free = [number for number in donated if number not in updates.values()]
    for output, base in enumerate(lives.bases):
        if is_stored_already(base) or lives.kept[base] > 1 or not lives.by_loops(base):
            continue
        wanted = [updates[output]] if output in updates else free
        found = next((number for number in wanted if _may_overwrite(lives, base, lives.inputs[number])), None)
        if found is not None:
            yield output, found
            if output not in updates:
                free.remove(found)


def _may_overwrite(lives: _Lives, new: Node, old: Node) -> bool:
    number = lives.written[new]
    if old in lives.kept or number < lives.safe_from or (old.dtype, old.spec.size) != (new.dtype, new.spec.size):
        return False
    last = lives.last_read.get(old, -1)
    return last < number or (last == number and lives.takes_over(new, old))


def takes_over(kernel: Kernel) -> Iterator[tuple[Node, Node]]:
    """Yield the pairs of a value that a kernel writes and one that it reads whose place the first may take.

    Only one of several that are written may take a certain place.
    """
    if kernel.loops is None or kernel.own:  # a schedule of the user's may read an element after it was written
        return
    known: dict[Nest, list[tuple[int, int]]] = {}
    uses = Counter(kernel.buffers)
    for nest, buffers, start in kernel.loops.parts:
        if kernel.loops.starts.count(start) > 1:  # another nest may read it later
            continue
        if nest not in known:
            known[nest] = list(same_place(nest))
        own = kernel.buffers[start : start + len(buffers)]
        for new, old in known[nest]:
            if uses[own[old]] == 1 and buffers[new].dtype.itemsize == buffers[old].dtype.itemsize:
                yield own[new], own[old]


def same_place(nest: Nest) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a buffer that a nest writes and one whose elements it reads before it writes the same ones.

    That is so if all loads have the index of the store, and none comes in a later loop. In the loop of the store it may
    be in a later statement, if it is in an earlier one too: within a loop, equal expressions are computed once.
    """
    stores: dict[int, list[tuple[int, int, Write]]] = {}
    loads: dict[int, list[tuple[int, int, Load]]] = {}
    for number, each in enumerate(nest.loops):
        for position, statement in enumerate(each.statements):
            if isinstance(statement, Write):
                stores.setdefault(statement.buffer, []).append((number, position, statement))
            for part in statement.value.all_parts:
                if isinstance(part, Load):
                    loads.setdefault(part.buffer, []).append((number, position, part))
    for new, places in stores.items():
        if len(places) > 1:
            continue
        ((own, at, store),) = places
        for old, found in loads.items():
            beside = [position for number, position, _ in found if number == own]
            same = all(load.index == store.index and load.inside == ALWAYS for _, _, load in found)
            if same and all(number <= own for number, _, _ in found) and (not beside or min(beside) <= at):
                yield new, old
