"""`Session.run`: what the fetches need, and nothing else. `compute` is an oracle: its calls cannot be made up."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from ....graph import Graph, topological_order
from ....ir import Node
from ...asks import graph as asks
from ...asks.graph import everything_in
from ...asks.plain import Array, described
from ..compare import wrong_array
from ..samples import evaluate, ladder, random_graph, values_for
from ..smaller import indented
from ..task import Task, by_case
from .naming import DIAMOND, Cases, name_of, text_of

RUN = {"values": 8, "several fetches": 6, "only what the fetches need": 10, "each value once": 6}


def _sessions(seed: int) -> Cases:
    """The graph, the places of what is fetched, and what is fed, by name."""
    random = Random(seed)
    two = text_of("%0 = add(x, y)", "%1 = mul(%0, y)", "%2 = exp(x)", "%3 = neg(%2)", "%1, %3")
    cases: Cases = [
        ("values", (DIAMOND, [5], ["x", "y"])),
        ("values", (two, [3], ["x", "y"])),
        ("several fetches", (two, [5, 3, 2], ["x", "y"])),
        ("several fetches", (two, [1, 3, 0], ["x", "y"])),
        ("only what the fetches need", (two, [5], ["x"])),
        ("only what the fetches need", (two, [4], ["x", "y"])),
        ("only what the fetches need", (two, [0], ["x"])),
        ("each value once", (str(ladder(4 + random.randrange(3))), [-1], ["x"])),
        ("each value once", (DIAMOND, [3, 4, 5], ["x", "y"])),
    ]
    for part in ("values", "several fetches", "only what the fetches need", "each value once"):
        graph = random_graph(random, 10, constants=0, outputs=3, reductions=False)
        fetched = [everything_in(graph).index(node) for node in graph.outputs]
        random.shuffle(fetched)
        cases.append((part, (str(graph), list(dict.fromkeys(fetched)), ["x", "y"])))
    return [(part, (text, fetched, _feeds(text, fed, seed))) for part, (text, fetched, fed) in cases]


def _feeds(text: str, names: list[str], seed: int) -> dict[str, Array]:
    graph = Graph.parse(text)
    found = zip(graph.inputs, values_for(graph, np.random.default_rng(seed)), strict=True)
    return {node.params["name"]: array for node, array in found if node.params["name"] in names}


NOT_FED = "compute got None for a placeholder that was not fed:"  # and its name


class Computing:
    """Computes nodes on their operands' values, and notes their places."""

    def __init__(self, case: tuple[str, Any]) -> None:
        text, _, feeds = case[1]
        self.graph, self.seen = Graph.parse(text), list[int]()
        names = {node: node.params["name"] for node in self.graph.inputs}
        self._values: dict[Node, Array] = {node: feeds[name] for node, name in names.items() if name in feeds}

    def reply(self, question: Any) -> Array:
        """The value of the node at a place, given those of its operands: what was fed, or computed here before."""
        (place,), operands = question
        everything = everything_in(self.graph)
        if not len(self.graph.inputs) <= place < len(everything):
            raise ValueError("compute takes an operation of the graph, and got something else")
        node, name = everything[place], name_of(self.graph, place)
        if len(operands) != len(node.inputs):
            raise ValueError(f"compute got {len(operands)} values for the {len(node.inputs)} operands of {name}")
        for operand, value in zip(node.inputs, operands, strict=True):
            if value is None:
                fed = operand.params["name"] if operand in self.graph.inputs else ""
                raise ValueError(f"{NOT_FED} {fed}" if fed else f"compute got None for an operand of {name}")
            known = self._values.get(operand)
            if known is None or not isinstance(value, np.ndarray) or value.tobytes() != known.tobytes():
                which = name_of(self.graph, everything.index(operand))
                raise ValueError(f"compute got for {which}, an operand of {name}, what is not its value")
        self.seen.append(place)
        with np.errstate(all="ignore"):
            result: Array = np.asarray(node.primitive.evaluate(*operands, **node.params))
        self._values[node] = result
        return result


def _wrong_run(case: Any, answer: Any) -> str | None:
    part, (text, fetched, feeds) = case
    graph = Graph.parse(text)
    everything = everything_in(graph)
    values, done = answer
    wanted = [everything[place] for place in fetched]
    what = (
        f"fetching {', '.join(name_of(graph, place % len(everything)) for place in fetched)} of\n{indented(str(graph))}"
    )
    needed = set(topological_order(wanted))
    fed = [feeds[node.params["name"]] for node in graph.inputs if node in needed]
    right = evaluate(graph.subgraph(wanted, keep_inputs=False), fed)
    if type(values) is not list or len(values) != len(right):
        return f"a list of {len(right)} arrays was expected, one for each fetch, and it is {described(values)}, {what}"
    for index, (value, expected) in enumerate(zip(values, right, strict=True)):
        if reason := wrong_array(value, expected):
            return f"result {index}: {reason}, {what}"
    if skipped := [node for node in needed if node.inputs and everything.index(node) not in done]:
        first = name_of(graph, min(map(everything.index, skipped)))
        return f"compute was never called for {first}: a value that is made in another way is not counted, {what}"
    for place in done:
        if part == "only what the fetches need" and everything[place] not in needed:
            return f"{name_of(graph, place)} is computed, which no fetch needs, {what}"
        if part == "each value once" and done.count(place) > 1:
            return f"{name_of(graph, place)} is computed {done.count(place)} times; keep what has been computed, {what}"
    return None


def _judge_run(cases: Cases, answers: Any) -> Any:
    said = by_case(RUN, [(part, (part, case)) for part, case in cases], answers, _wrong_run)
    # A value that was not fed is asked for only by code that computes what no fetch needs.
    fault = said["only what the fetches need"]
    if fault and ("KeyError" in str(fault) or NOT_FED in str(fault)):
        why = "a placeholder that no fetch needs may be left out, and so may all that reads it"
        return {**said, "only what the fetches need": f"{fault}; {why}: compute only what the fetches need"}
    return said


run = Task(asks.run, RUN, _sessions, _judge_run, oracle=Computing)
