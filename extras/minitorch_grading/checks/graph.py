"""Exercise 03, the computation graph: an order to run it in, what a run needs, what it can forget, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import float64
from minitorch.graph import Graph, apply, evaluate, input_node, topological_order
from minitorch.graph.text import node_names
from minitorch.ir import Node, Spec

from ..harness import graph as harness
from ..harness.graph import PULL, graph_of, values_in
from ..harness.nodes import everything_in
from ..harness.plain import TIMEOUT, Array, Fault
from .compare import wrong_array
from .reasons import expect, hint
from .samples import graph_text, in_parts, ladder, listing, random_graph, values_for
from .task import Cases, Task


def text_of(program: str) -> str:
    """A graph of two arrays."""
    return graph_text("f64[3]", program)


DIAMOND = text_of("%0 = exp(x); %1 = neg(%0); %2 = abs(%0); %3 = add(%1, %2); %3")


def name_of(graph: Graph, place: int) -> str:
    """The name of a node in the listing."""
    return node_names(graph).get(everything_in(graph)[place], "a number")


def _random(random: Random, size: int, outputs: int = 1) -> Graph:
    return random_graph(random, size, constants=0, outputs=outputs, reductions=False)


# --- order --------------------------------------------------------------------------------------------------------

ORDER = {"operands first": 10, "each node once": 8, "only what is needed": 5, "a deep graph": 7}
DEPTH = 3000  # of a chain: three times as deep as Python's recursion
DIAMONDS = 40  # one on the other: with 2 ** 40 paths, so that no answer comes from going along each


def _with_dead(graph: Graph) -> str:
    """A graph with an operation more, which no output needs: the program order of its nodes is no answer."""
    return str(Graph(graph.inputs, graph.outputs, [*graph.nodes, apply(P.neg, graph.nodes[0])]))


def _orders(random: Random) -> Cases:
    diamond = _with_dead(Graph.parse(DIAMOND))
    return [
        ("operands first", diamond),
        ("operands first", text_of("%0 = neg(x); %1 = exp(%0); %2 = add(%1, %0); %3 = abs(%0); %2")),
        *(("operands first", _with_dead(_random(random, 6 + 3 * more, 1 + more))) for more in range(3)),
        ("each node once", diamond),
        ("each node once", text_of("%0 = neg(x); %1 = mul(%0, %0); %2 = exp(%0); %1, %0, %1")),
        ("each node once", _with_dead(ladder(5 + random.randrange(4)))),
        ("each node once", (str(ladder(DIAMONDS)),)),  # not a text, which would be made smaller
        ("only what is needed", text_of("%0 = neg(x); %1 = exp(%0); %2 = abs(%0); %1")),
        ("only what is needed", text_of("%0 = neg(x); %1 = exp(y); y, %0")),
        ("a deep graph", DEPTH + random.randrange(100)),
    ]


def _wrong_order(part: str, case: Any, answer: Any) -> str | None:
    graph = graph_of(case)
    expect(answer, list[int], "a list of nodes")
    everything = everything_in(graph)
    if any(not 0 <= place < len(everything) for place in answer):
        return "something in the list is no node of the graph"

    def missing(node: Node) -> str:
        what = "an input, which belongs to the order as well" if node in graph.inputs else "needed"
        return f"{name_of(graph, everything.index(node))} is missing: it is {what}"

    given, seen = {everything[place] for place in answer}, set[Node]()
    for place in answer:
        node = everything[place]
        if node in seen:
            times = f"{answer.count(place)} times: it is reached along several paths"
            return f"{name_of(graph, place)} is in the list {times}"
        if late := [operand for operand in node.inputs if operand not in seen]:
            if late[0] not in given:
                return missing(late[0])
            return f"{name_of(graph, place)} comes before its operand {name_of(graph, everything.index(late[0]))}"
        seen.add(node)
    needed = set(topological_order(graph.outputs))
    for place, node in enumerate(everything):
        if node in seen and node not in needed:
            return f"{name_of(graph, place)} is in the list, and no output needs it"
        if node in needed and node not in seen:
            return missing(node)
    return None


def _about_order(case: Any) -> str:
    return listing(case) if type(case) is str else ""


def _too_many_paths(part: str, fault: Fault) -> str:
    paths = part == "each node once" and fault.kind == TIMEOUT
    return hint(paths, f"look at each node once, and not at each of the 2 ** {DIAMONDS} paths to it")


order = Task(harness.order, ORDER, _orders, _wrong_order, about=_about_order, on_fault=_too_many_paths, shrinks=True)

# --- run: what the fetches need, and nothing else; `compute` is an oracle, whose calls cannot be made up -----------

ONLY, ONCE = "only what the fetches need", "each value once"
RUN = {"values": 8, "several fetches": 6, ONLY: 10, ONCE: 6}
TWO = text_of("%0 = add(x, y); %1 = mul(%0, y); %2 = exp(x); %3 = neg(%2); %1, %3")


def _sessions(random: Random) -> Cases:
    """The graph, the places of what is fetched, and what is fed, by name."""
    table = {
        "values": [(DIAMOND, [5], "xy"), (TWO, [3], "xy")],
        "several fetches": [(TWO, [5, 3, 2], "xy"), (TWO, [1, 3, 0], "xy")],
        ONLY: [(TWO, [5], "x"), (TWO, [4], "xy"), (TWO, [0], "x")],
        ONCE: [(str(ladder(4 + random.randrange(3))), [-1], "x"), (DIAMOND, [3, 4, 5], "xy")],
    }
    cases = in_parts(table)
    for part in RUN:
        graph = _random(random, 10, outputs=3)
        fetched = list({everything_in(graph).index(node): None for node in graph.outputs})
        cases.append((part, (str(graph), random.sample(fetched, len(fetched)), "xy")))
    return [(part, (text, fetched, _feeds(text, fed, random))) for part, (text, fetched, fed) in cases]


def _feeds(text: str, names: str, random: Random) -> dict[str, Array]:
    graph = Graph.parse(text)
    found = zip(graph.inputs, values_for(graph, np.random.default_rng(random.getrandbits(32))), strict=True)
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


def _about_run(case: Any) -> str:
    graph, fetched = Graph.parse(case[0]), case[1]
    places = range(len(everything_in(graph)))
    return f"fetching {', '.join(name_of(graph, places[place]) for place in fetched)}{listing(case[0])}"


def _wrong_run(part: str, case: Any, answer: Any) -> str | None:
    text, fetched, feeds = case
    graph = Graph.parse(text)
    everything = everything_in(graph)
    values, done = answer
    wanted = [everything[place] for place in fetched]
    needed = set(topological_order(wanted))
    fed = [feeds[node.params["name"]] for node in graph.inputs if node in needed]
    right = evaluate(graph.subgraph(wanted, keep_inputs=False), fed)
    expect(values, list, f"a list of {len(right)} arrays", "one for each fetch", len(right))
    for index, (value, expected) in enumerate(zip(values, right, strict=True)):
        if reason := wrong_array(value, expected):
            return f"result {index}: {reason}"
    if skipped := [
        place for place, node in enumerate(everything) if node in needed and node.inputs and place not in done
    ]:
        first = name_of(graph, skipped[0])
        return f"compute was never called for {first}: a value that is made in another way is not counted"
    for place in done:
        if part == ONLY and everything[place] not in needed:
            return f"{name_of(graph, place)} is computed, which no fetch needs"
        if part == ONCE and done.count(place) > 1:
            return f"{name_of(graph, place)} is computed {done.count(place)} times; keep what has been computed"
    return None


def _not_fed(part: str, fault: Fault) -> str:
    """A value that was not fed is asked for only by code that computes what no fetch needs."""
    why = "a placeholder that no fetch needs may be left out, and so may all that reads it"
    return hint(
        part == ONLY and ("KeyError" in str(fault) or NOT_FED in str(fault)),
        f"{why}: compute only what the fetches need",
    )


run = Task(harness.run, RUN, _sessions, _wrong_run, about=_about_run, on_fault=_not_fed, oracle=Computing)

# --- release: when a run can free each value ----------------------------------------------------------------------

LATE, EARLY = "never too early", "as early as possible"
RELEASE = {LATE: 8, EARLY: 8, "outputs and inputs stay": 4}


def _lives(random: Random) -> Cases:
    return [
        (LATE, DIAMOND),
        (LATE, text_of("%0 = neg(x); %1 = exp(%0); %2 = abs(%1); %3 = add(%2, %0); %3")),
        (EARLY, text_of("%0 = neg(x); %1 = exp(%0); %2 = abs(%1); %2")),
        (EARLY, text_of("%0 = neg(x); %1 = exp(y); %2 = mul(%0, %0); %2")),
        ("outputs and inputs stay", text_of("%0 = neg(x); %1 = exp(%0); %2 = add(%1, y); %2, %0")),
        (LATE, str(_random(random, 9, outputs=2))),
        (EARLY, str(_random(random, 10, outputs=2))),
    ]


def _wrong_release(part: str, text: str, plan: Any) -> str | None:
    graph = Graph.parse(text)
    everything, steps = everything_in(graph), len(graph.nodes)
    expect(plan, list[list[Any]], f"a list of {steps} lists", "one for each of graph.nodes", steps)

    def name(place: int) -> str:
        return name_of(graph, place)

    def made_in(step: int) -> str:
        return name_of(graph, len(graph.inputs) + step)

    gone: dict[int, int] = {}
    for step, places in enumerate(plan):
        for place in places:
            if not 0 <= place < len(everything):
                return f"step {step} forgets something that is no node of the graph"
            if place in gone:
                return f"{name(place)} is forgotten twice: its memory may belong to another value by then"
            gone[place] = step
    if not gone:
        return f"nothing is ever forgotten: all {steps} values stay to the end"
    last = {node: step for step, node in enumerate(graph.nodes)}
    for step, node in enumerate(graph.nodes):
        last |= dict.fromkeys((operand for operand in node.inputs if operand in last), step)
    for place, step in gone.items():
        node = everything[place]
        if node in graph.outputs or node in graph.inputs:
            kind = "an output" if node in graph.outputs else "an input, which is the caller's"
            return f"{name(place)} is {kind}, and is forgotten after {made_in(step)}"
        if place > len(graph.inputs) + step:
            return f"{name(place)} is forgotten before it is made"
        if step < last[node]:
            reader = next(at for at, user in enumerate(graph.nodes) if at > step and node in user.inputs)
            return f"{name(place)} is forgotten after {made_in(step)}, and {made_in(reader)} still reads it"
    for place, node in enumerate(everything):
        if part != LATE and node in last and node not in graph.outputs and gone.get(place) != last[node]:
            late = "never" if place not in gone else f"only after {made_in(gone[place])}"
            return f"{name(place)} is last read by {made_in(last[node])}, and forgotten {late}"
    return None


release = Task(harness.release, RELEASE, _lives, _wrong_release, about=listing)

# --- backward: cotangents in reverse order, added up where a value is used twice ----------------------------------

TWICE = "a value that is used twice"
BACKWARD = {"a chain": 4, TWICE: 8, "one operand twice": 4, "an input without use": 4}


def _ways_back(random: Random) -> Cases:
    """The graph, and the values of x and y."""
    x, y = random.uniform(0.5, 2), random.uniform(-2, -0.5)
    programs = [
        ("a chain", "%0 = neg(x); %1 = mul(%0, y); %2 = exp(%1); %2"),
        (TWICE, "%0 = mul(x, y); %1 = exp(%0); %2 = mul(%1, %0); %2"),
        (TWICE, "%0 = neg(x); %1 = mul(%0, y); %2 = sub(%1, %0); %3 = add(%2, %0); %3"),
        ("one operand twice", "%0 = exp(x); %1 = mul(%0, %0); %2 = add(%1, y); %2"),
        ("an input without use", "%0 = neg(x); %1 = mul(%0, y); %2 = exp(x); %2"),
        ("an input without use", "%0 = exp(x); %1 = mul(%0, y); %0"),
    ]
    texts = [*((part, graph_text("f64[]", program)) for part, program in programs), (TWICE, _diamonds(random))]
    return [(part, (text, x, y)) for part, text in texts]


def _diamonds(random: Random) -> str:
    spec = Spec((), float64)
    pool = inputs = [input_node("x", spec), input_node("y", spec)]
    for _ in range(8):
        pool = [*pool, apply(random.choice((P.add, P.sub, P.mul)), pool[-1], random.choice(pool[:-1]))]
    return str(Graph(inputs, pool[-1:]))


Shares = Callable[[Node, float], list[tuple[Node, float]]]


def _cotangents(graph: Graph, shares: Shares, *, once: bool = False, overwrite: bool = False) -> dict[Node, float]:
    """The cotangents of all nodes; wrong ones, if a node hands out one share to each operand, or replaces others."""
    found = dict.fromkeys(everything_in(graph), 0.0) | {graph.outputs[0]: 1.0}
    for node in reversed(graph.nodes):
        given = shares(node, found[node])
        for operand, share in dict(given).items() if once else given:
            found[operand] = share if overwrite else found[operand] + share
    return found


def _too_early(graph: Graph, shares: Shares) -> dict[Node, float]:
    """What comes out if nodes hand on what they have when they are met first."""
    found = dict.fromkeys(everything_in(graph), 0.0) | {graph.outputs[0]: 1.0}
    pending, done = [graph.outputs[0]], set(graph.inputs)
    while pending:
        node = pending.pop()
        if node not in done:
            done.add(node)
            for operand, share in shares(node, found[node]):
                found[operand] += share
                pending.append(operand)
    return found


def _about_backward(case: Any) -> str:
    text, x, y = case
    return f"with x = {x:.3g} and y = {y:.3g}{listing(text)}"


def _wrong_backward(part: str, case: Any, answer: Any) -> str | None:
    text, x, y = case
    expect(answer, list[float], more="the gradients by x and y", count=2)
    graph = Graph.parse(text)
    values = values_in(graph, x, y)

    def shares(node: Node, cotangent: float) -> list[tuple[Node, float]]:
        given = PULL[node.primitive.name](cotangent, *[values[operand] for operand in node.inputs])
        return list(zip(node.inputs, given, strict=True))

    def is_answer(found: dict[Node, float]) -> bool:
        return np.allclose(answer, [found[node] for node in graph.inputs], rtol=1e-9, atol=1e-12)

    right = _cotangents(graph, shares)
    if is_answer(right):
        return None
    given, wanted = ([float(f"{each:.4g}") for each in them] for them in (answer, map(right.get, graph.inputs)))
    return f"{given} instead of {wanted}" + hint(
        is_answer(_cotangents(graph, shares, once=True)),
        "an operand that stands twice in one node has two shares, one for each place",
        is_answer(_cotangents(graph, shares, overwrite=True)),
        "the gradient was counted once, the value is used twice: add up what comes back from every use",
        is_answer(_too_early(graph, shares)),
        "a cotangent was handed on before it is complete: all users of a node come first",
        is_answer(_cotangents(graph.with_nodes(graph.nodes, graph.nodes[-1:]), shares)),
        "the walk begins at the last node: the output may stand before it",
    )


backward = Task(harness.backward, BACKWARD, _ways_back, _wrong_backward, about=_about_backward)

TASKS = (order, run, release, backward)
