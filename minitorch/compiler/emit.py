"""Loop IR as LLVM IR: one function per kernel, with vectors written out.

A kernel runs `W` elements at a time along one loop variable, the *lanes*: the innermost column if memory is read in
that direction, otherwise the innermost row (then every lane has a row of its own). An index is a scalar plus a step per
lane; with a step of 1 a load is one vector, with 0 one number for all lanes, with anything else a gather. What is left
over at the end of a row is done under a mask, by the same code. Nothing is left for LLVM's optimiser to find.

The function is ``void name(ptr buffers, i64 begin, i64 end)``: the part of the rows from `begin` up to `end`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir

from ..dtypes import int64
from .index import Index, Looked, Quotient, Variable
from .instructions import (
    BIT,
    I64,
    PRIMITIVES,
    after_load,
    before_store,
    cast,
    combine,
    computed_type,
    constant,
    rounded,
    splat,
    stored_type,
)
from .loops import (
    ALWAYS,
    Accumulate,
    Apply,
    Buffer,
    Choose,
    Expression,
    Inside,
    Keep,
    Load,
    Loop,
    LoopKernel,
    Nest,
    Number,
    Position,
    Scratch,
    Statement,
    Store,
    Total,
    index_values,
    neutral,
    walk,
)

POINTER = ir.PointerType()

ABREAST = 4  # vectors of rows that go through the columns together
LONG_RUN = 64  # vectors that an elementwise unit runs through


def integer(value: int) -> Any:
    """A 64-bit constant."""
    return ir.Constant(I64, value)


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
            _Emitter(buffers, nest, function, vector_bytes).emit()
    _emit_entry(module, kernel, functions, vector_bytes)
    return str(module)


def _emit_entry(module: Any, kernel: LoopKernel, functions: dict[Any, Any], vector_bytes: int) -> None:
    """The function that is called: it shares the range ``begin, end`` among the nests."""
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64, I64]), kernel.name)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    table, begin, end = entry.args
    last = builder.gep(table, [integer(len(kernel.buffers))], source_etype=POINTER)
    trouble = builder.load(last, typ=POINTER)
    first = 0
    for nest, buffers, start in kernel.parts:
        count = nest_units(nest, vector_bytes)
        if not count:
            continue
        low = builder.sub(begin, integer(first))
        high = builder.sub(end, integer(first))
        low = builder.select(builder.icmp_signed(">", low, integer(0)), low, integer(0))
        high = builder.select(builder.icmp_signed("<", high, integer(count)), high, integer(count))
        own = builder.gep(table, [integer(start)], source_etype=POINTER)
        builder.call(functions[nest, buffers], [own, trouble, low, high])
        first += count
    builder.ret_void()


def units(kernel: LoopKernel, vector_bytes: int) -> int:
    """How many parts the rows of a kernel fall into: the range that `begin` and `end` are taken from."""
    return sum(nest_units(nest, vector_bytes) for nest in kernel.nests)


def nest_units(nest: Nest, vector_bytes: int) -> int:
    """The parts of one nest."""
    total = math.prod(row.extent for row in nest.rows)
    if not total:
        return 0
    layout = Layout(nest, vector_bytes)
    if layout.across_rows and nest.rows:
        return total // nest.rows[-1].extent * layout.blocks
    return total


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


class _Emitter:
    """Emits one nest into a function."""

    def __init__(self, buffers: tuple[Buffer, ...], nest: Nest, function: Any, vector_bytes: int) -> None:
        self.buffers = buffers
        self.nest = nest
        self.function = function
        self.layout = Layout(nest, vector_bytes)
        self.lanes = self.layout.lanes
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.pointers = [self._pointer(number) for number in range(len(buffers))]
        self.trouble = function.args[1]
        self.across_rows = self.layout.across_rows
        width = self.lanes * self.layout.abreast if self.across_rows else 1
        self.scratch = [self._row_memory(length * width, stored_type(dtype)) for length, dtype in nest.scratch]
        self.firsts: list[Any] = []  # the first row of each vector that is abreast; empty without lanes across rows
        self.current = 0  # which of them is being emitted
        self.places: dict[Variable, Any] = {}  # the scalar value of each loop variable; of the lanes' one, in lane 0
        self.lane: Variable | None = None
        self.mask: Any = None
        self.totals: dict[tuple[int, int], Any] = {}  # by slot and vector
        self.known: list[dict[Any, Any]] = [{}]  # values by expression, one scope per loop
        self.variables: dict[Expression, frozenset[Variable]] = {}
        self.by_row: dict[Expression, bool] = {}

    def _row_memory(self, length: int, kind: Any) -> Any:
        """Room for a scratch row on the stack."""
        memory = self.builder.alloca(ir.ArrayType(kind, max(length, 1)))
        memory.align = 64
        memory.type = POINTER
        return memory

    def _pointer(self, number: int) -> Any:
        slot = self.builder.gep(self.function.args[0], [integer(number)], source_etype=POINTER)
        return self.builder.load(slot, typ=POINTER)

    # Loops ----------------------------------------------------------------------------------------------

    def emit(self) -> None:
        """The whole function."""
        _, _, begin, end = self.function.args
        self._loop(begin, end, 1, [], self._unit)
        self.builder.ret_void()

    def _loop(
        self, start: Any, stop: Any, step: int, carried: Sequence[Any], body: Callable[[Any, list[Any]], list[Any]]
    ) -> list[Any]:
        """``for i in range(start, stop, step)``, with values that each round hands to the next."""
        before = self.builder.block
        head = self.function.append_basic_block("head")
        inside = self.function.append_basic_block("body")
        after = self.function.append_basic_block("after")
        self.builder.branch(head)
        self.builder.position_at_end(head)
        counter = self.builder.phi(I64)
        counter.add_incoming(start, before)
        values = []
        for value in carried:
            phi = self.builder.phi(value.type)
            phi.add_incoming(value, before)
            values.append(phi)
        self.builder.cbranch(self.builder.icmp_signed("<", counter, stop), inside, after)
        self.builder.position_at_end(inside)
        self.known.append({})
        results = body(counter, list(values))
        self.known.pop()
        counter.add_incoming(self.builder.add(counter, integer(step)), self.builder.block)
        for phi, result in zip(values, results, strict=True):
            phi.add_incoming(result, self.builder.block)
        self.builder.branch(head)
        self.builder.position_at_end(after)
        return values

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

    def _smaller(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

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

    def _first_lanes(self, count: int) -> Any:
        return ir.Constant(ir.VectorType(BIT, self.lanes), [int(lane < count) for lane in range(self.lanes)])

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

        def innermost(totals: list[Any]) -> list[Any]:
            if self.across_rows:
                return self._loop(integer(0), integer(last.extent), 1, totals, column(last))
            full = last.extent // self.lanes * self.lanes
            self.lane = last
            totals = self._loop(integer(0), integer(full), self.lanes, totals, column(last)) if full else totals
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

    def _scratch_row(self, slot: int, index: Index, value: Any) -> Any:
        element = self.nest.scratch[slot][1]
        place = self.builder.mul(self._scalar_index(index), integer(self.lanes * self.layout.abreast))
        if self.current:
            place = self.builder.add(place, integer(self.lanes * self.current))
        return self.builder.gep(self.scratch[slot], [place], source_etype=stored_type(element))

    def _write(self, pointer: Any, index: Index, value: Any) -> None:
        kind = value.type.element if isinstance(value.type, ir.VectorType) else value.type
        step = self._step(index)
        if self.lane is None or step == 0:
            if isinstance(value.type, ir.VectorType):
                value = self.builder.extract_element(value, ir.Constant(ir.IntType(32), 0))
            place = self.builder.gep(pointer, [self._scalar_index(index)], source_etype=kind)
            self.builder.store(value, place)
        elif step == 1:
            place = self.builder.gep(pointer, [self._scalar_index(index)], source_etype=kind)
            self._store_vector(place, self._vector(value), self.mask)
        else:
            places = self._pointers(pointer, index, kind)
            value = self._vector(value)
            mask = self.mask if self.mask is not None else self._first_lanes(self.lanes)
            self._call("masked.scatter", ir.VoidType(), value.type, [value, places, self._alignment(kind), mask])

    def _store_vector(self, place: Any, value: Any, mask: Any) -> None:
        align = self._bytes(value.type.element)
        if mask is None:
            self.builder.store(value, place, align=align)
        else:
            self._call(
                "masked.store", ir.VoidType(), value.type, [value, place, self._alignment(value.type.element), mask]
            )

    def _bytes(self, element: Any) -> int:
        return {"half": 2, "float": 4, "double": 8}.get(str(element), getattr(element, "width", 8) // 8)

    def _alignment(self, element: Any) -> Any:
        return ir.Constant(ir.IntType(32), self._bytes(element))

    def _call(self, name: str, result: Any, kind: Any, operands: list[Any]) -> Any:
        """Call one of LLVM's memory intrinsics on vectors."""
        lanes = f"v{kind.count}{kind.element.intrinsic_name}"
        pointers = f"v{kind.count}p0" if name in ("masked.gather", "masked.scatter") else "p0"
        full = f"llvm.{name}.{lanes}.{pointers}"
        module = self.function.module
        function = module.globals.get(full)
        if function is None:
            function = ir.Function(module, ir.FunctionType(result, [operand.type for operand in operands]), full)
        return self.builder.call(function, operands)

    # Values ---------------------------------------------------------------------------------------------

    def _depends(self, expression: Expression) -> frozenset[Variable]:
        """The loop variables that an expression's value changes with, accumulators apart."""
        found = self.variables.get(expression)
        if found is None:
            everything = {*self.nest.rows, *(column for loop in self.nest.loops for column in loop.columns)}
            own = {v for v in everything if type(expression) not in (Apply, Choose) and expression.depends_on(v)}
            if isinstance(expression, Choose):
                own |= {v for v in everything if expression.inside.depends_on(v)}
            for part in expression.parts():
                own |= self._depends(part)
            found = self.variables[expression] = frozenset(own)
        return found

    def _varies_with_rows(self, expression: Expression) -> bool:
        """Whether an expression has another value for other rows."""
        found = self.by_row.get(expression)
        if found is None:
            found = isinstance(expression, (Total, Scratch)) or any(
                self._varies_with_rows(part) for part in (*expression.parts(), *index_values(expression))
            )
            if not found and self.nest.rows:
                found = self.nest.rows[-1] in self._depends(expression)
            self.by_row[expression] = found
        return found

    def _hoist(self, expression: Expression, loop: Loop) -> None:
        """Compute what does not change with the columns before the loop over them begins."""
        if isinstance(expression, (Number, Total)):
            return
        if not self._depends(expression) & set(loop.columns):
            self._value(expression)
            return
        for part in expression.parts():
            self._hoist(part, loop)

    def _value(self, expression: Expression) -> Any:
        # What differs between the vectors abreast is known for each of them.
        varies = bool(self.current) and self._varies_with_rows(expression)
        key = (expression, self.current if varies else 0)
        for scope in self.known:
            if key in scope:
                return scope[key]
        value = self._computed(expression)
        self.known[-1][key] = value
        return value

    def _computed(self, expression: Expression) -> Any:
        builder, dtype = self.builder, expression.dtype
        match expression:
            case Number():
                return constant(dtype, expression.value, computed_type(dtype))
            case Total():
                return self.totals[expression.slot, self.current]
            case Position():
                return self._position(expression)
            case Load():
                pointer = self.pointers[expression.buffer]
                stored = self._read(pointer, expression.index, expression.inside, stored_type(dtype))
                return after_load(builder, stored, dtype)
            case Scratch():
                return after_load(builder, self._read_scratch(expression), dtype)
            case Choose():
                return self._select(
                    self._condition(expression.inside), self._value(expression.here), self._value(expression.elsewhere)
                )
            case Apply():
                operands = [self._value(part) for part in expression.arguments]
                old = expression.arguments[0].dtype
                if expression.primitive == "cast":
                    return cast(builder, operands[0], old, dtype)
                if expression.primitive == "bitcast":
                    kind = computed_type(dtype)
                    vector = isinstance(operands[0].type, ir.VectorType)
                    return builder.bitcast(operands[0], ir.VectorType(kind, self.lanes) if vector else kind)
                if expression.primitive == "where":
                    return self._select(*operands)
                if any(isinstance(operand.type, ir.VectorType) for operand in operands):
                    operands = [self._vector(operand) for operand in operands]
                return rounded(builder, PRIMITIVES[expression.primitive](builder, old, *operands), dtype)
        raise TypeError(f"{type(expression).__name__} is not an expression")

    def _select(self, condition: Any, a: Any, b: Any) -> Any:
        if any(isinstance(value.type, ir.VectorType) for value in (condition, a, b)):
            condition, a, b = self._vector(condition), self._vector(a), self._vector(b)
        return self.builder.select(condition, a, b)

    def _vector(self, value: Any) -> Any:
        """A value in every lane."""
        if isinstance(value.type, ir.VectorType):
            return value
        kind = ir.VectorType(value.type, self.lanes)
        if isinstance(value, ir.Constant):
            return ir.Constant(kind, [value.constant] * self.lanes)
        zero = ir.Constant(ir.IntType(32), 0)
        first = self.builder.insert_element(ir.Constant(kind, ir.Undefined), value, zero)
        order = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, first, order)

    def _position(self, expression: Position) -> Any:
        varies = self.lane is not None and expression.index.depends_on(self.lane)
        value = self._vector_index(expression.index) if varies else self._scalar_index(expression.index)
        return cast(self.builder, value, int64, expression.dtype)

    # Memory ---------------------------------------------------------------------------------------------

    def _step(self, index: Index) -> int | None:
        """By how much an index grows from lane to lane; None if by different amounts."""
        if self.lane is None:
            return 0
        for atom, _ in index.terms:
            if not isinstance(atom, Variable) and _varies(atom, self.lane, self):
                return None
        return index.coefficient(self.lane)

    def _read_scratch(self, expression: Scratch) -> Any:
        kind = stored_type(expression.dtype)
        if not self.across_rows:
            return self._read(self.scratch[expression.slot], expression.index, ALWAYS, kind)
        place = self._scratch_row(expression.slot, expression.index, None)
        return self.builder.load(place, typ=ir.VectorType(kind, self.lanes), align=self._bytes(kind))

    def _read(self, pointer: Any, index: Index, inside: Inside, kind: Any) -> Any:
        """One element, or one per lane, without touching memory that is not there."""
        step = self._step(index)
        condition = self._condition(inside) if inside != ALWAYS else None
        varies = condition is not None and isinstance(condition.type, ir.VectorType)
        if step == 0 and not varies:
            place = self._scalar_index(index)
            if condition is not None:
                place = self.builder.select(condition, place, integer(0))
            return self.builder.load(self.builder.gep(pointer, [place], source_etype=kind), typ=kind)
        mask = self.mask
        if condition is not None:
            condition = self._vector(condition)
            mask = condition if mask is None else self.builder.and_(mask, condition)
        vector = ir.VectorType(kind, self.lanes)
        zeros = splat(vector, 0.0 if kind in (ir.FloatType(), ir.DoubleType(), ir.HalfType()) else 0)
        if step == 1:
            place = self.builder.gep(pointer, [self._scalar_index(index)], source_etype=kind)
            if mask is None:
                return self.builder.load(place, typ=vector, align=self._bytes(kind))
            return self._call("masked.load", vector, vector, [place, self._alignment(kind), mask, zeros])
        places = self._pointers(pointer, index, kind)
        mask = mask if mask is not None else self._first_lanes(self.lanes)
        return self._call("masked.gather", vector, vector, [places, self._alignment(kind), mask, zeros])

    def _pointers(self, pointer: Any, index: Index, kind: Any) -> Any:
        """The address of each lane's element."""
        places = self.builder.gep(pointer, [self._vector_index(index)], source_etype=kind)
        places.type = ir.VectorType(POINTER, self.lanes)  # llvmlite takes it for a single pointer
        return places

    def _condition(self, inside: Inside) -> Any:
        result = None
        for low, index, high in inside.bounds:
            varies = self.lane is not None and self._step(index) != 0
            place = self._vector_index(index) if varies else self._scalar_index(index)
            above = self.builder.icmp_signed(">=", place, splat(place.type, low))
            below = self.builder.icmp_signed("<", place, splat(place.type, high))
            both = self.builder.and_(above, below)
            if result is not None and isinstance(result.type, ir.VectorType) != isinstance(both.type, ir.VectorType):
                result, both = self._vector(result), self._vector(both)
            result = both if result is None else self.builder.and_(result, both)
        return result

    # Indices --------------------------------------------------------------------------------------------

    def _scalar_index(self, index: Index) -> Any:
        """The index in lane 0."""
        return self._sum(index, self._scalar_atom, integer)

    def _vector_index(self, index: Index) -> Any:
        """The index in each lane."""
        kind = ir.VectorType(I64, self.lanes)
        return self._sum(index, self._vector_atom, lambda value: splat(kind, value))

    def _sum(self, index: Index, atom_value: Callable[[Any], Any], number: Callable[[int], Any]) -> Any:
        total = None
        for atom, factor in index.terms:
            term = atom_value(atom)
            if factor != 1:
                term = self.builder.mul(term, number(factor))
            total = term if total is None else self.builder.add(total, term)
        if total is None:
            return number(index.constant)
        return self.builder.add(total, number(index.constant)) if index.constant else total

    def _scalar_atom(self, atom: Any) -> Any:
        if isinstance(atom, Variable):
            return self.places[atom]
        if isinstance(atom, Looked):
            value = self._value(atom.value)
            if isinstance(value.type, ir.VectorType):
                value = self.builder.extract_element(value, ir.Constant(ir.IntType(32), 0))
            return self._looked(atom, value)
        below = self._scalar_index(atom.index)
        return self._quotient(atom, below)

    def _vector_atom(self, atom: Any) -> Any:
        if isinstance(atom, Variable):
            place = self._vector(self.places[atom])
            if atom == self.lane:
                steps = ir.Constant(place.type, list(range(self.lanes)))
                place = self.builder.add(place, steps)
            return place
        if isinstance(atom, Looked):
            return self._looked(atom, self._vector(self._value(atom.value)))
        return self._quotient(atom, self._vector_index(atom.index))

    def _quotient(self, atom: Any, index: Any) -> Any:
        """Quotient or remainder, rounded down; where the index cannot be negative, an unsigned division does it."""
        divisor = splat(index.type, atom.divisor)
        low, _ = atom.index.bounds
        if low >= 0:
            return (self.builder.udiv if isinstance(atom, Quotient) else self.builder.urem)(index, divisor)
        name = "floor_divide" if isinstance(atom, Quotient) else "remainder"
        return PRIMITIVES[name](self.builder, int64, index, divisor)

    def _looked(self, atom: Looked, value: Any) -> Any:
        """An index from data: negative ones count from the end, and none leads outside."""
        place = cast(self.builder, value, atom.value.dtype, int64)
        zero, length = splat(place.type, 0), splat(place.type, atom.extent)
        negative = self.builder.icmp_signed("<", place, zero)
        place = self.builder.select(negative, self.builder.add(place, length), place)
        self._note_trouble(self.builder.icmp_unsigned(">=", place, length))
        last = splat(place.type, max(atom.extent - 1, 0))
        place = self.builder.select(self.builder.icmp_signed(">", place, last), last, place)
        return self.builder.select(self.builder.icmp_signed("<", place, zero), zero, place)

    def _note_trouble(self, outside: Any) -> None:
        """Remember that an index was out of range, in the word after the last buffer."""
        if isinstance(outside.type, ir.VectorType):
            if self.mask is not None:
                outside = self.builder.and_(outside, self.mask)
            bits = self.builder.bitcast(outside, ir.IntType(self.lanes))
            outside = self.builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))
        known = self.builder.load(self.trouble, typ=I64)
        self.builder.store(self.builder.or_(known, self.builder.zext(outside, I64)), self.trouble)


def _varies(atom: Any, lane: Variable, emitter: _Emitter) -> bool:
    """Whether an atom that is no variable differs between lanes."""
    if not isinstance(atom, Looked):
        return bool(atom.index.depends_on(lane))
    if lane in emitter._depends(atom.value):
        return True
    return emitter.across_rows and any(isinstance(part, (Total, Scratch)) for part in walk(atom.value))
