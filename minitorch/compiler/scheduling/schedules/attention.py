"""The schedule of attention: FlashAttention (Dao et al., 2022), as rewrites.

All columns pass by a block of rows, block after block. Each gives a tile of scores, which stays in the cache while the
maxima, the sums of exponentials and the output are brought up to date with it (`rewrites.online`). Scores and output
are matrix products, whose own tiles are in registers. `blocking` has the sizes of blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ....dtypes import float32, float64
from ...loop_ir.expressions import Load, walk
from ...loop_ir.loops import Nest
from ...loop_ir.tree import loops, procedure
from ...target import Target
from ..contractions.blocking import Blocking, blocking, is_in_place
from ..contractions.skip import skips
from ..contractions.sweeps import Sweeps, recognise
from ..rewrites import (
    Rewrite,
    distribute,
    factor_out,
    hoist,
    in_registers,
    jam,
    lift,
    online,
    overcompute,
    pack,
    parallelise,
    reorder,
    reuse,
    split,
    transpose,
    unroll,
    vectorise,
)

# Numbers of a tile in registers, whose other side has as many vectors as there is room for. Raising them spares loads
# of vectors, until the registers that are left hold too few sums to hide the latency of their additions.
ROWS, COLUMNS = 4, 4


def attention_schedule(nest: Nest, target: Target, past_caches: Collection[int] = ()) -> tuple[Rewrite, ...] | None:
    """The rewrites for a nest that is attention and computes all scores: a maximum, a sum and an output; else None."""
    sweeps = recognise(nest)
    if sweeps is None or sweeps.count > 1 or len(sweeps.tiles) != 1 or len(sweeps.outputs) != 1:
        return None
    (tile,), (output,), names = sweeps.tiles, sweeps.outputs, [each.name for each in sweeps.reductions]
    values = [each.term.value for each in sweeps.reductions]
    if names != ["reduce_max", "reduce_sum"] or any(each.dtype not in (float32, float64) for each in values):
        return None
    if len(list(nest.statements)) != 3 or skips(sweeps, 0):
        return None
    within = {*walk(tile.sum)}
    beside = [part.index for part in walk(values[0]) if isinstance(part, Load) and part not in within]
    if any(index.coefficient(sweeps.row) not in (0, 1) for index in beside):
        return None  # a mask of rows and columns: it would be gathered, row by row
    queries = [part for part in dict.fromkeys(walk(tile.across)) if isinstance(part, Load)]
    value = output.other
    if len(queries) != 1 or not is_in_place(tile.down) or not is_in_place(value) or not isinstance(value, Load):
        return None
    if value.index.coefficient(output.lane) != 1:
        return None
    names = [each.variable.name for each in loops(procedure(nest, ()).body)][len(sweeps.batch) :]
    return tuple(_steps(sweeps, blocking(sweeps, target), names, queries[0], value)) if len(names) == 8 else None


def _steps(sweeps: Sweeps, cut: Blocking, names: list[str], query: Load, value: Load) -> Iterator[Rewrite]:
    maximum, total = (f"total{each.slot}" for each in sweeps.reductions)
    (output,), lanes, depth = sweeps.outputs, cut.lanes, names[2]
    row, largest, _, summed, _, lane, column, _ = (f"{name}#{names[:n].count(name)}" for n, name in enumerate(names))
    width = -(-cut.columns // COLUMNS) * COLUMNS
    several = sweeps.column.extent > width  # blocks of columns
    vectors = cut.rows // lanes
    across = max(count for count in _fitting(cut, COLUMNS) if vectors % count == 0)
    beside = min(_fitting(cut, ROWS), key=lambda count: (-(-output.lane.extent // (count * lanes)) * count, -count))
    padded = beside * lanes
    outermost = [each.name for each in sweeps.batch] + (["rows"] if sweeps.row.extent > cut.rows else [])
    beginning = outermost[-1] if outermost else ""

    # A row by itself: columns in blocks, and a sum for every lane of the output.
    yield split(row, cut.rows, "rows", "r")
    yield split(column, width, "block", "j")
    yield split(lane, padded, "e", "tile_lanes")
    yield split("tile_lanes", lanes, "ei", "l")
    yield split(summed, width, "block", "j")
    yield split(largest, width, "block", "j")
    yield lift("sum3", "e", "ei", "l")
    yield distribute("e", "ei", "l")
    yield reorder("block", "j", "e", "ei", "l")
    yield hoist("e", "ei", "l")
    yield factor_out("sum3", "block" if several else "j")
    if several:
        yield online("block", maximum)
    # The scores of a block are in an array, and so are the weights that they become.
    for array in ("sum0", "sum1", "sum2"):
        yield lift(array, "j")
    yield distribute("j")
    yield reuse("sum1", "sum0")
    yield reuse("sum2", "sum0")
    staged = sweeps.reductions[0].term.value != sweeps.tiles[0].sum  # more is done with a product to get a score
    if staged:
        yield pack("sum0", "scores", "block" if several else "r", "j")
    yield pack("scores" if staged else "sum0", "weights", "block" if several else "r", "j")
    # A block of rows: each has its own of everything, and every statement runs for all of them.
    numbers = [f"{maximum}_{name}" for name in ("before", "shift", "factor")] if several else []
    for array in (maximum, total, "sum3"):
        yield lift(array, "r")
    if several:
        yield distribute("r")
        yield reorder("block", "r")
    scores = ["sum0", *(["scores"] if staged else []), "weights"]
    for array in (*numbers, *scores):
        yield lift(array, "r", beside=True)
    yield distribute("r")
    yield pack(query.buffer, "across", beginning, depth, "r")
    if output.lane.extent % padded:
        yield pack(value.buffer, "other", "block" if several else beginning, "j", "e", "ei", "l")
    # Lanes and tiles. The last tile is computed as a whole.
    extents = {"v": vectors, "vi": across if across < vectors else 1, "w": lanes, "ji": COLUMNS, "ri": ROWS}
    extents |= {"e": -(-output.lane.extent // padded), "ei": beside, "l": lanes}
    there = [name for name, extent in extents.items() if extent > 1]
    stages = tuple(stage for stage in (BLOCKS if several else BLOCK) if staged or stage != "adjust")
    yield from _in_tiles(stages, lanes, across, vectors)
    yield overcompute(maximum, total, *numbers, *scores, "sum3", tiles=tuple(there))
    if staged:
        yield reorder("scores_j", "w")
    yield from _ordered(depth, "vi" if across < vectors else "v")
    if abs(query.index.coefficient(sweeps.tiles[0].depth)) == 1:
        yield split("across_r", lanes, "across_rt", "across_l")
        yield split(f"across_{depth}", lanes, "across_kt", "across_ki")
        yield reorder("across_rt", "across_kt", "across_ki", "across_l")
        yield transpose("across_ki", "across_l", "square")
    else:
        yield split("across_r", lanes, "across_rt", "w")
    for name in ("v", "vi", "ji", "ri", "ei"):
        if name in there:
            yield unroll(name)
    for name in ("w", "l", *(["other_l"] if output.lane.extent % padded else [])):
        yield vectorise(name)
    yield in_registers("sum0", depth, "tile")
    yield in_registers("sum3", "j", "output")
    yield in_registers(maximum, "j")
    yield in_registers(total, "j")
    yield parallelise(*outermost)


def _fitting(cut: Blocking, numbers: int) -> list[int]:
    """How many vectors a tile in registers may have, beside so many numbers: sums, a vector each, and a number."""
    return [count for count in range(1, cut.registers) if numbers * count + count < cut.registers]


# What is done for all rows of a block, in this order: of columns in blocks, and of columns in one block.
_SCORES, _OUTPUT = ("zero", "scores", "adjust", "largest"), ("weights", "sum", "scale", "output", "divide", "store")
BLOCKS = ("start", "clear", "before", *_SCORES, "correct", *_OUTPUT)
BLOCK = ("start", *_SCORES, "begin", *_OUTPUT)


def _in_tiles(stages: tuple[str, ...], lanes: int, across: int, vectors: int) -> Iterator[Rewrite]:
    """Lanes along the rows, but for those of the output; tiles of the two products."""
    along_output = ("clear", "divide", "store")
    for number, stage in reversed(list(enumerate(stages))):
        if stage in ("scale", "output"):
            yield split(f"r#{number}", ROWS, "ro", "ri")
        elif stage not in along_output:
            yield split(f"r#{number}", lanes, "u" if stage in ("adjust", "weights") else "v", "w")
    yield split("j#1", COLUMNS, "jo", "ji")
    yield split("j#0", COLUMNS, "jo", "ji")
    if across < vectors:
        for name in ("scores", "zero"):
            yield split(f"v#{stages.index(name) - stages[: stages.index(name)].count('clear')}", across, "vo", "vi")


def _ordered(depth: str, vector: str) -> Iterator[Rewrite]:
    """What is in a tile inside of what it is summed over."""
    inner = ("ji", vector, "w")
    yield reorder("jo", "vo", *inner)
    yield reorder(depth, *inner)
    yield jam("jo", "vo")
    yield reorder("j", "v", "w")
    yield reorder("weights_j", "w")
    yield reorder("ro", "e", "ri", "ei", "l")
    yield reorder("j", "ri", "ei", "l")
    yield jam("ro", "e")
