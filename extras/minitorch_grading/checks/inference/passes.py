"""The folding pass: what comes out is run beside what went in, and its operators are counted."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

import minitorch_operators as O
from minitorch import primitives as P
from minitorch.dtypes import float32
from minitorch.graph import Graph, apply, evaluate, input_node
from minitorch.ir import Node, Spec

from ...harness import inference as harness
from ...harness.inference import numbers, stored
from ..reasons import Wrong, hint, indented
from ..rewriting import legal
from ..samples import unforeseen
from ..task import Task
from .layers import Layer, folded

SECOND, BATCH = "a second reader", "statistics of the batch"
FOLD = {"one pair": 7, "several": 8, "without a bias": 5, SECOND: 5, BATCH: 5, "random graphs": 5}
CLOSE = 1e-4  # of the largest number: fifty times what rounding does in these graphs
SHAPE, CHANNELS = (2, 2, 4, 4), 2
OPTIONS: dict[str, Any] = {"strides": (1, 1), "pads": ((1, 1), (1, 1)), "dilations": (1, 1), "groups": 1}

# Graphs -------------------------------------------------------------------------------------------------------------


class _Builder:
    """Makes the nodes of a graph, with random parameters."""

    def __init__(self, random: Random) -> None:
        self.draw = np.random.default_rng(random.getrandbits(32))
        self.x = input_node("x", Spec(SHAPE, float32))

    def conv(self, x: Node, has_bias: bool = True) -> Node:
        filters = stored(self.draw.normal(size=(CHANNELS, CHANNELS, 3, 3)).round(2))
        bias = [stored(self.draw.normal(size=CHANNELS).round(2))] if has_bias else []
        return apply(O.conv, x, filters, *bias, **OPTIONS)

    def norm(self, x: Node, mean: Node | None = None, variance: Node | None = None) -> Node:
        gamma, beta, random = (stored(each) for each in self.draw.normal(size=(3, CHANNELS)).round(2))
        spread = stored(self.draw.uniform(0.5, 3, CHANNELS).round(2))
        return apply(O.batch_norm, x, gamma, beta, mean or random, variance or spread, eps=0.01)

    def block(self, x: Node, has_bias: bool = True) -> Node:
        return apply(O.relu, self.norm(self.conv(x, has_bias)))

    def text(self, *outputs: Node) -> str:
        return str(Graph([self.x], outputs))


def _mean(x: Node) -> Node:
    """The mean of each channel of a batch, or of its squares: statistics as training computes them."""
    total = apply(P.reduce_sum, x, dims=(0, 2, 3))
    return apply(P.mul, total, stored(np.full(CHANNELS, CHANNELS / np.prod(SHAPE))))


def _random(random: Random, b: _Builder, size: int) -> str:
    pool = [b.x]
    for _ in range(size):
        last, kind = pool[-1], random.choice(("conv", "conv", "norm", "relu", "add"))
        if last.primitive is O.conv and random.random() < 0.7:
            kind = "norm"
        if kind == "conv":
            pool.append(b.conv(random.choice(pool[-2:]), random.random() < 0.7))
        elif kind == "norm":
            pool.append(b.norm(last))
        else:
            pool.append(apply(O.relu, last) if kind == "relu" else apply(P.add, last, random.choice(pool)))
    return b.text(pool[-1], random.choice(pool[1:]))


def _cases(random: Random) -> list[tuple[str, str]]:
    b = _Builder(random)
    x = b.x
    two = b.conv(x)
    read = b.conv(x)
    shown = b.conv(b.block(x))
    trained, learned = b.conv(b.block(x)), b.conv(b.block(x))
    squares = _mean(apply(P.mul, learned, learned))
    return [
        ("one pair", b.text(b.norm(b.conv(x)))),
        ("one pair", b.text(b.block(x))),
        ("several", b.text(b.block(b.block(b.block(x))))),
        ("several", b.text(b.norm(b.norm(b.conv(x))))),
        ("several", b.text(apply(P.add, b.norm(two), b.block(x)), b.norm(b.conv(x)))),
        ("without a bias", b.text(b.norm(b.conv(x, has_bias=False)))),
        ("without a bias", b.text(b.block(b.block(x, has_bias=False)))),
        (SECOND, b.text(apply(P.add, b.block(b.norm(read)), read))),
        (SECOND, b.text(b.norm(shown), shown)),
        (BATCH, b.text(b.norm(trained, mean=_mean(trained)))),
        (BATCH, b.text(b.norm(learned, variance=squares))),
        (BATCH, b.text(b.norm(b.conv(x), mean=_mean(x)))),
        *(("random graphs", _random(random, b, size)) for size in (6, 9, 12)),
    ]


# The verdict --------------------------------------------------------------------------------------------------------


def pairs(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """The convolutions with the normalizations that may be folded into them."""
    users = graph.users()
    for norm in graph.nodes:
        conv = norm.inputs[0] if norm.primitive is O.batch_norm else None
        if conv is None or conv.primitive is not O.conv or users[conv] != (norm,) or conv in graph.outputs:
            continue
        if all(each.primitive is P.constant for each in (*conv.inputs[1:], *norm.inputs[1:])):
            yield conv, norm


def all_folded(graph: Graph) -> Graph:
    """The graph with all of them folded."""
    graph = graph.subgraph(graph.outputs)
    while pair := next(pairs(graph), None):
        conv, norm = pair
        weight, *bias = map(numbers, conv.inputs[1:])
        gamma, beta, mean, variance = map(numbers, norm.inputs[1:])
        layer = Layer(weight, bias[0] if bias else None, gamma, beta, mean, variance, norm.params["eps"])
        made = apply(O.conv, conv.inputs[0], *map(stored, folded(layer)), **conv.params)
        graph = graph.substitute({norm: made})
        graph = graph.subgraph(graph.outputs)
    return graph


HINTS = {
    SECOND: "who else reads the convolution needs it as it is",
    BATCH: "a mean or variance that is computed from x is another one in each call",
    "several": "a replacement reads the old nodes, which may have been replaced, too: fold one pair, then look again",
    "without a bias": "a convolution without a bias has two inputs, and the new one needs the shift as its bias",
}


def _wrong(part: str, text: str, answer: Any) -> str | None:
    before = Graph.parse(text)
    try:
        said = _reason(before, answer)
    except Wrong as error:
        said = str(error)
    why = "" if answer == str(before) else HINTS.get(part)
    after = f"\nafter\n{indented(_short(answer))}" if isinstance(answer, str) else ""
    return said and f"{said}{hint(why, why)}\nbefore\n{indented(_short(text))}{after}"


def _short(text: str) -> str:
    """A listing without the constants' numbers."""
    return "\n".join(line for line in text.splitlines() if "constant(" not in line)


def _reason(before: Graph, answer: Any) -> str | None:
    after = legal(before, answer)
    for _ in range(2):
        arrays = [unforeseen().normal(size=SHAPE).astype(np.float32)]
        for place, (new, old) in enumerate(zip(evaluate(after, arrays), evaluate(before, arrays), strict=True)):
            off, largest = float(np.abs(new - old).max()), float(np.abs(old).max())
            if not off <= CLOSE * max(largest, 1.0):
                return f"output {place} is off by {off:.3g}, and its largest number is {largest:.3g}"
    wanted, left, kept = all_folded(before).count(), after.count(), after.subgraph(after.outputs).count()
    if left["conv"] > before.count()["conv"]:
        if kept["conv"] <= before.count()["conv"]:
            return "a convolution is left that no output needs: graph.subgraph(graph.outputs) leaves it out"
        return "there is one more convolution than before: the work is done twice"
    if left["batch_norm"] > wanted["batch_norm"]:
        return f"{left['batch_norm']} batch_norm are left, and {wanted['batch_norm']} have to be"
    return None


fold = Task(harness.fold, FOLD, _cases, _wrong)
