"""The numbers of a function's graph, each as it is in all traces, and the formulas that give them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from minitorch.dtypes import stored
from minitorch.ir import Node

from ..writing.polynomials import Polynomial, as_polynomial, bounded
from ..writing.sizes import Column, Values, numbers_of, products, through
from ..writing.tracked import Quotient
from .trying import Trials

MOST_PIECES = 3  # formulas of one number, of which the smallest or largest is taken

Known = Polynomial | Quotient


class Columns:
    """The numbers of a function's graph in all its traces.

    Args:
        trials: the traces.

    Attributes:
        traces: the traces, the one with the most operations first.
        values: their sizes.
        formulas: each column, with the formula that gives its numbers if there is one.
    """

    def __init__(self, trials: Trials) -> None:
        self.symbols = trials.symbols
        whole = trials.whole
        self.values = [whole.sizes, *(sizes for sizes in trials.found if sizes != whole.sizes)]
        self.traces = [trials.found[sizes].trace for sizes in self.values]
        self.named = [dict(zip(self.symbols, sizes, strict=True)) for sizes in self.values]
        rows = []
        for sizes, trace in zip(self.values, self.traces, strict=True):
            nodes = [*trace.graph.inputs, *trace.graph.nodes]
            known = dict(zip(nodes, trace.formulas, strict=True))
            rows.append([(node, known.get(node)) for node in trials.lined_up(trials.found[sizes])])
        self.formulas: dict[Column, Known | None] = {}
        self._plain: set[Column] = set()  # columns of numbers that do not remember how they were computed
        for places in zip(*rows, strict=True):
            self._add([node for node, _ in places], [each for _, each in places])
        lines = products(self.symbols, self.values, self.formulas)
        for column in self.moving:
            if column in self._plain and all(type(each) is int or _is_whole(each) for each in column):
                self.formulas[column] = through([int(each) for each in column], lines)

    def _add(self, nodes: Sequence[Node], formulas: Sequence[tuple[Any, ...] | None]) -> None:
        """The columns of one node; a slice that is all of its operand has no formulas of its own."""
        kept = [each for each in formulas if each is not None]
        for place, column in enumerate(zip(*map(numbers_of, nodes), strict=True)):
            if self.formulas.get(column) is None:
                pieces = [*dict.fromkeys(each[place] for each in kept)]
                is_plain = not any(isinstance(each, (Polynomial, Quotient)) for each in pieces)
                if is_plain and len(set(column)) > 1:
                    self._plain.add(column)
                self.formulas[column] = None if is_plain else self._formula(column, pieces, nodes[0])

    def _formula(self, column: Column, pieces: Sequence[Any], node: Node) -> Known | None:
        """The formula that gives the numbers of a column: its one piece, or the smallest or largest of all of them."""
        known = [as_polynomial(each) if type(each) is int else each for each in pieces]
        if not all(isinstance(each, (Polynomial, Quotient)) for each in known) or len(known) > MOST_PIECES:
            return None
        if len(known) == 1:
            return known[0] if self._gives(known[0], column, node) else None
        if not all(isinstance(each, Polynomial) for each in known):
            return None
        for first, *others in itertools.permutations(known):
            for kinds in itertools.product(("min", "max"), repeat=len(others)):
                found = first
                for kind, other in zip(kinds, others, strict=True):
                    found = bounded(kind, found, other)
                if self._gives(found, column, node):
                    return found
        return None

    def _gives(self, formula: Known, column: Column, node: Node) -> bool:
        for sizes, number in zip(self.named, column, strict=True):
            try:
                found = formula(sizes)
            except (ArithmeticError, ValueError):
                return False
            if found != number and not (isinstance(number, float) and stored(found, node.dtype) == number):
                return False
        return True

    def told_apart(self, chosen: Sequence[int]) -> int:
        """How many columns differ in some of the traces."""
        return len({at(column, chosen) for column in self.formulas}) + sum(
            len(set(at(column, chosen))) > 1 for column in self.moving
        )

    @property
    def moving(self) -> list[Column]:
        """The columns of numbers that are not the same in all traces."""
        return [column for column in self.formulas if len(set(column)) > 1]

    def coincidences(self, trace: int) -> int:
        """How many columns have a number in common with another one."""
        return len(self.formulas) - len({column[trace] for column in self.formulas})

    def by_coincidence(self) -> list[int]:
        """The traces, those with few coincidences first."""
        return sorted(range(len(self.values)), key=self.coincidences)

    def base(self) -> int:
        """Of the traces with all operations, the one with the fewest coincidences."""
        most = len(self.traces[0].graph.nodes)
        return next(each for each in self.by_coincidence() if len(self.traces[each].graph.nodes) == most)

    def distinct(self, sizes: Values) -> int:
        """How many different numbers there are for some sizes, as far as formulas tell."""
        named = dict(zip(self.symbols, sizes, strict=True))
        found = set()
        for column, formula in self.formulas.items():
            try:
                found.add(column[0] if formula is None else formula(named))
            except ArithmeticError:
                continue
        return len(found)


def _is_whole(number: Any) -> bool:
    return isinstance(number, float) and number.is_integer()


def at(column: Column, chosen: Sequence[int]) -> Column:
    """A column in some of the traces."""
    return tuple([column[each] for each in chosen])
