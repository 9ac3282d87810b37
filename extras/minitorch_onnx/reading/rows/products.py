"""Products: matrices, convolutions and their transposes, and quantised ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import minitorch as mt
from minitorch import primitives as P
from minitorch.dtypes import DType, float32, float64, int32, uint8
from minitorch.functional.movement.parts import part
from minitorch.functional.operands import operand, to_dtype
from minitorch.functional.options import wrap_dim
from minitorch.functional.pointwise.casting import contiguous
from minitorch.functional.reducing.quantised import dequantised, positive, quantised
from minitorch.interpreters import current_staging
from minitorch.nn import functional as F
from minitorch.nn.functional.convolution import input_gradient
from minitorch.tensor import Tensor

from ..decoding.limits import require, shape_of
from ..program import Row
from ..running import Call
from .checks import padded

CONVOLUTIONS = (F.conv1d, F.conv2d, F.conv3d)
Pairs = list[tuple[int, int]]


class Sliding(NamedTuple):
    """How windows or filters slide: of each dimension their size, their step, the distance of elements, the padding."""

    size: list[int]
    stride: list[int]
    apart: list[int]
    pads: Pairs


def sliding(call: Call, x: Tensor, size: Sequence[int]) -> Sliding:
    """Return the geometry that the attributes ``strides``, ``dilations``, and ``auto_pad`` or ``pads`` give.

    Raises:
        OnnxError: if there are not as many numbers as dimensions, or lengths below 1 (``MT801``).
    """
    lengths, given = x.shape[2:], call.step.attributes
    n = len(lengths)
    wanted = {"kernel_shape": size, "strides": given["strides"], "dilations": given.get("dilations")}
    found = {name: list(numbers or [1] * n) for name, numbers in wanted.items()}
    for name, numbers in found.items():
        require(len(numbers) == n and min(numbers) >= 1, "its {} are {}, for {} dimensions", name, numbers, n)
    auto, pads = given["auto_pad"], given["pads"] or [0] * (2 * n)
    pairs: Pairs = []
    for length, k, by, d in zip(lengths, *found.values(), strict=True):
        pairs.append(_shared(max((-(-length // by) - 1) * by + (k - 1) * d + 1 - length, 0), auto == "SAME_UPPER"))
    if auto in (None, "NOTSET"):
        require(len(pads) == 2 * n, "{} amounts of padding for {} dimensions", len(pads), n)
        pairs = list(zip(pads[:n], pads[n:], strict=True))
    size, stride, apart = found.values()
    return Sliding(size, stride, apart, [(0, 0)] * n if auto == "VALID" else pairs)


def _shared(amount: int, more_after: bool) -> tuple[int, int]:
    """An amount before and after; an odd one is larger at one of the ends."""
    small = amount // 2
    return (small, amount - small) if more_after else (amount - small, small)


def Gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float, beta: float, transA: int, transB: int
) -> Tensor:
    a = mt.transpose(a, 0, 1) if transA else a
    if transB and alpha == beta == 1 and c is not None and c.ndim == 1:
        return F.linear(a, b, c)
    found = mt.matmul(a, mt.transpose(b, 0, 1) if transB else b)
    found = found if alpha == 1 else to_dtype(found * alpha, a.dtype)
    if c is None or beta == 0:
        return found
    return found + (c if beta == 1 else to_dtype(c * beta, c.dtype))


def Conv(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, group: int, call: Call) -> Tensor:
    n = weight.ndim - 2
    require(x.ndim == weight.ndim and 1 <= n <= 3, "a convolution of {} with {}", x.spec, weight.spec)
    at = sliding(call, x, weight.shape[2:])
    is_even = all(before == after >= 0 for before, after in at.pads)
    x, pads = (x, [before for before, _ in at.pads]) if is_even else (padded(x, at.pads), [0] * n)
    return CONVOLUTIONS[n - 1](x, weight, bias, at.stride, pads, at.apart, group)


def ConvTranspose(
    x: Tensor, weight: Tensor, bias: Tensor | None = None,
    *, group: int, output_padding: list[int] | None, output_shape: list[int] | None, auto_pad: str, call: Call,
) -> Tensor:  # fmt: skip
    """The gradient of a convolution by its input."""
    n = weight.ndim - 2
    fits = x.ndim == weight.ndim and 1 <= n <= 3 and group >= 1 and x.shape[1] == weight.shape[0]
    fits = fits and weight.shape[0] % group == 0 and 0 not in weight.shape
    require(fits, "a transposed convolution of {} with {} in {} groups", x.spec, weight.spec, group)
    at, more = sliding(call, x, weight.shape[2:]), output_padding or [0] * n
    fits = len(more) == n and min(more) >= 0 and len(output_shape or more) >= n
    require(fits, "its output_padding is {}, its output_shape {}, for {} dimensions", more, output_shape, n)
    each = zip(x.shape[2:], at.stride, at.size, at.apart, more, strict=True)
    lengths = [(length - 1) * by + (k - 1) * d + 1 + extra for length, by, k, d, extra in each]
    cut, wanted = at.pads, output_shape
    if wanted is None and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [length * by for length, by in zip(x.shape[2:], at.stride, strict=True)]
    if wanted is not None:
        new = zip(lengths, wanted[-n:], strict=True)
        cut = [_shared(length - length_wanted, auto_pad == "SAME_UPPER") for length, length_wanted in new]
    lengths = [length - before - after for length, (before, after) in zip(lengths, cut, strict=True)]
    shape = shape_of([x.shape[0], group * weight.shape[1], *lengths])
    require(min(lengths) > 0, "a result of the shape {}", list(shape))
    found = input_gradient(x, shape, weight, at.stride, cut, at.apart, group)
    return contiguous(found) if bias is None else found + mt.reshape(bias, (-1, *(1,) * n))


# Integers ---------------------------------------------------------------------------------------------------


def shifted(x: Tensor, zero_point: Tensor | None, axis: int) -> Tensor:
    """Integers less their zero point, as floats: float64 is exact for sums of up to 2**37 products of 8 bits.

    In a graph it is float32, of which the passes make products of integers.
    """
    wide = to_dtype(x, float64 if current_staging() is None else float32)
    return wide if zero_point is None else wide - along(to_dtype(zero_point, wide.dtype), x.ndim, axis)


def along(x: Tensor, ndim: int, axis: int) -> Tensor:
    """One number, or one for each place along an axis, in a shape that broadcasts."""
    if x.numel() == 1:
        return mt.reshape(x, ())
    return x if x.ndim != 1 else mt.reshape(x, [-1 if dim == axis else 1 for dim in range(ndim)])


def MatMulInteger(a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None) -> Tensor:
    return to_dtype(mt.matmul(shifted(a, a_zero, a.ndim - 2), shifted(b, b_zero, b.ndim - 1)), int32)


def ConvInteger(
    x: Tensor, w: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None, *, group: int, call: Call
) -> Tensor:
    return to_dtype(Conv(shifted(x, x_zero, 1), shifted(w, w_zero, 0), group=group, call=call), int32)


# Floats and integers ----------------------------------------------------------------------------------------


def _blocks(scale: Tensor, x: Tensor, axis: int | None, size: int | None) -> Tensor:
    """A scale or zero point in a shape that broadcasts: per tensor, per channel, or per block along the axis."""
    if scale.numel() == 1:
        return mt.reshape(scale, ())
    axis = wrap_dim(1 if axis is None else axis, x.ndim)
    if not size or scale.ndim != x.ndim:
        return along(scale, x.ndim, axis)
    shape = list(scale.shape)
    wide = mt.reshape(scale, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    wide = P.expand(wide, shape=(*shape[: axis + 1], size, *shape[axis + 1 :]))
    shape[axis] *= size
    return part(mt.reshape(wide, shape), axis, 0, x.shape[axis])


def DynamicQuantizeLinear(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """By the range of the data and 0; of zeros alone, the scale is 1."""
    low, high = mt.clamp(mt.amin(x), max=0.0), mt.clamp(mt.amax(x), min=0.0)
    width = high - low
    scale = mt.where(width == 0.0, 1.0, width / 255.0)
    zero = mt.clamp(mt.round(-low / scale), 0.0, 255.0)
    return to_dtype(mt.clamp(mt.round(x / scale) + zero, 0.0, 255.0), uint8), scale, to_dtype(zero, uint8)


def rounded_to_8_bits(x: Tensor) -> Tensor:
    """The numbers that DynamicQuantizeLinear makes integers of, as floats again."""
    integers, scale, zero = DynamicQuantizeLinear(x)
    return dequantised(integers, scale, zero)


def _quantize(
    x: Tensor, scale: Tensor, zero_point: Tensor | None = None,
    *, axis: int | None, block_size: int | None = None, output_dtype: DType | None = None,
) -> Tensor:  # fmt: skip
    """As this library's own quantisation, so that its passes make integer products of models that others quantised.

    It multiplies with the reciprocal of the scale, and so may make another integer of a number next to a tie.
    """
    dtype = zero_point.dtype if zero_point is not None else output_dtype or uint8
    limits, zero = mt.iinfo(dtype), operand(0.0, float32) if zero_point is None else to_dtype(zero_point, float32)
    units, zero = (_blocks(each, x, axis, block_size) for each in (positive(to_dtype(scale, float32)), zero))
    return quantised(x, units, zero, limits.min, limits.max, dtype)


def _dequantize(
    x: Tensor, scale: Tensor, zero_point: Tensor | None = None, *, axis: int | None, block_size: int | None = None
) -> Tensor:
    units = _blocks(positive(to_dtype(scale, float32)), x, axis, block_size)
    if zero_point is None:
        return to_dtype(to_dtype(x, float32) * units, scale.dtype)
    zero = _blocks(to_dtype(zero_point, float32), x, axis, block_size)
    return to_dtype(dequantised(x, units, zero), scale.dtype)


ROWS: dict[str, Row | Callable[..., Any]] = {
    "DequantizeLinear": Row(_dequantize, untrained=(1,)),
    "Einsum": lambda *xs, equation: mt.einsum(equation, *xs),
    "QuantizeLinear": Row(_quantize, untrained=(1,)),
}
