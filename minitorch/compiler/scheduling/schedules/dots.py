"""Rows of a matrix of small integers times a vector: dot products along k, read where they are.

Every number of the matrix is used once, so memory bounds such a product, and to pack it would take longer than to
multiply. Lanes run along k, each with a group of terms (see `contractions.groups`), and are added up at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...loop_ir.expressions import Apply
from ...loop_ir.index import Variable
from ...loop_ir.loops import Nest
from ...target import Target
from .. import rewrites as R
from ..contractions import product_of
from ..contractions.groups import LARGEST, group_size, is_along, paired
from ..rewrite import Rewrite
from . import NO_FACTS, Facts
from .rows import in_copies

COPIES = 4  # vectors of sums, so that one need not wait for the addition before


def dot_schedule(nest: Nest, target: Target, facts: Facts = NO_FACTS) -> tuple[Rewrite, ...] | None:
    """Return the rewrites for a nest that sums products of small integers along memory; None for another one."""
    total, columns = nest.total, nest.loops[0].columns
    if total is None or total.reduction != "reduce_sum" or len(columns) != 1:
        return None
    if nest.has_sums or facts.past_caches or product_of(nest) is not None:
        return None
    (k,) = columns
    value, lanes = total.value, target.lanes(4)
    if not isinstance(value, Apply) or value.primitive != "mul" or not all(is_along(part, k) for part in value.parts()):
        return None
    left, right = value.parts()
    size = group_size(value.dtype, left, right, target, lanes)
    in_pairs = size == 2 and _is_whole(k, LARGEST, lanes) and paired(left, right, dict(facts.bounds), target, lanes)
    if in_pairs:
        size = LARGEST
    if size < 2 or not _is_whole(k, size, lanes):
        return None
    return tuple(_steps(nest, f"total{total.slot}", k, size, lanes, {"pairs": "int16"} if in_pairs else {}))


def _is_whole(k: Variable, size: int, lanes: int) -> bool:
    """Return whether k is groups of a size, and enough of them for a vector."""
    return k.extent % size == 0 and k.extent >= lanes * size


def _steps(nest: Nest, total: str, k: Variable, size: int, lanes: int, pairs: dict[str, str]) -> Iterator[Rewrite]:
    whole, rest = divmod(k.extent, lanes * size)
    arrays = [total, f"{total}_lanes"]
    yield R.split(k.name, lanes * size, "v", "lanes", cut="lanes")
    yield R.split("lanes", size, "l", "g")
    if rest:
        yield R.unswitch("g")
    yield R.split_reduction(total, "l", f"{total}_lanes")
    yield R.group("g", **pairs)
    copies = min(COPIES, whole)
    if copies > 1:
        arrays.append(f"{total}_copies")
        yield from in_copies("v", copies, whole, [total])
        yield R.unroll("u")
    yield R.vectorise("l")
    yield R.parallelise(*(row.name for row in nest.rows))
    yield R.place("registers", *arrays)
