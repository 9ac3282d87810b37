"""Places: the correspondence between the nodes of a graph and those of the graph after a pass.

Nodes are immutable, so a pass that changes one value makes new nodes for everything that is computed from it. To follow
a value from graph to graph, the pass runs again on the same graph with *every* node as an output, and returns the node
that each has become. A *place* holds the same value in every graph. It may be computed by another operation than
before, or from other operands: that is a rewritten node. Splat constants have no place, as they have no identity: they
are a part of the operation that uses them. All results of a loop or branch have one place.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from minitorch.errors import GraphError
from minitorch.graph import Graph
from minitorch.graph.values import is_splat, params_key, shared, siblings, splat_key
from minitorch.ir import Node
from minitorch.passes import Stage

ADDED, REMOVED, REWRITTEN = "added", "removed", "rewritten"
CHANGES = (ADDED, REMOVED, REWRITTEN)


@dataclass(frozen=True)
class Snapshot:
    """One graph of the pipeline, and the changes of the pass before it in each place.

    Attributes:
        title: the name of the pass.
        doc: its purpose.
        graph: the graph after it.
        places: the place of every node and input that has one.
        changes: the places that it changed: `ADDED`, `REMOVED` or `REWRITTEN`.
        instead: for removed places, the nodes that their users read now.
    """

    title: str
    doc: str
    graph: Graph
    places: Mapping[Node, int]
    changes: Mapping[int, str]
    instead: Mapping[int, Node]

    @property
    def summary(self) -> str:
        """The number of changed nodes, as text.

        Example:
            >>> Snapshot("", "", Graph(), {}, {4: REMOVED, 7: REWRITTEN, 8: REMOVED}, {}).summary
            '2 removed, 1 rewritten'
        """
        counts = Counter(self.changes.values())
        return ", ".join(f"{counts[kind]} {kind}" for kind in CHANGES if counts[kind]) or "nothing to do"


def follow(graph: Graph, stages: Iterable[Stage]) -> list[Snapshot]:
    """The snapshot of a graph as it was traced, and one after each pass.

    Where a pass rearranges values, arithmetic without an origin stands where the same operation of the same line stood.

    Example:
        >>> from minitorch.passes import ALGEBRA, DEAD_CODE, run_pipeline
        >>> graph = Graph.parse("graph(x: f32[2], y: f32[2]): %0 = neg(y) %1 = mul(x, 1.0) %2 = add(%1, %0) return %2")
        >>> for snapshot in follow(graph, run_pipeline(graph, [ALGEBRA, DEAD_CODE])):
        ...     print(snapshot.title, dict(snapshot.changes))
        traced {}
        algebra {4: 'rewritten', 3: 'removed'}
        dead code {2: 'removed'}
    """
    unused = count()
    places = _together(graph, {node: next(unused) for node in (*graph.inputs, *graph.nodes) if not is_splat(node)})
    snapshots = [Snapshot("traced", "The program as it was traced.", graph, places, {}, {})]
    for stage in stages:
        snapshots.append(_after(snapshots[-1], stage, unused))
    return snapshots


def _after(before: Snapshot, stage: Stage, unused: Iterable[int]) -> Snapshot:
    became = {} if stage.after is before.graph else what_became(stage.applied, before.graph, stage.after)
    if stage.applied.rearranges:
        became |= _alike(before.graph, stage.after, became)
    places = _places(before, stage.after, became, iter(unused))
    stood = {place: node for node, place in before.places.items()}
    changes: dict[int, str] = {}
    for node, place in places.items():
        if place not in stood:
            changes[place] = ADDED
        elif _operation(node, places) != _operation(stood[place], before.places):
            changes[place] = REWRITTEN
    gone = stood.keys() - set(places.values())
    changes |= dict.fromkeys(sorted(gone), REMOVED)
    instead = {place: became[stood[place]] for place in gone if stood[place] in became}
    return Snapshot(stage.name, stage.applied.doc, stage.after, places, changes, instead)


def _places(before: Snapshot, graph: Graph, became: Mapping[Node, Node], unused: Iterable[int]) -> dict[Node, int]:
    """A place for each node: its own, that of a removed node which it replaces, or a new one."""
    nodes = [node for node in (*graph.inputs, *graph.nodes) if not is_splat(node)]
    still = set(nodes)
    origins: dict[Node, list[Node]] = {}
    for old, new in became.items():
        if old in before.places and old not in still:
            origins.setdefault(new, []).append(old)
    places = {}
    for node in nodes:
        if node in before.places:
            places[node] = before.places[node]
        elif node in origins:  # of several, the one of the same operation; else the last
            alike = [old for old in origins[node] if old.primitive is node.primitive]
            places[node] = before.places[(alike or origins[node])[-1]]
        else:
            places[node] = next(iter(unused))
    return _together(graph, places)


def _together(graph: Graph, places: dict[Node, int]) -> dict[Node, int]:
    """The places of nodes, in which the results of a loop or branch have one."""
    for first, group in siblings(graph.nodes).items():
        places |= dict.fromkeys(group, places[first])
    return places


def _alike(before: Graph, graph: Graph, became: Mapping[Node, Node]) -> dict[Node, Node]:
    """For arithmetic without a known origin, the like operation of the same line, in order; movements are too many."""

    def key(node: Node) -> Hashable:
        kind = node.primitive.kind
        return kind if kind == "contraction" else node.primitive, node.source

    def unknown(graph: Graph, known: Container[Node]) -> Iterator[Node]:
        return (node for node in graph.nodes if node not in known and node.primitive.kind not in ("movement", "source"))

    waiting: dict[Hashable, deque[Node]] = {}
    for node in unknown(graph, set(became.values())):
        waiting.setdefault(key(node), deque()).append(node)
    left = unknown(before, became)
    return {node: found.popleft() for node in left if (found := waiting.get(key(node)))}


def _operation(node: Node, places: Mapping[Node, int]) -> Hashable:
    """A key that is equal for the same operation on the same places."""
    return node.primitive, params_key(shared(node.params)), *(_operand(each, places) for each in node.inputs)


def _operand(node: Node, places: Mapping[Node, int]) -> Hashable:
    return splat_key(node) if is_splat(node) else places[node]


# Correspondence of nodes --------------------------------------------------------------------------------------


def what_became(transformation: Callable[[Graph], Graph], before: Graph, after: Graph) -> dict[Node, Node]:
    """For the nodes of one graph, the nodes of another one that have their values.

    Args:
        transformation: the function from `before` to `after`.
        before, after: the graphs.

    Returns:
        An entry for each node whose value is there afterwards, as far as the transformation does to a graph whose
        nodes are all outputs what it did to this one; nodes that are in both graphs always have one.
    """
    every = (*before.inputs, *before.nodes)
    kept = {node: node for node in (*after.inputs, *after.nodes)}
    try:
        asked = transformation(Graph(before.inputs, every, before.nodes, before.name, verify=False))
    except GraphError:  # a user's pass may fail on such graphs
        return {node: node for node in every if node in kept}
    twins = _twins(asked, after)
    return {old: twins[new] for old, new in zip(every, asked.outputs, strict=True) if new in twins} | {
        node: node for node in every if node in kept
    }


def _twins(graph: Graph, other: Graph) -> dict[Node, Node]:
    """For the nodes of a graph, equal computations of another one, in order."""
    number: dict[Hashable, int] = {}
    numbers: dict[Node, int] = {node: number.setdefault(node, len(number)) for node in (*graph.inputs, *other.inputs)}

    def numbered(node: Node) -> int:
        if is_splat(node):
            key: Hashable = splat_key(node)
        else:
            key = node.primitive, params_key(node.params), node.spec, *(numbers[each] for each in node.inputs)
        return number.setdefault(key, len(number))

    found: dict[int, deque[Node]] = {}
    for node in other.nodes:
        numbers[node] = numbered(node)
        found.setdefault(numbers[node], deque()).append(node)
    twins = {node: node for node in other.inputs}
    for node in graph.nodes:
        numbers[node] = numbered(node)
        if alike := found.get(numbers[node]):
            twins[node] = alike.popleft() if len(alike) > 1 else alike[0]
    return twins
