"""Drivers of exercise 06: the student's pass runs in the engine's pipeline, the table in its rewriting."""

from __future__ import annotations

from typing import Any

from minitorch.graph import Graph
from minitorch.passes.pipeline import Pass, run_pipeline
from minitorch.passes.rewrite import Rules, rewrite

from .driver import Driver, within
from .needs import Needs
from .plain import described

NEEDS = Needs(engine=("graph", "passes.pipeline"), without=("graph.build.topological_order",))


def _passed(function: Any, text: str) -> str:
    """The graph that a student's pass makes of a graph, in the pipeline that every way into the engine uses."""

    def checked(graph: Graph) -> Graph:
        result = function(graph)
        if not isinstance(result, Graph):
            raise TypeError(f"a pass returns a Graph, and this one returns {described(result)}")
        return result

    return str(run_pipeline(Graph.parse(text), [Pass("yours", checked, "A student's pass.")]).graph)


dead_code, fold_constants, merge = (
    Driver(f"rewriting.{name}", within(_passed), NEEDS) for name in ("dead_code", "fold_constants", "merge")
)


def _rewritten(laws: Any, text: str) -> str:
    rules = laws()
    if not isinstance(rules, Rules):
        raise TypeError(f"Rules(...) was expected, and it is {described(rules)}")
    return str(rewrite(Graph.parse(text), rules))


laws = Driver("rewriting.laws", within(_rewritten), NEEDS)
