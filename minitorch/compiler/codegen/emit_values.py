"""Expressions and memory as LLVM instructions: the part of code generation that knows no loops.

An index is a scalar plus a step per lane; with a step of 1 a load is one vector, with 0 one number for all lanes, with
other small steps a few vectors that are sorted out, with anything else a gather. Equal expressions are computed once:
`known` remembers the value of each, a scope per loop.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from ...dtypes import int64
from ..loop_ir.expressions import (
    ALWAYS,
    Apply,
    Choose,
    Expression,
    Inside,
    Load,
    Number,
    Position,
    Scratch,
    Total,
    looked_up,
)
from ..loop_ir.index import Index, Quotient, Variable
from ..loop_ir.loops import Loop
from ..target import MOST_STEP
from .emit_indices import Indices
from .instructions import (
    PRIMITIVES,
    after_load,
    cast,
    computed_type,
    constant,
    rounded,
    stored_type,
)
from .vector_memory import (
    POINTER,
    first_lanes,
    gather,
    integer,
    load,
    load_repeated,
    load_strided,
    scatter,
    store,
)


class Values(Indices):
    """Emits expressions into a function; which rows and columns are current is set by whoever emits the loops."""

    # Values ---------------------------------------------------------------------------------------------

    def _hoist(self, expression: Expression, loop: Loop, seen: set[Expression] | None = None) -> None:
        """Compute what does not change with the columns before the loop over them begins."""
        seen = set() if seen is None else seen
        if expression in seen or isinstance(expression, (Number, Total)):
            return
        seen.add(expression)
        if not self._depends(expression) & set(loop.columns):
            self._value(expression)
            return
        for part in expression.parts():
            self._hoist(part, loop, seen)
        for atom in looked_up(expression):
            if not self._depends(atom.value) & set(loop.columns):
                varies = self.lane is not None and self._varies(atom, self.lane)
                (self._vector_atom if varies else self._scalar_atom)(atom)

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
            case Choose() if _is_zero(expression.elsewhere) and _reads_only(expression.here, expression.inside):
                value = self._value(expression.here)
                if isinstance(value.type, ir.VectorType):  # zero in the lanes that the mask leaves out
                    return value
                return self._select(self._condition(expression.inside), value, self._value(expression.elsewhere))
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
                operands = self._alike(*operands)
                return rounded(builder, PRIMITIVES[expression.primitive](builder, old, *operands), dtype)
        raise TypeError(f"{type(expression).__name__} is not an expression")

    def _select(self, condition: Any, a: Any, b: Any) -> Any:
        return self.builder.select(*self._alike(condition, a, b))

    def _position(self, expression: Position) -> Any:
        varies = self.lane is not None and expression.index.depends_on(self.lane)
        value = self._vector_index(expression.index) if varies else self._scalar_index(expression.index)
        return cast(self.builder, value, int64, expression.dtype)

    # Memory ---------------------------------------------------------------------------------------------

    def _load(self, expression: Load) -> Any:
        kind = stored_type(expression.dtype, self.target)
        return self._read(self.pointers[expression.buffer], expression.index, expression.inside, kind)

    def _read_scratch(self, expression: Scratch) -> Any:
        kind = stored_type(expression.dtype, self.target)
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
        near = step if step is not None and (step < 0 or step > 1) and abs(step) <= MOST_STEP else 0
        known = self.mask is None or isinstance(self.mask, ir.Constant)
        if known and condition is None and near:
            place = self.builder.gep(pointer, [self._scalar_index(index)], source_etype=kind)
            return load_strided(self.builder, place, vector, near, self._lanes_in_use())
        times = self._repetitions(index) if known and condition is None and step is None else 0
        if times:
            place = self.builder.gep(pointer, [self._scalar_index(index)], source_etype=kind)
            return load_repeated(self.builder, place, vector, times, self._lanes_in_use())
        mask = self._mask_where(inside)
        if near:
            place = self.builder.gep(pointer, [self._scalar_index(index)], source_etype=kind)
            return load_strided(self.builder, place, vector, near, self.lanes, mask)
        if step == 1:
            place = self.builder.gep(pointer, [self._scalar_index(index)], source_etype=kind)
            return load(self.builder, place, vector, mask)
        return gather(self.builder, self._pointers(pointer, index, kind), vector, mask)

    def _repetitions(self, index: Index) -> int:
        """In how many lanes the same element is read, if it is the next element after that; 0 if it is not so."""
        varying = [atom for atom, _ in index.terms if self._step(Index(((atom, 1),))) != 0]
        if len(varying) != 1 or self.lane is None or not self._begins_at_multiples(self.lane):
            return 0
        (atom,) = varying
        if not isinstance(atom, Quotient) or index.coefficient(atom) != 1 or self.lanes % atom.divisor:
            return 0
        others = [(each, factor) for each, factor in atom.index.terms if each != self.lane]
        whole = all(isinstance(each, Variable) and factor % atom.divisor == 0 for each, factor in others)
        return atom.divisor if atom.index.coefficient(self.lane) == 1 and whole and not atom.index.constant else 0

    def _begins_at_multiples(self, along: Variable) -> bool:
        """Whether every vector along a variable begins at a multiple of its length."""
        return True

    def _pointers(self, pointer: Any, index: Index, kind: Any) -> Any:
        """The address of each lane's element."""
        places = self.builder.gep(pointer, [self._vector_index(index)], source_etype=kind)
        places.type = ir.VectorType(POINTER, self.lanes)  # llvmlite takes it for a single pointer
        return places

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
        return self.builder.gep(self.scratch[slot], [place], source_etype=stored_type(element, self.target))

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
            store(self.builder, place, self._vector(value), self.mask)
        else:
            scatter(self.builder, self._pointers(pointer, index, kind), self._vector(value), self.mask)


def _is_zero(expression: Expression) -> bool:
    """Whether an expression is the number whose bits are 0."""
    return isinstance(expression, Number) and not expression.value and math.copysign(1, expression.value) > 0


def _reads_only(expression: Expression, inside: Inside) -> bool:
    """Whether an expression is an element that is read under the conditions, and perhaps others."""
    return isinstance(expression, Load) and set(inside.bounds) <= set(expression.inside.bounds)
