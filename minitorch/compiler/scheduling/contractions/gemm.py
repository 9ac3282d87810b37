"""Matrix products in the loop IR, and how to recognise one.

A matrix product needs no special statement. A nest that sums a product over one column, ``total += a * b``, *is*
one if ``a`` depends on some row variables (the *rows*) and ``b`` on others (the *lanes*), and not the other way round;
both may depend on the columns, *k*, and on all other variables (the batch). This file finds such nests; `gemm_tiling`
decides into which tiles they are cut, and `schedules.products` says how they are computed.

Rows, lanes and k may each be several variables: a convolution sums over channels and the places in a filter, for all
places in all images. Where memory goes on evenly from the last value of one to the next of another they are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...loop_ir.expressions import ALWAYS, Apply, Expression, Load, Sum, computed_in
from ...loop_ir.index import Variable, extent_of
from ...loop_ir.joining import joined
from ...loop_ir.loops import Bounds, Nest, Reduce, Write
from ...target import MOST_STEP

SOME_LANES = 16  # of a vector on no machine in particular
# Bytes of a constant operand that is worth being the packed one. Larger ones come from memory in every call, and are
# read best as rows: 16 rows times 2048×2048 numbers took 1.2 times as long with the numbers packed.
RESIDENT = 1 << 22
TURNED = 4  # cost of packing a vector that has to be turned, relative to one that is copied


@dataclass(frozen=True)
class Operand:
    """A factor of a product.

    Attributes:
        value: the factor.
        across: the variables of its rows or lanes, the outermost first; joined where memory allows it.
        ks: those of k.
        constant: whether it is the same in all calls: then it is packed once, when the program is loaded.
    """

    value: Expression
    across: tuple[Variable, ...]
    ks: tuple[Variable, ...]
    constant: bool = False

    @property
    def is_packed_once(self) -> bool:
        """Whether to pack it costs nothing: it is constant, and small enough to stay in a cache from call to call."""
        return self.constant and extent_of(self.across) * extent_of(self.ks) * self.value.dtype.itemsize <= RESIDENT

    @property
    def is_one_piece(self) -> bool:
        """Whether it already is a matrix in memory: then it costs next to nothing to read an element again."""
        value = self.value
        if not isinstance(value, Load) or value.inside != ALWAYS or len(self.across) > 1 or len(self.ks) > 1:
            return False
        return all(isinstance(atom, Variable) for atom, _ in value.index.terms)

    @property
    def is_dense_across(self) -> bool:
        """Whether neighbours across are neighbours in memory."""
        return bool(self.across) and is_dense(self.value, self.across[-1])


@dataclass(frozen=True)
class Contraction:
    """A nest that is a matrix product.

    Attributes:
        batch: the other row variables.
        rows: the variables of the left factor alone; perhaps none: one row.
        lanes: the variables of the right factor alone: the lanes of vectors run along the last of them.
        ks: the columns, which are summed over.
        left, right: the factors.
        total: the sum.
        epilogue: the statements that use the sum.
        store_lanes: lanes for the epilogue, joined where its memory allows it.
        bounds: the least and the largest number of arguments, where they are known.
    """

    batch: tuple[Variable, ...]
    rows: tuple[Variable, ...]
    lanes: tuple[Variable, ...]
    ks: tuple[Variable, ...]
    left: Operand
    right: Operand
    total: Reduce
    epilogue: tuple[Write, ...]
    store_lanes: tuple[Variable, ...]
    bounds: tuple[tuple[int, Bounds], ...] = ()

    @property
    def itemsize(self) -> int:
        """Bytes of one of the sums."""
        return self.total.value.dtype.itemsize

    @property
    def height(self) -> int:
        """The number of rows."""
        return extent_of(self.rows)

    @property
    def width(self) -> int:
        """The number of lanes."""
        return extent_of(self.lanes)

    @property
    def depth(self) -> int:
        """The number of products in a sum."""
        return extent_of(self.ks)


@lru_cache(256)
def recognise(nest: Nest, constants: frozenset[int] = frozenset()) -> Contraction | None:
    """Return the matrix product `nest` computes, or None if tiling does not pay.

    Args:
        nest: the loop nest.
        constants: the arguments that are the same in all calls.
    """
    total = nest.total
    if total is None or total.reduction != "reduce_sum" or not extent_of((*nest.rows, *nest.loops[0].columns)):
        return None
    stores = tuple(each for each in nest.loops[1].statements if isinstance(each, Write))
    product = total.value
    if any(isinstance(part, Sum) for part in product.all_parts):
        return None
    if not isinstance(product, Apply) or product.primitive != "mul" or product.dtype != computed_in(product.dtype):
        return None
    orders = (product.arguments, product.arguments[::-1])
    found = [_contraction(nest, left, right, total, stores, constants) for left, right in orders]
    best = max((each for each in found if each is not None), key=_preference, default=None)
    if best is None or (not best.rows and not (best.right.is_dense_across and len(best.right.across) == 1)):
        return None  # numbers times a vector, or rows of a matrix times a vector: loops do these as well
    return best


def _contraction(
    nest: Nest,
    left: Expression,
    right: Expression,
    total: Reduce,
    stores: tuple[Write, ...],
    constants: frozenset[int],
) -> Contraction | None:
    """Return the product with these factors; None if it has no lanes."""
    rows = [each for each in nest.rows if each in left.variables - right.variables]
    lanes = [each for each in nest.rows if each in right.variables - left.variables]
    ks = nest.loops[0].columns
    if not lanes:
        return None
    lanes.sort(key=lambda lane: (sum(store.index.coefficient(lane) == 1 for store in stores), is_dense(right, lane)))
    rows.sort(key=lambda row: is_dense(left, row))
    store_lanes, (stores, _) = joined(lanes, (stores, ()))
    batch = tuple(row for row in nest.rows if row not in (*rows, *lanes))
    factors = operand(left, rows, ks, constants), operand(right, lanes, ks, constants)
    return Contraction(batch, tuple(rows), tuple(lanes), ks, *factors, total, stores, store_lanes)


def operand(
    value: Expression,
    across: Sequence[Variable],
    ks: Sequence[Variable],
    constants: frozenset[int] = frozenset(),
) -> Operand:
    """Return a factor, with the variables joined along which memory goes on evenly."""
    is_constant = bool(value.reads) and value.reads <= constants and not value.looks_up
    across, (_, (value,)) = joined(across, ((), (value,)))
    ks, (_, (value,)) = joined(ks, ((), (value,)))
    return Operand(value, tuple(across), tuple(ks), is_constant)


def _preference(found: Contraction) -> tuple[bool, float, int]:
    """Return the sort key of contractions: those with rows first, then by the cost of packing and storing."""
    lanes, cost = SOME_LANES, 0.0
    if not (found.left.is_one_piece or found.left.is_packed_once):
        cost += found.height * found.depth / packing(found.left, lanes, 1)[1]
    if not (found.right.is_packed_once or (found.right.is_one_piece and found.right.is_dense_across)):
        cost += found.width * found.depth / packing(found.right, lanes, TURNED)[1]
    for store in found.epilogue:
        dense = store.index.coefficient(found.store_lanes[-1]) == 1
        cost += found.height * found.width / (min(lanes, found.store_lanes[-1].extent) if dense else 1)
    return bool(found.rows), -cost, found.width


def packing(operand: Operand, lanes: int, turned: int) -> tuple[bool, float]:
    """Return whether an operand is packed along k instead of its rows or lanes; and how many numbers at a time.

    If vectors along k have to be turned, each is as much work as some others.
    """
    along_k = _at_a_time(operand.value, operand.ks, lanes) / turned
    if not operand.across:
        return True, max(1, along_k)
    across = _at_a_time(operand.value, operand.across, lanes)
    if not across and not along_k:  # gathered, all of them
        return turned == 1 and operand.ks[-1].extent > operand.across[-1].extent, 1
    return along_k > across, max(along_k, across)


def _at_a_time(value: Expression, variables: Sequence[Variable], lanes: int) -> float:
    """Return how many neighbours along the last variable a few instructions load from memory; 0 if far apart."""
    last = variables[-1]
    steps = [step for part in _elements(value) if (step := abs(part.index.coefficient(last)))]
    usual = max(set(steps), key=steps.count, default=0)
    return min(lanes, last.extent) / usual if 0 < usual <= MOST_STEP else 0


def _elements(value: Expression) -> list[Load]:
    """Return the elements that a value is computed from, but for indices that are data."""
    indices = {part for each in value.all_parts for index in each.values for part in index.all_parts}
    return [part for part in value.all_parts if isinstance(part, Load) and part not in indices]


def is_dense(expression: Expression, along: Variable) -> bool:
    """Return whether neighbours along a variable are neighbours in memory, in more cases than not."""
    steps = [abs(part.index.coefficient(along)) for part in _elements(expression)]
    return 2 * sum(step == 1 for step in steps) > sum(step != 0 for step in steps)
