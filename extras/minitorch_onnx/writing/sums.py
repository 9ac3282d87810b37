"""The rows of reductions, scans, sorting, matrix products and indexing, as primitives and as operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minitorch import dtypes
from minitorch.dtypes import DType
from minitorch.ir import Node
from minitorch.primitives.reductions import lowest
from minitorch.sizes import is_symbolic

from .building import Building, Row, operator


def _reduction(kind: str, axes_from: int) -> Row:
    """The row of a reduction; its axes are data from some opset on, and before that an attribute."""

    def row(b: Building, node: Node, operands: list[str]) -> str:
        (given,) = node.inputs
        dtype, dims = given.dtype, node.params["dims"]
        if not dims:
            return b.op("Identity", *operands)
        if kind == "ReduceMax" and given.spec.size == 0:  # ONNX does not say what the largest of nothing is
            return b.op("Expand", b.number(lowest(dtype), dtype), b.vector(node.shape))
        return reduced(b, kind, dtype, operands[0], dims, axes_from)

    return row


def reduced(
    b: Building, kind: str, dtype: DType, name: str, dims: Sequence[int], axes_from: int = 18, keepdims: int = 0
) -> str:
    """A reduction, in the type that it is computed in."""
    more: dict[str, Any] = {"rest": [b.constant(dims)]} if b.opset >= axes_from else {"axes": list(dims)}
    return b.apply(kind, dtype, name, keepdims=keepdims, **more)


def _place(kind: str) -> Row:
    def row(b: Building, node: Node, operands: list[str]) -> str:
        return b.apply(kind, node.inputs[0].dtype, *operands, gives=True, axis=node.params["dim"], keepdims=0)

    return row


def _cumsum(b: Building, node: Node, operands: list[str]) -> str:
    return b.apply("CumSum", node.dtype, *operands, rest=[b.constant(node.params["dim"])])


def _cumprod(b: Building, node: Node, operands: list[str]) -> str:
    """The parallel scan: after the step that multiplies by the products 2**k places back, each has 2**(k+1) factors."""
    dim, length = node.params["dim"], node.shape[node.params["dim"]]
    if is_symbolic(length):
        b.refuse("a running product over a dynamic dimension", "the number of its steps depends on the length")
    wide = b.computed("Mul", dtypes.float32 if node.dtype is dtypes.float16 else node.dtype)
    name, step = b.cast(operands[0], node.dtype, wide), 1
    rest = list(node.shape)
    while step < length:
        rest[dim] = step
        ones = b.op("Expand", b.number(1, wide), b.vector(rest))
        kept = b.op("Slice", name, b.constant([0]), b.constant([length - step]), b.constant([dim]))
        name = b.op("Mul", name, b.op("Concat", ones, kept, axis=dim))
        step *= 2
    return b.op("Identity", name) if name == operands[0] else b.cast(name, wide, node.dtype)


def _argsort(b: Building, node: Node, operands: list[str]) -> str:
    """`TopK` of all elements; of equal ones, the first comes first."""
    return sorted_dimension(b, node, operands[0], node.shape[node.params["dim"]])[1]


def sorted_dimension(b: Building, node: Node, name: str, count: int) -> Sequence[str]:
    """The first elements of a sorted dimension, and their places: one node for both."""
    (x,), dim, largest = node.inputs, node.params["dim"], int(node.params["descending"])
    key = ("TopK", x, dim, largest, count)
    if key not in b.results:
        wide = b.computed("TopK", x.dtype)
        given, k = b.cast(name, x.dtype, wide), b.vector([count])
        values, places = b.ops(
            "TopK", [given, k], [b.name("sorted"), b.name("argsort")], axis=dim, largest=largest, sorted=1
        )
        b.results[key] = [b.cast(values, wide, x.dtype), places]
    return b.results[key]


def _decompose(b: Building, node: Node, operands: list[str]) -> str:
    if node.params["routine"] == "det":
        return b.op("Det", operands[0])
    b.refuse(f"{node.params['routine']} of matrices", "ONNX has no such operator")


def _dot(b: Building, node: Node, operands: list[str]) -> str:
    dtype: DType = node.params["dtype"]
    types = [each.dtype for each in node.inputs]
    if dtype is dtypes.int32 and all(each in (dtypes.int8, dtypes.uint8) for each in types):
        return b.op("MatMulInteger", *operands)
    wide = b.computed("MatMul", dtype)
    if not dtype.is_floating_point and wide is dtypes.uint32:
        wide = dtypes.int64
    names = [b.cast(name, each, wide) for name, each in zip(operands, types, strict=True)]
    return b.cast(b.op("MatMul", *names), wide, dtype)


# Indexing -------------------------------------------------------------------------------------------------


def index_of(b: Building, node: Node, place: int, name: str) -> str:
    """An operand as indices of a type that ONNX has."""
    dtype = node.inputs[place].dtype
    return name if dtype in (dtypes.int32, dtypes.int64) else b.cast(name, dtype, dtypes.int64)


def _places(b: Building, node: Node, operands: list[str], first: int) -> str:
    """The indices, as a dimension of their own at the end."""
    parts = []
    for place in range(first, len(operands)):
        name = b.cast(operands[place], node.inputs[place].dtype, dtypes.int64)
        parts.append(b.op("Unsqueeze", name, b.constant([node.inputs[place].spec.ndim])))
    return parts[0] if len(parts) == 1 else b.op("Concat", *parts, axis=node.inputs[first].spec.ndim)


def _gather(b: Building, node: Node, operands: list[str]) -> str:
    if len(operands) == 2:
        return b.op("Gather", operands[0], index_of(b, node, 1, operands[1]), axis=0)
    return b.op("GatherND", operands[0], _places(b, node, operands, 1))


def _scatter(b: Building, node: Node, operands: list[str]) -> str:
    """`ScatterND`, after all updates of one place have been made the last one: of equal indices it knows no order."""
    data, updates = operands[:2]
    places = _places(b, node, operands, 2)
    count = node.inputs[2].spec.size
    if count > 1:
        if b.opset < 18:
            b.refuse(
                "a write to several places", "ScatterND has a maximum from opset 18 on, to find the last write", 18
            )
        shape = node.inputs[2].shape
        cells = b.op("Expand", b.constant(-1), b.vector(node.shape[: len(operands) - 2]))
        flat = b.op("Shape", b.op("Reshape", operands[2], b.constant([-1])))
        order = b.op("Range", b.constant(0), b.op("Squeeze", flat), b.constant(1))
        order = b.reshaped(order, shape)
        last = b.op("GatherND", b.op("ScatterND", cells, places, order, reduction="max"), places)
        rest = node.shape[len(operands) - 2 :]
        rows = b.op("Reshape", updates, b.vector([-1, *rest]))
        updates = b.op("Gather", rows, last, axis=0)
    return b.op("ScatterND", data, places, updates)


def _scatter_add(b: Building, node: Node, operands: list[str]) -> str:
    if b.opset < 16:
        b.refuse("a sum into places of a tensor", "ScatterND adds from opset 16 on", newer=16)
    dtype = node.dtype
    if dtype is dtypes.bool_:  # or
        wide = dtypes.int32
    else:
        wide = dtypes.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype
    data, updates = (b.cast(name, dtype, wide) for name in operands[:2])
    found = b.op("ScatterND", data, _places(b, node, operands, 2), updates, reduction="add")
    return b.cast(found, wide, dtype)


def _reduce_min(b: Building, node: Node, operands: list[str]) -> str:
    return reduced(b, "ReduceMin", node.dtype, operands[0], node.params["dims"])


def _mean(b: Building, node: Node, operands: list[str]) -> str:
    keepdims = int(node.params["keepdims"])
    return reduced(b, "ReduceMean", node.dtype, operands[0], node.params["dims"], keepdims=keepdims)


def _take_along(b: Building, node: Node, operands: list[str]) -> str:
    return b.op("GatherElements", operands[0], index_of(b, node, 1, operands[1]), axis=node.params["dim"])


def _topk(b: Building, node: Node, operands: list[str]) -> str:
    values, places = sorted_dimension(b, node, operands[0], node.params["k"])
    return places if node.params["gives"] == "indices" else values


ROWS: dict[str, Row] = {
    "argmax": _place("ArgMax"),
    "argmin": _place("ArgMin"),
    "argsort": _argsort,
    "decompose": _decompose,
    "ceil": operator("Ceil"),
    "cumprod": _cumprod,
    "cumsum": _cumsum,
    "dot": _dot,
    "gather": _gather,
    "isnan": operator("IsNaN", gives=True),
    "mean": _mean,
    "minimum": operator("Min"),
    "reduce_max": _reduction("ReduceMax", 18),
    "reduce_min": _reduce_min,
    "reduce_prod": _reduction("ReduceProd", 18),
    "reduce_sum": _reduction("ReduceSum", 13),
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "take_along": _take_along,
    "topk": _topk,
}
