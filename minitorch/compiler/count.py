"""What a kernel does, counted from its loops: elements that it reads and writes, operations that it carries out."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..graph.cost import FREE, TRANSCENDENTAL
from .index import Index, Looked, Quotient, Remainder, Variable
from .loops import Accumulate, Apply, Expression, Inside, Load, LoopKernel, Nest, Position, Scratch, Store, Sum, walk


class _Variables:
    """On which loop variables expressions and indices depend; each expression is looked at once."""

    def __init__(self) -> None:
        self._known: dict[Expression, frozenset[Variable]] = {}

    def of_index(self, index: Index) -> frozenset[Variable]:
        """The variables that an index mentions."""
        found: set[Variable] = set()
        for atom, _ in index.terms:
            if isinstance(atom, Variable):
                found.add(atom)
            elif isinstance(atom, Looked):
                found |= self.of(atom.value)
            elif isinstance(atom, (Quotient, Remainder)):
                found |= self.of_index(atom.index)
        return frozenset(found)

    def of(self, expression: Expression) -> frozenset[Variable]:
        """The variables that a value changes with."""
        found = self._known.get(expression)
        if found is None:
            own: set[Variable] = set()
            if isinstance(expression, (Load, Scratch, Position)):
                own |= self.of_index(expression.index)
            inside = getattr(expression, "inside", Inside())
            for _, index, _ in inside.bounds:
                own |= self.of_index(index)
            for part in expression.parts():
                own |= self.of(part)
            if isinstance(expression, Sum):
                own.discard(expression.variable)
            found = self._known[expression] = frozenset(own)
        return found


def _times(variables: Iterable[Variable]) -> int:
    return math.prod(variable.extent for variable in variables)


def elements(kernel: LoopKernel) -> list[tuple[int, int]]:
    """For each buffer, how many of its elements are read and how many are written, each once.

    An element that is looked up counts once per look: a table of embeddings is not read as a whole.
    """
    reads: list[dict[Index, int]] = [{} for _ in kernel.buffers]
    writes: list[dict[Index, int]] = [{} for _ in kernel.buffers]
    for nest, _, start in kernel.parts:
        variables = _Variables()
        for _, statement in nest.statements:
            if isinstance(statement, Store):
                writes[start + statement.buffer][statement.index] = _times(variables.of_index(statement.index))
            for part in walk(statement.value):
                if isinstance(part, Load):
                    reads[start + part.buffer][part.index] = _times(variables.of_index(part.index))
    sizes = [math.prod(buffer.shape) for buffer in kernel.buffers]
    return [
        (min(size, sum(read.values())), min(size, sum(written.values())))
        for size, read, written in zip(sizes, reads, writes, strict=True)
    ]


def operations(kernel: LoopKernel) -> tuple[int, int]:
    """How many elements arithmetic is done on, and how many exp, log and the like are taken of.

    Counted as in `minitorch.graph.cost`, but from the loops: what does not change along a loop is computed once, and
    what two loops compute counts twice.
    """
    counts = [_nest_operations(nest) for nest in kernel.nests]
    return sum(arithmetic for arithmetic, _ in counts), sum(special for _, special in counts)


def _nest_operations(nest: Nest) -> tuple[int, int]:
    variables = _Variables()
    arithmetic = special = 0
    for loop in nest.loops:
        seen: set[Expression] = set()
        for statement in loop.statements:
            if isinstance(statement, Accumulate):
                arithmetic += _times((*nest.rows, *loop.columns))
            parts = list(walk(statement.value))
            inner = {*loop.columns, *(part.variable for part in parts if isinstance(part, Sum))}
            for part in parts:
                if isinstance(part, Sum) and part not in seen:
                    seen.add(part)
                    arithmetic += _times({*nest.rows, *(variables.of(part.value) & inner)})
                if isinstance(part, Apply) and part.primitive not in FREE and part not in seen:
                    seen.add(part)
                    times = _times({*nest.rows, *(variables.of(part) & inner)})
                    if part.primitive in TRANSCENDENTAL:
                        special += times
                    else:
                        arithmetic += times
    return arithmetic, special
