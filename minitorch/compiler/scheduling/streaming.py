"""Stores that go past the caches: results so large that no cache would still hold them when they are read.

An ordinary store first reads the line of memory that it writes to: of three bytes that a large elementwise kernel
moves, one is for nothing. A *streaming* store (processors call it non-temporal) collects a whole line and sends it to
memory, and the contents of the caches stay. It pays where as much is moved as the last cache holds; traffic is
counted element by element, as a kernel may read a few rows of a large table. A small result is better kept for the
next reader, and so is one that takes the place of an operand, which has just come in.

It takes whole lines. A line of which a part is stored in the ordinary way is read first, and not prefetched: each
takes as long as a hundred streamed ones. So rows that begin anywhere in a line are streamed only if they are very long;
such a loop goes up to the next line first (`align`). Nor does it pay where short runs are read from here and
there, and most of the time goes into waiting for them. And where a vector is not at the beginning of its place in a
line, as in memory allocated elsewhere, an ordinary store does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from ..loop_ir.expressions import Load, Scratch
from ..loop_ir.index import Index, Variable
from ..loop_ir.loops import Loop, LoopKernel, Nest, Reduce, Write
from ..target import LINE, Target
from . import count
from .lanes import Layout

LONG_ROW = 1 << 10  # lines that are worth one at either end that is filled in part
LONG_RUN = 8  # lines that are read one after another, if not in the order in which they are written
SMALL = 16  # a result this many times smaller than the last cache stays there, whatever its operands


def streamed(kernel: LoopKernel, target: Target) -> Iterator[frozenset[int]]:
    """Yield for each nest of a kernel the buffers that it writes past the caches: none that the kernel reads."""
    last_cache = target.caches[2]  # the bytes that stay near the cores, if no other program uses it
    if sum(math.prod(buffer.shape) * buffer.dtype.itemsize for buffer in kernel.buffers) < last_cache:
        yield from [frozenset[int]()] * len(kernel.nests)
        return
    read = {
        start + part.buffer
        for nest, _, start in kernel.parts
        for _, statement in nest.statements
        for part in statement.value.all_parts
        if isinstance(part, Load)
    }
    bytes_written, bytes_moved = _traffic(kernel)
    for nest, buffers, start in kernel.parts:
        written = {at.buffer for _, at in nest.statements if isinstance(at, Write) and start + at.buffer not in read}
        large = {number for number in written if bytes_written[start + number] * SMALL >= last_cache}
        moved = sum(bytes_moved[start : start + len(buffers)])
        yield frozenset(large) if moved >= last_cache else frozenset()


def _traffic(kernel: LoopKernel) -> tuple[list[int], list[int]]:
    """Count each buffer's bytes written, and its bytes read or written: of a large table a few rows."""
    sizes = [buffer.dtype.itemsize for buffer in kernel.buffers]
    elements = count.elements(kernel)
    written = [size * writes for size, (_, writes) in zip(sizes, elements, strict=True)]
    moved = [size * (reads + writes) for size, (reads, writes) in zip(sizes, elements, strict=True)]
    return written, moved


def in_whole_lines(nest: Nest, layout: Layout, buffers: Collection[int]) -> set[int]:
    """Return those buffers that a nest fills line by line, with its lanes along the rows or the columns."""
    stores = [(loop, at) for loop, at in nest.statements if isinstance(at, Write) and at.buffer in buffers]
    return {at.buffer for _, at in stores} - {at.buffer for loop, at in stores if not _fills(nest, layout, loop, at)}


def _fills(nest: Nest, layout: Layout, loop: Loop, store: Write) -> bool:
    along = nest.rows if layout.across_rows else loop.columns
    if not along:
        return False
    lane, lanes = along[-1], layout.lanes
    is_dense = store.index.coefficient(lane) == 1  # otherwise whole squares are stored, along another variable
    if not is_dense and lanes * store.value.dtype.itemsize < LINE:
        return False
    steps = [step for atom, step in store.index.terms if (atom != lane if is_dense else abs(step) != 1)]
    if any(step % lanes for step in steps) and (layout.across_rows or lane.extent < LONG_ROW * lanes):
        return False
    return lane.extent >= LONG_RUN * lanes or not any(
        load.index.coefficient(lane) == 1
        and {atom for atom, _ in load.index.terms} == {atom for atom, _ in store.index.terms}
        and load.index.terms != store.index.terms
        for load in store.value.all_parts
        if isinstance(load, Load)
    )


def from_a_line_on(layout: Layout, loop: Loop, buffers: Collection[int]) -> int | None:
    """Return the buffer that a loop over columns writes past the caches, if its rows begin anywhere in a line.

    None also if something else that the loop does needs columns to begin where the row does.
    """
    if not loop.columns or any(isinstance(at, Reduce) for at in loop.statements):
        return None
    last = loop.columns[-1]
    for at in loop.statements:
        for part in at.value.all_parts:
            if isinstance(part, (Load, Scratch)) and not _is_dense(part.index, last):
                return None
    for at in loop.statements:
        if isinstance(at, Write) and at.buffer in buffers and at.index.coefficient(last) == 1:
            return at.buffer if any(step % layout.lanes for atom, step in at.index.terms if atom != last) else None
    return None


def _is_dense(index: Index, last: Variable) -> bool:
    """Return whether an index is the same or the next one in the next iteration of a loop."""
    others = (Index((term,)) for term in index.terms if term[0] != last)
    return index.coefficient(last) in (0, 1) and not any(each.depends_on(last) for each in others)
