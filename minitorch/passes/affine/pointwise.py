"""A product of channels before windows: ``dot(M(dot(x, v)), w)  ->  dot(M(x), v@w)``.

So are a 1x1 convolution and a 3x3 behind it, with nothing between.

The first product mixes channels at each place, and the movements `M` in between (padding with 0, windows, strides) know
nothing of channels. So the two commute, and the weights of the second one take up those of the first:

    w'[o, c, tap] = sum_m w[o, m, tap] * v[m, c]

It is applied where the one product costs fewer operations than the two. That is so where the first one widens: a
bottleneck, which narrows, would cost more. A shift in between is moved behind the second product first; where zeros are
padded behind it, it cannot be, and both products stay. Windows of windows are not taken: fewer operations would each
read their operands by longer ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ... import primitives as P
from ...graph.build import apply
from ...ir import Node, Shape, Spec
from ..variation import reshape_groups
from .after import constant_side
from .channels import FORWARD
from .decisions import DECODED, FOLDED, INTEGERS, MORE, RESULT, SECOND_READER, Decision, Match, fault_of, where
from .maps import View, constant_like, stored
from .products import are_undone

LAW = "dot(M(dot(x, v)), w) -> dot(M(x), v@w)"


@dataclass(frozen=True)
class _Channels:
    """Where the channels of a value lie: `axis` has all of them, times `before` and `after` other elements."""

    axis: int
    before: int = 1
    after: int = 1


def pointwise_first(view: View) -> Iterator[Match | Decision]:
    """Where a product with constant weights mixes channels, and the next one takes windows of the result."""
    for dot in view.graph.nodes:
        side = constant_side(view, dot)
        if side is None:
            continue
        between = [dot.inputs[1 - side]]
        while between[-1].primitive in FORWARD:
            between.append(between[-1].inputs[0])
        inner = between.pop()
        if constant_side(view, inner) != side or are_undone(between, inner) or _batches(dot) * _batches(inner) > 1:
            continue
        if _has_windows(inner.inputs[1 - side]):
            continue
        found: _Channels | None = _Channels(inner.spec.ndim - 2 + side)
        for node in reversed(between):
            found = _moved(node, found) if found is not None else None
        if found is not None and found.axis == dot.spec.ndim - 2 + side:
            yield _joined(view, dot, inner, side, between[::-1], found)


def _has_windows(data: Node) -> bool:
    while data.primitive in FORWARD:
        if data.primitive is P.unfold:
            return True
        data = data.inputs[0]
    return False


def _batches(dot: Node) -> int:
    return math.prod(dot.shape[:-2])


def _moved(node: Node, found: _Channels) -> _Channels | None:
    """Where the channels lie behind a movement; None if it mixes or drops some."""
    axis, primitive = found.axis, node.primitive
    if primitive is P.reshape:
        return _reshaped(node.inputs[0].shape, node.shape, found)
    if primitive is P.permute:
        return _Channels(node.params["dims"].index(axis), found.before, found.after)
    if primitive is P.pad:
        is_apart = node.params["value"] == 0 and not any(node.params["padding"][axis])
    elif primitive is P.slice_:
        is_apart = node.shape[axis] == node.inputs[0].shape[axis]
    else:
        is_apart = primitive is P.unfold and node.params["dim"] != axis
    return found if is_apart else None


def _reshaped(old: Shape, new: Shape, found: _Channels) -> _Channels | None:
    """An axis stays one, or is joined with those beside it."""
    if old[found.axis] == 1:
        return None
    one, other = next((run, to) for run, to in reshape_groups(old, new) if found.axis in run)
    if len(other) != 1:
        return None
    before = math.prod(old[axis] for axis in one if axis < found.axis)
    after = math.prod(old[axis] for axis in one if axis > found.axis)
    return _Channels(other[0], before * found.before, found.after * after)


def _joined(view: View, dot: Node, inner: Node, side: int, movements: list[Node], found: _Channels) -> Match | Decision:
    first, second, data = inner.inputs[side], dot.inputs[side], inner.inputs[1 - side]

    def refused(reason: str) -> Decision:
        return Decision(LAW, where(dot), reason)

    readers = zip([inner, *movements], [*movements, dot], strict=True)
    if any(view.reader(each) is not reader for each, reader in readers):
        return refused(RESULT if view.is_result(inner) else SECOND_READER)
    if not dot.dtype.is_floating_point or len({dot.dtype, inner.dtype, first.dtype}) > 1:
        return refused(INTEGERS)
    if view.is_decoded(first) or view.is_decoded(second):
        return refused(DECODED)
    given, mixed = first.shape[-1 - side], first.shape[-2 + side]
    columns, summed = second.shape[-2 + side], second.shape[-1 - side]
    saved = 2 * (inner.spec.size * given + dot.spec.size * (summed - summed // mixed * given))
    if saved <= 0:
        return refused(MORE)
    # Both as they are in `dot(v, x)`, with the weights on the left.
    v, w = (
        np.broadcast_to(view.numbers(each).astype(np.float64), each.shape).reshape(each.shape[-2:])
        for each in (first, second)
    )
    v, w = (v.T, w.T) if side else (v, w)
    with np.errstate(all="ignore"):
        taps = w.reshape(columns, found.before, mixed, found.after)
        joined = np.einsum("obma,mc->obca", taps, v).reshape(columns, -1)
    if fault := fault_of(joined, dot.dtype):
        return refused(fault)

    def build(done: Callable[[Node], Node]) -> Node:
        now, at = done(data), _Channels(inner.spec.ndim - 2 + side)
        for node in movements:
            following = _moved(node, at)
            assert following is not None
            length = following.before * given * following.after
            params = dict(node.params)
            for name in {P.reshape: ("shape",), P.slice_: ("stop",)}.get(node.primitive, ()):
                params[name] = tuple([length if axis == following.axis else n for axis, n in enumerate(params[name])])
            now, at = apply(node.primitive, now, source=node.source, **params), following
        numbers = joined.T if side else joined
        spec = Spec((*second.shape[:-2], *numbers.shape), second.dtype)
        weights = constant_like(stored(numbers.reshape(spec.shape), dot.dtype), spec, dot.source)
        operands = (now, weights) if side else (weights, now)
        return apply(P.dot, *operands, dtype=dot.dtype, source=dot.source)

    return Match(dot, build, Decision(LAW, where(dot), FOLDED, saved))
