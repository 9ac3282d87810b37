"""Sizes that differ from call to call: which numbers of a graph depend on them, found by tracing with several.

A graph has numbers for shapes. The function is therefore traced again with other sizes of the dynamic dimensions; where
the graphs have other numbers, a number is an expression of these sizes:

    factor * (the product of some sizes) + added

A number that follows the sizes in another way (a square, a quotient that is rounded) is refused, with the line. Of each
size three are tried, so that two points do not pass for a line.
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
from ....graph.values import value_key
from ....ir import Node
from ....primitives import Literal


@dataclass(frozen=True)
class Expression:
    """A number that depends on sizes: ``factor * product of symbols + added``."""

    symbols: tuple[str, ...]
    factor: int = 1
    added: int = 0


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
                found = _line(points, numbers)
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
MOVING = frozenset({"shape", "start", "stop", "size", "value", "lengths"})


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
    rows: list[list[Node]] = [[*first.inputs, *first.nodes]]
    for other in others:
        nodes = [*other.inputs, *other.nodes]
        known = dict(zip(rows[0], nodes, strict=False))
        for mine, theirs in known.items():
            if not _are_alike(mine, theirs, known):
                raise refused(
                    mine, f"with another size, {theirs.primitive.name} stands in its place, or operands differ"
                )
        if len(nodes) != len(rows[0]) or [known[node] for node in first.outputs] != list(other.outputs):
            raise refused(None, f"it has {len(rows[0])} operations, and {len(nodes)} with another size")
        rows.append(nodes)
    alike_ = {mine: tuple(theirs) for mine, *theirs in zip(*rows, strict=True)}
    return Sizes(tuple(symbols), places, values, alike_)
