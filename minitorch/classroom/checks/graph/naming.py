"""How the tasks of this exercise write graphs down, and how an answer names the nodes of one."""

from __future__ import annotations

from typing import Any

from ....graph import Graph
from ....graph.text import node_names
from ...asks.graph import everything_in

Cases = list[tuple[str, Any]]


def text_of(*lines: str) -> str:
    """A graph of some lines, the last of which are its outputs."""
    return "\n".join(["graph(x: f64[3], y: f64[3]):", *lines[:-1], f"return {lines[-1]}"])


DIAMOND = text_of("%0 = exp(x)", "%1 = neg(%0)", "%2 = abs(%0)", "%3 = add(%1, %2)", "%3")


def name_of(graph: Graph, place: int) -> str:
    """The name of a node in the listing."""
    node = everything_in(graph)[place]
    return node_names(graph).get(node, "a number")
