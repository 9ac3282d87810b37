"""The graph IR: `Graph`, its verifier, its text form and parser, its cost, and rewriting by patterns."""

from .build import apply, input_node, literal, topological_order
from .cost import Cost
from .graph import Graph

__all__ = ["Cost", "Graph", "apply", "input_node", "literal", "topological_order"]
