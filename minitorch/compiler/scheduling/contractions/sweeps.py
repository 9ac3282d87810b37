"""Attention and its relatives in the loop IR: which nests are sweeps over tiles, and how few sweeps they take.

A contraction that is not stored stands in the loops as a `Sum`. Taken by the word, such a nest computes every score
``Sum(d, q[i,d] * k[j,d])`` anew wherever it is read: for the maximum of a row, for the sum of its exponentials, and for
each number of the result, ``Sum(j, exp(score - total0) / total1 * v[j,e])``. This file finds out how to compute it once
per *sweep*: for a block of rows, all columns go by, a block at a time; each gives a *tile* of every inner sum, and all
that is wanted of the tile is taken from it while it is in the cache.

A sweep could only begin when all totals that it needs are known, and attention would need three. Two laws save sweeps:

- *What does not depend on the column can wait.* ``sum_j a_j / c = (sum_j a_j) / c``: factors of a row are taken out of
  the sum, and applied when it is complete (`Term.after`). A term that is rounded to 16 bits is so without them.
- *What was measured from the wrong maximum can be mended.* If every term has a factor ``exp(x_j - shift)``, where the
  shift depends on the maximum m of the same sweep, a sum taken with the maximum so far is brought up to date with a
  factor ``exp(old - new)`` (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). The sum may be
  a number, or a row of an output (Dao et al., "FlashAttention", 2022).

Attention is one sweep then. What has another structure takes another sweep, and more than two are not worth it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ...loop_ir.expressions import Apply, Expression, Number, Sum, Total, moved, rewritten, walk
from ...loop_ir.index import Variable, variable
from ...loop_ir.loops import Accumulate, Loop, Nest, Store

MOST_SWEEPS = 2
WIDEST = 1024  # columns of an output, of which a block of rows is kept near
SHIFT = -1  # the slot of a shift is that of its maximum, turned round


@dataclass(frozen=True)
class Tile:
    """A contraction that is computed tile by tile: the sum over `depth` of ``across * down``.

    Attributes:
        sum: how it is found in expressions.
        across: the factor that depends on the row; the lanes run along the rows.
        down: the factor that depends on the column.
    """

    sum: Sum
    across: Expression
    down: Expression

    @property
    def depth(self) -> Variable:
        """What is summed over."""
        return self.sum.variable


@dataclass(frozen=True)
class Term:
    """What is summed up, or combined otherwise, over the columns.

    Attributes:
        value: for one row and one column.
        after: what is done with the whole sum, in this order: ``neg``, or ``mul`` or ``div`` by a number of the row.
        shift: the slot of the maximum that `value` is measured from before it is known; None if it is known.
        sweep: in which it is computed.
    """

    value: Expression
    after: tuple[tuple[str, Expression | None], ...]
    shift: int | None
    sweep: int


@dataclass(frozen=True)
class Reduction:
    """A number per row: a total of the nest."""

    slot: int
    name: str
    term: Term


@dataclass(frozen=True)
class Output:
    """A contraction of what becomes of the tiles with something else: the sum over the columns of ``weight * other``.

    Attributes:
        sum: how it is found in the stores.
        weight: depends on row and column.
        other: depends on the column and on `lane`.
        lane: the column of the result.
    """

    sum: Sum
    weight: Term
    other: Expression
    lane: Variable


@dataclass(frozen=True)
class Sweeps:
    """A nest that is computed by tiles.

    Attributes:
        batch: the row variables but the last.
        row, column: the variables of a tile.
        tiles, reductions, outputs: what is computed of each.
        shifts: by the slot of a maximum, what terms are measured from it.
        row_stores: numbers of a row that are stored.
        stores: the loops over the columns of outputs.
        count: of sweeps.
    """

    batch: tuple[Variable, ...]
    row: Variable
    column: Variable
    tiles: tuple[Tile, ...]
    reductions: tuple[Reduction, ...]
    outputs: tuple[Output, ...]
    shifts: tuple[tuple[int, Expression], ...]
    row_stores: tuple[Store, ...]
    stores: tuple[Loop, ...]
    count: int

    def terms(self, sweep: int) -> list[Expression]:
        """What is computed of the tiles in a sweep."""
        terms = [*(each.term for each in self.reductions), *(each.weight for each in self.outputs)]
        return [term.value for term in terms if term.sweep == sweep]

    def needed(self, sweep: int) -> list[Tile]:
        """The tiles that are read in a sweep."""
        parts = {part for value in self.terms(sweep) for part in walk(value)}
        return [each for each in self.tiles if each.sum in parts]


class _Unknown(Exception):  # noqa: N818
    """The nest has another form."""


@lru_cache(256)
def recognise(nest: Nest) -> Sweeps | None:
    """How a nest with contractions that are not stored can be computed by tiles; None if it cannot, or has none."""
    if nest.scratch or not nest.rows or not all(row.extent for row in nest.rows):
        return None
    if not any(isinstance(part, Sum) for _, each in nest.statements for part in walk(each.value)):
        return None
    try:
        return _Recogniser(nest).sweeps()
    except _Unknown:
        return None


def _check(holds: object) -> None:
    if not holds:
        raise _Unknown


class _Recogniser:
    """Takes a nest apart."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        *batch, self.row = nest.rows
        self.batch = tuple(batch)
        lengths = {loop.columns for loop in nest.loops for each in loop.statements if isinstance(each, Accumulate)}
        stored = [each.value for loop, each in nest.statements if loop.columns and isinstance(each, Store)]
        self.outer = list(dict.fromkeys(part for value in stored for part in _outermost(value)))
        extents = {each.variable.extent for each in self.outer}
        _check(all(len(columns) == 1 for columns in lengths))
        extents |= {column.extent for (column,) in lengths}
        _check(len(extents) == 1 and max(extents) > 0)
        self.column = Variable("column", extents.pop())
        self.levels: dict[int, int] = {}  # in which sweep a total is known
        self.maxima: set[int] = set()
        self.shifts: dict[int, Expression] = {}

    def sweeps(self) -> Sweeps:
        """The whole nest."""
        reductions, row_stores, stores = [], [], []
        for loop in self.nest.loops:
            for statement in loop.statements:
                _check(isinstance(statement, Accumulate) or (isinstance(statement, Store) and len(loop.columns) < 2))
                if isinstance(statement, Accumulate):
                    reductions.append(self._reduction(statement, loop.columns[0]))
                elif not loop.columns and isinstance(statement, Store):
                    _check(not any(isinstance(part, Sum) for part in walk(statement.value)))
                    row_stores.append(statement)
            # Beside a sum over as many columns as the result has, stores may stand in the sum's loop.
            if loop.columns and any(isinstance(each, Store) for each in loop.statements):
                _check(0 < loop.columns[0].extent <= WIDEST)
                stores.append(loop)
        outputs = tuple(self._output(each) for each in self.outer)
        values = [*(each.term.value for each in reductions), *(each.weight.value for each in outputs)]
        sums = dict.fromkeys(part for value in values for part in walk(value) if isinstance(part, Sum))
        tiles = tuple(map(self._tile, sums))
        count = 1 + max([*self.levels.values(), *(each.weight.sweep for each in outputs)])
        dtypes = {*(each.sum.dtype for each in tiles), *(each.sum.dtype for each in outputs)}
        _check(tiles and count <= MOST_SWEEPS and len(dtypes) == 1)
        return Sweeps(
            self.batch, self.row, self.column, tiles, tuple(reductions), outputs,
            tuple(self.shifts.items()), tuple(row_stores), tuple(stores), count,
        )  # fmt: skip

    def _reduction(self, statement: Accumulate, column: Variable) -> Reduction:
        _check(statement.reduction in ("reduce_sum", "reduce_max") and statement.value.dtype.is_floating_point)
        value = _canonical(statement.value, column, self.column)
        term = self._term(value, statement.reduction == "reduce_sum")
        self.levels[statement.slot] = term.sweep
        if statement.reduction == "reduce_max":
            self.maxima.add(statement.slot)
        return Reduction(statement.slot, statement.reduction, term)

    def _output(self, outer: Sum) -> Output:
        product = _canonical(outer.value, outer.variable, self.column)
        _check(isinstance(product, Apply) and product.primitive == "mul")
        lanes = [
            loop.columns[0]
            for loop in self.nest.loops
            for each in loop.statements
            if loop.columns and any(part == outer for part in _outermost(each.value))
        ]
        for weight, other in (product.arguments, product.arguments[::-1]):  # type: ignore[attr-defined]
            aside = any(isinstance(part, (Total, Sum)) for part in walk(other)) or other.depends_on(self.row)
            if not aside and not weight.depends_on(lanes[0]):
                return Output(outer, self._term(weight, True), other, lanes[0])
        raise _Unknown

    def _term(self, value: Expression, is_sum: bool) -> Term:
        """A value per row and column, to be combined over the columns."""
        value, after = self._taken_out(value) if is_sum else (value, ())
        slots = _slots([value])
        _check(slots <= self.levels.keys())
        least = max((self.levels[slot] for slot in _slots(part for _, part in after if part is not None)), default=0)
        sweep = max([least, *(self.levels[slot] + 1 for slot in slots)])
        if is_sum and len(slots) == 1:
            (slot,) = slots
            shift = _shift(value, self.column)
            if sweep == self.levels[slot] + 1 and least < sweep and slot in self.maxima and shift is not None:
                dtype = shift.dtype
                if self.shifts.setdefault(slot, shift) == shift:
                    known = {shift: Total(dtype, SHIFT - slot)}
                    value = rewritten(value, lambda part: known.get(part, part), {})
                    _check(slot not in _slots([value]))
                    return Term(value, after, slot, self.levels[slot])
        return Term(value, after, None, sweep)

    def _taken_out(self, value: Expression) -> tuple[Expression, tuple[tuple[str, Expression | None], ...]]:
        """A term without the factors that are the same for all columns, and these, the innermost first."""
        if isinstance(value, Apply) and value.dtype.is_floating_point:
            first = value.arguments[0]
            if value.primitive == "neg":
                inner, after = self._taken_out(first)
                return inner, (*after, ("neg", None))
            if value.primitive == "cast" and first.dtype.is_floating_point:
                inner, after = self._taken_out(first)
                return Apply(value.dtype, "cast", (inner,)), after
            if value.primitive in ("mul", "div"):
                first, second = value.arguments
                if self._is_of_the_row(second):
                    inner, after = self._taken_out(first)
                    return inner, (*after, (value.primitive, second))
                if value.primitive == "mul" and self._is_of_the_row(first):
                    inner, after = self._taken_out(second)
                    return inner, (*after, ("mul", first))
                inner, after = self._taken_out(first)
                inner_second, after_second = self._taken_out(second) if value.primitive == "mul" else (second, ())
                return Apply(value.dtype, value.primitive, (inner, inner_second)), (*after, *after_second)
        return value, ()

    def _is_of_the_row(self, value: Expression) -> bool:
        return not isinstance(value, Number) and not value.depends_on(self.column)

    def _tile(self, inner: Sum) -> Tile:
        product = inner.value
        _check(isinstance(product, Apply) and product.primitive == "mul")
        for across, down in (product.arguments, product.arguments[::-1]):  # type: ignore[attr-defined]
            if not across.depends_on(self.column) and not down.depends_on(self.row):
                _check(not any(isinstance(part, (Total, Sum)) for part in walk(product)))
                return Tile(inner, across, down)
        raise _Unknown


def _outermost(value: Expression) -> Iterator[Sum]:
    """The sums in an expression that are in no other."""
    pending, seen = [value], {value}
    while pending:
        at = pending.pop()
        if isinstance(at, Sum):
            yield at
            continue
        new = [part for part in at.parts() if part not in seen]
        seen.update(new)
        pending += new


def _canonical(value: Expression, column: Variable, canonical: Variable) -> Expression:
    """An expression with the common column in place of its own, and one name for what inner sums run over."""
    change = moved({column: variable(canonical.name, canonical.extent)})

    def renamed(part: Expression) -> Expression:
        if isinstance(part, Sum):
            depth = Variable("depth", part.variable.extent)
            places = {part.variable: variable(depth.name, depth.extent)}
            return Sum(part.dtype, depth, part.value.substitute(places))
        return change(part)

    return rewritten(value, renamed, {})


def _slots(values: Iterable[Expression]) -> set[int]:
    return {part.slot for value in values for part in walk(value) if isinstance(part, Total)}


def _shift(value: Expression, column: Variable) -> Expression | None:
    """What is subtracted in the one factor ``exp(x - shift)`` of a term that totals are needed for."""
    factors, pending = [], [value]
    while pending:
        at = pending.pop()
        if isinstance(at, Apply) and at.primitive in ("mul", "neg", "cast"):
            pending += at.arguments
        elif isinstance(at, Apply) and at.primitive == "div":
            pending.append(at.arguments[0])
            if _slots([at.arguments[1]]):
                return None
        elif _slots([at]):
            factors.append(at)
    if len(factors) != 1 or not isinstance(factors[0], Apply) or factors[0].primitive != "exp":
        return None
    (difference,) = factors[0].arguments
    if not isinstance(difference, Apply) or difference.primitive != "sub":
        return None
    x, shift = difference.arguments
    return None if _slots([x]) or shift.depends_on(column) else shift
