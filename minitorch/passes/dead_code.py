"""Removal of nodes: of those that no output depends on (dead code elimination), and of identities. Inputs stay.

Of a loop or branch, the results that nothing needs go, with all that only they need: outputs of its bodies, values that
are carried for them alone, operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph.build import topological_order, with_inputs
from ..graph.graph import Graph
from ..graph.values import bodies, siblings
from ..ir import Node
from .pipeline import Pass


def remove_dead_code(graph: Graph) -> Graph:
    """Remove the nodes that no output needs."""
    needed = set(topological_order(graph.outputs))
    if any(node.primitive.together for node in needed):
        trimmed = _trim(graph, [node for node in graph.nodes if node in needed])
        if trimmed is not graph:
            return remove_dead_code(trimmed)
    if all(node in needed for node in graph.nodes):
        return graph
    return graph.with_nodes([node for node in graph.nodes if node in needed], graph.outputs)


def _trim(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """Return a graph without the results of loops and branches that are not among some nodes."""
    smaller: dict[Node, Node] = {}
    for group in siblings(nodes).values():
        smaller |= _smaller(group)
    if not smaller:
        return graph
    now: dict[Node, Node] = {}
    for node in nodes:
        new = smaller.get(node, node)
        now[node] = with_inputs(new, tuple([now.get(operand, operand) for operand in new.inputs]))
    return graph.with_nodes(dict.fromkeys(now.values()), [now.get(node, node) for node in graph.outputs])


def _smaller(group: Sequence[Node]) -> dict[Node, Node]:
    """Return other nodes for the siblings of a group, whose bodies compute nothing else; none if there is nothing."""
    params, graphs, operands = group[0].params, bodies(group[0]), group[0].inputs
    carried, sliced, tests = params.get("carried", 0), params.get("sliced", 0), len(operands)
    main = next(reversed(graphs.values()))
    tests -= len(main.inputs)  # operands before those of the bodies: the condition of a branch
    same: dict[Node, int] = {}  # of results with one value, the first
    found = [
        place if place < carried or len(graphs) > 1 else same.setdefault(node, place)
        for place, node in enumerate(main.outputs)
    ]
    kept, before = {found[node.params["result"]] for node in group}, None
    read: set[int] = set()
    while kept != before:
        before = set(kept)
        for name, body in graphs.items():
            ends = body.outputs if name == "condition" else [body.outputs[place] for place in kept]
            used = set(topological_order(ends))
            read |= {place for place, node in enumerate(body.inputs) if node in used}
        kept |= {place for place in read if place < carried}
    places = [place for place in range(len(main.inputs)) if place in (kept if place < carried else read)]
    if len(kept) == len(main.outputs) and len(places) == len(main.inputs):
        return {}
    order = sorted(kept)
    changed: dict[str, Any] = {
        name: Graph(
            [body.inputs[place] for place in places],
            body.outputs if name == "condition" else [body.outputs[place] for place in order],
            name=body.name,
        )
        for name, body in graphs.items()
    }
    if carried:
        changed["carried"] = sum(place < carried for place in places)
    if sliced:
        changed["sliced"] = sum(carried <= place < carried + sliced for place in places)
    inputs = (*operands[:tests], *(operands[tests + place] for place in places))
    made: dict[int, Node] = {}
    for node in group:
        result = order.index(found[node.params["result"]])
        if result not in made:
            spec, source = node.spec, node.source
            made[result] = Node(node.primitive, inputs, {**params, **changed, "result": result}, spec, source)
    return {node: made[order.index(found[node.params["result"]])] for node in group}


def drop_identities(graph: Graph) -> Graph:
    """Put the operand in the place of each node that is one with a remark, which the backend does not read."""
    now: dict[Node, Node] = {}
    for node in graph.nodes:
        operands = tuple([now.get(operand, operand) for operand in node.inputs])
        now[node] = operands[0] if node.primitive.is_identity else with_inputs(node, operands)
    if not any(node.primitive.is_identity for node in graph.nodes):
        return graph
    kept = [now[node] for node in graph.nodes if not node.primitive.is_identity]
    return graph.with_nodes(kept, [now.get(node, node) for node in graph.outputs])


DEAD_CODE = Pass("dead code", remove_dead_code, "Remove nodes that no output depends on.")
IDENTITIES = Pass("identities", drop_identities, "Drop remarks that are for other backends.")
