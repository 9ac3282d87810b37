"""Blocks of a sweep that contribute nothing, as their place alone can tell: those above the diagonal of a causal mask.

``where(column <= row, score, -inf)`` is -inf in a whole tile if the comparison fails for its first column and last row.
Then the exponentials are 0, and whatever is multiplied by them is 0: the tile need not be computed. This is found by
asking, of every comparison of positions in a sweep: what would be left of the terms if it came out false (or true)
everywhere?

What is left is nothing, but for NaN and infinity. ``0 * v`` is NaN where v is infinite, and so is ``0 / sum`` where the
sum is NaN. Hence what depends on the column alone is still computed in blocks that are passed over, one column at a
time; and where something depends on the row alone, the first block is never passed over, so that a row that is NaN for
all columns shows it there. What depends on row and column, such as another inner sum, is taken for a finite number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ...loop_ir.expressions import Apply, Expression, Number, Position, Sum, Total, walk
from ...loop_ir.index import Index, Variable
from .sweeps import SHIFT, Output, Reduction, Sweeps

NOTHING, LOWEST, PLAIN = "0 or NaN", "-inf or NaN", "whatever"


@dataclass(frozen=True)
class Skip:
    """When blocks of a sweep can be passed over, and what is left of them.

    Attributes:
        comparison: of the two positions: ``less``, ``less_equal`` or ``equal``.
        difference: of the first and the second.
        outcome: of the comparison, in the whole tile.
        sums: what is left of reductions, unless it is 0.
        weights: what is left of the weights of outputs.
        needs_first: whether the first block of columns has to be computed all the same.
    """

    comparison: str
    difference: Index
    outcome: bool
    sums: tuple[tuple[Reduction, Expression], ...]
    weights: tuple[tuple[Output, Expression], ...]
    needs_first: bool


def skips(sweeps: Sweeps, sweep: int) -> list[Skip]:
    """The ways in which a block of columns can turn out to contribute nothing."""
    comparisons = {part for term in sweeps.terms(sweep) for part in walk(term) if _compares_positions(part)}
    found = []
    for each in sorted(comparisons, key=str):
        assert isinstance(each, Apply)
        for outcome in (False, True):
            skip = _skip(sweeps, sweep, each, outcome)
            found += [skip] if skip is not None else []
    return found


def _compares_positions(part: Expression) -> bool:
    if not isinstance(part, Apply) or part.primitive not in ("less", "less_equal", "equal"):
        return False
    indices = [each.index for each in part.arguments if isinstance(each, Position)]
    return len(indices) == 2 and all(isinstance(atom, Variable) for index in indices for atom, _ in index.terms)


def _skip(sweeps: Sweeps, sweep: int, comparison: Apply, outcome: bool) -> Skip | None:
    rest = _Rest(sweeps, comparison, outcome)
    sums, weights = [], []
    for each in sweeps.reductions:
        if each.term.sweep == sweep:
            kind, value = rest.of(each.term.value)
            if each.name == "reduce_max":
                if kind != LOWEST or not isinstance(value, Number):
                    return None
            elif kind != NOTHING:
                return None
            elif not isinstance(value, Number):
                sums.append((each, value))
    for output in sweeps.outputs:
        if output.weight.sweep == sweep:
            kind, value = rest.of(output.weight.value)
            if kind != NOTHING:
                return None
            weights.append((output, value))
    first, second = (each.index for each in comparison.arguments if isinstance(each, Position))
    return Skip(comparison.primitive, first - second, outcome, tuple(sums), tuple(weights), rest.needs_first)


class _Rest:
    """What is left of expressions if a comparison has the same outcome everywhere."""

    def __init__(self, sweeps: Sweeps, comparison: Expression, outcome: bool) -> None:
        self.row = sweeps.row
        self.comparison, self.outcome = comparison, outcome
        self.column = sweeps.column
        self.needs_first = False

    def of(self, value: Expression) -> tuple[str, Expression]:
        """What kind of value is left, and what it is as a function of the column; of anything else, itself."""
        if value == self.comparison:
            return PLAIN, Number(value.dtype, self.outcome, str(self.outcome))
        if isinstance(value, Number) and value.dtype.is_floating_point and not value.value:
            return NOTHING, value
        if isinstance(value, Number) and value.value == -math.inf:
            return LOWEST, value
        if isinstance(value, Apply) and value.primitive in _RULES:
            return _RULES[value.primitive](self, value)
        return PLAIN, value

    def is_of_the_row(self, value: Expression) -> bool:
        """Whether it is a number of the row, and not one that this kernel keeps finite where all columns are -inf."""
        if isinstance(value, (Number, Sum)) or value.depends_on(self.column):
            return False
        return not (isinstance(value, Total) and value.slot <= SHIFT) and not any(
            isinstance(part, Sum) for part in walk(value)
        )

    def is_of_the_column(self, value: Expression) -> bool:
        """Whether it is the same for all rows."""
        return not value.depends_on(self.row) and not any(isinstance(part, (Sum, Total)) for part in walk(value))


Rule = Callable[[_Rest, Apply], tuple[str, Expression]]


def _where(rest: _Rest, value: Apply) -> tuple[str, Expression]:
    condition, here, elsewhere = value.arguments
    _, known = rest.of(condition)
    return rest.of(here if known.value else elsewhere) if isinstance(known, Number) else (PLAIN, value)


def _logic(decided_by: bool) -> Rule:
    """And, which one that is false decides; or, which one that is true decides."""

    def rule(rest: _Rest, value: Apply) -> tuple[str, Expression]:
        for part in value.arguments:
            _, known = rest.of(part)
            if isinstance(known, Number) and bool(known.value) is decided_by and value.dtype.name == "bool":
                return PLAIN, known
        return PLAIN, value

    return rule


def _not(rest: _Rest, value: Apply) -> tuple[str, Expression]:
    _, known = rest.of(value.arguments[0])
    if isinstance(known, Number) and value.dtype.name == "bool":
        return PLAIN, Number(value.dtype, not known.value, str(not known.value))
    return PLAIN, value


def _absorbed(kind: str, places: tuple[int, ...]) -> Rule:
    """An operation whose result is of a kind if one of its operands, at certain places, is."""

    def rule(rest: _Rest, value: Apply) -> tuple[str, Expression]:
        for place in places:
            known, left = rest.of(value.arguments[place])
            if known != kind:
                continue
            others = [part for number, part in enumerate(value.arguments) if number != place]
            if not all(map(rest.is_of_the_column, others)) or all(isinstance(part, Number) for part in others):
                rest.needs_first |= any(map(rest.is_of_the_row, others))
                return kind, left if left.dtype == value.dtype else Apply(value.dtype, "cast", (left,))
            arguments = tuple(left if number == place else part for number, part in enumerate(value.arguments))
            return kind, Apply(value.dtype, value.primitive, arguments)
        return PLAIN, value

    return rule


def _exp(rest: _Rest, value: Apply) -> tuple[str, Expression]:
    kind, left = rest.of(value.arguments[0])
    if kind != LOWEST:
        return PLAIN, value
    zero = Number(value.dtype, 0.0, f"{value.dtype.short} 0.0")
    return NOTHING, zero if isinstance(left, Number) else Apply(value.dtype, "exp", (left,))


def _cast(rest: _Rest, value: Apply) -> tuple[str, Expression]:
    kind, left = rest.of(value.arguments[0])
    if kind == PLAIN or not value.dtype.is_floating_point:
        return PLAIN, value
    if isinstance(left, Number):
        return kind, Number(value.dtype, left.value, f"{value.dtype.short} {left.value!r}")
    return kind, Apply(value.dtype, "cast", (left,))


_RULES: dict[str, Rule] = {
    "where": _where,
    "bitwise_and": _logic(False),
    "bitwise_or": _logic(True),
    "bitwise_not": _not,
    "add": _absorbed(LOWEST, (0, 1)),
    "sub": _absorbed(LOWEST, (0,)),
    "exp": _exp,
    "mul": _absorbed(NOTHING, (0, 1)),
    "div": _absorbed(NOTHING, (0,)),
    "neg": _absorbed(NOTHING, (0,)),
    "cast": _cast,
}
