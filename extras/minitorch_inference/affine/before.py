"""A scale and a shift before a contraction: ``dot(x*s + t, w)  ->  dot(x, s*w) + t@w``.

Both have to vary along the axis that is summed alone: then the scale is a factor of a row of the weights, and the shift
makes a constant for each column, a bias. Movements between, as those of a convolution, are the same for ``x*s + t``.

Zeros that are padded behind the shift are not shifted. There ``x*s + t`` is ``(x + t/s)*s``: the scale is folded, and
an addition stays before the padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from minitorch import primitives as P
from minitorch.graph.build import apply, with_inputs
from minitorch.ir import Node

from .after import constant_side
from .channels import FORWARD, Array
from .decisions import (
    DECODED,
    FOLDED,
    INTEGERS,
    MORE,
    PADDING,
    RESULT,
    SECOND_READER,
    SUMMED,
    Decision,
    Match,
    fault_of,
    where,
)
from .maps import AffineMap, View, constant_like, identity, stored

LAW = "dot(x*s + t, w) -> dot(x, s*w) + t@w"


@dataclass(frozen=True)
class _Path:
    """What precedes a product.

    Attributes:
        base: the value that the first step reads.
        nodes: steps and movements up to the product, each the only reader of the one before.
        found: what they come to, for the operand of the product.
        pad, left: a padding, and the shift that stays before it.
    """

    base: Node
    nodes: tuple[Node, ...]
    found: AffineMap
    pad: Node | None = None
    left: Array | None = None


def scaled_before(view: View) -> Iterator[Match | Decision]:
    """Where the data of a contraction with constant weights is scaled and shifted, and why that is not folded."""
    for dot in view.graph.nodes:
        side = constant_side(view, dot)
        if side is not None:
            yield from _decided(view, dot, side)


def _decided(view: View, dot: Node, side: int) -> Iterator[Match | Decision]:
    at, path = dot.inputs[1 - side], []
    reader = dot
    while (step := view.step(at)) is not None or at.primitive in FORWARD:
        if view.reader(at) is not reader:
            if step is not None:
                yield Decision(LAW, where(dot), RESULT if view.is_result(at) else SECOND_READER)
            break
        path.append(at)
        reader, at = at, step.data if step else at.inputs[0]
    path.reverse()
    while path and path[0].primitive in FORWARD:
        path.pop(0)
    if not path:
        return
    found = _carried(view, path)
    if isinstance(found, str):
        yield Decision(LAW, where(dot), found)
        return
    yield _match(view, dot, side, found)
    if found.pad is not None:
        yield Decision(LAW, where(dot), PADDING)


def _carried(view: View, nodes: list[Node]) -> _Path | str:
    """What steps and movements come to, or why they come to nothing."""
    first = view.step(nodes[0])
    assert first is not None
    found = identity(first.data)
    pad, left = None, None
    for node in nodes:
        step = view.step(node)
        if step:
            found = found.then(step)
            continue
        if node.primitive is P.pad and found.shifts and node.params["value"] == 0:
            if not found.scales or found.steps < 2 or pad is not None:
                return PADDING
            with np.errstate(all="ignore"):
                pad, left = node, found.shift / found.scale
            if fault_of(left, node.dtype):
                return PADDING
            found = replace(found, shift=np.zeros_like(found.shift))
        moved = found.moved(node)
        if moved is None:
            return PADDING
        found = moved
    return _Path(first.data, tuple(nodes), found, pad, left)


def _match(view: View, dot: Node, side: int, path: _Path) -> Match | Decision:
    weights, found = dot.inputs[side], path.found
    own = -1 - side  # the axis of the data that is not summed

    def refused(reason: str) -> Decision:
        return Decision(LAW, where(dot), reason)

    if not (dot.dtype.is_floating_point and weights.dtype.is_floating_point):
        return refused(INTEGERS)
    if found.scale.shape[own] > 1 or found.shift.shape[own] > 1:
        return refused(SUMMED)
    if found.scales and view.is_decoded(weights):
        return refused(DECODED)
    steps = [node for node in path.nodes if node.primitive not in FORWARD]
    saved = sum(node.spec.size for node in steps)
    saved -= path.pad.inputs[0].spec.size if path.pad else 0
    saved -= dot.spec.size if found.shifts and not _is_shifted(view, dot) else 0
    if saved <= 0:
        return refused(MORE)
    with np.errstate(all="ignore"):
        original = view.numbers(weights).astype(np.float64)
        scaled = original * found.scale.swapaxes(-1, -2)
        bias = _bias(original, found.shift, dot, side)
    scale_fault = fault_of(found.scale, weights.dtype, is_factor=True)
    if fault := scale_fault or fault_of(scaled, weights.dtype) or fault_of(bias, dot.dtype):
        return refused(fault)

    def build(done: Callable[[Node], Node]) -> Node:
        data = done(path.base)
        for node in path.nodes:
            if node is path.pad and path.left is not None:
                left = constant_like(stored(path.left, data.dtype), data.spec, node.source)
                data = apply(P.add, data, left, source=node.source)
            if node.primitive in FORWARD:
                data = with_inputs(node, (data,))
        new = constant_like(stored(scaled, weights.dtype), weights.spec, dot.source) if found.scales else done(weights)
        operands = (new, data) if side == 0 else (data, new)
        product = apply(P.dot, *operands, dtype=dot.dtype, source=dot.source)
        if not found.shifts:
            return product
        shift = constant_like(stored(bias, dot.dtype), dot.spec, dot.source)
        return apply(P.add, product, shift, source=dot.source)

    return Match(dot, build, Decision(LAW, where(dot), FOLDED, saved))


def _bias(weights: Array, shift: Array, dot: Node, side: int) -> Array:
    """The shift times the weights, as numbers of the product's channels."""
    summed = dot.inputs[side].shape[-1 - side]
    if side == 0:
        weights = np.broadcast_to(weights, (*weights.shape[:-1], summed))
        product = weights @ np.broadcast_to(shift, (*shift.shape[:-2], summed, 1))
    else:
        weights = np.broadcast_to(weights, (*weights.shape[:-2], summed, weights.shape[-1]))
        product = np.broadcast_to(shift, (*shift.shape[:-2], 1, summed)) @ weights
    return np.asarray(product)


def _is_shifted(view: View, dot: Node) -> bool:
    """Whether a shift follows a product, which takes up another one for nothing."""
    at = view.reader(dot)
    while at is not None and at.primitive in FORWARD and at.primitive is not P.pad:
        at = view.reader(at)
    return at is not None and view.step(at) is not None
