"""The engine's schedules for row nests: pointwise kernels, reductions, and loops over rows that stay in the cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from ...loop_ir.expressions import ALWAYS, Apply, Load, Scratch, Total
from ...loop_ir.loops import Loop, Nest
from ...target import Target
from .. import rewrites as R
from ..contractions import product_of
from ..lanes import Layout, totals
from ..rewrite import Rewrite
from ..streaming import from_a_line_on, in_whole_lines
from . import NO_FACTS, Facts

ROWS_AHEAD = 3  # rows from a request for memory to its use; too few hide no latency, too many fill the caches
UNROLLED = 8  # operations in a round of a loop that sums up


def row_schedule(nest: Nest, target: Target, facts: Facts = NO_FACTS) -> tuple[Rewrite, ...] | None:
    """Return the steps for a nest over rows, which writes some arguments past the caches; None for a contraction."""
    if nest.has_sums or product_of(nest) is not None:
        return None
    layout = Layout(nest, target)
    streamed = in_whole_lines(nest, layout, facts.past_caches)
    if layout.along is not None:
        from .turned import turned_rows

        steps = turned_rows(nest, layout)
    elif layout.across_rows:
        steps = _across_rows(nest, layout)
    else:
        steps = _along_columns(nest, layout, streamed)
    return (*(R.stream(argument) for argument in sorted(streamed)), *steps)


def _registers(names: Iterable[str]) -> Iterator[Rewrite]:
    arrays = tuple(dict.fromkeys(names))
    if arrays:
        yield R.place("registers", *arrays)


def _along_columns(nest: Nest, layout: Layout, streamed: Collection[int]) -> Iterator[Rewrite]:
    """Yield the steps that put the lanes along the innermost columns."""
    for argument in _gathered(nest):
        yield R.prefetch(argument, nest.rows[-1].name, ROWS_AHEAD, f"line{argument}")
    arrays = [total for loop in nest.loops for total in totals(loop)]
    aligned = {number: from_a_line_on(layout, loop, streamed) for number, loop in enumerate(nest.loops)}
    if layout.lanes > 1:
        yield from _vectors(nest, layout, arrays, aligned)
    yield R.parallelise(*(row.name for row in nest.rows))
    if any(argument is not None for argument in aligned.values()):
        yield R.specialise("line")
        yield R.distribute("line")
    yield from _registers(arrays)


def _vectors(nest: Nest, layout: Layout, arrays: list[str], aligned: Mapping[int, int | None]) -> Iterator[Rewrite]:
    lanes, seen = layout.lanes, Counter[str]()
    parts: list[tuple[str, int, Loop]] = []  # the innermost loops over columns, with the number of their loop
    for number, loop in enumerate(nest.loops):
        parts += [(f"{each.name}#{seen[each.name]}", number, loop) for each in loop.columns[-1:]]
        seen.update(column.name for column in loop.columns)
    for name, number, _ in reversed(parts):
        argument = aligned[number]
        if argument is None:
            yield R.split(name, lanes, "v", "l", cut="l")
        else:
            yield R.align(name, argument, lanes, "line", "l")
    for _, _, loop in parts:
        for total in totals(loop):
            yield R.split_reduction(total, "l", f"{total}_lanes")
            arrays.append(f"{total}_lanes")
    several = [loop for _, number, loop in parts if loop.columns[-1].extent >= 2 * lanes and aligned[number] is None]
    unrolled = False
    for turn, loop in reversed(list(enumerate(several))):
        copies, whole = _copies(loop), loop.columns[-1].extent // lanes
        if 1 < copies <= whole:
            unrolled = True
            yield from in_copies(f"v#{turn}", copies, whole, totals(loop))
            arrays += [f"{total}_copies" for total in totals(loop)]
    if unrolled:
        yield R.unroll("u")
    if parts:
        yield R.vectorise("l")


def in_copies(loop: str, copies: int, whole: int, sums: Iterable[str]) -> Iterator[Rewrite]:
    """Yield the steps that give vectors of sums some copies, so that one need not wait for the addition before."""
    yield R.split(loop, copies, "o", "u", cut="v")
    for total in sums:
        around = "o" if whole >= 2 * copies else "u"
        yield R.split_reduction(f"{total}_lanes", "u", f"{total}_copies", around, first=True)


def _copies(loop: Loop) -> int:
    """Return how many vectors of columns go into one round, so that a short sum need not wait for each addition."""
    if not totals(loop):
        return 1
    operations = sum(isinstance(part, Apply) for statement in loop.statements for part in statement.value.all_parts)
    return max(1, UNROLLED // (operations + 1))


def _across_rows(nest: Nest, layout: Layout) -> Iterator[Rewrite]:
    """Yield the steps that give every lane its own row."""
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
        yield R.split(last.name, width, "b", "t")
    if not any(loop.columns for loop in nest.loops):
        yield R.split(inner, lanes, "v", "l", cut="" if several else "l")
        if sums:
            yield R.sink("l")
    elif last.extent < width and not turned:
        yield R.split(inner, lanes, "v", "l", cut="l")
        yield R.sink("l")
    else:
        if left and several:
            yield R.partition("b", "t", "s")
            if left > 1:  # a single row needs no vector
                yield R.split("s", lanes, "w", "m", cut="" if turned else "m")
                yield R.sink("m")
                yield R.vectorise("m")
                parts.append(("w" if left > lanes else "b", "m"))
        yield R.split(inner, lanes, "v", "l")
        yield R.sink(*together)
        if len(together) > 1:
            yield R.unroll("v")
    if turned:
        from .turned import turned_columns, whole_columns

        yield from turned_columns(nest, layout, parts)
    yield R.vectorise("l")
    yield R.parallelise(*(row.name for row in nest.rows[:-1]), "b")
    if turned:
        yield from whole_columns(nest, layout)
    endings = ["_l"]
    if left and several and any(loop.columns for loop in nest.loops):
        endings.append("_m" if left > 1 else "")
    yield from _registers(array + ending for array in sums for ending in endings)


def _gathered(nest: Nest) -> list[int]:
    """Return the arguments whose whole rows are read at places that are data, and known before a row begins."""
    found: list[int] = []
    columns = [column for loop in nest.loops for column in loop.columns]
    for loop, statement in nest.statements if nest.rows and nest.rows[-1].extent > ROWS_AHEAD else ():
        for part in statement.value.all_parts if loop.columns else ():
            if not isinstance(part, Load) or part.inside != ALWAYS or not part.index.depends_on(nest.rows[-1]):
                continue
            if part.index.coefficient(loop.columns[-1]) == 1:
                inner = [each for value in part.values for each in value.all_parts]
                made_here = any(isinstance(each, (Total, Scratch)) for each in inner)
                if inner and not made_here and not any(each.depends_on(one) for each in inner for one in columns):
                    found.append(part.buffer)
    return list(dict.fromkeys(found))
