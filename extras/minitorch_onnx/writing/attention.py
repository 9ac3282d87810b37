"""The row of attention: ONNX's operator from opset 23 on, and before that the nodes that runtimes fuse.

MatMul(query * scale, key.mT) ─► Add (mask) ─► Softmax ─► MatMul

A mask of bools is added as 0 and -inf, which is faster in runtimes than a selection among the scores. A score that is
infinite where a query may not look then makes NaN, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.dtypes import DType
from minitorch.ir import Node
from minitorch.sizes import is_symbolic, key_of, same

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


ROWS: dict[str, Row] = {"attention": _attention}
