"""Reductions over few elements, written out as arithmetic: a window of a pooling, a filter over a single channel.

A loop over a handful of columns fills no vector, and its every round tests anew which neighbours exist. Written out
it is an elementwise kernel like others: lanes run along the rows, and common subexpressions are computed once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...lengths import Length
from ...loop_ir.expressions import (
    Apply,
    Expression,
    Load,
    Total,
    computed_in,
    converted,
    literal,
    moved,
    rewritten,
)
from ...loop_ir.index import NOWHERE, Index, Variable, extent_of
from ...loop_ir.loops import COMBINE, Loop, Nest, Reduce, Statement, Write, neutral
from ...target import MOST_STEP

MOST_COLUMNS = 25
MOST_PARTS = 400  # of all expressions together, written out


def written_out(nest: Nest) -> Nest:
    """Write out a nest without columns, if they are few and its rows near in memory; else return it as it is."""
    columns = max((extent_of(loop.columns) for loop in nest.loops), default=1)
    parts = sum(extent_of(loop.columns) * len(list(each.value.all_parts)) for loop, each in nest.statements)
    if any(isinstance(each.extent, Length) for loop in nest.loops for each in loop.columns):
        return nest
    if not 1 < columns <= MOST_COLUMNS or parts > MOST_PARTS or nest.scratch or not nest.rows:
        return nest
    if not _rows_are_near(nest, nest.rows[-1]):
        return nest
    totals: dict[Expression, Expression] = {}
    statements: list[Statement] = []
    for loop in nest.loops:
        places = [dict(zip(loop.columns, map(_number, at), strict=True)) for at in _indices(loop.columns)]
        for statement in loop.statements:
            value = rewritten(statement.value, lambda part: totals.get(part, part), {})
            terms = (rewritten(value, moved(place), {}) for place in places)
            if isinstance(statement, Reduce):
                totals[Total(value.dtype, statement.slot)] = _combined(statement, terms)
            elif isinstance(statement, Write):
                found = zip(places, terms, strict=True)
                statements += [
                    Write(statement.buffer, statement.index.substitute(place), term) for place, term in found
                ]
    return Nest(nest.rows, (Loop((), tuple(statements)),))


def _number(value: int) -> Index:
    return NOWHERE + value


def _indices(columns: tuple[Variable, ...]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(column.extent) for column in columns))


def _combined(statement: Reduce, terms: Iterator[Expression]) -> Expression:
    """Return a reduction as arithmetic: its terms combined in order. 16-bit floats are rounded once, at the end."""
    dtype, sums = statement.value.dtype, computed_in(statement.value.dtype)
    total: Expression = literal(sums, neutral(statement.reduction, dtype))
    for term in terms:
        if statement.factors and isinstance(term, Apply):
            total = Apply(sums, "multiply_add", (*term.arguments, total))
        else:
            total = Apply(sums, COMBINE[statement.reduction], (total, converted(term, sums)))
    return converted(total, dtype)


def _rows_are_near(nest: Nest, row: Variable) -> bool:
    """Return whether a few vectors can cover neighbouring rows in memory; no place may be data."""
    parts = [part for _, statement in nest.statements for part in statement.value.all_parts]
    if row.extent < 2 or any(part.values for part in parts):
        return False
    stores = ((loop, each) for loop, each in nest.statements if isinstance(each, Write))
    loads = (abs(part.index.coefficient(row)) for part in parts if isinstance(part, Load))
    return all(step <= MOST_STEP for step in loads) and all(_leaves_no_gaps(*store, row) for store in stores)


def _leaves_no_gaps(loop: Loop, store: Write, row: Variable) -> bool:
    """Return whether a loop writes all between the places it writes for a row and for the next."""
    step = store.index.coefficient(row)
    if step in (0, 1):
        return True
    fills = bool(loop.columns) and loop.columns[-1].extent == step and store.index.coefficient(loop.columns[-1]) == 1
    return fills and step <= MOST_STEP
