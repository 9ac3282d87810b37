"""The engine's schedules for row nests: pointwise kernels, reductions, and loops over rows that stay in the cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..loop_ir.expressions import Apply, looked_up, walk
from ..loop_ir.loops import Loop, Nest
from ..target import Target
from .gemm import recognise
from .layout import Layout
from .online import block, innermost, online_arrays, online_steps, pairs, totals
from .rewrites import Rewrite, parallelise, partition, peel, place, sink, split, split_reduction, unroll, vectorise
from .sweeps import recognise as sweeps_of
from .turned import turned_columns, turned_rows, whole_columns

UNROLLED = 8  # operations in a round of a loop that sums up


def row_schedule(nest: Nest, target: Target) -> tuple[Rewrite, ...] | None:
    """The steps for a nest over rows; None if it does something that is not known here."""
    if sweeps_of(nest) is not None or recognise(nest) is not None:
        return None
    layout = Layout(nest, target)
    if not is_plain(nest, layout):
        return None
    if layout.along is not None:
        return tuple(turned_rows(nest, layout))
    rest = _across_rows(nest, layout) if layout.across_rows else _along_columns(nest, layout)
    return (*online_steps(nest, layout), *rest)


def _registers(names: Iterable[str]) -> Iterator[Rewrite]:
    arrays = tuple(dict.fromkeys(names))
    if arrays:
        yield place("registers", *arrays)


def _along_columns(nest: Nest, layout: Layout) -> Iterator[Rewrite]:
    """The lanes run along the innermost columns."""
    sums = [total for loop in nest.loops for total in totals(loop)]
    arrays = [*sums, *online_arrays(nest, layout)]
    if layout.lanes > 1:
        yield from _vectors(nest, layout, arrays)
    yield parallelise(*(row.name for row in nest.rows))
    yield from _registers(arrays)


def _vectors(nest: Nest, layout: Layout, arrays: list[str]) -> Iterator[Rewrite]:
    lanes, online = layout.lanes, pairs(nest, layout)
    parts = [part for part in innermost(nest, online, block(layout)) if part.extent]
    several = [part for part in parts if part.extent >= 2 * lanes]
    for part in reversed(parts):
        yield split(part.name, lanes, "v", "l", cut="l")
    for number in dict.fromkeys(part.number for part in parts):
        for total in totals(nest.loops[number]):
            yield split_reduction(total, "l", f"{total}_lanes", "v" if {number, number - 1} & {*online} else "")
            arrays.append(f"{total}_lanes")
    unrolled = False
    for turn, part in reversed(list(enumerate(several))):
        loop = nest.loops[part.number]
        copies, whole = _copies(loop), part.extent // lanes
        if 1 < copies <= whole:
            unrolled = True
            yield split(f"v#{turn}", copies, "o", "u", cut="v")
            for total in totals(loop):
                around = "o" if whole >= 2 * copies else "u"
                yield split_reduction(f"{total}_lanes", "u", f"{total}_copies", around, first=True)
                arrays.append(f"{total}_copies")
    if unrolled:
        yield unroll("u")
    if parts:
        yield vectorise("l")


def _copies(loop: Loop) -> int:
    """How many vectors of columns go into one round, so that a short sum need not wait for the addition before."""
    if not totals(loop):
        return 1
    operations = sum(isinstance(part, Apply) for statement in loop.statements for part in walk(statement.value))
    return max(1, UNROLLED // (operations + 1))


def _across_rows(nest: Nest, layout: Layout) -> Iterator[Rewrite]:
    """Every lane has a row of its own."""
    sums = [total for loop in nest.loops for total in totals(loop)]
    if not nest.rows:
        yield from _registers(sums)
        return
    lanes, last, width = layout.lanes, nest.rows[-1], layout.chunk * layout.lanes
    turned = any(layout.tiles(loop) for loop in nest.loops)
    several, left = last.extent > width, last.extent % width
    together = ("v", "l") if layout.abreast > 1 else ("l",)
    inner = "t" if several or turned else last.name
    above = nest.rows[-2].name if len(nest.rows) > 1 else ""
    parts = [("b" if several else above, *together)]
    if several or turned:
        yield split(last.name, width, "b", "t")
    if not any(loop.columns for loop in nest.loops):
        yield split(inner, lanes, "v", "l", cut="" if several else "l")
        if several and left:
            yield peel("v")
        if sums:
            yield sink("l")
    elif last.extent < width and not turned:
        yield split(inner, lanes, "v", "l", cut="l")
        yield sink("l")
    else:
        if left and several:
            yield partition("b", "t", "s")
            if left > 1:  # a single row needs no vector
                yield split("s", lanes, "w", "m", cut="" if turned else "m")
                yield sink("m")
                yield vectorise("m")
                parts.append(("w" if left > lanes else "b", "m"))
        yield split(inner, lanes, "v", "l")
        yield sink(*together)
        if len(together) > 1:
            yield unroll("v")
    if turned:
        yield from turned_columns(nest, layout, parts)
    yield vectorise("l")
    yield parallelise(*(row.name for row in nest.rows[:-1]), "b")
    if turned:
        yield from whole_columns(nest, layout)
    endings = ["_l"]
    if left and several and any(loop.columns for loop in nest.loops):
        endings.append("_m" if left > 1 else "")
    arrays = [*sums, *online_arrays(nest, layout)]
    yield from _registers(array + ending for array in arrays for ending in endings)


def is_plain(nest: Nest, layout: Layout) -> bool:
    """Whether the schedule knows all that a nest does: no gathers."""
    return not any(looked_up(part) for _, at in nest.statements for part in walk(at.value))
