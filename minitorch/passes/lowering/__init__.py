"""Passes for backends that compile: products as contractions; reshapes, scatters and branches as loops read them."""

from __future__ import annotations

from ... import primitives as P
from ...graph.control_flow import cond
from ...graph.graph import Graph
from ...ir import Primitive
from ...packages import load
from ..pipeline import Pass
from .sink_reshapes import SINK_RESHAPES

__all__ = ["BRANCH_TO_SELECT", "CONTRACTION_DIMENSIONS", "SCATTER_TO_SELECT", "SINK_RESHAPES"]


def _later(primitive: Primitive, name: str, doc: str, rearranges: bool = False) -> Pass:
    """Return the pass of a file, which is loaded for the first graph with a primitive."""
    function = name.replace(" ", "_")

    def run(graph: Graph) -> Graph:
        if all(node.primitive is not primitive for node in graph.nodes):
            return graph
        result: Graph = getattr(load(f"{__name__}.{function}"), function)(graph)
        return result

    return Pass(name, run, doc, rearranges=rearranges)


BRANCH_TO_SELECT = _later(
    cond,
    "branch to select",
    "Compute both sides of a branch of little work, and select, so that a loop around it stays in native code.",
)
CONTRACTION_DIMENSIONS = _later(
    P.dot,
    "contraction dimensions",
    "Give products the dimensions that reshapes have joined for them, which makes indices without divisions.",
    rearranges=True,
)
SCATTER_TO_SELECT = _later(
    P.scatter_add,
    "scatter to select",
    "Write an addition of one number per row as a comparison of columns, which can be fused.",
)
