"""Loops and indices as LLVM instructions, and the state that everything emitted for one nest shares.

An index is a scalar plus a step per lane, or a number for each lane if it does not grow by equal steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from ...dtypes import int64
from ..loop_ir.expressions import ALWAYS, Apply, Choose, Expression, Inside, Scratch, Sum, Total, index_values, walk
from ..loop_ir.index import Index, Looked, Quotient, Variable
from ..loop_ir.loops import Buffer, Nest
from ..scheduling.layout import Layout
from ..target import Target
from .builder import Builder
from .instructions import (
    BIT,
    I64,
    PRIMITIVES,
    cast,
    stored_type,
)
from .mathematics.values import splat
from .vector_memory import (
    POINTER,
    broadcast,
    integer,
)

Body = Callable[[Any, list[Any]], list[Any]]


class Indices:
    """Emits loops and indices into a function; which rows and columns are current is set by whoever emits the loops."""

    def __init__(self, buffers: tuple[Buffer, ...], nest: Nest, function: Any, target: Target) -> None:
        self.buffers = buffers
        self.nest = nest
        self.target = target
        self.function = function
        self.layout = Layout(nest, target)
        self.lanes = self.layout.lanes
        self.builder = Builder(function.append_basic_block("entry"), target)
        self.pointers = [self._pointer(number) for number in range(len(buffers))]
        self.trouble = function.args[1]
        self.across_rows = self.layout.across_rows
        width = self.lanes * self.layout.abreast if self.across_rows else 1
        self.scratch = [self._row_memory(length * width, stored_type(dtype, target)) for length, dtype in nest.scratch]
        self.firsts: list[Any] = []  # the first row of each vector that is abreast; empty without lanes across rows
        self.current = 0  # which of them is being emitted
        self.places: dict[Variable, Any] = {}  # the scalar value of each loop variable; of the lanes' one, in lane 0
        self.lane: Variable | None = None
        self.mask: Any = None
        self.totals: dict[tuple[int, int], Any] = {}  # by slot and vector
        self.known: list[dict[Any, Any]] = [{}]  # values by expression, one scope per loop
        self.variables: dict[Expression, frozenset[Variable]] = {}
        self.by_row: dict[Expression, bool] = {}
        self.everything = {*nest.rows, *(column for loop in nest.loops for column in loop.columns)}

    def _row_memory(self, length: int, kind: Any) -> Any:
        """Room for a scratch row on the stack."""
        memory = self.builder.alloca(ir.ArrayType(kind, max(length, 1)))
        memory.align = 64
        memory.type = POINTER
        return memory

    def _pointer(self, number: int) -> Any:
        slot = self.builder.gep(self.function.args[0], [integer(number)], source_etype=POINTER)
        return self.builder.load(slot, typ=POINTER)

    def _loop(self, start: Any, stop: Any, step: int, carried: Sequence[Any], body: Body) -> list[Any]:
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

    def _value(self, expression: Expression) -> Any:
        """The value of an expression, where indices are data."""
        raise NotImplementedError

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
            found = isinstance(expression, (Total, Scratch, Sum)) or any(
                self._varies_with_rows(part) for part in (*expression.parts(), *index_values(expression))
            )
            if not found and self.nest.rows:
                found = self.nest.rows[-1] in self._depends(expression)
            self.by_row[expression] = found
        return found

    def _step(self, index: Index) -> int | None:
        """By how much an index grows from lane to lane; None if by different amounts."""
        if self.lane is None:
            return 0
        for atom, _ in index.terms:
            if not isinstance(atom, Variable) and self._varies(atom, self.lane):
                return None
        return index.coefficient(self.lane)

    def _varies(self, atom: Any, lane: Variable) -> bool:
        """Whether an atom that is no variable differs between lanes."""
        if not isinstance(atom, Looked):
            return bool(atom.index.depends_on(lane))
        if lane in self._depends(atom.value):
            return True
        return self.across_rows and any(isinstance(part, (Total, Scratch)) for part in walk(atom.value))

    def _condition(self, inside: Inside) -> Any:
        """Whether the conditions hold: one bit, or one per lane."""
        return self._once(("condition", inside), lambda: self._holds(inside))

    def _mask_where(self, inside: Inside) -> Any:
        """The lanes of the mask in which conditions hold; None for all."""
        if inside == ALWAYS:
            return self.mask
        condition = self._condition(inside)
        if self.mask is None:
            return self._vector(condition)
        return self._once(("mask", inside, self.mask), lambda: self.builder.and_(self.mask, self._vector(condition)))

    def _once(self, key: Any, compute: Callable[[], Any]) -> Any:
        """What has been computed for these vectors and values of the loops already, or is now."""
        key = key, self.current
        known = next((scope[key] for scope in self.known if key in scope), None)
        if known is None:
            known = self.known[-1][key] = compute()
        return known

    def _within(self, low: int, index: Index, high: int) -> Any:
        varies = self.lane is not None and self._step(index) != 0
        known = self._known_index(index) if varies else None
        if known is not None:
            return ir.Constant(ir.VectorType(BIT, self.lanes), [int(low <= place < high) for place in known])
        place = self._vector_index(index) if varies else self._scalar_index(index)
        above = self.builder.icmp_signed(">=", place, splat(place.type, low))
        below = self.builder.icmp_signed("<", place, splat(place.type, high))
        return self.builder.and_(above, below)

    def _holds(self, inside: Inside) -> Any:
        result = None
        for bound in inside.bounds:
            both = self._once(("bound", bound), partial(self._within, *bound))
            if result is not None and isinstance(result.type, ir.VectorType) != isinstance(both.type, ir.VectorType):
                result, both = self._vector(result), self._vector(both)
            result = both if result is None else self.builder.and_(result, both)
        return result

    def _alike(self, *values: Any) -> list[Any]:
        """All values in every lane, if one of them differs between lanes."""
        vectors = any(isinstance(value.type, ir.VectorType) for value in values)
        return [self._vector(value) for value in values] if vectors else list(values)

    def _vector(self, value: Any) -> Any:
        """A value in every lane."""
        if isinstance(value.type, ir.VectorType):
            return value
        return broadcast(self.builder, value, self.lanes)

    def _scalar_index(self, index: Index) -> Any:
        """The index in lane 0."""
        return self._sum(index, self._scalar_atom, integer)

    def _vector_index(self, index: Index) -> Any:
        """The index in each lane."""
        kind = ir.VectorType(I64, self.lanes)
        return self._sum(index, self._vector_atom, lambda value: splat(kind, value))

    def _known_index(self, index: Index) -> list[int] | None:
        """The index in each lane, if all that it depends on is known: in the rest of the columns, for instance."""
        places = {v: place.constant for v, place in self.places.items() if isinstance(place, ir.Constant)}
        known = []
        for lane in range(self.lanes):
            at = {v: Index((), place + (lane if v == self.lane else 0)) for v, place in places.items()}
            found = index.substitute(at)
            if found.terms:
                return None
            known.append(found.constant)
        return known

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
