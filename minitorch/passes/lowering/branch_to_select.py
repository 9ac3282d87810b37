"""Branch to select: a `cond` of little work becomes both sides, and a selection.

A branch is a step of its own, which Python takes; a loop with one inside is repeated from Python. Selections are
pointwise: they fuse, and the loop stays in native code.
"""

from __future__ import annotations

from ... import primitives as P
from ...graph.build import apply, with_inputs
from ...graph.control_flow import cond
from ...graph.graph import Graph
from ...ir import POINTWISE, Node

KINDS = (*POINTWISE, "movement", "source", "reduction")  # without what may fail, and without random numbers
# Elements that both sides compute, a few microseconds. Raising it computes more in vain, and saves steps of branches.
MOST_ELEMENTS = 4096


def branch_to_select(graph: Graph) -> Graph:
    """Replace such branches by selections."""
    moved: dict[Node, Node] = {}
    nodes: list[Node] = []
    known: dict[tuple[int, ...], list[list[Node]]] = {}  # the results of both sides, which siblings share
    for node in graph.nodes:
        operands = tuple(moved.get(operand, operand) for operand in node.inputs)
        if node.primitive is not cond or not _is_little(node):
            nodes.append(with_inputs(node, operands))
            found = nodes[-1]
        else:
            test, *given = operands
            sides: list[Graph] = [node.params["then"], node.params["otherwise"]]
            key = (*map(id, sides), *map(id, operands))
            if key not in known:
                known[key] = [_inlined(side, given, nodes) for side in sides]
            one, other = (results[node.params["result"]] for results in known[key])
            found = one if one is other else _selected(test, one, other, nodes)
        if found is not node:
            moved[node] = found
    return graph.with_nodes(nodes, [moved.get(node, node) for node in graph.outputs]) if moved else graph


def _is_little(node: Node) -> bool:
    """Return whether both sides of a branch compute few elements, in ways that cannot fail."""
    nodes = [*node.params["then"].nodes, *node.params["otherwise"].nodes]
    sizes = [each.spec.size for inner in nodes for each in (inner, *inner.inputs)]
    return all(type(size) is int for size in sizes) and sum(sizes) <= MOST_ELEMENTS and all(map(_is_safe, nodes))


def _is_safe(node: Node) -> bool:
    """Return whether a node has a value for all operands."""
    is_power = node.primitive.name == "pow" and not node.dtype.is_floating_point  # a negative one is refused
    return node.primitive.kind in KINDS and node.primitive is not P.check and not is_power


def _inlined(body: Graph, given: list[Node], nodes: list[Node]) -> list[Node]:
    """Append the nodes of a body for some inputs, and return its results."""
    now = dict(zip(body.inputs, given, strict=True))
    for each in body.nodes:
        inputs = tuple(now[operand] for operand in each.inputs)
        now[each] = Node(each.primitive, inputs, each.params, each.spec, each.source)
        nodes.append(now[each])
    return [now[output] for output in body.outputs]


def _selected(test: Node, one: Node, other: Node, nodes: list[Node]) -> Node:
    """Append a selection between two values, and return it."""
    if one.shape:
        test = apply(P.expand, test, shape=one.shape, source=one.source)
        nodes.append(test)
    nodes.append(apply(P.where, test, one, other, source=one.source))
    return nodes[-1]
