"""The blank of notebook 06: rules as patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minitorch.backends import get
from minitorch.graph import Graph
from minitorch.passes import DEFAULT, run_pipeline
from minitorch.passes.patterns import op, wildcard
from minitorch.passes.rewrite import Rule, Rules, rewrite

from ..blanking import Blank, Case

x, y, z = wildcard("x"), wildcard("y"), wildcard("z")


def own_table() -> Any:
    """Return a table of four rules."""
    return Rules(
        Rule(x + -y, x - y),
        Rule(op.exp(x) * op.exp(y), op.exp(x + y)),
        Rule(x * y + x * z, x * (y + z)),
        Rule(op.maximum(x, -x), op.abs(x)),
    )


def _graphs() -> Iterable[Case]:
    inputs = "a: f32[4], b: f32[4], c: f32[4]"
    for words, lines, result in (
        ("For a + -b", "%0 = neg(b) %1 = add(a, %0)", "%1"),
        ("For exp(a) * exp(b)", "%0 = exp(a) %1 = exp(b) %2 = mul(%0, %1)", "%2"),
        ("For a * b + a * c", "%0 = mul(a, b) %1 = mul(a, c) %2 = add(%0, %1)", "%2"),
        ("For the larger of a and -a", "%0 = neg(a) %1 = maximum(a, %0)", "%1"),
    ):
        yield words, Graph.parse(f"graph({inputs}): {lines} return {result}")


def _rewritten(function: Callable[..., Any], graph: Graph) -> Any:
    """The operations that a table leaves of a graph, and what they compute."""
    table = function()
    if not isinstance(table, Rules):
        return table
    after = run_pipeline(rewrite(graph, table), [each for each in DEFAULT if each.name == "dead code"]).graph
    values = np.random.default_rng(6).normal(size=(len(graph.inputs), 4)).astype(np.float32)
    return dict(after.count()), get("interpret")(after)(list(values))


BLANKS = {
    "own_table": Blank(
        own_table,
        _graphs,
        {
            "The same wildcard twice fits only the same value twice: exp(x) * exp(x) does not fit exp(a) * exp(b).": {
                "op.exp(x) * op.exp(y), op.exp(x + y)": "op.exp(x) * op.exp(x), op.exp(x + x)"
            },
            "None of your rules fits. The pattern comes first, then what takes its place.": lambda: Rules(
                Rule(x + -y, x - y)
            ),
        },
        ask=_rewritten,
    )
}
