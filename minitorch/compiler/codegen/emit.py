"""Loop IR as LLVM IR: one function per kernel, with vectors written out.

A kernel runs `W` elements at a time along one loop variable, the *lanes*: the innermost column, or the innermost row if
memory is read in that direction or if rows are short and many (then every lane has a row of its own). What is dense
along another variable goes through transposed tiles (see `tiles`). What is left over at the end of a row is done under
a mask, by the same code. Nothing is left for LLVM's optimiser to find.

The function is ``void name(ptr buffers, i64 begin, i64 end)``: the part of the rows from `begin` up to `end`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite import ir

from ..loop_ir.index import Variable
from ..loop_ir.loops import Accumulate, LoopKernel, Nest, neutral
from ..loop_ir.origins import at_origin
from ..scheduling.gemm import recognise
from ..scheduling.schedules import Schedule, chosen, parallel_units, scheduled
from ..scheduling.streaming import streamed
from ..scheduling.sweeps import recognise as sweeps_of
from ..scheduling.unroll import together
from ..target import Target
from .builder import Builder
from .emit_gemm import Product
from .emit_online import Online, online_pairs
from .emit_sweeps import Sweeper
from .emitter import Emitter as Procedures
from .instructions import I64, combine, constant
from .vector_memory import POINTER, integer, wait_for_stores


def emit(kernel: LoopKernel, target: Target, own: tuple[Schedule | None, ...] = ()) -> str:
    """The module of a kernel, as text: a function per nest that is not like another one, and one that calls them.

    Args:
        kernel: its nests and buffers.
        target: the machine that it is made for.
        own: the user's own schedule of each nest, or None.
    """
    module = ir.Module(name=kernel.name)
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64, I64])
    functions: dict[Any, Any] = {}
    moved = [at_origin(nest) for nest in kernel.nests]
    keys = []
    units = parallel_units(kernel, target, own)
    parts = zip(moved, kernel.parts, streamed(kernel, target), chosen(kernel, target, own), units, strict=True)
    for (nest, _), (_, buffers, _), past_caches, steps, count in parts:
        keys.append((nest, buffers, past_caches, steps))
        if keys[-1] in functions or not count:
            continue
        function = functions[keys[-1]] = ir.Function(module, kind, f"nest{len(functions)}")
        function.linkage = "internal"
        if steps is not None:
            Procedures(scheduled(nest, buffers, steps), function, target).emit()
        elif sweeps_of(nest):
            Sweeper(buffers, nest, function, target).emit()
        elif recognise(nest):
            Product(buffers, nest, function, target).emit()
        else:
            emitter = _Emitter(buffers, nest, function, target)
            emitter.stream(past_caches)
            emitter.emit()
    _emit_entry(module, kernel, moved, [functions.get(key) for key in keys], units, target)
    return str(module)


def _emit_entry(
    module: Any,
    kernel: LoopKernel,
    moved: Sequence[tuple[Nest, Mapping[int, int]]],
    functions: Sequence[Any],
    units: Sequence[int],
    target: Target,
) -> None:
    """The function that is called: it shares ``begin, end`` among the nests of phase 0, and ends with the others.

    Behind the buffers are two more addresses: of a word that is set if an index is out of range, and of one in which
    all who share a call count the units that are done.
    """
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64, I64]), kernel.name)
    builder = Builder(entry.append_basic_block("entry"), target)
    table, begin, end = entry.args
    trouble, counter = (
        builder.load(builder.gep(table, [integer(len(kernel.buffers) + number)], source_etype=POINTER), typ=POINTER)
        for number in range(2)
    )
    first = 0
    in_tail = False
    longest = max(len(buffers) for _, buffers, _ in kernel.parts)
    memory = builder.alloca(POINTER, integer(longest), name="moved")
    parts = zip(moved, kernel.parts, kernel.phases, functions, units, strict=True)
    for (_, begins), (_, buffers, start), phase, function, count in parts:
        if phase and not in_tail:
            in_tail = True
            _only_the_last(builder, counter, builder.sub(end, begin), first)
        if not count:
            continue
        low, high = integer(0), integer(count)
        if not phase:
            low = builder.sub(begin, integer(first))
            low = builder.select(builder.icmp_signed(">", low, integer(0)), low, integer(0))
            high = builder.sub(end, integer(first))
            high = builder.select(builder.icmp_signed("<", high, integer(count)), high, integer(count))
        own = builder.gep(table, [integer(start)], source_etype=POINTER)
        if begins:
            own = _moved(builder, own, memory, [begins.get(n, 0) * b.dtype.itemsize for n, b in enumerate(buffers)])
        builder.call(function, [own, trouble, low, high])
        first += count
    builder.ret_void()


def _moved(builder: Any, table: Any, memory: Any, offsets: Sequence[int]) -> Any:
    """Another table of buffers, each so many bytes further on."""
    for number, offset in enumerate(offsets):
        pointer = builder.load(builder.gep(table, [integer(number)], source_etype=POINTER), typ=POINTER)
        if offset:
            pointer = builder.gep(pointer, [integer(offset)], source_etype=ir.IntType(8))
        builder.store(pointer, builder.gep(memory, [integer(number)], source_etype=POINTER))
    return memory


def _only_the_last(builder: Any, counter: Any, done: Any, units: int) -> None:
    """Leave the function unless all units are done; whoever goes on sees what the others have written."""
    before = builder.atomic_rmw("add", counter, done, "acq_rel")
    is_last = builder.icmp_unsigned("==", builder.add(before, done), integer(units))
    tail, end = builder.append_basic_block("tail"), builder.append_basic_block("end")
    builder.cbranch(is_last, tail, end)
    builder.position_at_end(end)
    builder.ret_void()
    builder.position_at_end(tail)


class _Emitter(Online):
    """Emits one nest into a function: its loops, and the statements in them."""

    # Loops ----------------------------------------------------------------------------------------------

    def emit(self) -> None:
        """The whole function."""
        _, _, begin, end = self.function.args
        self._loop(begin, end, 1, [], self._unit)
        if self.streamed:
            wait_for_stores(self.builder)
        self.builder.ret_void()

    def _unit(self, unit: Any, _: list[Any]) -> list[Any]:
        """One part of the rows: a row, or a run of vectors along the last row variable."""
        rows = list(self.nest.rows)
        if not self.across_rows:
            self._look_ahead(unit)
            self._place_rows(rows, unit)
            self._row()
            return []
        if not rows:
            self._row()
            return []
        last = rows.pop()
        outer = self.builder.udiv(unit, integer(self.layout.blocks)) if rows else integer(0)
        block = self.builder.urem(unit, integer(self.layout.blocks)) if rows else unit
        if self.layout.along is not None:
            rows.remove(self.layout.along)
            outer = self._place_stretch(outer)
        self._place_rows(rows, outer)
        width = self.layout.chunk * self.lanes
        start = self.builder.mul(block, integer(width))
        if last.extent == width * self.layout.blocks:
            together = self.layout.abreast
            stop = self.builder.add(start, integer(width))
            self._loop(start, stop, self.lanes * together, [], self._lanes_of_rows(last, together))
            return []
        full = last.extent // self.lanes * self.lanes
        stop = self._smaller(self.builder.add(start, integer(width)), integer(full))
        if self.layout.abreast > 1:
            together = self.lanes * self.layout.abreast
            all_of_them = self.builder.sdiv(self.builder.sub(stop, start), integer(together))
            middle = self.builder.add(start, self.builder.mul(all_of_them, integer(together)))
            self._loop(start, middle, together, [], self._lanes_of_rows(last, self.layout.abreast))
            start = middle
        self._loop(start, stop, self.lanes, [], self._lanes_of_rows(last))
        if full != last.extent:  # the last block has a vector that is not full
            is_last = self.builder.icmp_signed("==", block, integer(self.layout.blocks - 1))
            rounds = self.builder.zext(is_last, I64)
            self._loop(integer(0), rounds, 1, [], self._rest_of_rows(last, full))
        return []

    def _lanes_of_rows(self, last: Variable, count: int = 1) -> Callable[[Any, list[Any]], list[Any]]:
        def body(position: Any, _: list[Any]) -> list[Any]:
            self.lane = last
            self.firsts = [
                self.builder.add(position, integer(number * self.lanes)) if number else position
                for number in range(count)
            ]
            self._vectors_of_rows()
            return []

        return body

    def _rest_of_rows(self, last: Variable, full: int) -> Callable[[Any, list[Any]], list[Any]]:
        def body(_: Any, __: list[Any]) -> list[Any]:
            self.firsts, self.lane = [integer(full)], last
            self.mask = self._first_lanes(last.extent - full)
            self._vectors_of_rows()
            self.mask = None
            return []

        return body

    def _vectors_of_rows(self) -> None:
        """One row per lane; where memory is dense along another row variable, a stretch of that."""
        self.filled.clear()
        along = self.layout.along
        if along is None:
            self._row()
            return

        def body(position: Any, _: list[Any]) -> list[Any]:
            self.places[along] = position
            self._row()
            return []

        tiles = [tile for loop in self.nest.loops for tile in self.layout.tiles(loop)]
        self._within_tiles(tiles, *self.stretch, [], body)

    def _row(self) -> None:
        """All loops of one row, or of one row per lane."""
        self.totals = {}
        pairs = online_pairs(self.nest, self.layout)
        for loop, (before, after) in zip(self.nest.loops, pairs, strict=True):
            if after is not None:
                self._online(loop, after)
            elif loop.columns and before is None:
                self._columns(loop)
            if loop.columns:
                continue
            for number in self._abreast():
                for statement, *others in together(loop.statements, self.lane):
                    if isinstance(statement, Accumulate):  # of a single element; 0.0 + -0.0 is 0.0
                        value, dtype = self._value(statement.value), statement.value.dtype
                        start = constant(dtype, neutral(statement.reduction, dtype), value.type)
                        total = combine(self.builder, statement.reduction, dtype, start, value)
                        self.totals[statement.slot, number] = total
                    elif others:
                        self._store_together([statement, *others])
                    else:
                        self._statement(statement, [])
