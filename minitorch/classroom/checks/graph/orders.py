"""An order in which a graph can run."""

from __future__ import annotations

from random import Random
from typing import Any

from .... import primitives as P
from ....graph import Graph, apply, topological_order
from ....ir import Node
from ...asks import graph as asks
from ...asks.graph import everything_in, graph_of
from ...asks.plain import described
from ..samples import ladder, random_graph
from ..smaller import explained, indented
from ..task import Task, by_case
from .naming import DIAMOND, Cases, name_of, text_of

ORDER = {"operands first": 10, "each node once": 8, "only what is needed": 5, "a deep graph": 7}
DEPTH = 3000  # of a chain: three times as deep as Python's recursion


def _with_dead(graph: Graph) -> str:
    """A graph with an operation more, which no output needs: the program order of its nodes is no answer."""
    return str(Graph(graph.inputs, graph.outputs, [*graph.nodes, apply(P.neg, graph.nodes[0])]))


def _orders(seed: int) -> Cases:
    random = Random(seed)
    diamond = _with_dead(Graph.parse(DIAMOND))
    drawn = [
        _with_dead(random_graph(random, 6 + 3 * i, constants=0, outputs=1 + i, reductions=False)) for i in range(3)
    ]
    return [
        ("operands first", diamond),
        ("operands first", text_of("%0 = neg(x)", "%1 = exp(%0)", "%2 = add(%1, %0)", "%3 = abs(%0)", "%2")),
        *(("operands first", text) for text in drawn),
        ("each node once", diamond),
        ("each node once", text_of("%0 = neg(x)", "%1 = mul(%0, %0)", "%2 = exp(%0)", "%1, %0, %1")),
        ("each node once", _with_dead(ladder(5 + random.randrange(4)))),
        ("only what is needed", text_of("%0 = neg(x)", "%1 = exp(%0)", "%2 = abs(%0)", "%1")),
        ("only what is needed", text_of("%0 = neg(x)", "%1 = exp(y)", "y, %0")),
        ("a deep graph", DEPTH + random.randrange(100)),
    ]


def _judge_order(cases: Cases, answers: Any) -> Any:
    return by_case(
        ORDER,
        cases,
        answers,
        lambda case, answer: _wrong_order(case, answer) if type(case) is int else explained(case, answer, _wrong_order),
    )


def _wrong_order(case: Any, answer: Any) -> str | None:
    graph = graph_of(case)
    if type(answer) is not list or not all(type(place) is int for place in answer):
        return f"a list of nodes was expected, and it is {described(answer)}"
    listing = f"\n{indented(str(graph))}" if type(case) is str else ""
    everything = everything_in(graph)
    if any(not 0 <= place < len(everything) for place in answer):
        return f"something in the list is no node of the graph{listing}"
    seen: set[Node] = set()
    for place in answer:
        node = everything[place]
        if node in seen:
            times = f"{answer.count(place)} times: it is reached along several paths"
            return f"{name_of(graph, place)} is in the list {times}{listing}"
        if missing := [operand for operand in node.inputs if operand not in seen]:
            operand = name_of(graph, everything.index(missing[0]))
            if everything.index(missing[0]) not in answer:
                what = "an input, which belongs to the order as well" if missing[0] in graph.inputs else "needed"
                return f"{operand} is missing: it is {what}{listing}"
            return f"{name_of(graph, place)} comes before its operand {operand}{listing}"
        seen.add(node)
    needed = set(topological_order(graph.outputs))
    for place, node in enumerate(everything):
        if node in seen and node not in needed:
            return f"{name_of(graph, place)} is in the list, and no output needs it{listing}"
        if node in needed and node not in seen:
            what = "an input, which belongs to the order as well" if node in graph.inputs else "needed"
            return f"{name_of(graph, place)} is missing: it is {what}{listing}"
    return None


order = Task(
    asks.order,
    ORDER,
    _orders,
    _judge_order,
    shrinks=lambda part, text, answer: _wrong_order(text, answer),
)
