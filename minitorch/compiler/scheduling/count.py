"""Counts from loops: the elements that a kernel reads and writes, and the operations that it carries out.

Fusing recomputes: a part of a concatenation is computed for all of its elements, an operand of a product as often as it
is packed, an element of an image for every place in a filter. So the operations of a kernel may be more than those of
its nodes taken singly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...ir import PRIMITIVES
from ..fusion.cost_model import EXPENSIVE, OPERATION
from ..loop_ir.expressions import Apply, Choose, Expression, Load, Sum
from ..loop_ir.index import Index, Variable, extent_of
from ..loop_ir.loops import LoopKernel, Nest, Reduce, Write
from ..loop_ir.tree import Allocate, For, If, Local, Procedure, Store, allocated, loaded
from .contractions import attention_of, product_of
from .rewrite import Rewrite

if TYPE_CHECKING:
    from .contractions.attention import Attention
    from .contractions.gemm import Contraction


@dataclass(frozen=True)
class Packed:
    """An array that a kernel packs operands into.

    Attributes:
        name: of the array.
        size: its bytes.
        elements: how many are stored to it in a call; 0 if it is filled once, when the program is loaded.
        itemsize: bytes of one.
        fills: how often it is filled in a call.
    """

    name: str
    size: int
    elements: int
    itemsize: int
    fills: int = 0

    def times(self, elements: int) -> int:
        """Return how often `elements` different elements are packed: the array is filled for each block, and again."""
        return max(1, self.fills // -(-elements * self.itemsize // self.size))

    @property
    def per_call(self) -> int:
        """The bytes that are stored to it in a call."""
        return self.elements * self.itemsize


def packed(procedure: Procedure, schedule: Iterable[Rewrite]) -> list[Packed]:
    """Return the arrays that the rewrites `pack` of a schedule have made."""
    names = {each.arguments()["into"] for each in schedule if each.name == "pack"}
    arrays, _, body = loaded(procedure)
    found = [_packed(each, 0) for each in arrays if each.name in names]
    local = {each: 0 for each in allocated(body) if each.name in names}
    fills = dict(local)
    pending = [(each, 1) for each in body]
    while pending:
        at, times = pending.pop()
        if isinstance(at, (For, If)):
            pending += [(each, times * (at.variable.extent if isinstance(at, For) else 1)) for each in at.body]
        elif isinstance(at, Allocate) and at.local in fills:
            fills[at.local] += times
        elif isinstance(at, Store) and at.array in local and isinstance(at.array, Local):
            local[at.array] += times
    return [*found, *(_packed(each, count, fills[each]) for each, count in local.items())]


def _packed(array: Local, elements: int, fills: int = 0) -> Packed:
    return Packed(array.name, array.size * array.dtype.itemsize, elements, array.dtype.itemsize, fills)


def elements(kernel: LoopKernel) -> list[tuple[int, int]]:
    """Return, for each buffer, how many of its elements are read and how many are written, each once.

    An element that is looked up counts once per look: a table of embeddings is not read as a whole.
    """
    reads: list[dict[Index, int]] = [{} for _ in kernel.buffers]
    writes: list[dict[Index, int]] = [{} for _ in kernel.buffers]
    for nest, _, start in kernel.parts:
        for _, statement in nest.statements:
            if isinstance(statement, Write):
                writes[start + statement.buffer][statement.index] = extent_of(statement.index.variables)
            for part in statement.value.all_parts:
                if isinstance(part, Load):
                    reads[start + part.buffer][part.index] = extent_of(part.index.variables)
    sizes = [math.prod(buffer.shape) for buffer in kernel.buffers]
    return [
        (min(size, sum(read.values())), min(size, sum(written.values())))
        for size, read, written in zip(sizes, reads, writes, strict=True)
    ]


@dataclass(frozen=True)
class Operations:
    """The elements that operations are carried out on, by kind.

    Attributes:
        arithmetic: in one or several operations, each counted; comparisons included.
        special: exp, log and the like.
        choices: the elements of paddings, and those of concatenations for each part.
    """

    arithmetic: int = 0
    special: int = 0
    choices: int = 0

    def __add__(self, other: Operations) -> Operations:
        """Return the sum of both counts."""
        return Operations(
            self.arithmetic + other.arithmetic, self.special + other.special, self.choices + other.choices
        )

    @property
    def work(self) -> int:
        """Picoseconds of arithmetic, as `fusion.cost_model.work` counts those of a node."""
        return (self.arithmetic + self.choices) * OPERATION + self.special * EXPENSIVE


def operations(kernel: LoopKernel, packings: Callable[[int], Mapping[str, Packed]] | None = None) -> Operations:
    """Return the operations of a kernel, counted from its loops.

    Loop-invariant values are computed once, and values of two loops count twice. Tiles count once, skipped ones too,
    and so do the values computed from them.

    Args:
        kernel: the loops.
        packings: ``packings(number)``, the arrays that a nest packs operands into, by name; if it is a matrix product,
            operations on the operands count as often as they are packed. Without it, they count once.
    """
    found = Operations()
    for number, nest in enumerate(kernel.nests):
        found += _nest_operations(nest, packings and partial(packings, number))
    return found


def _nest_operations(nest: Nest, packings: Callable[[], Mapping[str, Packed]] | None) -> Operations:
    counter = _Operations(nest.rows)
    attention = attention_of(nest)
    if attention is not None:
        counter.add_tiles(attention, packings)
        return counter.found
    product = product_of(nest)
    for loop in nest.loops:
        if product is not None and product.total in loop.statements:
            counter.add_product(product, packings)
        else:
            counter.add(loop.columns, [each.value for each in loop.statements])
        sums = sum(isinstance(each, Reduce) for each in loop.statements)
        counter.found += Operations(sums * extent_of((*nest.rows, *loop.columns)))
    return counter.found


class _Operations:
    """The operations of a nest, for all rows."""

    def __init__(self, rows: tuple[Variable, ...]) -> None:
        self.rows = rows
        self.found = Operations()

    def add(self, columns: tuple[Variable, ...], values: list[Expression]) -> None:
        """Add the operations of values that a loop computes, each once."""
        parts = {part: None for value in values for part in value.all_parts}
        inner = {*columns, *(part.variable for part in parts if isinstance(part, Sum))}
        for part in parts:
            if isinstance(part, Sum):
                self.found += Operations(extent_of({*self.rows, *(part.value.variables & inner)}))
            self._apply(part, {*self.rows, *(part.variables & inner)})

    def add_tiles(self, attention: Attention, packings: Callable[[], Mapping[str, Packed]] | None) -> None:
        """Add the operations of attention: each tile once, and each value computed from it once."""
        from .contractions.attention import Output

        column = Variable("column", attention.columns)
        for number, tile in enumerate(attention.tiles):
            self.found += Operations(2 * extent_of((*self.rows, column, tile.column)))
            for factor, name in ((tile.across, "across"), (tile.down, "down")):
                parts = [part for part in factor.all_parts if isinstance(part, (Apply, Choose))]
                own = packings().get(f"{name}{number or ''}") if parts and packings else None
                for part in parts:
                    along = [column] if part.depends_on(tile.around[-2].variable) else []
                    along += [tile.column] if part.depends_on(tile.column) else []
                    self._apply(part, (*self.rows, *along), own.times(extent_of((*self.rows, *along))) if own else 1)
        for each in attention.totals:
            sums = 2 * each.lane.extent if isinstance(each, Output) else 1
            self.found += Operations(extent_of((*self.rows, column)) * sums)
        for term, changes in attention.terms().items():
            self._apply(term, (*self.rows, column) if changes else self.rows)

    def add_product(self, product: Contraction, packings: Callable[[], Mapping[str, Packed]] | None) -> None:
        """Add the operations of a matrix product: those on its factors for every element packed, then the product's."""
        value = product.total.value
        self._apply(value, {*self.rows, *product.ks})
        for factor in dict.fromkeys(value.parts()):
            is_right = bool(factor.variables & {*product.lanes})
            across = product.lanes if is_right else product.rows
            parts = [part for part in dict.fromkeys(factor.all_parts) if isinstance(part, (Apply, Choose))]
            times = 1
            if parts and packings is not None:
                once = extent_of((*product.batch, *across, *product.ks))
                own = packings().get("right" if is_right else "left")
                times = extent_of((*self.rows, *product.ks)) // max(1, once) if own is None else own.times(once)
            for part in parts:
                self._apply(part, {*product.batch, *across, *(part.variables & {*product.ks})}, times)

    def _apply(self, part: Expression, along: Iterable[Variable], times: int = 1) -> None:
        """Count an operation that is done a number of times for all values of some variables."""
        if isinstance(part, Choose):
            self.found += Operations(choices=times * extent_of(along))
        elif isinstance(part, Apply):
            count, known = times * extent_of(along), PRIMITIVES.get(part.primitive)
            if known is not None and known.work == "function":
                self.found += Operations(special=count)
            elif known is None or known.work != "none":
                self.found += Operations(count * (2 if part.primitive == "multiply_add" else 1))
