"""Pictures and plots of graphs, kernels, the tape and costs. Nothing here computes; the engine does not need it.

``f.show(x)`` goes through four kinds of data. `subjects` finds the graph or the ledger; `graphs`, `kernels` or `tape`
make a `Drawing` of it (marks, arrows, clusters), which `summary` makes small enough to read; `layout` has Graphviz
place everything, with sizes that do not depend on a machine's fonts; `scene` turns it into outlines and lines of text,
which `svg` and `png` write. The bytes are the same in every process. `text` needs neither Graphviz nor matplotlib.
"""

from typing import TYPE_CHECKING

from minitorch.packages import names_from

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

if not TYPE_CHECKING:  # the plots read the results of the compiler, and load LLVM
    later = [name for name in __all__ if name.lower().startswith("plot")]
    __getattr__, __dir__ = names_from(__name__, dict.fromkeys(later, "minitorch_inspect.plots"))
