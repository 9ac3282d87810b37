"""Rules without a scale that meets a sum: two products in a row, and chains of steps that no product takes up.

``dot(dot(x, w1), w2)  ->  dot(x, w1@w2)`` is the associative law. It is applied where the one product costs no more
operations than the two, which a bottleneck (few columns between) does not. A convolution and one with filters of one
element behind it are two such products, with movements between that undo each other.

Of a chain of three steps or more, such as eval-mode batch normalization after an addition, a multiplication and an
addition are left, and no division.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from minitorch import primitives as P
from minitorch.graph.build import apply
from minitorch.ir import Node, Spec

from .after import constant_side
from .channels import Array
from .decisions import (
    DECODED,
    FOLDED,
    INTEGERS,
    MORE,
    RESULT,
    SECOND_READER,
    Decision,
    Match,
    fault_of,
    where,
)
from .maps import View, constant_like, identity, stored

ASSOCIATIVE = "dot(dot(x, v), w) -> dot(x, v@w)"
CHAIN = "steps -> x*s + t"


def associated(view: View) -> Iterator[Match | Decision]:
    """Where a product with constant weights is multiplied by constant weights again."""
    for dot in view.graph.nodes:
        side = constant_side(view, dot)
        if side is None:
            continue
        between = [dot.inputs[1 - side]]
        while between[-1].primitive in (P.reshape, P.permute):
            between.append(between[-1].inputs[0])
        inner = between.pop()
        if constant_side(view, inner) == side and are_undone(between, inner):
            readers = zip([*between, inner], [dot, *between], strict=True)
            is_read_once = all(view.reader(each) is reader for each, reader in readers)
            yield _associated(view, dot, inner, side, is_read_once)


def are_undone(movements: list[Node], base: Node) -> bool:
    """Whether reshapes and permutations, the last one first, leave all elements of a value where they were.

    So do those between two convolutions, of which the second has filters of one element.
    """
    if not movements:
        return True
    if movements[0].shape != base.shape:
        return False
    places = np.arange(base.spec.size).reshape(base.shape)
    moved = places
    for node in reversed(movements):
        moved = np.asarray(node.primitive.evaluate(moved, **node.params))
    return bool(np.array_equal(moved, places))


def _associated(view: View, dot: Node, inner: Node, side: int, is_read_once: bool) -> Match | Decision:
    first, second = inner.inputs[side], dot.inputs[side]

    def refused(reason: str) -> Decision:
        return Decision(ASSOCIATIVE, where(dot), reason)

    if not is_read_once:
        return refused(RESULT if view.is_result(inner) else SECOND_READER)
    if not dot.dtype.is_floating_point or len({dot.dtype, inner.dtype, first.dtype}) > 1:
        return refused(INTEGERS)
    if view.is_decoded(first) or view.is_decoded(second):
        return refused(DECODED)
    data = inner.inputs[1 - side]
    other = data.shape[-1 - side]  # the axis of the data that is not summed
    summed, between = first.shape[-1 - side], first.shape[-2 + side]
    columns = second.shape[-2 + side]
    batch = dot.spec.size // (other * columns)
    saved = 2 * batch * other * (summed * between + between * columns - summed * columns)
    if saved < 0:
        return refused(MORE)
    left, right = (first, second) if side == 1 else (second, first)
    with np.errstate(all="ignore"):
        joined = _full(view, left) @ _full(view, right)
    if fault := fault_of(joined, dot.dtype):
        return refused(fault)

    def build(done: Callable[[Node], Node]) -> Node:
        shape = (*dot.shape[:-2], *joined.shape[-2:])
        spec = Spec(shape, dot.dtype)
        weights = constant_like(stored(joined, dot.dtype), spec, dot.source)
        operands = (done(data), weights) if side == 1 else (weights, done(data))
        return apply(P.dot, *operands, dtype=dot.dtype, source=dot.source)

    return Match(dot, build, Decision(ASSOCIATIVE, where(dot), FOLDED, saved))


def _full(view: View, node: Node) -> Array:
    """The matrices of a constant; batches that are all the same are one."""
    numbers = view.numbers(node).astype(np.float64)
    return np.broadcast_to(numbers, (*numbers.shape[:-2], *node.shape[-2:]))


def shortened(view: View) -> Iterator[Match | Decision]:
    """Chains of three steps or more, which two steps can replace."""
    for end in view.graph.nodes:
        step = view.step(end)
        follower = view.reader(end)
        if step is None or (follower is not None and view.step(follower) is not None):
            continue
        nodes = [end]
        while (before := view.step(step.data)) is not None and view.reader(step.data) is nodes[-1]:
            nodes.append(step.data)
            step = before
        if len(nodes) > 2 and end.dtype.is_floating_point:
            yield _two_steps(view, end, nodes[::-1], step.data)


def _two_steps(view: View, end: Node, nodes: list[Node], base: Node) -> Match | Decision:
    found = identity(base)
    for node in nodes:
        step = view.step(node)
        assert step is not None
        found = found.then(step)
    if fault := fault_of(found.scale, end.dtype, is_factor=True) or fault_of(found.shift, end.dtype):
        return Decision(CHAIN, where(end), fault)

    def build(done: Callable[[Node], Node]) -> Node:
        now = done(base)
        if found.scales:
            scale = constant_like(stored(found.scale, end.dtype), end.spec, end.source)
            now = apply(P.mul, now, scale, source=end.source)
        if found.shifts:
            shift = constant_like(stored(found.shift, end.dtype), end.spec, end.source)
            now = apply(P.add, now, shift, source=end.source)
        return now

    saved = (len(nodes) - found.scales - found.shifts) * end.spec.size
    return Match(end, build, Decision(CHAIN, where(end), FOLDED, saved))
