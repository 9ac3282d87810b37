"""The schedule of a matrix product: the blocks of Goto and van de Geijn, as rewrites.

Sizes of tiles and blocks come from `gemm_tiling`, which explains them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..loop_ir.expressions import Load, looked_up, walk
from ..loop_ir.loops import Nest
from ..target import Target
from .gemm import Contraction, Operand, recognise
from .gemm_tiling import Tiling, tiling
from .rewrites import (
    Rewrite,
    distribute,
    in_registers,
    lift,
    overcompute,
    pack,
    parallelise,
    reorder,
    split,
    transpose,
    unroll,
    vectorise,
)


def product_schedule(nest: Nest, target: Target) -> tuple[Rewrite, ...] | None:
    """The rewrites for a nest that is a matrix product of plain rows, lanes and k, and gathers nothing; else None."""
    product = recognise(nest)
    if product is None or len(product.rows) > 1 or len(product.lanes) != 1 or len(product.ks) != 1:
        return None
    if any(looked_up(part) for _, at in nest.statements for part in walk(at.value)):
        return None
    cut = tiling(product, target)
    if cut.streams:
        return None
    left, right = _argument(product.left), _argument(product.right)
    if (cut.packs_left and left is None) or (cut.packs_right and right is None) or left == right:
        return None
    return tuple(_steps(product, cut, left, right))


def _argument(operand: Operand) -> int | None:
    """The argument that an operand is read from, if it is one."""
    found = {part.buffer for part in walk(operand.value) if isinstance(part, Load)}
    return found.pop() if len(found) == 1 else None


def _steps(product: Contraction, cut: Tiling, left: int | None, right: int | None) -> Iterator[Rewrite]:
    (lane,), (k,) = product.lanes, product.ks
    total = f"total{product.total.slot}"
    batch = [each.name for each in product.batch]
    if product.rows:
        (row,) = product.rows
        yield split(row.name, cut.block_rows, "ib", "rows")
        yield split("rows", cut.rows, "it", "r")
    yield split(lane.name, cut.block_lanes, "jb", "lanes")
    yield split("lanes", cut.width, "jt", "tile_lanes")
    yield split("tile_lanes", cut.lanes, "v", "l")
    yield split(k.name, cut.block_k, "kb", "k")
    units = [*batch, "ib", "jb"]
    yield reorder(*units, "jt", "it", "r", "v", "l")
    in_blocks = cut.block_k < product.depth
    inner = ["r", "v", "l"] if not in_blocks else ["jt", "it", "r", "v", "l"]
    yield lift(total, *inner)
    yield distribute(*inner)
    yield overcompute(total)
    yield reorder(*(["kb", "jt", "it"] if in_blocks else []), "k", "r", "v", "l")
    extents = {
        "ib": -(-product.height // cut.block_rows),
        "jb": -(-product.width // cut.block_lanes),
        **{each.name: each.extent for each in product.batch},
    }
    outer = [name for name in units if extents[name] > 1]
    at = "kb" if in_blocks else outer[-1] if outer else ""
    if cut.packs_left:
        assert left is not None
        if cut.left_along_k:
            yield pack(left, "left", at, "it", "r", "k", pad=("r", cut.lanes))
            yield split("left_k", cut.lanes, "left_kt", "left_l")
        else:
            yield pack(left, "left", at, "k", "it", "r", pad=("k", cut.lanes))
        yield vectorise("left_l")
    if cut.packs_right:
        assert right is not None
        beyond = -cut.block_k % cut.lanes if cut.right_along_k else 0  # so that squares that are turned fit
        yield pack(right, "right", at, "jt", "k", "v", "l", pad=("jt", beyond * cut.width))
        if cut.right_along_k:
            yield split("right_k", cut.lanes, "right_kt", "right_ki")
            yield overcompute("right")
            yield reorder("right_jt", "right_kt", "right_v", "right_ki", "right_l")
            yield transpose("right_ki", "right_l", "square")
        else:
            yield vectorise("right_l")
    yield unroll("r", inside="k")
    yield unroll("v", inside="k")
    yield vectorise("l")
    yield in_registers(total, "k", "tile")
    yield parallelise(*units)
