"""Quantisation schemes: which integers a type offers, and which scale and zero point map a range of floats onto them.

A quantised number q stands for (q - zero_point) * scale. An *affine* scheme maps [min, max] onto all of the integers; a
*symmetric* one has its zero point in their middle, so that 0 costs nothing in a product. *Per tensor*, one pair of
numbers serves all elements; *per channel*, each slice along one axis has its own. Formulas and names are those of
`torch.ao.quantization`; the scheme is that of Jacob et al. (arXiv:1712.05877).
"""

from __future__ import annotations

from dataclasses import dataclass

from minitorch.dtypes import DType, float32, int8, int32, uint8
from minitorch.errors import QuantizationError
from minitorch.functional.movement.selection import clamp, maximum, minimum
from minitorch.functional.pointwise.comparison import isfinite
from minitorch.functional.pointwise.elementwise import round as rounded
from minitorch.interpreters import current_staging
from minitorch.tensor import Tensor

per_tensor_affine = "per_tensor_affine"
per_tensor_symmetric = "per_tensor_symmetric"
per_channel_affine = "per_channel_affine"
per_channel_symmetric = "per_channel_symmetric"

PER_TENSOR = (per_tensor_affine, per_tensor_symmetric)
PER_CHANNEL = (per_channel_affine, per_channel_symmetric)
SYMMETRIC = (per_tensor_symmetric, per_channel_symmetric)

# The integers of each type, and those of its reduced range, of one bit less.
RANGES: dict[DType, tuple[int, int]] = {uint8: (0, 255), int8: (-128, 127)}
REDUCED: dict[DType, tuple[int, int]] = {uint8: (0, 127), int8: (-64, 63)}

EPS = 2.0**-23  # the least scale, float32's distance from 1 to the next number; raising it makes constant data coarser
LARGEST = 3.4028234663852886e38  # the largest number of float32


@dataclass(frozen=True)
class QParams:
    """How numbers are quantised.

    Attributes:
        scale: float32, the distance of two neighbouring numbers; of shape [], or [channels].
        zero_point: int32, the integer that stands for 0.0; of the same shape.
        dtype: uint8 or int8.
        quant_min: the least integer that is used.
        quant_max: the largest one.
        axis: the axis of the channels; None if the whole tensor has one scale.
    """

    scale: Tensor
    zero_point: Tensor
    dtype: DType
    quant_min: int
    quant_max: int
    axis: int | None = None


def integers_of(
    dtype: DType, quant_min: int | None = None, quant_max: int | None = None, name: str = "quantisation"
) -> tuple[int, int]:
    """The least and the largest integer that are used: those of the type, unless others are given; `name` asks.

    Raises:
        QuantizationError: for another type than uint8 and int8, and for a range that does not contain 0 or that the
            type does not hold (``MT702``).

    Example:
        >>> integers_of(uint8), integers_of(int8, -8, 7)
        ((0, 255), (-8, 7))
    """
    if dtype not in RANGES:
        raise QuantizationError(
            "MT702",
            f"{name}: numbers are quantised to uint8 or int8, not to {getattr(dtype, 'name', repr(dtype))}",
            fix="give mt.uint8 or mt.int8",
        )
    low, high = RANGES[dtype]
    least, largest = low if quant_min is None else quant_min, high if quant_max is None else quant_max
    if not least <= 0 <= largest or least == largest:
        raise QuantizationError(
            "MT702",
            f"{name}: the integers from {least} to {largest} do not contain 0 and another number",
            why="0.0 has to be one of the quantised numbers: padding and ReLU make it",
            fix="make quant_min at most 0 and quant_max at least 0",
        )
    if not low <= least <= largest <= high:
        raise QuantizationError(
            "MT702",
            f"{name}: the integers from {least} to {largest} are not all {dtype.name}, which has {low} to {high}",
            fix="use a smaller range, or the other type",
        )
    return least, largest


def choose_qparams(
    low: Tensor,
    high: Tensor,
    dtype: DType = uint8,
    quant_min: int | None = None,
    quant_max: int | None = None,
    *,
    symmetric: bool = False,
    eps: float = EPS,
    axis: int | None = None,
) -> QParams:
    """The scale and zero point that map the range from `low` to `high`, and 0, onto the integers of a type.

    With n the number of integers less 1: an affine scale is (high - low) / n, and a symmetric one
    max(-low, high) / (n / 2). It is at least `eps`. All is float32, as in PyTorch's observers.

    Args:
        low: float32, [] or [channels], the smallest number; 0 takes its place if it is above 0.
        high: the largest number, likewise.
        dtype: uint8 or int8.
        quant_min: the least integer; by default, that of the type.
        quant_max: the largest one.
        symmetric: whether 0 shall be in the middle of the integers.
        eps: the least scale.
        axis: the axis of the channels, for the result.

    Raises:
        QuantizationError: for integers that do not fit (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> found = choose_qparams(mt.tensor(-1.0), mt.tensor(4.1))
        >>> found.scale, found.zero_point
        (tensor(0.0200), tensor(50, dtype=minitorch.int32))
    """
    least, largest = integers_of(dtype, quant_min, quant_max)
    low, high = minimum(low.to(float32), 0.0), maximum(high.to(float32), 0.0)
    steps = float(largest - least)
    if symmetric:
        scale = maximum(maximum(-low, high) / (steps / 2), eps)
        customised = (least, largest) != RANGES[dtype]
        middle = 0 if dtype is int8 else (least + largest) // 2 if customised else 128
        zero_point = (scale * 0).to(int32) + middle
    else:
        scale = maximum((high - low) / steps, eps)
        zero_point = clamp(least - rounded(low / scale).to(int32), least, largest)
    return QParams(scale, zero_point, dtype, least, largest, axis)


def require_finite(name: str, *tensors: Tensor, of: Tensor | None = None) -> None:
    """Refuse NaN and infinities, of what `tensors` are the extremes of; of recorded values nothing is known yet.

    Raises:
        QuantizationError: naming the value (``MT701``).
    """
    if current_staging() is not None:
        return
    for tensor in tensors:
        if not isfinite(tensor).all().item():
            flat = tensor.detach().reshape(-1)
            bad = flat[~isfinite(flat)][0].item()
            raise QuantizationError(
                "MT701",
                f"{name}: {'a NaN' if bad != bad else f'an infinity ({bad})'} in {(tensor if of is None else of).spec}",
                why="no scale maps it to an integer, and every later number would be lost in its range",
                fix="look for the operation that makes it, with mt.debug.check_nan(), or leave this data out",
            )


def require_scale(name: str, low: float, high: float) -> None:
    """Refuse a range of finite numbers whose width overflows float32.

    Raises:
        QuantizationError: naming the range (``MT701``).
    """
    if not high - low <= LARGEST:
        raise QuantizationError(
            "MT701",
            f"{name}: the range from {low:g} to {high:g} is wider than float32 holds",
            why="the scale is that width, divided by the number of integers",
            fix="look for the layer whose numbers explode, or leave this data out",
        )
