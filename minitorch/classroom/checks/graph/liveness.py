"""Live ranges: when a run can free each value."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

from ....graph import Graph
from ....ir import Node
from ...asks import graph as asks
from ...asks.graph import everything_in
from ...asks.plain import described
from ..samples import random_graph
from ..smaller import indented
from ..task import Task, cases_with
from .naming import DIAMOND, Cases, name_of, text_of

RELEASE = {"never too early": 8, "as early as possible": 8, "outputs and inputs stay": 4}


def _lives(seed: int) -> Cases:
    random = Random(seed)
    texts = [
        ("never too early", DIAMOND),
        ("never too early", text_of("%0 = neg(x)", "%1 = exp(%0)", "%2 = abs(%1)", "%3 = add(%2, %0)", "%3")),
        ("as early as possible", text_of("%0 = neg(x)", "%1 = exp(%0)", "%2 = abs(%1)", "%2")),
        ("as early as possible", text_of("%0 = neg(x)", "%1 = exp(y)", "%2 = mul(%0, %0)", "%2")),
        ("outputs and inputs stay", text_of("%0 = neg(x)", "%1 = exp(%0)", "%2 = add(%1, y)", "%2, %0")),
    ]
    for number, part in enumerate(("never too early", "as early as possible")):
        graph = random_graph(random, 9 + number, constants=0, outputs=2, reductions=False)
        texts.append((part, str(graph)))
    return texts


def _last_uses(graph: Graph) -> list[list[Node]]:
    last = {node: step for step, node in enumerate(graph.nodes)}
    for step, node in enumerate(graph.nodes):
        last |= dict.fromkeys((operand for operand in node.inputs if operand in last), step)
    kept = set(graph.outputs)
    return [
        [node for node in graph.nodes if last[node] == step and node not in kept] for step in range(len(graph.nodes))
    ]


def _wrong_release(case: tuple[str, str], plan: Any) -> str | None:
    part, text = case
    graph = Graph.parse(text)
    everything, steps = everything_in(graph), len(graph.nodes)
    listing = f"\n{indented(str(graph))}"
    if type(plan) is not list or len(plan) != steps or not all(type(step) is list for step in plan):
        return (
            f"a list of {steps} lists was expected, one for each of graph.nodes, and it is {described(plan)}{listing}"
        )
    right = _last_uses(graph)
    name = partial(name_of, graph)
    gone: dict[int, int] = {}
    for step, places in enumerate(plan):
        for place in places:
            if not 0 <= place < len(everything):
                return f"step {step} forgets something that is no node of the graph{listing}"
            if place in gone:
                return f"{name(place)} is forgotten twice: its memory may belong to another value by then{listing}"
            gone[place] = step
    if not gone:
        return f"nothing is ever forgotten: all {steps} values stay to the end{listing}"
    for place, step in gone.items():
        node = everything[place]
        if node in graph.outputs or node in graph.inputs:
            kind = "an output" if node in graph.outputs else "an input, which is the caller's"
            return f"{name(place)} is {kind}, and is forgotten after {name(len(graph.inputs) + step)}{listing}"
        if place >= len(graph.inputs) + step + 1:
            return f"{name(place)} is forgotten before it is made{listing}"
        for later, user in enumerate(graph.nodes[step + 1 :], step + 1):
            if node in user.inputs:
                now, after = (name(len(graph.inputs) + at) for at in (step, later))
                return f"{name(place)} is forgotten after {now}, and {after} still reads it{listing}"
    if part == "never too early":
        return None
    for step, nodes in enumerate(right):
        for node in nodes:
            place = everything.index(node)
            if gone.get(place) != step:
                late = "never" if place not in gone else f"only after {name(len(graph.inputs) + gone[place])}"
                return f"{name(place)} is last read by {name(len(graph.inputs) + step)}, and forgotten {late}{listing}"
    return None


release = Task(asks.release, RELEASE, _lives, cases_with(RELEASE, _wrong_release, with_part=True))
