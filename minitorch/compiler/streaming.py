"""Stores that go past the caches: results so large that no cache would still hold them when they are read.

An ordinary store first reads the line of memory that it writes to: of three bytes that a large elementwise kernel
moves, one is for nothing. A *streaming* store (processors call it non-temporal) collects a whole line and sends it to
memory, and what is in the caches stays there. It pays where as much is moved as the last cache holds; a smaller result
is better kept, for whoever reads it next. So is one that takes the place of what is read, as that has just come in.

It takes whole lines. Where rows begin within a line, a loop that only stores goes up to the next line first (see
`emit_columns`); where a vector is not at the beginning of its place in a line, as in memory that somebody else has
allocated, an ordinary store does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .expressions import Load, walk
from .loops import LoopKernel, Store
from .machine import host


def last_cache() -> int:
    """The bytes that stay near the cores, if nobody else uses the last cache."""
    return host().caches[2]


def streamed(kernel: LoopKernel) -> Iterator[frozenset[int]]:
    """For each nest of a kernel, the buffers that it writes past the caches: none that the kernel reads."""
    read = {
        start + part.buffer
        for nest, _, start in kernel.parts
        for _, statement in nest.statements
        for part in walk(statement.value)
        if isinstance(part, Load)
    }
    for nest, buffers, start in kernel.parts:
        moved = sum(math.prod(buffer.shape) * buffer.dtype.itemsize for buffer in buffers)
        written = {at.buffer for _, at in nest.statements if isinstance(at, Store) and start + at.buffer not in read}
        yield frozenset(written) if moved >= last_cache() else frozenset()
