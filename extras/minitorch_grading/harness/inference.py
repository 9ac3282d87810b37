"""Drivers of exercise 12: layers are arrays, graphs come as text, and a server is a table of counts."""

from __future__ import annotations

from typing import Any

import numpy as np

import minitorch_operators as minitorch_operators  # `Graph.parse` knows them once they are declared
from minitorch.graph import Graph, literal
from minitorch.ir import Node
from minitorch.primitives import constant

from .driver import Driver, call_purely, within
from .needs import Needs
from .plain import Array, described

NEEDS = Needs(engine=("graph", "primitives.operators"), without=("passes.patterns", "passes.rewrite", "passes.lifting"))

# What the notebook works with, too ----------------------------------------------------------------------------------


def numbers(node: Node) -> Array:
    """Return the numbers of a constant, in float64."""
    if node.primitive is not constant:
        raise TypeError(f"the numbers of {node.primitive.name} are no constants: each call has others")
    return np.asarray(constant.evaluate(**node.params), np.float64)


def stored(array: Any) -> Node:
    """Return a constant with these numbers, rounded to float32."""
    return literal(np.asarray(array, np.float32))


# The tasks ----------------------------------------------------------------------------------------------------------

fold_layer, convincing, error_bound, serve = (
    Driver(f"inference.{name}", call_purely, NEEDS) for name in ("fold_layer", "convincing", "error_bound", "serve")
)


def _folded(function: Any, text: str) -> str:
    result = function(Graph.parse(text))
    if not isinstance(result, Graph):
        raise TypeError(f"a pass returns a Graph, and this one returns {described(result)}")
    result.verify()
    return str(result)


fold = Driver("inference.fold", within(_folded), NEEDS)
