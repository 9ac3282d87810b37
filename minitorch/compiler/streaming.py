"""Stores that go past the caches: results so large that none of them would still be in a cache when they are read.

An ordinary store first reads the line of memory that it writes to: of three bytes that a large elementwise kernel moves
one is for nothing. A *streaming* store (non-temporal, as processors call it) collects a whole line and sends it to memory,
and what is in the caches stays there. It pays where a kernel moves more than the last cache holds; a smaller result
is better kept, for whoever reads it next.

It takes whole lines. Where rows begin within a line, a loop that only stores goes up to the next line first (see
`emit_columns`); where a vector is not at the beginning of its place in a line, as in memory that somebody else has
allocated, an ordinary store does.
"""

from __future__ import annotations

import math
from .loops import Buffer, Load, LoopKernel, walk
from .machine import host

SHARE = 2  # the part of the last cache that is ours: the other cores use it too


def streamed(kernel: LoopKernel) -> frozenset[int]:
    """The buffers of a kernel that are written past the caches: those that it does not read, if it moves much."""
    if sum(map(_bytes, kernel.buffers)) <= host().caches[2] // SHARE:
        return frozenset()
    read = {
        start + part.buffer
        for nest, _, start in kernel.parts
        for _, statement in nest.statements
        for part in walk(statement.value)
        if isinstance(part, Load)
    }
    return frozenset(number for number, each in enumerate(kernel.buffers) if each.written and number not in read)


def _bytes(buffer: Buffer) -> int:
    return math.prod(buffer.shape) * buffer.dtype.itemsize
