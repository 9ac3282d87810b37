"""Looking at the engine and at graphs: reads, never computes."""

from .catalogue import primitives_table, public_functions

__all__ = ["primitives_table", "public_functions"]
