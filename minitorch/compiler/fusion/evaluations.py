"""Evaluations: how often the elements of values are computed if they are not stored.

An element is computed once for each place that needs it. Operations at the same place share it; a view, a padding, a
window or a part of a concatenation needs elements at its own place, and a contraction for each of its operands,
as often as it packs them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from ...graph import Graph
from ...ir import POINTWISE, Node
from .cost_model import work
from .roots import inlined, is_stored_already, packings

# Places at which the elements of one value are counted: enough to see that it is computed often.
MOST_PLACES = 256


def computed(node: Node, roots: Container[Node]) -> list[tuple[Node, int]]:
    """Return the nodes that an element of a node is computed from, and how many elements of each are."""
    within = list(inlined(node, roots))
    readers = dict.fromkeys(within, 0)
    for each in within:
        for operand in dict.fromkeys(each.inputs):
            readers[operand] = readers.get(operand, 0) + 1
    places: dict[Node, set[object]] = {each: set() for each in within}
    places[node].add(())
    pending = [node]
    while pending:
        at = pending.pop()
        here = places[at] if len(places[at]) <= MOST_PLACES else set(list(places[at])[:MOST_PLACES])
        moved = here if at.primitive.kind in POINTWISE else {(at, place) for place in here}
        for operand in dict.fromkeys(at.inputs):
            readers[operand] -= 1
            if operand in places:
                places[operand] |= moved
                pending += [operand] * (not readers[operand])
    return [(each, len(found)) for each, found in places.items()]


def asked_by(node: Node, elements: int) -> Iterator[tuple[Node, int]]:
    """Yield the operands of a node, and how many elements of each `elements` elements of the node need."""
    if node.primitive.kind == "contraction":
        yield from ((operand, operand.spec.size * times) for operand, times in packings(node))
    else:
        size = None if node.primitive.kind != "reduction" else node.inputs[0].spec.size
        yield from ((operand, elements if size is None else size) for operand in dict.fromkeys(node.inputs))


def evaluations(graph: Graph, roots: Container[Node], transient: Container[Node] = ()) -> dict[Node, int]:
    """Return the most elements of each value that are computed if only the roots are stored."""
    here = dict.fromkeys((*graph.inputs, *graph.nodes), 0)
    elsewhere = dict.fromkeys(here, 0)
    for node in reversed(graph.nodes):
        is_stored = node in roots or node in transient or is_stored_already(node)
        here[node] = node.spec.size if is_stored else here[node] + elsewhere[node]
        for operand, elements in asked_by(node, here[node]):
            if node.primitive.kind in (*POINTWISE, "reduction"):
                here[operand] = max(here[operand], elements)
            else:
                elsewhere[operand] += elements
    return here


@dataclass
class Work:
    """Arithmetic of a kernel.

    Attributes:
        nodes: that it computes.
        done: picoseconds, with what it computes again.
        once: picoseconds for its nodes, each computed once.
    """

    nodes: set[Node] = field(default_factory=set)
    done: float = 0
    once: int = 0

    def plus(self, nodes: Iterable[tuple[Node, int]], times: int) -> Work:
        """Return the work with `times` more elements of a value, for each of which elements of `nodes` are computed."""
        own = [(node, each, work(node)) for node, each in nodes]
        done = self.done + times * sum(each * time / max(1, node.spec.size) for node, each, time in own)
        once = self.once + sum(time for node, _, time in own if node not in self.nodes)
        return Work(self.nodes | {node for node, *_ in own}, done, once)

    def with_root(self, root: Node, roots: Container[Node]) -> Work:
        """Return the work with a root, and with all that is computed for it."""
        if root.primitive.kind not in ("contraction", "reduction"):
            return self.plus(computed(root, roots), root.spec.size)
        found = self.plus([(root, 1)], root.spec.size)
        for operand, elements in asked_by(root, root.spec.size):
            if operand not in roots and not is_stored_already(operand):
                found = found.plus(computed(operand, roots), elements)
        return found
