"""Passes for graphs with values of 8 bits: rows that name functions of a package beside the engine.

The package is loaded for the first graph that converts or multiplies such values; counting in them, as the places of
a pooling's maxima do, needs none of it. Without it, these graphs are compiled as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..dtypes import int8, uint8
from ..graph.graph import Graph
from ..ir import Node
from ..packages import is_installed, load
from .pipeline import Pass

PACKAGE = "minitorch_quantization"
BYTES = (uint8, int8)


def _function(graph: Graph, place: str) -> Any:
    """Return a function of the package, or None if the graph or this installation has no use for it."""
    asked = (node for node in graph.nodes if node.primitive.name == "cast" or node.primitive.kind == "contraction")
    if not any(each.dtype in BYTES for node in asked for each in (node, *node.inputs)) or not is_installed(PACKAGE):
        return None
    module, _, name = place.partition(":")
    return getattr(load(f"{PACKAGE}.passes.{module}"), name)


def _pass(name: str, place: str, doc: str, rearranges: bool = True) -> Pass:
    def run(graph: Graph) -> Graph:
        function = _function(graph, place)
        return graph if function is None else function(graph)

    return Pass(name, run, doc, rearranges=rearranges)


CHANNELS_LAST = _pass(
    "channels last",
    "channels_last:channels_last",
    "Store images in 8 bits, which integer convolutions read, with the channels of a place beside each other.",
)
EARLY_QUANTISATION = _pass(
    "early quantisation", "early_quantisation:quantise_early", "Round to 8 bits before movements and maxima."
)
INTEGER_PRODUCTS = _pass(
    "integer products",
    "integer_products:integer_products",
    "Multiply quantised operands as 8-bit integers, and scale the sums.",
)
REQUANTISATION = _pass(
    "requantisation",
    "requantised:drop_requantisation",
    "Drop roundings to integers of what was dequantised with the same parameters.",
    rearranges=False,
)


def kept_in_floats(graph: Graph) -> Iterator[tuple[Node, str]]:
    """Yield the contractions of dequantised bytes that stay products of floats, each with the reason."""
    function = _function(graph, "integer_products:kept_in_floats")
    yield from function(graph) if function else ()
