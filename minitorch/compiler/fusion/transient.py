"""Transient values: contractions in the middle of a kernel that are never stored, such as the scores of attention.

The matrix of scores between attention's two matrix products is larger than its operands, and only sums over its rows
are used. FlashAttention (Dao et al., 2022) keeps it out of memory. Here that is a rule about values. A contraction is
*transient* if

- storing it costs more than recomputing it (`cost_model.is_dear_to_store`);
- its users are pointwise until they end in reductions and further contractions, and the result of a reduction flows
  back to them (a maximum that is subtracted, a sum that is divided by);
- one loop over its rows, or one over its columns, can compute each of these ends (`_obstacle`).

All values of its size on the way, its *cone*, are transient, too, and are recomputed tile by tile where they are used.
This is decided on the graph alone: every kernel of transient values has a schedule
(`scheduling.schedules.attention`).

Two things change with respect to eager mode. A factor of a row, such as the division by the sum of the weights, is
applied to the sum and not to every term, so numbers near the largest of a type may overflow. In 16 bits the weights
stay in float32 until the product is complete.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass

from ... import primitives as P
from ...graph import Graph
from ...ir import POINTWISE, Node
from ..loop_ir.wellformed import STACK
from .cost_model import is_dear_to_store, is_expensive
from .roots import Transient, is_stored_already, output_base

# Columns of a contraction's result, of which a block of rows is kept near the core while the tiles go by. Raising it
# makes more contractions transient; beyond the size of the second cache each of them is slower.
WIDEST = 1024
NESTED = "stored: its operand is recomputed tile by tile itself"
COMPUTED = "stored: an operand is computed from no array"
TWISTED = "stored: its rows and columns change places on the way"
SCALED = "stored: a contraction over it multiplies its rows by numbers, and does nothing else with it"
OTHER_AXES = "stored: a reduction over it takes up more than one row or one column"
MAXIMUM = "stored: a maximum over it comes after a sum, or is not only subtracted where exp follows"
OTHER_SUMS = "stored: a reduction over it is no sum and no maximum of floats"
BATCHED = "stored: a contraction reads each of its rows as a matrix of its own"
WIDTH = f"stored: a contraction over it has 1 column, or more than {WIDEST}"
LONG = "stored: a sum over it has to be complete before another begins, and a block of its rows is too large to wait"
APART = "stored: a sum over its rows or columns does not lead to a contraction in the same kernel"

# Numbers that wait for each column of a block of rows: 16 rows of two contractions, their scores and their weights.
WAITING = 64
LEVELS = 3  # reductions that need each other: the maximum and the sum of a softmax, and the row dots of its gradient
UNIT = -1  # an axis of length 1

Users = Mapping[Node, tuple[Node, ...]]
Axes = tuple[Hashable, ...]


def find_transient(graph: Graph) -> Transient:
    """Return the transient values of a graph."""
    users, outputs = graph.users(), set(map(output_base, graph.outputs))
    place = {node: number for number, node in enumerate(graph.nodes)}
    found: set[Node] = set()
    refused: dict[Node, str] = {}
    for node in graph.nodes:
        if node.primitive is P.dot and is_dear_to_store(node):
            cone = _cone(node, users, outputs)
            if cone is None:
                continue
            reason = NESTED if found.intersection(node.inputs) else _obstacle(cone, users, outputs, place)
            if reason:
                refused |= dict.fromkeys(cone.axes, reason)
            else:
                found |= cone.axes.keys()
    return Transient(frozenset(found), refused)


@dataclass(frozen=True)
class _Cone:
    """The values computed element by element from a contraction, and their readers.

    Attributes:
        contraction: where it begins.
        axes: for each value, the contraction's axes that its own are; None if a reshape takes rows or columns apart.
        reductions, outer: its ends; those that are contractions are called outer ones.
    """

    contraction: Node
    axes: Mapping[Node, Axes | None]
    reductions: tuple[Node, ...]
    outer: tuple[Node, ...]


def _cone(contraction: Node, users: Users, outputs: set[Node]) -> _Cone | None:
    """Return a contraction's cone, if only reductions and contractions read it, and a reduction flows back to it."""
    axes: dict[Node, Axes | None] = {
        contraction: tuple(axis if length != 1 else UNIT for axis, length in enumerate(contraction.shape))
    }
    ends: dict[Node, None] = {}
    pending = [contraction]
    for value in pending:
        if value in outputs:
            return None
        for user in users[value]:
            kind = user.primitive.kind
            if kind in POINTWISE or (user.primitive.name in ("permute", "reshape", "expand")):
                if user.spec.size != contraction.spec.size:
                    return None
                moved = _moved(axes[value], value, user, contraction)
                if user not in axes:
                    pending.append(user)
                    axes[user] = moved
                elif axes[user] != moved:
                    axes[user] = None
            elif kind == "reduction" or user.primitive is P.dot:
                ends[user] = None
            else:
                return None
    outer = tuple(end for end in ends if end.primitive.kind == "contraction")
    if not outer or any(set(end.inputs) <= axes.keys() for end in outer):
        return None
    reductions = tuple(end for end in ends if end.primitive.kind == "reduction")
    return _Cone(contraction, axes, reductions, outer) if _flows_back(reductions, axes, users) else None


def _moved(axes: Axes | None, value: Node, user: Node, contraction: Node) -> Axes | None:
    """Return the axes of a user of a value in the cone of a contraction."""
    if axes is None or user.primitive.kind in POINTWISE:
        return axes
    if user.primitive.name == "permute":
        return tuple(axes[dim] for dim in user.params["dims"])
    long = [axis for axis in axes if axis != UNIT]
    if [length for length in value.shape if length != 1] == [length for length in user.shape if length != 1]:
        return tuple(long.pop(0) if length != 1 else UNIT for length in user.shape)
    last = contraction.spec.ndim - 1  # the batch is joined or taken apart
    if long[-2:] not in ([last - 1, last], [last, last - 1]) or user.shape[-2:] != value.shape[-2:]:
        return None
    return (*((user.shape[:-2], axis) for axis in range(user.spec.ndim - 2)), *long[-2:])


def _reached(start: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Return the nodes that follow from some, directly or by way of others."""
    found, pending = set[Node](), list(start)
    while pending:
        new = {*following(pending.pop())} - found
        found |= new
        pending += new
    return found


def _flows_back(reductions: Iterable[Node], cone: Container[Node], users: Users) -> bool:
    """Return whether a value of the cone reads the result of a reduction."""

    def following(node: Node) -> Iterable[Node]:
        return () if node in cone else (user for user in users[node] if user.primitive.kind != "contraction")

    return any(node in cone for node in _reached(reductions, following))


def _obstacle(cone: _Cone, users: Users, outputs: set[Node], place: Mapping[Node, int]) -> str:
    """Return why no schedule could compute the wanted values of a cone in tiles; empty if one can.

    A reduction or contraction at its end loops over the rows, and within them over the columns, or the other way round.
    Each such pair of loops is a kernel of tiles, and the last of its steps is a contraction.
    """
    if any(_is_made_of_numbers(operand) for operand in cone.contraction.inputs):
        return COMPUTED
    if None in cone.axes.values():
        return TWISTED
    last = cone.contraction.spec.ndim - 1
    rows: dict[Node, Axes] = {}  # of each end: the axes that remain, the last of them the rows or the columns
    for end in cone.reductions:
        axes = cone.axes[end.inputs[0]] or ()
        if end.primitive not in (P.reduce_sum, P.reduce_max) or not end.dtype.is_floating_point:
            return OTHER_SUMS
        taken = {axes[dim] for dim in end.params["dims"]} - {UNIT}
        rows[end] = tuple(axis for dim, axis in enumerate(axes) if dim not in end.params["dims"])
        if {*taken, *rows[end][-1:]} != {last - 1, last} or len(taken) != 1:
            return OTHER_AXES
    for end in cone.outer:
        first, second = end.inputs
        is_first = first in cone.axes
        axes = cone.axes[first if is_first else second] or ()
        if {*axes[-2:]} != {last - 1, last}:
            return BATCHED
        if not 2 <= end.shape[-1 if is_first else -2] <= WIDEST:
            return WIDTH
        if _is_made_of_numbers(second if is_first else first):
            return COMPUTED
        if _is_scaled(first if is_first else second, cone):
            return SCALED
        rows[end] = (*axes[:-2], axes[-2 if is_first else -1])
    flows = _Flows(cone, rows, users, outputs, place)
    if not all(map(flows.shares, cone.reductions)):
        return APART
    if not all(map(flows.is_subtracted, cone.reductions)):
        return MAXIMUM
    waiting = max(cone.contraction.shape[-2:]) * WAITING * max(4, cone.contraction.dtype.itemsize)
    return LONG if waiting > STACK and not all(map(flows.is_factor, cone.reductions)) else ""


def _is_made_of_numbers(value: Node) -> bool:
    """Return whether a matrix is computed from no array, but from numbers that all of its elements share."""
    pending, seen = [value], {value}
    for node in pending:
        if math.prod(node.shape[-2:]) == 1:
            continue
        if is_stored_already(node) or node.primitive.kind in ("reduction", "contraction"):
            return False
        new = [each for each in node.inputs if each not in seen]
        seen.update(new)
        pending += new
    return True


def _is_scaled(value: Node, cone: _Cone) -> bool:
    """Return whether a value of a cone is the contraction but for factors that the elements of a row share."""
    while value is not cone.contraction:
        own = [each for each in value.inputs if each in cone.axes]
        others = [each for each in value.inputs if each not in cone.axes]
        is_factor = (
            value.primitive in (P.mul, P.div, P.neg) and value.inputs[0] in cone.axes
        ) or value.primitive is P.mul
        if value.primitive.kind in POINTWISE and not (
            is_factor and len(own) == 1 and all(each.primitive is P.expand for each in others)
        ):
            return False
        value = own[0]
    return True


@dataclass(frozen=True)
class _Flows:
    """Paths from a cone's reductions to its contractions.

    Attributes:
        cone: the cone.
        rows: of each of its ends, the axes that remain.
        users, outputs, place: of the graph's nodes: their users, whether they are outputs, and their number.
    """

    cone: _Cone
    rows: Mapping[Node, Axes]
    users: Users
    outputs: set[Node]
    place: Mapping[Node, int]

    def shares(self, end: Node) -> bool:
        """Return whether a reduction is in the kernel of an outer contraction over the same rows.

        Between the two are values of the cone, other reductions, and cheap operations on numbers of a row. A number
        that is an output or expensive is stored, and ends a kernel.
        """
        alike = {other for other in self.rows if self.rows[other] == self.rows[end]}
        for outer in filter(alike.__contains__, self.cone.outer):
            between = self._between(end, outer) if self.place[end] < self.place[outer] else ()
            levels = alike.intersection(between)
            is_near = (
                bool(between)
                and len(levels) < LEVELS
                and all(each in alike or self._is_kept_near(each) for each in between)
            )
            if is_near and all(
                self._is_ordered(end, other, outer) for other in alike.intersection(self.cone.reductions)
            ):
                return True
        return False

    def _is_ordered(self, end: Node, other: Node, outer: Node) -> bool:
        """Return whether one of two reductions needs the other, or a contraction does not need the other one."""
        if other is end or self.place[other] > self.place[outer] or not self._between(other, outer):
            return True
        first, second = sorted((end, other), key=self.place.__getitem__)
        return bool(self._between(first, second))

    def is_subtracted(self, end: Node) -> bool:
        """Return whether a reduction is no maximum, or the first, and each term of it alone is ``exp(x - maximum)``."""
        if end.primitive is not P.reduce_max:
            return True
        earlier = (each for each in self.cone.reductions if self.place[each] < self.place[end])
        if any(self._between(each, end) for each in earlier):
            return False
        own, others = self._numbers([end]), self._numbers(each for each in self.cone.reductions if each is not end)
        for value in (own - others) | {end}:
            for user in self.users[value]:
                if user in self.cone.axes:
                    is_term = user.primitive is P.sub and user.inputs[1] is value and user.inputs[0] is not value
                    if not is_term or any(each.primitive is not P.exp for each in self.users[user]):
                        return False
        return True

    def is_factor(self, end: Node) -> bool:
        """Return whether a reduction is a maximum, or only factors of terms are computed of it per column."""
        if end.primitive is not P.reduce_sum:
            return True
        size = self.cone.contraction.spec.size
        near = _reached([end], lambda node: filter(self._is_kept_near, self.users[node]))
        whole = (user for user in near if user.primitive.kind in POINTWISE and user.spec.size == size)
        return all(user.primitive in (P.mul, P.div, P.neg, P.cast) for user in whole)

    def _numbers(self, ends: Iterable[Node]) -> set[Node]:
        """Return the numbers of a row that are computed cheaply from some reductions."""

        def following(node: Node) -> Iterable[Node]:
            return (user for user in self.users[node] if user not in self.cone.axes and self._is_kept_near(user))

        return _reached(ends, following)

    def _is_kept_near(self, node: Node) -> bool:
        """Return whether a value is not a root, but of the cone, or a cheap operation on numbers of a row."""
        is_number = node.primitive.kind in POINTWISE or node.primitive.name in ("permute", "reshape", "expand")
        return node in self.cone.axes or (is_number and node not in self.outputs and not is_expensive(node))

    def _between(self, first: Node, second: Node) -> set[Node]:
        """Return the nodes that are computed from one node, and that another is computed from."""
        last = self.place[second]
        below = _reached([first], lambda node: (user for user in self.users[node] if self.place[user] < last))
        return _reached([second], lambda node: below.intersection(node.inputs))
