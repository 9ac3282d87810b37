"""Primitives that create values: `constant`, `iota`, `random_bits`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import DTypeError
from ..ir import Primitive, Shape, Spec
from .declare import declare

_MASK = (1 << 64) - 1


LARGE = 1 << 12  # bytes; larger arrays begin at a cache line, so that no vector crosses two
LINE = 64  # bytes of a line


def _aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Copy an array in C order to memory that begins at a cache line."""
    memory = np.empty(array.nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    copy: np.ndarray[Any, Any] = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    return copy


class Literal:
    """An array inside a graph: immutable, and equal to another one with the same bits.

    Args:
        array: copied, so that later writes to it do not reach the graph.
    """

    __slots__ = ("_hash", "array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = _aligned(array) if array.nbytes >= LARGE else np.array(array, order="C")
        self.array.flags.writeable = False
        self._hash: int | None = None  # computed on demand, because weights are large

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return False
        mine, others = self.array, other.array
        if mine is others:
            return True
        alike = mine.shape == others.shape and mine.dtype == others.dtype and hash(self) == hash(other)
        return alike and mine.tobytes() == others.tobytes()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.array.shape, self.array.dtype, self.array.tobytes()))
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.array,)  # aligned again, and without the hash, which differs between processes

    def __repr__(self) -> str:
        return f"Literal({self.array!r})"


Number = bool | int | float


def _infer_constant(*, value: Number | Literal, shape: Shape, dtype: DType) -> Spec:
    if isinstance(value, Literal) and value.array.shape != shape:
        raise DTypeError("MT202", f"a literal of shape {value.array.shape} declared as {shape}")
    return Spec(shape, dtype)


def _evaluate_constant(*, value: Number | Literal, shape: Shape, dtype: DType) -> np.ndarray[Any, Any]:
    if isinstance(value, Literal):
        return value.array
    return np.full(shape, value, dtype.numpy) if shape else np.array(value, dtype.numpy)


constant: Primitive = declare(
    "constant",
    "source",
    _infer_constant,
    _evaluate_constant,
    doc="one number in every element, or a literal array",
)

iota: Primitive = declare(
    "iota",
    "source",
    lambda *, size, dtype: Spec((size,), dtype),
    lambda *, size, dtype: np.arange(size, dtype=dtype.numpy),
    doc="0, 1, 2, ... size-1",
)


GOLDEN = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio
BLOCK = 1 << 15  # random numbers that NumPy computes together: their 64-bit intermediates should stay in a cache
MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # shift, factor


def mix_key(seed: int, draw: int) -> int:
    """Return the 64-bit key of a draw: SplitMix64 (Steele, Lea and Flood, 2014) of the seed and the draw's number."""
    z = (seed + (draw + 1) * GOLDEN) & _MASK
    for bits, factor in MIXING:
        z = ((z ^ (z >> bits)) * factor) & _MASK
    return (z ^ (z >> 31)) | 1


def squares(counter: np.ndarray[Any, Any], key: int) -> np.ndarray[Any, Any]:
    """Return 32 random bits per counter: the generator "Squares" (Widynski, arXiv:2004.06278), four rounds.

    It is counter-based: element `i` depends on the key and on `i` alone, so that any backend can compute any
    element in any order, and get the same bits.
    """
    y = counter * np.uint64(key)
    z = y + np.uint64(key)
    x = y
    half = np.uint64(32)
    for added in (y, z, y):
        x = x * x + added
        x = (x >> half) | (x << half)
    return ((x * x + z) >> half).astype(np.uint32)


def _infer_random_bits(state: Spec, *, shape: Shape) -> Spec:
    if state != Spec((2,), dtypes.int64):
        raise DTypeError("MT202", f"random_bits takes a state i64[2] (seed, number of the draw), not {state}")
    return Spec(shape, dtypes.uint32)


def _evaluate_random_bits(state: np.ndarray[Any, Any], *, shape: Shape) -> np.ndarray[Any, Any]:
    key = mix_key(int(state[0]), int(state[1]))
    found = np.empty(math.prod(shape), np.uint32)
    for begin in range(0, found.size, BLOCK):
        part = found[begin : begin + BLOCK]
        part[:] = squares(np.arange(begin, begin + part.size, dtype=np.uint64), key)
    return found.reshape(shape)


random_bits: Primitive = declare(
    "random_bits",
    "random",
    _infer_random_bits,
    _evaluate_random_bits,
    doc="32 random bits per element, a function of (seed, number of the draw) and the element's position",
)
