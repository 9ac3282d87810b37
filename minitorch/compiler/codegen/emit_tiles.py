"""Loops, and the transposed tiles around them: filled from memory before a loop, emptied into memory after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..loop_ir.index import Variable
from ..loop_ir.loops import Loop
from ..scheduling.layout import LONG_TILE, Tile
from .emit_indices import Body
from .emit_values import Values
from .instructions import stored_type
from .tiles import transpose_function
from .vector_memory import integer


class Tiles(Values):
    """Emits loops whose memory is dense along the loop's own variable, and not along the lanes (see `tiles`).

    A tile's place on the stack has a vector for each round of the loop, those of the vectors abreast one after another.
    """

    def _abreast(self) -> Iterator[int]:
        """Go through the vectors of rows that are abreast; without lanes across rows there is one."""
        for number in range(max(len(self.firsts), 1)):
            self.current = number
            if self.firsts and self.lane is not None:
                self.places[self.lane] = self.firsts[number]
            yield number
        self.current = 0

    def _place_rows(self, rows: list[Variable], position: Any) -> None:
        """The row variables from a row's number."""
        for number, row in enumerate(reversed(rows)):
            if number == len(rows) - 1:
                self.places[row] = position
            else:
                self.places[row] = self.builder.urem(position, integer(row.extent))
                position = self.builder.udiv(position, integer(row.extent))

    def _place_stretch(self, number: Any) -> Any:
        """Find the part of the tiles' row variable that a unit has; what is left of its number is returned."""
        along, stretch, count = self.layout.along, self.layout.stretch, self.layout.stretches
        assert along is not None
        start = self.builder.mul(self.builder.urem(number, integer(count)), integer(stretch))
        self.stretch = start, self._smaller(self.builder.add(start, integer(stretch)), integer(along.extent))
        return self.builder.udiv(number, integer(count))

    def _columns_in_tiles(self, loop: Loop, last: Variable, totals: list[Any], body: Body) -> list[Any]:
        """The innermost columns of a loop, with the lanes across rows."""
        tiles = self.layout.tiles(loop)
        if last.extent <= LONG_TILE:
            totals = self._within_tiles(tiles, integer(0), integer(last.extent), totals, body)
            if len(loop.columns) > 1:  # otherwise later loops find there what they need
                self.filled.clear()
            return totals
        if not tiles:
            self.column = last
            totals = self._loop(integer(0), integer(last.extent), 1, totals, body)
            self.column = None
            return totals

        def part(start: Any, totals: list[Any]) -> list[Any]:
            stop = self._smaller(self.builder.add(start, integer(LONG_TILE)), integer(last.extent))
            totals = self._within_tiles(tiles, start, stop, totals, body)
            self.filled.clear()
            return totals

        return self._loop(integer(0), integer(last.extent), LONG_TILE, totals, part)

    def _within_tiles(self, tiles: Sequence[Tile], start: Any, stop: Any, totals: list[Any], body: Body) -> list[Any]:
        """A loop, after what it reads was put into tiles, and before what it writes is taken from them."""
        for tile in tiles:
            if tile.key not in self.filled:
                self.filled[tile.key] = self._tile_memory(tile), tile.along, start
                if not tile.written:
                    self._move(tile, start, stop)
        totals = self._loop(start, stop, 1, totals, body)
        for tile in tiles:
            if tile.written:
                self._move(tile, start, stop)
                del self.filled[tile.key]
        return totals

    def _move(self, tile: Tile, start: Any, stop: Any) -> None:
        """Fill or empty a tile, a square at a time."""
        assert self.lane is not None
        element = stored_type(tile.dtype, self.target)
        streamed = self.streamed.get(tile.buffer) if tile.written else None
        function = transpose_function(self.function.module, element, self.lanes, self.target, streamed is not None)
        memory_step = integer(tile.index.coefficient(self.lane))
        forward = tile.index.coefficient(tile.along) == 1
        tile_step = self.lanes * self.layout.abreast * (1 if forward else -1)
        lanes = integer(self._lanes_in_use())

        def square(position: Any, _: list[Any]) -> list[Any]:
            rounds = self._smaller(self.builder.sub(stop, position), integer(self.lanes))
            lowest = position if forward else self.builder.sub(self.builder.add(position, rounds), integer(1))
            self.places[tile.along] = lowest
            place = self._scalar_index(tile.index)
            memory = self.builder.gep(self.pointers[tile.buffer], [place], source_etype=element)
            inside = self._place_in_tile(tile.buffer, tile.index, written=tile.written)
            if tile.written:
                arguments = [inside, integer(tile_step), memory, memory_step, rounds, lanes]
            else:
                arguments = [memory, memory_step, inside, integer(tile_step), lanes, rounds]
            self.builder.call(function, arguments if streamed is None else [*arguments, streamed])
            return []

        for _ in self._abreast():
            self._loop(start, stop, self.lanes, [], square)

    def _tile_memory(self, tile: Tile) -> Any:
        """Room for a tile on the stack."""
        if tile.key not in self.tile_memory:
            length = self.layout.tile_length(tile)
            with self.builder.goto_entry_block():
                self.tile_memory[tile.key] = self._row_memory(length, stored_type(tile.dtype, self.target))
        return self.tile_memory[tile.key]
