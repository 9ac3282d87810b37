"""Questions that the rules of lifting ask of nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import minitorch_operators as O
from minitorch import primitives as P
from minitorch.dtypes import stored
from minitorch.graph.values import is_splat
from minitorch.ir import Node
from minitorch.passes.patterns import Operation, Param, Pattern, SplatOf, matches
from minitorch.sizes import is_symbolic, same

Found = Node | None
Bindings = dict[str, Any]


def is_number(node: Node, value: float) -> bool:
    """Whether a node is this number, as its type stores it, in every element."""
    if is_symbolic(value):
        found = before_expand(node)
        return found.primitive is O.size and same(found.params["value"], value)
    return is_splat(node) and node.params["value"] == stored(value, node.dtype)


def number_of(node: Node) -> float | None:
    """The number that a node has in every element, if it is such a constant."""
    node = before_expand(node)
    return node.params["value"] if is_splat(node) else None


def before_expand(node: Node) -> Node:
    """A value before it was repeated."""
    return node.inputs[0] if node.primitive is P.expand else node


def last(node: Node, count: int) -> Found:
    """What is repeated along all dimensions but the last ones; the node itself does not count as such.

    Of a batch of one, nothing is repeated: it is reshaped.
    """
    if node.primitive not in (P.expand, P.reshape):
        return None
    (small,) = node.inputs
    return small if small.shape == node.shape[len(node.shape) - count :] and small.shape != node.shape else None


def operands(node: Node, primitive: P.Primitive) -> tuple[Node, ...]:
    """The operands of a node of this primitive; none, if it is of another one."""
    return node.inputs if node.primitive is primitive else ()


def either(node: Node, primitive: P.Primitive) -> list[tuple[Node, Node]]:
    """Both orders of the operands of a commutative operation."""
    return [(node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])] if node.primitive is primitive else []


def plus(node: Node) -> tuple[Node, float] | None:
    """The operand of a sum with a number, and the number."""
    for one, other in either(node, P.add):
        number = number_of(other)
        if number is not None:
            return one, float(number)
    return None


def kept(node: Node, dims: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a node with lengths of 1 in place of dimensions."""
    return tuple([1 if axis in dims else length for axis, length in enumerate(node.shape)])


def mean(node: Node, x: Node) -> tuple[int, ...]:
    """The dimensions of x that a node is the mean over, which are kept with length 1; none, if it is not."""
    if node.primitive is not P.reshape:
        return ()
    total, dims = scaled_sum(node.inputs[0])
    fits = total is x and node.shape == kept(x, dims)
    return dims if fits else ()


def scaled_sum(node: Node) -> tuple[Found, tuple[int, ...]]:
    """What a node is the mean of, and over which dimensions."""
    for total, number in [*either(node, P.mul), *([node.inputs] if node.primitive is P.div else [])]:
        if total.primitive is not P.reduce_sum:
            continue
        (x,), dims = total.inputs, total.params["dims"]
        count = math.prod([x.shape[dim] for dim in dims])
        if count and is_number(number, 1 / count if node.primitive is P.mul else count):
            return x, dims
    return None, ()


def is_contiguous_tail(dims: tuple[int, ...], rank: int) -> bool:
    """Whether dimensions are the last ones."""
    return bool(dims) and dims == tuple(range(rank - len(dims), rank))


def channel_vector(node: Node, like: Node, dim: int = 1) -> Found:
    """The vector that goes with a dimension of another value, and is repeated over all others."""
    small = before_expand(node)
    length = like.shape[dim] if dim < len(like.shape) else 0
    if small is node and node.shape == like.shape:
        return None
    behind = len(like.shape) - dim - 1
    if small.shape == (length,) and not behind:
        return small
    padded = (1,) * (len(like.shape) - len(small.shape)) + small.shape
    if padded != (*(1,) * dim, length, *(1,) * behind):
        return None
    if small.primitive is P.reshape and small.inputs[0].shape == (length,):
        return small.inputs[0]
    return None


def matched(pattern: Pattern, node: Node, bindings: Bindings) -> Iterator[Bindings]:
    """Yield the bindings with which a pattern fits a node; the operands of a sum or a product may be exchanged."""
    if not isinstance(pattern, Operation):
        found = dict(bindings)
        if matches(pattern, before_expand(node) if isinstance(pattern, SplatOf) else node, found):
            yield found
        return
    if pattern.primitive is not node.primitive:
        return
    bindings = dict(bindings)
    for name, wanted in pattern.params.items():
        value = bindings.setdefault(wanted.name, node.params[name]) if isinstance(wanted, Param) else wanted
        if node.params[name] != value:
            return
    for operands in (pattern.operands, pattern.operands[::-1])[: 1 + pattern.primitive.commutes]:
        states = [bindings]
        for each, operand in zip(operands, node.inputs, strict=True):
            states = [new for old in states for new in matched(each, operand, old)]
        yield from states
