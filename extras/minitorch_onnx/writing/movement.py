"""The rows of movements, and of what makes values from nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from minitorch import dtypes
from minitorch.ir import Node
from minitorch.primitives import Literal
from minitorch.primitives.sources import GOLDEN, MIXING
from minitorch.sizes import is_symbolic, same

from ..common import NUMBERS
from .building import Building, Row

_END = np.iinfo(np.int64)
_SHORT = 1 << 12  # elements of a vector of one number that the model holds, instead of repeating the number


def _reshape(b: Building, node: Node, operands: list[str]) -> str:
    before = node.inputs[0]
    if before.primitive.kind == "reduction" and "dims" in before.params:  # dimensions that are kept with length 1
        (x,), dims = before.inputs, before.params["dims"]
        kept = tuple([1 if dim in dims else length for dim, length in enumerate(x.shape)])
        found = b.kept_by_reduction(operands[0]) if node.shape == kept else ""
        if found:
            return found
    several = sum(map(is_symbolic, node.shape)) > 1
    return b.reshaped(operands[0], node.shape, before.shape if several else ())


def _permute(b: Building, node: Node, operands: list[str]) -> str:
    dims = list(node.params["dims"])
    return b.op("Transpose", *operands, perm=dims) if dims else b.op("Identity", *operands)


def _expand(b: Building, node: Node, operands: list[str]) -> str:
    return _expanded(b, node, operands[0], node.shape)


def _expanded(b: Building, node: Node, name: str, shape: Sequence[int]) -> str:
    return b.apply("Expand", node.dtype, name, rest=[b.vector(shape)])


def _slice(b: Building, node: Node, operands: list[str]) -> str:
    start, stop, step = (node.params[name] for name in ("start", "stop", "step"))
    bounds = zip(start, stop, step, strict=True)
    axes = [axis for axis, each in enumerate(bounds) if not same(each, (0, node.inputs[0].shape[axis], 1))]
    if not axes:
        return b.op("Identity", *operands)
    first, last, by = (b.vector([each[axis] for axis in axes]) for each in (start, stop, step))
    return b.op("Slice", operands[0], first, last, b.constant(axes), by)


def _flip(b: Building, node: Node, operands: list[str]) -> str:
    axes = node.params["dims"]
    if not axes:
        return b.op("Identity", *operands)
    count = len(axes)
    ends = [b.constant([-1] * count), b.constant([_END.min] * count), b.constant(axes), b.constant([-1] * count)]
    return b.op("Slice", operands[0], *ends)


def _pad(b: Building, node: Node, operands: list[str]) -> str:
    """`Pad` puts values around the elements; between them they come by way of a dimension of their own."""
    padding = node.params["padding"]
    dtype = b.computed("Pad", node.dtype)
    name = b.cast(operands[0], node.dtype, dtype)
    value = b.number(node.params["value"], dtype)
    lengths = list(node.inputs[0].shape)
    gaps = {axis: between for axis, (_, _, between) in enumerate(padding) if between and lengths[axis] != 0}
    for axis, between in gaps.items():
        length = lengths[axis]
        spread, kept = length * (between + 1), length * (between + 1) - between
        apart = b.reshaped(name, [*lengths[: axis + 1], 1, *lengths[axis + 1 :]])
        ends = [0] * (len(lengths) + 1)
        apart = b.op("Pad", apart, b.constant([*ends, *ends[: axis + 1], between, *ends[axis + 2 :]]), value)
        lengths[axis] = spread
        name = b.reshaped(apart, lengths)
        name = b.op("Slice", name, b.constant([0]), b.vector([kept]), b.constant([axis]))
        lengths[axis] = kept
    ends = [before for before, _, _ in padding] + [after for _, after, _ in padding]
    if any(is_symbolic(each) or each for each in ends):
        name = b.op("Pad", name, b.vector(ends), value)
    elif not gaps:
        name = b.op("Identity", name)
    return b.cast(name, dtype, node.dtype)


def _concatenate(b: Building, node: Node, operands: list[str]) -> str:
    return b.op("Concat", *operands, axis=node.params["dim"])


def _unfold(b: Building, node: Node, operands: list[str]) -> str:
    """Gathered, by the places that every window reads; the place inside the window then goes to the end."""
    dim, size, step = node.params["dim"], b.fixed("size"), b.fixed("step")
    count, rank = node.shape[dim], node.inputs[0].spec.ndim
    inside = np.arange(size, dtype=np.int64) * node.params["dilation"]
    if not is_symbolic(count):
        places = b.constant(np.arange(count, dtype=np.int64)[:, None] * step + inside)
    else:
        begin = b.op("Mul", arange(b, count), b.constant(step))
        places = b.op("Add", b.op("Unsqueeze", begin, b.constant([1])), b.constant(inside))
    windows = b.op("Gather", operands[0], places, axis=dim)
    return b.op("Transpose", windows, perm=[axis for axis in range(rank + 1) if axis != dim + 1] + [dim + 1])


def _diagonal(b: Building, node: Node, operands: list[str]) -> str:
    *batch, rows, columns = node.inputs[0].shape
    offset, length = b.fixed("offset"), node.shape[-1]
    first = offset if offset >= 0 else columns * -offset
    if not any(map(is_symbolic, (length, columns, first))):
        places = b.constant(np.arange(length, dtype=np.int64) * (columns + 1) + first)
    else:
        places = b.op("Mul", arange(b, length), b.vector([columns + 1]))
        places = b.op("Add", places, b.vector([first]))
    flat = b.reshaped(operands[0], [*batch, rows * columns])
    return b.op("Gather", flat, places, axis=len(batch))


def _barrier(b: Building, node: Node, operands: list[str]) -> str:
    return b.op("Identity", *operands)


# Sources --------------------------------------------------------------------------------------------------


def _constant(b: Building, node: Node, operands: list[str]) -> str:
    if isinstance(node.params["value"], Literal):
        name = b.name("constant")
        b.arrays[name] = node.params["value"].array
        return name
    number = b.scalar(node.params["value"], node.dtype)
    if not node.shape:
        return b.op("Identity", number)
    if len(node.shape) == 1 and not is_symbolic(node.shape[0]) and node.shape[0] <= _SHORT and number in b.arrays:
        return b.constant(np.broadcast_to(b.arrays[number], node.shape))
    return _expanded(b, node, number, node.shape)


def arange(b: Building, size: int) -> str:
    """The numbers from 0 up to a size."""
    return b.op("Range", b.constant(0), b.scalar_size(size), b.constant(1))


def _iota(b: Building, node: Node, operands: list[str]) -> str:
    return b.cast(arange(b, node.params["size"]), dtypes.int64, node.dtype)


def _random_bits(b: Building, node: Node, operands: list[str]) -> str:
    """The generator "Squares" in 64-bit integers: products wrap around, and shifts are those of unsigned numbers."""
    state = operands[0]
    seed, draw = (b.op("Gather", state, b.constant(at), axis=0) for at in (0, 1))

    def wide(number: int) -> str:
        return b.constant((number + (1 << 63)) % (1 << 64) - (1 << 63))

    def shifted(x: str, bits: int, direction: str = "RIGHT") -> str:
        bare = b.op("Cast", x, to=_UINT64)
        by = b.constant(np.asarray(bits, np.uint64))
        return b.op("Cast", b.op("BitShift", bare, by, direction=direction), to=NUMBERS[dtypes.int64])

    def mixed(x: str, bits: int) -> str:
        """``x ^ (x >> bits)``."""
        if b.opset < 18:
            b.refuse("random bits", "BitwiseXor is an operator from opset 18 on", newer=18)
        return b.op("BitwiseXor", x, shifted(x, bits))

    z = b.op("Add", seed, b.op("Mul", b.op("Add", draw, b.constant(1)), wide(GOLDEN)))
    for bits, factor in MIXING:
        z = b.op("Mul", mixed(z, bits), wide(factor))
    key = b.op("BitwiseOr", mixed(z, 31), b.constant(1))
    lengths = node.shape
    counter = arange(b, math.prod(lengths))
    y = b.op("Mul", counter, key)
    above = b.op("Add", y, key)
    x = y
    for added in (y, above, y):
        x = b.op("Add", b.op("Mul", x, x), added)
        x = b.op("BitwiseOr", shifted(x, 32), shifted(x, 32, "LEFT"))
    x = shifted(b.op("Add", b.op("Mul", x, x), above), 32)
    return b.reshaped(b.op("Cast", x, to=NUMBERS[dtypes.uint32]), lengths)


_UINT64 = 13  # `TensorProto.UINT64`, which no tensor of ours has

ROWS: dict[str, Row] = {
    "barrier": _barrier,
    "check": _barrier,  # which says nothing to a runtime
    "concatenate": _concatenate,
    "constant": _constant,
    "diagonal": _diagonal,
    "expand": _expand,
    "flip": _flip,
    "iota": _iota,
    "pad": _pad,
    "permute": _permute,
    "random_bits": _random_bits,
    "reshape": _reshape,
    "shard": lambda b, node, operands: b.op("Identity", *operands),
    "size": _constant,
    "slice": _slice,
    "unfold": _unfold,
}
