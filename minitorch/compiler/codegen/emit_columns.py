"""Columns: the loops within a row, their accumulators, and the statements in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from llvmlite import ir

from ..loop_ir.expressions import Apply, Load, Scratch, walk
from ..loop_ir.loops import Accumulate, Keep, Loop, Statement, Store, neutral
from ..scheduling.streaming import in_whole_lines
from .emit_ahead import Ahead
from .emit_indices import Body
from .instructions import I64, before_store, combine, computed_type, constant, multiply_add, rounded, stored_type
from .vector_memory import byte_size, integer, store_interleaved

UNROLLED = 8  # operations in a round of a loop that sums up


def sums_of(loop: Loop) -> list[Accumulate]:
    """The statements of a loop that accumulate."""
    return [statement for statement in loop.statements if isinstance(statement, Accumulate)]


class Columns(Ahead):
    """Emits a loop over the columns of a row, or of as many rows as there are lanes."""

    def stream(self, buffers: Collection[int]) -> None:
        """Write some buffers past the caches, where that pays; not in place of what is read, which is there already."""
        read = {part.buffer for _, at in self.nest.statements for part in walk(at.value) if isinstance(part, Load)}
        for number in sorted(in_whole_lines(self.nest, self.layout, buffers)):
            wanted = integer(0)
            for other in sorted(read):
                same = self.builder.icmp_unsigned("==", self.pointers[number], self.pointers[other])
                wanted = self.builder.select(same, integer(-1), wanted)
            self.streamed[number] = wanted

    def _columns(self, loop: Loop) -> None:
        totals = self._starts(loop)
        self._hoist_all(loop)

        def nested(depth: int, totals: list[Any]) -> list[Any]:
            if depth == len(loop.columns) - 1:
                return self._innermost(loop, totals)

            def body(position: Any, totals: list[Any]) -> list[Any]:
                self.places[loop.columns[depth]] = position
                return nested(depth + 1, totals)

            return self._loop(integer(0), integer(loop.columns[depth].extent), 1, totals, body)

        self._set_totals(loop, nested(0, totals))

    def _starts(self, loop: Loop) -> list[Any]:
        """What the accumulators of a loop begin with, for all vectors abreast."""
        return [self._start(statement) for _ in self._abreast() for statement in sums_of(loop)]

    def _hoist_all(self, loop: Loop) -> None:
        if not all(column.extent for column in loop.columns):  # it never runs, and what it would read may not be there
            return
        for _ in self._abreast():
            for statement in loop.statements:
                self._hoist(statement.value, loop)

    def _set_totals(self, loop: Loop, totals: list[Any]) -> None:
        """Make the accumulators of a loop known to the loops that come after."""
        slots = sums_of(loop)
        for number in self._abreast():
            for statement, total in zip(slots, totals[number * len(slots) :], strict=False):
                total = total if self.across_rows else self._across(statement, total)
                self.totals[statement.slot, number] = rounded(self.builder, total, statement.value.dtype)

    def _innermost(self, loop: Loop, totals: list[Any]) -> list[Any]:
        """All of the innermost columns."""
        last = loop.columns[-1]
        if self.across_rows:
            return self._columns_in_tiles(loop, last, totals, self._body(loop))
        streamed = self._streamed_within_lines(loop)
        if streamed is not None:
            self._from_a_line_on(loop, streamed)
            return totals
        full = last.extent // self.lanes * self.lanes
        totals = self._vectors(loop, totals, integer(0), full)
        return self._rest(loop, totals) if full != last.extent else totals

    def _vectors(self, loop: Loop, totals: list[Any], start: Any, length: int) -> list[Any]:
        """So many columns from a start, as whole vectors."""
        self.lane = loop.columns[-1]
        width = self.lanes * self._copies(loop)
        unrolled = length // width * width if width > self.lanes else 0
        middle = self.builder.add(start, integer(unrolled))
        if unrolled:
            totals = self._unrolled(loop, totals, start, middle)
        if length > unrolled:
            stop = self.builder.add(start, integer(length))
            totals = self._loop(middle, stop, self.lanes, totals, self._body(loop))
        self.lane = None
        return totals

    def _rest(self, loop: Loop, totals: list[Any]) -> list[Any]:
        """The last columns, which do not fill a vector."""
        self.lane = last = loop.columns[-1]
        full = last.extent // self.lanes * self.lanes
        self.mask = self._first_lanes(last.extent - full)
        self.known.append({})
        totals = self._body(loop)(integer(full), totals)
        self.known.pop()
        self.lane = self.mask = None
        return totals

    def _streamed_within_lines(self, loop: Loop) -> Store | None:
        """A store past the caches whose rows begin anywhere in a line, if the columns may begin anywhere too."""
        self.lane = last = loop.columns[-1]
        loads = [part for at in loop.statements for part in walk(at.value) if isinstance(part, (Load, Scratch))]
        anywhere = not sums_of(loop) and all(self._step(part.index) in (0, 1) for part in loads)
        self.lane = None
        if not anywhere:
            return None
        for at in loop.statements:
            if isinstance(at, Store) and at.buffer in self.streamed and at.index.coefficient(last) == 1:
                steps = (factor for atom, factor in at.index.terms if atom != last)
                return at if any(step % self.lanes for step in steps) else None
        return None

    def _from_a_line_on(self, loop: Loop, store: Store) -> None:
        """All of the innermost columns: up to where a line of the stored row begins, whole vectors, the rest."""
        builder, last = self.builder, loop.columns[-1]
        self.places[last] = integer(0)
        element = stored_type(self.buffers[store.buffer].dtype, self.target)
        size = byte_size(element)
        row = builder.gep(self.pointers[store.buffer], [self._scalar_index(store.index)], source_etype=element)
        before = builder.sub(integer(0), builder.udiv(builder.ptrtoint(row, I64), integer(size)))
        start = builder.and_(before, integer(self.lanes - 1))
        whole = builder.and_(builder.sub(integer(last.extent), start), integer(-self.lanes))
        stop = builder.add(start, whole)
        lanes, rest = integer(self.lanes), builder.sub(integer(last.extent), stop)
        self.lane = last
        # A vector whose first lanes are left out, and not the last: it would reach into the next line.
        self._some_lanes(loop, builder.sub(start, lanes), builder.sub(lanes, start), lanes)
        self._loop(start, stop, self.lanes, [], self._body(loop))
        self._some_lanes(loop, stop, integer(0), rest)
        self.lane = None

    def _some_lanes(self, loop: Loop, position: Any, first: Any, end: Any) -> None:
        """A vector of columns, of which the lanes from `first` up to `end` are in use."""
        numbers = ir.Constant(ir.VectorType(I64, self.lanes), list(range(self.lanes)))
        after = self.builder.icmp_signed(">=", numbers, self._vector(first))
        before = self.builder.icmp_signed("<", numbers, self._vector(end))
        self.mask = self.builder.and_(after, before)
        self.known.append({})
        self._body(loop)(position, [])
        self.known.pop()
        self.mask = None

    def _body(self, loop: Loop) -> Body:
        """The statements, for one column or one vector of columns."""
        slots = sums_of(loop)

        def body(position: Any, totals: list[Any]) -> list[Any]:
            self.places[loop.columns[-1]] = position
            for _ in self._abreast():
                for statement in loop.statements:
                    totals = self._statement(statement, totals, slots)
            return totals

        return body

    def _copies(self, loop: Loop) -> int:
        """How many vectors of columns go into one round, so that a short sum need not wait for the addition before."""
        if not sums_of(loop) or self.layout.in_order:
            return 1
        operations = sum(isinstance(part, Apply) for statement in loop.statements for part in walk(statement.value))
        return max(1, UNROLLED // (operations + 1))

    def _unrolled(self, loop: Loop, totals: list[Any], start: Any, stop: Any) -> list[Any]:
        """Columns, several vectors a round, each with accumulators of its own."""
        slots, copies, count, body = sums_of(loop), self._copies(loop), len(totals), self._body(loop)

        def round_(position: Any, carried: list[Any]) -> list[Any]:
            results: list[Any] = []
            for copy in range(copies):
                self.known.append({})
                place = self.builder.add(position, integer(copy * self.lanes)) if copy else position
                results += body(place, carried[copy * count : (copy + 1) * count])
                self.known.pop()
            return results

        carried = [*totals, *(self._start(slot) for _ in range(copies - 1) for slot in slots)]
        found = self._loop(start, stop, self.lanes * copies, carried, round_)
        for copy in range(1, copies):
            found[:count] = [
                combine(self.builder, slot.reduction, slot.value.dtype, *pair)
                for slot, *pair in zip(slots, found, found[copy * count :], strict=False)
            ]
        return found[:count]

    def _start(self, statement: Accumulate) -> Any:
        kind = ir.VectorType(computed_type(statement.value.dtype), self.lanes)
        return constant(statement.value.dtype, neutral(statement.reduction, statement.value.dtype), kind)

    def _across(self, statement: Accumulate, total: Any) -> Any:
        """The lanes of an accumulator combined into one number: halves onto halves."""
        width = self.lanes
        while width > 1:
            width //= 2
            order = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width)))
            upper = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width, 2 * width)))
            low = self.builder.shuffle_vector(total, total, order)
            high = self.builder.shuffle_vector(total, total, upper)
            total = combine(self.builder, statement.reduction, statement.value.dtype, low, high)
        return self.builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    # Statements -----------------------------------------------------------------------------------------

    def _store_together(self, statements: Sequence[Statement]) -> None:
        """Stores that fill what is between the lanes of the first."""
        stores = [statement for statement in statements if isinstance(statement, Store)]
        dtype = self.buffers[stores[0].buffer].dtype
        values = [self._vector(before_store(self.builder, self._value(store.value), dtype)) for store in stores]
        pointer = self.pointers[stores[0].buffer]
        first = self.builder.gep(pointer, [self._scalar_index(stores[0].index)], source_etype=values[0].type.element)
        store_interleaved(self.builder, first, values, self._lanes_in_use())

    def _statement(self, statement: Statement, totals: list[Any], slots: Sequence[Accumulate] = ()) -> list[Any]:
        dtype = statement.value.dtype
        if isinstance(statement, Accumulate):
            place = slots.index(statement) + self.current * len(slots)
            old = totals[place]
            new = self._accumulated(statement, old)
            totals = list(totals)
            keep_old = self.mask is not None and not self.across_rows
            totals[place] = self.builder.select(self.mask, new, old) if keep_old else new
            return totals
        value = self._value(statement.value)
        if isinstance(statement, Store):
            stored = before_store(self.builder, value, self.buffers[statement.buffer].dtype)
            place = self._place_in_tile(statement.buffer, statement.index, written=True)
            if place is None:
                streamed = self.streamed.get(statement.buffer)
                self._write(self.pointers[statement.buffer], statement.index, stored, streamed)
            else:
                self._store_vector(place, self._vector(stored), None)
        elif isinstance(statement, Keep):
            stored = before_store(self.builder, self._vector(value) if self.across_rows else value, dtype)
            if self.across_rows:
                self._store_vector(self._scratch_row(statement.slot, statement.index, stored), stored, None)
            else:
                self._write(self.scratch[statement.slot], statement.index, stored)
        return totals

    def _accumulated(self, statement: Accumulate, old: Any) -> Any:
        """One step of a reduction."""
        dtype = statement.value.dtype
        if statement.factors:
            a, b = (self._vector(self._value(factor)) for factor in statement.factors)
            return multiply_add(self.builder, dtype, a, b, old)
        return combine(self.builder, statement.reduction, dtype, old, self._vector(self._value(statement.value)))
