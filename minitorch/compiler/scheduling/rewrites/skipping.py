"""Rewrite that passes over iterations in which a comparison of positions leaves nothing, as above a causal mask.

``where(column <= row, score, -inf)`` is -inf in a whole block of scores if the comparison fails for its first column
and last row. Then the exponentials are 0, and all products with them are 0, but for NaN and infinity: ``0 * v``
is NaN where v is infinite, and so is ``0 / sum`` where the sum is NaN. A value that depends on row and column, such as
another score, is taken for a finite number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ...loop_ir.expressions import ALWAYS, Apply, Expression, Inside, Number, Position, literal
from ...loop_ir.index import NOWHERE, Index, Variable, extent_of, place_in
from ...loop_ir.tree import (
    Accumulate,
    Allocate,
    For,
    If,
    Local,
    Procedure,
    Read,
    Statement,
    Store,
    in_loops,
    sole_guard,
    statements,
    with_body,
)
from ..analysis.dependences import Bound
from ..analysis.finding import at_loop, places_in, stores_of
from ..rewrite import step

NOTHING, LOWEST, PLAIN = "0 or NaN", "-inf or NaN", "whatever"


@step
def skip(procedure: Procedure, loop: str, row: str) -> Procedure:
    """Pass over the iterations of a loop that contribute nothing for all iterations of a loop around it.

    An iteration contributes nothing if a comparison of positions in it has the same outcome everywhere, with which the
    terms of all sums are 0 and those of all maxima -inf. A product of 0 and a number of the column is still summed up,
    in a new array, as the number may be NaN or infinite.

    Args:
        procedure: the kernel.
        loop: the loop over columns, or blocks of them.
        row: the loop around it.

    Law: ``max(m, -inf) = m`` and ``s + 0 = s``. If the skipped part depends on a number of the row, which may be NaN,
    one iteration always runs.
    """

    def change(each: For) -> list[Statement]:
        guard = sole_guard(each.body)
        rests, body = list[Statement](), list[Statement]()
        for one in each.body if guard is None else guard.body:
            body.append(one)
            if isinstance(one, For) and one.variable.name == loop:
                inside, ahead, after = _Columns(one, each.variable).passed()
                if inside != ALWAYS:
                    rests += ahead
                    body[-1:] = [with_body(one, (If(inside, one.body),)), *after]
        new = tuple(body) if guard is None else (with_body(guard, tuple(body)),)
        return [*rests, with_body(each, new)]

    return at_loop(procedure, row, change)


class _Columns:
    """A loop over columns."""

    def __init__(self, loop: For, row: Variable) -> None:
        self.loop, self.row = loop, row
        self.inner = [each.variable for each in statements(loop.body) if isinstance(each, For)]
        self.columns = [loop.variable, *self.inner]
        self.own = {each.local for each in statements(loop.body) if isinstance(each, Allocate)}
        self.sums = [each for each in stores_of(loop.body) if each.array not in self.own]
        self.comparison: Expression | None = None  # that is taken for known
        self.outcome = False
        self.needs_row = False  # whether something of the row was left out that may be NaN

    def passed(self) -> tuple[Inside, list[Statement], list[Statement]]:
        """Return where iterations contribute, and the rest of others: statements before the row and after the loop."""
        parts = {part for each in self.sums for part in each.value.all_parts if _compares_positions(part)}
        held, ahead, after, needs_row = ALWAYS, list[Statement](), list[Statement](), False
        for part in sorted(parts, key=str):
            for outcome in (False, True):
                self.comparison, self.outcome, self.needs_row = part, outcome, False
                left = list(self.left())
                if len(left) < len(self.sums):
                    continue
                needs_row |= self.needs_row
                for bound in self.bounds(part, outcome):
                    here = ALWAYS.and_(*bound)
                    if here != ALWAYS:
                        rest = [(each, value) for each, value in zip(self.sums, left, strict=True) if value is not None]
                        if rest:
                            before, behind = self.rest(held, bound, rest, len(held.bounds))
                            ahead += before
                            after += behind
                        held = held.and_(*bound)
        if held == ALWAYS or (needs_row and not self.always_runs(held)):
            return ALWAYS, [], []
        return held, ahead, after

    def left(self) -> Iterator[Expression | None]:
        """Yield the remainder of each sum's term, a number of the column, or None; end where more remains."""
        for each in self.sums:
            kind, value = self.of(each.value)
            if not isinstance(each, Accumulate) or not isinstance(each.array, Local):
                return
            if each.reduction == "reduce_max" and kind == LOWEST and isinstance(value, Number):
                yield None
            elif each.reduction == "reduce_sum" and kind == NOTHING:
                yield None if isinstance(value, Number) else value
            else:
                return

    def bounds(self, comparison: Expression, outcome: bool) -> Iterator[Bound]:
        """Yield conditions on the loop, all of which hold where the comparison may have another outcome."""
        assert isinstance(comparison, Apply)
        first, second = (each.index for each in comparison.arguments if isinstance(each, Position))
        smallest, largest = (self.extreme(first - second, largest) for largest in (False, True))
        if comparison.primitive == "equal":
            if not outcome:
                yield from (self.below(smallest, 1), self.below(largest * -1, 1))
        elif outcome:
            yield self.below(largest * -1, 1 if comparison.primitive == "less" else 0)
        else:
            yield self.below(smallest, 0 if comparison.primitive == "less" else 1)

    def extreme(self, index: Index, largest: bool) -> Index:
        """Return the largest or smallest value of an index in an iteration, for all rows."""
        ends = {}
        for each in (self.row, *self.inner):
            at_end = (index.coefficient(each) > 0) is largest
            ends[each] = NOWHERE + (each.extent - 1) if at_end else NOWHERE
        return index.substitute(ends)

    def below(self, index: Index, end: int) -> Bound:
        """Return the condition that an index is below a number, in a form that grows with the loop."""
        end, index = end - index.constant, index - index.constant
        if index.coefficient(self.loop.variable) < 0:
            return (1 - end, index * -1, (index * -1).bounds[1] + 1)
        return (index.bounds[0], index, end)

    def always_runs(self, held: Inside) -> bool:
        """Return whether the first or the last iteration contributes for all rows."""
        last = self.loop.variable.extent - 1
        return any(held.substitute({self.loop.variable: NOWHERE + at}) == ALWAYS for at in (0, last))

    def rest(
        self, held: Inside, bound: Bound, left: list[tuple[Store | Accumulate, Expression]], count: int
    ) -> tuple[list[Statement], list[Statement]]:
        """Return statements that sum up the remainder where a condition fails, the same for all rows, and add it."""
        low, index, high = bound
        lowest, highest = index.bounds
        fails = held.and_(high, index, highest + 1) if lowest >= low else held.and_(lowest, index, low)
        before, after = list[Statement](), list[Statement]()
        for each, value in left:
            assert isinstance(each.array, Local)
            over = tuple(one for one in dict.fromkeys(self.inner) if each.index.depends_on(one))
            at, size = place_in(over), extent_of(over)
            array = Local(f"{each.array.name}_rest{count or ''}", size, each.array.dtype)
            zero = literal(array.dtype, 0.0)
            _, guards, around = next(place for place in places_in(self.loop.body) if place[0] is each)
            within = Inside(tuple(bound for bound in guards if any(bound[1].depends_on(one) for one in over)))
            term: Statement = Accumulate(array, at, "reduce_sum", value)
            for bound in guards:
                term = If(Inside((bound,)), (term,))
            total: Statement = Accumulate(each.array, each.index, "reduce_sum", Read(array.dtype, array, at))
            others = tuple(one for one in around if one not in over)
            inner = in_loops((*others, *over), (term,))
            before += [Allocate(array), *in_loops(over, (Store(array, at, zero),))]
            before += [For(self.loop.variable, (If(fails, inner),))]
            after += in_loops(over, (total if within == ALWAYS else If(within, (total,)),))
        return before, after

    # The remainder of a value: its kind, and its expression in terms of the column.

    def of(self, value: Expression) -> tuple[str, Expression]:
        """Return the remainder's kind and its value as a function of the column; for others, the value itself."""
        if value == self.comparison:
            return PLAIN, Number(value.dtype, self.outcome, str(self.outcome))
        if isinstance(value, Number) and value.dtype.is_floating_point and not value.value:
            return NOTHING, value
        if isinstance(value, Number) and value.value == -math.inf:
            return LOWEST, value
        if isinstance(value, Apply) and value.primitive in _RULES:
            return _RULES[value.primitive](self, value)
        return PLAIN, value

    def is_of_the_column(self, value: Expression) -> bool:
        """Return whether a value is the same for all rows."""
        return not value.depends_on(self.row) and not any(isinstance(part, Read) for part in value.all_parts)

    def may_be_none(self, value: Expression) -> bool:
        """Return whether a value is a number of the row that may be NaN."""
        if isinstance(value, Number) or any(value.depends_on(each) for each in self.columns) or _is_kept_finite(value):
            return False
        return not any(isinstance(part, Read) and part.local in self.own for part in value.all_parts)


def _compares_positions(part: Expression) -> bool:
    if not isinstance(part, Apply) or part.primitive not in ("less", "less_equal", "equal"):
        return False
    indices = [each.index for each in part.arguments if isinstance(each, Position)]
    return len(indices) == 2 and all(index.is_affine for index in indices)


def _is_kept_finite(value: Expression) -> bool:
    """Return whether a value is ``0 if x == -inf else x``; if such an x, a maximum, is NaN, sums were NaN before."""
    if not isinstance(value, Apply) or value.primitive != "where":
        return False
    condition, here, elsewhere = value.arguments
    if not isinstance(condition, Apply) or condition.primitive != "equal" or not isinstance(elsewhere, Read):
        return False
    same, lowest = condition.arguments
    is_zero = isinstance(here, Number) and not here.value
    return same == elsewhere and isinstance(lowest, Number) and lowest.value == -math.inf and is_zero


Rule = Callable[[_Columns, Apply], tuple[str, Expression]]


def _where(columns: _Columns, value: Apply) -> tuple[str, Expression]:
    condition, here, elsewhere = value.arguments
    _, known = columns.of(condition)
    return columns.of(here if known.value else elsewhere) if isinstance(known, Number) else (PLAIN, value)


def _logic(decided_by: bool) -> Rule:
    """Return the rule of and, which a false operand decides; or of or, which a true operand decides."""

    def rule(columns: _Columns, value: Apply) -> tuple[str, Expression]:
        for part in value.arguments:
            _, known = columns.of(part)
            if isinstance(known, Number) and bool(known.value) is decided_by and value.dtype.name == "bool":
                return PLAIN, known
        return PLAIN, value

    return rule


def _not(columns: _Columns, value: Apply) -> tuple[str, Expression]:
    _, known = columns.of(value.arguments[0])
    if isinstance(known, Number) and value.dtype.name == "bool":
        return PLAIN, Number(value.dtype, not known.value, str(not known.value))
    return PLAIN, value


def _absorbed(kind: str, places: tuple[int, ...]) -> Rule:
    """Return the rule of an operation whose result is of a kind if one of its operands, at certain places, is."""

    def rule(columns: _Columns, value: Apply) -> tuple[str, Expression]:
        for place in places:
            known, left = columns.of(value.arguments[place])
            if known != kind:
                continue
            others = [part for number, part in enumerate(value.arguments) if number != place]
            if not all(map(columns.is_of_the_column, others)) or all(isinstance(part, Number) for part in others):
                columns.needs_row |= any(map(columns.may_be_none, others))
                return kind, left if left.dtype == value.dtype else Apply(value.dtype, "cast", (left,))
            arguments = tuple(left if number == place else part for number, part in enumerate(value.arguments))
            return kind, Apply(value.dtype, value.primitive, arguments)
        return PLAIN, value

    return rule


def _exp(columns: _Columns, value: Apply) -> tuple[str, Expression]:
    kind, left = columns.of(value.arguments[0])
    if kind != LOWEST:
        return PLAIN, value
    zero = literal(value.dtype, 0.0)
    return NOTHING, zero if isinstance(left, Number) else Apply(value.dtype, "exp", (left,))


def _cast(columns: _Columns, value: Apply) -> tuple[str, Expression]:
    kind, left = columns.of(value.arguments[0])
    if kind == PLAIN or not value.dtype.is_floating_point:
        return PLAIN, value
    if isinstance(left, Number):
        return kind, literal(value.dtype, left.value)
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
