"""Rows of a matrix of small integers, decoded as they are read, times a vector of floats.

Weights in 8 or 4 bits are read once by such a product, so the kernel should take no longer than their bytes do. A
factor that all terms of a group have, its scale, is applied to the sum of the group, and not to every term:

    sum over groups g of scale[g] * (sum over l of x[g, l] * integer[g, l])

That is the distributive law, so it rounds otherwise, as another order of a sum does. Integers of 8 bits are far from
overflowing the sum of a group where the scaled terms do not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from ...loop_ir.expressions import Apply, Expression, Number
from ...loop_ir.index import Variable, extent_of
from ...loop_ir.loops import Nest
from ...target import Target
from .. import rewrites as R
from ..contractions import product_of
from ..lanes import Layout
from ..rewrite import Rewrite
from ..rewrites.redundancy import taken_apart
from . import NO_FACTS, Facts

# Vectors of a group, all of which are written out. A longer sum is better taken up in several copies, as `rows` does:
# rows of 4096 bytes took 1.8 to 2.2 times as long as one group each. Raising it takes compile time.
MOST_UNROLLED = 16


def decoded_schedule(nest: Nest, target: Target, facts: Facts = NO_FACTS) -> tuple[Rewrite, ...] | None:
    """Return the rewrites for a nest that sums products with scaled groups of integers; None for another one."""
    total, columns = nest.total, nest.loops[0].columns
    if total is None or not total.factors or nest.has_sums or facts.past_caches or product_of(nest) is not None:
        return None
    layout = Layout(nest, target)
    if layout.across_rows or not any(_is_decoded(part) for part in total.value.all_parts):
        return None
    lanes, (*_, last) = layout.lanes, columns
    group = _group(total.value, columns)
    if lanes < 2 or last.extent % lanes or not lanes < extent_of(group) <= MOST_UNROLLED * lanes:
        return None  # a group of one vector has a term in each lane, and no sum to apply its scale to
    return tuple(_steps(nest, f"total{total.slot}", group, lanes))


def _is_decoded(value: Expression) -> bool:
    """Return whether a float is cast from an integer."""
    if not isinstance(value, Apply) or value.primitive != "cast" or not value.dtype.is_floating_point:
        return False
    return value.arguments[0].dtype.category == "int"


def _is_fixed(inner: Collection[Variable], factor: Expression) -> bool:
    """Return whether a factor is a number that is read, and the same for all values of some columns."""
    return not isinstance(factor, Number) and factor.variables.isdisjoint(inner)


def _group(term: Expression, columns: tuple[Variable, ...]) -> tuple[Variable, ...]:
    """Return the longest run of innermost columns that do not change some factor of the terms; empty without one."""
    for count in range(len(columns), 0, -1):
        _, factors = taken_apart(term, partial(_is_fixed, columns[-count:]))
        if factors:
            return columns[-count:]
    return ()


def _steps(nest: Nest, total: str, group: tuple[Variable, ...], lanes: int) -> Iterator[Rewrite]:
    *outer, last = group
    around = outer[0].name if outer else "v" if last.extent > lanes else "l"
    yield R.split(last.name, lanes, "v", "l")
    yield R.split_reduction(total, "l", f"{total}_group", around)
    yield R.factor_out(f"{total}_group", around)
    yield R.split_reduction(total, "l", f"{total}_lanes")
    for name in ("v", *(each.name for each in outer)):
        yield R.unroll(name)
    yield R.vectorise("l")
    yield R.parallelise(*(row.name for row in nest.rows))
    yield R.place("registers", total, f"{total}_lanes", f"{total}_group")
