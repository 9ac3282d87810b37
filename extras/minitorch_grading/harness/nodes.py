"""How an answer names the nodes of a graph: by their places in a list of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minitorch.graph import Graph
from minitorch.ir import Node

from .driver import Answer
from .limit import Limited


def everything_in(graph: Graph) -> list[Node]:
    """Inputs and nodes, in their order."""
    return [*graph.inputs, *graph.nodes]


def places_of(nodes: Sequence[Node], answer: Any) -> Any:
    """A list, list of lists or dict of the student's with places for nodes, -1 for what is none; others as they are."""
    where = {id(node): place for place, node in enumerate(nodes)}

    def place(each: Any) -> Any:
        return [*map(place, each)] if isinstance(each, (list, tuple)) else where.get(id(each), -1)

    if isinstance(answer, dict):
        return {place(node): value for node, value in answer.items()}
    return place(answer) if isinstance(answer, (list, tuple)) else answer


def on_graph(nodes_of: Callable[[Graph], Sequence[Node]] = everything_in) -> Answer:
    """Make the function of a driver: a case is the text of a graph, and the answer has places among its nodes."""

    def answer(call: Limited, case: tuple[str, str]) -> Any:
        graph = Graph.parse(case[1])
        return places_of(nodes_of(graph), call(graph))

    return answer
