"""Expressions: the computation of one number of a kernel from elements in memory, as data.

The indices of the elements are index algebra (`minitorch.compiler.loop_ir.index`). The order of the numbers, and the
stores, are in `minitorch.compiler.loop_ir.loops`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import is_
from typing import Any

from ...dtypes import DType, bfloat16, float16, float32
from ..lengths import Length, UnboundedError
from .index import VARIABLES, Division, Index, Looked, Quotient, Variable

Places = Mapping[Variable, Index]


def computed_in(dtype: DType) -> DType:
    """Return the type of a register: 16-bit floats are computed in float32 and rounded per operation, as in eager.

    Sums keep their total in float32 until they are complete.
    """
    return float32 if dtype in (float16, bfloat16) else dtype


@dataclass(frozen=True)
class Inside:
    """Conditions on indices, all of which must hold: ``low <= index < high``."""

    bounds: tuple[tuple[int, Index, int], ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.bounds)

    def and_(self, low: int, index: Index, high: int) -> Inside:
        """Add a condition, unless it always holds."""
        if isinstance(high, Length):
            return self.and_(low, index, int(high) + 1).below(index, high)
        lowest, highest = index.bounds
        condition = (low, index, high)
        if (low <= lowest and highest < high) or condition in self.bounds:
            return self
        return Inside((*self.bounds, condition))

    def below(self, index: Index, length: Length) -> Inside:
        """Add that an index is below a length that a call gives."""
        distance = index - length
        return self.and_(distance.bounds[0], distance, 0)

    def substitute(self, places: Places) -> Inside:
        """Return the conditions with other expressions in place of variables."""
        if self.variables.isdisjoint(places):
            return self
        result = Inside()
        for low, index, high in self.bounds:
            result = result.and_(*_undivided(low, index.substitute(places), high))
        return result

    @property
    def never_holds(self) -> bool:
        """Whether one of the conditions holds nowhere."""
        return any(index.bounds[1] < low or index.bounds[0] >= high for low, index, high in self.bounds)

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables in the conditions."""
        return frozenset[Variable]().union(*(index.variables for _, index, _ in self.bounds))

    def depends_on(self, variable: Variable) -> bool:
        """Return whether a condition mentions the variable."""
        return variable in self.variables

    def __str__(self) -> str:
        return " and ".join(f"{low} <= {index} < {high}" for low, index, high in self.bounds)


ALWAYS = Inside()


def _undivided(low: int, index: Index, high: int) -> tuple[int, Index, int]:
    """Return a condition without its quotient, if it compares one with a length: ``x // d < n`` is ``x < d * n``."""
    quotients = [atom for atom, factor in index.terms if isinstance(atom, Quotient) and factor == 1]
    if len(quotients) != 1 or low > index.bounds[0] or all(each.place is None for each in index.variables):
        return low, index, high
    (quotient,) = quotients
    index = quotient.index + (index - Index(((quotient, 1),))) * quotient.divisor
    return index.bounds[0], index, high * quotient.divisor


@dataclass(frozen=True, eq=False)
class Expression:
    """The computation of one number. Equal expressions have equal values, so a kernel computes each once."""

    dtype: DType

    def __post_init__(self) -> None:
        # Now, while the parts' hashes are known: later it would recurse through the whole expression.
        fields = tuple(getattr(self, name) for name in _compared(type(self)))  # type: ignore[arg-type]  # a class
        object.__setattr__(self, "_fields", fields)
        object.__setattr__(self, "_hash", hash((type(self).__name__, fields)))

    def __hash__(self) -> int:
        known: int = self.__dict__["_hash"]
        return known

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        # Pairs are compared once: shared parts would otherwise be compared at each occurrence, exponentially often.
        if not isinstance(other, Expression) or hash(self) != hash(other):
            return False
        pending: list[tuple[Expression, Expression]] = [(self, other)]
        seen: set[tuple[int, int]] = set()
        while pending:
            a, b = pending.pop()
            if type(a) is not type(b) or a._itself() != b._itself():
                return False
            for pair in zip(a.parts(), b.parts(), strict=True):
                key = id(pair[0]), id(pair[1])
                if pair[0] is not pair[1] and key not in seen:
                    seen.add(key)
                    pending.append(pair)
        return True

    def _itself(self) -> tuple[Any, ...]:
        """Return the fields that distinguish it from others, without its parts."""
        known: tuple[Any, ...] = self.__dict__["_fields"]
        return known

    def parts(self) -> tuple[Expression, ...]:
        """Return the operands."""
        return ()

    def substitute(self, places: Places) -> Expression:
        """Return the expression at other places: other expressions for loop variables."""
        return rewritten(self, moved(places), {})

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The loop variables that the number varies with."""
        return frozenset[Variable]().union(*map(VARIABLES, self.parts()), *map(VARIABLES, indices_of(self)))

    @cached_property
    def values(self) -> tuple[Expression, ...]:
        """The values that it uses as indices, without those in its parts."""
        return tuple(atom.value for atom in looked_up(self))

    @cached_property
    def reads(self) -> frozenset[Any]:
        """The arrays that it is computed from: numbers of arguments, and local ones."""
        return arrays_of(self)

    @cached_property
    def looks_up(self) -> bool:
        """Whether it uses a value as an index anywhere."""
        return bool(self.values) or any(part.looks_up for part in self.parts())

    @cached_property
    def all_parts(self) -> tuple[Expression, ...]:
        """Itself and its parts at all depths, indices included, each once."""
        found: dict[Expression, None] = {}
        pending: list[Expression] = [self]
        while pending:
            at = pending.pop()
            if at not in found:
                found[at] = None
                pending += at.parts()
                pending += at.values
        return tuple(found)

    def depends_on(self, variable: Variable) -> bool:
        """Return whether the number varies with a loop variable."""
        return variable in self.variables


def arrays_of(expression: Expression, *own: Any) -> frozenset[Any]:
    """Return some arrays, with those that an expression's parts and indices are computed from."""
    return frozenset(own).union(*(part.reads for part in (*expression.parts(), *expression.values)))


@lru_cache(32)
def _compared(kind: type[Expression]) -> tuple[str, ...]:
    """Return the fields of a kind of expressions that are compared."""
    return tuple(name for name, field in kind.__dataclass_fields__.items() if field.compare)


@dataclass(frozen=True, eq=False)
class Number(Expression):
    """A constant. The text of the value is compared, so that 0.0 and -0.0 differ, and NaN equals itself."""

    value: Any = field(compare=False)
    text: str


@dataclass(frozen=True, eq=False)
class Load(Expression):
    """An element of a buffer, read only where `inside` holds."""

    buffer: int
    index: Index
    inside: Inside = ALWAYS

    @cached_property
    def reads(self) -> frozenset[Any]:
        """The buffer, and those that the index is read from."""
        return arrays_of(self, self.buffer)


@dataclass(frozen=True, eq=False)
class Position(Expression):
    """An index as a number."""

    index: Index


@dataclass(frozen=True, eq=False)
class Apply(Expression):
    """An elementwise primitive applied to numbers."""

    primitive: str
    arguments: tuple[Expression, ...]

    def _itself(self) -> tuple[Any, ...]:
        return self.dtype, self.primitive, len(self.arguments)

    def parts(self) -> tuple[Expression, ...]:
        """Return the arguments."""
        return self.arguments


@dataclass(frozen=True, eq=False)
class Choose(Expression):
    """A select: one expression where the conditions hold, another elsewhere; the other reads no memory."""

    inside: Inside
    here: Expression
    elsewhere: Expression

    def _itself(self) -> tuple[Any, ...]:
        return self.dtype, self.inside

    def parts(self) -> tuple[Expression, ...]:
        """Return both alternatives."""
        return (self.here, self.elsewhere)


def literal(dtype: DType, value: Any) -> Number:
    """Return a constant of a type."""
    if isinstance(value, Length):
        raise UnboundedError(f"{value.size} is a number in a kernel")
    return Number(dtype, value, f"{dtype.short} {value!r}")


def converted(value: Expression, dtype: DType) -> Expression:
    """Return a value as another type."""
    return value if value.dtype is dtype else Apply(dtype, "cast", (value,))


def chosen(inside: Inside, here: Expression, elsewhere: Expression) -> Expression:
    """Return a select, or its only possible alternative."""
    if inside == ALWAYS or inside.never_holds:
        return here if inside == ALWAYS else elsewhere
    return Choose(here.dtype, inside, here, elsewhere)


@dataclass(frozen=True, eq=False)
class Sum(Expression):
    """A reduction inside an expression, over its own variable: a contraction that is not stored."""

    variable: Variable
    value: Expression

    def parts(self) -> tuple[Expression, ...]:
        """Return the summand."""
        return (self.value,)

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """Those that the summand varies with, but for the sum's own."""
        return self.value.variables - {self.variable}


@dataclass(frozen=True, eq=False)
class Total(Expression):
    """The result of an accumulator of an earlier loop, for this row."""

    slot: int


@dataclass(frozen=True, eq=False)
class Scratch(Expression):
    """An element of a scratch row that an earlier loop of the kernel filled; the index is within the row."""

    slot: int
    index: Index


def rewritten(
    expression: Expression,
    change: Callable[[Expression], Expression],
    known: dict[Expression, Expression],
    concerns: Callable[[Expression], bool] = lambda _: True,
) -> Expression:
    """Rewrite an expression bottom-up: `change` each part that it concerns, then the whole; `known` memoises."""
    if not concerns(expression):
        return expression
    found = known.get(expression)
    if found is None:
        old = expression.parts()
        parts = tuple([rewritten(part, change, known, concerns) for part in old])
        found = expression
        if all(map(is_, parts, old)):
            pass
        elif isinstance(expression, Apply):
            found = Apply(expression.dtype, expression.primitive, parts)
        elif isinstance(expression, Choose):
            found = Choose(expression.dtype, expression.inside, *parts)
        elif isinstance(expression, Sum):
            found = Sum(expression.dtype, expression.variable, *parts)
        if expression.values:

            def of_value(index: Index) -> Index:
                return index.with_values(lambda value: rewritten(value, change, known, concerns))

            found = _at(found, of_value, lambda all_: Inside(tuple((a, of_value(at), b) for a, at, b in all_.bounds)))
        found = known[expression] = change(found)
    return found


def _at(expression: Expression, index: Callable[[Index], Index], inside: Callable[[Inside], Inside]) -> Expression:
    """Return the expression with changes made to the index and to the conditions that it has."""
    fields: dict[str, Any] = {}
    if (old := getattr(expression, "index", None)) is not None and (new := index(old)) is not old:
        fields["index"] = new
    if (bounds := getattr(expression, "inside", ALWAYS)) is not ALWAYS and (held := inside(bounds)) is not bounds:
        fields["inside"] = held
    return replace(expression, **fields) if fields else expression


def moved(places: Places) -> Callable[[Expression], Expression]:
    """Return a substitution of loop variables for `rewritten`."""

    def change(expression: Expression) -> Expression:
        if isinstance(expression, Choose):
            return chosen(expression.inside.substitute(places), expression.here, expression.elsewhere)
        return _at(expression, lambda index: index.substitute(places), lambda inside: inside.substitute(places))

    return change


def indices_of(expression: Expression) -> list[Index]:
    """Return the indices of an expression and of its conditions, without those in its parts."""
    index, inside = getattr(expression, "index", None), getattr(expression, "inside", ALWAYS)
    own = [] if index is None else [index]
    return [*own, *(at for _, at, _ in inside.bounds)] if inside.bounds else own


def looked_up(expression: Expression) -> list[Looked]:
    """Return the data-dependent indices (gathers) of an expression, without its parts."""
    if not any(index.is_data for index in indices_of(expression)):
        return []
    found, indices = [], indices_of(expression)
    while indices:
        for atom, _ in indices.pop().terms:
            if isinstance(atom, Looked):
                found.append(atom)
            elif isinstance(atom, Division):
                indices.append(atom.index)
    return found
