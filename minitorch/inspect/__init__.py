"""Looking at the engine and at graphs: reads, never computes."""

from .catalogue import primitives_table, public_functions
from .methods import show

__all__ = ["primitives_table", "public_functions", "show"]
