"""The graph IR: `Graph`, its verifier, its text form and parser, its cost, and evaluation."""

from .build import apply, input_node, literal, topological_order
from .cost import Cost
from .evaluation import evaluate
from .graph import Graph

__all__ = ["Cost", "Graph", "apply", "evaluate", "input_node", "literal", "topological_order"]
