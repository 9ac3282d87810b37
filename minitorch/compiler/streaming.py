"""Stores that go past the caches: results so large that no cache would still hold them when they are read.

An ordinary store first reads the line of memory that it writes to: of three bytes that a large elementwise kernel
moves, one is for nothing. A *streaming* store (processors call it non-temporal) collects a whole line and sends it to
memory, and what is in the caches stays there. It pays where as much is moved as the last cache holds; what is moved is
counted element by element, as a kernel may read a few rows of a large table. A small result is better kept, for whoever
reads it next, and so is one that takes the place of what is read, as that has just come in.

It takes whole lines. Where rows begin within a line, a loop that only stores goes up to the next line first (see
`emit_columns`); where a vector is not at the beginning of its place in a line, as in memory that somebody else has
allocated, an ordinary store does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from . import count
from .expressions import Load, walk
from .loops import LoopKernel, Store
from .machine import host

SMALL = 16  # a result that is so many times smaller than the last cache stays there, whatever it is made of


def last_cache() -> int:
    """The bytes that stay near the cores, if nobody else uses the last cache."""
    return host().caches[2]


def streamed(kernel: LoopKernel) -> Iterator[frozenset[int]]:
    """For each nest of a kernel, the buffers that it writes past the caches: none that the kernel reads."""
    if sum(math.prod(buffer.shape) * buffer.dtype.itemsize for buffer in kernel.buffers) < last_cache():
        yield from [frozenset[int]()] * len(kernel.nests)
        return
    read = {
        start + part.buffer
        for nest, _, start in kernel.parts
        for _, statement in nest.statements
        for part in walk(statement.value)
        if isinstance(part, Load)
    }
    bytes_written, bytes_moved = _traffic(kernel)
    for nest, buffers, start in kernel.parts:
        written = {at.buffer for _, at in nest.statements if isinstance(at, Store) and start + at.buffer not in read}
        large = {number for number in written if bytes_written[start + number] * SMALL >= last_cache()}
        moved = sum(bytes_moved[start : start + len(buffers)])
        yield frozenset(large) if moved >= last_cache() else frozenset()


def _traffic(kernel: LoopKernel) -> tuple[list[int], list[int]]:
    """Of each buffer, the bytes that are written, and those that are read or written: of a large table a few rows."""
    sizes = [buffer.dtype.itemsize for buffer in kernel.buffers]
    elements = count.elements(kernel)
    written = [size * writes for size, (_, writes) in zip(sizes, elements, strict=True)]
    moved = [size * (reads + writes) for size, (reads, writes) in zip(sizes, elements, strict=True)]
    return written, moved
