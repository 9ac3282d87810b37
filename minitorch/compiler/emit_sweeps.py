"""Sweeps over tiles as LLVM IR: attention and its gradients. What is computed in which sweep is `sweeps`'s business.

For every unit, which is one block of rows::

    pack the operands of the inner sums that depend on the row
    for every sweep:
        for every block of columns:
            tiles = the inner sums                          # a matrix product, in the registers
            maxima = the largest of each row so far, and how much sums so far have to be corrected for it
            sums += what is made of the tiles, in place     # exp and the like, a vector of rows at a time
            outputs += the weights times the other operand  # another matrix product
        what is left to do with the sums
    store what is made of the outputs

The lanes run along the rows: so a maximum or a sum of a row is one lane of a vector, and needs no shuffling, and the
operand that depends on the column is read a number at a time, where it lies. A block of columns that contributes nothing
by its place alone, as above the diagonal under a causal mask, is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir

from .emit_values import Values, integer
from .index import Variable
from .instructions import (
    BIT,
    I64,
    PRIMITIVES,
    before_store,
    cast,
    combine,
    computed_type,
    constant,
    rounded,
    splat,
    stored_type,
)
from .loops import Buffer, Expression, Loop, Nest, Sum, neutral
from .skip import Skip, skips
from .sweeps import SHIFT, Output, Reduction, Term, Tile, blocking, is_in_place, recognise


class Sweeper(Values):
    """Emits one nest by tiles into a function."""

    def __init__(self, buffers: tuple[Buffer, ...], nest: Nest, function: Any, vector_bytes: int) -> None:
        super().__init__(buffers, nest, function, vector_bytes)
        sweeps = recognise(nest)
        assert sweeps is not None
        self.sweeps, self.cut = sweeps, blocking(sweeps, vector_bytes)
        self.row, self.column = sweeps.row, sweeps.column
        self.lanes, self.across_rows = self.cut.lanes, True
        self.group = self.cut.abreast * self.lanes
        self.everything |= {self.column, *(each.depth for each in sweeps.tiles)}
        self.tiles = {each.sum: each for each in sweeps.tiles}
        self.outputs = {each.sum: each for each in sweeps.outputs}
        self._allocate()

    def _allocate(self) -> None:
        """Memory on the stack: operands and tiles as [column or depth, row], outputs as [row, lane], numbers of rows."""
        cut, rows = self.cut, self.cut.rows
        height = -(-cut.columns // cut.tile[0]) * cut.tile[0]
        self.across = {each: self._memory(each, each.depth.extent * rows) for each in self.tiles.values()}
        self.down = {
            each: self._memory(each, cut.columns * self._whole(each.depth.extent))
            for each in self.tiles.values()
            if not is_in_place(each.down)
        }
        self.tile = {each: self._memory(each, height * rows + self.lanes) for each in self.tiles.values()}
        self.weights: dict[Output, Any] = {}
        self.sums: dict[Output, Any] = {}
        self.other: dict[Output, Any] = {}
        for sweep in range(self.sweeps.count):
            free = [(each, self.tile[each]) for each in self._needed(sweep)]
            for output in self._outputs(sweep):
                same = [pair for pair in free if pair[0].sum.dtype == output.sum.dtype]
                free = [pair for pair in free if pair not in same[:1]]
                self.weights[output] = same[0][1] if same else self._memory(output, height * rows + self.lanes)
        for output in self.sweeps.outputs:
            high, _ = cut.output_tile(output)
            self.sums[output] = self._memory(output, -(-rows // high) * high * self._width(output))
            if not self._reads_in_place(output):
                self.other[output] = self._memory(output, cut.columns * self._width(output))
        self.skips = [skips(self.sweeps, sweep) for sweep in range(self.sweeps.count)]
        passed = dict.fromkeys(output for found in self.skips for skip in found for output, _ in skip.weights)
        self.rest = {output: self._memory(output, self._whole(output.lane.extent)) for output in passed}
        slots = [each.slot for each in self.sweeps.reductions]
        dtypes = {each.slot: each.term.value.dtype for each in self.sweeps.reductions}
        self.numbers = {slot: self._row_memory(rows, computed_type(dtypes[slot])) for slot in slots}
        for slot, _ in self.sweeps.shifts:
            for kind in (SHIFT - slot, self._correction(slot)):
                self.numbers[kind] = self._row_memory(rows, computed_type(dtypes[slot]))
                dtypes[kind] = dtypes[slot]
        self.dtypes = dtypes

    def _memory(self, of: Tile | Output, length: int) -> Any:
        return self._row_memory(length, stored_type(of.sum.dtype))

    def _correction(self, slot: int) -> int:
        """The place of the factor that brings sums up to date."""
        return SHIFT - slot - 1 - max(each.slot for each in self.sweeps.reductions)

    def _whole(self, length: int) -> int:
        return -(-length // self.lanes) * self.lanes

    def _width(self, output: Output) -> int:
        """Elements of a row of an output, in whole tiles."""
        whole = self.lanes * self.cut.output_tile(output)[1]
        return -(-output.lane.extent // whole) * whole

    def _reads_in_place(self, output: Output) -> bool:
        return (
            is_in_place(output.other)
            and output.other.index.coefficient(output.lane) == 1  # type: ignore[attr-defined]
            and self._width(output) == output.lane.extent
        )

    def _needed(self, sweep: int) -> list[Tile]:
        """The inner sums that a sweep reads."""
        pending, found = list(self.sweeps.terms(sweep)), dict[Tile, None]()
        seen: set[Expression] = set()
        while pending:
            at = pending.pop()
            if at in self.tiles:
                found[self.tiles[at]] = None  # type: ignore[index]
            elif at not in seen:
                seen.add(at)
                pending += at.parts()
        return [each for each in self.sweeps.tiles if each in found]

    def _reductions(self, sweep: int) -> list[Reduction]:
        return [each for each in self.sweeps.reductions if each.term.sweep == sweep]

    def _outputs(self, sweep: int) -> list[Output]:
        return [each for each in self.sweeps.outputs if each.weight.sweep == sweep]

    # Units and blocks -----------------------------------------------------------------------------------

    def emit(self) -> None:
        """The whole function."""
        _, _, begin, end = self.function.args
        self._each(begin, end, 1, self._unit)
        self.builder.ret_void()

    def _each(self, start: Any, stop: Any, step: int, body: Callable[[Any], None]) -> None:
        """``for i in range(start, stop, step)``."""

        def turn(counter: Any, _: list[Any]) -> list[Any]:
            body(counter)
            return []

        self._loop(start, stop, step, [], turn)

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
        for tile in self.tiles.values():
            self._pack_across(tile)
        for sweep in range(self.sweeps.count):
            self._begin(sweep)
            self._each(integer(0), integer(self.column.extent), self.cut.columns, self._block(sweep))
            self._groups(self._finish(sweep))
        self._groups(self._store_numbers)
        self._each(integer(0), self.unit_rows, 1, self._store_row)

    def _block(self, sweep: int) -> Callable[[Any], None]:
        def block(first: Any) -> None:
            """One block of columns."""
            self.first_column = first
            left = self.builder.sub(integer(self.column.extent), first)
            self.unit_columns = self._smaller(integer(self.cut.columns), left)
            wanted: Any = ir.Constant(BIT, 1)
            for skip in self.skips[sweep]:
                skipped = self.builder.and_(wanted, self._applies(skip))
                wanted = self.builder.xor(wanted, skipped)
                self._if(skipped, lambda skip=skip: self._pass_over(skip))
            self._if(wanted, lambda: self._whole_block(sweep)) if self.skips[sweep] else self._whole_block(sweep)

        return block

    def _if(self, condition: Any, body: Callable[[], None]) -> None:
        self._each(integer(0), self.builder.zext(condition, I64), 1, lambda _: body())

    def _whole_block(self, sweep: int) -> None:
        """A block of columns that contributes something."""
        for tile in self._needed(sweep):
            self._inner(tile)
        self._groups(self._maxima(sweep))
        self._groups(self._terms(sweep))
        for output in self._outputs(sweep):
            self._outer(output)

    def _applies(self, skip: Skip) -> Any:
        """Whether a comparison has an outcome everywhere in a tile: its smallest or largest difference tells."""
        builder = self.builder

        def extreme(largest: bool) -> Any:
            for variable, first, count in (
                (self.row, self.first_row, self.unit_rows),
                (self.column, self.first_column, self.unit_columns),
            ):
                at_end = (skip.difference.coefficient(variable) > 0) is largest
                last = builder.sub(builder.add(first, count), integer(1))
                self.places[variable] = last if at_end else first
            return self._scalar_index(skip.difference)

        zero = integer(0)
        if skip.comparison == "equal":
            above = builder.icmp_signed(">", extreme(False), zero)
            below = builder.icmp_signed("<", extreme(True), zero)
            return ir.Constant(BIT, 0) if skip.outcome else builder.or_(above, below)
        if skip.outcome:
            return builder.icmp_signed("<" if skip.comparison == "less" else "<=", extreme(True), zero)
        return builder.icmp_signed(">=" if skip.comparison == "less" else ">", extreme(False), zero)

    def _pass_over(self, skip: Skip) -> None:
        """What is left of a block of columns: nothing, unless it is NaN."""
        kinds = [self.dtypes[each.slot] for each, _ in skip.sums]

        def column(number: Any, sums: list[Any]) -> list[Any]:
            self.places[self.column] = self.builder.add(self.first_column, number)
            for output, weight in skip.weights:
                value = self._vector(self._value(weight))

                def add(at: Any, output: Output = output, value: Any = value) -> None:
                    self.places[output.lane] = at
                    term = self.builder.fmul(value, self._vector(self._value(output.other)))
                    self._put(self.rest[output], at, self.builder.fadd(self._get(self.rest[output], at), term))

                self._lanes(output.lane, add)
            values = [self._value(value) for _, value in skip.sums]
            return [self.builder.fadd(*pair) for pair in zip(sums, values, strict=True)]

        zeros = [constant(dtype, 0, computed_type(dtype)) for dtype in kinds]
        found = self._loop(integer(0), self.unit_columns, 1, zeros, column)

        def group(start: Any) -> None:
            for number in range(self.cut.abreast):
                at = self._plus(start, number * self.lanes)
                for (each, _), value in zip(skip.sums, found, strict=True):
                    total = self.builder.fadd(self._number(each.slot, at), self._vector(value))
                    self._put_number(each.slot, at, total)

        if skip.sums:
            self._each(integer(0), self.unit_rows, self.group, group)

    def _groups(self, body: Callable[[Any], None]) -> None:
        """Run through the rows of the unit, some vectors at a time; the lanes run along the rows."""

        def group(start: Any) -> None:
            self.lane = self.row
            row = self.builder.add(self.first_row, start)
            self.firsts = [
                self.builder.add(row, integer(number * self.lanes)) if number else row
                for number in range(self.cut.abreast)
            ]
            self.masks = [self._present(first) for first in self.firsts]
            body(start)
            self.lane = self.mask = None
            self.firsts = []

        self._each(integer(0), self.unit_rows, self.group, group)

    def _present(self, first: Any) -> Any:
        """Which lanes are rows."""
        if self.row.extent % self.group == 0:
            return None
        left = self._vector(self.builder.sub(integer(self.row.extent), first))
        return self.builder.icmp_signed("<", ir.Constant(left.type, list(range(self.lanes))), left)

    def _vectors(self) -> Iterator[int]:
        """Go through the vectors of a group."""
        for number, (first, mask) in enumerate(zip(self.firsts, self.masks, strict=True)):
            self.current, self.places[self.row], self.mask = number, first, mask
            yield number
        self.current = 0

    # Inner sums -----------------------------------------------------------------------------------------

    def _pack_across(self, tile: Tile) -> None:
        """The operand that depends on the row, as [depth, row]."""

        def group(start: Any) -> None:
            def pack(k: Any) -> None:
                self.places[tile.depth] = k
                at = self.builder.add(self._times(k, self.cut.rows), start)
                for number in self._vectors():
                    self._put(self.across[tile], self._plus(at, number * self.lanes), self._value(tile.across))

            self._each(integer(0), integer(tile.depth.extent), 1, pack)

        self._groups(group)

    def _pack_down(self, tile: Tile) -> None:
        """The operand that depends on the column, as [column, depth], where it is not read in place."""
        width = self._whole(tile.depth.extent)

        def row(number: Any) -> None:
            self.places[self.column] = self.builder.add(self.first_column, number)
            self._run(tile.depth, width, tile.down, self.down[tile], self._times(number, width))

        self._each(integer(0), self.unit_columns, 1, row)

    def _run(self, along: Variable, width: int, value: Expression, memory: Any, start: Any) -> None:
        """A run of elements along a variable, in whole vectors; zeros where there are none."""
        self.lane = along
        full = along.extent // self.lanes * self.lanes

        def vector(place: Any) -> None:
            self.places[along] = place
            self._put(memory, self.builder.add(start, place), self._vector(self._value(value)))

        self._each(integer(0), integer(full), self.lanes, vector)
        self.known.append({})
        for place in range(full, width, self.lanes):
            self.mask = self._first_lanes(max(0, along.extent - place))
            vector(integer(place)) if place < along.extent else self._put(
                memory, self._plus(start, place), splat(ir.VectorType(computed_type(value.dtype), self.lanes), 0.0)
            )
        self.known.pop()
        self.lane = self.mask = None

    def _inner(self, tile: Tile) -> None:
        """``tile[column, row] = the sum over k of down[column, k] * across[k, row]``."""
        high, across = self.cut.tile
        if tile in self.down:
            self._pack_down(tile)

        def columns(start: Any) -> None:
            numbers = [self._number_at(tile, self._plus(start, number)) for number in range(high)]

            def rows(row: Any) -> None:
                def step(k: Any, sums: list[Any]) -> list[Any]:
                    at = self.builder.add(self._times(k, self.cut.rows), row)
                    vectors = [self._get(self.across[tile], self._plus(at, n * self.lanes)) for n in range(across)]
                    return self._multiplied(tile.sum, [number(k) for number in numbers], vectors, sums)

                zero = splat(ir.VectorType(computed_type(tile.sum.dtype), self.lanes), 0.0)
                found = self._loop(integer(0), integer(tile.depth.extent), 1, [zero] * (high * across), step)
                for place, value in enumerate(found):
                    column, vector = divmod(place, across)
                    at = self.builder.add(self._times(self._plus(start, column), self.cut.rows), row)
                    self._put(self.tile[tile], self._plus(at, vector * self.lanes), value)

            self._each(integer(0), self.unit_rows, self.group, rows)

        self._each(integer(0), self.unit_columns, high, columns)

    def _number_at(self, tile: Tile, offset: Any) -> Callable[[Any], Any]:
        """How the numbers of a column are read; beyond the end, where nothing is made of them, those of the last."""
        if tile in self.down:
            place, step = self._times(offset, self._whole(tile.depth.extent)), 1
            base = self._at(self.down[tile], place, tile.sum.dtype)
        else:
            last = integer(self.column.extent - 1)
            self.places[self.column] = self._smaller(self.builder.add(self.first_column, offset), last)
            base, step = self._base(tile.down, tile.depth)
        kind = computed_type(tile.sum.dtype)

        def number(k: Any) -> Any:
            return self.builder.load(self.builder.gep(base, [self._times(k, step)], source_etype=kind), typ=kind)

        return number

    def _base(self, operand: Any, along: Variable) -> tuple[Any, int]:
        """Where an operand that is read in place begins along a variable, and its step."""
        self.places[along] = integer(0)
        place = self._scalar_index(operand.index)
        return self._at(self.pointers[operand.buffer], place, operand.dtype), operand.index.coefficient(along)

    def _multiplied(self, kind: Sum, numbers: Sequence[Any], vectors: Sequence[Any], sums: list[Any]) -> list[Any]:
        """Sums to which the products of all numbers and all vectors are added."""
        result = []
        for number in numbers:
            number = self._vector(number)
            for vector in vectors:
                term = PRIMITIVES["mul"](self.builder, kind.dtype, number, vector)
                result.append(combine(self.builder, "reduce_sum", kind.dtype, sums[len(result)], term))
        return result

    # What is made of the tiles --------------------------------------------------------------------------

    def _begin(self, sweep: int) -> None:
        """Neutral elements, before the first block of columns."""

        def group(start: Any) -> None:
            for number in range(self.cut.abreast):
                at = self._plus(start, number * self.lanes)
                for each in self._reductions(sweep):
                    self._put_number(each.slot, at, self._neutral(each))
                    if SHIFT - each.slot in self.numbers:
                        zero = constant(self.dtypes[each.slot], 0, self._kind(each.slot))
                        self._put_number(SHIFT - each.slot, at, zero)

        self._each(integer(0), self.unit_rows, self.group, group)
        for output in self._outputs(sweep):
            high, _ = self.cut.output_tile(output)
            size = -(-self.cut.rows // high) * high * self._width(output)
            zero = splat(ir.VectorType(computed_type(output.sum.dtype), self.lanes), 0.0)
            memory = self.sums[output]
            self._each(integer(0), integer(size), self.lanes, lambda at, m=memory, z=zero: self._put(m, at, z))
            if output in self.rest:
                memory, size = self.rest[output], self._whole(output.lane.extent)
                self._each(integer(0), integer(size), self.lanes, lambda at, m=memory, z=zero: self._put(m, at, z))

    def _neutral(self, reduction: Reduction) -> Any:
        dtype = self.dtypes[reduction.slot]
        return constant(dtype, neutral(reduction.name, dtype), self._kind(reduction.slot))

    def _kind(self, slot: int) -> Any:
        return ir.VectorType(computed_type(self.dtypes[slot]), self.lanes)

    def _columns(self, start: Any, carried: list[Any], body: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Run through the columns of a block, for a group of rows."""

        def column(number: Any, values: list[Any]) -> list[Any]:
            self.places[self.column] = self.builder.add(self.first_column, number)
            self.tile_place = self.builder.add(self._times(number, self.cut.rows), start)
            return body(values)

        return self._loop(integer(0), self.unit_columns, 1, carried, column)

    def _maxima(self, sweep: int) -> Callable[[Any], None]:
        """The maxima of a block of columns, and what follows for sums that were measured from those before."""
        maxima = [each for each in self._reductions(sweep) if each.name == "reduce_max"]

        def group(start: Any) -> None:
            def body(values: list[Any]) -> list[Any]:
                found = []
                for _ in self._vectors():
                    for each in maxima:
                        value = self._vector(self._value(each.term.value))
                        found.append(
                            combine(self.builder, each.name, self.dtypes[each.slot], values[len(found)], value)
                        )
                return found

            if not maxima:
                return
            self._know_totals(start)
            found = self._columns(start, [self._neutral(each) for _ in self.firsts for each in maxima], body)
            for number in self._vectors():
                at = self._plus(start, number * self.lanes)
                for each, value in zip(maxima, found[number * len(maxima) :], strict=False):
                    self._update_maximum(each, at, value)

        return group

    def _update_maximum(self, reduction: Reduction, at: Any, value: Any) -> None:
        slot, builder, dtype = reduction.slot, self.builder, self.dtypes[reduction.slot]
        old = self._number(slot, at)
        new = combine(builder, "reduce_max", dtype, old, value)
        self._put_number(slot, at, new)
        shift = dict(self.sweeps.shifts).get(slot)
        if shift is None:
            return
        lowest = splat(new.type, float("-inf"))
        zero, one = splat(new.type, 0.0), splat(new.type, 1.0)
        exact = self._shift(slot, shift, new)
        measured = builder.select(builder.fcmp_ordered("==", new, lowest), zero, exact)
        factor = PRIMITIVES["exp"](builder, dtype, builder.fsub(self._number(SHIFT - slot, at), measured))
        factor = builder.select(builder.fcmp_ordered("==", old, lowest), one, factor)
        self._put_number(SHIFT - slot, at, measured)
        self._put_number(self._correction(slot), at, factor)

    def _shift(self, slot: int, shift: Expression, maximum: Any) -> Any:
        """What terms are measured from, for a maximum."""
        self.totals[slot, self.current] = maximum
        self.known.append({})
        value = self._vector(self._value(shift))
        self.known.pop()
        return value

    def _know_totals(self, start: Any) -> None:
        """Make the numbers of the rows known to expressions."""
        for number in range(self.cut.abreast):
            at = self._plus(start, number * self.lanes)
            for slot in self.numbers:
                self.totals[slot, number] = self._number(slot, at)

    def _terms(self, sweep: int) -> Callable[[Any], None]:
        """Sums, and the weights of outputs, which take the place of the tiles."""
        sums = [each for each in self._reductions(sweep) if each.name == "reduce_sum"]
        outputs = self._outputs(sweep)

        def group(start: Any) -> None:
            def body(values: list[Any]) -> list[Any]:
                found, stored = [], []
                for number in self._vectors():
                    for each in sums:
                        value = self._vector(self._value(each.term.value))
                        found.append(
                            combine(self.builder, each.name, self.dtypes[each.slot], values[len(found)], value)
                        )
                    at = self._plus(self.tile_place, number * self.lanes)
                    stored += [(each, at, self._vector(self._value(each.weight.value))) for each in outputs]
                for each, at, value in stored:
                    self._put(self.weights[each], at, value)
                return found

            if not sums and not outputs:
                return
            self._know_totals(start)
            for _ in self._vectors():
                for value in (*(each.term.value for each in sums), *(each.weight.value for each in outputs)):
                    self._prepare(value, self.column)
            found = self._columns(start, [self._neutral(each) for _ in self.firsts for each in sums], body)
            for number in self._vectors():
                at = self._plus(start, number * self.lanes)
                for each, value in zip(sums, found[number * len(sums) :], strict=False):
                    before = self._corrected(each.term, self._number(each.slot, at), at)
                    self._put_number(each.slot, at, self.builder.fadd(before, value))

        return group

    def _prepare(self, expression: Expression, *inner: Variable) -> None:
        """Compute what does not change with the variables of the loop that follows."""
        if isinstance(expression, Sum):
            return
        if not expression.parts() or self._depends(expression) & set(inner) or self._has_tiles(expression):
            for part in expression.parts():
                self._prepare(part, *inner)
        else:
            self._value(expression)

    def _has_tiles(self, expression: Expression) -> bool:
        return isinstance(expression, Sum) or any(self._has_tiles(part) for part in expression.parts())

    def _corrected(self, term: Term, value: Any, at: Any) -> Any:
        if term.shift is None:
            return value
        return self.builder.fmul(value, self._number(self._correction(term.shift), at))

    def _finish(self, sweep: int) -> Callable[[Any], None]:
        """What is left to do with the numbers of the rows when all columns have gone by."""

        def group(start: Any) -> None:
            for number in self._vectors():
                at = self._plus(start, number * self.lanes)
                for each in self._reductions(sweep):
                    dtype = self.dtypes[each.slot]
                    value = self._number(each.slot, at)
                    if each.name == "reduce_max" and each.slot in dict(self.sweeps.shifts):
                        exact = self._shift(each.slot, dict(self.sweeps.shifts)[each.slot], value)
                        off = self.builder.fsub(self._number(SHIFT - each.slot, at), exact)
                        self._put_number(self._correction(each.slot), at, PRIMITIVES["exp"](self.builder, dtype, off))
                    value = rounded(self.builder, self._corrected(each.term, value, at), dtype)
                    self.totals[each.slot, number] = value = self._afterwards(each.term, value)
                    self._put_number(each.slot, at, value)

        return group

    def _afterwards(self, term: Term, value: Any) -> Any:
        """A whole sum with the factors that were taken out."""
        dtype = term.value.dtype
        for name, part in term.after:
            operands = [value]
            if part is not None:
                operands.append(self._vector(cast(self.builder, self._value(part), part.dtype, dtype)))
            value = rounded(self.builder, PRIMITIVES[name](self.builder, dtype, *operands), dtype)
        return value

    # Outputs --------------------------------------------------------------------------------------------

    def _outer(self, output: Output) -> None:
        """``sums[row, lane] += the sum over the columns of a block of weights[column, row] * other[column, lane]``."""
        (high, across), width = self.cut.output_tile(output), self._width(output)
        if output in self.other:
            self._pack_other(output)

        def rows(row: Any) -> None:
            def tile(lane: Any) -> None:
                places = [
                    self._plus(self.builder.add(self._times(self._plus(row, n), width), lane), v * self.lanes)
                    for n in range(high)
                    for v in range(across)
                ]
                sums = [self._get(self.sums[output], place) for place in places]
                shift = output.weight.shift
                if shift is not None:
                    memory = self.numbers[self._correction(shift)]
                    kind = computed_type(self.dtypes[shift])
                    factors = [
                        self._vector(
                            cast(
                                self.builder,
                                self.builder.load(
                                    self.builder.gep(memory, [self._plus(row, n)], source_etype=kind), typ=kind
                                ),
                                self.dtypes[shift],
                                output.sum.dtype,
                            )
                        )
                        for n in range(high)
                    ]
                    sums = [self.builder.fmul(value, factors[n // across]) for n, value in enumerate(sums)]
                base, step = self._other_base(output, lane)

                def column(number: Any, sums: list[Any]) -> list[Any]:
                    at = self._times(number, step)
                    vectors = [self._get(base, self._plus(at, v * self.lanes)) for v in range(across)]
                    start = self.builder.add(self._times(number, self.cut.rows), row)
                    kind = computed_type(output.sum.dtype)
                    numbers = [
                        self.builder.load(
                            self._at(self.weights[output], self._plus(start, n), output.sum.dtype), typ=kind
                        )
                        for n in range(high)
                    ]
                    return self._multiplied(output.sum, numbers, vectors, sums)

                for place, value in zip(
                    places, self._loop(integer(0), self.unit_columns, 1, sums, column), strict=True
                ):
                    self._put(self.sums[output], place, value)

            self._each(integer(0), integer(width), across * self.lanes, tile)

        self._each(integer(0), self.unit_rows, high, rows)

    def _other_base(self, output: Output, lane: Any) -> tuple[Any, int]:
        """Where the other operand of a block of columns begins, and how far its columns lie apart."""
        if output in self.other:
            return self._at(self.other[output], lane, output.sum.dtype), self._width(output)
        operand: Any = output.other
        self.places[output.lane], self.places[self.column] = lane, self.first_column
        place = self._scalar_index(operand.index)
        return self._at(self.pointers[operand.buffer], place, operand.dtype), operand.index.coefficient(self.column)

    def _pack_other(self, output: Output) -> None:
        width = self._width(output)

        def row(number: Any) -> None:
            self.places[self.column] = self.builder.add(self.first_column, number)
            self._run(output.lane, width, output.other, self.other[output], self._times(number, width))

        self._each(integer(0), self.unit_columns, 1, row)

    # Results --------------------------------------------------------------------------------------------

    def _store_numbers(self, start: Any) -> None:
        """Totals, and what is computed of them, for a group of rows."""
        self._know_totals(start)
        for _ in self._vectors():
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
        for store in loop.statements:
            self._prepare(store.value, lane)

        def vector(place: Any) -> None:
            self.places[lane] = place
            for store in loop.statements:
                self._store(store)

        self._lanes(lane, vector)

    def _lanes(self, along: Variable, body: Callable[[Any], None]) -> None:
        """Run along a variable in vectors; the last may be a part."""
        full = along.extent // self.lanes * self.lanes
        self.lane = along
        self._each(integer(0), integer(full), self.lanes, body)
        if full != along.extent:
            self.mask = self._first_lanes(along.extent - full)
            self.known.append({})
            body(integer(full))
            self.known.pop()
            self.mask = None
        self.lane = None

    def _store(self, store: Any) -> None:
        value = before_store(self.builder, self._value(store.value), self.buffers[store.buffer].dtype)
        self._write(self.pointers[store.buffer], store.index, value)

    def _computed(self, expression: Expression) -> Any:
        if not isinstance(expression, Sum):
            return super()._computed(expression)
        if expression in self.tiles:
            memory = self.tile[self.tiles[expression]]
            return self._get(memory, self._plus(self.tile_place, self.current * self.lanes))
        output = self.outputs[expression]
        place = self.builder.add(self._times(self.output_row, self._width(output)), self.places[output.lane])
        value = self._get(self.sums[output], place)
        if output.weight.shift is not None:
            factor = self.totals[self._correction(output.weight.shift), 0]
            factor = cast(self.builder, factor, self.dtypes[output.weight.shift], output.sum.dtype)
            value = self.builder.fmul(value, self._vector(factor))
        if output in self.rest:
            value = self.builder.fadd(value, self._get(self.rest[output], self.places[output.lane]))
        return self._afterwards(output.weight, value)

    # Memory ---------------------------------------------------------------------------------------------

    def _times(self, value: Any, factor: int) -> Any:
        return self.builder.mul(value, integer(factor)) if factor != 1 else value

    def _plus(self, value: Any, number: int) -> Any:
        return self.builder.add(value, integer(number)) if number else value

    def _at(self, memory: Any, place: Any, dtype: Any) -> Any:
        return self.builder.gep(memory, [place], source_etype=computed_type(dtype))

    def _element(self) -> Any:
        return computed_type(next(iter(self.tiles)).dtype)

    def _get(self, memory: Any, place: Any) -> Any:
        element = self._element()
        pointer = self.builder.gep(memory, [place], source_etype=element)
        return self.builder.load(pointer, typ=ir.VectorType(element, self.lanes), align=self._bytes(element))

    def _put(self, memory: Any, place: Any, vector: Any) -> None:
        element = vector.type.element
        self.builder.store(vector, self.builder.gep(memory, [place], source_etype=element), align=self._bytes(element))

    def _number(self, slot: int, at: Any) -> Any:
        kind = self._kind(slot)
        place = self.builder.gep(self.numbers[slot], [at], source_etype=kind.element)
        return self.builder.load(place, typ=kind, align=self._bytes(kind.element))

    def _put_number(self, slot: int, at: Any, vector: Any) -> None:
        self._put(self.numbers[slot], at, vector)
