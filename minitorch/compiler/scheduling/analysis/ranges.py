"""Range analysis of expressions and arrays: the numbers that a procedure's values can be.

An instruction that adds products in 16 bits is exact if they fit. A quantised value says so itself, as it ends in a
clamp and a cast; `quantising` writes the same as a minimum, a maximum and the nearest integer. Of an argument, its
`bounds` are known; of a local array, all that is stored to it. An array that is added to may hold anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ....passes.intervals import Operation, Range, of_type, rounded
from ....passes.intervals import value_range as range_of
from ...loop_ir.expressions import Apply, Choose, Expression, Load, Number, Position
from ...loop_ir.tree import Accumulate, Local, Procedure, Read, Store, statements

MOST_PARTS = 1000  # of an expression: more are not looked at, which saves time in long chains of operations


def value_range(value: Expression, of_array: Callable[[Expression], Range | None] = lambda _: None) -> Range:
    """Return the numbers that an expression can have: at least those, perhaps more.

    Args:
        value: the expression.
        of_array: the known range of an element of an array; None if unknown.

    Example:
        >>> from minitorch.compiler.loop_ir.expressions import Load
        >>> from minitorch.compiler.loop_ir.index import NOWHERE
        >>> from minitorch.dtypes import bool_, float32, uint8
        >>> x, most = Load(float32, 0, NOWHERE), Number(float32, 127.0, "127")
        >>> t = Apply(float32, "maximum", (x, Number(float32, 0.0, "0")))
        >>> clamped = Apply(float32, "where", (Apply(bool_, "less", (t, most)), t, most))
        >>> value_range(Apply(uint8, "cast", (clamped,))), value_range(Apply(uint8, "cast", (t,)))
        (Range(low=0, high=127, nan=False), Range(low=0, high=255, nan=False))
    """

    def describe(value: Expression) -> Operation | Range | None:
        match value:
            case Apply(primitive=name, arguments=arguments):
                return name, arguments
            case Choose(here=here, elsewhere=elsewhere):
                return "either", (here, elsewhere)
            case Number(value=number) if value.dtype.is_floating_point:
                return None if math.isnan(number) else rounded(value.dtype, number, number, False)
            case Number(value=number):
                return Range(int(number), int(number))
            case Position(index=index):
                return Range(*index.bounds)
        return of_array(value)

    return of_type(value.dtype) if len(value.all_parts) > MOST_PARTS else range_of(value, describe)


def stored_ranges(procedure: Procedure) -> Callable[[Expression], Range | None]:
    """Return a function for `value_range`: the known range of an element of a procedure's array."""
    stores: dict[Local, list[Expression]] = {}
    added: set[Local] = set()
    for each in statements(procedure.body):
        if isinstance(each, Store) and isinstance(each.array, Local):
            stores.setdefault(each.array, []).append(each.value)
        elif isinstance(each, Accumulate) and isinstance(each.array, Local):
            added.add(each.array)
    known: dict[Local, Range | None] = {}

    def of_array(part: Expression) -> Range | None:
        if isinstance(part, Load):
            bounds = procedure.buffers[part.buffer].bounds
            return None if bounds is None else Range(*bounds)
        return of_local(part.local) if isinstance(part, Read) else None

    def of_local(local: Local) -> Range | None:
        """Return a local array's range, as deep as arrays depend on arrays; one computed from itself holds anything."""
        if local not in known:
            known[local] = None
            if local in stores and local not in added:
                first, *others = (value_range(value, of_array) for value in stores[local])
                for other in others:
                    first = first.joined(other)
                known[local] = first if first.fits(of_type(local.dtype)) else None
        return known[local]

    return of_array
