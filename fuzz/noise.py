"""Rounding noise: eager mode in which every operation that may round differently is moved as far as it may.

The spread of a program's results over some samples of this noise says how much of a difference rounding explains
(stochastic arithmetic, Vignes 1993). A comparison that falls out differently in one of the samples excuses what depends
on it, and nothing else does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import float64
from minitorch.interpreters import Eager
from minitorch.ir import Primitive
from minitorch.tensor import Tensor

Array = np.ndarray[Any, Any]

# IEEE 754 rounds these correctly, and nothing else is left to round: every mode gives the same bits.
EXACT = frozenset(
    ["add", "sub", "mul", "div", "neg", "abs", "sqrt", "floor", "trunc", "maximum", "where", "cast", "bitcast",
     "floor_divide", "remainder", "reduce_max"]
)  # fmt: skip
ROUNDING_KINDS = frozenset(["unary", "binary", "reduction", "contraction", "scan"])
SUMS = frozenset(["reduce_sum", "dot", "cumsum", "scatter_add"])
LEFT_OPEN = (math.nan, 0.0, math.inf, -math.inf)  # one of them stands where a sum may be any
ULPS = 3  # that two implementations of a function such as `exp` are apart


class UndefinedError(Exception):
    """The result of an operation is not defined: a conversion to an integer type of what it does not hold."""


class Defined(Eager):
    """Eager mode that refuses what C leaves undefined, and so do NumPy, LLVM and PyTorch."""

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate, if the result is defined."""
        if primitive is P.cast and inputs[0].dtype.category == "float" and params["dtype"].category == "int":
            check_conversion(inputs[0]._value, params["dtype"].numpy)
        if primitive in (P.shift_left, P.shift_right):
            amounts = inputs[1]._value
            if ((amounts < 0) | (amounts >= 8 * inputs[0].dtype.itemsize)).any():
                raise UndefinedError("a shift by more bits than there are")
        return super().bind(primitive, inputs, params)


def check_conversion(array: Array, target: np.dtype[Any]) -> None:
    """Raise if a float is not within the range of an integer type."""
    bounds = np.iinfo(target)
    with np.errstate(all="ignore"):
        numbers = np.trunc(array.astype(np.float64))
        if not (
            (numbers >= float(bounds.min)) & (numbers < float(bounds.max) + (1 if bounds.max < 2**53 else 0))
        ).all():
            raise UndefinedError(f"a conversion to {target}")


class Noisy(Eager):
    """Eager mode with rounding noise.

    Args:
        seed: of the noise.
        everywhere: also where IEEE 754 leaves no choice: beside PyTorch, which composes the same functions otherwise.
        weights: also the conversions to 16-bit floats: compiled attention divides by the sum of a row's weights after
            the product, and not before the weights are rounded.
        times: by how much the noise is larger than what may be.
    """

    def __init__(self, seed: int, everywhere: bool = False, weights: bool = False, times: float = 1) -> None:
        super().__init__()
        self.random = np.random.default_rng(seed)
        self.small = seed % 3 == 2
        self.everywhere, self.weights, self.times = everywhere, weights, times

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate, and move the result."""
        output = super().bind(primitive, inputs, params)
        if not output.dtype.is_floating_point or primitive.is_view:
            return output
        name = primitive.name
        if name == "cast" and self.weights and output.dtype.itemsize == 2:
            output._value = self.run(self._moved, output._value, 1)
        if name in SUMS or name == "reduce_prod":
            output._value = self.run(self._reordered, primitive, inputs, params, output._value)
        elif primitive.kind in ROUNDING_KINDS and (self.everywhere or name not in EXACT):
            output._value = self.run(self._moved, output._value, 1 if name in EXACT else ULPS)
        if name == "reduce_max" or (name == "maximum" and inputs[0] is not inputs[1]):
            output._value = self.run(self._zero_of_either_sign, output._value)  # either is the larger
        if primitive.kind in ROUNDING_KINDS:  # the sign of NaN means nothing, but signbit shows it
            signed = self.run(np.copysign, output._value, self._amounts(output.shape, 1).astype(output._value.dtype))
            output._value = np.asarray(np.where(np.isnan(output._value), signed, output._value)).reshape(output.shape)
        return output

    def _moved(self, array: Array, ulps: int) -> Array:
        """Every number moved by one unit in the last place, or up to so many."""
        wide = array.astype(np.float64)
        step = np.spacing(np.abs(array)).astype(np.float64)
        moved = wide + step * self._amounts(array.shape, ulps)
        found = np.where(np.isfinite(array) & (array != 0), moved, wide)
        return np.asarray(found.astype(array.dtype)).reshape(array.shape)

    def _amounts(self, shape: tuple[int, ...], most: float) -> Array:
        """Numbers between 1 and `most`, in every third sample between 0 and 1, of both signs."""
        least, most = (0, 1) if self.small else (1, most)
        return self.random.choice((-1.0, 1.0), shape) * self.random.uniform(least, most, shape) * self.times

    def _reordered(
        self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any], value: Array
    ) -> Array:
        """A sum or product as it is in another order: the sizes of its terms say how far that can be."""
        arrays = self._shuffled(primitive, [tensor._value for tensor in inputs], params)
        wide = np.asarray(primitive.evaluate(*arrays, **params)).astype(np.float64)
        terms = max(1, arrays[0].size // max(1, value.size))
        if primitive.name == "reduce_prod":
            sizes = np.abs(wide) * terms
        else:
            large = [np.abs(array.astype(np.float64)) if array.dtype.kind not in "iub" else array for array in arrays]
            wider = {**params, "dtype": float64} if "dtype" in params else params
            sizes = np.asarray(primitive.evaluate(*large, **wider)).astype(np.float64)
            if primitive.name == "dot":
                terms = arrays[0].shape[-1]
            elif primitive.name in ("cumsum", "scatter_add"):
                terms = arrays[0].size
        if primitive.name == "dot":
            left_open = self.random.choice(LEFT_OPEN, value.shape)
            wide = np.where(self._overflows(arrays, value.dtype), left_open, wide)
        half = value.dtype.itemsize == 2  # sums of 16-bit floats are carried in float32, and rounded at the end
        unit = float(np.finfo(np.float32 if half else value.dtype).eps)
        moved = wide + unit * sizes * (1 + terms / 32) * self._amounts(value.shape, ULPS)
        rounded = np.where(np.isfinite(moved), moved, wide).astype(value.dtype)
        if half:
            rounded = self._moved(rounded, 1)
        # A sum of zeros of both signs is a zero of either, as the first term is added to 0 or is the beginning.
        return self._zero_of_either_sign(rounded)

    def _zero_of_either_sign(self, array: Array) -> Array:
        """Zeros with a sign that is drawn."""
        signed = np.copysign(array, self._amounts(array.shape, 1).astype(array.dtype))
        return np.asarray(np.where(array == 0, signed, array)).reshape(array.shape)

    def _overflows(self, arrays: list[Array], dtype: np.dtype[Any]) -> Array:
        """Where the finite terms of a matrix product, added up without their signs, overflow.

        A product that is fused with a sum is not rounded, so it is no infinity yet. The weights of compiled attention
        are up to 1 in the product, and divided by their sum afterwards.
        """
        scale = 2.0**-600 if dtype.itemsize == 8 else 1.0  # so that no term of a float64 overflows
        a, b = (np.abs(np.where(np.isfinite(each), each, 0).astype(np.float64)) * scale for each in arrays)
        a = np.maximum(a, scale) if self.weights else a
        carried = np.float64 if dtype.itemsize == 8 else np.float32
        return np.asarray(a @ b > float(np.finfo(carried).max) * scale * scale)

    def _shuffled(self, primitive: Primitive, arrays: list[Array], params: Mapping[str, Any]) -> list[Array]:
        """The operands with the terms of each sum in another order."""
        if primitive.name == "dot":
            order = self.random.permutation(arrays[0].shape[-1])
            return [np.take(arrays[0], order, -1), np.take(arrays[1], order, -2)]
        if primitive.kind == "reduction":
            array = arrays[0]
            for dim in params["dims"]:
                array = np.take(array, self.random.permutation(array.shape[dim]), axis=dim)
            return [array]
        return arrays
