"""Drivers of exercise 11: graphs come as text, plans and choices are numbers."""

from __future__ import annotations

from minitorch import primitives as P
from minitorch.ir import INPUT, Node

from .driver import Driver, call_purely
from .needs import GRAPHS as NEEDS
from .nodes import on_graph

# --- what the notebook works with, too --------------------------------------------------------------------------

ELEMENTWISE = (P.add, P.sub, P.mul, P.div, P.neg, P.exp, P.absolute, P.maximum, P.sqrt)


def is_view(node: Node) -> bool:
    """Whether a node makes no value of its own: its result is the memory of its operand, seen in another way."""
    return node.primitive.is_view


def is_buffer(node: Node) -> bool:
    """Whether a run has to find memory for a value: it is no input, no view, and no number of the program."""
    return not is_view(node) and node.primitive not in (INPUT, P.constant)


# --- the tasks --------------------------------------------------------------------------------------------------


live_ranges, may_overwrite = (Driver(f"memory.{name}", on_graph(), NEEDS) for name in ("live_ranges", "may_overwrite"))
best_fit = Driver("memory.best_fit", call_purely, NEEDS)
plan, checkpoints = (  # they may search
    Driver(f"memory.{name}", call_purely, NEEDS, seconds=4.0) for name in ("plan", "checkpoints")
)
