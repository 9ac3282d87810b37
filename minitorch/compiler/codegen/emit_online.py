"""Long rows: the maximum of a row and a sum of ``exp(x - maximum)`` in one pass over memory.

Taken one after the other they read the row twice, which is for nothing if the row is still in the cache, and costs a
way through memory if it is longer than that. The *online* form (Milakov and Gimelshein, "Online normalizer calculation
for softmax", 2018) goes block by block: the maximum of a block first, then its sum, from the cache. Whenever the
maximum has grown from m to M, the sum so far is multiplied by ``exp(m - M)``. Every lane has a maximum of its own until
the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ... import dtypes
from ..loop_ir.expressions import Apply, Expression, Load, Number, Total, walk
from ..loop_ir.loops import Accumulate, Loop, Nest
from ..scheduling.layout import Layout
from .emit_columns import Columns, sums_of
from .instructions import PRIMITIVES, constant
from .vector_memory import integer

BLOCK = 1 << 14  # bytes of a row that are read twice in a row
CACHED = 2  # the part of the second cache that a row may take before it is long


def online_pairs(nest: Nest, layout: Layout) -> Iterator[tuple[Loop | None, Loop | None]]:
    """For each loop of a nest, the loop that it is run together with: one before it, one after it, or none."""
    loops = nest.loops
    before: Loop | None = None
    for number, loop in enumerate(loops):
        after = loops[number + 1] if number + 1 < len(loops) and before is None else None
        pair = after if after is not None and _is_online(nest, layout, loop, after) else None
        yield before, pair
        before = loop if pair is not None else None


def _is_online(nest: Nest, layout: Layout, first: Loop, second: Loop) -> bool:
    """Whether two loops are a maximum and sums of exponentials over the same long rows."""
    if nest.scratch or len(first.columns) != 1 or first.columns != second.columns:
        return False
    if layout.tiles(first) or layout.tiles(second) or _row_bytes(layout, first) <= layout.target.caches[1] // CACHED:
        return False
    maxima = {at.slot for at in sums_of(first) if at.reduction == "reduce_max" and at.value.dtype in _EXACT}
    return len(maxima) == len(first.statements) and all(
        isinstance(at, Accumulate) and at.reduction == "reduce_sum" and _shift(at.value, maxima) is not None
        for at in second.statements
    )


_EXACT = (dtypes.float32, dtypes.float64)  # 16-bit floats round after every step, also where none would be


def _row_bytes(layout: Layout, loop: Loop) -> int:
    loads = {part for at in loop.statements for part in walk(at.value) if isinstance(part, Load)}
    width = layout.lanes * layout.abreast if layout.across_rows else 1
    return sum(load.dtype.itemsize for load in loads) * loop.columns[0].extent * width


def _shift(value: Expression, maxima: set[int]) -> Expression | None:
    """What is subtracted, where a value is ``exp(x - shift)`` and x knows no maximum.

    The shift is a maximum, or something else in place of one that is infinite. Not so if the exponential is multiplied
    by anything: what would be small with the maximum of all might be too large with that of a block.
    """
    if not isinstance(value, Apply) or value.primitive != "exp" or value.dtype not in _EXACT:
        return None
    (difference,) = value.arguments
    if not isinstance(difference, Apply) or difference.primitive != "sub" or _mentions(difference.arguments[0], maxima):
        return None
    shift = difference.arguments[1]
    return shift if _maximum(shift, maxima) is not None else None


def _maximum(shift: Expression, maxima: set[int]) -> Total | None:
    """The maximum that a shift is, at least where that is finite."""
    if isinstance(shift, Apply) and shift.primitive == "where":
        condition, here, elsewhere = shift.arguments
        shift = next((each for each in (here, elsewhere) if isinstance(each, Total)), shift)
        lowest, highest = (
            Number(shift.dtype, value, f"{shift.dtype.short} {value!r}") for value in (-math.inf, math.inf)
        )
        infinite = Apply(condition.dtype, "equal", (shift, lowest))
        finite = Apply(condition.dtype, "less", (Apply(shift.dtype, "abs", (shift,)), highest))
        if (condition, elsewhere) != (infinite, shift) and (condition, here) != (finite, shift):
            return None
    return shift if isinstance(shift, Total) and shift.slot in maxima else None


def _mentions(value: Expression, maxima: set[int]) -> bool:
    return any(isinstance(part, Total) and part.slot in maxima for part in walk(value))


class Online(Columns):
    """Emits a maximum and the sums that go with it."""

    def _online(self, first: Loop, second: Loop) -> None:
        column = first.columns[0]
        size = BLOCK // (4 * self.lanes) * (1 if self.across_rows else self.lanes)
        whole = column.extent // size * size
        count = len(self._starts(first))

        def block(position: Any, carried: list[Any]) -> list[Any]:
            return self._block(first, second, carried[:count], carried[count:], position, size)

        found = [*self._starts(first), *self._starts(second)]
        found = self._loop(integer(0), integer(whole), size, found, block)
        if whole < column.extent:
            found = self._block(first, second, found[:count], found[count:], integer(whole), column.extent - whole)
        maxima, sums = found[:count], found[count:]
        self._set_totals(first, maxima)
        if not self.across_rows:  # every lane's sum for the maximum of all
            shifts = {at.slot: self._vector(self.totals[at.slot, 0]) for at in sums_of(first)}
            own = {at.slot: maximum for at, maximum in zip(sums_of(first), maxima, strict=True)}
            sums = [
                self.builder.fmul(total, self._factor(own[slot], shifts[slot], at))
                for total, (at, slot) in zip(sums, self._slots(first, second), strict=True)
            ]
        self._set_totals(second, sums)
        self._mark_empty(first, second)

    def _slots(self, first: Loop, second: Loop) -> list[tuple[Accumulate, int]]:
        """The sums, each with the slot of its maximum, once for every vector abreast."""
        maxima = {at.slot for at in sums_of(first)}
        found = []
        for at in sums_of(second):
            shift = _shift(at.value, maxima)
            maximum = _maximum(shift, maxima) if shift is not None else None
            assert maximum is not None
            found.append((at, maximum.slot))
        return found

    def _block(self, first: Loop, second: Loop, old: list[Any], sums: list[Any], start: Any, length: int) -> list[Any]:
        """Some columns: their maximum, the sums so far for the new maximum, and what is added to them."""
        self.known.append({})  # what is computed from a maximum here is another value elsewhere
        self._hoist_all(first)
        new = self._some(first, old, start, length)
        slots = sums_of(first)
        factors: dict[tuple[int, int], Any] = {}
        for number in self._abreast():
            for place, at in enumerate(slots, number * len(slots)):
                self.totals[at.slot, number] = self._finite(new[place], at)
                factors[at.slot, number] = self._factor(old[place], new[place], at)
        pairs = self._slots(first, second)
        scaled = [
            self.builder.fmul(sums[number * len(pairs) + place], factors[slot, number])
            for number in range(len(sums) // len(pairs))
            for place, (_, slot) in enumerate(pairs)
        ]
        self._hoist_all(second)
        grown = self._some(second, scaled, start, length)
        self.known.pop()
        return [*new, *grown]

    def _some(self, loop: Loop, totals: list[Any], start: Any, length: int) -> list[Any]:
        """Columns from a start; if that are not whole vectors, they are the last."""
        self.known.append({})
        if self.across_rows:
            totals = self._loop(start, self.builder.add(start, integer(length)), 1, totals, self._body(loop))
        else:
            rest = length % self.lanes
            totals = self._vectors(loop, totals, start, length - rest) if length > rest else totals
            totals = self._rest(loop, totals) if rest else totals
        self.known.pop()
        return totals

    def _is_lowest(self, maximum: Any, at: Accumulate) -> Any:
        return self.builder.fcmp_ordered("==", maximum, constant(at.value.dtype, -math.inf, maximum.type))

    def _finite(self, maximum: Any, at: Accumulate) -> Any:
        """A maximum to subtract: not that of no numbers, from which ``-inf - -inf`` would make NaN."""
        return self.builder.select(self._is_lowest(maximum, at), constant(at.value.dtype, 0, maximum.type), maximum)

    def _factor(self, old: Any, new: Any, at: Accumulate) -> Any:
        """What a sum for one maximum is multiplied by to be one for another."""
        difference = self.builder.fsub(old, self._finite(new, at))
        grown = PRIMITIVES["exp"](self.builder, at.value.dtype, difference)
        same = self.builder.fcmp_ordered("==", old, new)
        return self.builder.select(same, constant(at.value.dtype, 1, old.type), grown)

    def _mark_empty(self, first: Loop, second: Loop) -> None:
        """Where a row is nothing but -inf and that is subtracted as it is, the sum is NaN."""
        maxima = {at.slot for at in sums_of(first)}
        for at, slot in self._slots(first, second):
            if isinstance(_shift(at.value, maxima), Total):
                for number in self._abreast():
                    total, maximum = self.totals[at.slot, number], self.totals[slot, number]
                    nan = constant(at.value.dtype, math.nan, total.type)
                    self.totals[at.slot, number] = self.builder.select(self._is_lowest(maximum, at), nan, total)
