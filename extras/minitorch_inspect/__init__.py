"""Pictures and plots of graphs, kernels, the tape and costs. Nothing here computes; the engine does not need it.

``f.show(x)`` goes through four kinds of data. `subjects` finds the graph or the ledger; `graphs`, `kernels` or `tape`
make a `Drawing` of it (marks, arrows, clusters), which `summary` makes small enough to read; `layout` has Graphviz
place everything, with sizes that do not depend on a machine's fonts; `scene` turns it into outlines and lines of text,
which `svg` and `png` write. The bytes are the same in every process. `text` needs neither Graphviz nor matplotlib.
"""

from typing import TYPE_CHECKING, Any

from .catalogue import primitives_table, public_functions
from .methods import explore, show

if TYPE_CHECKING:
    from .plots import (
        Plot,
        plot_breakeven,
        plot_hierarchy,
        plot_kernel_classes,
        plot_memory,
        plot_roofline,
        plot_traffic,
    )

__all__ = [
    "Plot",
    "explore",
    "plot_breakeven",
    "plot_hierarchy",
    "plot_kernel_classes",
    "plot_memory",
    "plot_roofline",
    "plot_traffic",
    "primitives_table",
    "public_functions",
    "show",
]


def __getattr__(name: str) -> Any:
    """The plots, loaded on first use: they read the results of the compiler, and load LLVM."""
    if name in __all__:
        from . import plots

        return getattr(plots, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
