"""Runs: indices that are quotients and remainders of lane numbers, as neighbours in memory.

If lanes are elements of rows of so many elements, as those of an image are, row and column are a quotient and a
remainder of the number of the element. Within a row, which is the same for some lanes, the column counts on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from operator import floordiv, mod
from typing import Any

from llvmlite import ir

from ...loop_ir.expressions import ALWAYS, Inside
from ...loop_ir.index import NOWHERE, Division, Index, Quotient, Remainder, Variable
from ...target import MOST_STEP
from ..vector_memory import integer
from .indices import Indices
from .scopes import Scopes

MOST_RUNS = 4  # in which neighbours are loaded one after another, rather than an element at a time


class Runs:
    """The runs that the lanes of an access are in.

    Args:
        scopes: the open ones.
        indices: computes indices.
    """

    def __init__(self, scopes: Scopes, indices: Indices) -> None:
        self.scopes, self.indices, self.builder = scopes, indices, scopes.builder

    def of_access(self, index: Index, most: int = MOST_STEP) -> list[tuple[Index, Inside]]:
        """Return an access to neighbours in several runs as one for each run that lanes may be in, and which lanes are.

        Args:
            index: of the element.
            most: how far apart neighbours in memory may be.

        Returns:
            Nothing without such runs, or with too many of them.
        """
        found = self.of([index])
        is_near = all(0 < abs(self.scopes.step(at) or 0) <= most for (at,), _ in found)
        return [(at, lanes) for (at,), lanes in found] if is_near else []

    def of(self, indices: list[Index]) -> list[tuple[list[Index], Inside]]:
        """Return indices in each run that lanes may be in, and the condition to be in it; nothing if too many."""
        assert self.scopes.lane is not None
        divided = [atom for each in indices for atom in self._divisions(each)]
        if not divided:
            return []
        least = min(divided, key=lambda atom: atom.divisor)
        whole, length = least.index, least.divisor
        start = self.scopes.without_lane(whole)
        together = math.gcd(length, start.constant, *(factor for _, factor in start.terms))  # columns are multiples
        count = (length - together + self.scopes.lane.extent - 1) // length + 1
        if (
            count > MOST_RUNS
            or self.scopes.step(whole) != 1
            or whole.is_data
            or whole.bounds[0] < 0
            or any(atom.divisor % length or (atom.index - whole) % length != NOWHERE for atom in divided)
        ):
            return []
        first, depth = self.indices.index(start), self.scopes.depth_of(whole)

        def place(divide: Callable[[Any, Any], Any], known: Callable[[int, int], int], extent: int) -> Index:
            found = Variable(f"{whole} {len(self.scopes.places)}", extent)
            is_known = isinstance(first, ir.Constant)
            value = integer(known(first.constant, length)) if is_known else divide(first, integer(length))
            self.scopes.places[found], self.scopes.depths[found] = value, depth
            return Index(((found, 1),))

        row, column = self.scopes.once(
            ("runs", whole, length, self.scopes.key_of(whole.variables)),
            depth,
            lambda: (
                place(self.builder.udiv, floordiv, whole.bounds[1] // length + 1),
                place(self.builder.urem, mod, length),
            ),
        )
        found = []
        for number in range(count):
            own = row + number, column + Index(((self.scopes.lane, 1),), -number * length)
            moved = [self._within_run(index, whole, length, *own) for index in indices]
            found.append((moved, ALWAYS.and_(0, own[1], length)))
        return found

    def _divisions(self, index: Index) -> Iterator[Quotient | Remainder]:
        """Yield the innermost quotients and remainders in an index that differ between lanes."""
        for atom, _ in index.terms:
            if isinstance(atom, Division) and self.scopes.varies_by_lane(atom.index):
                inner = list(self._divisions(atom.index))
                yield from inner or [atom]

    def _within_run(self, index: Index, whole: Index, length: int, row: Index, column: Index) -> Index:
        """Return an index where a number is an element of a known row."""
        found = Index((), index.constant)
        for atom, factor in index.terms:
            place = Index(((atom, 1),))
            if isinstance(atom, Division) and self.scopes.varies_by_lane(atom.index):
                rows, ahead = atom.divisor // length, (atom.index - whole) // length
                if any(True for _ in self._divisions(atom.index)):
                    place = atom.of(self._within_run(atom.index, whole, length, row, column))
                elif isinstance(atom, Quotient):
                    place = (row + ahead) // rows
                else:
                    place = (row + ahead) % rows * length + column
            found = found + place * factor
        return found
