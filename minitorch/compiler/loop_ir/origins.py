"""Nests that differ only in where they begin in their buffers: one function for all of them, given other addresses.

A network that is unrolled over sixty steps reads another slice of its input in each, and is otherwise the same sixty
times. Counted from the first element that it reads or writes, it is the same to the letter, and is compiled once.
"""

from __future__ import annotations

from dataclasses import replace

from .expressions import Expression, Load, looked_up, rewritten, walk
from .index import Index
from .loops import Accumulate, Loop, Nest, Statement, Store


def at_origin(nest: Nest) -> tuple[Nest, dict[int, int]]:
    """The nest with every buffer counted from its first element in use, and for each buffer where that is."""
    firsts: dict[int, int] = {}

    def use(buffer: int, index: Index) -> None:
        firsts[buffer] = min(firsts.get(buffer, index.constant), index.constant)

    for _, statement in nest.statements:
        if isinstance(statement, Store):
            use(statement.buffer, statement.index)
        for part in walk(statement.value):
            if looked_up(part):  # what lies elsewhere is looked for in the whole buffer
                return nest, {}
            if isinstance(part, Load):
                use(part.buffer, part.index)
    firsts = {buffer: first for buffer, first in firsts.items() if first}
    if not firsts:
        return nest, {}
    known: dict[Expression, Expression] = {}

    def change(part: Expression) -> Expression:
        if isinstance(part, Load) and part.buffer in firsts:
            return Load(part.dtype, part.buffer, part.index - firsts[part.buffer], part.inside)
        return part

    def moved(statement: Statement) -> Statement:
        value = rewritten(statement.value, change, known)
        if isinstance(statement, Accumulate):
            return replace(statement, value=value)
        own = firsts.get(statement.buffer, 0) if isinstance(statement, Store) else 0
        return replace(statement, value=value, index=statement.index - own)

    loops = [Loop(loop.columns, tuple(map(moved, loop.statements))) for loop in nest.loops]
    return replace(nest, loops=tuple(loops)), firsts
