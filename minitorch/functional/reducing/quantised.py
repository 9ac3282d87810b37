"""Floats as integers of few bits: the arithmetic of quantising, for `minitorch.quantization` and for ONNX's operators.

    quantise    q = cast(clamp(round(x / scale) + zero_point, least, largest))
    dequantise  y = (cast(q) - zero_point) * scale

Rounding is to the nearest, of two equally near ones to the even one, and x / scale is x * (1 / scale), as in PyTorch.
The clamp makes `largest` of NaN. All of these are tensors: float32 numbers, and scales and zero points that broadcast.
"""

from __future__ import annotations

from ... import primitives as P
from ...dtypes import DType, float32
from ...tensor import Tensor
from ..movement.selection import maximum

# 1.5 * 2**23: float32 has only whole numbers around it, so adding and subtracting it rounds. Exact up to 2**22, and
# monotone beyond, where `least` or `largest` replaces the number anyway.
TO_WHOLE = 12582912.0
LEAST_SCALE = 2.0**-126  # the least normal number; no observer gives a scale below it


def positive(scale: Tensor) -> Tensor:
    """Return a scale that a graph shows to be above 0, so that a maximum may move across rounding."""
    return maximum(scale, LEAST_SCALE)


def to_whole(x: Tensor, scale: Tensor) -> Tensor:
    """Return ``round(x / scale)``, with halves to the even number."""
    return (x.to(float32) * (1.0 / scale) + TO_WHOLE) - TO_WHOLE


def clamped(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the number moved into the range; of NaN, `high`."""
    x = P.maximum(x, low)
    return P.where(P.less(x, high), x, high)


def bounds(zero_point: Tensor, least: int, largest: int) -> tuple[Tensor, Tensor]:
    """Return the least and the largest number, in units of the scale, measured from the zero point."""
    zero = zero_point.to(float32)
    return least - zero, largest - zero


def quantised(x: Tensor, scale: Tensor, zero_point: Tensor, least: int, largest: int, dtype: DType) -> Tensor:
    """Return numbers as integers of a type of up to 16 bits."""
    inside = clamped(to_whole(x, scale), *bounds(zero_point, least, largest))
    return P.cast(inside + zero_point.to(float32), dtype=dtype)


def dequantised(q: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    """Return the float32 numbers that integers stand for."""
    return (P.cast(q, dtype=float32) - zero_point.to(float32)) * scale
