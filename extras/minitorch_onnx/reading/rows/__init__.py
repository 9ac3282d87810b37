"""The table of operators: for each, its translation into our public functions.

An operator without a row that ONNX itself defines as a function of others is that function.
"""

from ..program import Row
from . import (
    activations,
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

ROWS: dict[str, Row] = {
    **activations.ROWS,
    **control.ROWS,
    **elementwise.ROWS,
    **indexing.ROWS,
    **losses.ROWS,
    **movement.ROWS,
    **pooling.ROWS,
    **products.ROWS,
    **recurrent.ROWS,
    **reductions.ROWS,
    **resizing.ROWS,
}
