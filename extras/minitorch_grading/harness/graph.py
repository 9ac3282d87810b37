"""Drivers of exercise 03: graphs come as text, and an answer names nodes by their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import float32
from minitorch.graph import Graph, apply, input_node
from minitorch.ir import Node, Spec

from .driver import Driver, driver, within
from .limit import Limited
from .needs import GRAPHS as NEEDS
from .nodes import everything_in, on_graph, places_of
from .plain import Array

# --- order ------------------------------------------------------------------------------------------------------


def chain(length: int) -> Graph:
    """One operation after another, and one that no output needs."""
    x = input_node("x", Spec((2,), float32))
    nodes = [apply(P.neg, x)]
    while len(nodes) < length:
        nodes.append(apply(P.neg, nodes[-1]))
    return Graph((x,), nodes[-1:], [*nodes, apply(P.absolute, nodes[0])])


def graph_of(case: Any) -> Graph:
    """The graph of a text, which may be alone in a tuple, or a chain of so many operations."""
    return chain(case) if type(case) is int else Graph.parse("".join(case))


@driver("graph.order", NEEDS)
def order(call: Limited, case: tuple[str, Any]) -> Any:
    """The outputs of a graph."""
    graph = graph_of(case[1])
    return places_of(everything_in(graph), call(list(graph.outputs)))


# --- run --------------------------------------------------------------------------------------------------------


def _run_once(run: Any, graph: Graph, fetches: list[Node], feeds: dict[str, Array], compute: Any) -> Any:
    given = dict(feeds)
    values = run(graph, fetches, given, compute)
    if given.keys() != feeds.keys():
        raise ValueError("feeds is the caller's: what is put into it would be fed to the next run, too")
    return values


@driver("graph.run", NEEDS)
def run(call: Limited, case: tuple[str, Any]) -> Any:
    """A graph, the places of what is fetched, and what is fed; `compute` consults the judge, who computes the value."""
    text, fetched, feeds = case[1]
    graph = Graph.parse(text)
    everything = everything_in(graph)

    def compute(node: Node, operands: Sequence[Array | None]) -> Any:
        return call.consult((places_of(everything, [node]), list(operands)))

    values = call.within(_run_once, graph, [everything[place] for place in fetched], feeds, compute)
    return list(values) if isinstance(values, (list, tuple)) else values


# --- release ----------------------------------------------------------------------------------------------------


release = Driver("graph.release", on_graph(), NEEDS)


# --- backward ---------------------------------------------------------------------------------------------------

# The derivative by each operand, given the cotangent of the result and the values of the operands.
PULL: dict[str, Callable[..., tuple[float, ...]]] = {
    "neg": lambda g, a: (-g,),
    "exp": lambda g, a: (g * float(np.exp(a)),),
    "add": lambda g, a, b: (g, g),
    "sub": lambda g, a, b: (g, -g),
    "mul": lambda g, a, b: (g * b, g * a),
}


def values_in(graph: Graph, *numbers: float) -> dict[Node, float]:
    """The value of every node of a graph of single numbers."""
    values = {node: float(number) for node, number in zip(graph.inputs, numbers, strict=True)}
    for node in graph.nodes:
        operands = [np.float64(values[operand]) for operand in node.inputs]
        values[node] = float(node.primitive.evaluate(*operands, **node.params))
    return values


def _backward_once(backward: Any, text: str, x: float, y: float) -> Any:
    graph = Graph.parse(text)
    values = values_in(graph, x, y)

    def pull(node: Node, cotangent: float) -> tuple[float, ...]:
        return PULL[node.primitive.name](cotangent, *[values[operand] for operand in node.inputs])

    return backward(graph, pull)


backward = Driver("graph.backward", within(_backward_once), NEEDS)
