"""The graph IR: `Graph`, its verifier, its text form and parser, its cost, and evaluation."""

from .build import apply, input_node, literal, topological_order
from .control_flow import cond, scan, while_loop
from .cost import Cost
from .evaluation import evaluate
from .graph import Graph

__all__ = [
    "Cost", "Graph", "apply", "cond", "evaluate", "input_node", "literal", "scan", "topological_order", "while_loop",
]  # fmt: skip
