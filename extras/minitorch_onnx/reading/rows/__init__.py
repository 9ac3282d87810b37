"""The table of operators: for each, its translation into our public functions.

An operator without a row that ONNX itself defines as a function of others is that function.
"""

from collections import ChainMap

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
)  # fmt: skip

_TABLES = (
    control, elementwise, indexing, losses, movement, pooling, products, recurrent, reductions, resizing,
)  # fmt: skip
ROWS: dict[str, Row] = dict(ChainMap(*[table.ROWS for table in _TABLES]))
