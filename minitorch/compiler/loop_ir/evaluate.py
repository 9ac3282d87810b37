"""Loop IR run by Python, element by element: slow, obvious, and what every other way out is compared with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir import PRIMITIVES
from .expressions import Apply, Choose, Expression, Inside, Load, Number, Position, Scratch, Sum, Total, computed_in
from .index import Index, Looked, Quotient, Remainder, Variable
from .loops import Accumulate, Keep, LoopKernel, Nest, Store, neutral

Array = np.ndarray[Any, Any]


class _Row:
    """The state of one row: loop variables, accumulators, scratch rows."""

    def __init__(self, buffers: Sequence[Array], scratch: list[Array]) -> None:
        self.buffers = buffers
        self.scratch = scratch
        self.places: dict[Variable, int] = {}
        self.totals: dict[int, Any] = {}
        self.known: dict[int, Any] = {}  # what parts of the statement at hand have come to, by id

    def index(self, index: Index) -> int:
        total = index.constant
        for atom, factor in index.terms:
            if isinstance(atom, Variable):
                total += factor * self.places[atom]
            elif isinstance(atom, Looked):
                place = int(self.value(atom.value))
                if not -atom.extent <= place < atom.extent:
                    raise IndexError(f"index {place} is out of bounds for a dimension of {atom.extent}")
                total += factor * (place + atom.extent if place < 0 else place)
            elif isinstance(atom, Quotient):
                total += factor * (self.index(atom.index) // atom.divisor)
            elif isinstance(atom, Remainder):
                total += factor * (self.index(atom.index) % atom.divisor)
        return total

    def holds(self, inside: Inside) -> bool:
        return all(low <= self.index(index) < high for low, index, high in inside.bounds)

    def value(self, expression: Expression) -> Any:
        match expression:
            case Number():
                return np.asarray(expression.value, expression.dtype.numpy)[()]
            case Load():
                return self.buffers[expression.buffer][self.index(expression.index)]
            case Position():
                return np.asarray(self.index(expression.index), expression.dtype.numpy)[()]
            case Choose():
                return self.value(expression.here if self.holds(expression.inside) else expression.elsewhere)
            case Total():
                return np.asarray(self.totals[expression.slot], expression.dtype.numpy)[()]
            case Scratch():
                return self.scratch[expression.slot][self.index(expression.index)]
            case Sum():
                total = np.zeros((), expression.dtype.numpy)[()]
                around = self.known
                for place in range(expression.variable.extent):
                    self.places[expression.variable], self.known = place, {}
                    total = total + self.value(expression.value)
                self.known = around
                return total
            case Apply() if id(expression) in self.known:
                return self.known[id(expression)]
            case Apply():
                arguments = [np.asarray(self.value(part)) for part in expression.arguments]
                params = {"dtype": expression.dtype} if expression.primitive in ("cast", "bitcast") else {}
                if expression.primitive == "multiply_add":
                    a, b, c = arguments
                    return (a * b + c)[()]
                found = np.asarray(PRIMITIVES[expression.primitive].evaluate(*arguments, **params))[()]
                self.known[id(expression)] = found
                return found
        raise TypeError(f"{type(expression).__name__} is not an expression")


_COMBINE = {"reduce_sum": np.add, "reduce_max": np.maximum, "reduce_prod": np.multiply}


def run(kernel: LoopKernel, buffers: Sequence[Array]) -> None:
    """Run a kernel on flat arrays, one per buffer."""
    with np.errstate(all="ignore"):
        for nest, _, start in kernel.parts:
            _run_nest(nest, buffers[start:])


def _run_nest(nest: Nest, buffers: Sequence[Array]) -> None:
    scratch = [np.empty(length, dtype.numpy) for length, dtype in nest.scratch]
    row = _Row(buffers, scratch)
    for place in itertools.product(*(range(variable.extent) for variable in nest.rows)):
        row.places = dict(zip(nest.rows, place, strict=True))
        row.totals = {}
        for loop in nest.loops:
            for statement in loop.statements:
                if isinstance(statement, Accumulate):
                    wide = computed_in(statement.value.dtype)
                    row.totals[statement.slot] = wide.numpy.type(neutral(statement.reduction, wide))
            for column in itertools.product(*(range(variable.extent) for variable in loop.columns)):
                row.places |= dict(zip(loop.columns, column, strict=True))
                for statement in loop.statements:
                    row.known = {}
                    value = row.value(statement.value)
                    match statement:
                        case Accumulate():
                            total = row.totals[statement.slot]
                            row.totals[statement.slot] = _COMBINE[statement.reduction](total, total.dtype.type(value))
                        case Store():
                            row.buffers[statement.buffer][row.index(statement.index)] = value
                        case Keep():
                            scratch[statement.slot][row.index(statement.index)] = value
