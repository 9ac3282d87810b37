"""A few rows times a large matrix whose sums lie along memory, `x @ w.T`: the matrix is read once, where it is.

Every number of the matrix is used once for each of a few rows, so memory bounds the product, and packing the matrix
would take longer than multiplying. Lanes run along k, as in `dots`; a vector of the matrix is multiplied with those of
all rows, whose sums stay in registers, and is not read again.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...loop_ir.index import Variable
from ...loop_ir.loops import Nest
from ...target import Target
from .. import rewrites as R
from ..contractions import product_of
from ..contractions.gemm import RESIDENT, Contraction, Operand
from ..contractions.groups import group_size, is_along
from ..rewrite import Rewrite
from . import NO_FACTS, Facts

# How many rows are few: more use a packed number so often that packing pays. Eight rows of 2048 integers took up to 1.5
# times as long as packed ones, eight rows of floats 1.8 times, and four rows of floats as long.
MOST_ROWS = {"int": 4, "float": 2}
SUMS = 8  # vectors of sums that keep the multiply-add units busy


def few_rows_schedule(nest: Nest, target: Target, facts: Facts = NO_FACTS) -> tuple[Rewrite, ...] | None:
    """Return the rewrites for a nest that multiplies a few rows with a matrix along memory; None for another one."""
    product = product_of(nest, facts.constants)
    if product is None or product.batch or facts.past_caches:
        return None
    sides = sorted((product.left, product.right), key=lambda side: sum(each.extent for each in side.across))
    rows, matrix = sides
    if not all(len(side.across) == len(side.ks) == 1 and is_along(side.value, side.ks[0]) for side in sides):
        return None
    (row,), (column,), (k,) = rows.across, matrix.across, rows.ks
    lanes = target.vector_bytes // 4
    left, right = product.total.value.parts()
    size = group_size(product.total.value.dtype, left, right, target, lanes)
    if (
        not 2 <= row.extent <= MOST_ROWS.get(product.total.value.dtype.category, 0)
        or k.extent % (lanes * size)
        or product.itemsize != 4
    ):
        return None
    if not _is_large(product, matrix, size):
        return None
    return tuple(_steps(nest, f"total{product.total.slot}", (row, column, k), size, lanes))


def _is_large(product: Contraction, matrix: Operand, size: int) -> bool:
    """Return whether reading the matrix in place beats packing it, in every call or, if constant, beforehand."""
    if product.total.value.dtype.category == "int":
        return size > 1 and not matrix.is_packed_once
    return matrix.across[0].extent * product.depth * matrix.value.dtype.itemsize > RESIDENT


def _steps(
    nest: Nest, total: str, loops: tuple[Variable, Variable, Variable], size: int, lanes: int
) -> Iterator[Rewrite]:
    row, column, k = loops
    partial = f"{total}_lanes"
    abreast = max(each for each in (1, 2, 4) if each * row.extent <= SUMS and column.extent % each == 0)
    both = ["c", row.name] if abreast > 1 else [row.name]
    if abreast > 1:
        yield R.split(column.name, abreast, "jt", "c")
    yield R.reorder("jt" if abreast > 1 else column.name, *both)
    if size > 1:
        yield R.split(k.name, lanes * size, "v", "lanes")
        yield R.split("lanes", size, "l", "g")
    else:
        yield R.split(k.name, lanes, "v", "l")
    yield R.split_reduction(total, "l", partial)
    if size > 1:
        yield R.group("g")
    yield R.lift(total, *both)
    yield R.lift(partial, *both)
    yield R.distribute(*both)
    yield R.reorder("v", *both, "l")
    for each in both:
        yield R.unroll(each)
    yield R.vectorise("l")
    yield R.parallelise("jt" if abreast > 1 else column.name)
    yield R.place("registers", total, partial)
