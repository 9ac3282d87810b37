"""Common code for loop nests that differ only in the offsets of their buffers: one function for all of them.

A network that is unrolled over sixty steps reads another slice of its input in each, and is otherwise the same sixty
times. With every index relative to the first element in use, the sixty nests are equal: they are compiled once, and
called with other addresses. `at_origin` does so for the nests within a kernel, `kernel_at_origin` for whole kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from .expressions import Expression, Load, looked_up, rewritten
from .index import Index
from .loops import Loop, LoopKernel, Nest, Reduce, Statement, Write


def at_origin(nest: Nest) -> tuple[Nest, dict[int, int]]:
    """Return a nest with each buffer's indices relative to the first element in use, and these first elements."""
    firsts = _firsts([nest])
    return _moved(nest, firsts), firsts


def kernel_at_origin(kernel: LoopKernel) -> tuple[LoopKernel, tuple[int, ...]]:
    """Return a kernel with each buffer's indices relative to the first element in use, and these first elements.

    Nests that have their buffers in common count them from the same elements.
    """
    together: dict[int, list[Nest]] = {}
    for nest, start in zip(kernel.nests, kernel.starts, strict=True):
        together.setdefault(start, []).append(nest)
    firsts = {start: _firsts(nests) for start, nests in together.items()}
    origins = {start + buffer: first for start, found in firsts.items() for buffer, first in found.items()}
    nests = tuple(_moved(nest, firsts[start]) for nest, start in zip(kernel.nests, kernel.starts, strict=True))
    moved = replace(kernel, nests=nests) if origins else kernel
    return moved, tuple(origins.get(buffer, 0) for buffer in range(len(kernel.buffers)))


def _firsts(nests: Iterable[Nest]) -> dict[int, int]:
    """Return the first element in use of each buffer that these nests share, where that is not 0.

    An index may begin before the buffer, as with padding. The element that is read in its place, where nothing is
    there, is this first one: it has to be in memory.
    """
    firsts: dict[int, int] = {}

    def use(buffer: int, index: Index) -> None:
        firsts[buffer] = max(0, min(firsts.get(buffer, index.constant), index.constant))

    for nest in nests:
        for _, statement in nest.statements:
            if isinstance(statement, Write):
                use(statement.buffer, statement.index)
            for part in statement.value.all_parts:
                if looked_up(part):  # a gather searches the whole buffer
                    return {}
                if isinstance(part, Load):
                    use(part.buffer, part.index)
    return {buffer: first for buffer, first in firsts.items() if first}


def _moved(nest: Nest, firsts: Mapping[int, int]) -> Nest:
    """Return the nest with the indices into some buffers relative to other elements."""
    if not firsts:
        return nest
    known: dict[Expression, Expression] = {}

    def change(part: Expression) -> Expression:
        if isinstance(part, Load) and part.buffer in firsts:
            return Load(part.dtype, part.buffer, part.index - firsts[part.buffer], part.inside)
        return part

    def moved(statement: Statement) -> Statement:
        value = rewritten(statement.value, change, known)
        if isinstance(statement, Reduce):
            return replace(statement, value=value)
        own = firsts.get(statement.buffer, 0) if isinstance(statement, Write) else 0
        return replace(statement, value=value, index=statement.index - own)

    loops = [Loop(loop.columns, tuple(map(moved, loop.statements))) for loop in nest.loops]
    return replace(nest, loops=tuple(loops))
