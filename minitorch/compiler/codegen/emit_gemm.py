"""Matrix products as LLVM IR: the loops over blocks and tiles, and what is done with a tile.

For every unit, which is one block of rows by one block of lanes::

    for every block of k:
        pack a block of the left operand and one of the right
        for every tile:
            accumulators = the tile so far
            for k in the block:
                accumulators += left[row, k] * right[k, lane]
            store the tile
            after the last block: the epilogue, for every vector of the tile

Operands and epilogue are the expressions of the loop IR, evaluated where they are needed by `Values`, a vector at a
time. An operand that is not packed is evaluated in the innermost loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import ir

from ..loop_ir.expressions import Expression
from ..loop_ir.loops import Buffer, Nest
from ..target import Target
from .emit_packing import Packing, Span
from .instructions import I64, before_store, computed_type, constant, multiply_add
from .vector_memory import integer


class Product(Packing):
    """Emits one matrix product into a function."""

    def __init__(self, buffers: tuple[Buffer, ...], nest: Nest, function: Any, target: Target) -> None:
        super().__init__(buffers, nest, function, target)
        cut = self.tiling
        self.zero = constant(self.dtype, 0, ir.VectorType(computed_type(self.dtype), self.lanes))
        self.in_blocks = cut.block_k < self.product.depth
        # Tiles that wait for the next block of k; or the one that is complete.
        tiles = cut.block_rows * cut.block_lanes if self.in_blocks else cut.rows * cut.width
        self.tiles = self._row_memory(tiles, self.element)

    # Units and blocks -----------------------------------------------------------------------------------

    def emit(self) -> None:
        """The whole function."""
        _, _, begin, end = self.function.args
        self._each(begin, end, 1, self._unit)
        self.builder.ret_void()

    def _unit(self, unit: Any) -> None:
        """One block of rows by one block of lanes."""
        product, cut = self.product, self.tiling
        lengths = [(variable.extent, 1) for variable in product.batch]
        places = []
        for length, block in reversed([*lengths, (product.height, cut.block_rows), (product.width, cut.block_lanes)]):
            count = integer(-(-length // block))
            places.append(self.builder.mul(self.builder.urem(unit, count), integer(block)))
            unit = self.builder.udiv(unit, count)
        self.first_lane, self.first_row, *batch = places
        self.places |= dict(zip(reversed(product.batch), batch, strict=True))
        self.unit_rows = self._rest(product.height, self.first_row, cut.block_rows)
        self.unit_lanes = self._rest(product.width, self.first_lane, cut.block_lanes)
        if self.in_blocks:
            size = integer(cut.block_rows * cut.block_lanes)
            self._each(integer(0), size, self.lanes, lambda at: self._put(self.tiles, at, self._stored(self.zero)))
        self._each(integer(0), integer(product.depth), cut.block_k, self._block)

    def _rest(self, length: int, start: Any, block: int) -> Any:
        """How much of a block that begins at `start` there is."""
        if length % block == 0:
            return integer(block)
        return self._smaller(integer(block), self.builder.sub(integer(length), start))

    def _block(self, first_k: Any) -> None:
        """One block of k: packing, and all tiles of the unit."""
        cut = self.tiling
        self.first_k, self.steps = first_k, self._rest(self.product.depth, first_k, cut.block_k)
        if cut.packs_left:
            self._apart("pack_left", self._pack_left)
        if cut.packs_right:
            self._apart("pack_right", self._pack_right)

        def tiles_of_lanes(lane: Any) -> None:
            self._each(integer(0), self.unit_rows, cut.rows, lambda row: self._tile(row, lane))

        self._each(integer(0), self.unit_lanes, cut.width, tiles_of_lanes)

    # Tiles ----------------------------------------------------------------------------------------------

    def _tile(self, row: Any, lane: Any) -> None:
        """One tile for one block of k, and the epilogue if it is the last."""
        builder, cut, product = self.builder, self.tiling, self.product
        memory, self.shift = self.tiles, integer(0)
        if product.height % cut.rows and not cut.packs_left:
            # The last tile ends with the last row; those that it has in common with the one before are not used.
            beyond = builder.sub(builder.add(self.first_row, row), integer(product.height - cut.rows))
            self.shift = builder.select(builder.icmp_signed(">", beyond, integer(0)), beyond, integer(0))
        if self.in_blocks:
            memory = self._at(memory, builder.add(self._times(lane, cut.block_rows), self._times(row, cut.width)))
        places = [integer(row * cut.width + v * self.lanes) for row in range(cut.rows) for v in range(cut.vectors)]
        sums = [self._loaded(self._get(memory, at)) if self.in_blocks else self.zero for at in places]
        sums = self._loop(integer(0), self.steps, 1, sums, self._one_k(row, lane))
        for at, total in zip(places, sums, strict=True):
            self._put(memory, at, self._stored(total))
        if not self.in_blocks:
            self._apart("epilogue", self._epilogue, memory, row, lane)
            return
        done = builder.icmp_signed("==", builder.add(self.first_k, self.steps), integer(self.product.depth))
        rounds = builder.zext(done, I64)
        self._each(integer(0), rounds, 1, lambda _: self._apart("epilogue", self._epilogue, memory, row, lane))

    def _one_k(self, row: Any, lane: Any) -> Callable[[Any, list[Any]], list[Any]]:
        """What is done for one k: all products of some numbers of the left operand and vectors of the right."""
        product, cut = self.product, self.tiling
        (row_step, k_step), (lane_step, width) = self.left_steps, self.right_steps
        left = self._at(self.left, self._times(row, row_step)) if cut.packs_left else None
        right = self._at(self.right, self._times(lane, lane_step)) if cut.packs_right else None

        def vectors(k: Any) -> Iterator[Any]:
            start = self._times(k, width)
            own = Span(product.right.across, None, None, cut.block_lanes, cut.width)
            for number in range(cut.vectors):
                offset = integer(number * self.lanes)
                if right is not None:
                    yield self._loaded(self._get(right, self.builder.add(start, offset)))
                    continue
                (self.lane,) = own.variables
                place = self.places[self.lane] = self.builder.add(self.first_lane, self.builder.add(lane, offset))
                self.mask = None if own.fills_vectors else self._present(self.lane, place)
                yield self._fresh(product.right.value)
                self.lane = self.mask = None

        def numbers(k: Any) -> Iterator[Any]:
            start = self._times(k, k_step)
            for number in range(cut.rows):
                if left is not None:
                    place = self._at(left, self.builder.add(start, integer(number * row_step)))
                    yield self._loaded(self.builder.load(place, typ=self.element))
                    continue
                place = self.builder.add(self.builder.sub(row, self.shift), integer(number))
                self._place(product.left.across, self.builder.add(self.first_row, place))
                yield self._fresh(product.left.value)

        def body(k: Any, sums: list[Any]) -> list[Any]:
            for operand, packed in ((product.left, left), (product.right, right)):
                if packed is None:
                    self._place(operand.ks, self.builder.add(self.first_k, k))
            across = list(vectors(k))
            result: list[Any] = []
            for number in numbers(k):
                number = self._vector(number)
                for vector in across:
                    result.append(multiply_add(self.builder, self.dtype, number, vector, sums[len(result)]))
            return result

        return body

    def _fresh(self, expression: Expression) -> Any:
        """An operand's value at the places of this moment, whatever it was at others."""
        self.known.append({})
        value = self._vector(self._value(expression)) if self.lane is not None else self._value(expression)
        self.known.pop()
        return value

    def _epilogue(self, memory: Any, row: Any, lane: Any) -> None:
        """What becomes of a tile's sums, a vector at a time; the last vector of a run may be a part."""
        builder, product, lanes = self.builder, self.product, self.lanes
        along = product.store_lanes[-1]
        rows = self._smaller(integer(self.tiling.rows), builder.sub(self.unit_rows, row))
        width = self._smaller(integer(self.tiling.width), builder.sub(self.unit_lanes, lane))

        def column(start: Any, offset: Any, before: Any) -> None:
            self.lane, self.places[along] = along, builder.add(start, offset)
            for store in product.epilogue:
                self._prepare(store.value, *product.store_rows)

            def vector(number: Any) -> None:
                self._place(product.store_rows, builder.add(self.first_row, builder.add(row, number)))
                at = self._times(builder.add(number, self.shift), self.tiling.width)
                at = builder.add(at, builder.add(before, offset))
                self.totals = {(product.total.slot, 0): self._loaded(self._get(memory, at))}
                for store in product.epilogue:
                    stored = before_store(builder, self._value(store.value), self.buffers[store.buffer].dtype)
                    self._write(self.pointers[store.buffer], store.index, stored)

            self._each(integer(0), rows, 1, vector)
            self.lane = None

        def run(start: Any, count: Any, before: Any) -> None:
            rest = builder.urem(count, integer(lanes))
            full = builder.sub(count, rest)
            self._each(integer(0), full, lanes, lambda offset: column(start, offset, before))
            is_known = len(product.store_lanes) == 1
            if is_known and along.extent % lanes == 0:
                return

            def part(_: Any) -> None:
                self.mask = self._first_lanes(along.extent % lanes) if is_known else self._lanes_before(rest)
                column(start, full, before)
                self.mask = None

            self._each(integer(0), builder.zext(builder.icmp_signed(">", rest, integer(0)), I64), 1, part)

        self._runs(Span(product.store_lanes, builder.add(self.first_lane, lane), width, 1), run)

    def _lanes_before(self, count: Any) -> Any:
        """The mask of so many lanes, a number that is known when it runs."""
        end = self._vector(count)
        return self.builder.icmp_signed("<", ir.Constant(end.type, list(range(self.lanes))), end)
