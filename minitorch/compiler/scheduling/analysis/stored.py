"""Range analysis of arrays: the numbers that a procedure's arguments and local arrays can hold.

Of an argument, its `bounds`; of a local array, all that is stored to it. An array that is added to may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable

from ...loop_ir.expressions import Expression, Load
from ...loop_ir.tree import Accumulate, Local, Procedure, Read, Store, statements
from .ranges import Range, of_type, value_range


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
