"""Sweeps over tiles as LLVM IR: attention and its gradients. What is computed in which sweep is `sweeps`'s business.

For every unit, which is one block of rows::

    pack the operands of the tiles that depend on the row
    for every sweep:
        for every block of columns that contributes something:
            tiles = the inner sums                           # `Products`: a matrix product, in the registers
            maxima, and how much sums so far must be corrected for them
            sums += what is made of the tiles; weights       # `Numbers`: exp and the like, a vector of rows at a time
            outputs += the weights times the other operand   # `Products`: another matrix product
        what is left to do with the sums
    store what is made of the outputs
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..loop_ir.expressions import Expression, Sum
from ..loop_ir.loops import Buffer, Loop, Nest, Store
from ..scheduling.contractions.skip import Skip, skips
from ..scheduling.contractions.sweeps import Output
from ..target import Target
from .emit_numbers import Numbers
from .instructions import BIT, before_store, computed_type, constant
from .vector_memory import integer


class Sweeper(Numbers):
    """Emits one nest by tiles into a function."""

    def __init__(self, buffers: tuple[Buffer, ...], nest: Nest, function: Any, target: Target) -> None:
        super().__init__(buffers, nest, function, target)
        self.skips = [skips(self.sweeps, sweep) for sweep in range(self.sweeps.count)]
        passed = dict.fromkeys(output for found in self.skips for skip in found for output, _ in skip.weights)
        # What is added to all rows of an output: what is left of the blocks that are passed over.
        self.rest = {output: self._row_memory(self._whole(output.lane.extent), self.element) for output in passed}

    def emit(self) -> None:
        """The whole function."""
        _, _, begin, end = self.function.args
        self._each(begin, end, 1, self._unit)
        self.builder.ret_void()

    def _unit(self, unit: Any) -> None:
        """One block of rows."""
        count = integer(-(-self.row.extent // self.cut.rows))
        self.first_row = self._times(self.builder.urem(unit, count), self.cut.rows)
        unit = self.builder.udiv(unit, count)
        for variable in reversed(self.sweeps.batch):
            self.places[variable] = self.builder.urem(unit, integer(variable.extent))
            unit = self.builder.udiv(unit, integer(variable.extent))
        left = self.builder.sub(integer(self.row.extent), self.first_row)
        self.unit_rows = self._smaller(integer(self.cut.rows), left)
        for tile in self.sweeps.tiles:
            self._pack_across(tile)
        for output, memory in self.rest.items():
            self._clear(memory, self._whole(output.lane.extent))
        for sweep in range(self.sweeps.count):
            self._begin(sweep)
            self._each(integer(0), integer(self.swept.extent), self.cut.columns, self._block(sweep))
            self._finish(sweep)
        self._each(integer(0), self.unit_rows, 1, self._store_row)
        self._groups(1, self._store_numbers)  # last: it may be to the memory of numbers that were read until now

    # Blocks of columns ----------------------------------------------------------------------------------

    def _block(self, sweep: int) -> Callable[[Any], None]:
        def block(first: Any) -> None:
            self.first_column = first
            left = self.builder.sub(integer(self.swept.extent), first)
            self.unit_columns = self._smaller(integer(self.cut.columns), left)
            wanted: Any = ir.Constant(BIT, 1)
            for skip in self.skips[sweep]:
                applies = self.builder.and_(wanted, self._applies(skip))
                wanted = self.builder.xor(wanted, applies)
                self._if(applies, self._pass_over(skip))
            self._if(wanted, lambda: self._whole_block(sweep))

        return block

    def _whole_block(self, sweep: int) -> None:
        """A block of columns that contributes something."""
        if not self.cut.keeps:
            self.replaced = {}
        for tile in self.sweeps.needed(sweep) if not sweep or not self.cut.keeps else ():
            self._inner(tile)
        self._maxima(sweep)
        self._terms(sweep)
        for output in self._outputs(sweep):
            self._outer(output, None if output.weight.shift is None else self._factors(output))

    def _factors(self, output: Output) -> Callable[[Any], Any]:
        return lambda row: self._factor(output, row)

    def _applies(self, skip: Skip) -> Any:
        """Whether a block of columns is passed over."""
        applies = self._is_everywhere(skip)
        if not skip.needs_first:
            return applies
        return self.builder.and_(applies, self.builder.icmp_signed(">", self.first_column, integer(0)))

    def _is_everywhere(self, skip: Skip) -> Any:
        """Whether a comparison has an outcome everywhere in a tile: its smallest or largest difference tells."""
        builder, zero = self.builder, integer(0)
        if skip.comparison == "equal":
            above = builder.icmp_signed(">", self._extreme(skip, largest=False), zero)
            return builder.or_(above, builder.icmp_signed("<", self._extreme(skip, largest=True), zero))
        if skip.outcome:
            return builder.icmp_signed("<" if skip.comparison == "less" else "<=", self._extreme(skip, True), zero)
        return builder.icmp_signed(">=" if skip.comparison == "less" else ">", self._extreme(skip, False), zero)

    def _extreme(self, skip: Skip, largest: bool) -> Any:
        """The largest or smallest difference of two positions in a tile."""
        for variable, first, count in (
            (self.row, self.first_row, self.unit_rows),
            (self.swept, self.first_column, self.unit_columns),
        ):
            at_end = (skip.difference.coefficient(variable) > 0) is largest
            self.places[variable] = self.builder.add(first, self._plus(count, -1)) if at_end else first
        return self._scalar_index(skip.difference)

    def _pass_over(self, skip: Skip) -> Callable[[], None]:
        """What is left of a block of columns: nothing, unless it is NaN."""
        dtypes = [self.dtypes[each.slot] for each, _ in skip.sums]

        def column(number: Any, sums: list[Any]) -> list[Any]:
            self.places[self.swept] = self.builder.add(self.first_column, number)
            for output, weight in skip.weights:
                self._lanes(output.lane, self._add_rest(output, self._vector(self._value(weight))))
            return [
                self.builder.fadd(total, self._value(value)) for total, (_, value) in zip(sums, skip.sums, strict=True)
            ]

        def pass_over() -> None:
            zeros = [constant(dtype, 0, computed_type(dtype)) for dtype in dtypes]
            found = self._loop(integer(0), self.unit_columns, 1, zeros, column)

            def rows(start: Any) -> None:
                for (each, _), value in zip(skip.sums, found, strict=True):
                    total = self.builder.fadd(self._number(each.slot, start), self._vector(value))
                    self._put_number(each.slot, start, total)

            if skip.sums:
                self._each(integer(0), self.unit_rows, self.lanes, rows)

        return pass_over

    def _add_rest(self, output: Output, weight: Any) -> Callable[[Any], None]:
        memory = self.rest[output]

        def add(at: Any) -> None:
            term = self.builder.fmul(weight, self._vector(self._value(output.other)))
            self._put(memory, at, self.builder.fadd(self._get(memory, at), term))

        return add

    # Results --------------------------------------------------------------------------------------------

    def _store_numbers(self, start: Any) -> None:
        """Totals, and what is computed of them, for a vector of rows."""
        self._vector_of_rows(0)
        self._know_totals(start)
        for store in self.sweeps.row_stores:
            self._store(store)

    def _store_row(self, row: Any) -> None:
        """What is stored of the outputs of one row."""
        self.places[self.row] = self.builder.add(self.first_row, row)
        self.output_row = row
        for slot, memory in self.numbers.items():
            kind = computed_type(self.dtypes[slot])
            place = self.builder.gep(memory, [row], source_etype=kind)
            self.totals[slot, 0] = self.builder.load(place, typ=kind)
        for output in self.sweeps.outputs:
            for _, part in output.weight.after:
                if part is not None:
                    self._value(part)
        for loop in self.sweeps.stores:
            self._store_lanes(loop)

    def _store_lanes(self, loop: Loop) -> None:
        (lane,) = loop.columns
        self.lane = lane
        stores = [each for each in loop.statements if isinstance(each, Store)]
        for store in stores:
            self._prepare(store.value, lane)

        def vector(_: Any) -> None:
            for store in stores:
                self._store(store)

        self._lanes(lane, vector)

    def _store(self, store: Store) -> None:
        value = before_store(self.builder, self._value(store.value), self.buffers[store.buffer].dtype)
        self._write(self.pointers[store.buffer], store.index, value)

    def _computed(self, expression: Expression) -> Any:
        tile = self.replaced.get(expression)
        if tile is None and isinstance(expression, Sum):
            tile = self.tiles.get(expression)
        if tile is not None:
            memory = self._of_block(self.tile[tile])
            return self._get(memory, self._plus(self.tile_place, self.current * self.lanes))
        if not isinstance(expression, Sum):
            return super()._computed(expression)
        output = self.outputs[expression]
        lane = self.places[output.lane]
        value = self._get(
            self.results[output], self.builder.add(self._times(self.output_row, self._width(output)), lane)
        )
        if output.weight.shift is not None:
            value = self.builder.fmul(value, self._factor(output, self.output_row))
        if output in self.rest:
            value = self.builder.fadd(value, self._get(self.rest[output], lane))
        return self._afterwards(output.weight, value)
