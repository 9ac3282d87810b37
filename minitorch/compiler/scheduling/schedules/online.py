"""Long rows online: which loops take a maximum, and the sums of exponentials measured from it, in one pass.

One after the other they read the row twice. That costs nothing if the row is still in the cache, and a way through
memory if it is longer. The online form (`rewrites.online`) goes block by block: the maximum of a block first, then its
sums, from the cache.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ....dtypes import float32, float64
from ...loop_ir.expressions import Apply, Expression, Load, Total
from ...loop_ir.loops import Loop, Nest, Reduce
from .. import rewrites as R
from ..lanes import Layout
from ..rewrite import Rewrite

# Bytes of a row that are read twice, the second time from a cache. Raising it spares corrections of the sums and
# reductions across lanes, one a block: 3 % of a logsumexp at 16 KB. Beyond the first cache the second pass slows down.
BLOCK = 1 << 15
CACHED = 2  # the part of the second cache that a row may take before it is long


def pairs(nest: Nest, layout: Layout) -> list[int]:
    """Return the numbers of the loops that are run together with the next one."""
    found: list[int] = []
    for number, (first, second) in enumerate(zip(nest.loops, nest.loops[1:], strict=False)):
        if number - 1 not in found and not nest.scratch and _is_online(layout, first, second):
            found.append(number)
    return found


def _is_online(layout: Layout, first: Loop, second: Loop) -> bool:
    """Return whether two loops are maxima and sums of exponentials over the same long rows."""
    if len(first.columns) != 1 or first.columns != second.columns:
        return False
    if first.columns[0].extent <= block(layout):
        return False
    if layout.tiles(first) or layout.tiles(second) or _row_bytes(layout, first) <= layout.target.caches[1] // CACHED:
        return False
    maxima = {at.slot for at in first.statements if isinstance(at, Reduce) and at.reduction == "reduce_max"}
    return len(maxima) == len(first.statements) and all(
        isinstance(at, Reduce) and at.reduction == "reduce_sum" and _is_measured(at.value, maxima)
        for at in second.statements
    )


def _row_bytes(layout: Layout, loop: Loop) -> int:
    loads = {part for at in loop.statements for part in at.value.all_parts if isinstance(part, Load)}
    width = layout.lanes * layout.abreast if layout.across_rows else 1
    return sum(load.dtype.itemsize for load in loads) * loop.columns[0].extent * width


def _is_measured(value: Expression, maxima: set[int]) -> bool:
    """Return whether a value is ``exp(x - shift)``, where x depends on no maximum and the shift does.

    Not so if the exponential is multiplied by anything. A product that is small with the maximum of all might be too
    large with that of a block. 16-bit floats round after every step, also where nothing would be rounded otherwise.
    """
    if not isinstance(value, Apply) or value.primitive != "exp" or value.dtype not in (float32, float64):
        return False
    difference = value.arguments[0]
    if not isinstance(difference, Apply) or difference.primitive != "sub":
        return False
    x, shift = ({part.slot for part in each.all_parts if isinstance(part, Total)} for each in difference.arguments)
    return not x & maxima and len(shift & maxima) == 1


def block(layout: Layout) -> int:
    """Return a block's columns: of rows in lanes, of which several vectors go abreast, half as many bytes of each."""
    return BLOCK // (8 * layout.lanes) if layout.across_rows else BLOCK // 4


def online_steps(nest: Nest, layout: Layout) -> Iterator[Rewrite]:
    """Yield the rewrites that run pairs of loops block by block, for every row."""
    wanted, size = pairs(nest, layout), block(layout)
    inner = [part for part in innermost(nest, ()) if {part.number, part.number - 1} & {*wanted}]
    for part in reversed(inner):
        yield R.split(part.name, size, "block", "c")
    for number in wanted:
        yield R.online("block", *(f"total{at.slot}" for at in nest.loops[number].statements if isinstance(at, Reduce)))
    if any(part.extent % size for part in inner):
        yield R.partition("block", "c", "rest")


def online_arrays(nest: Nest, layout: Layout) -> list[str]:
    """Return the arrays that `online_steps` adds."""
    maxima = [total for number in pairs(nest, layout) for total in totals(nest.loops[number])]
    return [f"{maximum}_{name}" for maximum in maxima for name in ("before", "shift", "factor")]


def totals(loop: Loop) -> list[str]:
    """Return the arrays that a loop accumulates into."""
    return [f"total{at.slot}" for at in loop.statements if isinstance(at, Reduce)]


@dataclass(frozen=True)
class Innermost:
    """An innermost loop over columns: its name, its iterations, and the number of the loop whose statements it has."""

    name: str
    extent: int
    number: int


def innermost(nest: Nest, wanted: Collection[int], size: int = 1) -> list[Innermost]:
    """Return the innermost loops over columns, after some pairs of loops are run in blocks of a size."""
    found: list[tuple[str, int, int]] = []
    for number, loop in enumerate(nest.loops):
        extent = loop.columns[-1].extent if loop.columns else 0
        if number in wanted:
            found += [("c", size, number), ("c", size, number + 1)]
            found += [("rest", extent % size, number), ("rest", extent % size, number + 1)] if extent % size > 1 else []
        elif number - 1 not in wanted:
            found += [(each.name, each.extent, number) for each in loop.columns]
    seen: dict[str, int] = {}
    result = []
    for name, extent, number in found:
        seen[name] = seen.get(name, -1) + 1
        if name in ("c", "rest") or name == nest.loops[number].columns[-1].name:
            result.append(Innermost(f"{name}#{seen[name]}", extent, number))
    return result
