"""The two matrix products of a sweep as LLVM IR: tiles from operands, and outputs from what was made of the tiles.

A tile is ``[column, row]``: the lanes run along the rows. So its operand that depends on the row is packed once for a
whole block of rows, and the other one is read a number at a time where it lies. In the product that makes an output,
the lanes run along the output's own columns; the weights are read a number at a time, and the other operand a vector at
a time where it lies. Only operands that are not in memory as they are computed with are packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir

from ..loop_ir.expressions import Expression
from ..loop_ir.index import Variable
from ..loop_ir.loops import Buffer, Nest
from ..scheduling.contractions.blocking import blocking, is_in_place
from ..scheduling.contractions.sweeps import Output, Tile, recognise
from ..target import Target
from .emit_values import Values
from .instructions import I64, cast, computed_type, multiply_add
from .mathematics.values import splat
from .vector_memory import byte_size, integer


class Products(Values):
    """Emits tiles and outputs; which columns are current is set by whoever emits the sweeps."""

    first_row: Any  # of the unit
    unit_rows: Any
    first_column: Any  # of the block
    unit_columns: Any

    def __init__(self, buffers: tuple[Buffer, ...], nest: Nest, function: Any, target: Target) -> None:
        super().__init__(buffers, nest, function, target)
        sweeps = recognise(nest)
        assert sweeps is not None
        self.sweeps, self.cut = sweeps, blocking(sweeps, target)
        self.row, self.swept = sweeps.row, sweeps.column
        self.lanes, self.across_rows = self.cut.lanes, True
        self.everything |= {self.swept, *(each.depth for each in sweeps.tiles)}
        self.tiles = {each.sum: each for each in sweeps.tiles}
        self.outputs = {each.sum: each for each in sweeps.outputs}
        self.dtype = sweeps.tiles[0].sum.dtype
        self.element = computed_type(self.dtype)
        self.vector = ir.VectorType(self.element, self.lanes)
        self.zero = splat(self.vector, 0.0)
        self.masks: list[Any] = []
        self._allocate()

    def _allocate(self) -> None:
        """Memory on the stack: operands and tiles as [depth or column, row], outputs as [row, lane]."""
        cut = self.cut
        size = self._row_size(cut.columns)
        tiles = self.sweeps.tiles
        every = self._row_size(self.swept.extent) if cut.keeps else size
        self.across = {each: self._row_memory(each.depth.extent * cut.rows, self.element) for each in tiles}
        self.down = {
            each: self._row_memory(cut.columns * self._whole(each.depth.extent), self.element)
            for each in tiles
            if not is_in_place(each.down)
        }
        self.tile = {each: self._row_memory(every, self.element) for each in tiles}
        self.weights: dict[Output, Any] = {}  # they take the place of tiles that are not needed any more
        for sweep in range(self.sweeps.count):
            last = not cut.keeps or sweep == self.sweeps.count - 1
            free = [self.tile[each] for each in self.sweeps.needed(sweep)] if last else []
            for output in self._outputs(sweep):
                self.weights[output] = free.pop() if free else self._row_memory(size, self.element)
        self.results = {each: self._row_memory(self._size(each), self.element) for each in self.sweeps.outputs}
        self.other = {
            each: self._row_memory(cut.columns * self._width(each), self.element)
            for each in self.sweeps.outputs
            if not self._is_read_in_place(each)
        }

    def _row_size(self, columns: int) -> int:
        """Elements of a tile with so many columns, and what may be read and written beyond."""
        return (columns + self.cut.tile[0]) * self.cut.rows + self.lanes

    def _of_block(self, memory: Any) -> Any:
        """The part of a tile, or of weights in its place, that belongs to the block's columns."""
        if not self.cut.keeps or memory not in self.tile.values():
            return memory
        return self._at(memory, self._times(self.first_column, self.cut.rows))

    def _outputs(self, sweep: int) -> list[Output]:
        return [each for each in self.sweeps.outputs if each.weight.sweep == sweep]

    def _whole(self, length: int) -> int:
        return -(-length // self.lanes) * self.lanes

    def _width(self, output: Output) -> int:
        """Elements of a row of an output, in whole tiles."""
        whole = self.lanes * self.cut.output_tile(output)[1]
        return -(-output.lane.extent // whole) * whole

    def _size(self, output: Output) -> int:
        high, _ = self.cut.output_tile(output)
        return -(-self.cut.rows // high) * high * self._width(output)

    def _is_read_in_place(self, output: Output) -> bool:
        operand: Any = output.other
        return (
            is_in_place(operand)
            and operand.index.coefficient(output.lane) == 1
            and self._width(output) == output.lane.extent
        )

    # Loops ----------------------------------------------------------------------------------------------

    def _each(self, start: Any, stop: Any, step: int, body: Callable[[Any], None]) -> None:
        """``for i in range(start, stop, step)``."""

        def turn(counter: Any, _: list[Any]) -> list[Any]:
            body(counter)
            return []

        self._loop(start, stop, step, [], turn)

    def _if(self, condition: Any, body: Callable[[], None]) -> None:
        self._each(integer(0), self.builder.zext(condition, I64), 1, lambda _: body())

    def _groups(self, abreast: int, body: Callable[[Any], None]) -> None:
        """Run through the rows of the unit, some vectors at a time; the lanes run along the rows."""

        def group(start: Any) -> None:
            self.lane = self.row
            row = self.builder.add(self.first_row, start)
            self.firsts = [self._plus(row, number * self.lanes) for number in range(abreast)]
            self.masks = [self._present(first) for first in self.firsts]
            body(start)
            self.lane = self.mask = None
            self.firsts = []

        self._each(integer(0), self.unit_rows, abreast * self.lanes, group)

    def _present(self, first: Any) -> Any:
        """Which lanes are rows."""
        if self.row.extent % (self.cut.abreast * self.lanes) == 0:
            return None
        left = self._vector(self.builder.sub(integer(self.row.extent), first))
        return self.builder.icmp_signed("<", ir.Constant(left.type, list(range(self.lanes))), left)

    def _vectors(self) -> Iterator[int]:
        """Go through the vectors of a group."""
        for number, (first, mask) in enumerate(zip(self.firsts, self.masks, strict=True)):
            self.current, self.places[self.row], self.mask = number, first, mask
            yield number
        self.current = 0

    def _lanes(self, along: Variable, body: Callable[[Any], None]) -> None:
        """Run along a variable in vectors; the last may be a part."""

        def vector(place: Any) -> None:
            self.places[along] = place
            body(place)

        full = along.extent // self.lanes * self.lanes
        self.lane = along
        self._each(integer(0), integer(full), self.lanes, vector)
        if full != along.extent:
            self.mask = self._first_lanes(along.extent - full)
            self.known.append({})
            vector(integer(full))
            self.known.pop()
            self.mask = None
        self.lane = None

    # Packing --------------------------------------------------------------------------------------------

    def _pack_across(self, tile: Tile) -> None:
        """The operand that depends on the row, as [depth, row]."""

        def group(start: Any) -> None:
            self._vector_of_rows(0)

            def pack(k: Any) -> None:
                self.places[tile.depth] = k
                at = self.builder.add(self._times(k, self.cut.rows), start)
                self._put(self.across[tile], at, self._vector(self._value(tile.across)))

            self._each(integer(0), integer(tile.depth.extent), 1, pack)

        self._groups(1, group)

    def _vector_of_rows(self, number: int) -> None:
        self.current, self.places[self.row], self.mask = number, self.firsts[number], self.masks[number]

    def _pack(self, value: Expression, along: Variable, memory: Any, width: int) -> None:
        """An operand that depends on the column, as [column, along]; zeros where there are none."""

        def column(number: Any) -> None:
            self.places[self.swept] = self.builder.add(self.first_column, number)
            start = self._times(number, width)
            for place in range(self._whole(along.extent), width, self.lanes):
                self._put(memory, self._plus(start, place), self.zero)
            self._lanes(
                along, lambda at: self._put(memory, self.builder.add(start, at), self._vector(self._value(value)))
            )

        self._each(integer(0), self.unit_columns, 1, column)

    # Tiles ----------------------------------------------------------------------------------------------

    def _inner(self, tile: Tile) -> None:
        """``tile[column, row] = the sum over k of down[column, k] * across[k, row]``."""
        high, across = self.cut.tile
        if tile in self.down:
            self._pack(tile.down, tile.depth, self.down[tile], self._whole(tile.depth.extent))

        def columns(start: Any) -> None:
            bases = [self._column_base(tile, self._plus(start, number)) for number in range(high)]

            def rows(row: Any) -> None:
                def step(k: Any, sums: list[Any]) -> list[Any]:
                    at = self.builder.add(self._times(k, self.cut.rows), row)
                    vectors = [self._get(self.across[tile], self._plus(at, n * self.lanes)) for n in range(across)]
                    numbers = [self._get_number(base, self._times(k, by)) for base, by in bases]
                    return self._multiplied(numbers, vectors, sums)

                found = self._loop(integer(0), integer(tile.depth.extent), 1, [self.zero] * (high * across), step)
                memory = self._of_block(self.tile[tile])
                for place, value in enumerate(found):
                    column, vector = divmod(place, across)
                    at = self.builder.add(self._times(self._plus(start, column), self.cut.rows), row)
                    self._put(memory, self._plus(at, vector * self.lanes), value)

            self._each(integer(0), self.unit_rows, across * self.lanes, rows)

        self._each(integer(0), self.unit_columns, high, columns)

    def _column_base(self, tile: Tile, offset: Any) -> tuple[Any, int]:
        """Where the numbers of a column begin, and their distance; beyond the end, those of the last column."""
        if tile in self.down:
            return self._at(self.down[tile], self._times(offset, self._whole(tile.depth.extent))), 1
        operand: Any = tile.down
        last = integer(self.swept.extent - 1)
        self.places[self.swept] = self._smaller(self.builder.add(self.first_column, offset), last)
        self.places[tile.depth] = integer(0)
        place = self._scalar_index(operand.index)
        return self._at(self.pointers[operand.buffer], place), operand.index.coefficient(tile.depth)

    def _multiplied(self, numbers: Sequence[Any], vectors: Sequence[Any], sums: Sequence[Any]) -> list[Any]:
        """Sums to which the products of all numbers and all vectors are added."""
        result: list[Any] = []
        for number in numbers:
            factor = self._vector(number)
            for vector in vectors:
                result.append(multiply_add(self.builder, self.dtype, factor, vector, sums[len(result)]))
        return result

    # Outputs --------------------------------------------------------------------------------------------

    def _outer(self, output: Output, factors: Callable[[Any], Any] | None) -> None:
        """``result[row, lane] += the sum over the block's columns of weight[column, row] * other[column, lane]``.

        If sums so far have to be brought up to date, `factors` says by which factor, for a row.
        """
        (high, across), width = self.cut.output_tile(output), self._width(output)
        if output in self.other:
            self._pack(output.other, output.lane, self.other[output], width)

        def rows(row: Any) -> None:
            scale = [] if factors is None else [factors(self._plus(row, number)) for number in range(high)]

            def tile(lane: Any) -> None:
                start = self.builder.add(self._times(row, width), lane)
                places = [self._plus(start, n * width + v * self.lanes) for n in range(high) for v in range(across)]
                sums = [self._get(self.results[output], place) for place in places]
                if scale:
                    sums = [self.builder.fmul(value, scale[n // across]) for n, value in enumerate(sums)]
                base, by = self._other_base(output, lane)
                memory = self._of_block(self.weights[output])

                def column(number: Any, sums: list[Any]) -> list[Any]:
                    at = self._times(number, by)
                    vectors = [self._get(base, self._plus(at, v * self.lanes)) for v in range(across)]
                    first = self.builder.add(self._times(number, self.cut.rows), row)
                    weights = [self._get_number(memory, self._plus(first, n)) for n in range(high)]
                    return self._multiplied(weights, vectors, sums)

                found = self._loop(integer(0), self.unit_columns, 1, sums, column)
                for place, value in zip(places, found, strict=True):
                    self._put(self.results[output], place, value)

            self._each(integer(0), integer(width), across * self.lanes, tile)

        self._each(integer(0), self.unit_rows, high, rows)

    def _other_base(self, output: Output, lane: Any) -> tuple[Any, int]:
        """Where the other operand of a block of columns begins, and how far its columns lie apart."""
        if output in self.other:
            return self._at(self.other[output], lane), self._width(output)
        operand: Any = output.other
        self.places[output.lane], self.places[self.swept] = lane, self.first_column
        place = self._scalar_index(operand.index)
        return self._at(self.pointers[operand.buffer], place), operand.index.coefficient(self.swept)

    # Memory ---------------------------------------------------------------------------------------------

    def _times(self, value: Any, factor: int) -> Any:
        return self.builder.mul(value, integer(factor)) if factor != 1 else value

    def _plus(self, value: Any, number: int) -> Any:
        return self.builder.add(value, integer(number)) if number else value

    def _at(self, memory: Any, place: Any) -> Any:
        return self.builder.gep(memory, [place], source_etype=self.element)

    def _get(self, memory: Any, place: Any) -> Any:
        return self.builder.load(self._at(memory, place), typ=self.vector, align=byte_size(self.element))

    def _get_number(self, memory: Any, place: Any) -> Any:
        return self.builder.load(self._at(memory, place), typ=self.element)

    def _put(self, memory: Any, place: Any, vector: Any) -> None:
        self.builder.store(vector, self._at(memory, place), align=byte_size(self.element))

    def _as_element(self, value: Any, dtype: Any) -> Any:
        return cast(self.builder, value, dtype, self.dtype)
