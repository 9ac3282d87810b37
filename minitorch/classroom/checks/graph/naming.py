"""How the tasks of this exercise write graphs down, and how an answer names the nodes of one."""

from __future__ import annotations

from typing import Any

from ....graph import Graph
from ....graph.text import node_names
from ....ir import Node

Cases = list[tuple[str, Any]]


def text_of(*lines: str) -> str:
    """A graph of some lines, the last of which are its outputs."""
    return "\n".join(["graph(x: f64[3], y: f64[3]):", *lines[:-1], f"return {lines[-1]}"])


DIAMOND = text_of("%0 = exp(x)", "%1 = neg(%0)", "%2 = abs(%0)", "%3 = add(%1, %2)", "%3")


def everything_in(graph: Graph) -> list[Node]:
    """Inputs and nodes: a place in this list is how an answer names a node."""
    return [*graph.inputs, *graph.nodes]


def name_of(graph: Graph, place: int) -> str:
    """The name of a node in the listing."""
    node = everything_in(graph)[place]
    return node_names(graph).get(node, "a number")


def places_of(graph: Graph, nodes: object) -> object:
    """The places of the nodes that a student's list has; -1 for what is no node of the graph."""
    if not isinstance(nodes, (list, tuple)):
        return nodes
    where = {id(node): place for place, node in enumerate(everything_in(graph))}
    return [where.get(id(node), -1) for node in nodes]
