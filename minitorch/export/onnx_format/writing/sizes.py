"""Sizes that differ from call to call: which numbers of a graph depend on them, found by tracing with several.

A graph has numbers for shapes. The function is therefore traced again with other sizes of the dynamic dimensions; where
the graphs have other numbers, a number is an expression of these sizes:

    factor * (the product of some sizes) + added, or the bound that it runs into

such as the 8 of ``x[:8]``. A number that follows the sizes in another way (a square, a quotient that is rounded) is
refused, with the line. Of each size up to nine are tried, near the example's and far from it, so that three points lie
on the line, and two on its bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....errors import TranslationError
from ....graph import Graph
from ....graph.build import apply
from ....graph.values import value_key
from ....ir import Node
from ....primitives import Literal, slice_


@dataclass(frozen=True)
class Expression:
    """A number that depends on sizes: ``factor * product of symbols + added``, within bounds."""

    symbols: tuple[str, ...]
    factor: int = 1
    added: int = 0
    least: int | None = None
    most: int | None = None


Number = int | Expression
Values = tuple[int, ...]
"""The sizes of one trace, in the order of the symbols."""


@dataclass(frozen=True)
class Sizes:
    """The graph of the example, and the same with other sizes.

    Attributes:
        symbols: the names of the sizes.
        places: for each, the argument that has it, and the dimension.
        values: the sizes of each trace, the example's first.
        alike: for each node, its counterparts in the other traces.
    """

    symbols: tuple[str, ...] = ()
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    values: Sequence[Values] = ((),)
    alike: Mapping[Node, tuple[Node, ...]] = field(default_factory=dict)

    def shape(self, node: Node) -> tuple[Number, ...]:
        """The shape of a value: numbers, or expressions of sizes.

        Raises:
            TranslationError: for a length that follows the sizes in a way of its own (``MT803``).
        """
        shapes = [each.shape for each in (node, *self.alike.get(node, ()))]
        return tuple([self._number(numbers, node, "its shape") for numbers in zip(*shapes, strict=True)])

    def of(self, node: Node, name: str) -> tuple[Number, ...]:
        """A parameter that is a tuple of numbers, or one number."""
        found = [each.params[name] for each in (node, *self.alike.get(node, ()))]
        rows = [each if isinstance(each, tuple) else (each,) for each in found]
        return tuple([self._number(numbers, node, name) for numbers in zip(*rows, strict=True)])

    def fixed(self, node: Node, name: str) -> Any:
        """A parameter that is the same in all traces.

        Raises:
            TranslationError: if it is not (``MT803``).
        """
        value = node.params[name]
        for each in self.alike.get(node, ()):
            if _key(each.params[name]) != _key(value):
                raise refused(node, f"{name}={_text(value)} becomes {_text(each.params[name])}")
        return value

    def is_fixed(self, node: Node, name: str) -> bool:
        """Whether a parameter is the same in all traces."""
        return all(_key(each.params[name]) == _key(node.params[name]) for each in self.alike.get(node, ()))

    def _number(self, numbers: Sequence[int], node: Node, what: str) -> Number:
        first = numbers[0]
        if all(each == first for each in numbers):
            return first
        for count in range(1, len(self.symbols) + 1):
            for chosen in itertools.combinations(range(len(self.symbols)), count):
                points = [math.prod(values[at] for at in chosen) for values in self.values]
                found = _line(points, numbers) or _bounded(points, numbers)
                if found is not None:
                    return Expression(tuple(self.symbols[at] for at in chosen), *found)
        raise refused(node, f"{what} is {first}, and becomes {', '.join(map(str, numbers[1:]))}")


def _line(points: Sequence[int], numbers: Sequence[int]) -> tuple[int, int] | None:
    """Factor and constant of the line through some points, if there is one, in whole numbers."""
    other = next((at for at, point in enumerate(points) if point != points[0]), None)
    if other is None:
        return None
    factor, rest = divmod(numbers[other] - numbers[0], points[other] - points[0])
    added = numbers[0] - factor * points[0]
    fits = all(factor * point + added == number for point, number in zip(points, numbers, strict=True))
    return (factor, added) if fits and not rest else None


def _bounded(points: Sequence[int], numbers: Sequence[int]) -> tuple[int, int, int | None, int | None] | None:
    """A line with one bound: three points or more lie on the line, and two or more on the bound, at its end."""
    for bound in (min(numbers), max(numbers)):
        on_it = {point for point, number in zip(points, numbers, strict=True) if number == bound}
        rest = [pair for pair in zip(points, numbers, strict=True) if pair[1] != bound]
        below, above = (point for point, _ in (min(rest), max(rest))) if rest else (0, 0)
        at_the_end = all(point > above for point in on_it) or all(point < below for point in on_it)
        if len(on_it) < 2 or len({point for point, _ in rest}) < 3 or not at_the_end:
            continue
        found = _line(*zip(*rest, strict=True))
        if found is None:
            continue
        factor, added = found
        ends = (bound, None) if bound == min(numbers) else (None, bound)
        beyond = [factor * point + added for point in on_it]
        if all(each <= bound if ends[1] is None else each >= bound for each in beyond):
            return (factor, added, *ends)
    return None


def _key(value: Any) -> Any:
    return value if isinstance(value, Literal) else value_key(value)


def _text(value: Any) -> str:
    return "a constant array" if isinstance(value, (Literal, np.ndarray)) else str(value)


def refused(node: Node | None, what: str) -> TranslationError:
    """The error for a graph that depends on a dynamic size in a way that has no expression."""
    return TranslationError(
        "MT803",
        f"{node.primitive.name if node else 'the graph'} depends on a dynamic size: {what}",
        where=str(node.source) if node is not None and node.source else None,
        why="a dynamic dimension is a symbol, and every number that moves with it has to be a multiple of it, plus a "
        "constant",
        fix="leave this dimension out of dynamic_axes, and export a model for each size",
    )


# The parameters that may follow a size. The rows of the tables read these by way of `Sizes`.
MOVING = frozenset({"shape", "start", "stop", "size", "value", "lengths", "k", "low", "high"})


def _are_alike(mine: Node, theirs: Node, known: Mapping[Node, Node]) -> bool:
    """Whether two nodes are the same operation on the same operands, but for sizes."""
    if mine.primitive is not theirs.primitive or mine.dtype is not theirs.dtype or mine.spec.ndim != theirs.spec.ndim:
        return False
    if len(mine.inputs) != len(theirs.inputs):
        return False
    if any(known[one] is not other for one, other in zip(mine.inputs, theirs.inputs, strict=True)):
        return False
    return all(_key(mine.params[name]) == _key(theirs.params[name]) for name in mine.params if name not in MOVING)


def traced_sizes(
    graphs: Sequence[Graph], symbols: Sequence[str], places: Mapping[str, tuple[str, int]], values: Sequence[Values]
) -> Sizes:
    """Line up graphs that were traced with different sizes.

    Args:
        graphs: that of the example first.
        symbols, places, values: as for `Sizes`.

    Raises:
        TranslationError: if they do not have the same operations (``MT803``).
    """
    first, *others = graphs
    rows = [[*first.inputs, *first.nodes], *(lined_up(first, other) for other in others)]
    alike_ = {mine: tuple(theirs) for mine, *theirs in zip(*rows, strict=True)}
    return Sizes(tuple(symbols), places, values, alike_)


def lined_up(first: Graph, other: Graph) -> list[Node]:
    """The inputs and nodes of a graph, in the order of those of another one, which has other sizes.

    A slice is not there with a size of which it is all, and becomes one of all.

    Raises:
        TranslationError: if they do not have the same operations (``MT803``).
    """
    mine, nodes = [*first.inputs, *first.nodes], [*other.inputs, *other.nodes]
    known: dict[Node, Node] = {}
    found: list[Node] = []
    place = 0
    for one in mine:
        theirs = nodes[place] if place < len(nodes) else None
        if theirs is not None and _are_alike(one, theirs, known):
            known[one] = theirs
            found.append(theirs)
            place += 1
        elif one.primitive is slice_ and one.inputs[0].dtype is known[one.inputs[0]].dtype:
            x = known[one] = known[one.inputs[0]]
            start, step = (0,) * x.spec.ndim, (1,) * x.spec.ndim
            found.append(apply(slice_, x, source=one.source, start=start, stop=x.shape, step=step))
        else:
            name = theirs.primitive.name if theirs is not None else "nothing"
            raise refused(one, f"with another size, {name} stands in its place, or operands differ")
    if place != len(nodes) or [known[node] for node in first.outputs] != list(other.outputs):
        raise refused(None, f"it has {len(mine)} operations, and {len(nodes)} with another size")
    return found
