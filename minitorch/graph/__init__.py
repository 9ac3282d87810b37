"""Programs as data: `Graph`, what is legal, how it reads, what it costs, and how it is rewritten."""

from .build import apply, input_node, literal, topological_order
from .cost import Cost
from .graph import Graph

__all__ = ["Cost", "Graph", "apply", "input_node", "literal", "topological_order"]
