"""The schedule of a matrix product: the blocks of Goto and van de Geijn, as rewrites.

Sizes of tiles and blocks come from `gemm_tiling`, which explains them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...lengths import Length
from ...loop_ir.expressions import Expression, looked_up
from ...loop_ir.loops import Nest
from ...target import Target
from .. import rewrites as R
from ..contractions import product_of
from ..contractions.gemm import Contraction, Operand
from ..contractions.gemm_tiling import Tiling, tiling
from ..contractions.groups import whole_groups
from ..rewrite import Rewrite
from . import NO_FACTS, Facts
from .groups import apart, decides, in_order, left_in_groups, right_in_groups


def product_schedule(nest: Nest, target: Target, facts: Facts = NO_FACTS) -> tuple[Rewrite, ...] | None:
    """Return the rewrites for a nest that is a matrix product; None for another one."""
    product = product_of(nest, facts.constants)
    if product is None:
        return None
    product = replace(product, bounds=facts.bounds)
    whole = whole_groups(product)
    cut = tiling(whole, target)
    if cut.groups is None or whole is product:
        cut = tiling(product, target)
        varies = any(isinstance(each.extent, Length) for each in (*product.batch, *product.rows))
        if varies and product.rows and product.height % cut.block_rows:
            cut = replace(cut, packs_left=False)  # a block beyond the bound is packed without its guard
        return tuple(_steps(product, cut))
    return R.reorder(*(each.name for each in whole.ks)), *_steps(whole, cut)


def _gathers(value: Expression) -> bool:
    return any(looked_up(part) for part in value.all_parts)


def _argument(operand: Operand, other: Operand) -> int | None:
    """Return an argument that an operand is read from; preferably one that the other is not read from."""
    own, others = (each.value.reads for each in (operand, other))
    return min(own - others or own, default=None)


def _steps(product: Contraction, cut: Tiling) -> Iterator[Rewrite]:
    total, left, right = f"total{product.total.slot}", product.left, product.right
    batch = [each.name for each in product.batch]
    if len(product.rows) > 1 or len(product.lanes) > 1:
        yield R.reorder(*batch, *(each.name for each in (*product.rows, *product.lanes)))
    for name, variables in (("i", product.rows), ("j", product.lanes), ("kk", product.ks)):
        if len(variables) > 1:
            yield R.fuse(name, *(each.name for each in variables))
    if product.rows:
        yield R.split(product.rows[0].name if len(product.rows) == 1 else "i", cut.block_rows, "ib", "rows")
        yield R.split("rows", cut.rows, "it", "r")
    yield R.split(product.lanes[0].name if len(product.lanes) == 1 else "j", cut.block_lanes, "jb", "lanes")
    yield R.split("lanes", cut.width, "jt", "tile_lanes")
    yield R.split("tile_lanes", cut.lanes, "v", "l")
    ks = product.ks[0].name if len(product.ks) == 1 else "kk"
    groups = [] if cut.groups is None else ["g"]
    if cut.groups is not None:
        if product.depth % cut.groups.size:
            yield R.pad_sum(ks, cut.groups.size)
        yield R.split(ks, cut.groups.size, "kg", "g")
        ks = "kg"
    yield R.split(ks, cut.steps, "kb", "k")
    units = [*batch, "ib", "jb"]
    # Where a tile ends with a row, a masked store reaches into the next row, and a load there would wait
    # for it. So whole vectors of all rows of the tile go first.
    is_ragged = product.width % cut.lanes != 0 and cut.vectors > 1
    by_vectors = len(product.lanes) > 1 or (is_ragged and product.width < cut.width)
    yield R.reorder(*units, "jt", "it", *(("v", "r") if by_vectors else ("r", "v")), "l")
    in_blocks = cut.block_k < product.depth
    inner = ["r", "v", "l"] if not in_blocks else ["jt", "it", "r", "v", "l"]
    yield R.lift(total, *inner)
    yield R.distribute(*inner)
    yield R.reorder(*(["kb", "jt", "it"] if in_blocks else []), "k", "r", "v", "l", *groups)
    extents = {
        "ib": -(-product.height // cut.block_rows),
        "jb": -(-product.width // cut.block_lanes),
        **{each.name: each.extent for each in product.batch},
    }
    outer = [name for name in units if extents[name] > 1]
    at = "kb" if in_blocks else outer[-1] if outer else ""
    # Nothing is looked up at an index that is not there.
    first: list[Rewrite] = []
    packs: list[Rewrite] = []
    if cut.packs_left:
        pack_left = _pack_left if cut.groups is None else left_in_groups
        is_first = cut.groups is None and _gathers(left.value)
        (first if is_first else packs).extend(pack_left(_argument(left, right), left, at, cut))
    if cut.packs_right:
        pack_right = _pack_right if cut.groups is None else right_in_groups
        is_first = cut.groups is None and _gathers(right.value)
        (first if is_first else packs).extend(pack_right(_argument(right, left), right, at, cut))
    yield from [*first, R.overcompute(total, tiles=("r", "v", "l")), *packs]
    if groups:
        yield R.group("g", **({"pairs": "int16"} if cut.groups is not None and cut.groups.pairs else {}))
    yield R.unroll("r", inside="k")
    yield R.unroll("v", inside="k")
    if cut.is_unrolled:
        yield R.unroll("k")
    results = sorted({store.buffer for store in product.epilogue})
    yield R.vectorise("l")
    yield R.in_registers(total, "k", "tile", **({"anew": True} if in_blocks else {}))
    yield R.parallelise(*units)
    packed = [name for name, is_packed in (("left", cut.packs_left), ("right", cut.packs_right)) if is_packed]
    yield R.outline(*packed, *results)


def _pack_left(argument: int | None, left: Operand, at: str, cut: Tiling) -> Iterator[Rewrite]:
    """Yield the steps for left[row, k], tiles of which read single numbers: its dense dimension stays so."""
    rows = [name for name, count in (("left_it", cut.block_rows // cut.rows), ("left_r", cut.rows)) if count > 1]
    if cut.left_along_k:
        yield R.pack(argument, "left", at, "it", "r", "k", pad=("r", cut.lanes))
        ks = yield from apart("left_k", left.ks, cut.block_k)
        if any(decides(left, left.across)) and rows:
            yield R.overcompute("left")
            yield R.fuse("left_row", *rows)
            rows = yield from apart("left_row", left.across, cut.block_rows)
            yield R.split("left_k", cut.lanes, "left_kt", "left_l")
            yield R.reorder(*ks[:-1], "left_kt", *in_order(left, left.across, rows), "left_l")
        else:
            yield R.split("left_k", cut.lanes, "left_kt", "left_l", cut="left_l")
    else:
        yield R.pack(argument, "left", at, "k", "it", "r", pad=("k", cut.lanes))
        if rows:
            yield R.overcompute("left")
            yield R.fuse("left_row", *rows)
            ks = yield from apart("left_k", left.ks, cut.block_k)
            yield R.split("left_row", cut.lanes, "left_rt", "left_l")
            yield R.overcompute("left")
            yield R.reorder("left_rt", *in_order(left, left.ks, ks), "left_l")
    yield R.vectorise("left_l")


def _pack_right(argument: int | None, right: Operand, at: str, cut: Tiling) -> Iterator[Rewrite]:
    """Yield the steps for right[k, lane], tile by tile: a tile reads all its lanes of one k, then of the next."""
    is_plain = len(right.across) == len(right.ks) == 1 and not _gathers(right.value)
    beyond = -cut.block_k % cut.lanes if cut.right_along_k and is_plain else 0  # so that squares that are turned fit
    yield R.pack(argument, "right", at, "jt", "k", "v", "l", pad=("jt", beyond * cut.width))
    if cut.right_along_k:
        ks = yield from apart("right_k", right.ks, cut.block_k)
        yield R.split("right_k", cut.lanes, "right_kt", "right_ki")
        if is_plain:
            yield R.overcompute("right")
        order = ("right_kt", "right_v") if is_plain else ("right_v", *ks[:-1], "right_kt")
        yield R.reorder("right_jt", *order, "right_ki", "right_l")
        yield R.regroup("square", cut.lanes, ("right_l", "right_ki"), ("right_ki", "right_l"))
        return
    if len(right.across) > 1 or len(right.ks) > 1:
        names = yield from apart("right_k", right.ks, cut.block_k)
        yield R.reorder("right_jt", "right_v", *in_order(right, right.ks, names), "right_l")
    yield R.vectorise("right_l")
