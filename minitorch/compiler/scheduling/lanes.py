"""The layout of a nest on vectors: the variable that the lanes run along, and the units that the rows are cut into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...dtypes import DType
from ...ir import PRIMITIVES
from ..fusion.cost_model import EXPENSIVE, price
from ..loop_ir.expressions import ALWAYS, Apply, Expression, Load, Scratch, Total
from ..loop_ir.index import Index, Looked, Variable, extent_of
from ..loop_ir.loops import Loop, Nest, Reduce, Write
from ..target import MOST_STEP, Target

ABREAST = 4  # vectors of rows that go through the columns together
MOST_SUMS, MOST_PARTS = 16, 128  # registers for the sums, expressions in a loop's body, of all vectors abreast
LONG_RUN = 64  # vectors that an elementwise unit runs through
LONG_TILE = 64  # rounds of a loop that a tile holds
# The same, where the loop is over rows: long runs of memory make up for a tile out of the first cache.
LONG_STRETCH = 128
MOST_TILES = 1 << 15  # bytes of all tiles: they should stay in the first cache
# Bytes of tiles and scratch rows up to which vectors go abreast: the cache also holds data that come.
MOST_ABREAST = 12 << 10
MOST_STRETCHES = 1 << 17  # the same, where the loop is over rows
MANY_ROWS, FEW_COLUMNS = 8, 32  # vectors of rows, and columns, from and up to which a row is turned on its side


@dataclass(frozen=True)
class Tile:
    """Elements that are dense along a loop variable, but far apart from lane to lane: they go through the stack.

    Attributes:
        buffer: where they are.
        index: of an element.
        along: the variable that they are dense along, forwards or backwards.
        dtype: of an element.
        written: whether they are written, and not read.
    """

    buffer: int
    index: Index
    along: Variable
    dtype: DType
    written: bool


class Layout:
    """The variable that the lanes run along, and the number of lanes.

    Attributes:
        lanes: elements of a vector.
        in_order: whether a reduction has to take up the columns one after another.
        across_rows: whether every lane has its own row; otherwise lanes run along the innermost columns.
        abreast: how many vectors of rows go through the columns together.
        chunk: vectors of rows in a unit.
        blocks: units along the last row variable.
        along: without columns, the row variable that tiles are dense along, if any.
        stretch: how much of it belongs to a unit.
        stretches: units along it.
        room: bytes for all tiles.
    """

    def __init__(self, nest: Nest, target: Target) -> None:
        self.target = target
        self.lanes = target.vector_bytes // _widest(nest)
        self.in_order = _is_product(nest)
        columns = [loop.columns[-1] for loop in nest.loops if loop.columns]
        self.row = row = nest.rows[-1] if nest.rows else None
        self.across_rows = not columns or (
            row is not None and (self._rows_are_dense(nest, columns[0], row) or self._rows_are_short(nest, row))
        )
        if self.in_order and not self.across_rows:
            self.lanes = 1
        self.along = None if columns or row is None else self._dense_row(nest)
        self.stretch = max(1, self._rounds(self.along)) if self.along is not None else 1
        self.room = MOST_TILES if columns else MOST_STRETCHES
        self.stretches = -(-self.along.extent // self.stretch) if self.along is not None else 1
        # With the lanes across rows, the columns are gone through for several vectors of rows at a time, so that
        # each visit to a line of memory uses all of it, and the next.
        self.abreast = 1
        self.chunk = 1  # vectors in a unit
        self.blocks = 1  # units along the last row variable
        if self.across_rows and row is not None:
            vectors = -(-row.extent // self.lanes)
            wanted = self._sums_abreast(nest) if columns else ABREAST
            self.abreast = wanted if (columns or self.along is not None) and vectors >= wanted else 1
            self.abreast = ABREAST if columns and wanted > vectors >= ABREAST else self.abreast
            tiles = {tile for loop in nest.loops for tile in self._wanted(loop)}
            while tiles and self.abreast > 1 and self._is_too_much(nest, tiles):
                self.abreast //= 2
            self.chunk = self.abreast if columns else max(1, min(vectors, LONG_RUN) // self.abreast * self.abreast)
            self.blocks = -(-vectors // self.chunk)

    def _sums_abreast(self, nest: Nest) -> int:
        """Return how many vectors of rows share a visit to a line of columns: more make longer runs of memory.

        Each needs registers for its sums, and its own instructions.
        """
        if nest.scratch:
            return ABREAST
        most = ABREAST
        for count in (2 * ABREAST, 4 * ABREAST):
            for loop in nest.loops:
                sums = sum(isinstance(statement, Reduce) for statement in loop.statements)
                parts = {part for statement in loop.statements for part in statement.value.all_parts}
                if loop.columns and (sums * count > MOST_SUMS or len(parts) * count > MOST_PARTS):
                    return most
            most = count
        return most

    def _is_too_much(self, nest: Nest, tiles: set[Tile]) -> bool:
        """Return whether the tiles take so much that fewer vectors should go abreast."""
        taken = sum(map(self.tile_bytes, tiles))
        return taken > self.room if self.along is not None else taken + self.scratch_bytes(nest) > MOST_ABREAST

    def tiles(self, loop: Loop) -> list[Tile]:
        """Return the tiles that a loop reads and writes, as many as fit."""
        room = self.room
        found = []
        for tile in self._wanted(loop):
            room -= self.tile_bytes(tile)
            if room >= 0:
                found.append(tile)
        return found

    def _wanted(self, loop: Loop) -> list[Tile]:
        along = loop.columns[-1] if loop.columns else self.along
        if not self.across_rows or along is None:
            return []
        return list(dict.fromkeys(tile for tile in _accesses(loop, along) if self._needs_tile(tile)))

    def tile_bytes(self, tile: Tile) -> int:
        """Return the bytes of a tile."""
        return self._rounds(tile.along) * self.lanes * self.abreast * tile.dtype.itemsize

    def _rounds(self, along: Variable) -> int:
        return min(along.extent, LONG_STRETCH if along == self.along else LONG_TILE)

    def _needs_tile(self, tile: Tile) -> bool:
        """Return whether elements are far apart along the lanes, and dense along the other variable."""
        dense = abs(tile.index.coefficient(tile.along)) == 1
        return dense and not self._is_near(tile) and self._is_affine(tile.index, tile.along)

    def _is_near(self, tile: Tile) -> bool:
        """Return whether the elements of all lanes are close together."""
        assert self.row is not None
        step = tile.index.coefficient(self.row)
        return step in (0, 1) if tile.written else abs(step) <= MOST_STEP

    def _is_affine(self, index: Index, along: Variable) -> bool:
        """Return whether an index changes along the lanes and another variable by constant steps."""
        for atom, _ in index.terms:
            if isinstance(atom, Variable):
                continue
            if isinstance(atom, Looked):
                if any(isinstance(part, (Total, Scratch)) for part in atom.value.all_parts):
                    return False
                index = atom.value
            else:
                index = atom.index
            if index.depends_on(along) or (self.row is not None and index.depends_on(self.row)):
                return False
        return True

    def _dense_row(self, nest: Nest) -> Variable | None:
        """Return the row variable along which most elements that are far apart along the lanes are dense."""
        best: Variable | None = None
        most = 0
        for row in nest.rows[:-1]:
            tiles = {tile for loop in nest.loops for tile in _accesses(loop, row) if self._needs_tile(tile)}
            if len(tiles) > most:
                best, most = row, len(tiles)
        return best

    def _rows_are_short(self, nest: Nest, row: Variable) -> bool:
        """Return whether a lane for each row pays, though memory runs along the columns.

        Rows have to be many and short, and to have expensive operations, which then are done for several rows at once.
        """
        if row.extent < MANY_ROWS * self.lanes or not _is_expensive(nest):
            return False
        for loop in nest.loops:
            if extent_of(loop.columns) > FEW_COLUMNS:
                return False
            if not loop.columns:
                continue
            for tile in _accesses(loop, loop.columns[-1]):
                near = self._is_near(tile) and self._is_affine(tile.index, tile.along)
                if tile.index.depends_on(tile.along) and not near and not self._needs_tile(tile):
                    return False
        return True

    def units(self, nest: Nest) -> int:
        """Return the parts of a nest that can run at the same time, if its rows are not split in another way."""
        total = extent_of(nest.rows)
        if self.across_rows and self.row is not None:
            along = self.along.extent if self.along is not None else 1
            return total // self.row.extent // along * self.blocks * self.stretches
        return total

    def scratch_bytes(self, nest: Nest) -> int:
        """Return the bytes of the scratch rows of one unit."""
        width = self.lanes * self.abreast if self.across_rows else 1
        return sum(length * dtype.itemsize for length, dtype in nest.scratch) * width

    def _rows_are_dense(self, nest: Nest, column: Variable, row: Variable) -> bool:
        """Return whether memory is read along the rows rather than along the columns.

        Only elements that change with both of them count: the others are few.
        """
        if row.extent < self.lanes:
            return False
        along_columns = along_rows = 0
        for loop, statement in nest.statements:
            if loop.columns:
                both = [load for load in _loads(statement.value) if load.depends_on(row) and load.depends_on(column)]
                for load in both:
                    along_columns += load.index.coefficient(column) == 1
                    along_rows += load.index.coefficient(row) == 1
        return along_rows > along_columns


def totals(loop: Loop) -> list[str]:
    """Return the arrays that a loop accumulates into."""
    return [f"total{at.slot}" for at in loop.statements if isinstance(at, Reduce)]


def _accesses(loop: Loop, along: Variable) -> Iterator[Tile]:
    """Yield the unconditional accesses of a loop, each as a tile along a variable."""
    for statement in loop.statements:
        for load in _loads(statement.value):
            if load.inside == ALWAYS:
                yield Tile(load.buffer, load.index, along, load.dtype, written=False)
        if isinstance(statement, Write):
            yield Tile(statement.buffer, statement.index, along, statement.value.dtype, written=True)


def _is_expensive(nest: Nest) -> bool:
    """Return whether any computation takes many instructions."""
    parts = (part for _, statement in nest.statements for part in statement.value.all_parts)
    known = (PRIMITIVES.get(part.primitive) for part in parts if isinstance(part, Apply))
    return any(primitive is not None and price(primitive) >= EXPENSIVE for primitive in known)


def _loads(expression: Expression) -> list[Load]:
    return [part for part in expression.all_parts if isinstance(part, Load)]


def _is_product(nest: Nest) -> bool:
    """Return whether a loop multiplies up: products in another order overflow where those in order do not."""
    return any(isinstance(at, Reduce) and at.reduction == "reduce_prod" for _, at in nest.statements)


def _widest(nest: Nest) -> int:
    """Return the bytes per lane: those of the widest float that is computed with, 4 at least."""
    sizes = [4]
    for _, statement in nest.statements:
        sizes += [part.dtype.itemsize for part in statement.value.all_parts if part.dtype.is_floating_point]
    return max(sizes)
