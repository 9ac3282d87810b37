"""Matrix products in the loop IR: which nests are one, and into which tiles and blocks it is cut.

A matrix product needs no statement of its own. A nest that sums a product over one column, ``total += a * b``, *is*
one if ``a`` depends on one row variable (the *row*) and ``b`` on another (the *lane*), and not the other way round;
both may depend on the column, *k*, and on all other variables (the batch). This file finds such nests and decides how
they are computed; `emit_packing` and `emit_gemm` write the code.

The plan is that of Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008), in the words of
BLIS (Van Zee and van de Geijn, 2015). A product of m×k and k×n numbers does 2mnk operations on mk + kn numbers, so each
number that has come near the core should be used many times before it leaves:

- a *tile* of ``rows × vectors`` accumulators stays in the registers while k goes by: each step loads `vectors` vectors
  of `b` and `rows` numbers of `a`, and does ``rows * vectors`` vector multiply-adds;
- a *block* of `a` (block_rows × block_k) and one of `b` (block_k × block_lanes) are *packed*: copied, in the order in
  which tiles read them, into memory that stays in the second cache. Whatever has to be done to the operands on the way
  (a cast, a mask, a scaling, a transposition) is done then, once per packed number. An operand that lies in memory as
  tiles want it is read in place: the left one always, as tiles take single numbers of it, the right one if it is small;
- tiles that are not complete after one block of k wait in memory for the next;
- when they are complete, the rest of the kernel (bias, activation, residual) is computed from them: the *epilogue*.

A *unit* of the parallel range is one block of rows by one block of lanes, with all of k. It packs for itself, so units
can run in any order; the blocks are chosen such that little is packed twice. Every sum takes its terms in the order of
k, whatever the blocks are, so results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .index import Variable
from .instructions import computed_in
from .loops import ALWAYS, Accumulate, Apply, Choose, Expression, Load, Nest, Store, Sum, walk
from .machine import Host, host

MOST_VECTORS = 8  # of a tile's width
MOST_ROWS = 8  # of a tile: if they lie at a power of two from each other, the first cache holds no more
MASKED = 32  # bytes of vectors from which on a load under a mask is one instruction
CHAINS = 8  # independent sums that keep the multiply-add units busy, whose results take several cycles
MOST_BLOCKS = 1 << 20  # bytes on the stack
FEW_TILES = 8  # so many times the second cache may be read for want of packing
# A right operand that does not fit into the second cache, and of which so few tiles are made, is best read once, from
# memory, in long runs along a few of its rows.
STREAMED, STREAMED_TILES = 8, 4
UNIT = 1 << 21  # operations that a unit should have, at least
UNITS_PER_CORE = 4


@dataclass(frozen=True)
class Contraction:
    """A nest that is a matrix product.

    Attributes:
        batch: the other row variables.
        row: what the left factor and not the right one depends on; None if there is one row.
        lane: what the right factor and not the left one depends on: the lanes of vectors run along it.
        k: the column, which is summed over.
        left, right: the factors.
        total: what is summed.
        epilogue: what is done with the sum.
    """

    batch: tuple[Variable, ...]
    row: Variable | None
    lane: Variable
    k: Variable
    left: Expression
    right: Expression
    total: Accumulate
    epilogue: tuple[Store, ...]

    @property
    def itemsize(self) -> int:
        """Bytes of one of the sums."""
        return self.total.value.dtype.itemsize

    @property
    def height(self) -> int:
        """The number of rows."""
        return self.row.extent if self.row is not None else 1


@lru_cache(256)
def recognise(nest: Nest) -> Contraction | None:
    """The matrix product that a nest is, if it is one that is worth tiles."""
    if nest.scratch or len(nest.loops) != 2 or not all(row.extent for row in nest.rows):
        return None
    sums, rest = nest.loops
    if len(sums.columns) != 1 or not sums.columns[0].extent or rest.columns or len(sums.statements) != 1:
        return None
    (total,) = sums.statements
    stores = tuple(statement for statement in rest.statements if isinstance(statement, Store))
    if len(stores) != len(rest.statements) or not isinstance(total, Accumulate) or total.reduction != "reduce_sum":
        return None
    product = total.value
    if any(isinstance(part, Sum) for part in walk(product)):
        return None
    if not isinstance(product, Apply) or product.primitive != "mul" or product.dtype != computed_in(product.dtype):
        return None
    (column,), found = sums.columns, []
    for left, right in (product.arguments, product.arguments[::-1]):
        of_left, of_right = _variables(left, nest.rows), _variables(right, nest.rows)
        rows: set[Variable | None] = {*(of_left - of_right)} or {None}
        for lane in of_right - of_left:
            for row in rows:
                batch = tuple(other for other in nest.rows if other not in (row, lane))
                found.append(Contraction(batch, row, lane, column, left, right, total, stores))
    best = max(found, key=_preference, default=None)
    if best is None or (best.row is None and not _is_dense(best.right, best.lane)):
        return None  # numbers times a vector, or rows of a matrix times a vector: loops do these as well
    return best


def _variables(expression: Expression, among: tuple[Variable, ...]) -> set[Variable]:
    """The variables that an expression's value changes with."""
    found: set[Variable] = set()
    for part in walk(expression):
        if isinstance(part, Choose):
            found.update(variable for variable in among if part.inside.depends_on(variable))
        elif not part.parts():
            found.update(variable for variable in among if part.depends_on(variable))
    return found


def _preference(found: Contraction) -> tuple[Any, ...]:
    """With rows before without; lanes along which results are dense, then those that operands are dense along."""
    stores = sum(store.index.coefficient(found.lane) == 1 for store in found.epilogue)
    dense = _is_dense(found.right, found.lane)
    return found.row is not None, stores, dense, found.lane.extent, found.height, found.lane.name, str(found.row)


def _is_dense(expression: Expression, along: Variable) -> bool:
    """Whether neighbours along a variable are neighbours in memory, in more cases than not."""
    steps = [abs(part.index.coefficient(along)) for part in walk(expression) if isinstance(part, Load)]
    return 2 * sum(step == 1 for step in steps) > sum(step != 0 for step in steps)


def _is_cheap(expression: Expression) -> bool:
    """Whether it costs next to nothing to read an element again: it lies in memory as it is."""
    if not isinstance(expression, Load) or expression.inside != ALWAYS:
        return False
    return all(isinstance(atom, Variable) for atom, _ in expression.index.terms)


@dataclass(frozen=True)
class Tiling:
    """How a matrix product is cut.

    Attributes:
        lanes: elements of a vector.
        rows, vectors: of a tile.
        block_rows, block_lanes, block_k: of the blocks; the first two are whole tiles.
        packs_left, packs_right: whether the operands are packed, or read where they are.
        left_along_k, right_along_k: whether an operand is dense along k rather than along its rows or lanes.
        units: the parallel range: all batches, blocks of rows and blocks of lanes.
    """

    lanes: int
    rows: int
    vectors: int
    block_rows: int
    block_lanes: int
    block_k: int
    packs_left: bool
    packs_right: bool
    left_along_k: bool
    right_along_k: bool
    units: int

    @property
    def width(self) -> int:
        """Elements along the lanes of a tile."""
        return self.lanes * self.vectors


@lru_cache(256)
def tiling(product: Contraction, vector_bytes: int) -> Tiling:
    """How a matrix product is cut on this machine, with vectors of so many bytes."""
    machine, depth, width = host(), product.k.extent, product.lane.extent
    lanes = _lanes(product, vector_bytes)
    rows, vectors = tile(product.height, -(-width // lanes), machine.vector_registers)
    row_tiles = -(-product.height // rows)
    left_along_k = product.row is None or not _is_dense(product.left, product.row)
    right_along_k = not _is_dense(product.right, product.lane) and _is_dense(product.right, product.k)
    packs_left = not _is_cheap(product.left)
    size, cache = depth * width * product.itemsize, machine.caches[1]
    in_place = _is_cheap(product.right) and _is_dense(product.right, product.lane)
    in_place = in_place and (width % (lanes * vectors) == 0 or vector_bytes >= MASKED)
    streams = in_place and size > cache and row_tiles <= STREAMED_TILES
    packs_right = not streams and not (in_place and size <= cache and row_tiles * size <= FEW_TILES * cache)
    block_k = _block_k(product, lanes * vectors, packs_left, streams, machine)
    wanted = machine.cores * (1 if streams else UNITS_PER_CORE)
    packed = (packs_left, packs_right)
    block_rows, block_lanes, blocks = _blocks(product, rows, lanes * vectors, block_k, packed, wanted)
    return Tiling(
        lanes, rows, vectors, block_rows, block_lanes, block_k, packs_left, packs_right, left_along_k, right_along_k,
        blocks * math.prod(variable.extent for variable in product.batch),
    )  # fmt: skip


def _lanes(product: Contraction, vector_bytes: int) -> int:
    """Elements of a vector: of the widest type that is computed with, no more than a short row needs."""
    parts = [part for value in _values(product) for part in walk(value)]
    widest = max([4, *(part.dtype.itemsize for part in parts if part.dtype.is_floating_point), product.itemsize])
    lanes = vector_bytes // widest
    while lanes >= 2 * product.lane.extent and lanes > 1:
        lanes //= 2
    return lanes


def _values(product: Contraction) -> Iterator[Expression]:
    yield product.total.value
    yield from (store.value for store in product.epilogue)


def tile(height: int, vectors: int, registers: int) -> tuple[int, int]:
    """Rows and vectors of the tile that does the whole product in the fewest steps.

    A multiply-add takes one step. So does loading a vector, but much of that is done at the same time; numbers of the
    left operand are smaller. One register holds the number, `vectors` hold the vectors, the rest are accumulators.

    Example:
        >>> tile(height=1200, vectors=64, registers=32)
        (6, 4)
        >>> tile(height=1200, vectors=64, registers=16)
        (6, 2)
        >>> tile(height=1, vectors=64, registers=32)
        (1, 8)
    """

    def steps(shape: tuple[int, int]) -> float:
        rows, across = shape
        tiles = -(-height // rows) * -(-vectors // across)
        return tiles * (max(rows * across, rows + across, CHAINS) + across / 2 + rows / 8)

    shapes = [
        (rows, across)
        for across in range(1, min(vectors, MOST_VECTORS) + 1)
        for rows in range(1, min(height, MOST_ROWS, (registers - 2 - across) // across) + 1)
    ]
    return min(shapes, key=steps)


def _block_k(product: Contraction, width: int, packs_left: bool, streams: bool, machine: Host) -> int:
    """Steps of k in one block.

    All of them, if what a tile's lanes read then takes no more than a part of the second cache. If the left operand is
    packed, that should stay in the first cache, and a packed block of the left one in the second. If the right one is
    read once (`streams`), a few rows of it at a time.
    """
    depth, size = product.k.extent, product.itemsize
    if streams:
        return min(depth, STREAMED)
    room = machine.caches[0] if packs_left else machine.caches[1] // 4
    most = max(64, room // (width * size))
    parts = max(1, round(depth / most))
    return min(depth, -(-depth // parts // 16) * 16)


def _blocks(
    product: Contraction, rows: int, width: int, block_k: int, packed: tuple[bool, bool], wanted: int
) -> tuple[int, int, int]:
    """Rows and lanes of a block, and the number of blocks.

    Of all grids whose blocks fit into the second cache and that give all cores work, the one that packs least.
    """
    row_tiles, lane_tiles = -(-product.height // rows), -(-product.lane.extent // width)
    batch = math.prod(variable.extent for variable in product.batch)
    work = 2 * batch * product.height * product.lane.extent * product.k.extent
    wanted = min(wanted, max(1, work // UNIT))
    room = min(MOST_BLOCKS, host().caches[1]) // product.itemsize
    grids = []
    for down in _cuts(row_tiles):
        for across in _cuts(lane_tiles):
            height, length = -(-row_tiles // down) * rows, -(-lane_tiles // across) * width
            waiting = height * length if block_k < product.k.extent else 0
            if packed[0] * height * block_k + packed[1] * length * block_k + waiting > room:
                continue
            packs = (packed[0] * height + packed[1] * length) * down * across
            grids.append((max(0, wanted - down * across * batch), packs, down * across, height, length))
    _, _, count, height, length = min(grids)
    return height, length, count


def _cuts(tiles: int) -> list[int]:
    """Into how many blocks some tiles can be cut, the blocks being as even as they can."""
    return sorted({-(-tiles // -(-tiles // cut)) for cut in range(1, tiles + 1)})
