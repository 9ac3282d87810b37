"""The schedules of attention and its gradients: FlashAttention (Dao et al., 2022), as rewrites.

A *tile* of scores, for a block of rows and a block of columns, is computed once, and all that is wanted of it is taken
from it in the cache. Scores and outputs are matrix products, with tiles in registers.

The blocks of columns pass by a block of rows in one of three ways.

- *Online*: a maximum, and all that is measured from it, are brought up to date with every block (`rewrites.online`).
- *Together*: where no total waits for another one, as in the gradients of keys and values, nothing has to be brought up
  to date.
- *Kept*: otherwise the tiles of all columns stay in the second cache until the totals that they wait for are complete.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ....errors import ScheduleError
from ...loop_ir.expressions import ALWAYS, Apply, Expression, Load, Number, Position, computed_in, rewritten
from ...loop_ir.loops import Nest
from ...loop_ir.tree import Read
from ...target import Target
from .. import rewrites as R
from ..contractions.attention import Attention, Output, Part, buffer_of, recognise
from ..rewrite import Rewrite
from . import NO_FACTS, Facts

ROWS, COLUMNS = 64, 64  # of a block, at most
LEAST_ROWS = 16  # of a block whose tiles are kept for all columns
# Numbers of a tile in registers, whose other side has as many vectors as fit. Raising it spares loads
# of vectors, until the registers that are left hold too few sums to hide the latency of their additions.
NUMBERS = 4


def attention_schedule(nest: Nest, target: Target, facts: Facts = NO_FACTS) -> tuple[Rewrite, ...]:
    """Return the rewrites for a nest with contractions that are not stored.

    Raises:
        ScheduleError: if it has another form.
    """
    found = recognise(nest)
    if isinstance(found, str):
        raise ScheduleError("MT603", found)
    return tuple(_Schedule(found, target).steps())


class _Schedule:
    """The rewrites for a nest.

    Attributes:
        rows: of a block, whole vectors.
        width: columns of a block.
        kept: whether tiles are kept for all columns, if they make several blocks.
    """

    def __init__(self, at: Attention, target: Target) -> None:
        self.at, self.registers = at, target.vector_registers
        self.lanes = target.vector_bytes // at.itemsize
        vectors = min(ROWS // self.lanes, 1 << (-(-at.row.extent // self.lanes) - 1).bit_length())
        self.several = at.columns > COLUMNS
        self.maximum = next((each for each in at.numbers if each.sum.reduction == "reduce_max"), None)
        complete = {*at.same, *([self.maximum.name] if self.maximum is not None else [])}
        waits = any(each.reads - complete for each in at.totals)
        self.kept = self.several and bool(at.numbers) and waits
        if self.kept:
            kept = len(at.tiles) * at.columns * self.lanes * at.itemsize
            while vectors * kept > target.caches[1] // 2 and vectors * self.lanes > LEAST_ROWS:
                vectors //= 2
        self.rows, self.vectors = vectors * self.lanes, vectors
        self.across = max(count for count in self._fitting(NUMBERS) if vectors % count == 0)
        columns = (NUMBERS << shift for shift in range(3))
        self.columns = max(each for each in columns if each * self.across + self.across < self.registers)
        self.width = -(-min(COLUMNS, at.columns) // self.columns) * self.columns
        self.outermost = [each.name for each in at.batch] + (["rows"] if at.row.extent > self.rows else [])
        self.beginning = self.outermost[-1] if self.outermost else ""
        self.home = "block" if self.several and not self.kept else "r"
        self.order = ("block", "j") if self.kept else ("j",)
        extents = dict.fromkeys(each.lane.extent for each in at.outputs)
        names = [("e", "ei", "l"), *((f"e{n}", f"ei{n}", f"l{n}") for n in range(1, len(extents)))]
        self.names = dict(zip(extents, names, strict=True))

    def _fitting(self, numbers: int) -> list[int]:
        """Return the vector counts that fit a tile in registers: for each vector `numbers` sums, and one number."""
        return [count for count in range(1, self.registers) if numbers * count + count < self.registers]

    def _beside(self, extent: int) -> int:
        """Return the vectors of an output's tile."""
        return min(self._fitting(NUMBERS), key=lambda count: (-(-extent // (count * self.lanes)) * count, -count))

    def _block(self, array: str) -> str:
        """Return the loop over blocks of columns that fills an array, or the loop around all columns."""
        return f"block@{array}" if self.several else self.beginning

    def steps(self) -> Iterator[Rewrite]:
        """Yield all steps."""
        yield from self.by_rows()
        yield from self.by_columns()
        yield from self.by_blocks()
        yield from self.packed()
        yield from self.in_tiles()
        if self.outermost:
            yield R.parallelise(*self.outermost)

    def by_rows(self) -> Iterator[Rewrite]:
        """Yield the steps for single rows: columns in blocks, and a sum for every lane of an output."""
        at = self.at
        yield R.split(at.row.name, self.rows, "rows", "r")
        for each in at.totals:
            yield R.split(f"{each.column.name}@{each.name}", self.width, "block", "j")
        lanes = {each.around[0]: each for each in at.outputs}
        for each in lanes.values():
            e, ei, lane = self.names[each.lane.extent]
            yield R.split(f"{each.lane.name}@{each.name}", self._beside(each.lane.extent) * self.lanes, e, "tile_lanes")
            yield R.split("tile_lanes", self.lanes, ei, lane)
        for each in at.outputs:
            yield R.lift(each.name, *self.names[each.lane.extent])
        for names in self.names.values():
            yield R.distribute(*names)
            yield R.reorder("block", "j", *names)
            yield R.hoist(*names)
        for each in at.totals:
            if each.has_factors:
                yield R.factor_out(each.name, "block" if self.several else "j")

    def by_columns(self) -> Iterator[Rewrite]:
        """Yield the steps that compute tiles of columns, and so the weights they become, once, in arrays."""
        at = self.at
        if self.several and self._have_one_mask():
            yield R.skip("block", "r")
        if self.several and not self.kept:
            if self.maximum is not None:
                yield R.online("block", self.maximum.name)
            elif len(at.totals) > 1:
                yield R.gather("block", *(each.name for each in at.totals))
        for name in at.same:
            yield R.lift(name, *self.order)
        yield R.distribute(*self.order)
        for name, first in at.same.items():
            if name != first:
                yield R.reuse(name, first)
        self.scores = at.tiles[0].name
        if self.maximum is not None and not isinstance(self.maximum.sum.value, Read):
            self.scores = "scores"
            yield R.pack(at.tiles[0].name, "scores", self.home, *self.order, prefix=False)
        self.weights = dict[str, str]()  # of each output
        common = at.exponential
        if common is not None:
            sum_, value = common
            (name, *_), known = at.tiles_of(value), at.canonical(sum_, value)
            yield R.pack(
                self.scores if name == at.tiles[0].name else name, "weights", self.home, *self.order, prefix=False
            )
            for each in at.outputs:
                if at.canonical(each, each.weight) == known:
                    self.weights[each.name] = "weights"
        for number, each in enumerate(at.outputs, common is not None):
            if each.name in self.weights:
                continue
            self.weights[each.name] = f"weights{number or ''}"
            where = self._block(each.name) if self.kept else self.home
            yield R.pack(None, self.weights[each.name], where, "j", prefix=False, of=each.name)
        if self.kept:
            yield from self._gathered()

    def _have_one_mask(self) -> bool:
        """Return whether all totals leave out terms by the same comparisons of positions, so that blocks go by."""
        masks = {
            frozenset(filter(_compares_positions, self.at.canonical(each, each.sum.value).all_parts))
            for each in self.at.totals
        }
        return len(masks) == 1 and frozenset() not in masks

    def _gathered(self) -> Iterator[Rewrite]:
        """Yield the steps that join totals waiting for the same ones."""
        groups = list[list[Part]]()
        for each in self.at.totals:
            if not groups or each.reads & {one.name for one in groups[-1]}:
                groups.append([])
            groups[-1].append(each)
        known, common = set[str](), self.at.exponential
        for group in groups:
            same = self.at.same.items()  # in their order, which that of a set is not: the code is to be found again
            names = list(dict.fromkeys(first for each in group for name, first in same if name in each.reads))
            tiles = [name for name in names if name not in known]
            known |= {*names}
            names = [each.name for each in group]
            staged = ["scores"] if self.maximum in group and self.scores == "scores" else []
            weights = ["weights"] if common is not None and common[0] in group else []
            arrays = [*tiles, *staged, *weights, *names]
            if len(arrays) > 1:
                yield R.gather("block", *arrays)

    def _all_weights(self) -> list[str]:
        """Return the arrays of weights, the common one first."""
        common = ["weights"] if self.at.exponential is not None else []
        return list(dict.fromkeys((*common, *self.weights.values())))

    def _is_last(self, stored: tuple[Part, Expression] | None) -> bool:
        """Return whether a value stored alone is all that is computed from the first tile."""
        at, tile = self.at, self.at.tiles[0]
        if stored is None or stored[1].dtype != tile.sum.value.dtype:
            return False
        known, nothing = at.canonical(*stored), Number(stored[1].dtype, 0.0, "0")
        parts = [each for each in at.totals if each != self.maximum]
        values = (at.canonical(each, each.weight if isinstance(each, Output) else each.term) for each in parts)
        left = (rewritten(value, lambda part: nothing if part == known else part, {}) for value in values)
        return not any(tile.name in at.tiles_of(value) for value in left)

    def by_blocks(self) -> Iterator[Rewrite]:
        """Yield the steps for blocks of rows: each has its own arrays, and every statement runs for all its rows."""
        at = self.at
        own = [each.name for each in at.tiles] + (["scores"] if self.scores == "scores" else [])
        weights = self._all_weights()
        near = [*own, *weights]
        for each in at.totals:
            yield R.lift(each.name, "r")
        self.corrections = (
            [f"{self.maximum.name}_{name}" for name in ("before", "shift", "factor")]
            if (self.maximum is not None and self.several and not self.kept)
            else []
        )
        outer = [*own, *weights[: at.exponential is not None]] if self.kept else [] if self.several else near
        inner = [*self.corrections, *(name for name in near if name not in outer)]
        for name in outer:
            yield R.lift(name, "r", beside=True)
        yield R.distribute("r")
        if self.several:
            yield R.reorder("block", "r")
            for name in inner:
                yield R.lift(name, "r", beside=True)
            if inner or self.kept:
                yield R.distribute("r")

    def packed(self) -> Iterator[Rewrite]:
        """Yield the steps that pack operands in the order of their use."""
        at = self.at
        self.vectorised, self.turned = ["w"], list[tuple[str, str]]()
        for number, tile in enumerate(at.tiles):
            depth, into = tile.column.name, f"across{number or ''}"
            yield R.pack(buffer_of(tile.across), into, self.beginning, depth, "r")
            loads = [part for part in tile.across.all_parts if isinstance(part, Load)]
            if any(abs(part.index.coefficient(tile.column)) == 1 for part in loads):
                yield R.split(f"{into}_r", self.lanes, f"{into}_rt", f"{into}_l")
                yield R.split(f"{into}_{depth}", self.lanes, f"{into}_kt", f"{into}_ki")
                yield R.reorder(f"{into}_rt", f"{into}_kt", f"{into}_ki", f"{into}_l")
                read, write = (f"{into}_l", f"{into}_ki"), (f"{into}_ki", f"{into}_l")
                yield R.regroup(f"{into}_square", self.lanes, read, write)
            else:
                yield R.split(f"{into}_r", self.lanes, f"{into}_rt", "w")
            if not _is_in_place(tile.down):
                into = f"down{number or ''}"
                yield R.pack(buffer_of(tile.down), into, self._block(tile.name), "j", depth)
                yield R.split(f"{into}_{depth}", self.lanes, f"{into}_kt", f"{into}_l")
                self.vectorised.append(f"{into}_l")
        packed = set()  # matrices that two outputs read in one order are packed once
        for number, each in enumerate(at.outputs):
            names, into = self.names[each.lane.extent], f"other{number or ''}"
            whole = each.lane.extent % (self._beside(each.lane.extent) * self.lanes) == 0
            dense = isinstance(each.other, Load) and each.other.index.coefficient(each.lane) == 1
            terms = each.other.index.terms if isinstance(each.other, Load) else ()
            order = frozenset((None if one == each.lane else one, by) for one, by in terms), names
            if (buffer_of(each.other), order) in packed:
                continue
            if not (_is_in_place(each.other) and whole and dense):
                packed.add((buffer_of(each.other), order))
                yield R.pack(buffer_of(each.other), into, self._block(each.name), "j", *names)
                self.vectorised.append(f"{into}_{names[2]}")

    def in_tiles(self) -> Iterator[Rewrite]:
        """Yield the steps that put lanes along the rows, but for those of outputs, and make tiles of the products."""
        at, weights = self.at, self._all_weights()
        tiles, outputs = [each.name for each in at.tiles], [each.name for each in at.outputs]
        numbers = [*(each.name for each in at.numbers), *self.corrections]
        staged = ["scores"] if self.scores == "scores" else []
        yield R.split(f"r@{','.join([*staged, *weights])}", self.lanes, "u", "w")
        yield R.split(f"r@{','.join([*tiles, *numbers, *at.stored])}", self.lanes, "v", "w")
        yield R.split(f"r@{','.join(outputs)}", math.gcd(NUMBERS, self.rows), "ro", "ri")
        yield R.split(f"j@{','.join(tiles)}", self.columns, "jo", "ji")
        vector = "vi" if self.across < self.vectors else "v"
        if self.across < self.vectors:
            yield R.split(f"v@{','.join(tiles)}", self.across, "vo", "vi")
        parts = ["v", "vi", "w", "ji", "ri", *(name for names in self.names.values() for name in names)]
        arrays = [*tiles, *numbers, *staged, *weights, *outputs]
        yield R.overcompute(*arrays, tiles=tuple(parts))
        inner = ("ji", vector, "w")
        yield R.reorder("jo", "vo", *inner)
        for depth in dict.fromkeys(each.column.name for each in at.tiles):
            yield R.reorder(depth, *inner)
        for name in tiles:
            if self.width > self.columns:
                yield R.gather("jo", name)
        yield R.jam("vo")
        yield R.reorder("j", "v", "w")
        yield R.reorder("u", "j", "w")
        if len(weights) > 1 and not at.numbers:
            yield R.gather("u" if self.vectors > 1 else "j", *weights)
            yield R.jam("j", "w")
        for e, ei, lane in self.names.values():
            yield R.reorder("ro", e, "ri", ei, lane)
            yield R.reorder("j", "ri", ei, lane)
        for e, *_ in self.names.values():
            yield R.jam("ro", e)
        for name in ("v", "vi", "ji", "ri", *(names[1] for names in self.names.values())):
            yield R.unroll(name)
        for name in (*self.vectorised, *(names[2] for names in self.names.values())):
            yield R.vectorise(name)
        if staged and self.maximum is not None and self._is_last((self.maximum, self.maximum.term)):
            yield R.overlay("scores", tiles[0])
        if self._is_last(at.exponential):
            yield R.overlay("weights", tiles[0])
        for tile in at.tiles:
            yield R.in_registers(tile.name, tile.column.name, f"{tile.name}_tile")
        for name in outputs:
            yield R.in_registers(name, f"j@{name}", f"{name}_tile")
        for each in at.numbers:
            yield R.in_registers(each.name, f"j@{each.name}", f"{each.name}_tile")


def _is_in_place(value: Expression) -> bool:
    """Return whether an operand lies in memory in the form in which it is used."""
    if not isinstance(value, Load) or value.inside != ALWAYS or value.dtype != computed_in(value.dtype):
        return False
    return value.index.is_affine


def _compares_positions(part: Expression) -> bool:
    return isinstance(part, Apply) and sum(isinstance(each, Position) for each in part.arguments) == 2
