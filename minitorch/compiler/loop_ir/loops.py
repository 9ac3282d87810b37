"""The loop nest IR: the computation of a kernel as data. Statements, loops, nests, kernels.

An element is computed by an expression (`minitorch.compiler.loop_ir.expressions`). A nest is *printed* as Python that
runs (`source`), and scheduled and emitted as LLVM IR. Nothing here knows about graphs or about machines.

A kernel runs over *rows*, in any order and in parallel. For each row it runs its loops one after another; a loop runs
over the row's *columns* and updates accumulators, stores to memory, or to a scratch row that later loops read. A row
without columns is a plain element, so an elementwise kernel is the case of one loop without columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...dtypes import DType, float32, float64
from .expressions import Apply, Expression, Sum
from .index import Index, Shape, Variable, extent_of

Bounds = tuple[int, int]  # the least and the largest number

# The binary primitive of each reduction.
COMBINE = {"reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "maximum"}


@dataclass(frozen=True)
class Reduce:
    """A reduction: ``slot = slot op value``, with the reduction's neutral element before the first column.

    A sum of products is a chain of fused multiply-adds on processors that have them (see `factors`). This and
    `multiply_add` are the only places where a product is fused with a sum. A product that overflows alone is no
    infinity in such a sum.
    """

    slot: int
    reduction: str  # reduce_sum, reduce_max or reduce_prod
    value: Expression

    @property
    def factors(self) -> tuple[Expression, ...]:
        """The two factors of a sum of products, else None; 16-bit products are rounded first."""
        value = self.value
        is_product = isinstance(value, Apply) and value.primitive == "mul" and value.dtype in (float32, float64)
        return value.parts() if self.reduction == "reduce_sum" and is_product else ()


@dataclass(frozen=True)
class Write:
    """A store to an element of a buffer."""

    buffer: int
    index: Index
    value: Expression


@dataclass(frozen=True)
class Keep:
    """A store to an element of a scratch row."""

    slot: int
    index: Index
    value: Expression


Statement = Reduce | Write | Keep


@dataclass(frozen=True)
class Loop:
    """Statements for every column of a row; without columns, for the row itself."""

    columns: tuple[Variable, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Nest:
    """Loops over the columns, one after another, for every row.

    Attributes:
        rows: the row's variables, the outermost first.
        loops: run for each row, one after another.
        scratch: the length and type of each scratch row.
    """

    rows: tuple[Variable, ...]
    loops: tuple[Loop, ...]
    scratch: tuple[tuple[int, DType], ...] = ()

    @property
    def statements(self) -> Iterator[tuple[Loop, Statement]]:
        """All statements, with their loops."""
        for loop in self.loops:
            for statement in loop.statements:
                yield loop, statement

    @property
    def total(self) -> Reduce | None:
        """The only reduction of a nest that sums up columns first, and then stores numbers of the row; else None."""
        if self.scratch or len(self.loops) != 2:
            return None
        sums, rest = self.loops
        if not sums.columns or rest.columns or not all(isinstance(each, Write) for each in rest.statements):
            return None
        first = sums.statements[0] if len(sums.statements) == 1 else None
        return first if isinstance(first, Reduce) else None

    @property
    def has_sums(self) -> bool:
        """Whether its expressions hold contractions that are not stored."""
        return any(isinstance(part, Sum) for _, each in self.statements for part in each.value.all_parts)


@dataclass(frozen=True)
class Buffer:
    """An array that a kernel reads or writes.

    Attributes:
        shape: of the array.
        dtype: of an element.
        written: whether the kernel writes it.
        constant: whether it is the same in all calls, as a frozen weight is.
        bounds: the least and the largest number in it, where they are known and the type has others (of 8 bits).
        gives_lengths: whether it has the lengths that a call gives (`minitorch.compiler.lengths`).
    """

    shape: Shape
    dtype: DType
    written: bool
    constant: bool = False
    bounds: Bounds | None = None
    gives_lengths: bool = False


@dataclass(frozen=True)
class LoopKernel:
    """Nests, one after another, and their buffers.

    The nests of phase 0 do not depend on each other, and are shared out among the threads. Those of later phases are
    small, and run in order on the thread that finishes the last part of phase 0. So partial sums become a total, and a
    few numbers are computed from the results of a large loop, without another kernel.

    Attributes:
        name: of the function.
        buffers: the buffers of the first nest, then those of the second, and so on.
        nests: each counts its own buffers from 0.
        starts: the place of each nest's first buffer; nests that have their buffers in common start at the same place.
        phases: of each nest, ascending.
    """

    name: str
    buffers: tuple[Buffer, ...]
    nests: tuple[Nest, ...]
    starts: tuple[int, ...] = (0,)
    phases: tuple[int, ...] = (0,)

    @property
    def parts(self) -> Iterator[tuple[Nest, tuple[Buffer, ...], int]]:
        """Each nest with its own buffers and the place of the first of them."""
        for nest, start in zip(self.nests, self.starts, strict=True):
            end = min((other for other in self.starts if other > start), default=len(self.buffers))
            yield nest, self.buffers[start:end], start

    @property
    def rounds(self) -> int:
        """The number of iterations of all its loop bodies."""
        return sum(extent_of((*nest.rows, *loop.columns)) for nest in self.nests for loop in nest.loops)

    @property
    def is_run(self) -> bool:
        """Whether a nest of phase 0 has any rows."""
        firsts = (nest for nest, phase in zip(self.nests, self.phases, strict=True) if not phase)
        return any(all(row.extent for row in nest.rows) for nest in firsts)

    @property
    def looks_up(self) -> bool:
        """Whether it gathers, so that an index may be out of range."""
        return any(each.value.looks_up for nest in self.nests for _, each in nest.statements)


def neutral(reduction: str, dtype: DType) -> Any:
    """Return the neutral element of a reduction."""
    if reduction == "reduce_sum":
        return 0
    if reduction == "reduce_prod":
        return 1
    if dtype.is_floating_point:
        return -math.inf
    if dtype.name == "bool":
        return 0
    return -(1 << (8 * dtype.itemsize - 1)) if dtype.is_signed else 0
