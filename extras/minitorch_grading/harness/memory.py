"""Drivers of exercise 11: graphs come as text, plans and choices are numbers."""

from __future__ import annotations

from typing import Any

from minitorch import primitives as P
from minitorch.graph import Graph
from minitorch.ir import INPUT, Node

from .driver import call_purely, driver
from .limit import Limited
from .needs import GRAPHS as NEEDS
from .nodes import everything_in, places_of

# --- what the notebook works with, too --------------------------------------------------------------------------

ELEMENTWISE = (P.add, P.sub, P.mul, P.div, P.neg, P.exp, P.absolute, P.maximum, P.sqrt)


def is_view(node: Node) -> bool:
    """Whether a node makes no value of its own: its result is the memory of its operand, seen in another way."""
    return node.primitive.is_view


def is_buffer(node: Node) -> bool:
    """Whether a run has to find memory for a value: it is no input, no view, and no number of the program."""
    return not is_view(node) and node.primitive not in (INPUT, P.constant)


# --- the tasks --------------------------------------------------------------------------------------------------


@driver("memory.live_ranges", NEEDS)
def live_ranges(call: Limited, case: tuple[str, str]) -> Any:
    """A graph; the answer names nodes by their places among inputs and nodes."""
    graph = Graph.parse(case[1])
    found = call(graph)
    if not isinstance(found, dict):
        return found
    return dict(zip(places_of(everything_in(graph), [*found]), found.values(), strict=True))


@driver("memory.may_overwrite", NEEDS)
def may_overwrite(call: Limited, case: tuple[str, str]) -> Any:
    """A graph; the answer has pairs of places."""
    graph = Graph.parse(case[1])
    return places_of(everything_in(graph), call(graph))


best_fit = driver("memory.best_fit", NEEDS)(call_purely)
# They may search:
plan = driver("memory.plan", NEEDS, seconds=4.0)(call_purely)
checkpoints = driver("memory.checkpoints", NEEDS, seconds=4.0)(call_purely)
