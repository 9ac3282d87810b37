"""The rows of smallest elements, means, and elements at places."""

from __future__ import annotations

from minitorch import dtypes
from minitorch.ir import Node

from .building import Building, Row, plain
from .sums import index_of, reduced, sorted_dimension


def _reduce_min(b: Building, node: Node, operands: list[str]) -> str:
    return reduced(b, "ReduceMin", node.dtype, operands[0], node.params["dims"])


def _mean(b: Building, node: Node, operands: list[str]) -> str:
    keepdims = int(node.params["keepdims"])
    return reduced(b, "ReduceMean", node.dtype, operands[0], node.params["dims"], keepdims=keepdims)


def _argmin(b: Building, node: Node, operands: list[str]) -> str:
    dtype = node.inputs[0].dtype
    wide = b.computed("ArgMin", dtype)
    return b.op("ArgMin", b.cast(operands[0], dtype, wide), axis=node.params["dim"], keepdims=0)


def _isnan(b: Building, node: Node, operands: list[str]) -> str:
    return b.apply("IsNaN", node.inputs[0].dtype, *operands, gives=dtypes.bool_)


def _take_along(b: Building, node: Node, operands: list[str]) -> str:
    return b.op("GatherElements", operands[0], index_of(b, node, 1, operands[1]), axis=node.params["dim"])


def _topk(b: Building, node: Node, operands: list[str]) -> str:
    values, places = sorted_dimension(b, node, operands[0], node.params["k"])
    return places if node.params["gives"] == "indices" else values


ROWS: dict[str, Row] = {
    "argmin": _argmin,
    "ceil": plain("Ceil"),
    "isnan": _isnan,
    "mean": _mean,
    "minimum": plain("Min"),
    "reduce_min": _reduce_min,
    "take_along": _take_along,
    "topk": _topk,
}
