"""Sizes that differ from call to call: which numbers of a graph depend on them, and by which formula.

A graph has numbers for shapes. The function is therefore traced with several sizes of the dynamic dimensions. A number
that is not the same in all of these traces is written as a formula: one that the function itself has computed it by
(see `tracked`), if that gives the number in every trace, or a line through products of such formulas. A number that
follows the sizes in another way is refused, with the line.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from minitorch.errors import ShapeError, TranslationError
from minitorch.graph import Graph
from minitorch.graph.build import apply
from minitorch.graph.values import value_key
from minitorch.ir import Node
from minitorch.primitives import Literal, slice_

from .polynomials import Polynomial, as_polynomial, symbol
from .tracked import Quotient

MOST_FORMULAS = 40  # those whose products are tried; the shortest ones first

Number = int | Polynomial
Values = tuple[int, ...]
"""The sizes of one trace, in the order of the symbols."""
Column = tuple[Any, ...]
"""One number of a graph, as it is in each trace."""
Products = list[tuple[Column, Polynomial]]


@dataclass(frozen=True)
class Sizes:
    """The graph that is written, and the same with other sizes.

    Attributes:
        symbols: the names of the sizes.
        places: for each, the argument that has it, and the dimension.
        values: the sizes of each trace, those of the graph that is written first.
        alike: for each node, its counterparts in the other traces.
        formulas: what the function computes from sizes, by the numbers that it has in these traces; None for numbers
            that have no formula.
    """

    symbols: tuple[str, ...] = ()
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    values: Sequence[Values] = ((),)
    alike: Mapping[Node, tuple[Node, ...]] = field(default_factory=dict)
    formulas: Mapping[Column, Polynomial | Quotient | None] = field(default_factory=dict)

    def shape(self, node: Node) -> tuple[Number, ...]:
        """The shape of a value: numbers, or formulas of sizes.

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

    def real(self, node: Node, name: str) -> Polynomial | Quotient:
        """A parameter that is one number, not the same in all traces, and perhaps none of the whole numbers."""
        column = tuple([each.params[name] for each in (node, *self.alike.get(node, ()))])
        known = self.formulas.get(column)
        if known is not None:
            return known
        if column in self.formulas or not all(float(each).is_integer() for each in column):
            raise self._refused(column, node, name)
        return as_polynomial(self._number([int(each) for each in column], node, name))

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
        column = tuple(numbers)
        if len(set(column)) == 1:
            return column[0]
        known = self.formulas[column] if column in self.formulas else through(column, self._products)
        if not isinstance(known, Polynomial):
            raise self._refused(column, node, what)
        return known

    def _refused(self, column: Column, node: Node, what: str) -> TranslationError:
        turns = zip(self.values[1:], column[1:], strict=True)
        return refused(
            node,
            f"{what} is {column[0]} for {named(self.symbols, self.values[0])}, and becomes "
            + ", ".join(
                f"{number} for {named(self.symbols, values)}" for values, number in turns if number != column[0]
            ),
        )

    @cached_property
    def _products(self) -> Products:
        return products(self.symbols, self.values, self.formulas)


def named(symbols: Sequence[str], values: Values) -> str:
    """Sizes as text."""
    return ", ".join(f"{name}={value}" for name, value in zip(symbols, values, strict=True))


def products(
    symbols: Sequence[str], values: Sequence[Values], formulas: Mapping[Column, Polynomial | Quotient | None]
) -> Products:
    """The symbols, other formulas, and the products of two of them, each with its numbers in the traces."""
    plain = [(tuple([row[at] for row in values]), symbol(name)) for at, name in enumerate(symbols)]
    known = [(column, each) for column, each in formulas.items() if isinstance(each, Polynomial)]
    found = dict(plain) | dict(sorted(known, key=lambda pair: len(str(pair[1])))[:MOST_FORMULAS])
    pairs = itertools.combinations_with_replacement(found.items(), 2)
    return [
        *found.items(),
        *((tuple(map(operator.mul, one, other)), mine * theirs) for (one, mine), (other, theirs) in pairs),
    ]


def through(column: Sequence[int], known: Products) -> Polynomial | None:
    """The formula of numbers that lie on a line through those of a known one."""
    for points, formula in known:
        line = _line(points, column)
        if line is not None:
            return formula * line[0] + line[1]
    return None


def _line(points: Sequence[int], numbers: Sequence[int]) -> tuple[int, int] | None:
    """Factor and constant of the line through three points or more, if there is one, in whole numbers."""
    other = next((at for at, point in enumerate(points) if point != points[0]), None)
    if other is None or len(set(points)) < 3:
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
    """The error for a graph that depends on a dynamic size in a way that has no formula."""
    return TranslationError(
        "MT803",
        f"{node.primitive.name if node else 'the graph'} depends on a dynamic size: {what}",
        where=str(node.source) if node is not None and node.source else None,
        why="a dynamic dimension is a symbol: the operations have to be the same for all of its lengths, and each "
        "number that moves with it is a formula of sums, products, bounds and quotients that are rounded down",
        fix="leave this dimension out of dynamic_axes, and export a model for each size",
    )


# Lining up ------------------------------------------------------------------------------------------------

# The parameters that may follow a size. The rows of the tables read these by way of `Sizes`.
MOVING = ("shape", "start", "stop", "size", "k", "low", "high", "value", "lengths")


def _are_alike(mine: Node, theirs: Node, known: Mapping[Node, Node]) -> bool:
    """Whether two nodes are the same operation on the same operands, but for sizes."""
    if not _have_same_operands(mine, theirs, known):
        return False
    return all(_key(mine.params[name]) == _key(theirs.params[name]) for name in mine.params if name not in MOVING)


def _have_same_operands(mine: Node, theirs: Node, known: Mapping[Node, Node]) -> bool:
    if mine.primitive is not theirs.primitive or mine.dtype is not theirs.dtype or mine.spec.ndim != theirs.spec.ndim:
        return False
    if len(mine.inputs) != len(theirs.inputs):
        return False
    return all(known[one] is other for one, other in zip(mine.inputs, theirs.inputs, strict=True))


def _with_windows(mine: Node, theirs: Node, known: Mapping[Node, Node]) -> Node | None:
    """A convolution or a pool with the windows of another one, if it reads the same elements.

    Of one window in a dimension, the stride says nothing, and what is behind the last window is read by none.
    """
    if "strides" not in mine.params or not _have_same_operands(mine, theirs, known):
        return None
    for axis, count in enumerate(theirs.shape[2:]):
        (before, _), (first, _) = (each.params["pads"][axis] for each in (mine, theirs))
        strides = {each.params["strides"][axis] for each in (mine, theirs)}
        if before != first or (count > 1 and len(strides) > 1):
            return None
    params = {name: theirs.params[name] if name in MOVING else value for name, value in mine.params.items()}
    try:
        found = apply(mine.primitive, *theirs.inputs, source=mine.source, **params)
    except ShapeError:
        return None
    return found if found.shape == theirs.shape and params["dilations"] == theirs.params["dilations"] else None


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
        elif theirs is not None and (windows := _with_windows(one, theirs, known)) is not None:
            known[one] = theirs
            found.append(windows)
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


def numbers_of(node: Node) -> Iterator[Any]:
    """The lengths of a value, and of its parameters those that may follow a size."""
    yield from node.shape
    for name in MOVING:
        value = node.params.get(name)
        if isinstance(value, tuple):
            yield from value
        elif value is not None:
            yield value
