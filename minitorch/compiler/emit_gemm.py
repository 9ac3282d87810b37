"""Matrix products as LLVM IR: packing, the tile in the registers, the epilogue. What is cut where is `gemm`'s business.

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

import math
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import ir

from .emit_values import Values
from .gemm import recognise, tiling
from .index import Index, Quotient, Remainder, Variable
from .instructions import (
    I64,
    PRIMITIVES,
    after_load,
    before_store,
    combine,
    computed_type,
    constant,
    stored_type,
)
from .loops import Buffer, Expression, Nest, Number, Total, walk
from .vector_memory import byte_size, integer


class Product(Values):
    """Emits one matrix product into a function."""

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

    # Units and blocks -----------------------------------------------------------------------------------

    def emit(self) -> None:
        """The whole function."""
        _, _, begin, end = self.function.args
        self._each(begin, end, 1, self._unit)
        self.builder.ret_void()

    def _each(self, start: Any, stop: Any, step: int, body: Callable[[Any], None]) -> None:
        """``for i in range(start, stop, step)``."""

        def turn(counter: Any, _: list[Any]) -> list[Any]:
            body(counter)
            return []

        self._loop(start, stop, step, [], turn)

    def _unit(self, unit: Any) -> None:
        """One block of rows by one block of lanes."""
        product, cut = self.product, self.tiling
        lengths = [(variable.extent, 1) for variable in product.batch]
        places = []
        for length, block in reversed([*lengths, (product.height, cut.block_rows), (self.width, cut.block_lanes)]):
            count = integer(-(-length // block))
            places.append(self.builder.mul(self.builder.urem(unit, count), integer(block)))
            unit = self.builder.udiv(unit, count)
        self.first_lane, self.first_row, *batch = places
        self.places |= dict(zip(reversed(product.batch), batch, strict=True))
        self.unit_rows = self._rest(product.height, self.first_row, cut.block_rows)
        self.unit_lanes = self._rest(self.width, self.first_lane, cut.block_lanes)
        if self.in_blocks:
            size = integer(cut.block_rows * cut.block_lanes)
            self._each(integer(0), size, self.lanes, lambda at: self._put(self.tiles, at, self._stored(self.zero)))
        self._each(integer(0), integer(product.k.extent), cut.block_k, self._block)

    def _rest(self, length: int, start: Any, block: int) -> Any:
        """How much of a block that begins at `start` there is."""
        if length % block == 0:
            return integer(block)
        return self._smaller(integer(block), self.builder.sub(integer(length), start))

    def _block(self, first_k: Any) -> None:
        """One block of k: packing, and all tiles of the unit."""
        cut = self.tiling
        self.first_k, self.steps = first_k, self._rest(self.product.k.extent, first_k, cut.block_k)
        if cut.packs_left:
            self._pack_left()
        if cut.packs_right:
            (self._pack_right_along_k if cut.right_along_k else self._pack_right)()

        def tiles_of_lanes(lane: Any) -> None:
            self._each(integer(0), self.unit_rows, cut.rows, lambda row: self._tile(row, lane))

        self._each(integer(0), self.unit_lanes, cut.width, tiles_of_lanes)

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
                for number, vector in enumerate(transposed(self.builder, vectors)):
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
            self.mask = self._present(along)
            self._put(memory, self.builder.add(to, offset), self._stored(self._vector(self._value(value))))
            self.mask = None

        self._each(integer(0), count, self.lanes, pack)
        self.lane = None

    def _present(self, along: Variable) -> Any:
        """Which lanes are inside, if vectors may reach beyond the end."""
        cut, product = self.tiling, self.product
        steps = {product.k: self.lanes, product.lane: cut.width}
        if along == product.row:
            steps[along] = math.lcm(self.lanes, cut.rows, cut.block_rows)
        if along.extent % steps[along] == 0:
            return None
        left = self._vector(self.builder.sub(integer(along.extent), self.places[along]))
        return self.builder.icmp_signed("<", ir.Constant(left.type, list(range(self.lanes))), left)

    def _place(self, variable: Variable | None, start: Any, offset: Any, end: int | None = None) -> None:
        """Give a variable its value; beyond the end, where nothing is made of it, that of the last element."""
        if variable is not None:
            place = self.builder.add(start, offset)
            self.places[variable] = place if end is None else self._smaller(place, integer(end - 1))

    def _prepare(self, expression: Expression, *inner: Variable) -> None:
        """Compute what does not change with the variables of the loop that follows."""
        if isinstance(expression, Number) or any(isinstance(part, Total) for part in walk(expression)):
            for part in expression.parts():
                self._prepare(part, *inner)
        elif not self._depends(expression) & set(inner):
            self._value(expression)
        else:
            for part in expression.parts():
                self._prepare(part, *inner)

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
            self._epilogue(memory, row, lane)
            return
        done = builder.icmp_signed("==", builder.add(self.first_k, self.steps), integer(self.product.k.extent))
        self._each(integer(0), builder.zext(done, I64), 1, lambda _: self._epilogue(memory, row, lane))

    def _one_k(self, row: Any, lane: Any) -> Callable[[Any, list[Any]], list[Any]]:
        """What is done for one k: all products of some numbers of the left operand and vectors of the right."""
        product, cut = self.product, self.tiling
        row_step, k_step = self.left_steps
        left = self._at(self.left, self._times(row, row_step)) if cut.packs_left else None
        right = self._at(self.right, self._times(lane, self.depth)) if cut.packs_right else None

        def vectors(k: Any) -> Iterator[Any]:
            start = self._times(k, cut.width)
            for number in range(cut.vectors):
                offset = integer(number * self.lanes)
                if right is not None:
                    yield self._loaded(self._get(right, self.builder.add(start, offset)))
                    continue
                self.lane = product.lane
                self._place(product.lane, self.first_lane, self.builder.add(lane, offset))
                self.mask = self._present(product.lane)
                yield self._fresh(product.right)
                self.lane = self.mask = None

        def numbers(k: Any) -> Iterator[Any]:
            start = self._times(k, k_step)
            for number in range(cut.rows):
                if left is not None:
                    place = self._at(left, self.builder.add(start, integer(number * row_step)))
                    yield self._loaded(self.builder.load(place, typ=self.element))
                    continue
                start = self.builder.sub(row, self.shift)
                self._place(product.row, self.first_row, self.builder.add(start, integer(number)))
                yield self._fresh(product.left)

        def body(k: Any, sums: list[Any]) -> list[Any]:
            self._place(product.k, self.first_k, k)
            across = list(vectors(k))
            result: list[Any] = []
            for number in numbers(k):
                number = self._vector(number)
                for vector in across:
                    term = PRIMITIVES["mul"](self.builder, self.dtype, number, vector)
                    result.append(combine(self.builder, "reduce_sum", self.dtype, sums[len(result)], term))
            return result

        return body

    def _fresh(self, expression: Expression) -> Any:
        """An operand's value at the places of this moment, whatever it was at others."""
        self.known.append({})
        value = self._vector(self._value(expression)) if self.lane is not None else self._value(expression)
        self.known.pop()
        return value

    def _epilogue(self, memory: Any, row: Any, lane: Any) -> None:
        """What becomes of a tile's sums, a vector at a time; the last vector may be a part."""
        builder, lanes, variable = self.builder, self.lanes, self.product.lane
        full = self.width // lanes * lanes
        start = builder.add(self.first_lane, lane)
        end = builder.add(start, integer(self.tiling.width))
        rows = self._smaller(integer(self.tiling.rows), builder.sub(self.unit_rows, row))

        def column(place: Any) -> None:
            self.lane, self.places[variable] = variable, place
            inner = () if self.product.row is None else (self.product.row,)
            for store in self.product.epilogue:
                self._prepare(store.value, *inner)

            def vector(number: Any) -> None:
                self._place(self.product.row, self.first_row, builder.add(row, number))
                at = self._times(builder.add(number, self.shift), self.tiling.width)
                at = builder.add(at, builder.sub(place, start))
                self.totals = {(self.product.total.slot, 0): self._loaded(self._get(memory, at))}
                for store in self.product.epilogue:
                    stored = before_store(builder, self._value(store.value), self.buffers[store.buffer].dtype)
                    self._write(self.pointers[store.buffer], store.index, stored)

            self._each(integer(0), rows, 1, vector)
            self.lane = None

        self._each(start, self._smaller(end, integer(full)), lanes, column)
        if full != self.width:

            def rest(_: Any) -> None:
                self.mask = self._first_lanes(self.width - full)
                column(integer(full))
                self.mask = None

            self._each(integer(0), builder.zext(builder.icmp_signed(">", end, integer(full)), I64), 1, rest)

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


def transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of a square matrix whose rows are vectors: blocks of 1, then of 2, of 4, ... change places."""
    lanes = len(rows)
    kind = ir.VectorType(ir.IntType(32), lanes)
    size = 1
    while size < lanes:
        upper = [lane - size + lanes if lane & size else lane for lane in range(lanes)]
        lower = [lane + lanes if lane & size else lane + size for lane in range(lanes)]
        for number in range(lanes):
            if not number & size:
                pair = rows[number], rows[number + size]
                rows[number] = builder.shuffle_vector(*pair, ir.Constant(kind, upper))
                rows[number + size] = builder.shuffle_vector(*pair, ir.Constant(kind, lower))
        size *= 2
    return rows
