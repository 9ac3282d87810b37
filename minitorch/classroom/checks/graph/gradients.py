"""The way back: cotangents in reverse order, added up where a value is used twice."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from .... import primitives as P
from ....dtypes import float64
from ....graph import Graph, apply, input_node
from ....ir import Node, Spec
from ...asks import graph as asks
from ...asks.graph import PULL, everything_in, values_in
from ...asks.plain import described
from ..smaller import indented
from ..task import Task, cases_with
from .naming import Cases

BACKWARD = {"a chain": 4, "a value that is used twice": 8, "one operand twice": 4, "an input without use": 4}


def _scalar(*lines: str) -> str:
    return "\n".join(["graph(x: f64[], y: f64[]):", *lines[:-1], f"return {lines[-1]}"])


def _ways_back(seed: int) -> Cases:
    """The graph, and the values of x and y."""
    random = Random(seed)
    x, y = random.uniform(0.5, 2), random.uniform(-2, -0.5)
    texts = [
        ("a chain", _scalar("%0 = neg(x)", "%1 = mul(%0, y)", "%2 = exp(%1)", "%2")),
        ("a value that is used twice", _scalar("%0 = mul(x, y)", "%1 = exp(%0)", "%2 = mul(%1, %0)", "%2")),
        (
            "a value that is used twice",
            _scalar("%0 = neg(x)", "%1 = mul(%0, y)", "%2 = sub(%1, %0)", "%3 = add(%2, %0)", "%3"),
        ),
        ("a value that is used twice", _diamonds(random)),
        ("one operand twice", _scalar("%0 = exp(x)", "%1 = mul(%0, %0)", "%2 = add(%1, y)", "%2")),
        ("an input without use", _scalar("%0 = neg(x)", "%1 = mul(%0, y)", "%2 = exp(x)", "%2")),
    ]
    return [(part, (text, x, y)) for part, text in texts]


def _diamonds(random: Random) -> str:
    spec = Spec((), float64)
    pool = inputs = [input_node("x", spec), input_node("y", spec)]
    for _ in range(8):
        pool = [*pool, apply(random.choice((P.add, P.sub, P.mul)), pool[-1], random.choice(pool[:-1]))]
    return str(Graph(inputs, pool[-1:]))


Shares = Callable[[Node, float], list[tuple[Node, float]]]


def _right(graph: Graph, shares: Shares) -> dict[Node, float]:
    found = dict.fromkeys(everything_in(graph), 0.0) | {graph.outputs[0]: 1.0}
    for node in reversed(graph.nodes):
        for operand, share in shares(node, found[node]):
            found[operand] += share
    return found


def _once_in_a_node(graph: Graph, shares: Shares) -> dict[Node, float]:
    return _right(graph, lambda node, cotangent: list(dict(shares(node, cotangent)).items()))


def _overwritten(graph: Graph, shares: Shares) -> dict[Node, float]:
    found = dict.fromkeys(everything_in(graph), 0.0) | {graph.outputs[0]: 1.0}
    for node in reversed(graph.nodes):
        found |= dict(shares(node, found[node]))
    return found


def _too_early(graph: Graph, shares: Shares) -> dict[Node, float]:
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


# The results of common mistakes, so that an answer can be recognised.
MISTAKES = (
    ("an operand that stands twice in one node has two shares, one for each place", _once_in_a_node),
    ("the gradient was counted once, the value is used twice: add up what comes back from every use", _overwritten),
    ("a cotangent was handed on before it is complete: all users of a node come first", _too_early),
)


def _wrong_backward(case: Any, answer: Any) -> str | None:
    text, x, y = case
    graph = Graph.parse(text)
    values = values_in(graph, x, y)

    def shares(node: Node, cotangent: float) -> list[tuple[Node, float]]:
        given = PULL[node.primitive.name](cotangent, *[values[operand] for operand in node.inputs])
        return list(zip(node.inputs, given, strict=True))

    def is_answer(found: dict[Node, float]) -> bool:
        return np.allclose(answer, [found[node] for node in graph.inputs], rtol=1e-9, atol=1e-12)

    what = f"with x = {x:.3g} and y = {y:.3g} in\n{indented(str(graph))}"
    if type(answer) is not list or not all(type(each) is float for each in answer) or len(answer) != 2:
        return f"a list of two floats was expected, the gradients by x and y, and it is {described(answer)}, {what}"
    right = _right(graph, shares)
    if is_answer(right):
        return None
    wanted = [float(f"{right[node]:.4g}") for node in graph.inputs]
    shown = f"{[float(f'{each:.4g}') for each in answer]} instead of {wanted}"
    known = next((f"{sentence}; " for sentence, mistake in MISTAKES if is_answer(mistake(graph, shares))), "")
    return f"{known}{shown}, {what}"


backward = Task(asks.backward, BACKWARD, _ways_back, cases_with(BACKWARD, _wrong_backward))
