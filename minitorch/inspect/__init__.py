"""Looking at the engine and at graphs: reads, never computes."""

from typing import TYPE_CHECKING, Any

from .catalogue import primitives_table, public_functions
from .methods import explore, show

if TYPE_CHECKING:
    from .plots import Plot, plot_breakeven, plot_memory, plot_roofline, plot_traffic

__all__ = [
    "Plot",
    "explore",
    "plot_breakeven",
    "plot_memory",
    "plot_roofline",
    "plot_traffic",
    "primitives_table",
    "public_functions",
    "show",
]


def __getattr__(name: str) -> Any:
    """What plots is loaded when it is asked for: it reads the compiler's results, and loads LLVM."""
    if name in __all__:
        from . import plots

        return getattr(plots, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
