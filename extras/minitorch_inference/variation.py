"""Variation analysis: the axes of a value along which its elements can differ, and the values that are constant.

A value does not vary along an axis if all its slices there are the same: ``expand(bias, shape=[8,64])`` varies along
axis 1 alone, and so does ``exp`` of it. This decides which factors commute with a sum. A scale that does not vary along
the axis that a contraction sums over is a factor of every term, and can be taken out, or put into one of the operands:
for affine folding, and for the scales of quantised operands.

::

    Graph ──variation──► Variation: node -> axes, and the nodes that depend on constants alone

This is a forward data-flow analysis: one walk, a rule for each primitive, from the axes of the operands to those of the
result. It looks at shapes and parameters, and at data only in literals: `expand` of a bias may have been folded into a
literal already. The answer is an upper bound. No axis is missing from it, and a value need not differ along each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minitorch import primitives as P
from minitorch.graph.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.ir import POINTWISE, Node, Primitive, Shape
from minitorch.passes.lowering.contract import labels_of

Axes = frozenset[int]
NONE: Axes = frozenset()


@dataclass(frozen=True)
class Variation:
    """The result of the analysis.

    Attributes:
        axes: for every node of the graph, inputs included, the axes along which it may vary; none is of length 1.
        constants: the nodes that depend on no input and no random draw, and are not behind a `barrier`.
    """

    axes: Mapping[Node, Axes]
    constants: frozenset[Node]

    def __getitem__(self, node: Node) -> Axes:
        """The axes along which a node may vary."""
        return self.axes[node]

    def is_constant(self, node: Node) -> bool:
        """Whether a node depends on constants alone."""
        return node in self.constants


def variation(graph: Graph) -> Variation:
    """Find the axes along which every value of a graph may vary.

    Args:
        graph: any graph, lowered ones included.

    Example:
        >>> graph = Graph.parse('''
        ... graph(x: f32[8,3], bias: f32[4]):
        ...   %0 = constant([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]) : f32[3,4]
        ...   %1 = dot(x, %0, dtype=f32)
        ...   %2 = expand(bias, shape=[8,4])
        ...   %3 = mul(%2, 2.0)
        ...   %4 = add(%1, %3)
        ...   return %4
        ... ''')
        >>> found = variation(graph)
        >>> for node in graph.nodes:
        ...     print(node.primitive.name, sorted(found[node]), found.is_constant(node))
        constant [1] True
        dot [0, 1] False
        expand [1] False
        constant [] True
        mul [1] False
        add [0, 1] False
    """
    axes: dict[Node, Axes] = {node: _longer_than_one(node.shape) for node in graph.inputs}
    constants: set[Node] = set()
    for node in graph.nodes:
        operands = [axes[operand] for operand in node.inputs]
        rule = RULES.get(node.primitive) or BY_KIND.get(node.primitive.kind, _any)
        rule = _union if node.primitive.is_identity else rule
        axes[node] = rule(node, operands) & _longer_than_one(node.shape)
        is_opaque = node.primitive.kind == "random" or node.primitive is P.barrier
        if not is_opaque and all(operand in constants for operand in node.inputs):
            constants.add(node)
    return Variation(axes, frozenset(constants))


def _longer_than_one(shape: Shape) -> Axes:
    return NONE if 0 in shape else frozenset(axis for axis, length in enumerate(shape) if length > 1)


def reshape_groups(old: Shape, new: Shape) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The smallest runs of axes that a reshape maps to runs of axes, axes of length 1 left out.

    Args:
        old, new: shapes of equal size, without a length of 0.

    Example:
        >>> reshape_groups((2, 12, 5, 5), (2, 3, 4, 1, 25))
        [((0,), (0,)), ((1,), (1, 2)), ((2, 3), (4,))]
    """
    before = [axis for axis, length in enumerate(old) if length > 1]
    after = [axis for axis, length in enumerate(new) if length > 1]
    groups = []
    while before:
        one, other = [before.pop(0)], [after.pop(0)]
        while (ours := math.prod(old[axis] for axis in one)) != (theirs := math.prod(new[axis] for axis in other)):
            if ours < theirs:
                one.append(before.pop(0))
            else:
                other.append(after.pop(0))
        groups.append((tuple(one), tuple(other)))
    return groups


# The rules: from a node and the axes of its operands to the axes of its result -----------------------------------

AxesRule = Callable[[Node, Sequence[Axes]], Axes]


def _any(node: Node, operands: Sequence[Axes]) -> Axes:
    """Nothing is known."""
    return frozenset(range(node.spec.ndim))


def _union(node: Node, operands: Sequence[Axes]) -> Axes:
    return NONE.union(*operands)


def _constant(node: Node, operands: Sequence[Axes]) -> Axes:
    """Of a literal, the axes along which two slices have different bits."""
    if is_splat(node) or 0 in node.shape:
        return NONE
    array = node.params["value"].array
    bits = array.view(f"u{array.dtype.itemsize}")
    found = set()
    for axis in range(array.ndim):
        slices = np.moveaxis(bits, axis, 0)
        # Most arrays that vary do so in the second slice already.
        if len(slices) > 1 and (not np.array_equal(slices[0], slices[1]) or (slices != slices[0]).any()):
            found.add(axis)
    return frozenset(found)


def _without_dims(node: Node, operands: Sequence[Axes]) -> Axes:
    """A reduction drops the axes that it runs over."""
    dims = node.params["dims"] if "dims" in node.params else (node.params["dim"],)
    kept = [axis for axis in range(node.inputs[0].spec.ndim) if axis not in dims]
    return frozenset(place for place, axis in enumerate(kept) if axis in operands[0])


def _along_dim(node: Node, operands: Sequence[Axes]) -> Axes:
    """A scan or a sort of equal elements counts them."""
    return operands[0] | {node.params["dim"]}


def _contraction(node: Node, operands: Sequence[Axes]) -> Axes:
    """The labels of all axes that an operand varies along; those that are summed are no axes of the result."""
    return frozenset(
        label
        for labels, axes in zip(labels_of(node), operands, strict=True)
        for axis in axes
        for label in labels[axis]
        if label < node.spec.ndim
    )


def _reshape(node: Node, operands: Sequence[Axes]) -> Axes:
    if not operands[0]:
        return NONE
    groups = reshape_groups(node.inputs[0].shape, node.shape)
    return frozenset(axis for old, new in groups if not operands[0].isdisjoint(old) for axis in new)


def _permute(node: Node, operands: Sequence[Axes]) -> Axes:
    return frozenset(place for place, axis in enumerate(node.params["dims"]) if axis in operands[0])


def _expand(node: Node, operands: Sequence[Axes]) -> Axes:
    added = node.spec.ndim - node.inputs[0].spec.ndim
    return frozenset(axis + added for axis in operands[0])


def _pad(node: Node, operands: Sequence[Axes]) -> Axes:
    return operands[0] | {axis for axis, amounts in enumerate(node.params["padding"]) if any(amounts)}


def _concatenate(node: Node, operands: Sequence[Axes]) -> Axes:
    return _union(node, operands) | {node.params["dim"]}


def _unfold(node: Node, operands: Sequence[Axes]) -> Axes:
    return operands[0] | ({node.spec.ndim - 1} if node.params["dim"] in operands[0] else NONE)


def _diagonal(node: Node, operands: Sequence[Axes]) -> Axes:
    last = node.spec.ndim - 1
    return frozenset(min(axis, last) for axis in operands[0])


BY_KIND: dict[str, AxesRule] = {
    **dict.fromkeys(POINTWISE, _union),
    "reduction": _without_dims,
    "argreduction": _without_dims,
    "scan": _along_dim,
    "sort": _along_dim,
    "contraction": _contraction,
}
RULES: dict[Primitive, AxesRule] = {
    P.constant: _constant,
    P.reshape: _reshape,
    P.permute: _permute,
    P.expand: _expand,
    P.slice_: _union,
    P.flip: _union,
    P.barrier: _union,
    P.pad: _pad,
    P.concatenate: _concatenate,
    P.unfold: _unfold,
    P.diagonal: _diagonal,
}
