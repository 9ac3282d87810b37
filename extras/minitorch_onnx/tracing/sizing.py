"""From the traces of a function with several sizes to one graph, and to the formulas of its numbers.

    trials ──lined up──► columns: each number of the graph, in all traces ──► formulas that give them
       │                              └──► the traces that tell all columns apart
       └──passes──► their graphs with operators ──lined up──► `Sizes`

Passes decide by sizes, too. They take equal lengths for equal, so that the graph that is written, and those that it is
compared with, are of sizes that coincide with as few other numbers of the graph as possible. Where they compare two
numbers, the graphs are compared for both outcomes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minitorch.errors import TranslationError
from minitorch.graph import Graph
from minitorch.ir import Node, Spec

from ..writing.polynomials import Polynomial
from ..writing.sizes import MOVING, Sizes, Values, lined_up, numbers_of, refused
from ..writing.tracked import Decision, Size, deciding, sized
from .columns import Columns, at
from .lengths import LEAST
from .sized import Traced
from .trying import Trials

AROUND = 24  # how far from the first size one is looked for that coincides with nothing
POINTS = 3  # further lengths of each size, for which the graphs are compared after the passes

Passed = Callable[[Graph, Traced], Graph]
"""Applies passes to the graph of a trace."""


def with_sizes(
    trials: Trials, places: Mapping[str, tuple[str, int]], pipelines: Sequence[Passed]
) -> tuple[Traced, Graph, Sizes]:
    """The trace that is written, its graph after the passes, and what is dynamic in it.

    Args:
        trials: the traces.
        places: for each size, the argument that has it, and the dimension.
        pipelines: the next one is tried if the graphs of one are not alike. Those of the last one have to be alike for
            sizes that coincide with no other number, whichever way its passes decide.

    Raises:
        TranslationError: if the graphs are not alike after the passes (``MT803``).
    """
    _stand_apart(trials)
    error: TranslationError | None = None
    for is_picky, passed in itertools.product((False, True), pipelines):
        try:
            return _lined_up(trials, places, passed, passed is not pipelines[-1], is_picky)
        except TranslationError as failure:
            error = error or failure
    assert error is not None
    raise error


def _lined_up(
    trials: Trials, places: Mapping[str, tuple[str, int]], passed: Passed, strictly: bool, is_picky: bool
) -> tuple[Traced, Graph, Sizes]:
    columns = Columns(trials)
    sizes = columns.values[columns.base()]
    written = trials.found[sizes].trace
    with deciding() as decisions:
        remembering = passed(_with_formulas(written), written)
    bounds = [each for each in decisions if each.kind not in ("==", "!=")]
    trials.cover(bounds, sizes, columns.distinct, columns.distinct(sizes) if is_picky else 0)
    columns = Columns(trials)
    graph = passed(written.graph, written)
    graph.verify()
    chosen, rows = [columns.values.index(sizes)], [[*graph.inputs, *graph.nodes]]
    goals = _Goals(columns, bounds)
    error: TranslationError | None = None
    left = [each for each in columns.by_coincidence() if each not in chosen]
    while left:
        each = max(left, key=lambda each: goals.met([*chosen, each]))  # of several, the one with few coincidences
        if goals.met([*chosen, each]) <= goals.met(chosen):
            break
        left.remove(each)
        trace = columns.traces[each]
        try:
            rows.append(lined_up(graph, passed(trace.graph, trace)))
            chosen.append(each)
        except TranslationError as failure:
            if columns.coincidences(each) <= columns.coincidences(chosen[0]):
                raise
            error = error or failure
    every = range(len(columns.values))
    apart = columns.told_apart(chosen) == columns.told_apart(every)
    if not apart or (strictly and goals.outcomes(chosen) < goals.outcomes(every)):
        raise error or refused(None, "its passes find other operations with other sizes")
    alike = {mine: tuple(theirs) for mine, *theirs in zip(*rows, strict=True)}
    formulas = {at(column, chosen): columns.formulas[column] for column in columns.moving}
    for formula in [each.formula for node in remembering.nodes for each in numbers_of(node) if isinstance(each, Size)]:
        formulas.setdefault(tuple([formula(columns.named[each]) for each in chosen]), formula)
    values = [columns.values[each] for each in chosen]
    return written, graph, Sizes(tuple(trials.symbols), places, values, alike, formulas)


class _Goals:
    """The reasons to compare the graphs of one more trace.

    Args:
        columns: which have to be told apart.
        bounds: comparisons by passes, which have to fall both ways.
    """

    def __init__(self, columns: Columns, bounds: Sequence[Decision]) -> None:
        self.columns = columns
        self._falls = [[each(named) for named in columns.named] for each in bounds]

    def outcomes(self, chosen: Sequence[int]) -> int:
        """How many outcomes the comparisons have in some traces."""
        return sum(len({falls[each] for each in chosen}) for falls in self._falls)

    def met(self, chosen: Sequence[int]) -> int:
        """How many goals some traces meet: columns told apart, outcomes, points of lines, rests of divisions."""
        first, *others = [self.columns.values[each] for each in chosen]
        moved = [_moved(first, sizes) for sizes in others]
        points = sum(min(moved.count(each), POINTS if len(each) == 1 else 2) for each in set(moved))
        rests = {
            (place, by, size % by) for sizes in (first, *others) for place, size in enumerate(sizes) for by in (3, 4)
        }
        return self.columns.told_apart(chosen) + self.outcomes(chosen) + points + len(rests)


def _moved(first: Values, sizes: Values) -> tuple[int, ...]:
    """The sizes that are not the first ones."""
    return tuple([place for place, size in enumerate(sizes) if size != first[place]])


def _stand_apart(trials: Trials) -> None:
    """Trace with some sizes that coincide with few other numbers of the graph, near those with the most operations."""
    columns = Columns(trials)

    def ranked(place: int, sizes: Values) -> list[Values]:
        lengths = [sizes[place] + more for more in sorted(range(-AROUND, AROUND + 1), key=abs)]
        found = [trials.with_length(place, length, sizes) for length in lengths if length >= LEAST]
        return sorted(filter(trials.meets, found), key=lambda each: -columns.distinct(each))

    sizes = trials.whole.sizes
    for place in range(len(sizes)):
        sizes = next(iter(ranked(place, sizes)), sizes)
    for each in (sizes, *(other for place in range(len(sizes)) for other in ranked(place, sizes)[:1])):
        trials.attempt(each)


def _with_formulas(traced: Traced) -> Graph:
    """The graph of a trace with sizes that remember how they were computed, for passes."""
    known: dict[Node, Node] = {}
    nodes = [*traced.graph.inputs, *traced.graph.nodes]
    for node, formulas in zip(nodes, traced.formulas, strict=True):
        left = iter(formulas)

        def again(value: Any, left: Any = left) -> Any:
            if isinstance(value, tuple):
                return tuple([again(each) for each in value])
            formula = next(left)
            return sized(value, formula) if isinstance(formula, Polynomial) and type(value) is int else value

        spec = Spec(again(node.shape), node.dtype)
        moving = {name: again(node.params[name]) for name in MOVING if name in node.params}
        if "value" in moving:
            moving["value"] = node.params["value"]  # an element, which is of Python's own types
        operands = tuple([known[each] for each in node.inputs])
        known[node] = Node(node.primitive, operands, {**node.params, **moving}, spec, node.source)
    graph = traced.graph
    inputs, outputs, operations = (
        [known[each] for each in part] for part in (graph.inputs, graph.outputs, graph.nodes)
    )
    return Graph(inputs, outputs, operations, graph.name, verify=False)
