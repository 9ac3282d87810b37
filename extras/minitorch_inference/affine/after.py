"""A scale and a shift after a contraction: ``dot(x, w)*s + t  ->  dot(x, w*s) + t``.

The scale is a factor of all terms of a sum, so it can be a factor of the weights, if it varies along no axis of the
data. Between the product and the scale there may be movements: those of a convolution, which put the filters' axis in
its place. The scale is moved back through them, and the shift stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from minitorch import primitives as P
from minitorch.graph.build import apply, with_inputs
from minitorch.ir import Node

from .channels import BACKWARD, FORWARD, Array
from .decisions import (
    CAST,
    DATA,
    DECODED,
    FOLDED,
    INTEGERS,
    RESULT,
    ROUNDING,
    ROWS,
    SECOND_READER,
    WINDOWS,
    Decision,
    Match,
    fault_of,
    where,
)
from .maps import ARITHMETIC, AffineMap, View, constant_like, identity, stored

LAW = "dot(x, w)*s + t -> dot(x, w*s) + t"


def constant_side(view: View, node: Node) -> int | None:
    """Which operand of a product is constant: 0 or 1; None if the node is no product, or none or both are."""
    if node.primitive is not P.dot or any(0 in each.shape for each in (node, *node.inputs)):
        return None
    known = [view.is_constant(operand) for operand in node.inputs]
    return known.index(True) if sum(known) == 1 else None


@dataclass(frozen=True)
class _Path:
    """What follows a product: movements and steps, each the only reader of the one before.

    Attributes:
        nodes: up to the last step.
        found: what the steps come to, for the value of the last node.
        at: the last node of all, from which nothing can be followed further.
        beyond: what all steps and movements up to there come to.
    """

    nodes: tuple[Node, ...]
    found: AffineMap
    at: Node
    movements: tuple[Node, ...]
    beyond: AffineMap


def _follow(view: View, dot: Node) -> _Path:
    at, path = dot, []
    beyond = found = identity(dot)
    count = 0
    while (reader := view.reader(at)) is not None:
        step = view.step(reader)
        following = beyond.then(step) if step else beyond.moved(reader)
        if following is None:
            break
        at, beyond = reader, following
        path.append(at)
        if step:
            count, found = len(path), beyond
    movements = tuple(node for node in path if node.primitive in FORWARD)
    return _Path(tuple(path[:count]), found, at, movements, beyond)


def _gains(found: AffineMap) -> bool:
    return found.scales or found.steps > 1


def pulled_back(scale: Array, movements: tuple[Node, ...]) -> Array | None:
    """A scale of the last movement's result as one of the first one's operand; None if it is none."""
    moved: Array | None = scale
    for node in reversed(movements):
        moved = BACKWARD[node.primitive](moved, node) if moved is not None else None
    return moved


def scaled_after(view: View) -> Iterator[Match | Decision]:
    """Where a contraction with constant weights is scaled and shifted, and why that is not folded."""
    for dot in view.graph.nodes:
        side = constant_side(view, dot)
        if side is None:
            continue
        path = _follow(view, dot)
        if _gains(path.found):
            yield _match(view, dot, side, path)
        reason = _stopped(view, dot, side, path)
        if reason:
            yield Decision(LAW, where(dot), reason)


def _match(view: View, dot: Node, side: int, path: _Path) -> Match | Decision:
    weights, end, found = dot.inputs[side], path.nodes[-1], path.found
    scaled: Array | None = None

    def refused(reason: str) -> Decision:
        return Decision(LAW, where(dot), reason)

    if not (dot.dtype.is_floating_point and weights.dtype.is_floating_point):
        return refused(INTEGERS)
    if found.scales:
        scale = pulled_back(found.scale, tuple(node for node in path.nodes if node.primitive in FORWARD))
        if scale is None:
            return refused(WINDOWS)
        if scale.shape[-1 - side] > 1:
            return refused(ROWS)
        if view.is_decoded(weights):
            return refused(DECODED)
        with np.errstate(all="ignore"):
            scaled = view.numbers(weights).astype(np.float64) * scale
        fault = fault_of(scale, weights.dtype, is_factor=True) or fault_of(scaled, weights.dtype)
        if fault:
            return refused(fault)
    if fault := fault_of(found.shift, end.dtype):
        return refused(fault)

    def build(done: Callable[[Node], Node]) -> Node:
        operands = [done(operand) for operand in dot.inputs]
        if scaled is not None:
            operands[side] = constant_like(stored(scaled, weights.dtype), weights.spec, dot.source)
        now = apply(P.dot, *operands, dtype=dot.dtype, source=dot.source)
        for node in path.nodes:
            if node.primitive in FORWARD:
                now = with_inputs(node, (now,))
        if not found.shifts:
            return now
        shift = constant_like(stored(found.shift, end.dtype), end.spec, end.source)
        return apply(P.add, now, shift, source=end.source)

    sizes = [node.spec.size for node in path.nodes if node.primitive not in FORWARD]
    return Match(end, build, Decision(LAW, where(dot), FOLDED, sum(sizes) - found.shifts * end.spec.size))


def _stopped(view: View, dot: Node, side: int, path: _Path) -> str:
    """Why a scale or shift that follows a path is not part of it; empty if none follows."""
    at = path.at
    for reader in view.readers(at):
        if reader.primitive in ARITHMETIC and _is_per_channel_of_data(view, reader, at, side, path.movements):
            return DATA
    for reader in view.readers(at):
        step = view.step(reader)
        if step is not None and _gains(path.beyond.then(step)):
            return RESULT if view.is_result(at) else SECOND_READER
    if any(map(view.rounds, view.readers(at))):
        return ROUNDING
    (first, *_) = view.readers(at) or (None,)
    if first is not None and first.primitive is P.cast and view.reader(at) is first:
        following = view.reader(first)
        step = view.step(following) if following is not None else None
        return CAST if step is not None and step.primitive in (P.mul, P.div) else ""
    return ""


def _is_per_channel_of_data(view: View, node: Node, at: Node, side: int, movements: tuple[Node, ...]) -> bool:
    """Whether the other operand is no constant, but would have been folded if it were."""
    if node.inputs.count(at) != 1 or node.shape != at.shape:
        return False
    (other,) = (operand for operand in node.inputs if operand is not at)
    if view.is_constant(other) or (node.primitive is P.div and node.inputs[1] is at):
        return False
    axes = view.variation[other]
    if axes == view.variation[at]:
        return False
    scale = pulled_back(np.ones([n if axis in axes else 1 for axis, n in enumerate(at.shape)]), movements)
    return scale is not None and scale.shape[-1 - side] == 1
