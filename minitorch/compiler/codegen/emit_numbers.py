"""What sweeps make of their tiles, as LLVM IR: numbers per row, and the weights of outputs, a vector of rows at a time.

A sum that is measured from a maximum is kept as it is for the maximum so far. When a block of columns raises this, the
sum is multiplied by ``exp(old shift - new shift)``. As long as a maximum is -inf there is nothing to correct, and the
shift is taken for 0, because ``-inf - -inf`` would be NaN for columns that come later too; whether the loops really
subtract -inf where all columns are -inf is made up for at the end (`_finish`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..loop_ir.expressions import Apply, Expression, Sum, walk
from ..loop_ir.index import Variable
from ..loop_ir.loops import Buffer, Nest, neutral
from ..scheduling.contractions.sweeps import SHIFT, Output, Reduction, Term, Tile
from ..target import Target
from .emit_products import Products
from .instructions import PRIMITIVES, cast, combine, computed_type, constant, rounded
from .mathematics.values import splat
from .vector_memory import byte_size, integer


class Numbers(Products):
    """Emits reductions and weights."""

    def __init__(self, buffers: tuple[Buffer, ...], nest: Nest, function: Any, target: Target) -> None:
        super().__init__(buffers, nest, function, target)
        self.shifts = dict(self.sweeps.shifts)
        self.replaced: dict[Expression, Tile] = {}  # what is in the place of a tile now
        self.dtypes = {each.slot: each.term.value.dtype for each in self.sweeps.reductions}
        for slot in self.shifts:
            self.dtypes[SHIFT - slot] = self.dtypes[self._correction(slot)] = self.dtypes[slot]
        self.numbers = {
            slot: self._row_memory(self.cut.rows, computed_type(dtype)) for slot, dtype in self.dtypes.items()
        }

    def _correction(self, slot: int) -> int:
        """The place of the factor that brings sums up to date."""
        return SHIFT - slot - 1 - max(each.slot for each in self.sweeps.reductions)

    def _reductions(self, sweep: int, name: str) -> list[Reduction]:
        return [each for each in self.sweeps.reductions if each.term.sweep == sweep and each.name == name]

    def _begin(self, sweep: int) -> None:
        """Neutral elements, before the first block of columns."""

        def vector(start: Any) -> None:
            for each in (*self._reductions(sweep, "reduce_max"), *self._reductions(sweep, "reduce_sum")):
                self._put_number(each.slot, start, self._neutral(each))
                if each.slot in self.shifts:
                    self._put_number(SHIFT - each.slot, start, splat(self._kind(each.slot), 0.0))

        self._each(integer(0), self.unit_rows, self.lanes, vector)
        for output in self._outputs(sweep):
            self._clear(self.results[output], self._size(output))

    def _clear(self, memory: Any, size: int) -> None:
        self._each(integer(0), integer(size), self.lanes, lambda at: self._put(memory, at, self.zero))

    def _neutral(self, reduction: Reduction) -> Any:
        dtype = self.dtypes[reduction.slot]
        return constant(dtype, neutral(reduction.name, dtype), self._kind(reduction.slot))

    def _kind(self, slot: int) -> Any:
        return ir.VectorType(computed_type(self.dtypes[slot]), self.lanes)

    def _columns(self, start: Any, carried: list[Any], body: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Run through the columns of a block, for a group of rows."""

        def column(number: Any, values: list[Any]) -> list[Any]:
            self.places[self.swept] = self.builder.add(self.first_column, number)
            self.tile_place = self.builder.add(self._times(number, self.cut.rows), start)
            return body(values)

        return self._loop(integer(0), self.unit_columns, 1, carried, column)

    # Maxima ---------------------------------------------------------------------------------------------

    def _maxima(self, sweep: int) -> None:
        """The maxima, with those of a block of columns, and what follows for sums that are measured from them."""
        maxima = self._reductions(sweep, "reduce_max")
        if not maxima:
            return
        before = {each.slot: self._correction(each.slot) for each in maxima if each.slot in self.shifts}
        replaced = self._replaced([each.term.value for each in maxima])

        def group(start: Any) -> None:
            def body(values: list[Any]) -> list[Any]:
                found: list[Any] = []
                for number in self._vectors():
                    for each in maxima:
                        value = self._vector(self._value(each.term.value))
                        found.append(
                            combine(self.builder, each.name, self.dtypes[each.slot], values[len(found)], value)
                        )
                    at = self._plus(self.tile_place, number * self.lanes)
                    for expression, tile in replaced.items():
                        self._put(self._of_block(self.tile[tile]), at, self._value(expression))
                return found

            self._know_totals(start)
            old = []
            for number in range(self.cut.abreast):
                at = self._plus(start, number * self.lanes)
                old += [self._number(each.slot, at) for each in maxima]
            new = self._columns(start, old, body)
            for place, (earlier, value) in enumerate(zip(old, new, strict=True)):
                slot, at = maxima[place % len(maxima)].slot, self._plus(start, place // len(maxima) * self.lanes)
                self._put_number(slot, at, value)
                if slot in before:
                    self._put_number(before[slot], at, earlier)

        def correct(start: Any) -> None:
            self._vector_of_rows(0)
            for slot in before:
                self._correct(slot, start)

        self._groups(self.cut.abreast, group)
        self.replaced |= replaced
        if before:
            self._groups(1, correct)

    def _replaced(self, scores: list[Expression]) -> dict[Expression, Tile]:
        """What maxima are taken of, where it can take the place of a tile: nothing else is made of the tile later."""
        later = [term for sweep in range(self.sweeps.count) for term in self.sweeps.terms(sweep) if term not in scores]
        seen: set[Expression] = set()
        while later:
            at = later.pop()
            if at not in scores and at not in seen:
                seen.add(at)
                later += at.parts()
        found: dict[Expression, Tile] = {}
        for score in scores:
            tiles = {self.tiles[part] for part in walk(score) if isinstance(part, Sum)}
            free = (
                tiles
                - {*found.values(), *self.replaced.values()}
                - {self.tiles[part] for part in self.tiles if part in seen}
            )
            if len(tiles) == len(free) == 1 and isinstance(score, Apply) and computed_type(score.dtype) == self.element:
                found[score] = free.pop()
        return found

    def _correct(self, slot: int, at: Any) -> None:
        """The shift for a new maximum, and the factor for what was measured from the old one."""
        builder, dtype = self.builder, self.dtypes[slot]
        old, new = self._number(self._correction(slot), at), self._number(slot, at)
        lowest, zero, one = (splat(new.type, number) for number in (-math.inf, 0.0, 1.0))
        shift = builder.select(builder.fcmp_ordered("==", new, lowest), zero, self._shift(slot, new))
        factor = PRIMITIVES["exp"](builder, dtype, builder.fsub(self._number(SHIFT - slot, at), shift))
        factor = builder.select(builder.fcmp_ordered("==", old, lowest), one, factor)
        self._put_number(SHIFT - slot, at, shift)
        self._put_number(self._correction(slot), at, factor)

    def _shift(self, slot: int, maximum: Any) -> Any:
        """What terms are measured from, for a maximum."""
        self.totals[slot, self.current] = maximum
        self.known.append({})
        value = self._vector(self._value(self.shifts[slot]))
        self.known.pop()
        return value

    # Sums -----------------------------------------------------------------------------------------------

    def _terms(self, sweep: int) -> None:
        """Sums, and the weights of outputs, which take the place of the tiles."""
        sums, outputs = self._reductions(sweep, "reduce_sum"), self._outputs(sweep)

        def group(start: Any) -> None:
            def body(values: list[Any]) -> list[Any]:
                found: list[Any] = []
                weights: list[tuple[Output, Any, Any]] = []
                for number in self._vectors():
                    for each in sums:
                        value = self._vector(self._value(each.term.value))
                        found.append(
                            combine(self.builder, each.name, self.dtypes[each.slot], values[len(found)], value)
                        )
                    at = self._plus(self.tile_place, number * self.lanes)
                    weights += [(each, at, self._vector(self._value(each.weight.value))) for each in outputs]
                for output, at, value in weights:
                    self._put(self._of_block(self.weights[output]), at, value)
                return found

            self._know_totals(start)
            for _ in self._vectors():
                for term in (*(each.term for each in sums), *(each.weight for each in outputs)):
                    self._prepare(term.value, self.swept)
            found = self._columns(start, [self._neutral(each) for _ in self.firsts for each in sums], body)
            for place, value in enumerate(found):
                each, at = sums[place % len(sums)], self._plus(start, place // len(sums) * self.lanes)
                before = self._corrected(each.term, self._number(each.slot, at), at)
                self._put_number(each.slot, at, self.builder.fadd(before, value))

        if sums or outputs:
            self._groups(self.cut.abreast, group)

    def _prepare(self, expression: Expression, *inner: Variable) -> None:
        """Compute what does not change with the variables of the loop that follows."""
        pending, seen = [expression], {expression}
        while pending:
            at = pending.pop()
            if isinstance(at, Sum) or at in self.replaced:
                continue
            if at.parts() and not self._depends(at) & set(inner) and not self._has_tiles(at):
                self._value(at)
                continue
            pending += [part for part in at.parts() if part not in seen]
            seen.update(at.parts())

    def _has_tiles(self, expression: Expression) -> bool:
        return any(isinstance(part, Sum) for part in walk(expression))

    def _corrected(self, term: Term, value: Any, at: Any) -> Any:
        if term.shift is None:
            return value
        return self.builder.fmul(value, self._number(self._correction(term.shift), at))

    def _factor(self, output: Output, row: Any) -> Any:
        """By what the sums of a row of an output have to be multiplied, in all lanes."""
        shift = output.weight.shift
        assert shift is not None
        kind = computed_type(self.dtypes[shift])
        place = self.builder.gep(self.numbers[self._correction(shift)], [row], source_etype=kind)
        return self._vector(self._as_element(self.builder.load(place, typ=kind), self.dtypes[shift]))

    # What is left to do when all columns have gone by -----------------------------------------------------

    def _finish(self, sweep: int) -> None:
        """Bring sums to the shift that the loops have, and apply the factors that were taken out of them."""

        def vector(start: Any) -> None:
            self._vector_of_rows(0)
            self._know_totals(start)
            for each in self._reductions(sweep, "reduce_max"):
                dtype = self.dtypes[each.slot]
                if each.slot in self.shifts:
                    exact = self._shift(each.slot, self._number(each.slot, start))
                    off = self.builder.fsub(self._number(SHIFT - each.slot, start), exact)
                    self._put_number(self._correction(each.slot), start, PRIMITIVES["exp"](self.builder, dtype, off))
            for each in self._reductions(sweep, "reduce_sum"):
                value = self._corrected(each.term, self._number(each.slot, start), start)
                value = self._afterwards(each.term, rounded(self.builder, value, self.dtypes[each.slot]))
                self.totals[each.slot, 0] = value
                self._put_number(each.slot, start, value)

        self._groups(1, vector)

    def _afterwards(self, term: Term, value: Any) -> Any:
        """A whole sum with the factors that were taken out."""
        dtype = term.value.dtype
        for name, part in term.after:
            operands = [value]
            if part is not None:
                operands.append(self._vector(cast(self.builder, self._value(part), part.dtype, dtype)))
            value = rounded(self.builder, PRIMITIVES[name](self.builder, dtype, *operands), dtype)
        return value

    # Memory ---------------------------------------------------------------------------------------------

    def _know_totals(self, start: Any) -> None:
        """Make the numbers of a group of rows known to expressions."""
        for number in range(len(self.firsts)):
            at = self._plus(start, number * self.lanes)
            for slot in self.numbers:
                self.totals[slot, number] = self._number(slot, at)

    def _number(self, slot: int, at: Any) -> Any:
        kind = self._kind(slot)
        place = self.builder.gep(self.numbers[slot], [at], source_etype=kind.element)
        return self.builder.load(place, typ=kind, align=byte_size(kind.element))

    def _put_number(self, slot: int, at: Any, vector: Any) -> None:
        element = vector.type.element
        place = self.builder.gep(self.numbers[slot], [at], source_etype=element)
        self.builder.store(vector, place, align=byte_size(element))
