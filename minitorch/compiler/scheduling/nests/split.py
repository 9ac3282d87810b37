"""Long reductions, cut into parts that run side by side: partial results first, then the results of those.

A sum over everything has one row, so a single thread would do all of it, and add each element to a total that has grown
large. Cut into parts it is parallel, and no total grows large beside its terms, which bounds the rounding
error as pairwise summation does (Higham 1993). Where the cuts are depends on the shapes alone: not on the threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ....dtypes import DType
from ....ir import Node, Spec
from ...loop_ir.expressions import Apply, Expression, Load, Total, computed_in, moved, rewritten
from ...loop_ir.index import NOWHERE, Index, Variable, extent_of, linear, variable
from ...loop_ir.loops import Loop, Nest, Reduce, Write
from ...target import Target
from ..contractions import product_of
from ..lanes import Layout
from . import PARTIAL

if TYPE_CHECKING:
    from ..contractions.gemm import Contraction

PARALLEL = 32  # units that are worth having: a few for each thread
LEAST = 1 << 15  # elements that are worth a unit
LEAST_PRODUCT = 1 << 20  # multiplications that are
PARTS, LEAST_SUM, LONG_SUMS = 8, 3 << 10, 8  # of a matrix product: how many, how long, and beside its height or width
LEAST_ROWS = 128  # of a matrix that is read once, in a piece: for each row of partial results, as these cost too
LONGEST = 1 << 12  # elements that one accumulator takes up


@dataclass(frozen=True)
class Split:
    """A nest in parts.

    Attributes:
        parts: they run side by side, and store partial results.
        whole: puts these together, and goes on as the nest did.
        partials: the memory between them: one buffer per reduction, after those of the nest.
    """

    parts: tuple[Nest, ...]
    whole: Nest
    partials: tuple[Node, ...]


def split(nest: Nest, buffers: int, target: Target) -> Split | None:
    """Cut a nest in parts, if its first loop is long and only reductions, and no other loop has columns."""
    if not nest.loops or not nest.loops[0].columns or any(loop.columns for loop in nest.loops[1:]) or nest.scratch:
        return None
    sums = [statement for statement in nest.loops[0].statements if isinstance(statement, Reduce)]
    chunk = _chunk(nest, target) if len(sums) == len(nest.loops[0].statements) else 0
    if not chunk:
        return None
    splitter = _Splitter(nest, sums, chunk, buffers)
    specs = [Spec((splitter.count, splitter.height), _wide(each)) for each in sums]
    return Split(splitter.parts(), splitter.whole(), tuple(Node(PARTIAL, (), {}, spec) for spec in specs))


def _chunk(nest: Nest, target: Target) -> int:
    """Return how much of the outermost column variable goes into a part; 0 for all of it."""
    columns = nest.loops[0].columns
    height, length = (extent_of(some) for some in (nest.rows, columns))
    if not height * length:
        return 0
    layout = Layout(nest, target)
    if layout.in_order:
        return 0
    product = product_of(nest)
    if product is not None:
        from ..contractions.gemm_tiling import tiling

        cut = tiling(product, target)
        count = _pieces(product, cut.units, cut.streams, target)
    else:
        each = length if layout.across_rows else length // layout.lanes  # elements that an accumulator takes up
        count = max(min(-(-PARALLEL // layout.units(nest)), height * length // LEAST), -(-each // LONGEST))
    first = columns[0].extent
    chunk = -(-first // max(count, 1))
    if product is not None:  # all of one length, if possible
        chunk = next((length for length in range(chunk, 2 * chunk) if first % length == 0), chunk)
    if len(columns) == 1 and not layout.across_rows:
        chunk = -(-chunk // layout.lanes) * layout.lanes
    return chunk if chunk < first else 0


def _pieces(product: Contraction, units: int, streams: bool, target: Target) -> int:
    """Return how many pieces a matrix product's sums are cut into, which otherwise has `units` units."""
    height, width, depth = product.height, product.width, product.depth
    work = extent_of(product.batch) * height * width * depth
    if streams and units <= PARTS:  # in pieces, which are streams too, each thread reads rows from end to end
        is_large = depth * width * product.itemsize > PARTS * target.caches[1]
        return PARTS if is_large and depth >= PARTS * LEAST_ROWS * height else 1
    # Blocks of rows or lanes pack the same more than once: where sums are long, rather pieces of them.
    units = 1 if depth >= LONG_SUMS * max(height, width) else units
    return min(PARTS // units, work // LEAST_PRODUCT, depth // LEAST_SUM)


def _wide(statement: Reduce) -> DType:
    """Return the type of partial results: of the accumulator in a register, as 16-bit floats are too coarse."""
    return computed_in(statement.value.dtype)


class _Splitter:
    """A nest being cut into parts."""

    def __init__(self, nest: Nest, sums: list[Reduce], chunk: int, buffers: int) -> None:
        self.nest = nest
        self.sums = sums
        self.chunk = chunk
        self.first, *self.inner = nest.loops[0].columns
        self.count = -(-self.first.extent // chunk)
        rows = tuple(row.extent for row in nest.rows)
        self.height = math.prod(rows)
        self.row = linear((variable(row.name, row.extent) for row in nest.rows), rows)
        self.places = range(buffers, buffers + len(sums))  # of the partial results among the buffers

    def parts(self) -> tuple[Nest, ...]:
        """Return the parts of full length, and the rest."""
        full, rest = divmod(self.first.extent, self.chunk)
        whole = (self._part(variable("p", full), full, self.chunk),)
        return (*whole, self._part(NOWHERE + full, 1, rest)) if rest else whole

    def _part(self, number: Index, count: int, length: int) -> Nest:
        change = moved({self.first: number * self.chunk + variable(self.first.name, length)})
        known: dict[Expression, Expression] = {}
        columns = ((Variable(self.first.name, length),) if length > 1 else ()) + tuple(self.inner)
        sums, stores = [], []
        for each, place in zip(self.sums, self.places, strict=True):
            sums_in = _wide(each)
            sums.append(Reduce(each.slot, each.reduction, _cast(rewritten(each.value, change, known), sums_in)))
            stores.append(Write(place, number * self.height + self.row, Total(sums_in, each.slot)))
        rows = (Variable("p", count), *self.nest.rows) if count > 1 else self.nest.rows
        return Nest(rows, (Loop(columns, tuple(sums)), Loop((), tuple(stores))))

    def whole(self) -> Nest:
        """Return the sums of the partial results, and the loops that come after."""
        index = variable("p", self.count) * self.height + self.row
        sums = [
            Reduce(each.slot, each.reduction, Load(_wide(each), place, index))
            for each, place in zip(self.sums, self.places, strict=True)
        ]
        narrow = {
            Total(each.value.dtype, each.slot): _cast(Total(_wide(each), each.slot), each.value.dtype)
            for each in self.sums
        }
        known: dict[Expression, Expression] = {}

        def change(expression: Expression) -> Expression:
            return narrow.get(expression, expression) if isinstance(expression, Total) else expression

        later = [
            Loop((), tuple(replace(each, value=rewritten(each.value, change, known)) for each in loop.statements))
            for loop in self.nest.loops[1:]
        ]
        return Nest(self.nest.rows, (Loop((Variable("p", self.count),), tuple(sums)), *later))


def _cast(value: Expression, dtype: DType) -> Expression:
    return value if value.dtype is dtype else Apply(dtype, "cast", (value,))
