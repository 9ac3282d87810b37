"""The values of expressions: one number, or one per lane.

Integers that depend only on unrolled loops are known when the code is made (constant propagation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from ....dtypes import int32, int64
from ....ir import PRIMITIVES as DECLARED
from ...loop_ir.expressions import Apply, Choose, Expression, Load, Number, Position
from ...loop_ir.index import Index, Variable
from ...loop_ir.tree import Place, Read
from ..instructions import PRIMITIVES, after_load, cast, computed_type, constant, nearest, rounded
from .conditions import Conditions
from .indices import Indices
from .memory import Memory
from .registers import Registers
from .scopes import Scopes

if TYPE_CHECKING:
    from .groups import Groups


class Expressions:
    """Emitter of expressions.

    Args:
        scopes: the open ones.
        registers: hold elements of local arrays.
        indices: computes indices.
        conditions: computes conditions.
        memory: holds all other elements.
    """

    def __init__(
        self, scopes: Scopes, registers: Registers, indices: Indices, conditions: Conditions, memory: Memory
    ) -> None:
        self.scopes, self.registers, self.builder = scopes, registers, scopes.builder
        self.indices, self.conditions, self.memory = indices, conditions, memory

    @cached_property
    def groups(self) -> Groups:
        """The emitter of sums of integer products."""
        from .groups import Groups

        return Groups(self.scopes, self.memory)

    def value(self, expression: Expression) -> Any:
        """Return the value of an expression: a number, or one per lane if it differs between them."""
        if isinstance(expression, Number):
            return constant(expression.dtype, expression.value, computed_type(expression.dtype))
        known = _known(expression, self.scopes.constants)
        if known is not None:
            return constant(expression.dtype, known.item(), computed_type(expression.dtype))
        return self.scopes.shared(expression, expression, self._prepared)

    def element(self, expression: Load | Read) -> Any:
        """Return an element in the form in which memory and registers hold it."""
        if isinstance(expression, Read) and expression.local.place is Place.REGISTERS:
            return self.registers.read(expression.local, expression.index)
        return self.scopes.shared(("element", expression), expression, self.memory.reading)

    def _prepared(self, expression: Expression) -> Callable[[], Any]:
        """Return how to compute an expression from its parts, which are computed now, each where it belongs."""
        builder, dtype = self.builder, expression.dtype
        match expression:
            case Position():
                place = self.indices.index(expression.index)
                return lambda: cast(builder, place, int64, dtype)
            case Load() | Read():
                element = self.element(expression)
                return lambda: after_load(builder, element, dtype)
            case Choose() if _is_zero_outside(expression) and self._differs(expression.here):
                value = self.value(expression.here)  # zero in the lanes that its mask leaves out
                return lambda: value
            case Choose():
                condition = self.conditions.condition(expression.inside)
                here, elsewhere = self.value(expression.here), self.value(expression.elsewhere)
                return lambda: builder.select(*self.scopes.alike(condition, here, elsewhere))
            case Apply(primitive="add") if dtype is int32 and (windows := self.groups.windows(expression)) is not None:
                return windows
            case Apply():
                operands = [self.value(part) for part in expression.arguments]
                old = expression.arguments[0].dtype
                return lambda: self._applied(expression.primitive, old, dtype, operands)
        raise TypeError(f"{type(expression).__name__} is not an expression of a procedure")

    def _applied(self, name: str, old: Any, dtype: Any, operands: list[Any]) -> Any:
        builder = self.builder
        if name == "cast":
            return cast(builder, operands[0], old, dtype)
        if name == "nearest":
            return nearest(builder, operands[0], dtype)
        if name == "bitcast":
            kind = computed_type(dtype)
            (x,) = operands
            return builder.bitcast(x, ir.VectorType(kind, x.type.count) if isinstance(x.type, ir.VectorType) else kind)
        operands = self.scopes.alike(*operands)
        if name == "where":
            return builder.select(*operands)
        return rounded(builder, PRIMITIVES[name](builder, old, *operands), dtype)

    def _differs(self, expression: Expression) -> bool:
        return self.scopes.lane is not None and self.scopes.lane in self.scopes.facts(expression)[0]


def _known(expression: Expression, iterations: Mapping[Variable, int]) -> Any:
    """Return the value of an integer that only loops with known iterations decide; None for another one."""
    if expression.dtype.category != "int" or expression.reads or not expression.variables <= iterations.keys():
        return None
    dtype = expression.dtype.numpy
    match expression:
        case Number(value=number):
            return np.array([number], dtype)
        case Position(index=index):
            place = index.substitute({each: Index((), number) for each, number in iterations.items()})
            return None if place.terms else np.array([place.constant]).astype(dtype)
        case Apply(primitive=name, arguments=arguments):
            operands = [_known(each, iterations) for each in arguments]
            if any(each is None for each in operands):
                return None
            if name == "bitcast":
                return operands[0].view(dtype)
            with np.errstate(all="ignore"):
                return operands[0].astype(dtype) if name == "cast" else DECLARED[name].evaluate(*operands)
    return None


def _is_zero_outside(choice: Choose) -> bool:
    """Return whether a choice is an element that is read under its conditions, and else the number whose bits are 0."""
    here, elsewhere = choice.here, choice.elsewhere
    if not isinstance(here, Load) or not set(choice.inside.bounds) <= set(here.inside.bounds):
        return False
    return isinstance(elsewhere, Number) and not elsewhere.value and math.copysign(1, elsewhere.value) > 0
