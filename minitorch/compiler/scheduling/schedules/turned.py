"""Schedules for memory that is dense along another loop than the lanes: squares are transposed in registers.

Where neighbouring lanes lie far apart in memory but neighbouring iterations of a loop lie side by side, a tile of the
argument is staged on the stack. It is copied in squares of as many rows as a vector has lanes. A square is read along
its rows and written along its columns. The loop then finds a vector for each of its iterations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ...loop_ir.loops import Nest
from .. import rewrites as R
from ..lanes import LONG_TILE, Layout, Tile, totals
from ..rewrite import Rewrite

BLOCKS = "kb"  # the loop over blocks of columns; "p" is that over the parts of a long sum, in the same nest


def turned_rows(nest: Nest, layout: Layout) -> Iterator[Rewrite]:
    """Yield the steps for rows without columns: tiles of the last row variable, along the lanes, and another."""
    along, last = layout.along, nest.rows[-1]
    assert along is not None
    lanes, others = layout.lanes, [row.name for row in nest.rows[:-1] if row != along]
    squares, abreast = -(-layout.stretch // lanes), layout.abreast
    yield from _blocks(along.name, along.extent, lanes, squares, "a", "k", "r")
    yield from _blocks(last.name, last.extent, lanes, abreast, "b", "v", "l")
    units = [*others, "a", "b"]
    yield R.reorder(*units, "k", "r", "v", "l")
    extents = {row.name: row.extent for row in nest.rows}
    extents |= {"a": -(-along.extent // (squares * lanes)), "b": -(-last.extent // (abreast * lanes))}
    at = next((name for name in reversed(units) if extents[name] > 1), "")
    tiles = list(dict.fromkeys(tile for loop in nest.loops for tile in layout.tiles(loop)))
    for number, tile in enumerate(tiles):
        yield from _squares(tile, layout, f"tile{number}", at, "k", "r", "v", "l")
    yield R.parallelise(*units)
    if last.extent % (abreast * lanes) and extents["b"] > 1:
        yield R.specialise("b")
    for number, tile in enumerate(tiles):
        if _pays(tile, layout):
            yield R.specialise(f"tile{number}_k#0")
    yield R.unroll("v#0")
    sums = [total for loop in nest.loops for total in totals(loop)]
    if sums:
        yield R.sink("l")
    yield R.vectorise("l")
    if sums:
        yield R.place("registers", *(f"{total}_l" for total in sums))


def turned_columns(nest: Nest, layout: Layout, parts: Sequence[tuple[str, ...]]) -> Iterator[Rewrite]:
    """Yield the steps for columns, lanes across rows: tiles of the last row variable and the innermost columns.

    Args:
        nest: the loops.
        layout: their lanes.
        parts: the loop over blocks of rows, and the loops within a block, of vectors and of lanes; then those for rows
            that are left over.
    """
    lanes, squares = layout.lanes, LONG_TILE // layout.lanes
    names = [column.name for loop in nest.loops for column in loop.columns]
    seen: Counter[str] = Counter()
    blocks = []
    for loop in nest.loops:
        found = layout.tiles(loop)
        for part in range(len(parts)) if found else ():
            last = loop.columns[-1]
            blocks.append((part * names.count(last.name) + seen[last.name], last))
        seen.update(column.name for column in loop.columns)
    for number, last in sorted(blocks, key=lambda block: -block[0]):
        count = min(squares, -(-last.extent // lanes))
        yield from _blocks(f"{last.name}#{number}", last.extent, lanes, count, BLOCKS, "k", "r")
    for number, (tile, at) in enumerate(_column_tiles(nest, layout).items()):
        for part, (block, *together) in enumerate(parts):
            yield from _squares(tile, layout, f"tile{number}{'_rest' * part}", at or block, "k", "r", *together)


def whole_columns(nest: Nest, layout: Layout) -> Iterator[Rewrite]:
    """Yield the steps that make a version of the copies for full squares."""
    for number, tile in enumerate(_column_tiles(nest, layout)):
        if _pays(tile, layout):
            yield R.specialise(f"tile{number}_k")


def _pays(tile: Tile, layout: Layout) -> bool:
    """Return whether full squares get their own version: masks cost much where they are no instructions."""
    features = layout.target.required
    masks = "avx512bw" in features or ("avx" in features and tile.dtype.itemsize >= 4)
    return tile.along.extent > layout.lanes and tile.along.extent % layout.lanes > 0 and not masks


def _column_tiles(nest: Nest, layout: Layout) -> dict[Tile, str]:
    """Return the tiles of a nest with columns, each with the loop whose body it is in; "" for the one over blocks."""
    found: dict[Tile, str] = {}
    for loop in nest.loops:
        for tile in layout.tiles(loop):
            is_long = tile.along.extent > LONG_TILE
            found[tile] = BLOCKS if is_long else loop.columns[-2].name if len(loop.columns) > 1 else ""
    return found


def _blocks(loop: str, extent: int, lanes: int, count: int, outer: str, middle: str, inner: str) -> Iterator[Rewrite]:
    """Yield the steps that cut a loop in blocks of vectors; if all vectors are full, only their number is guarded."""
    if extent % lanes or count == 1:
        yield R.split(loop, count * lanes, outer, "t")
        yield R.split("t", lanes, middle, inner)
    else:
        yield R.split(loop, lanes, "t", inner)
        yield R.split("t", count, outer, middle)


def _squares(tile: Tile, layout: Layout, name: str, at: str, blocks: str, rows: str, *lanes: str) -> Iterator[Rewrite]:
    """Yield the steps that put a tile on the stack, and copy it in squares."""
    yield R.stage(tile.buffer, name, at, rows, blocks, rows, *lanes)
    square = (f"{name}_{lanes[-1]}", f"{name}_{rows}")
    square = square if tile.written else square[::-1]
    yield R.reorder(*(f"{name}_{each}" for each in lanes[:-1]), f"{name}_{blocks}", *square)
    if not tile.written and tile.along.extent % layout.lanes:  # else a guard leaves out whole squares
        yield R.overcompute(name)
    yield R.regroup(f"{name}_square", layout.lanes, square[::-1], square)
