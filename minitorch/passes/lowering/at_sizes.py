"""A graph with symbolic sizes, with other numbers in their place: for one call, or for the largest sizes of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...graph.graph import Graph
from ...ir import INPUT, Node, Spec, as_stored
from ...sizes import is_symbolic


def with_numbers(found: Any, value: Callable[[Any], Any]) -> Any:
    """Return a parameter with numbers in place of its symbolic sizes."""
    if is_symbolic(found):
        return value(found)
    return tuple([with_numbers(each, value) for each in found]) if type(found) is tuple else found


def at_sizes(graph: Graph, value: Callable[[Any], Any], number: Callable[[Node], Node] | None = None) -> Graph:
    """Return a graph with numbers in place of its symbolic sizes.

    Args:
        graph: inputs, shapes and parameters may have symbolic sizes.
        value: gives the number for a symbolic one.
        number: makes what stands for a constant whose value is symbolic; by default a constant.
    """
    bodies: dict[int, Graph] = {}  # which siblings share

    def moved(found: Any) -> Any:
        if isinstance(found, Graph):
            if id(found) not in bodies:
                bodies[id(found)] = at_sizes(found, value, number)
            return bodies[id(found)]
        return with_numbers(found, value)

    now: dict[Node, Node] = {}
    for node in (*graph.inputs, *graph.nodes):
        if number is not None and is_symbolic(node.params.get("value")):
            now[node] = number(node)
            continue
        params = {name: moved(each) for name, each in node.params.items()}
        inputs = tuple([now[operand] for operand in node.inputs])
        spec = Spec(moved(node.shape), node.dtype)
        now[node] = Node(node.primitive, inputs, as_stored(params, spec), spec, node.source)
    return Graph(
        [now[node] for node in graph.inputs],
        [now[node] for node in graph.outputs],
        [now[node] for node in graph.nodes if now[node].primitive is not INPUT],
        graph.name,
        verify=False,
    )
