"""Passes: functions from graph to graph, as values with names. `DEFAULT` is the pipeline that every way in uses."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.graph import Graph
from . import pipeline
from .algebra import ALGEBRA, LAWS
from .common_subexpressions import COMMON_SUBEXPRESSIONS
from .constant_folding import CONSTANT_FOLDING
from .dead_code import DEAD_CODE
from .movement import MOVEMENT
from .pipeline import Pass, Run, Stage
from .rejected import REJECTED_LAWS, RejectedLaw

DEFAULT: tuple[Pass, ...] = (
    DEAD_CODE,  # first, so that the others have less to do
    COMMON_SUBEXPRESSIONS,  # laws that say x twice mean the same node
    MOVEMENT,
    CONSTANT_FOLDING,
    ALGEBRA,
    MOVEMENT,  # what stood between two movements may be gone
    CONSTANT_FOLDING,  # and constants may have come together
    COMMON_SUBEXPRESSIONS,
    DEAD_CODE,
)


def run_pipeline(graph: Graph, passes: Iterable[Pass] = DEFAULT) -> Run:
    """Apply passes one after another, with a snapshot and statistics of each.

    Raises:
        GraphError: naming the pass after which the graph breaks a rule (``MT601``).

    Example:
        >>> graph = Graph.parse('''
        ... graph(x: f32[2,3]):
        ...   %0 = reshape(x, shape=[6])
        ...   %1 = mul(%0, 1.0)
        ...   %2 = reshape(%1, shape=[2,3])
        ...   %3 = add(%2, %2)
        ...   return %3
        ... ''')
        >>> run = run_pipeline(graph)
        >>> print(run.graph)
        graph(x: f32[2,3]):
          %0 = add(x, x) : f32[2,3]
          return %0
        >>> [stage.name for stage in run if stage.removed]
        ['algebra', 'movement', 'dead code']
    """
    return pipeline.run_pipeline(graph, passes)


__all__ = [
    "ALGEBRA",
    "COMMON_SUBEXPRESSIONS",
    "CONSTANT_FOLDING",
    "DEAD_CODE",
    "DEFAULT",
    "LAWS",
    "MOVEMENT",
    "REJECTED_LAWS",
    "Pass",
    "RejectedLaw",
    "Run",
    "Stage",
    "run_pipeline",
]
