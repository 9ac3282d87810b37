"""Rows of a matrix of small integers, decoded as they are read, times a vector of floats.

Weights in 8 or 4 bits are read once by such a product, so the kernel should take no longer than their bytes do. A
factor that all terms of a group have, its scale, is applied to the sum of the group, and not to every term:

    sum over groups g of scale[g] * (sum over l of x[g, l] * integer[g, l])

That is the distributive law, so it rounds otherwise, as another order of a sum does. Integers of 8 bits are far from
overflowing the sum of a group where the scaled terms do not.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from functools import partial

from ...loop_ir.expressions import Apply, Expression, Number
from ...loop_ir.index import Variable
from ...loop_ir.loops import Nest, Reduce, Write
from ...target import Target
from ..contractions.gemm import recognise
from ..layout import Layout
from ..rewrites import (
    Rewrite,
    factor_out,
    parallelise,
    place,
    split,
    split_reduction,
    unroll,
    vectorise,
)
from ..rewrites.redundancy import taken_apart

MOST_UNROLLED = 16  # vectors of a group that are written out; raising it takes compile time


def decoded_schedule(nest: Nest, target: Target, past_caches: Collection[int] = ()) -> tuple[Rewrite, ...] | None:
    """Return the rewrites for a nest that sums products with scaled groups of integers; None for another one."""
    if nest.has_sums or nest.scratch or past_caches or len(nest.loops) != 2 or recognise(nest) is not None:
        return None
    sums, rest = nest.loops
    total = sums.statements[0] if len(sums.statements) == 1 else None
    if not sums.columns or rest.columns or not isinstance(total, Reduce) or not total.factors:
        return None
    layout = Layout(nest, target)
    if layout.across_rows or not all(isinstance(each, Write) for each in rest.statements):
        return None
    if not any(_is_decoded(part) for part in total.value.all_parts):
        return None
    lanes, (*_, last) = layout.lanes, sums.columns
    group = _group(total.value, sums.columns)
    if lanes < 2 or last.extent % lanes or not group or math.prod(each.extent for each in group) == lanes:
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
    vectors = math.prod(each.extent for each in outer) * last.extent // lanes
    around = outer[0].name if outer else "v" if last.extent > lanes else "l"
    yield split(last.name, lanes, "v", "l")
    yield split_reduction(total, "l", f"{total}_group", around)
    yield factor_out(f"{total}_group", around)
    yield split_reduction(total, "l", f"{total}_lanes")
    if vectors <= MOST_UNROLLED:
        yield unroll("v")
        for each in outer:
            yield unroll(each.name)
    yield vectorise("l")
    yield parallelise(*(row.name for row in nest.rows))
    yield place("registers", total, f"{total}_lanes", f"{total}_group")
