"""The table of operators: for each, its translation into our public functions.

An operator without a row that ONNX itself defines as a function of others is that function.
"""

from ..program import Row
from . import (
    control,
    elementwise,
    indexing,
    losses,
    movement,
    pooling,
    products,
    recurrent,
    reductions,
    resizing,
)

ROWS = {
    name: row if isinstance(row, Row) else Row(row)
    for table in (
        control, elementwise, indexing, losses, movement, pooling, products, recurrent, reductions, resizing,
    )
    for name, row in table.ROWS.items()
}  # fmt: skip
