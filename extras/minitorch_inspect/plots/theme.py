"""One look of all plots, legible on light and on dark pages: no ground of their own, and ink of a middle grey."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ..colours import INK as INK  # of all plots

ON_FILL = "#222222"  # letters within a coloured shape
COLOURED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
STYLE: Any = {"axes.facecolor": "none", **dict.fromkeys(COLOURED, INK)}  # of matplotlib's settings


def use_in_notebook() -> None:
    """Give pyplot's figures this look in a notebook; elsewhere, and without matplotlib, do nothing."""
    if find_spec("matplotlib") is None or find_spec("IPython") is None:
        return
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if not hasattr(shell, "kernel"):
        return
    import matplotlib
    from matplotlib_inline.backend_inline import set_matplotlib_formats
    from matplotlib_inline.config import InlineBackend

    matplotlib.rcParams.update(STYLE)
    # The figure itself stays white: of one without a ground, IPython says that it needs a light one.
    backend = InlineBackend.instance(parent=shell)
    backend.print_figure_kwargs = {"bbox_inches": "tight", "facecolor": "none"}
    set_matplotlib_formats("png", **backend.print_figure_kwargs)  # type: ignore[no-untyped-call]
