"""The blank of notebook 08: the schedule of a matrix product in tiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import minitorch as mt
from minitorch.compiler.scheduling.rewrites import (
    distribute,
    in_registers,
    lift,
    reorder,
    split,
    unroll,
    vectorise,
)

from ..blanking import Blank, Case


def tiled(rows: Any, vectors: Any, lanes: Any) -> Any:
    """Return the schedule of a product in tiles: so many rows by so many vectors of lanes."""
    return [
        split("i0", rows, "it", "r"),
        split("i1", vectors * lanes, "jt", "columns"),
        split("columns", lanes, "v", "l"),
        reorder("it", "jt", "r", "v", "l"),
        lift("total0", "r", "v", "l"),
        distribute("r", "v", "l"),
        reorder("j0", "r", "v", "l"),
        unroll("r"),
        unroll("v"),
        vectorise("l"),
        in_registers("total0", "j0", "tile"),
    ]


def _tiles() -> Iterable[Case]:
    yield "For a tile of 6 rows by 2 vectors", 6, 2, 8
    yield "For a tile of 4 rows by 3 vectors", 4, 3, 8


def _accesses(function: Callable[..., Any], rows: int, vectors: int, lanes: int) -> Any:
    """How many loads, stores and multiply-adds the innermost loop has, for avx2."""
    product, kernel = _product()
    matrices = mt.zeros(24, 32), mt.zeros(32, 48)
    scheduled = product.with_schedule(kernel, function(rows, vectors, lanes)).ledger(*matrices).for_target("avx2")
    loop = scheduled.kernels[0].steps[-1].inner_loop
    found: Counter[str] = Counter()
    for name, operands in (line.split(maxsplit=1) for line in loop.splitlines()):
        multiplies = name.startswith("vfmadd")
        found["multiply-adds"] += multiplies
        if "(" in operands and (multiplies or name.startswith(("vmov", "vbroadcast"))):
            found["stores" if operands.endswith(")") else "loads"] += 1
    return dict(found)


@cache
def _product() -> Any:
    product = mt.jit(lambda a, b: a @ b)
    return product, product.ledger(mt.zeros(24, 32), mt.zeros(32, 48)).kernels[0]


SUM_FIRST = "For each step of the sum all elements of a tile are computed: in the last order, j0 is the outermost loop."

BLANKS = {
    "tiled": Blank(
        tiled,
        _tiles,
        {
            f"{SUM_FIRST} Yours has it inside of the rows.": {'"j0", "r", "v"': '"r", "j0", "v"'},
            f"{SUM_FIRST} Yours has it inside of rows and vectors.": {'"j0", "r", "v"': '"r", "v", "j0"'},
        },
        ask=_accesses,
    )
}
