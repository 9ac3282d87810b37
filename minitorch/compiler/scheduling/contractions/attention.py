"""Pattern matching for attention: the parts of nests with contractions that are not stored.

A contraction that is not stored is a `Sum` in the loops. Taken literally, such a nest computes every score
``Sum(d, q[i,d] * k[j,d])`` anew wherever it is read: for the maximum of a row, for the sum of its exponentials, and for
each number of the result, ``Sum(j, exp(score - total0) / total1 * v[j,e])``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from ...loop_ir.expressions import Apply, Expression, Load, Number, moved, rewritten
from ...loop_ir.index import Variable, variable
from ...loop_ir.loops import Nest
from ...loop_ir.tree import Accumulate, Block, For, If, Local, Read, Store, procedure, sole_guard
from ..rewrites.redundancy import taken_apart

# Columns of a contraction's result, of which a block of rows is kept near the core while the tiles go by. Raising it
# keeps more contractions out of memory; beyond the size of the second cache each of them is slower.
WIDEST = 1024
APART = "a sum over its rows or columns does not lead to a contraction in the same kernel"
AXES = "a reduction over it takes up more than one row or one column"
FORM = "the loops over its tiles do other things as well"
OPERANDS = "an operand is no array that all rows or all columns share"
SUMS = "a reduction over it is no sum and no maximum of floats"
WIDTH = f"a contraction over it has 1 column, or more than {WIDEST}"


@dataclass(frozen=True)
class Part:
    """A statement of the definition that sums something up, or takes a maximum.

    Attributes:
        sum: the statement.
        around: the loops around it, inside of the loop over rows.
        term: the summand, without its factors that are the same for all columns.
        has_factors: whether it has any.
    """

    sum: Accumulate
    around: tuple[For, ...]
    term: Expression
    has_factors: bool

    @property
    def name(self) -> str:
        """The name of the array that it sums up in."""
        return _name(self.sum)

    @property
    def column(self) -> Variable:
        """The innermost loop."""
        return self.around[-1].variable

    @property
    def reads(self) -> set[str]:
        """The local arrays that the term depends on."""
        return {part.local.name for part in self.term.all_parts if isinstance(part, Read)}

    @property
    def factors(self) -> tuple[Expression, ...]:
        """The two factors of a product."""
        value = self.sum.value
        return value.parts() if isinstance(value, Apply) and value.primitive == "mul" else ()


@dataclass(frozen=True)
class Tile(Part):
    """A contraction that is computed tile by tile: the sum over the innermost loop of ``across * down``."""

    across: Expression  # depends on the row
    down: Expression  # depends on the column


@dataclass(frozen=True)
class Output(Part):
    """A contraction of weights, which are computed from tiles: the sum over the columns of ``weight * other``."""

    weight: Expression  # depends on row and column
    other: Expression  # depends on the column and on the lane

    @property
    def lane(self) -> Variable:
        """The column of the result."""
        return self.around[0].variable


@dataclass(frozen=True)
class Attention:
    """A nest that is computed by tiles.

    Attributes:
        batch: the row variables but the last.
        row: the last.
        columns: their number.
        same: for each tile in the definition, the first one that is computed in the same way.
        tiles: those that differ.
        totals: numbers of a row, in the order of the definition, and outputs.
        stored: numbers of a row that are stored.
        lanes: of a vector.
    """

    batch: tuple[Variable, ...]
    row: Variable
    columns: int
    same: dict[str, str]
    tiles: tuple[Tile, ...]
    totals: tuple[Part, ...]
    stored: tuple[str, ...]
    itemsize: int

    def canonical(self, part: Part, value: Expression) -> Expression:
        """Return a value of one of the parts, with the common names of columns and tiles."""

        def change(one: Expression) -> Expression:
            if isinstance(one, Read) and one.local.name in self.same:
                return replace(one, local=replace(one.local, name=self.same[one.local.name]))
            return one

        places = {part.column: variable("column", self.columns)}
        return rewritten(rewritten(value, change, {}), moved(places), {})

    def terms(self) -> dict[Expression, bool]:
        """Return the subexpressions of all terms and weights, and whether each differs between columns."""
        column, found = Variable("column", self.columns), dict[Expression, bool]()
        for each in self.totals:
            for part in self.canonical(each, each.weight if isinstance(each, Output) else each.term).all_parts:
                found[part] = part.depends_on(column) or bool(self.tiles_of(part))
        return found

    def tiles_of(self, value: Expression) -> list[str]:
        """Return the tiles that a value is computed from, in the order of the definition."""
        read = {part.local.name for part in value.all_parts if isinstance(part, Read)}
        return list(dict.fromkeys(first for name, first in self.same.items() if name in read))

    @property
    def exponential(self) -> tuple[Part, Expression] | None:
        """The first sum of numbers with a factor that is computed from tiles, an exponential; others may share it."""
        for each in self.numbers:
            is_product = isinstance(each.term, Apply) and each.term.primitive == "mul"
            factors = each.term.parts() if is_product else (each.term,)
            found = [part for part in factors if not isinstance(part, Read) and self.tiles_of(part)]
            if each.sum.reduction == "reduce_sum" and found:
                return each, found[0]
        return None

    @property
    def outputs(self) -> list[Output]:
        """The totals that are contractions."""
        return [each for each in self.totals if isinstance(each, Output)]

    @property
    def numbers(self) -> list[Part]:
        """The totals that are one number per row."""
        return [each for each in self.totals if not isinstance(each, Output)]


class _Unknown(Exception):  # noqa: N818
    """Raised for a nest of another form, with the reason."""


def _check(holds: object, reason: str) -> None:
    if not holds:
        raise _Unknown(reason)


@lru_cache(256)
def recognise(nest: Nest) -> Attention | str:
    """Return the parts of a nest with contractions that are not stored, or why it has no schedule in tiles."""
    try:
        return _recognised(nest)
    except _Unknown as unknown:
        return str(unknown)


def _recognised(nest: Nest) -> Attention:
    _check(not nest.scratch and nest.rows and all(row.extent for row in nest.rows), FORM)
    body, row = procedure(nest, ()).body, nest.rows[-1]
    for _ in nest.rows:
        body = next(each.body for each in body if isinstance(each, For))
        body = guard.body if (guard := sole_guard(body)) is not None else body
    found = [each for each in _statements(body) if isinstance(each[0], Accumulate)]
    inner, totals = list[tuple[Accumulate, tuple[For, ...]]](), list[Part]()
    for each, around in found:
        assert isinstance(each, Accumulate) and isinstance(each.array, Local)
        _check(each.value.dtype.is_floating_point and each.reduction in ("reduce_sum", "reduce_max"), SUMS)
        if each.array.name.startswith("sum") and not any(isinstance(part, Read) for part in each.value.all_parts):
            inner.append((each, around))
        else:
            totals.append(_total(each, around, row))
    tiles, keys, same = list[Tile](), dict[Expression, str](), dict[str, str]()
    for each, around in inner:
        tile = _tile(each, around, row)
        places = {one: variable(name, one.extent) for one, name in ((around[-2].variable, "j"), (tile.column, "k"))}
        first = same[tile.name] = keys.setdefault(each.value.substitute(places), tile.name)
        tiles += [tile] if first == tile.name else []
    inside = {name: around for each, around in found if (name := _name(each)) in same}
    _check({name for each in totals for name in each.reads} >= {*same}, FORM)
    _check(all(inside[name][:-1] == each.around for each in totals for name in each.reads if name in same), FORM)
    _check(tiles and any(isinstance(each, Output) for each in totals), APART)
    extents = {each.column.extent for each in totals}
    stores = [(each, around) for each, around in _statements(body) if isinstance(each, Store)]
    stored = [f"out{each.array}" for each, around in stores if isinstance(each.array, int) and not around]
    _check(len(extents) == 1, AXES)
    _check(all(len(around) <= 1 for each, around in stores if isinstance(each.array, int)), FORM)
    parts = [part for each, _ in _statements(body) for part in each.value.all_parts]
    sizes = {part.dtype.itemsize for part in parts if part.dtype.is_floating_point}
    return Attention(
        nest.rows[:-1], row, extents.pop(), same, tuple(tiles), tuple(totals), tuple(stored), max(4, *sizes)
    )


def _name(each: Store | Accumulate) -> str:
    return each.array.name if isinstance(each.array, Local) else f"out{each.array}"


def _statements(block: Block, around: tuple[For, ...] = ()) -> Iterator[tuple[Store | Accumulate, tuple[For, ...]]]:
    """Yield the stores and accumulations of a block, each with the loops around it."""
    for each in block:
        _check(not isinstance(each, If), FORM)
        if isinstance(each, For):
            yield from _statements(each.body, (*around, each))
        elif isinstance(each, (Store, Accumulate)):
            yield each, around


def _tile(each: Accumulate, around: tuple[For, ...], row: Variable) -> Tile:
    part = Part(each, around, each.value, False)
    _check(len(around) > 1 and part.factors, FORM)
    column = around[-2].variable
    for across, down in (part.factors, part.factors[::-1]):
        if not across.depends_on(column) and not down.depends_on(row) and buffer_of(across) >= 0 <= buffer_of(down):
            return Tile(each, around, each.value, False, across, down)
    raise _Unknown(OPERANDS)


def _total(each: Accumulate, around: tuple[For, ...], row: Variable) -> Part:
    """Return a total without its factors that are the same for all columns."""
    inner = [one.variable for one in around]
    is_sum = each.reduction == "reduce_sum"
    term, factors = taken_apart(each.value, lambda value: _is_of_the_row(value, inner)) if is_sum else (each.value, [])
    part = Part(each, around, term, bool(factors))
    if part.name.startswith("total"):
        _check(len(around) == 1, AXES)
        return part
    _check(is_sum, SUMS)
    _check(len(around) == 2 and around[0].variable.extent <= WIDEST, WIDTH)
    assert isinstance(term, Apply)
    for weight, other in (term.parts(), term.parts()[::-1]):
        aside = any(isinstance(one, Read) for one in other.all_parts) or other.depends_on(row) or buffer_of(other) < 0
        if not aside and not weight.depends_on(inner[0]):
            return Output(each, around, term, bool(factors), weight, other)
    raise _Unknown(OPERANDS)


def _is_of_the_row(value: Expression, inner: Collection[Variable]) -> bool:
    """Return whether a value is the same for all columns, and not a number of the program."""
    reads = (part.local.name for part in value.all_parts if isinstance(part, Read))
    return not isinstance(value, Number) and not (
        any(name.startswith("sum") for name in reads) or any(value.depends_on(one) for one in inner)
    )


def buffer_of(value: Expression) -> int:
    """Return an argument that a value reads; -1 if it reads none."""
    return next((part.buffer for part in value.all_parts if isinstance(part, Load)), -1)
