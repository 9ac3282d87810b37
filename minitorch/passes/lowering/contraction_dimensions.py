"""Contraction dimensions: the reshapes and permutations around a `dot` become dimensions of a `contract`.

A convolution is one `dot` between reshapes: a filter's window (depth × height × width) is one of its dimensions, and so
are the places of the filter (batch × height × width). Loops run better over separate dimensions: an element of the
image then has an index without divisions, and the result is stored in the order of its use. So the `dot` becomes a
`contract`, which has all of these dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from ... import primitives as P
from ...graph.build import apply, with_inputs
from ...graph.graph import Graph
from ...ir import Node, Shape
from ..dead_code import remove_dead_code
from .contract import Labels, contract, labels_of, space_of


@dataclass
class _Space:
    """A space whose dimensions are being split: lengths by label, and the dimensions made of labels."""

    lengths: dict[int, int]
    left: list[tuple[int, ...]]
    right: list[tuple[int, ...]]
    kept: list[int]

    def split(self, label: int, outer: int) -> tuple[int, int]:
        """Put two dimensions in place of one."""
        fresh = count(max(self.lengths) + 1)
        pair = next(fresh), next(fresh)
        self.lengths[pair[0]], self.lengths[pair[1]] = outer, self.lengths.pop(label) // outer
        for dims in (self.left, self.right):
            dims[:] = [_replaced(dim, label, pair) for dim in dims]
        self.kept[:] = _replaced(self.kept, label, pair)
        return pair

    def copy(self) -> _Space:
        """Return a copy of the space, which is split independently."""
        return _Space(dict(self.lengths), list(self.left), list(self.right), list(self.kept))


def _replaced(labels: Iterable[int], old: int, new: tuple[int, int]) -> tuple[int, ...]:
    return tuple(each for label in labels for each in (new if label == old else (label,)))


def contraction_dimensions(graph: Graph) -> Graph:
    """Replace each `dot` whose dimensions are joined by reshapes by a `contract`."""
    users = graph.users()
    outputs = set(graph.outputs)
    moved: dict[Node, Node] = {}
    nodes: list[Node] = []

    def add(node: Node) -> Node:
        nodes.append(node)
        return node

    def keep(node: Node, operands: tuple[Node, ...]) -> None:
        if add(with_inputs(node, operands)) is not node:
            moved[node] = nodes[-1]

    for node in graph.nodes:
        if node in moved:
            continue
        operands = tuple(moved.get(operand, operand) for operand in node.inputs)
        if node.primitive is not P.dot or 0 in space_of(node):
            keep(node, operands)
            continue
        left, right = labels_of(node)
        lengths = dict(enumerate(space_of(node)))
        space = _Space(lengths, list(left), list(right), list(range(node.spec.ndim)))
        a, space = _through_operand(operands[0], space, "left")
        b, space = _through_operand(operands[1], space, "right")
        last, space = _through_users(node, space, users, outputs)
        if len(space.lengths) == len(lengths):
            keep(node, operands)
            continue
        made = add(apply(contract, a, b, source=node.source, **_params(space), dtype=node.dtype))
        moved[last] = made if made.shape == last.shape else add(apply(P.reshape, made, shape=last.shape))
        at = node
        while at is not last:
            moved[at] = moved[last]  # read by no other node
            (at,) = users[at]
    if not moved:
        return graph
    results = [moved.get(node, node) for node in graph.outputs]
    return remove_dead_code(Graph(graph.inputs, results, nodes, graph.name, verify=False))


def _params(space: _Space) -> dict[str, Any]:
    """Return the parameters of a `contract`: labels of length 1 dropped, the others numbered, kept ones first."""
    kept = [label for label in space.kept if space.lengths[label] > 1]
    summed = [label for dim in space.left for label in dim if label not in space.kept and space.lengths[label] > 1]
    number = {label: place for place, label in enumerate((*kept, *summed))}

    def numbered(dims: Iterable[tuple[int, ...]]) -> Labels:
        return tuple(tuple(number[label] for label in dim if label in number) for dim in dims)

    lengths = tuple(space.lengths[label] for label in number)
    return {"lengths": lengths, "kept": len(kept), "left": numbered(space.left), "right": numbered(space.right)}


def _through_operand(node: Node, space: _Space, side: str) -> tuple[Node, _Space]:
    """Return the value that an operand permutes or reshapes, with its dimensions in terms of the space."""
    while node.primitive in (P.permute, P.reshape):
        (x,) = node.inputs
        after = space.copy()
        dims: list[tuple[int, ...]] = getattr(after, side)
        if node.primitive is P.permute:
            by_dim = dict(zip(node.params["dims"], dims, strict=True))
            found: list[tuple[int, ...]] | None = [by_dim[dim] for dim in range(len(dims))]
        else:
            found = _matched(x.shape, [label for dim in dims for label in dim], after)
        if found is None:
            break
        dims[:] = found
        node, space = x, after
    return node, space


def _through_users(
    node: Node, space: _Space, users: Mapping[Node, Sequence[Node]], outputs: set[Node]
) -> tuple[Node, _Space]:
    """Return the last of the permutations and reshapes after a product that split its dimensions."""
    while node not in outputs and len(users[node]) == 1:
        (user,) = users[node]
        after = space.copy()
        if user.primitive is P.permute:
            by_dim = _matched(node.shape, after.kept, after)
            if by_dim is None:
                break
            after.kept = [label for dim in user.params["dims"] for label in by_dim[dim]]
        elif user.primitive is not P.reshape or not _splits(user.shape, after):
            break
        node, space = user, after
    return node, space


def _splits(shape: Shape, space: _Space) -> bool:
    """Return whether a shape is the result's with dimensions split, and none joined."""
    found = _matched(shape, space.kept, space)
    return found is not None and all(len([each for each in dim if space.lengths[each] > 1]) <= 1 for dim in found)


def _matched(shape: Shape, labels: Sequence[int], space: _Space) -> list[tuple[int, ...]] | None:
    """Return the labels of each dimension of a shape, split where needed; None if they do not fit."""
    rest = [label for label in labels if space.lengths[label] > 1]
    found: list[tuple[int, ...]] = []
    for length in shape:
        own: list[int] = []
        while length > 1:
            if not rest:
                return None
            label = rest.pop(0)
            common = math.gcd(length, space.lengths[label])
            if common == space.lengths[label]:
                own.append(label)
            elif common == length:
                outer, inner = space.split(label, length)
                own.append(outer)
                rest.insert(0, inner)
                found = [_replaced(dim, label, (outer, inner)) for dim in found]
            else:
                return None
            length //= common
        found.append(tuple(own))
    return found if not rest else None
