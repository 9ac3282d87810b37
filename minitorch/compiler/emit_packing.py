"""Matrix products as LLVM IR, the first half: packing blocks of the operands into memory near the core.

An operand is an expression of the loop IR, and packing it is evaluating it along the variable that it is dense along, a
vector at a time. What `gemm` calls a tile reads the result in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from .emit_values import Values
from .gemm import recognise, tiling
from .index import Index, Quotient, Remainder, Variable
from .instructions import after_load, before_store, computed_type, constant, stored_type
from .loops import Buffer, Expression, Nest, Total
from .tiles import BLOCK, transposed
from .vector_memory import POINTER, byte_size, integer

# What all parts of a kernel know: where the unit and the block of k are, and the packed blocks.
SHARED = ("first_row", "first_lane", "unit_rows", "unit_lanes", "first_k", "steps", "shift", "left", "right", "staged")


class Packing(Values):
    """A matrix product's memory, and how it is filled. `emit_gemm.Product` does the rest.

    Attributes:
        first_row, first_lane: where the unit begins.
        unit_rows, unit_lanes: how many of them it has.
        first_k, steps: where the block of k begins, and how many there are in it.
        shift: by how many rows the tile begins before its place.
        left, right, staged, tiles: memory on the stack.
    """

    first_row: Any
    first_lane: Any
    unit_rows: Any
    unit_lanes: Any
    first_k: Any
    steps: Any
    shift: Any

    def __init__(self, buffers: tuple[Buffer, ...], nest: Nest, function: Any, vector_bytes: int) -> None:
        super().__init__(buffers, nest, function, vector_bytes)
        product = recognise(nest)
        assert product is not None
        self.product, self.tiling = product, tiling(product, vector_bytes)
        self.lanes = self.tiling.lanes
        self.across_rows = True
        self.dtype = product.total.value.dtype
        self.element = stored_type(self.dtype)
        self.vector = ir.VectorType(self.element, self.lanes)
        self.zero = constant(self.dtype, 0, ir.VectorType(computed_type(self.dtype), self.lanes))
        self.width = product.lane.extent
        self.in_blocks = self.tiling.block_k < product.k.extent
        self.depth = self._whole_vectors(self.tiling.block_k)  # of the packed blocks
        self.totals_in: dict[Expression, bool] = {}  # whether an expression is computed from the sum
        self._allocate()

    def _whole_vectors(self, length: int) -> int:
        return -(-length // self.lanes) * self.lanes

    def _allocate(self) -> None:
        """Memory on the stack: the packed blocks, and the tiles that wait for the next block of k.

        Rows of packed memory lie a vector further apart than needed: at a power of two, they would compete for the same
        places in the cache.
        """
        cut = self.tiling
        row = (self.depth if cut.left_along_k else self._whole_vectors(cut.block_rows)) + self.lanes
        self.left_steps = (row, 1) if cut.left_along_k else (1, row)  # from row to row, from k to k
        if cut.packs_left:
            self.left = self._row_memory((cut.block_rows if cut.left_along_k else cut.block_k) * row, self.element)
        if cut.packs_right:
            self.right = self._row_memory(cut.block_lanes * self.depth, self.element)
        if cut.packs_right and cut.right_along_k:
            self.staged = self._row_memory(self.lanes * (self.depth + self.lanes), self.element)
        tiles = cut.block_rows * cut.block_lanes if self.in_blocks else cut.rows * cut.width
        self.tiles = self._row_memory(tiles, self.element)

    # Loops and functions --------------------------------------------------------------------------------

    def _each(self, start: Any, stop: Any, step: int, body: Callable[[Any], None]) -> None:
        """``for i in range(start, stop, step)``."""

        def turn(counter: Any, _: list[Any]) -> list[Any]:
            body(counter)
            return []

        self._loop(start, stop, step, [], turn)

    def _apart(self, name: str, body: Callable[..., None], *values: Any) -> None:
        """Emit a part of the kernel as a function of its own, and a call of it.

        Registers are given out function by function: the constants of an epilogue would take those of the accumulators.
        """
        shared = {name: self.__dict__[name] for name in SHARED if name in self.__dict__}
        batch = {variable: self.places[variable] for variable in self.product.batch}
        given = [*shared.values(), *batch.values(), *values]
        outside = dict(self.__dict__)
        table, trouble, *_ = self.function.args
        kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, *(value.type for value in given)])
        self.function = ir.Function(self.function.module, kind, f"{self.function.name}.{name}")
        self.function.linkage = "internal"
        self.builder.call(self.function, [table, trouble, *given])
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.pointers = [self._pointer(number) for number in range(len(self.buffers))]
        self.trouble = self.function.args[1]
        self.known = [{}]
        inside = iter(self.function.args[2:])
        self.__dict__ |= {name: next(inside) for name in shared}
        self.places = {variable: next(inside) for variable in batch}
        body(*inside)
        self.builder.ret_void()
        self.__dict__ |= outside

    # Packing --------------------------------------------------------------------------------------------

    def _pack_left(self) -> None:
        """left[row, k]. Tiles read single numbers of it, so its dense dimension stays the dense one."""
        product, cut = self.product, self.tiling
        rows = self._whole(self.unit_rows, cut.rows)
        step = max(self.left_steps)
        if cut.left_along_k:

            def along_k(row: Any) -> None:
                self._place(product.row, self.first_row, row, product.height)
                self._pack_run(product.k, self.first_k, self.steps, product.left, self.left, self._times(row, step))

            self._each(integer(0), rows, 1, along_k)
            return

        def along_rows(k: Any) -> None:
            assert product.row is not None
            self._place(product.k, self.first_k, k)
            self._pack_run(product.row, self.first_row, rows, product.left, self.left, self._times(k, step))

        self._each(integer(0), self.steps, 1, along_rows)

    def _pack_right(self) -> None:
        """right[k, lane], tile by tile: a tile reads all its lanes of one k, then of the next."""
        product, width = self.product, self.tiling.width

        def pack(k: Any) -> None:
            self._place(product.k, self.first_k, k)

            def tile(lane: Any) -> None:
                to = self.builder.add(self._times(lane, self.depth), self._times(k, width))
                start = self.builder.add(self.first_lane, lane)
                self._pack_run(product.lane, start, integer(width), product.right, self.right, to)

            self._each(integer(0), self.unit_lanes, width, tile)

        self._each(integer(0), self.steps, 1, pack)

    def _pack_right_along_k(self) -> None:
        """The same where right is dense along k: squares of it are read along k and turned in registers."""
        product, width, row = self.product, self.tiling.width, self.depth + self.lanes

        def pack(lane: Any) -> None:
            def stage(number: Any) -> None:
                self._place(product.lane, self.first_lane, self.builder.add(lane, number), self.width)
                self._pack_run(
                    product.k, self.first_k, self.steps, product.right, self.staged, self._times(number, row)
                )

            self._each(integer(0), integer(self.lanes), 1, stage)
            tile = self.builder.udiv(lane, integer(width))
            within = self.builder.urem(lane, integer(width))
            start = self.builder.add(self._times(tile, width * self.depth), within)

            def turn(k: Any) -> None:
                vectors = [self._get(self.staged, self.builder.add(k, integer(n * row))) for n in range(self.lanes)]
                for number, vector in enumerate(transposed(self.builder, vectors, BLOCK // byte_size(self.element))):
                    at = self._times(self.builder.add(k, integer(number)), width)
                    self._put(self.right, self.builder.add(start, at), vector)

            self._each(integer(0), self.steps, self.lanes, turn)

        self._each(integer(0), self._whole(self.unit_lanes, width), self.lanes, pack)

    def _pack_run(self, along: Variable, start: Any, count: Any, value: Expression, memory: Any, to: Any) -> None:
        """A run of elements along a variable, in whole vectors; zeros where there are none."""
        self._prepare(value, along)
        self.lane = along

        def pack(offset: Any) -> None:
            self.places[along] = self.builder.add(start, offset)
            self._put(memory, self.builder.add(to, offset), self._stored(self._vector(self._value(value))))

        def pack_present(offset: Any) -> None:
            self.mask = self._present(along, self.builder.add(start, offset))
            pack(offset)
            self.mask = None

        if self._ends_with_vectors(along):
            self._each(integer(0), count, self.lanes, pack)
        else:
            left = self._smaller(self.builder.sub(integer(along.extent), start), count)
            full = self.builder.sub(left, self.builder.srem(left, integer(self.lanes)))
            self._each(integer(0), full, self.lanes, pack)
            self._each(full, count, self.lanes, pack_present)
        self.lane = None

    def _ends_with_vectors(self, along: Variable) -> bool:
        """Whether no vector along a variable reaches beyond its end."""
        cut, product = self.tiling, self.product
        if along == product.row:
            return along.extent % math.lcm(self.lanes, cut.rows, cut.block_rows) == 0
        return along.extent % (cut.width if along == product.lane else self.lanes) == 0

    def _present(self, along: Variable, place: Any) -> Any:
        """Which lanes are inside, of a vector that begins at a place."""
        left = self._vector(self.builder.sub(integer(along.extent), place))
        return self.builder.icmp_signed("<", ir.Constant(left.type, list(range(self.lanes))), left)

    def _place(self, variable: Variable | None, start: Any, offset: Any, end: int | None = None) -> None:
        """Give a variable its value; beyond the end, where nothing is made of it, that of the last element."""
        if variable is not None:
            place = self.builder.add(start, offset)
            self.places[variable] = place if end is None else self._smaller(place, integer(end - 1))

    def _prepare(self, expression: Expression, *inner: Variable) -> None:
        """Compute what does not change with the variables of the loop that follows, nor from sum to sum."""
        pending, seen = [expression], set[Expression]()
        while pending:
            at = pending.pop()
            if at in seen:
                continue
            seen.add(at)
            if self._reads_total(at) or self._depends(at) & set(inner):
                pending += at.parts()
            else:
                self._value(at)

    def _reads_total(self, expression: Expression) -> bool:
        known = self.totals_in.get(expression)
        if known is None:
            known = isinstance(expression, Total) or any(self._reads_total(part) for part in expression.parts())
            self.totals_in[expression] = known
        return known

    def _step(self, index: Index) -> int | None:
        """As everywhere; but vectors begin at multiples of their length, so quotients may be the same for all lanes."""
        step = super()._step(index)
        if step is not None or self.lane is None or not self._begins_at_multiples(self.lane):
            return step
        step = index.coefficient(self.lane)
        for atom, factor in index.terms:
            if isinstance(atom, Variable) or super()._step(Index(((atom, 1),))) == 0:
                continue
            if not isinstance(atom, (Quotient, Remainder)) or not self._stays_within(atom.index, atom.divisor):
                return None
            step += factor * isinstance(atom, Remainder)
        return step

    def _begins_at_multiples(self, along: Variable) -> bool:
        cut = self.tiling
        block = {self.product.row: cut.block_rows, self.product.k: cut.block_k}.get(along, cut.block_lanes)
        return block % self.lanes == 0 or block >= along.extent

    def _stays_within(self, index: Index, divisor: int) -> bool:
        """Whether the lanes of an index count up by one and reach no multiple of the divisor."""
        assert self.lane is not None
        others = [(atom, factor) for atom, factor in index.terms if atom != self.lane]
        if index.coefficient(self.lane) != 1 or not all(isinstance(atom, Variable) for atom, _ in others):
            return False
        return all(number % self.lanes == 0 for number in (divisor, index.constant, *(factor for _, factor in others)))

    # Memory ---------------------------------------------------------------------------------------------

    def _times(self, value: Any, factor: int) -> Any:
        return self.builder.mul(value, integer(factor))

    def _whole(self, count: Any, step: int) -> Any:
        """A number rounded up to a multiple."""
        above = self.builder.add(count, integer(step - 1))
        return self.builder.sub(above, self.builder.urem(above, integer(step)))

    def _at(self, memory: Any, place: Any) -> Any:
        return self.builder.gep(memory, [place], source_etype=self.element)

    def _get(self, memory: Any, place: Any) -> Any:
        return self.builder.load(self._at(memory, place), typ=self.vector, align=byte_size(self.element))

    def _put(self, memory: Any, place: Any, vector: Any) -> None:
        self.builder.store(vector, self._at(memory, place), align=byte_size(self.element))

    def _loaded(self, value: Any) -> Any:
        return after_load(self.builder, value, self.dtype)

    def _stored(self, value: Any) -> Any:
        return before_store(self.builder, value, self.dtype)
