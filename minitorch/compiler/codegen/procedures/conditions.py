"""Conditions on indices: one bit, or a mask with one per lane."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

from llvmlite import ir

from ...loop_ir.expressions import Inside
from ...loop_ir.index import Index
from ..builder import is_known_mask
from ..instructions import BIT, I64
from ..mathematics.values import splat
from ..vector_memory import I32, SHORTEST, byte_size, integer, integers
from .indices import Indices
from .runs import Runs
from .scopes import Bound, Scopes

MOST_SHORT = 1 << 30  # numbers whose sums and differences fit into 32 bits


class Conditions:
    """Emitter of tests whether indices are within bounds.

    Args:
        scopes: the open ones.
        indices: computes indices.
        runs: of lanes that are within a row.
    """

    def __init__(self, scopes: Scopes, indices: Indices, runs: Runs) -> None:
        self.scopes, self.indices, self.runs, self.builder = scopes, indices, runs, scopes.builder

    def condition(self, inside: Inside) -> Any:
        """Return whether conditions hold: one bit, or one per lane."""
        steps = [self.scopes.step(index) for _, index, _ in inside.bounds]
        alike, even, uneven = (
            [bound for bound, step in zip(inside.bounds, steps, strict=True) if is_one(step)]
            for is_one in (lambda step: step == 0, bool, lambda step: step is None)
        )
        scalars = [self._bound(*bound) for bound in alike]
        if any(_is_known(each, 0) for each in scalars):
            return ir.Constant(BIT, 0)
        scalars = [each for each in scalars if not _is_known(each, 1)]
        known = {bound: self._known_lanes(*bound) for bound in even}
        found = [each for each in known.values() if each is not None]
        if even := [bound for bound in even if known[bound] is None]:
            found.append(self._range(even, alike, scalars))
        else:
            found += scalars
        if uneven:
            runs = self.runs.of([index for _, index, _ in uneven])
            parts = []
            for moved, within in runs:
                for (low, _, high), index in zip(uneven, moved, strict=True):
                    within = within.and_(low, index, high)
                parts.append(self.condition(within))
            found += [self._combined("or_", parts, uneven)] if parts else [self._bound(*bound) for bound in uneven]
        return self._combined("and_", found, inside.bounds) if found else ir.Constant(BIT, 1)

    def in_lanes(self, inside: Inside) -> Any:
        """Return the lanes in which statements run, if not in all, and conditions hold."""
        mask, both = self.scopes.mask, Inside((*self.scopes.masked.bounds, *inside.bounds))
        if mask is not None and any(index.is_data for _, index, _ in both.bounds):
            return self.builder.and_(mask, self.scopes.vector(self.condition(inside)))  # nothing is looked up again
        return self.condition(both)

    def _combined(self, how: str, found: list[Any], bounds: Sequence[Bound]) -> Any:
        """Combine conditions by ``and`` or ``or``."""
        if len(found) < 2:
            return found[0]
        depth, key = self.scopes.known_from(bounds)
        combine = partial(reduce, getattr(self.builder, how))
        return self.scopes.once((how, tuple(bounds), key), depth, lambda: combine(self.scopes.alike(*found)))

    def _bound(self, low: int, index: Index, high: int) -> Any:
        """Return whether an index is within bounds."""
        place = self.indices.index(index)
        lowest, highest = index.bounds
        if isinstance(place, ir.Constant) and not isinstance(place.type, ir.VectorType):
            return ir.Constant(BIT, int(low <= place.constant < high))

        def within() -> Any:
            if lowest < low and highest >= high and not isinstance(place.type, ir.VectorType):  # one comparison
                distance = self.builder.sub(place, splat(place.type, low)) if low else place
                return self.builder.icmp_unsigned("<", distance, splat(place.type, high - low))
            parts = []
            if lowest < low:
                parts.append(self.builder.icmp_signed(">=", place, splat(place.type, low)))
            if highest >= high:
                parts.append(self.builder.icmp_signed("<", place, splat(place.type, high)))
            return parts[0] if len(parts) == 1 else self.builder.and_(*parts)

        depth, key = self.scopes.known_from([(low, index, high)])
        return self.scopes.once(((low, index, high), key), depth, within)

    def _known_lanes(self, low: int, index: Index, high: int) -> Any:
        """Return the lanes in which an index is within bounds, if that is known beforehand."""
        assert self.scopes.lane is not None
        first, step = self.indices.index(self.scopes.without_lane(index)), self.scopes.step(index)
        if not isinstance(first, ir.Constant) or step is None:
            return None
        places = (first.constant + step * lane for lane in range(self.scopes.lane.extent))
        return integers(BIT, tuple(int(low <= each < high) for each in places))

    def _range(self, bounds: Sequence[Bound], others: Sequence[Bound], conditions: list[Any]) -> Any:
        """Return the lanes in which indices that count up or down are within bounds: a range of lanes.

        The range is empty where some other bounds do not hold, for which the conditions are given.
        """
        assert self.scopes.lane is not None
        firsts = [self.indices.index(self.scopes.without_lane(index)) for _, index, _ in bounds]
        builder, lanes = self.builder, self.scopes.lane.extent

        def limit(limits: list[Any], order: str) -> Any:
            found, *rest = limits
            for each in rest:
                found = builder.select(builder.icmp_signed(order, each, found), each, found)
            return found

        ends = (abs(end) for low, index, high in bounds for end in (low, high, *index.bounds))
        is_short = (
            max(ends) < MOST_SHORT and lanes * byte_size(I32) >= SHORTEST
        )  # LLVM 22 has no mask of half a register
        kind = I32 if is_short else I64

        def compared(order: str, number: Any) -> Any:
            numbers = integers(kind, tuple(range(lanes)))
            return builder.icmp_signed(
                order, numbers, self.scopes.vector(builder.trunc(number, kind) if is_short else number)
            )

        def of_lanes() -> Any:
            starts, ends = [], []
            for (low, index, high), first in zip(bounds, firsts, strict=True):
                step, (lowest, highest) = self.scopes.step(index), index.bounds
                assert step is not None
                size = abs(step)

                def rounds(distance: Any, size: int = size) -> Any:
                    """Return how many steps a distance takes; none if it is not ahead."""
                    above = builder.add(distance, integer(size - 1)) if size > 1 else distance
                    return builder.sdiv(above, integer(size)) if size > 1 else above

                if step > 0:
                    least, most = (builder.sub(integer(end), first) for end in (low, high))
                else:
                    most, least = (builder.sub(first, integer(end - 1)) for end in (low, high))
                    lowest, highest, low, high = -highest, -lowest, 1 - high, 1 - low
                starts += [rounds(least)] if lowest < low else []
                ends += [rounds(most)] if highest >= high else []
            if conditions:
                end = limit(ends or [integer(lanes)], "<")
                for condition in conditions:
                    end = builder.select(condition, end, integer(0))
                ends = [end]
            parts = [compared("<", limit(ends, "<"))] if ends else []
            parts += [compared(">=", limit(starts, ">"))] if starts else []
            return reduce(builder.and_, parts)

        depth, key = self.scopes.known_from([*bounds, *others])
        return self.scopes.once(("lanes", tuple(bounds), tuple(others), key), depth, of_lanes)


def _is_known(condition: Any, value: int) -> bool:
    """Return whether a condition is a constant, the same for all lanes."""
    return isinstance(condition, ir.Constant) and condition.type == BIT and condition.constant == value


def lanes_in_use(mask: Any, lanes: int) -> int:
    """Return how many lanes a mask leaves, which are the first; 0 if that is not known."""
    if mask is None:
        return lanes
    return sum(bit.constant for bit in mask.constant) if is_known_mask(mask) else 0
