"""Loop IR as LLVM IR: one function per kernel, with vectors written out.

A kernel runs `W` elements at a time along one loop variable, the *lanes*: the innermost column if memory is read in
that direction, otherwise the innermost row (then every lane has a row of its own). An index is a scalar plus a step per
lane; with a step of 1 a load is one vector, with 0 one number for all lanes, with anything else a gather. What is left
over at the end of a row is done under a mask, by the same code. Nothing is left for LLVM's optimiser to find.

The function is ``void name(ptr buffers, i64 begin, i64 end)``: the part of the rows from `begin` up to `end`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir

from .emit_gemm import Product
from .emit_sweeps import Sweeper
from .emit_values import POINTER, Values, integer
from .gemm import recognise
from .index import Variable
from .instructions import (
    I64,
    before_store,
    combine,
    computed_type,
    constant,
    rounded,
)
from .layout import nest_units
from .loops import (
    Accumulate,
    Apply,
    Buffer,
    Keep,
    Loop,
    LoopKernel,
    Nest,
    Statement,
    Store,
    neutral,
    walk,
)
from .sweeps import recognise as sweeps_of

UNROLLED = 8  # operations in a round of a loop that sums up


def emit(kernel: LoopKernel, vector_bytes: int) -> str:
    """The module of a kernel, as text: a function per nest that is not like another one, and one that calls them."""
    module = ir.Module(name=kernel.name)
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64, I64])
    functions: dict[tuple[Nest, tuple[Buffer, ...]], Any] = {}
    for nest, buffers, _ in kernel.parts:
        if (nest, buffers) not in functions and nest_units(nest, vector_bytes):
            function = ir.Function(module, kind, f"nest{len(functions)}")
            function.linkage = "internal"
            functions[nest, buffers] = function
            emitter = Sweeper if sweeps_of(nest) else Product if recognise(nest) else _Emitter
            emitter(buffers, nest, function, vector_bytes).emit()
    _emit_entry(module, kernel, functions, vector_bytes)
    return str(module)


def _emit_entry(module: Any, kernel: LoopKernel, functions: dict[Any, Any], vector_bytes: int) -> None:
    """The function that is called: it shares ``begin, end`` among the nests of phase 0, and ends with the others.

    Behind the last buffer is the address of two words: the first is set if an index is out of range, the second counts
    the units that are done.
    """
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64, I64]), kernel.name)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    table, begin, end = entry.args
    last = builder.gep(table, [integer(len(kernel.buffers))], source_etype=POINTER)
    words = builder.load(last, typ=POINTER)
    first = 0
    in_tail = False
    for (nest, buffers, start), phase in zip(kernel.parts, kernel.phases, strict=True):
        count = nest_units(nest, vector_bytes)
        if phase and not in_tail:
            in_tail = True
            _only_the_last(builder, words, builder.sub(end, begin), first)
        if not count:
            continue
        low, high = integer(0), integer(count)
        if not phase:
            low = builder.sub(begin, integer(first))
            low = builder.select(builder.icmp_signed(">", low, integer(0)), low, integer(0))
            high = builder.sub(end, integer(first))
            high = builder.select(builder.icmp_signed("<", high, integer(count)), high, integer(count))
        own = builder.gep(table, [integer(start)], source_etype=POINTER)
        builder.call(functions[nest, buffers], [own, words, low, high])
        first += count
    builder.ret_void()


def _only_the_last(builder: Any, words: Any, done: Any, units: int) -> None:
    """Leave the function unless all units are done; whoever goes on sees what the others have written."""
    counter = builder.gep(words, [integer(1)], source_etype=I64)
    before = builder.atomic_rmw("add", counter, done, "acq_rel")
    is_last = builder.icmp_unsigned("==", builder.add(before, done), integer(units))
    tail, end = builder.append_basic_block("tail"), builder.append_basic_block("end")
    builder.cbranch(is_last, tail, end)
    builder.position_at_end(end)
    builder.ret_void()
    builder.position_at_end(tail)


class _Emitter(Values):
    """Emits one nest into a function: its loops, and the statements in them."""

    # Loops ----------------------------------------------------------------------------------------------

    def emit(self) -> None:
        """The whole function."""
        _, _, begin, end = self.function.args
        self._loop(begin, end, 1, [], self._unit)
        self.builder.ret_void()

    def _unit(self, unit: Any, _: list[Any]) -> list[Any]:
        """One part of the rows: a row, or a run of vectors along the last row variable."""
        rows = list(self.nest.rows)
        if not self.across_rows:
            self._place_rows(rows, unit)
            self._row()
            return []
        if not rows:
            self._row()
            return []
        last = rows.pop()
        outer = self.builder.udiv(unit, integer(self.layout.blocks)) if rows else integer(0)
        block = self.builder.urem(unit, integer(self.layout.blocks)) if rows else unit
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
            self._row()
            return []

        return body

    def _rest_of_rows(self, last: Variable, full: int) -> Callable[[Any, list[Any]], list[Any]]:
        def body(_: Any, __: list[Any]) -> list[Any]:
            self.firsts, self.lane = [integer(full)], last
            self.mask = self._first_lanes(last.extent - full)
            self._row()
            self.mask = None
            return []

        return body

    def _place_rows(self, rows: list[Variable], position: Any) -> None:
        """The row variables from a row's number."""
        for number, row in enumerate(reversed(rows)):
            if number == len(rows) - 1:
                self.places[row] = position
            else:
                self.places[row] = self.builder.urem(position, integer(row.extent))
                position = self.builder.udiv(position, integer(row.extent))

    def _abreast(self) -> Iterator[int]:
        """Go through the vectors of rows that are abreast; without lanes across rows there is one."""
        for number in range(max(len(self.firsts), 1)):
            self.current = number
            if self.firsts and self.lane is not None:
                self.places[self.lane] = self.firsts[number]
            yield number
        self.current = 0

    def _row(self) -> None:
        """All loops of one row, or of one row per lane."""
        self.totals = {}
        for loop in self.nest.loops:
            if loop.columns:
                self._columns(loop)
                continue
            for number in self._abreast():
                for statement in loop.statements:
                    if isinstance(statement, Accumulate):  # of a single element
                        self.totals[statement.slot, number] = self._value(statement.value)
                    else:
                        self._statement(statement, [])

    def _columns(self, loop: Loop) -> None:
        slots = [statement for statement in loop.statements if isinstance(statement, Accumulate)]
        carried = [self._start(statement) for _ in self._abreast() for statement in slots]
        for _ in self._abreast():
            for statement in loop.statements:
                self._hoist(statement.value, loop)
        outer = list(loop.columns)
        last = outer.pop()
        copies = 1 if self.across_rows or not slots else self._copies(loop)

        def innermost(totals: list[Any]) -> list[Any]:
            if self.across_rows:
                return self._loop(integer(0), integer(last.extent), 1, totals, column(last))
            full = last.extent // self.lanes * self.lanes
            self.lane = last
            unrolled = full // (self.lanes * copies) * self.lanes * copies if copies > 1 else 0
            if unrolled:
                totals = self._unrolled(slots, unrolled, copies, totals, column(last))
            if full > unrolled:
                totals = self._loop(integer(unrolled), integer(full), self.lanes, totals, column(last))
            if full != last.extent:
                self.mask = self._first_lanes(last.extent - full)
                self.known.append({})
                totals = column(last)(integer(full), totals)
                self.known.pop()
                self.mask = None
            self.lane = None
            return totals

        def column(variable: Variable) -> Callable[[Any, list[Any]], list[Any]]:
            def body(position: Any, totals: list[Any]) -> list[Any]:
                self.places[variable] = position
                for _ in self._abreast():
                    for statement in loop.statements:
                        totals = self._statement(statement, totals, slots)
                return totals

            return body

        def nested(depth: int, totals: list[Any]) -> list[Any]:
            if depth == len(outer):
                return innermost(totals)

            def body(position: Any, totals: list[Any]) -> list[Any]:
                self.places[outer[depth]] = position
                return nested(depth + 1, totals)

            return self._loop(integer(0), integer(outer[depth].extent), 1, totals, body)

        totals = nested(0, carried)
        for number in self._abreast():
            for statement, total in zip(slots, totals[number * len(slots) :], strict=False):
                total = total if self.across_rows else self._across(statement, total)
                self.totals[statement.slot, number] = rounded(self.builder, total, statement.value.dtype)

    def _copies(self, loop: Loop) -> int:
        """How many vectors of columns go into one round, so that a short sum need not wait for the addition before."""
        operations = sum(isinstance(part, Apply) for statement in loop.statements for part in walk(statement.value))
        return max(1, UNROLLED // (operations + 1))

    def _unrolled(
        self,
        slots: Sequence[Accumulate],
        stop: int,
        copies: int,
        totals: list[Any],
        body: Callable[[Any, list[Any]], list[Any]],
    ) -> list[Any]:
        """The columns up to `stop`, several vectors a round, each with accumulators of its own."""
        count = len(totals)

        def round_(position: Any, carried: list[Any]) -> list[Any]:
            results: list[Any] = []
            for copy in range(copies):
                self.known.append({})
                place = self.builder.add(position, integer(copy * self.lanes)) if copy else position
                results += body(place, carried[copy * count : (copy + 1) * count])
                self.known.pop()
            return results

        start = [*totals, *(self._start(slot) for _ in range(copies - 1) for slot in slots)]
        found = self._loop(integer(0), integer(stop), self.lanes * copies, start, round_)
        for copy in range(1, copies):
            found[:count] = [
                combine(self.builder, slot.reduction, slot.value.dtype, *pair)
                for slot, *pair in zip(slots, found, found[copy * count :], strict=False)
            ]
        return found[:count]

    def _start(self, statement: Accumulate) -> Any:
        kind = ir.VectorType(computed_type(statement.value.dtype), self.lanes)
        return constant(statement.value.dtype, neutral(statement.reduction, statement.value.dtype), kind)

    def _across(self, statement: Accumulate, total: Any) -> Any:
        """The lanes of an accumulator combined into one number: halves onto halves."""
        width = self.lanes
        while width > 1:
            width //= 2
            order = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width)))
            upper = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width, 2 * width)))
            low = self.builder.shuffle_vector(total, total, order)
            high = self.builder.shuffle_vector(total, total, upper)
            total = combine(self.builder, statement.reduction, statement.value.dtype, low, high)
        return self.builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    # Statements -----------------------------------------------------------------------------------------

    def _statement(self, statement: Statement, totals: list[Any], slots: Sequence[Accumulate] = ()) -> list[Any]:
        value = self._value(statement.value)
        dtype = statement.value.dtype
        if isinstance(statement, Accumulate):
            place = slots.index(statement) + self.current * len(slots)
            value = self._vector(value)
            old = totals[place]
            new = combine(self.builder, statement.reduction, dtype, old, value)
            totals = list(totals)
            keep_old = self.mask is not None and not self.across_rows
            totals[place] = self.builder.select(self.mask, new, old) if keep_old else new
        elif isinstance(statement, Store):
            kind = self.buffers[statement.buffer].dtype
            self._write(self.pointers[statement.buffer], statement.index, before_store(self.builder, value, kind))
        elif isinstance(statement, Keep):
            stored = before_store(self.builder, self._vector(value) if self.across_rows else value, dtype)
            if self.across_rows:
                self._store_vector(self._scratch_row(statement.slot, statement.index, stored), stored, None)
            else:
                self._write(self.scratch[statement.slot], statement.index, stored)
        return totals
