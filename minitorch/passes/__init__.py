"""Passes: functions from graph to graph, as values with names.

`DEFAULT` is the pipeline that every way in uses. `LOWERING` follows it for a backend that lowers the graph to loops:
its passes bring the graph into the form that fuses best. The `interpret` backend does without them. `FREEZING`, of a
package beside the engine, replaces `DEFAULT` where parameters are constants. `autocast` makes a pass that changes
numbers on purpose, and is in none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..graph.graph import Graph
from ..packages import names_from
from . import pipeline
from .algebra import ALGEBRA, LAWS
from .common_subexpressions import COMMON_SUBEXPRESSIONS
from .constant_folding import CONSTANT_FOLDING
from .dead_code import DEAD_CODE, IDENTITIES
from .eight_bits import CHANNELS_LAST, EARLY_QUANTISATION, INTEGER_PRODUCTS, REQUANTISATION
from .lowering import BRANCH_TO_SELECT, CONTRACTION_DIMENSIONS, SCATTER_TO_SELECT, SINK_RESHAPES
from .movement import MOVEMENT
from .pipeline import Pass, Run, Stage

if TYPE_CHECKING:
    from minitorch_amp.mixed_precision import autocast
    from minitorch_inference.pipeline import AFFINE_FOLDING, FOLDING, FREEZING

    from .rejected import REJECTED_LAWS, RejectedLaw

DEFAULT: tuple[Pass, ...] = (
    DEAD_CODE,  # first, so that the others visit fewer nodes
    COMMON_SUBEXPRESSIONS,  # in a law, both x are the same node
    MOVEMENT,
    CONSTANT_FOLDING,
    ALGEBRA,
    MOVEMENT,  # movements may have become neighbours
    CONSTANT_FOLDING,  # and operands may have become constants
    COMMON_SUBEXPRESSIONS,
    DEAD_CODE,
)

LOWERING: tuple[Pass, ...] = (
    BRANCH_TO_SELECT,  # so that the others see what was in branches
    IDENTITIES,  # before the passes that search for patterns
    EARLY_QUANTISATION,  # so that products have it in their epilogue
    INTEGER_PRODUCTS,
    SCATTER_TO_SELECT,
    CONTRACTION_DIMENSIONS,  # takes the reshapes next to a product,
    SINK_RESHAPES,  # so that this moves only the others
    CHANNELS_LAST,  # of values that are next to their products now
)


# What no pipeline here has: passes of packages beside the engine, and laws that do not hold.
_LATER = {
    **dict.fromkeys(("AFFINE_FOLDING", "FOLDING", "FREEZING", "affine"), "minitorch_inference.pipeline"),
    **dict.fromkeys(("REJECTED_LAWS", "RejectedLaw"), "minitorch.passes.rejected"),
    "autocast": "minitorch_amp.mixed_precision",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_from(__name__, _LATER)


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


def lowered(graph: Graph) -> Graph:
    """Apply the `LOWERING` passes to a graph; the result is the input of the fusing compiler.

    Example:
        >>> graph = Graph.parse('''
        ... graph(x: f32[2,3,4], w: f32[4,5]):
        ...   %0 = reshape(x, shape=[6,4])
        ...   %1 = dot(%0, w, dtype=f32)
        ...   %2 = reshape(%1, shape=[2,3,5])
        ...   return %2
        ... ''')
        >>> print(lowered(graph))
        graph(x: f32[2,3,4], w: f32[4,5]):
          %0 = contract(x, w, lengths=[2,3,5,4], kept=3, left=[[0],[1],[3]], right=[[3],[2]], dtype=f32) : f32[2,3,5]
          return %0
    """
    return run_pipeline(graph, LOWERING).graph


__all__ = [
    "AFFINE_FOLDING",
    "ALGEBRA",
    "BRANCH_TO_SELECT",
    "CHANNELS_LAST",
    "COMMON_SUBEXPRESSIONS",
    "CONSTANT_FOLDING",
    "CONTRACTION_DIMENSIONS",
    "DEAD_CODE",
    "DEFAULT",
    "EARLY_QUANTISATION",
    "FOLDING",
    "FREEZING",
    "INTEGER_PRODUCTS",
    "LAWS",
    "LOWERING",
    "MOVEMENT",
    "REJECTED_LAWS",
    "REQUANTISATION",
    "SCATTER_TO_SELECT",
    "SINK_RESHAPES",
    "Pass",
    "RejectedLaw",
    "Run",
    "Stage",
    "autocast",
    "lowered",
    "run_pipeline",
]
