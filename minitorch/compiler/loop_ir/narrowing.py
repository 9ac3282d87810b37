"""Range analysis of integers, in its simplest form: whether a value fits into a narrower type than its own.

The factors of a product of small integers are cast to the type of the sum. Packed, they should be small again.
"""

from __future__ import annotations

import numpy as np

from ...dtypes import DType
from .expressions import Apply, Choose, Expression, Number, chosen, converted, literal


def narrowed(value: Expression, dtype: DType) -> Expression | None:
    """Return an integer computed as one of a narrower type; None if it is not known to fit.

    It fits if it is cast from a type all of whose values do, or if both alternatives of a select fit.

    Example:
        >>> from minitorch.compiler.loop_ir.expressions import Load
        >>> from minitorch.compiler.loop_ir.index import NOWHERE
        >>> from minitorch.dtypes import int8, int16, int32, uint8
        >>> element = converted(Load(uint8, 0, NOWHERE), int32)
        >>> [str(narrowed(element, dtype) and narrowed(element, dtype).dtype) for dtype in (int16, uint8, int8)]
        ['minitorch.int16', 'minitorch.uint8', 'None']
    """
    if value.dtype.category != "int" or dtype.category != "int":
        return None
    ends = np.iinfo(dtype.numpy)
    match value:
        case Number(value=known):
            return literal(dtype, known) if ends.min <= known <= ends.max else None
        case Choose(inside=inside):
            here, elsewhere = narrowed(value.here, dtype), narrowed(value.elsewhere, dtype)
            return None if here is None or elsewhere is None else chosen(inside, here, elsewhere)
        case Apply(primitive="cast", arguments=(wide,)) if wide.dtype.category == "int":
            own = np.iinfo(wide.dtype.numpy)
            return converted(wide, dtype) if ends.min <= own.min and own.max <= ends.max else None
    own = np.iinfo(value.dtype.numpy)
    return converted(value, dtype) if ends.min <= own.min and own.max <= ends.max else None
