"""Counts from loops: the elements that a kernel reads and writes, and the operations that it carries out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ...graph.cost import FREE, TRANSCENDENTAL
from ..loop_ir.expressions import Apply, Expression, Inside, Load, Position, Scratch, Sum
from ..loop_ir.index import Index, Looked, Quotient, Remainder, Variable
from ..loop_ir.loops import LoopKernel, Nest, Reduce, Write
from ..loop_ir.tree import For, If, Local, Procedure, Store, allocated, loaded
from .contractions import gemm
from .contractions.attention import Attention, Output, recognise
from .rewrite import Rewrite


@dataclass(frozen=True)
class Packed:
    """An array that a kernel packs operands into.

    Attributes:
        name: of the array.
        size: its bytes.
        per_call: the bytes that are stored to it in a call; 0 if it is filled once, when the program is loaded.
    """

    name: str
    size: int
    per_call: int


def packed(procedure: Procedure, schedule: Iterable[Rewrite]) -> list[Packed]:
    """The arrays that the rewrites `pack` of a schedule have made."""
    names = {each.arguments()["into"] for each in schedule if each.name == "pack"}
    arrays, _, body = loaded(procedure)
    found = [Packed(each.name, each.size * each.dtype.itemsize, 0) for each in arrays if each.name in names]
    local = {each: 0 for each in allocated(body) if each.name in names}
    pending = [(each, 1) for each in body]
    while pending:
        at, times = pending.pop()
        if isinstance(at, (For, If)):
            pending += [(each, times * (at.variable.extent if isinstance(at, For) else 1)) for each in at.body]
        elif isinstance(at, Store) and at.array in local and isinstance(at.array, Local):
            local[at.array] += times * at.array.dtype.itemsize
    return [*found, *(Packed(each.name, each.size * each.dtype.itemsize, count) for each, count in local.items())]


class _Variables:
    """On which loop variables expressions and indices depend; each expression is looked at once."""

    def __init__(self) -> None:
        self._known: dict[Expression, frozenset[Variable]] = {}

    def of_index(self, index: Index) -> frozenset[Variable]:
        """The variables that an index mentions."""
        found: set[Variable] = set()
        for atom, _ in index.terms:
            if isinstance(atom, Variable):
                found.add(atom)
            elif isinstance(atom, Looked):
                found |= self.of(atom.value)
            elif isinstance(atom, (Quotient, Remainder)):
                found |= self.of_index(atom.index)
        return frozenset(found)

    def of(self, expression: Expression) -> frozenset[Variable]:
        """The variables that a value changes with."""
        found = self._known.get(expression)
        if found is None:
            own: set[Variable] = set()
            if isinstance(expression, (Load, Scratch, Position)):
                own |= self.of_index(expression.index)
            inside = getattr(expression, "inside", Inside())
            for _, index, _ in inside.bounds:
                own |= self.of_index(index)
            for part in expression.parts():
                own |= self.of(part)
            if isinstance(expression, Sum):
                own.discard(expression.variable)
            found = self._known[expression] = frozenset(own)
        return found


def _times(variables: Iterable[Variable]) -> int:
    return math.prod(variable.extent for variable in variables)


def elements(kernel: LoopKernel) -> list[tuple[int, int]]:
    """For each buffer, how many of its elements are read and how many are written, each once.

    An element that is looked up counts once per look: a table of embeddings is not read as a whole.
    """
    reads: list[dict[Index, int]] = [{} for _ in kernel.buffers]
    writes: list[dict[Index, int]] = [{} for _ in kernel.buffers]
    for nest, _, start in kernel.parts:
        variables = _Variables()
        for _, statement in nest.statements:
            if isinstance(statement, Write):
                writes[start + statement.buffer][statement.index] = _times(variables.of_index(statement.index))
            for part in statement.value.all_parts:
                if isinstance(part, Load):
                    reads[start + part.buffer][part.index] = _times(variables.of_index(part.index))
    sizes = [math.prod(buffer.shape) for buffer in kernel.buffers]
    return [
        (min(size, sum(read.values())), min(size, sum(written.values())))
        for size, read, written in zip(sizes, reads, writes, strict=True)
    ]


def operations(kernel: LoopKernel) -> tuple[int, int]:
    """How many elements arithmetic is done on, and how many exp, log and the like are taken of.

    Counted as in `minitorch.graph.cost`, but from the loops: what does not change along a loop is computed once, and
    what two loops compute counts twice. Tiles count once, those that are passed over too, and so does what is computed
    of them. What is done with the operands of a matrix product counts once for each element: they are packed.
    """
    counts = [_nest_operations(nest) for nest in kernel.nests]
    return sum(arithmetic for arithmetic, _ in counts), sum(special for _, special in counts)


def _nest_operations(nest: Nest) -> tuple[int, int]:
    counter = _Operations(nest.rows)
    attention = recognise(nest)
    if attention is not None:
        counter.add_tiles(attention)
        return counter.arithmetic, counter.special
    product = gemm.recognise(nest)
    for loop in nest.loops:
        if product is not None and product.total in loop.statements:
            counter.add_product(product)
        else:
            counter.add(loop.columns, [each.value for each in loop.statements])
        counter.arithmetic += sum(
            _times((*nest.rows, *loop.columns)) for each in loop.statements if isinstance(each, Reduce)
        )
    return counter.arithmetic, counter.special


class _Operations:
    """The operations of a nest, for all rows."""

    def __init__(self, rows: tuple[Variable, ...]) -> None:
        self.rows = rows
        self.variables = _Variables()
        self.arithmetic = self.special = 0

    def add(self, columns: tuple[Variable, ...], values: list[Expression]) -> None:
        """The operations of values that a loop computes, each once."""
        parts = {part: None for value in values for part in value.all_parts}
        inner = {*columns, *(part.variable for part in parts if isinstance(part, Sum))}
        for part in parts:
            if isinstance(part, Sum):
                self.arithmetic += _times({*self.rows, *(self.variables.of(part.value) & inner)})
            self._apply(part, {*self.rows, *(self.variables.of(part) & inner)})

    def add_tiles(self, attention: Attention) -> None:
        """The operations of attention: each tile once, and once what is computed of it."""
        column = Variable("column", attention.columns)
        for tile in attention.tiles:
            self.arithmetic += 2 * _times((*self.rows, column, tile.column))
            for part in dict.fromkeys((*tile.across.all_parts, *tile.down.all_parts)):
                along = [column] if part.depends_on(tile.around[-2].variable) else []
                self._apply(part, (*self.rows, *along, *([tile.column] if part.depends_on(tile.column) else [])))
        for each in attention.totals:
            self.arithmetic += _times((*self.rows, column)) * (2 * each.lane.extent if isinstance(each, Output) else 1)
        for part, changes in attention.terms().items():
            self._apply(part, (*self.rows, column) if changes else self.rows)

    def add_product(self, product: gemm.Contraction) -> None:
        """The operations of a matrix product: those on its factors for every element of them, then the product's."""
        value = product.total.value
        self._apply(value, {*self.rows, *product.ks})
        for factor in dict.fromkeys(value.parts()):
            across = product.lanes if self.variables.of(factor) & {*product.lanes} else product.rows
            for part in dict.fromkeys(factor.all_parts):
                self._apply(part, {*product.batch, *across, *(self.variables.of(part) & {*product.ks})})

    def _apply(self, part: Expression, along: Iterable[Variable]) -> None:
        """An operation that is done for all values of some variables."""
        if isinstance(part, Apply) and part.primitive not in FREE:
            if part.primitive in TRANSCENDENTAL:
                self.special += _times(along)
            else:
                self.arithmetic += _times(along) * (2 if part.primitive == "multiply_add" else 1)
