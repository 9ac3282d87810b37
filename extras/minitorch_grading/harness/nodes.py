"""How an answer names the nodes of a graph: by their places in a list of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minitorch.graph import Graph
from minitorch.ir import Node


def everything_in(graph: Graph) -> list[Node]:
    """Inputs and nodes, in their order."""
    return [*graph.inputs, *graph.nodes]


def places_of(nodes: Sequence[Node], answer: Any) -> Any:
    """A student's list, or list of lists, with places instead of nodes, -1 for what is none; anything else as it is."""
    where = {id(node): place for place, node in enumerate(nodes)}

    def place(each: Any) -> Any:
        return [*map(place, each)] if isinstance(each, (list, tuple)) else where.get(id(each), -1)

    return place(answer) if isinstance(answer, (list, tuple)) else answer
