"""Rounding noise: eager mode in which every operation that may round differently is moved as far as it may.

The spread of a program's results over some samples of this noise says how much of a difference rounding explains
(stochastic arithmetic, Vignes 1993). A comparison that falls out differently in one of the samples excuses what depends
on it, and nothing else does.
"""

from __future__ import annotations

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
ULPS = 2  # that each of two implementations of a function such as `exp` is off by


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
    """

    def __init__(self, seed: int, everywhere: bool = False) -> None:
        super().__init__()
        self.random = np.random.default_rng(seed)
        self.everywhere = everywhere

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate, and move the result."""
        output = super().bind(primitive, inputs, params)
        if not output.dtype.is_floating_point or primitive.is_view:
            return output
        name = primitive.name
        if name in SUMS or name == "reduce_prod":
            output._value = self.run(self._reordered, primitive, inputs, params, output._value)
        elif primitive.kind in ROUNDING_KINDS and (self.everywhere or name not in EXACT):
            output._value = self.run(self._moved, output._value, 1 if name in EXACT else ULPS)
        return output

    def _moved(self, array: Array, ulps: int) -> Array:
        """Every number moved by up to so many units in the last place, and by at least half a one."""
        wide = array.astype(np.float64)
        step = np.spacing(np.abs(array)).astype(np.float64)
        amount = self.random.choice((-1.0, 1.0), array.shape) * self.random.uniform(0.5, ulps, array.shape)
        moved = wide + step * amount
        if array.dtype == np.float64:
            moved = np.where(np.abs(amount) < 1, wide + step * np.sign(amount), moved)
        found = np.where(np.isfinite(array) & (array != 0), moved, wide)
        return np.asarray(found.astype(array.dtype)).reshape(array.shape)

    def _reordered(
        self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any], value: Array
    ) -> Array:
        """A sum or product as it is in another order: its terms' sizes say how far that can be."""
        arrays = [tensor._value for tensor in inputs]
        terms = max(1, arrays[0].size // max(1, value.size)) if primitive.name != "dot" else arrays[0].shape[-1]
        if primitive.name in ("cumsum", "scatter_add"):
            terms = max(1, arrays[0].size)
        accumulated = np.float64 if value.dtype == np.float64 else np.float32
        unit = float(np.finfo(accumulated).eps)
        if primitive.name == "reduce_prod":
            shuffled = self._shuffled(arrays[0], params["dims"])
            wide = np.asarray(primitive.evaluate(shuffled, **params)).astype(np.float64)
            sizes = np.abs(wide) * terms
        else:
            large = [np.abs(array.astype(np.float64)) for array in arrays if array.dtype.kind not in "iu"]
            if primitive.name == "scatter_add":
                sizes = large[0] + large[1].sum()
            else:
                wider = {**params, "dtype": float64} if "dtype" in params else params
                sizes = np.asarray(primitive.evaluate(*large, **wider)).astype(np.float64)
            wide = value.astype(np.float64)
        amount = self.random.choice((-1.0, 1.0), value.shape) * self.random.uniform(0.5, 1, value.shape)
        moved = wide + amount * unit * sizes * (1 + terms / 64)
        rounded = np.where(np.isfinite(moved), moved, wide).astype(value.dtype)
        # A sum of zeros of both signs is a zero of either, as the first term is added to 0 or is the beginning.
        rounded = np.where(rounded == 0, np.copysign(rounded, amount).astype(value.dtype), rounded)
        if value.dtype != accumulated:
            return self._moved(rounded, 1) if self.everywhere else rounded
        return np.asarray(rounded).reshape(value.shape)

    def _shuffled(self, array: Array, dims: tuple[int, ...]) -> Array:
        for dim in dims:
            array = np.take(array, self.random.permutation(array.shape[dim]), axis=dim)
        return array
