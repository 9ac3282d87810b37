"""The table of operators: for each, its translation into our public functions.

A function of these modules that has an operator's name is its row, beside those of their `ROWS`. Its parameters of the
type `Array` are inputs whose numbers have to be known. An operator without a row that ONNX itself defines as a function
of others is that function.
"""

import inspect

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

ROWS: dict[str, Row] = {}
for _table in (
    control, elementwise, indexing, losses, movement, pooling, products, recurrent, reductions, resizing,
):  # fmt: skip
    _own = [each for each in vars(_table).values() if inspect.isfunction(each) and each.__module__ == _table.__name__]
    _named = {each.__name__: each for each in _own if each.__name__[0].isupper()}
    for _name, _row in {**_named, **_table.ROWS}.items():
        if not isinstance(_row, Row):
            _types = [str(each.annotation) for each in inspect.signature(_row).parameters.values()]
            _row = Row(_row, tuple([at for at, each in enumerate(_types) if each.startswith("Array")]))
        ROWS[_name] = _row
