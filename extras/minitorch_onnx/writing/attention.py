"""The row of attention: ONNX's operator from opset 23 on, and before that the nodes that runtimes fuse.

MatMul(query * scale, key.mT) ─► Add (mask) ─► Softmax ─► MatMul

A mask of bools is added as 0 and -inf, which is faster in runtimes than a selection among the scores. A score that is
infinite where a query may not look then makes NaN, as in PyTorch. Attention and MatMul repeat their operands
themselves, so these are given as they are before that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.dtypes import DType
from minitorch.ir import Node, Shape
from minitorch.primitives import dot, expand, reshape
from minitorch.sizes import is_symbolic, key_of, same
from minitorch_operators import attention

from .building import Building, Row
from .movement import arange

LARGEST = 1 << 16  # elements of a causal mask that is written as a constant; a longer one is computed


def _attention(b: Building, node: Node, operands: list[str]) -> str:
    dtype = dtypes.float64 if node.dtype is dtypes.float64 else dtypes.float32
    given = [
        b.cast(name, each.dtype, dtype) if each.dtype is node.dtype else name
        for name, each in zip(operands, node.inputs, strict=True)
    ]
    found = _operator(b, node, given) if is_native(b, node) else _composed(b, dtype, node, given)
    return b.cast(found, dtype, node.dtype)


def is_native(b: Building, node: Node) -> bool:
    """Whether attention is an operator. In float64, ONNX Runtime's kernel has the digits of float32."""
    return b.opset >= 23 and node.dtype is not dtypes.float64 and node.spec.ndim in (3, 4)


def _operator(b: Building, node: Node, operands: list[str]) -> str:
    more: dict[str, Any] = {"is_causal": 1} if node.params["causal"] else {}
    if node.spec.ndim == 3:
        more |= {"q_num_heads": 1, "kv_num_heads": 1}
    if len(operands) > 3:
        mask = node.inputs[3]
        rows, columns = node.inputs[0].shape[-2], node.inputs[1].shape[-2]
        if not same(mask.shape[-2:], (rows, columns)):  # ONNX repeats other dimensions
            operands[3] = b.op("Expand", operands[3], b.vector([*mask.shape[:-2], rows, columns]))
        if node.spec.ndim == len(mask.shape) == 3:  # there is one head
            operands[3] = b.op("Unsqueeze", operands[3], b.constant([1]))
    return b.op("Attention", *operands, scale=node.params["scale"], **more)


def _composed(b: Building, dtype: DType, node: Node, operands: list[str]) -> str:
    query, key, value, *mask = operands
    rank, low = node.spec.ndim, b.number(-math.inf, dtype)
    if node.params["scale"] != 1:
        query = b.op("Mul", query, b.number(node.params["scale"], dtype))
    scores = b.op("MatMul", query, b.transposed(key, (*range(rank - 2), rank - 1, rank - 2)))
    if node.params["causal"]:
        scores = b.op("Add", scores, _causal(b, node, dtype))
    for each in mask:
        is_bool = node.inputs[3].dtype is dtypes.bool_
        scores = b.op("Add", scores, b.op("Where", each, b.number(0, dtype), low) if is_bool else each)
    weights = b.op("Softmax", scores, axis=-1)
    if mask:  # a query that may look nowhere has zeros
        largest = b.op("ReduceMax", scores, b.constant([-1])) if b.opset >= 18 else b.op("ReduceMax", scores, axes=[-1])
        weights = b.op("Where", b.op("Equal", largest, low), b.number(0, dtype), weights)
    return b.op("MatMul", weights, value)


def _causal(b: Building, node: Node, dtype: DType) -> str:
    """0 where a query may look, at its own position and those before; -inf elsewhere."""
    rows, columns = node.inputs[0].shape[-2], node.inputs[1].shape[-2]
    if not is_symbolic(rows) and not is_symbolic(columns) and rows * columns <= LARGEST:
        return b.constant(np.triu(np.full((rows, columns), -math.inf), 1).astype(dtype.numpy))

    def make() -> str:
        own = b.op("Unsqueeze", arange(b, rows), b.constant([1]))
        seen = b.op("LessOrEqual", arange(b, columns), own)
        return b.op("Where", seen, b.number(0, dtype), b.number(-math.inf, dtype))

    return b.shared(("causal", key_of(rows), key_of(columns)), make)


# Operands before they were repeated --------------------------------------------------------------------------


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


ROWS: dict[str, Row] = {"attention": _attention}
