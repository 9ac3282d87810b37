"""Plots of the cost of a jitted function and of the machine, as pictures for notebooks and as plain text.

They show what is counted and measured elsewhere (`f.cost`, `f.ledger`, `mt.profile`, `mt.machine`), and are of no use
to the engine. matplotlib is imported when a picture is asked for; the text never needs it.
"""

from .breakeven import plot_breakeven
from .classes import plot_kernel_classes
from .hierarchy import plot_hierarchy
from .memory import plot_memory
from .plot import Plot
from .roofline import plot_roofline
from .traffic import plot_traffic

__all__ = [
    "Plot",
    "plot_breakeven",
    "plot_hierarchy",
    "plot_kernel_classes",
    "plot_memory",
    "plot_roofline",
    "plot_traffic",
]
