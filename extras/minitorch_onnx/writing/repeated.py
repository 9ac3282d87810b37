"""Matrices and heads before they were repeated: MatMul and Attention repeat their operands themselves."""

from __future__ import annotations

from collections.abc import Sequence

from minitorch.ir import Node, Shape
from minitorch.primitives import dot, expand, reshape
from minitorch.sizes import same
from minitorch_operators import attention

from .attention import is_native
from .building import Building


def not_repeated(b: Building, node: Node) -> list[Node]:
    """The operands of a node; of products without the repetition of matrices, which MatMul and Attention repeat."""
    given = list(node.inputs)
    if node.primitive is dot:
        small = [_one_of_many(each) for each in given]
        return small if broadcast_to([each.shape[:-2] for each in small], node.shape[:-2]) else given
    if node.primitive is attention and is_native(b, node):
        fewer = [_fewer_heads(each) for each in given[1:3]]
        if same(fewer[0].shape[:2], fewer[1].shape[:2]):
            return [given[0], *fewer, *given[3:]]
    return given


def broadcast_to(shapes: Sequence[Shape], shape: Shape) -> bool:
    """Whether operands of some shapes, of which none is longer, give this one."""
    return all(
        any(len(each) >= axis and same(each[-axis], shape[-axis]) for each in shapes)
        for axis in range(1, len(shape) + 1)
    )


def _one_of_many(matrices: Node) -> Node:
    """Matrices before they were repeated."""
    small = matrices.inputs[0] if matrices.primitive is expand else matrices
    return small if same(small.shape[-2:], matrices.shape[-2:]) else matrices


def _fewer_heads(x: Node) -> Node:
    """[batch, heads, time, size] before each head was repeated, side by side."""
    small = _one_of_many(x)
    if small is not x:
        return small if len(small.shape) == 4 and same(small.shape[:2], (x.shape[0], 1)) else x
    wide = x.inputs[0] if x.primitive is reshape else x
    inner = wide.inputs[0] if wide.primitive is expand else wide
    if len(x.shape) != 4 or len(wide.shape) != 5 or inner.primitive is not reshape:
        return x
    (small,) = inner.inputs
    repeated = (*small.shape[:2], wide.shape[2], *small.shape[2:])
    fits = same(inner.shape, (*small.shape[:2], 1, *small.shape[2:])) and same(wide.shape, repeated)
    return small if fits else x
