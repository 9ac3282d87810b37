"""Tiling and packing of matrix products: the sizes of tiles and blocks, and the operands that are copied.

The plan is that of Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008), in the words of
BLIS (Van Zee and van de Geijn, 2015). A product of m×k and k×n numbers does 2mnk operations on mk + kn numbers, so each
number that has come near the core should be used many times before it leaves:

- a *tile* of ``rows × vectors`` accumulators stays in the registers while k goes by: each step loads `vectors` vectors
  of `b` and `rows` numbers of `a`, and does ``rows * vectors`` vector multiply-adds;
- a *block* of `a` (block_rows × block_k) and one of `b` (block_k × block_lanes) are *packed*: copied, in the order in
  which tiles read them, into memory that stays in the second cache. Whatever has to be done to the operands on the way
  (a cast, a mask, a scaling, a transposition) is done then, once per packed number. An operand that lies in memory as
  tiles need it is read in place: the left one always, as tiles take single numbers of it, the right one if it is small;
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

from ...loop_ir.expressions import Expression, Load
from ...loop_ir.index import extent_of
from ...target import LINE, Target
from .gemm import TURNED, Contraction, Operand, packing
from .groups import Groups, grouped, in_place

MOST_VECTORS = 8  # of a tile's width
MASKED = 32  # bytes of vectors from which on a load under a mask is one instruction
# Of a tile: if rows that are read in place lie at a power of two from each other, the first cache holds no more, and
# should have room for the other operand.
MOST_ROWS, MOST_CROWDED = 8, 6
CHAINS = 8  # independent sums that keep the multiply-add units busy, whose results take several cycles
COUNTING = 1 / 4  # of a multiply-add, per step of k; raising it makes larger tiles, which may be less full
LONGEST = 1 << 11  # terms that are added up in one run: more make fewer blocks, and a larger rounding error
WAYS = 8  # lines that a cache can hold at one of its places
MOST_BLOCKS = 1 << 20  # bytes on the stack
SHORT = 8  # tiles of rows, so few that rereads are not worth the first cache
FEW_TILES = 8  # reads of the second cache up to which packing does not pay
# A right operand that does not fit into the second cache, and of which so few tiles are made, is best read once, from
# memory, along a few of its rows side by side: a core prefetches each of them if it goes along all of them
# evenly, a line or two at a time. A tile of one row has so little to do for a step of k that it is wider.
STREAMED, STREAMED_VECTORS, STREAMED_TILES = 8, 2, 4
STREAMED_GROUPS = 4  # groups of rows, if they are packed on the way: more do not fit into the first cache, side by side
UNIT = 1 << 21  # operations that a unit should have, at least
UNITS_PER_CORE = 4
# To begin so many units takes about as long as a row of 64 sums: calls, and operands that the first cache has lost.
# Raising it makes smaller units, of which fewer rows are beyond the edge.
UNITS_PER_ROW = 2


def _collides(left: Operand, target: Target) -> bool:
    """Return whether the second cache cannot hold one line of the left operand for every k, though they are few.

    At a distance of many lines, a power of two above all, they compete for the same places.
    """
    assert isinstance(left.value, Load)
    step = abs(left.value.index.coefficient(left.ks[-1])) * left.value.dtype.itemsize if left.ks else 0
    span = target.caches[1] // WAYS
    return step >= LINE and extent_of(left.ks) > WAYS * (span // math.gcd(step, span))


def _most_rows(left: Operand, packs_left: bool, target: Target) -> int:
    """Return how many rows a tile may have: fewer if they compete for the same places of the first cache."""
    if packs_left or not left.across:
        return MOST_ROWS
    (value,) = (part for part in left.value.all_parts if isinstance(part, Load))
    step = value.index.coefficient(left.across[-1]) * value.dtype.itemsize
    return MOST_CROWDED if step and step % max(1, target.caches[0] // WAYS) == 0 else MOST_ROWS


@dataclass(frozen=True)
class Tiling:
    """The tiles and blocks of a matrix product.

    Attributes:
        lanes: elements of a vector.
        rows, vectors: of a tile.
        block_rows, block_lanes, block_k: of the blocks; the first two are whole tiles.
        packs_left, packs_right: whether the operands are packed, or read where they are.
        left_along_k, right_along_k: whether an operand is dense along k rather than along its rows or lanes.
        streams: whether the right operand is read once, from memory, a few rows at a time.
        units: the parallel range: all batches, blocks of rows and blocks of lanes.
        groups: the terms that one instruction adds up, if it takes several; `block_k` is whole groups.
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
    streams: bool
    units: int
    groups: Groups | None = None

    @property
    def width(self) -> int:
        """Elements along the lanes of a tile."""
        return self.lanes * self.vectors

    @property
    def steps(self) -> int:
        """Steps of k in a block, in each of which a sum takes one term or one group of terms."""
        return self.block_k if self.groups is None else self.block_k // self.groups.size

    @property
    def is_unrolled(self) -> bool:
        """Whether a block of k is so short, and a step of it so small, that counting them would take a large part."""
        return self.steps <= STREAMED and self.rows == 1


@lru_cache(256)
def tiling(product: Contraction, target: Target) -> Tiling:
    """Return how a target cuts a matrix product."""
    depth, width = product.depth, product.width
    lanes = _lanes(product, target)
    left, right = product.left, product.right
    (left_along_k, _), (right_along_k, _) = packing(left, lanes, 1), packing(right, lanes, TURNED)
    groups = grouped(product, target, lanes)
    size = product.itemsize if groups is None else groups.right.itemsize
    if groups is None:
        packs_left = not left.is_one_piece or (not left_along_k and _collides(left, target))
    else:
        packs_left = not in_place(left, groups.left, groups)
    most_rows = _most_rows(left, packs_left, target)
    registers = target.vector_registers - (0 if groups is None else groups.registers)
    rows, vectors = tile(product.height, -(-width // lanes), registers, most_rows, doubling=groups is not None)
    row_tiles = -(-product.height // rows)
    whole, cache = depth * width * size, target.caches[1]
    is_readable = groups is None and right.is_one_piece and right.is_dense_across
    is_readable = is_readable and (width % (lanes * vectors) == 0 or target.vector_bytes >= MASKED)
    streams = is_readable and whole > cache and row_tiles <= STREAMED_TILES
    if groups is not None and row_tiles == 1 and whole > cache:  # packed, and read once, a few of its rows at a time
        streams = len(right.across) == len(right.ks) == 1 and right.is_dense_across
    elif streams:
        most = STREAMED_VECTORS * (1 if product.height > 1 else 2)
        rows, vectors = tile(product.height, min(most, -(-width // lanes)), target.vector_registers)
    packs_right = groups is not None or (
        not streams and not (is_readable and whole <= cache and row_tiles * whole <= FEW_TILES * cache)
    )
    block_k = _block_k(product, lanes * vectors, packs_left and row_tiles > SHORT, streams, groups, target)
    wanted = target.cores * (1 if streams else UNITS_PER_CORE)
    packed = (packs_left, packs_right)
    block_rows, block_lanes, blocks = _blocks(
        product, rows, lanes * vectors, lanes, block_k, size, packed, wanted, target
    )
    return Tiling(
        lanes, rows, vectors, block_rows, block_lanes, block_k, packs_left, packs_right, left_along_k, right_along_k,
        streams, blocks * extent_of(product.batch), groups,
    )  # fmt: skip


def _lanes(product: Contraction, target: Target) -> int:
    """Return the elements of a vector of the widest type computed with; no more than a short row needs."""
    parts = [part for value in _values(product) for part in value.all_parts]
    widest = max([4, *(part.dtype.itemsize for part in parts if part.dtype.is_floating_point), product.itemsize])
    lanes = target.vector_bytes // widest
    while lanes >= 2 * product.width and lanes > 1:
        lanes //= 2
    return lanes


def _values(product: Contraction) -> Iterator[Expression]:
    yield product.total.value
    yield from (store.value for store in product.epilogue)


def tile(
    height: int, vectors: int, registers: int, most_rows: int = MOST_ROWS, doubling: bool = False
) -> tuple[int, int]:
    """Return the rows and vectors of the tile that does the whole product in the fewest steps.

    A multiply-add takes one step. So does loading a vector, but much of that is done at the same time; numbers of the
    left operand are smaller, and to count the steps takes a little. One register holds the number, `vectors` hold the
    vectors, the rest are accumulators. If `doubling`, `vectors` is 1, 2, 4 or 8.

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
        return tiles * (max(rows * across, rows + across, CHAINS) + across / 2 + rows / 8 + COUNTING)

    shapes = [
        (rows, across)
        for across in range(1, min(vectors, MOST_VECTORS) + 1)
        if not doubling or across & (across - 1) == 0
        for rows in range(1, min(height, most_rows, (registers - 2 - across) // across) + 1)
    ]
    return min(shapes, key=steps)


def _block_k(
    product: Contraction, width: int, is_tall: bool, streams: bool, groups: Groups | None, target: Target
) -> int:
    """Return the steps of k in one block.

    All of them, if a tile's lanes then read no more than a part of the second cache. If the left operand is packed and
    has many tiles (`is_tall`), that should stay in the first cache, and a packed block of the left one in the second.
    If the right one is read once (`streams`), a few rows of it at a time.
    """
    together, size = (1, product.itemsize) if groups is None else (groups.size, groups.right.itemsize)
    depth = -(-product.depth // together) * together
    if streams and groups is not None:
        return min(depth, STREAMED_GROUPS * together)
    if streams:
        return min(depth, STREAMED if product.width > width else LONGEST)
    room = target.caches[0] if is_tall else target.caches[1] // 4
    most = max(64, min(room // (width * size), LONGEST))
    parts = max(1, round(depth / most))
    whole = [extent_of(each.ks[number:]) for each in (product.left, product.right) for number in range(1, len(each.ks))]
    step = max((length for length in whole if length <= most), default=16)  # all values of the inner variables
    step = math.lcm(step, together)
    most = -(-depth // parts // step)
    even = (count for count in range(most, most * 2 // 3, -1) if depth % (count * step) == 0)
    return min(depth, next(even, most) * step)


def _blocks(
    product: Contraction, rows: int, width: int, lanes: int, block_k: int, size: int, packed: tuple[bool, bool],
    wanted: int, target: Target,
) -> tuple[int, int, int]:  # fmt: skip
    """Return the rows and lanes of a block, and the number of blocks.

    `rows` are those of a tile. `size` is that of a packed number in bytes.

    Of all grids whose blocks fit into the second cache, or come nearest to it, and that give all cores work, the one
    that packs least.
    """
    row_tiles, lane_tiles = -(-product.height // rows), -(-product.width // width)
    batch = extent_of(product.batch)
    work = 2 * batch * product.height * product.width * product.depth
    wanted = min(wanted, max(1, work // UNIT))
    room = min(MOST_BLOCKS, target.caches[1]) // size
    run = product.right.across[-1].extent if len(product.right.across) > 1 else product.width
    each_call = [packs and not each.constant for packs, each in zip(packed, (product.left, product.right), strict=True)]
    grids = []
    for down in _cuts(row_tiles):
        for across in _cuts(lane_tiles):
            height, length = -(-row_tiles // down) * rows, -(-lane_tiles // across) * width
            waiting = height * length * product.itemsize // size if block_k < product.depth else 0
            beyond = max(0, packed[0] * height * block_k + packed[1] * length * block_k + waiting - room)
            packs = (each_call[0] * height + each_call[1] * _copied(length, run, lanes)) * down * across
            if each_call == [True, False]:  # rows beyond the last one are computed, too
                packs += down * across // UNITS_PER_ROW
            grids.append((beyond, max(0, wanted - down * across * batch), packs, down * across, height, length))
    *_, count, height, length = min(grids)
    return height, length, count


def _copied(length: int, run: int, lanes: int) -> int:
    """Return the elements copied for a block's lanes: whole vectors per run; a block may begin within a run."""
    if run >= length:
        return length
    return (length // run + (length % run > 0) * 2) * -(-run // lanes) * lanes


def _cuts(tiles: int) -> list[int]:
    """Return the numbers of blocks that some tiles can be cut into, as even as possible."""
    return sorted({-(-tiles // -(-tiles // cut)) for cut in range(1, tiles + 1)})
