"""How a nest is laid out on vectors: along which variable the lanes run, and how the rows are cut into units."""

from __future__ import annotations

import math

from .blocking import blocking
from .gemm import recognise, tiling
from .index import Variable
from .loops import Expression, Load, LoopKernel, Nest, walk
from .sweeps import recognise as sweeps_of

ABREAST = 4  # vectors of rows that go through the columns together
LONG_RUN = 64  # vectors that an elementwise unit runs through


class Layout:
    """Which variable the lanes run along, and how many there are."""

    def __init__(self, nest: Nest, vector_bytes: int) -> None:
        self.lanes = vector_bytes // _widest(nest)
        columns = [loop.columns[-1] for loop in nest.loops if loop.columns]
        row = nest.rows[-1] if nest.rows else None
        self.across_rows = not columns or (row is not None and self._rows_are_dense(nest, columns[0], row))
        # With the lanes across rows, the columns are gone through for several vectors of rows at a time, so that
        # each visit to a line of memory uses all of it, and the next.
        self.abreast = 1
        self.chunk = 1  # vectors in a unit
        self.blocks = 1  # units along the last row variable
        if self.across_rows and row is not None:
            vectors = -(-row.extent // self.lanes)
            self.abreast = ABREAST if columns and vectors >= ABREAST else 1
            self.chunk = max(1, min(vectors, self.abreast if columns else LONG_RUN))
            self.blocks = -(-vectors // self.chunk)

    def scratch_bytes(self, nest: Nest) -> int:
        """What the scratch rows of one unit take."""
        width = self.lanes * self.abreast if self.across_rows else 1
        return sum(length * dtype.itemsize for length, dtype in nest.scratch) * width

    def _rows_are_dense(self, nest: Nest, column: Variable, row: Variable) -> bool:
        """Whether memory is read along the rows rather than along the columns."""
        if row.extent < self.lanes:
            return False
        along_columns = along_rows = 0
        for loop, statement in nest.statements:
            if loop.columns:
                for load in _loads(statement.value):
                    along_columns += load.index.coefficient(column) == 1
                    along_rows += load.index.coefficient(row) == 1
        return along_rows > along_columns


def _loads(expression: Expression) -> list[Load]:
    return [part for part in walk(expression) if isinstance(part, Load)]


def _widest(nest: Nest) -> int:
    """Bytes per lane: those of the widest float that is computed with, 4 at least."""
    sizes = [4]
    for _, statement in nest.statements:
        sizes += [part.dtype.itemsize for part in walk(statement.value) if part.dtype.is_floating_point]
    return max(sizes)


def units(kernel: LoopKernel, vector_bytes: int) -> int:
    """How many parts the rows of a kernel fall into: the range that `begin` and `end` are taken from."""
    return sum(
        nest_units(nest, vector_bytes) for nest, phase in zip(kernel.nests, kernel.phases, strict=True) if not phase
    )


def nest_units(nest: Nest, vector_bytes: int) -> int:
    """The parts of one nest."""
    total = math.prod(row.extent for row in nest.rows)
    if not total:
        return 0
    sweeps = sweeps_of(nest)
    if sweeps is not None:
        return blocking(sweeps, vector_bytes).units
    product = recognise(nest)
    if product is not None:
        return tiling(product, vector_bytes).units
    layout = Layout(nest, vector_bytes)
    if layout.across_rows and nest.rows:
        return total // nest.rows[-1].extent * layout.blocks
    return total
