"""Affine maps with constant numbers per channel: which nodes are steps of one, and what a chain of steps comes to.

A step adds, subtracts, multiplies or divides by a constant, or negates. A chain of steps ``y = x*s + t`` is an
`AffineMap`: eval-mode batch normalization, ``(x - mean) / sqrt(var + eps) * weight + bias``, is a chain of four. Chains
are found by the constants that their nodes read, never by the names of modules.

Some additions are there for their rounding: ``(x + 1.5 * 2**23) - 1.5 * 2**23`` rounds a float32 to a whole number, as
quantisation does. Over the real numbers that is nothing, so such additions are no steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import DType, bfloat16, float16, float32, float64
from minitorch.graph.build import apply, literal, topological_order
from minitorch.graph.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.ir import POINTWISE, Node, Primitive, Source, Spec
from minitorch.passes.constant_folding import literal_of
from minitorch_inference.variation import Variation, variation

from .channels import FORWARD, Array, narrowed

ARITHMETIC = (P.add, P.sub, P.mul, P.div)
SIGNIFICANT_BITS = {float16: 11, bfloat16: 8, float32: 24, float64: 53}


@dataclass(frozen=True)
class AffineMap:
    """``x*scale + shift``, in float64 whatever the type of `x`.

    Attributes:
        scale, shift: numbers per channel, with as many dimensions as `x`; of length 1 where they do not vary.
        steps: how many operations on elements it stands for.
        scales: whether one of them is more than an addition or a subtraction of a constant.
    """

    scale: Array
    shift: Array
    steps: int = 0
    scales: bool = False

    @property
    def shifts(self) -> bool:
        """Whether the shift is anything but 0."""
        return bool(np.any(self.shift))

    def then(self, step: Step) -> AffineMap:
        """With one more step behind it."""
        with np.errstate(all="ignore"):  # what is not finite is refused later
            scale, shift = TABLE[step.primitive](self.scale, self.shift, step.number, step.is_right)
        scales = self.scales or step.primitive not in (P.add, P.sub) or (step.primitive is P.sub and step.is_right)
        return AffineMap(scale, shift, self.steps + 1, scales)

    def moved(self, node: Node) -> AffineMap | None:
        """The map of a value that a movement has moved; None if a shift does not commute with it, or nothing does."""
        rule = FORWARD.get(node.primitive)
        scale = rule(self.scale, node) if rule else None
        if rule is None or scale is None:
            return None
        if node.primitive is P.pad:
            return None if self.shifts else AffineMap(scale, np.zeros((1,) * node.spec.ndim), self.steps, self.scales)
        shift = rule(self.shift, node)
        return None if shift is None else AffineMap(scale, shift, self.steps, self.scales)


def identity(node: Node) -> AffineMap:
    """The map that changes no element of a value."""
    return AffineMap(np.ones((1,) * node.spec.ndim), np.zeros((1,) * node.spec.ndim))


@dataclass(frozen=True)
class Step:
    """One operation on elements by a constant.

    Attributes:
        primitive: `add`, `sub`, `mul`, `div` or `neg`.
        data: the operand that is no constant.
        number: the constant, per channel; 0 for `neg`.
        is_right: whether the data is the right operand.
    """

    primitive: Primitive
    data: Node
    number: Array
    is_right: bool = False

    @property
    def offset(self) -> Array | None:
        """The number that is added; None if the step is another operation."""
        if self.primitive is P.add:
            return self.number
        return -self.number if self.primitive is P.sub and not self.is_right else None


def _sub(scale: Array, shift: Array, number: Array, is_right: bool) -> tuple[Array, Array]:
    return (-scale, number - shift) if is_right else (scale, shift - number)


# From scale, shift, a constant, and whether the data is on the right, to the scale and the shift after the step.
TABLE: dict[Primitive, Callable[[Array, Array, Array, bool], tuple[Array, Array]]] = {
    P.add: lambda scale, shift, number, is_right: (scale, shift + number),
    P.sub: _sub,
    P.mul: lambda scale, shift, number, is_right: (scale * number, shift * number),
    P.div: lambda scale, shift, number, is_right: (scale / number, shift / number),
    P.neg: lambda scale, shift, number, is_right: (-scale, -shift),
}


class View:
    """A graph as the rules of affine folding see it: who reads a value, and which constants there are.

    Attributes:
        graph: the graph.
        variation: the axes along which its values vary.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.variation: Variation = variation(graph)
        self._users = graph.users()
        self._outputs = frozenset(graph.outputs)
        self._numbers: dict[Node, Array] = {}

    def reader(self, node: Node) -> Node | None:
        """The one node that reads a value, once; None if there are others, or the value is a result."""
        readers = self._users[node]
        if node in self._outputs or len(readers) != 1 or readers[0].inputs.count(node) != 1:
            return None
        return readers[0]

    def readers(self, node: Node) -> tuple[Node, ...]:
        """All nodes that read a value."""
        return self._users[node]

    def is_result(self, node: Node) -> bool:
        """Whether a value is a result of the graph."""
        return node in self._outputs

    def is_constant(self, node: Node) -> bool:
        """Whether a node depends on constants alone."""
        return node in self.variation.constants

    def numbers(self, node: Node) -> Array:
        """The value of a constant, of length 1 along all axes that it does not vary along."""
        with np.errstate(all="ignore"):
            for each in topological_order((node,), self._numbers):
                self._numbers[each] = self._evaluated(each)
        return self._numbers[node]

    def _evaluated(self, node: Node) -> Array:
        if is_splat(node):
            return np.full((1,) * node.spec.ndim, node.params["value"], node.dtype.numpy)
        operands = [self._numbers[operand] for operand in node.inputs]
        if node.primitive.kind in POINTWISE:
            return np.asarray(node.primitive.evaluate(*operands, **node.params))
        if node.primitive is P.expand:
            return operands[0].reshape((1,) * (node.spec.ndim - operands[0].ndim) + operands[0].shape)
        full = [np.broadcast_to(array, each.shape) for array, each in zip(operands, node.inputs, strict=True)]
        return narrowed(np.asarray(node.primitive.evaluate(*full, **node.params)), self.variation[node])

    def step(self, node: Node) -> Step | None:
        """The step that a node is; None if it is none, or rounds on purpose."""
        found = self._step(node)
        return None if found is None or self._rounds(node, found) else found

    def rounds(self, node: Node) -> bool:
        """Whether a node adds a constant that rounds on purpose."""
        found = self._step(node)
        return found is not None and self._rounds(node, found)

    def _rounds(self, node: Node, step: Step) -> bool:
        """Whether all of a fraction is lost, or what is added is subtracted before or after: ``(x + c) - c``."""
        offset = step.offset
        if offset is None or not node.dtype.is_floating_point or not np.any(offset):
            return False
        if 2.0 ** (SIGNIFICANT_BITS[node.dtype] - 2) <= np.max(np.abs(offset)) < np.inf:
            return True
        beside = [self._step(each) for each in (step.data, *self._users[node])]
        return any(each is not None and each.offset is not None and np.all(each.offset == -offset) for each in beside)

    def _step(self, node: Node) -> Step | None:
        if node.primitive is P.neg and not self.is_constant(node):
            return Step(P.neg, node.inputs[0], np.zeros((1,) * node.spec.ndim))
        if node.primitive not in ARITHMETIC:
            return None
        left, right = node.inputs
        if self.is_constant(left) == self.is_constant(right):
            return None
        if self.is_constant(right):
            return Step(node.primitive, left, self.numbers(right).astype(np.float64))
        if node.primitive is P.div:
            return None
        return Step(node.primitive, right, self.numbers(left).astype(np.float64), is_right=True)

    def is_decoded(self, node: Node) -> bool:
        """Whether a constant is computed from an array of a smaller type, as dequantised weights are."""
        arrays = [each for each in topological_order((node,)) if each.primitive is P.constant and not is_splat(each)]
        return any(each.dtype.itemsize < node.dtype.itemsize for each in arrays)


def stored(numbers: Array, dtype: DType) -> Array:
    """Numbers as a type has them, each rounded once."""
    with np.errstate(all="ignore"):
        return numbers.astype(dtype.numpy)


def constant_like(numbers: Array, spec: Spec, source: Source | None) -> Node:
    """Numbers per channel as a constant that is expanded to a shape, or is a splat of it.

    Args:
        numbers: of the type of `spec`.
    """
    small = literal_of(numbers, Node(P.constant, (), {}, Spec(numbers.shape, spec.dtype), source))
    if is_splat(small):
        return literal(small.params["value"], spec, source)
    return small if small.shape == spec.shape else apply(P.expand, small, shape=spec.shape, source=source)
