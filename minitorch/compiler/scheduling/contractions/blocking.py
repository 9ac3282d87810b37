"""How sweeps are cut into blocks of rows and columns, so that a tile stays in the registers and the caches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from ...loop_ir.expressions import ALWAYS, Expression, Load, computed_in, walk
from ...loop_ir.index import Variable
from ...target import Target
from .gemm_tiling import tile
from .skip import skips
from .sweeps import Output, Sweeps

ROWS, COLUMNS = 64, 64  # of a tile, at most
LEAST_ROWS = 16  # of one that is worth keeping
ABREAST = 2  # vectors of rows that go through the columns together
TILE_VECTORS = 4  # of rows, whose inner sums are in the registers together


@dataclass(frozen=True)
class Blocking:
    """How sweeps are cut.

    Attributes:
        lanes: elements of a vector.
        rows: of a block, whole vectors.
        columns: of a block.
        abreast: vectors of rows that go through the columns together.
        tile: columns, and vectors of rows, whose inner sums are in the registers together.
        keeps: whether the tiles of all columns are kept for the second sweep: a block of rows of them is small enough.
        units: the parallel range: all batches and blocks of rows.
        registers: of the target.
    """

    lanes: int
    rows: int
    columns: int
    abreast: int
    tile: tuple[int, int]
    keeps: bool
    units: int
    registers: int

    def output_tile(self, output: Output) -> tuple[int, int]:
        """Rows, and vectors of an output's columns, whose sums are in the registers together."""
        return tile(self.rows, -(-output.lane.extent // self.lanes), self.registers)


@lru_cache(256)
def blocking(sweeps: Sweeps, target: Target) -> Blocking:
    """How sweeps are cut on a target."""
    values = [part for sweep in range(sweeps.count) for part in sweeps.terms(sweep)]
    values += [statement.value for loop in sweeps.stores for statement in loop.statements]
    sizes = {part.dtype.itemsize for value in values for part in walk(value) if part.dtype.is_floating_point}
    lanes = target.vector_bytes // max(4, *sizes)
    vectors = min(ROWS // lanes, 1 << (-(-sweeps.row.extent // lanes) - 1).bit_length())
    kept = _kept_vectors(sweeps, vectors, lanes, target)
    vectors = kept or vectors
    columns = min(COLUMNS, sweeps.column.extent)
    across = min(vectors, TILE_VECTORS)
    high = min(columns, (target.vector_registers - 2 - across) // across)
    units = math.prod(variable.extent for variable in sweeps.batch) * -(-sweeps.row.extent // (vectors * lanes))
    return Blocking(
        lanes, vectors * lanes, columns, min(vectors, ABREAST), (high, across), kept > 0, units,
        target.vector_registers,
    )  # fmt: skip


def _kept_vectors(sweeps: Sweeps, vectors: int, lanes: int, target: Target) -> int:
    """Vectors of rows in a block whose tiles are kept for the second sweep; 0 if they are computed again."""
    if sweeps.count < 2 or not set(sweeps.needed(1)) <= set(sweeps.needed(0)):
        return 0
    when = [[(each.comparison, each.difference, each.outcome) for each in skips(sweeps, sweep)] for sweep in (0, 1)]
    if not set(when[0]) <= set(when[1]):  # what is passed over first must not be needed then
        return 0
    each = sum(tile.sum.dtype.itemsize for tile in sweeps.tiles) * sweeps.column.extent * lanes
    room = target.caches[1] // 2
    while vectors * each > room and vectors * lanes > LEAST_ROWS:
        vectors //= 2
    return vectors if vectors * each <= room else 0


def is_in_place(value: Expression) -> bool:
    """Whether an operand lies in memory as it is computed with."""
    if not isinstance(value, Load) or value.inside != ALWAYS or value.dtype != computed_in(value.dtype):
        return False
    return all(isinstance(atom, Variable) for atom, _ in value.index.terms)
