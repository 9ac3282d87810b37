"""Drivers of exercise 07: kernels are lists of operations, and a generated kernel is its source."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.graph import Graph
from minitorch.ir import Node, Shape

from .driver import Driver, driver
from .limit import Limited
from .needs import GRAPHS as NEEDS
from .nodes import on_graph

# --- what the notebook works with, too --------------------------------------------------------------------------

REDUCTIONS = (P.reduce_sum, P.reduce_max)


def operations(graph: Graph) -> list[Node]:
    """The nodes that belong into kernels: all but the constants."""
    return [node for node in graph.nodes if node.primitive is not P.constant]


def loop_shape(node: Node) -> Shape:
    """The shape over which a node runs: that of its operand for a reduction, its own otherwise."""
    return node.inputs[0].shape if node.primitive in REDUCTIONS else node.shape


# --- kernel_bytes -----------------------------------------------------------------------------------------------


@driver("fusion.kernel_bytes", NEEDS)
def kernel_bytes(call: Limited, case: tuple[str, Any]) -> Any:
    """A graph, and the places of a kernel's nodes among its operations."""
    text, places = case[1]
    graph = Graph.parse(text)
    return call(graph, [operations(graph)[place] for place in places])


# --- partition --------------------------------------------------------------------------------------------------


partition = Driver("fusion.partition", on_graph(operations), NEEDS)


# --- generate, roofline, measure --------------------------------------------------------------------------------


generate = Driver("fusion.generate", on_graph(), NEEDS)  # the answer is the source, which the judge runs


@driver("fusion.roofline", NEEDS)
def roofline(call: Limited, case: tuple[str, str]) -> Any:
    """What a picture says; each case is about one key of the answer."""
    return call()


@driver("fusion.measure", NEEDS)
def measure(call: Limited, case: tuple[str, int]) -> Any:
    """The number of rounds; the judge has the program and the clock."""
    run, wait, clock = (partial(call.consult, question) for question in ("run", "wait", "clock"))
    answer = call(run, wait, clock, case[1])
    return answer.item() if isinstance(answer, np.generic) else answer
