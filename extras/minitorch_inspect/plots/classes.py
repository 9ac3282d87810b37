"""`plot_kernel_classes`: the classes of kernels, K1 to K5, with a drawing and an example of each."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import colours
from .plot import Plot
from .theme import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS, COLUMNS, CHOSEN = 4, 5, 1  # of a drawn array, and its row that is at work
CELL = 0.5  # side of a cell, in units of the drawing
FAR = 8.7  # width of a drawing
LETTERS = 48  # of a line under a drawing


@dataclass(frozen=True)
class KernelClass:
    """A class of kernels.

    Attributes:
        kind: as the ledger has it, ``"K1"`` to ``"K5"``.
        name: of the class.
        example: an expression that becomes one kernel of this class, of matrices `x` and `y`, and `w` to multiply by.
        doc: what a kernel of this class does.
    """

    kind: str
    name: str
    example: str
    doc: str


CLASSES = (
    KernelClass(
        "K1", "pointwise", "(x * 2 + 1).exp()", "each element of the result needs the elements at its own place"
    ),
    KernelClass("K2", "reduction", "(x * x).sum(1)", "the elements of a row become one number: sum, product, maximum"),
    KernelClass(
        "K3", "row-resident", "x.softmax(1)", "a row is reduced, and used again with the result while it is at hand"
    ),
    KernelClass(
        "K4", "contraction", "(x @ w).relu()", "a matrix product or a convolution, tile by tile, with its epilogue"
    ),
    KernelClass("K5", "side by side", "x.exp(), y * 2", "programs that do not need each other, run as one kernel"),
)


def plot_kernel_classes() -> Plot:
    """The classes of kernels, one drawing each: which elements a kernel reads for those that it writes.

    Returns:
        A `Plot`, whose rows are `KernelClass`.

    Example:
        >>> print(plot_kernel_classes())
        The classes of kernels: what is read for what is written
        K1  pointwise     (x * 2 + 1).exp()  each element of the result needs the elements at its own place
        K2  reduction     (x * x).sum(1)     the elements of a row become one number: sum, product, maximum
        K3  row-resident  x.softmax(1)       a row is reduced, and used again with the result while it is at hand
        K4  contraction   (x @ w).relu()     a matrix product or a convolution, tile by tile, with its epilogue
        K5  side by side  x.exp(), y * 2     programs that do not need each other, run as one kernel
    """
    text = "\n".join(f"{row.kind}  {row.name:14}{row.example:19}{row.doc}" for row in CLASSES)
    return Plot("The classes of kernels: what is read for what is written", text, CLASSES, _draw, 4.4)


def _draw(figure: Figure) -> None:
    grid = figure.add_gridspec(2, 6)
    places = [grid[0, 0:2], grid[0, 2:4], grid[0, 4:6], grid[1, 0:3], grid[1, 3:6]]
    drawings = (_pointwise, _reduction, _row_resident, _contraction, _side_by_side)
    for place, row, draw in zip(places, CLASSES, drawings, strict=True):
        axes = figure.add_subplot(place)
        wide = 1.5 if row.kind in ("K4", "K5") else 1.0
        axes.set(xlim=(0, FAR * wide), ylim=(5.2, -1.6), aspect="equal")
        axes.axis("off")
        colour = colours.KERNELS[row.kind][1]
        axes.text(0, -1.15, f"{row.kind} · {row.name}", fontsize=10, fontweight="bold", color=INK)
        draw(axes, colour)
        axes.text(0, 3.9, row.example, fontsize=9, family="monospace", color=INK)
        lines = textwrap.fill(row.doc, int(LETTERS * wide))
        axes.text(0, 4.2, lines, fontsize=7.5, va="top", color=INK).set_in_layout(False)


def _array(
    axes: Any, x: float, y: float, colour: str, rows: int, columns: int, filled: tuple[range, range], name: str = ""
) -> None:
    """An array as cells, some of which are coloured."""
    from matplotlib.patches import Rectangle

    for row in range(rows):
        for column in range(columns):
            chosen = row in filled[0] and column in filled[1]
            style: dict[str, Any] = {"facecolor": colour if chosen else "none", "edgecolor": INK, "linewidth": 0.6}
            axes.add_patch(Rectangle((x + CELL * column, y + CELL * row), CELL, CELL, **style))
    axes.text(x + CELL * columns / 2, y + CELL * rows + 0.2, name, fontsize=7, ha="center", va="top", color=INK)


def _arrow(axes: Any, x: float, y: float, to_x: float, to_y: float, text: str = "", bend: float = 0.0) -> None:
    style = {"arrowstyle": "-|>", "color": INK, "linewidth": 1, "connectionstyle": f"arc3,rad={bend}"}
    axes.annotate("", (to_x, to_y), (x, y), arrowprops={**style, "shrinkA": 0, "shrinkB": 0})
    axes.text((x + to_x) / 2, min(y, to_y) - 0.25, text, fontsize=7, ha="center", color=INK)


ROW = (range(CHOSEN, CHOSEN + 1), range(COLUMNS))  # the cells of a row
MIDDLE = CELL * (CHOSEN + 0.5)  # its height
END = CELL * COLUMNS


def _pointwise(axes: Any, colour: str) -> None:
    one = (range(CHOSEN, CHOSEN + 1), range(2, 3))
    _array(axes, 0, 0, colour, ROWS, COLUMNS, one, "read")
    _array(axes, 5.5, 0, colour, ROWS, COLUMNS, one, "written")
    _arrow(axes, 3 * CELL, MIDDLE, 5.5 + 2 * CELL, MIDDLE)


def _reduction(axes: Any, colour: str) -> None:
    _array(axes, 0, 0, colour, ROWS, COLUMNS, ROW, "read")
    _array(axes, 5.5, 0, colour, ROWS, 1, (range(CHOSEN, CHOSEN + 1), range(1)), "written")
    _arrow(axes, END, MIDDLE, 5.5, MIDDLE, "sum")


def _row_resident(axes: Any, colour: str) -> None:
    _array(axes, 0, 0, colour, ROWS, COLUMNS, ROW, "read once")
    _array(axes, 3.8, MIDDLE - CELL / 2, colour, 1, 1, (range(1), range(1)))
    _array(axes, 5.9, 0, colour, ROWS, COLUMNS, ROW, "written")
    _arrow(axes, END, MIDDLE, 3.8, MIDDLE, "sum")
    _arrow(axes, 3.8 + CELL, MIDDLE, 5.9, MIDDLE)
    _arrow(axes, END / 2, 0, 5.9 + END / 2, 0, bend=-0.22)
    axes.text(4.2, -0.32, "again", fontsize=7, ha="center", va="center", color=INK)


def _contraction(axes: Any, colour: str) -> None:
    tile = (range(1, 3), range(1, 3))
    _array(axes, 0, 0, colour, ROWS, COLUMNS, (range(1, 3), range(COLUMNS)), "rows of x")
    axes.text(2.85, 1, "@", fontsize=9, ha="center", va="center", color=INK)
    _array(axes, 3.2, 0, colour, COLUMNS, ROWS, (range(COLUMNS), range(1, 3)), "columns of w")
    _array(axes, 7.4, MIDDLE - CELL / 2, colour, 2, 2, (range(2), range(2)), "a tile, in registers")
    _array(axes, 10.8, 0, colour, ROWS, ROWS, tile, "written")
    _arrow(axes, 3.2 + CELL * ROWS, 1, 7.4, 1)
    _arrow(axes, 7.4 + 2 * CELL, 1, 10.8 + CELL, 1, "epilogue")


def _side_by_side(axes: Any, colour: str) -> None:
    one = (range(CHOSEN, CHOSEN + 1), range(2, 3))
    for x, name in ((0.0, "x"), (6.8, "y")):
        _array(axes, x, 0, colour, ROWS, COLUMNS, one, f"read {name}")
        _array(axes, x + 3.5, 0, colour, ROWS, COLUMNS, one, "written")
        _arrow(axes, x + 3 * CELL, MIDDLE, x + 3.5 + 2 * CELL, MIDDLE)
