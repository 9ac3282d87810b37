"""Looking at the engine and at graphs: reads, never computes."""

from .catalogue import primitives_table, public_functions
from .methods import explore, show

__all__ = ["explore", "primitives_table", "public_functions", "show"]
