"""Packing of a matrix product's operands: copied into the order in which tiles read them, whatever they are made of.

An operand is packed along *runs*: elements that follow each other both in memory and in the packed block. A matrix is
one run per row. The windows of a convolution are one run for each row of the image, shifted for every place in the
filter: whole vectors, with lanes left out where the filter hangs over the edge. A vector at the end of a run may write
over the beginning of the next, which is packed after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from ..loop_ir.expressions import ALWAYS, Choose, Expression, Load, Total, walk
from ..loop_ir.index import Index, Quotient, Remainder, Variable
from ..loop_ir.loops import Buffer, Nest
from ..scheduling.contractions.gemm import extent, recognise
from ..scheduling.contractions.gemm_tiling import tiling
from ..target import Target
from .builder import Builder
from .emit_values import Values
from .instructions import after_load, before_store, stored_type
from .tiles import BLOCK, transposed
from .vector_memory import POINTER, byte_size, integer


@dataclass
class Span:
    """A part of an operand's rows, lanes or k.

    Attributes:
        variables: that run through it, the outermost first.
        start, count: where they begin together, and how many there are.
        block: parts begin at multiples of this.
        step: vectors, or groups of them, begin at multiples of this.
    """

    variables: Sequence[Variable]
    start: Any
    count: Any
    block: int
    step: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether all variables but the outermost take all their values."""
        inner = extent(self.variables[1:])
        return self.block % inner == 0 or self.block >= extent(self.variables)

    @property
    def fills_vectors(self) -> bool:
        """Whether no vector reaches beyond the last value of the innermost variable."""
        begins = self.block % self.step == 0 or self.block >= extent(self.variables)
        return begins and self.variables[-1].extent % self.step == 0


# What all parts of a kernel know: where the unit and the block of k are, and the packed blocks.
SHARED = ("first_row", "first_lane", "unit_rows", "unit_lanes", "first_k", "steps", "shift", "left", "right", "staged")


class Packing(Values):
    """A matrix product's memory, and how it is filled. `emit_gemm.Product` does the rest.

    Attributes:
        first_row, first_lane: where the unit begins.
        unit_rows, unit_lanes: how many of them it has.
        first_k, steps: where the block of k begins, and how many there are in it.
        shift: by how many rows the tile begins before its place.
        left, right, staged: memory on the stack.
    """

    first_row: Any
    first_lane: Any
    unit_rows: Any
    unit_lanes: Any
    first_k: Any
    steps: Any
    shift: Any

    def __init__(self, buffers: tuple[Buffer, ...], nest: Nest, function: Any, target: Target) -> None:
        super().__init__(buffers, nest, function, target)
        product = recognise(nest)
        assert product is not None
        self.product, self.tiling = product, tiling(product, target)
        self.lanes = self.tiling.lanes
        self.across_rows = True
        self.dtype = product.total.value.dtype
        self.element = stored_type(self.dtype, target)
        self.vector = ir.VectorType(self.element, self.lanes)
        operands = product.left, product.right
        self.everything |= {*product.store_rows, *product.store_lanes}
        self.everything |= {each for operand in operands for each in (*operand.across, *operand.ks)}
        self.totals_in: dict[Expression, bool] = {}  # whether an expression is computed from the sum
        self._allocate()

    def _allocate(self) -> None:
        """Memory on the stack for the packed blocks.

        Rows of packed memory lie a vector further apart than needed: at a power of two, they would compete for the same
        places in the cache. Where the lanes are runs, the right block is one piece; else each tile is one.
        """
        cut, right = self.tiling, self.product.right
        self.depth = self._whole_vectors(cut.block_k)
        row = (self.depth if cut.left_along_k else self._whole_vectors(cut.block_rows)) + self.lanes
        self.left_steps = (row, 1) if cut.left_along_k else (1, row)
        if cut.packs_left:
            self.left = self._row_memory((cut.block_rows if cut.left_along_k else cut.block_k) * row, self.element)
        in_tiles = cut.right_along_k or len(right.across) == 1
        self.right_steps = (self.depth, cut.width) if in_tiles else (1, cut.block_lanes + self.lanes)
        if cut.packs_right:
            size = cut.block_lanes * self.depth if in_tiles else cut.block_k * self.right_steps[1]
            self.right = self._row_memory(size, self.element)
        if cut.packs_right and cut.right_along_k:
            self.staged = self._row_memory(self.lanes * (self.depth + self.lanes), self.element)

    def _whole_vectors(self, length: int) -> int:
        return -(-length // self.lanes) * self.lanes

    # Loops ----------------------------------------------------------------------------------------------

    def _each(self, start: Any, stop: Any, step: int, body: Callable[[Any], None]) -> None:
        """``for i in range(start, stop, step)``."""

        def turn(counter: Any, _: list[Any]) -> list[Any]:
            body(counter)
            return []

        self._loop(start, stop, step, [], turn)

    def _place(self, variables: Sequence[Variable], position: Any) -> None:
        """Give some variables their values where they have come so far together."""
        for number, each in enumerate(reversed(variables), 1):
            if number == len(variables):
                self.places[each] = position
            else:
                self.places[each] = self.builder.urem(position, integer(each.extent))
                position = self.builder.udiv(position, integer(each.extent))

    def _runs(self, span: Span, body: Callable[[Any, Any, Any], None]) -> None:
        """Go through the runs of the last variable: ``body(its first value, how many, how many were before)``."""
        if len(span.variables) < 2:
            body(span.start, span.count, integer(0))
            return
        *outer, inner = span.variables
        length, end = integer(inner.extent), self.builder.add(span.start, span.count)

        def run(number: Any) -> None:
            self._place(outer, number)
            whole = self.builder.mul(number, length)
            first = self.builder.select(self.builder.icmp_signed(">", whole, span.start), whole, span.start)
            stop = self._smaller(self.builder.add(whole, length), end)
            body(self.builder.sub(first, whole), self.builder.sub(stop, first), self.builder.sub(first, span.start))

        above = self.builder.add(end, integer(inner.extent - 1))
        self._each(self.builder.udiv(span.start, length), self.builder.udiv(above, length), 1, run)

    def _over(self, span: Span, value: Expression, body: Callable[[Any], None], *later: Variable) -> None:
        """Go through values of some variables: ``body(how many were before)``; `later` ones have their loop in there.

        There is a loop for each if all but the outermost take all their values. Inside are those that do not decide
        whether an element is there, and what does not change with the innermost is computed before its loop.
        """
        variables = span.variables
        if not span.is_whole or not variables:

            def turn(number: Any) -> None:
                self._place(variables, self.builder.add(span.start, number))
                body(number)

            self._each(integer(0), span.count, 1, turn)
            return
        inner = integer(extent(variables[1:]))
        begin, rounds = self.builder.udiv(span.start, inner), self.builder.udiv(span.count, inner)
        bounds = [part.inside for part in walk(value) if isinstance(part, (Load, Choose))]
        order = sorted(variables, key=lambda each: not any(inside.depends_on(each) for inside in bounds))

        def nested(depth: int, before: Any) -> None:
            if depth == len(order):
                body(before)
                return
            own = order[depth]
            is_first, step = own == variables[0], extent(variables[variables.index(own) + 1 :])
            if depth == len(order) - 1:
                self._prepare(value, own, *later)

            def turn(number: Any) -> None:
                self.places[own] = self.builder.add(begin, number) if is_first else number
                nested(depth + 1, self.builder.add(before, self._times(number, step)))

            self._each(integer(0), rounds if is_first else integer(own.extent), 1, turn)

        nested(0, integer(0))

    def _prepare(self, expression: Expression, *inner: Variable) -> None:
        """Compute what does not change with the variables of the loop that follows, nor from sum to sum."""
        pending, seen = [expression], set[Expression]()
        while pending:
            at = pending.pop()
            if at in seen:
                continue
            seen.add(at)
            inside = getattr(at, "inside", ALWAYS)
            if not self._reads_total(at) and not self._depends(at) & set(inner):
                self._value(at)
                continue
            if inside != ALWAYS and not any(inside.depends_on(each) for each in inner):
                self._mask_where(inside)
            pending += at.parts()

    def _reads_total(self, expression: Expression) -> bool:
        known = self.totals_in.get(expression)
        if known is None:
            known = isinstance(expression, Total) or any(self._reads_total(part) for part in expression.parts())
            self.totals_in[expression] = known
        return known

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
        self.builder = Builder(self.function.append_basic_block("entry"), self.target)
        self.pointers = [self._pointer(number) for number in range(len(self.buffers))]
        self.trouble = self.function.args[1]
        self.known = [{}]
        inside = iter(self.function.args[2:])
        self.__dict__ |= {name: next(inside) for name in shared}
        self.places = {variable: next(inside) for variable in batch}
        body(*inside)
        self.builder.ret_void()
        self.__dict__ |= outside

    # Operands -------------------------------------------------------------------------------------------

    def _pack_left(self) -> None:
        """left[row, k]. Tiles read single numbers of it, so its dense dimension stays the dense one."""
        cut, operand = self.tiling, self.product.left
        rows = Span(operand.across, self.first_row, self.unit_rows, cut.block_rows)
        ks = Span(operand.ks, self.first_k, self.steps, cut.block_k)
        runs, others = (ks, rows) if self.tiling.left_along_k else (rows, ks)
        runs.step = self.lanes
        self._pack(self.product.left.value, runs, others, self.left, max(self.left_steps))

    def _pack_right(self) -> None:
        """right[k, lane], tile by tile: a tile reads all its lanes of one k, then of the next."""
        cut, operand = self.tiling, self.product.right
        value, width = operand.value, cut.width
        lanes = Span(operand.across, self.first_lane, self.unit_lanes, cut.block_lanes)
        ks = Span(operand.ks, self.first_k, self.steps, cut.block_k)
        if self.tiling.right_along_k:
            self._each(integer(0), lanes.count, self.lanes, lambda lane: self._pack_turned(lanes, lane, ks))
            return
        if len(lanes.variables) > 1:
            lanes.step = self.lanes
            self._pack(value, lanes, ks, self.right, self.right_steps[1])
            return

        def one_k(k: Any) -> None:
            def tile(lane: Any) -> None:
                to = self.builder.add(self._times(lane, self.depth), self._times(k, width))
                start = self.builder.add(lanes.start, lane)
                self._pack_run(value, Span(lanes.variables, start, integer(width), lanes.block, width), self.right, to)

            self._each(integer(0), lanes.count, width, tile)

        self._over(ks, value, one_k, *lanes.variables)

    def _pack_turned(self, lanes: Span, lane: Any, ks: Span) -> None:
        """A vector's lanes of the right operand, dense along k: packed along k, then turned in registers."""
        builder, width, row = self.builder, self.tiling.width, self.depth + self.lanes
        count = self._smaller(integer(self.lanes), builder.sub(lanes.count, lane))
        own = Span(lanes.variables, builder.add(lanes.start, lane), count, 1)
        ks.step = self.lanes
        self._pack(self.product.right.value, ks, own, self.staged, row)
        tile, within = builder.udiv(lane, integer(width)), builder.urem(lane, integer(width))
        start = builder.add(self._times(tile, width * self.depth), within)

        def turn(k: Any) -> None:
            vectors = [self._get(self.staged, builder.add(k, integer(n * row))) for n in range(self.lanes)]
            for number, vector in enumerate(transposed(builder, vectors, max(1, BLOCK // byte_size(self.element)))):
                at = self._times(builder.add(k, integer(number)), width)
                self._put(self.right, builder.add(start, at), vector)

        self._each(integer(0), ks.count, self.lanes, turn)

    def _pack(self, value: Expression, runs: Span, others: Span, memory: Any, step: int) -> None:
        """Pack along runs, for each value of the other variables into another row of memory."""
        if len(runs.variables) < 2:
            self._over(
                others,
                value,
                lambda other: self._pack_run(value, runs, memory, self._times(other, step)),
                *runs.variables,
            )
            return
        inner = runs.variables[-1]

        def run(start: Any, count: Any, before: Any) -> None:
            def vector(offset: Any) -> None:
                place = self.builder.add(start, offset)
                self.lane, self.places[inner] = inner, place
                self.mask = None if runs.fills_vectors else self._present(inner, place)
                at = self.builder.add(before, offset)
                self._over(
                    others,
                    value,
                    lambda other: self._copy(value, memory, self.builder.add(self._times(other, step), at)),
                )
                self.lane = self.mask = None

            self._each(integer(0), count, self.lanes, vector)

        self._runs(runs, run)

    def _pack_run(self, value: Expression, run: Span, memory: Any, to: Any) -> None:
        """A run along a single variable, in whole vectors; zeros where there is nothing."""
        (along,) = run.variables
        self._prepare(value, along)

        def vector(offset: Any) -> None:
            self.lane, self.places[along] = along, self.builder.add(run.start, offset)
            self._copy(value, memory, self.builder.add(to, offset))
            self.lane = None

        def part(offset: Any) -> None:
            self.mask = self._present(along, self.builder.add(run.start, offset))
            vector(offset)
            self.mask = None

        full = run.count
        if not run.fills_vectors:
            left = self._smaller(self.builder.sub(integer(along.extent), run.start), run.count)
            full = self.builder.sub(left, self.builder.srem(left, integer(self.lanes)))
        self._each(integer(0), full, self.lanes, vector)
        if not run.fills_vectors:
            self._each(full, run.count, self.lanes, part)

    def _copy(self, value: Expression, memory: Any, to: Any) -> None:
        self._put(memory, to, self._stored(self._vector(self._value(value))))

    def _present(self, along: Variable, place: Any) -> Any:
        """Which lanes are inside, of a vector that begins at a place."""
        left = self._vector(self.builder.sub(integer(along.extent), place))
        return self.builder.icmp_signed("<", ir.Constant(left.type, list(range(self.lanes))), left)

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
        cut, (left, right) = self.tiling, (self.product.left, self.product.right)
        blocks = {left.across: cut.block_rows, right.across: cut.block_lanes, self.product.store_lanes: cut.block_lanes}
        blocks |= {left.ks: cut.block_k, right.ks: cut.block_k}
        block = blocks.get((along,))  # runs begin anywhere
        return block is not None and (block % self.lanes == 0 or block >= along.extent)

    def _stays_within(self, index: Index, divisor: int) -> bool:
        """Whether the lanes of an index count up by one and reach no multiple of the divisor."""
        assert self.lane is not None
        others = [(atom, factor) for atom, factor in index.terms if atom != self.lane]
        if index.coefficient(self.lane) != 1 or not all(isinstance(atom, Variable) for atom, _ in others):
            return False
        return all(number % self.lanes == 0 for number in (divisor, index.constant, *(factor for _, factor in others)))

    # Memory ---------------------------------------------------------------------------------------------

    def _times(self, value: Any, factor: int) -> Any:
        return self.builder.mul(value, integer(factor)) if factor != 1 else value

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
