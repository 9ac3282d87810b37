"""Channels-last layout: images in 8 bits lie in memory with the channels of a place beside each other.

A program says [batch, channel, height, width]. What lies between two layers is nobody's business but theirs, and an
integer convolution sums over channels, in groups of four that an instruction takes at once. In [batch, height, width,
channel] (NHWC, PyTorch's `channels_last`) a group is four neighbours in memory, all of one place, inside of the image
or not. So packing copies whole runs of channels, whatever the stride, and nothing is interleaved.

    y = f(contract(a, b))           permute(f'(contract'(a, b)))            f': f, of operands that are permuted

The contraction makes its result in the other order, the pointwise operations behind it follow, and everybody who reads
`y` reads a permuted view, which is index arithmetic. No number changes. It is done where all that reads `y` is integer
convolutions with constant weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minitorch import primitives as P
from minitorch.dtypes import int32
from minitorch.graph.build import apply, literal, topological_order, with_inputs
from minitorch.graph.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.ir import INPUT, POINTWISE, Node, Spec
from minitorch.passes.lowering.contract import contract

from .dequantized import BYTES

GROUP = 4  # channels that one instruction takes

Users = Mapping[Node, Sequence[Node]]


@dataclass(frozen=True)
class _Image:
    """A value that is stored in another order.

    Attributes:
        node: of 8 bits.
        cone: the pointwise operations that end in it.
        product: the contraction that they begin with.
        channel: the axis of the channels.
    """

    node: Node
    cone: frozenset[Node]
    product: Node
    channel: int


def channels_last(graph: Graph) -> Graph:
    """The graph with what lies between integer convolutions in channels-last layout.

    Example:
        >>> graph = Graph.parse('''
        ... graph(x: u8[8,2,2]):
        ...   %0 = contract(1:i8[8,8], x, lengths=[8,2,2,8], kept=3, left=[[0],[3]], right=[[3],[1],[2]], dtype=i32)
        ...   %1 = cast(%0, dtype=u8)
        ...   %2 = contract(1:i8[8,8], %1, lengths=[8,2,2,8], kept=3, left=[[0],[3]], right=[[3],[1],[2]], dtype=i32)
        ...   return %2
        ... ''')
        >>> channels_last(graph).nodes[1:]
        (<contract: i32[2,2,8]>, <cast: u8[2,2,8]>, <permute: u8[8,2,2]>, <contract: i32[8,2,2]>)
    """
    users, outputs = graph.users(), set(graph.outputs)
    images = {node: image for node in graph.nodes if (image := _image(node, users, outputs)) is not None}
    if not images:
        return graph
    done: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        image = images.get(node)
        operands = tuple([done[operand] for operand in node.inputs])
        done[node] = with_inputs(node, operands) if image is None else _turned(image, done)
    results = [done[node] for node in graph.outputs]
    return graph.with_nodes([node for node in topological_order(results) if node.primitive is not INPUT], results)


def _image(node: Node, users: Users, outputs: set[Node]) -> _Image | None:
    """A value that is stored with its channels last; None if it is none that gains by it."""
    if node.dtype not in BYTES or node.primitive.kind not in POINTWISE or node in outputs:
        return None
    cone, products = {node}, set[Node]()
    pending = [node]
    while pending:
        for operand in pending.pop().inputs:
            if operand.primitive is contract and operand.shape == node.shape:
                products.add(operand)
            elif operand.primitive.kind in POINTWISE and operand not in cone and operand.inputs:
                cone.add(operand)
                pending.append(operand)
    inside = cone | products
    if len(products) != 1 or any(user not in cone for each in inside - {node} for user in users[each]):
        return None
    if not outputs.isdisjoint(inside):
        return None
    for channel in range(node.spec.ndim - 1):
        if node.shape[channel] % GROUP == 0 and _is_summed(node, channel, users):
            (product,) = products
            return None if _is_depthwise(product) else _Image(node, frozenset(cone), product, channel)
    return None


def _is_depthwise(product: Node) -> bool:
    """Whether an operand has no rows of its own: one filter for each channel, of an image with the channels first."""
    left, right = ({label for dim in product.params[side] for label in dim} for side in ("left", "right"))
    kept = {*range(product.params["kept"])}
    return kept & left <= right or kept & right <= left


def _is_summed(node: Node, axis: int, users: Users) -> bool:
    """Whether all that reads a value is contractions with constants that sum over an axis, beside others."""
    pending, found = [(node, axis)], False
    while pending:
        at, place = pending.pop()
        for user in users[at]:
            if user.primitive is contract:
                found = True
                if not _sums(user, at, place):
                    return False
                continue
            after = _through(user, place)
            if after is None:
                return False
            pending.append((user, after))
    return found


def _sums(product: Node, operand: Node, axis: int) -> bool:
    """Whether a product of integers sums over an axis of an operand, whose other operand is constant."""
    if product.dtype is not int32 or product.inputs.count(operand) > 1:
        return False
    side = product.inputs.index(operand)
    labels = product.params["right" if side else "left"][axis]
    other = product.inputs[1 - side]
    while other.primitive.is_view:
        other = other.inputs[0]
    return len(labels) == 1 and labels[0] >= product.params["kept"] and other.primitive is P.constant


def _through(view: Node, axis: int) -> int | None:
    """Where an axis is in a movement of a value; None if it is not there as it was."""
    (x,) = view.inputs if len(view.inputs) == 1 else (None,)
    if x is None:
        return None
    if view.primitive is P.reshape:
        places = [[at for at, length in enumerate(each.shape) if length != 1] for each in (x, view)]
        same = [x.shape[at] for at in places[0]] == [view.shape[at] for at in places[1]]
        return places[1][places[0].index(axis)] if same and axis in places[0] else None
    if view.primitive is P.permute:
        place: int = view.params["dims"].index(axis)
        return place
    if view.primitive is P.pad:
        return None if any(view.params["padding"][axis]) else axis
    if view.primitive is P.unfold:
        return None if view.params["dim"] == axis else axis
    return None


def _turned(image: _Image, done: Mapping[Node, Node]) -> Node:
    """A view of the value, made with its channels last."""
    ndim = image.node.spec.ndim
    order = (*(axis for axis in range(ndim) if axis != image.channel), image.channel)
    made = {image.product: _product(image.product, order, done)}
    for each in topological_order((image.node,), done.keys() - image.cone):
        if each in image.cone:
            operands = [made.get(operand) or _permuted(done[operand], order) for operand in each.inputs]
            made[each] = apply(each.primitive, *operands, source=each.source, **each.params)
    back = tuple([order.index(axis) for axis in range(ndim)])
    return apply(P.permute, made[image.node], source=image.node.source, dims=back)


def _product(node: Node, order: tuple[int, ...], done: Mapping[Node, Node]) -> Node:
    """A contraction with the dimensions of its result in another order."""
    lengths, kept = node.params["lengths"], node.params["kept"]
    old = (*order, *range(kept, len(lengths)))
    params: dict[str, Any] = {
        side: tuple([tuple([old.index(label) for label in dim]) for dim in node.params[side]])
        for side in ("left", "right")
    }
    params |= {"lengths": tuple([lengths[label] for label in old]), "kept": kept, "dtype": node.dtype}
    return apply(contract, *[done[operand] for operand in node.inputs], source=node.source, **params)


def _permuted(node: Node, order: tuple[int, ...]) -> Node:
    if is_splat(node):
        shape = tuple([node.shape[axis] for axis in order])
        return literal(node.params["value"], Spec(shape, node.dtype), node.source)
    return apply(P.permute, node, source=node.source, dims=order)
