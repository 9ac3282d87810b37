"""Expressions, memory and indices as LLVM instructions: the part of code generation that knows no loops.

An index is a scalar plus a step per lane; with a step of 1 a load is one vector, with 0 one number for all lanes, with
anything else a gather. Equal expressions are computed once: `known` remembers the value of each, a scope per loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ..dtypes import float32, float64, int64
from .index import Index, Looked, Quotient, Variable
from .instructions import (
    I64,
    PRIMITIVES,
    after_load,
    cast,
    computed_type,
    constant,
    rounded,
    splat,
    stored_type,
)
from .layout import Layout
from .loops import (
    ALWAYS,
    Accumulate,
    Apply,
    Buffer,
    Choose,
    Expression,
    Inside,
    Load,
    Loop,
    Nest,
    Number,
    Position,
    Scratch,
    Total,
    index_values,
    looked_up,
    walk,
)
from .mathematics import divided, reciprocal_of
from .vector_memory import MOST_STEP, POINTER, first_lanes, gather, integer, load, load_strided, scatter, store


class Values:
    """Emits expressions into a function; which rows and columns are current is set by whoever emits the loops."""

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
        self.everything = {*nest.rows, *(column for loop in nest.loops for column in loop.columns)}
        self.variables: dict[Expression, frozenset[Variable]] = {}
        self.sums = {
            statement.slot
            for _, statement in nest.statements
            if isinstance(statement, Accumulate) and statement.reduction == "reduce_sum"
        }
        self.by_row: dict[Expression, bool] = {}
        self.tile_memory: dict[tuple[int, Index, bool], Any] = {}
        # Transposed tiles by what they hold: their place on the stack, and the loop variable and its value there.
        self.filled: dict[tuple[int, Index, bool], tuple[Any, Variable, Any]] = {}

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

    def _smaller(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    # Values ---------------------------------------------------------------------------------------------

    def _depends(self, expression: Expression) -> frozenset[Variable]:
        """The loop variables that an expression's value changes with, accumulators apart."""
        found = self.variables.get(expression)
        if found is None:
            own = {v for v in self.everything if type(expression) not in (Apply, Choose) and expression.depends_on(v)}
            if isinstance(expression, Choose):
                own |= {v for v in self.everything if expression.inside.depends_on(v)}
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
        for atom in looked_up(expression):
            if not self._depends(atom.value) & set(loop.columns):
                varies = self.lane is not None and _varies(atom, self.lane, self)
                (self._vector_atom if varies else self._scalar_atom)(atom)
        if isinstance(expression, Apply) and self._is_multiplied(expression) and not self._reciprocal(expression):
            divisor = self._value(expression.arguments[1])
            self.known[-1][self._reciprocal_key(expression)] = reciprocal_of(self.builder, divisor)

    def _is_multiplied(self, expression: Apply) -> bool:
        """Whether a division by something that does not change with the columns becomes a multiplication.

        It may then differ in the last place. So the divisor has to be made of a sum, which is not exact anyway.
        """
        return (
            expression.primitive == "div"
            and expression.dtype in (float32, float64)
            and any(isinstance(part, Total) and part.slot in self.sums for part in walk(expression.arguments[1]))
        )

    def _reciprocal_key(self, expression: Apply) -> Any:
        divisor = expression.arguments[1]
        return ("reciprocal", divisor), self.current if self._varies_with_rows(divisor) else 0

    def _reciprocal(self, expression: Apply) -> Any:
        """What to multiply by instead of a division, if that has been computed."""
        key = self._reciprocal_key(expression)
        return next((scope[key] for scope in self.known if key in scope), None)

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
                return after_load(builder, self._load(expression), dtype)
            case Scratch():
                return after_load(builder, self._read_scratch(expression), dtype)
            case Choose():
                return self._select(
                    self._condition(expression.inside), self._value(expression.here), self._value(expression.elsewhere)
                )
            case Apply():
                reciprocal = self._reciprocal(expression) if expression.primitive == "div" else None
                if reciprocal is not None:
                    a = self._value(expression.arguments[0])
                    return divided(builder, *self._alike(a, *reciprocal))
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
                operands = self._alike(*operands)
                return rounded(builder, PRIMITIVES[expression.primitive](builder, old, *operands), dtype)
        raise TypeError(f"{type(expression).__name__} is not an expression")

    def _select(self, condition: Any, a: Any, b: Any) -> Any:
        return self.builder.select(*self._alike(condition, a, b))

    def _alike(self, *values: Any) -> list[Any]:
        """All values in every lane, if one of them differs between lanes."""
        vectors = any(isinstance(value.type, ir.VectorType) for value in values)
        return [self._vector(value) for value in values] if vectors else list(values)

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

    def _load(self, expression: Load) -> Any:
        kind = stored_type(expression.dtype)
        if expression.inside == ALWAYS:
            place = self._place_in_tile(expression.buffer, expression.index, written=False)
            if place is not None:
                return load(self.builder, place, ir.VectorType(kind, self.lanes))
        return self._read(self.pointers[expression.buffer], expression.index, expression.inside, kind)

    def _place_in_tile(self, buffer: int, index: Index, written: bool) -> Any:
        """Where a transposed tile has the elements of this round, if there is such a tile."""
        found = self.filled.get((buffer, index, written))
        if found is None:
            return None
        memory, along, start = found
        place = self.builder.mul(self.builder.sub(self.places[along], start), integer(self.lanes * self.layout.abreast))
        if self.current:
            place = self.builder.add(place, integer(self.lanes * self.current))
        return self.builder.gep(memory, [place], source_etype=stored_type(self.buffers[buffer].dtype))

    def _read_scratch(self, expression: Scratch) -> Any:
        kind = stored_type(expression.dtype)
        if not self.across_rows:
            return self._read(self.scratch[expression.slot], expression.index, ALWAYS, kind)
        place = self._scratch_row(expression.slot, expression.index, None)
        return load(self.builder, place, ir.VectorType(kind, self.lanes))

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
        vector = ir.VectorType(kind, self.lanes)
        known = self.mask is None or isinstance(self.mask, ir.Constant)
        if known and condition is None and step is not None and (step < 0 or step > 1) and abs(step) <= MOST_STEP:
            place = self.builder.gep(pointer, [self._scalar_index(index)], source_etype=kind)
            return load_strided(self.builder, place, vector, step, self._lanes_in_use())
        mask = self.mask
        if condition is not None:
            condition = self._vector(condition)
            mask = condition if mask is None else self.builder.and_(mask, condition)
        if step == 1:
            place = self.builder.gep(pointer, [self._scalar_index(index)], source_etype=kind)
            return load(self.builder, place, vector, mask)
        return gather(self.builder, self._pointers(pointer, index, kind), vector, mask)

    def _pointers(self, pointer: Any, index: Index, kind: Any) -> Any:
        """The address of each lane's element."""
        places = self.builder.gep(pointer, [self._vector_index(index)], source_etype=kind)
        places.type = ir.VectorType(POINTER, self.lanes)  # llvmlite takes it for a single pointer
        return places

    def _condition(self, inside: Inside) -> Any:
        """Whether the conditions hold: one bit, or one per lane."""
        key = ("condition", inside), self.current
        known = next((scope[key] for scope in self.known if key in scope), None)
        if known is None:
            known = self.known[-1][key] = self._holds(inside)
        return known

    def _holds(self, inside: Inside) -> Any:
        result = None
        for bound in inside.bounds:
            key = ("bound", bound), self.current
            both = next((scope[key] for scope in self.known if key in scope), None)
            if both is None:
                both = self.known[-1][key] = self._within(*bound)
            if result is not None and isinstance(result.type, ir.VectorType) != isinstance(both.type, ir.VectorType):
                result, both = self._vector(result), self._vector(both)
            result = both if result is None else self.builder.and_(result, both)
        return result

    def _within(self, low: int, index: Index, high: int) -> Any:
        varies = self.lane is not None and self._step(index) != 0
        place = self._vector_index(index) if varies else self._scalar_index(index)
        above = self.builder.icmp_signed(">=", place, splat(place.type, low))
        below = self.builder.icmp_signed("<", place, splat(place.type, high))
        return self.builder.and_(above, below)

    def _first_lanes(self, count: int) -> Any:
        return first_lanes(self.lanes, count)

    def _lanes_in_use(self) -> int:
        """How many lanes the mask leaves."""
        return self.lanes if self.mask is None else sum(bit.constant for bit in self.mask.constant)

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
            scatter(self.builder, self._pointers(pointer, index, kind), self._vector(value), self.mask)

    def _store_vector(self, place: Any, value: Any, mask: Any) -> None:
        store(self.builder, place, value, mask)

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
            return self._looked(atom, vector=False)
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
            return self._looked(atom, vector=True)
        return self._quotient(atom, self._vector_index(atom.index))

    def _quotient(self, atom: Any, index: Any) -> Any:
        """Quotient or remainder, rounded down; where the index cannot be negative, an unsigned division does it."""
        divisor = splat(index.type, atom.divisor)
        low, _ = atom.index.bounds
        if low >= 0:
            return (self.builder.udiv if isinstance(atom, Quotient) else self.builder.urem)(index, divisor)
        name = "floor_divide" if isinstance(atom, Quotient) else "remainder"
        return PRIMITIVES[name](self.builder, int64, index, divisor)

    def _looked(self, atom: Looked, vector: bool) -> Any:
        """An index from data, in lane 0 or in each; it is looked up and checked once for each value of the loops."""
        key = (atom, vector), self.current if self._varies_with_rows(atom.value) else 0
        known = next((scope[key] for scope in self.known if key in scope), None)
        if known is None:
            value = self._value(atom.value)
            if vector:
                value = self._vector(value)
            elif isinstance(value.type, ir.VectorType):
                value = self.builder.extract_element(value, ir.Constant(ir.IntType(32), 0))
            known = self.known[-1][key] = self._within_bounds(atom, value)
        return known

    def _within_bounds(self, atom: Looked, value: Any) -> Any:
        """An index as an address needs it: negative ones count from the end, and none leads outside."""
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


def _varies(atom: Any, lane: Variable, emitter: Values) -> bool:
    """Whether an atom that is no variable differs between lanes."""
    if not isinstance(atom, Looked):
        return bool(atom.index.depends_on(lane))
    if lane in emitter._depends(atom.value):
        return True
    return emitter.across_rows and any(isinstance(part, (Total, Scratch)) for part in walk(atom.value))
