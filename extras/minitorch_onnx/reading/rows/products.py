"""Products: matrices, convolutions and their transposes, and quantised ones."""

from __future__ import annotations

from typing import Any

import minitorch as mt
from minitorch import primitives as P
from minitorch.dtypes import DType, float32, float64, int32, uint8
from minitorch.functional.movement.parts import part
from minitorch.functional.operands import operand, to_dtype
from minitorch.functional.options import wrap_dim
from minitorch.functional.reducing.quantised import dequantised, positive, quantised
from minitorch.interpreters import current_staging
from minitorch.nn import functional as F
from minitorch.tensor import Tensor

from ...common import TYPES
from ..decoding.limits import refuse, shape_of
from ..program import Row
from ..running import Call
from .checks import padded

CONVOLUTIONS = (F.conv1d, F.conv2d, F.conv3d)


def pads_of(call: Call, lengths: Any, size: Any, stride: Any, apart: Any) -> list[tuple[int, int]]:
    """The padding before and after each dimension, as ``auto_pad`` or ``pads`` say."""
    auto, n = call["auto_pad"], len(lengths)
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        found = []
        for length, k, by, d in zip(lengths, size, stride, apart, strict=True):
            more = max((-(-length // by) - 1) * by + (k - 1) * d + 1 - length, 0)
            small = more // 2
            found.append((small, more - small) if auto == "SAME_UPPER" else (more - small, small))
        return found
    given = call["pads"] or [0] * (2 * n)
    if len(given) != 2 * n:
        refuse(f"{len(given)} amounts of padding for {n} dimensions")
    return list(zip(given[:n], given[n:], strict=True)) if auto in (None, "NOTSET") else [(0, 0)] * n


def per_dimension(call: Call, name: str, n: int) -> list[int]:
    """An attribute with a number for each dimension, 1 by default."""
    found = call[name] or [1] * n
    if len(found) != n or min(found) < 1:
        refuse(f"its {name} are {found}, for {n} dimensions")
    return list(found)


def _gemm(call: Call, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    a = mt.transpose(a, 0, 1) if call["transA"] else a
    alpha, beta = call["alpha"], call["beta"]
    if call["transB"] and alpha == beta == 1 and c is not None and c.ndim == 1:
        return F.linear(a, b, c)
    found = mt.matmul(a, mt.transpose(b, 0, 1) if call["transB"] else b)
    if alpha != 1:
        found = to_dtype(found * alpha, a.dtype)
    if c is None or beta == 0:
        return found
    return found + (c if beta == 1 else to_dtype(c * beta, c.dtype))


def _conv(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    n = weight.ndim - 2
    if x.ndim != weight.ndim or not 1 <= n <= 3:
        refuse(f"a convolution of {x.spec} with {weight.spec}")
    stride, apart = per_dimension(call, "strides", n), per_dimension(call, "dilations", n)
    pairs = pads_of(call, x.shape[2:], weight.shape[2:], stride, apart)
    if all(before == after >= 0 for before, after in pairs):
        return CONVOLUTIONS[n - 1](x, weight, bias, stride, [before for before, _ in pairs], apart, call["group"])
    return CONVOLUTIONS[n - 1](padded(call, x, pairs), weight, bias, stride, 0, apart, call["group"])


def _conv_transpose(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The gradient of a convolution: one of the operand with zeros between its elements, and the filters turned."""
    n, groups = weight.ndim - 2, call["group"]
    if x.ndim != weight.ndim or not 1 <= n <= 3 or groups < 1 or weight.shape[0] % groups:
        refuse(f"a transposed convolution of {x.spec} with {weight.spec} in {groups} groups")
    stride, apart = per_dimension(call, "strides", n), per_dimension(call, "dilations", n)
    more = call["output_padding"] or [0] * n
    if len(more) != n or min(more) < 0 or len(call["output_shape"] or more) < n:
        refuse(f"its output_padding is {more}, its output_shape {call['output_shape']}, for {n} dimensions")
    wide = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], apart, strict=True)]
    lengths = [(length - 1) * by + k + e for length, by, k, e in zip(x.shape[2:], stride, wide, more, strict=True)]
    auto = call["auto_pad"] in ("SAME_UPPER", "SAME_LOWER")
    wanted = call["output_shape"] or (
        [length * by for length, by in zip(x.shape[2:], stride, strict=True)] if auto else None
    )
    if wanted is not None:
        total = [length - each for length, each in zip(lengths, wanted[-n:], strict=True)]
        upper = call["auto_pad"] == "SAME_UPPER"
        cut = [(each // 2, each - each // 2) if upper else (each - each // 2, each // 2) for each in total]
    else:
        cut = pads_of(call, x.shape[2:], weight.shape[2:], stride, apart)
    depth = weight.shape[0] // groups
    turned = mt.reshape(weight, (groups, depth, *weight.shape[1:]))
    turned = mt.reshape(mt.transpose(turned, 1, 2), (groups * weight.shape[1], depth, *weight.shape[2:]))
    turned = mt.flip(turned, list(range(2, 2 + n)))
    between = tuple([(0, 0, by - 1) for by in stride])
    shape_of(call.op, [length + k for length, k in zip(lengths, wide, strict=True)])
    spread = P.pad(x, padding=((0, 0, 0), (0, 0, 0), *between), value=0)
    ends = [(k - 1 - before, k - 1 - after + e) for k, (before, after), e in zip(wide, cut, more, strict=True)]
    return CONVOLUTIONS[n - 1](padded(call, spread, ends), turned, bias, 1, 0, apart, groups)


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


def _matmul_integer(
    call: Call, a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None
) -> Tensor:
    found = mt.matmul(shifted(a, a_zero, a.ndim - 2), shifted(b, b_zero, b.ndim - 1))
    return to_dtype(found, int32)


def _conv_integer(
    call: Call, x: Tensor, w: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None
) -> Tensor:
    return to_dtype(_conv(call, shifted(x, x_zero, 1), shifted(w, w_zero, 0)), int32)


# Floats and integers ----------------------------------------------------------------------------------------


def _blocks(call: Call, scale: Tensor, x: Tensor) -> Tensor:
    """A scale or zero point in a shape that broadcasts: per tensor, per channel, or per block along the axis."""
    if scale.numel() == 1:
        return mt.reshape(scale, ())
    axis = wrap_dim(call["axis"] if call["axis"] is not None else 1, x.ndim)
    size = call["block_size"]
    if not size or scale.ndim != x.ndim:
        return along(scale, x.ndim, axis)
    shape = list(scale.shape)
    wide = mt.reshape(scale, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    wide = P.expand(wide, shape=(*shape[: axis + 1], size, *shape[axis + 1 :]))
    shape[axis] *= size
    return part(mt.reshape(wide, shape), axis, 0, x.shape[axis])


def _quantised_by_range(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """By the range of the data and 0; of zeros alone, the scale is 1."""
    low, high = mt.clamp(mt.amin(x), max=0.0), mt.clamp(mt.amax(x), min=0.0)
    width = high - low
    scale = mt.where(width == 0.0, 1.0, width / 255.0)
    zero = mt.clamp(mt.round(-low / scale), 0.0, 255.0)
    return to_dtype(mt.clamp(mt.round(x / scale) + zero, 0.0, 255.0), uint8), scale, to_dtype(zero, uint8)


def rounded_to_8_bits(x: Tensor) -> Tensor:
    """The numbers that DynamicQuantizeLinear makes integers of, as floats again."""
    integers, scale, zero = _quantised_by_range(x)
    return dequantised(integers, scale, zero)


def _quantize(call: Call, x: Tensor, scale: Tensor, zero_point: Tensor | None = None) -> Tensor:
    """As this library's own quantisation, so that its passes make integer products of models that others quantised.

    It multiplies with the reciprocal of the scale, and so may make another integer of a number next to a tie.
    """
    dtype: DType = zero_point.dtype if zero_point is not None else TYPES[call["output_dtype"] or 2]
    units, limits = _blocks(call, positive(to_dtype(scale, float32)), x), mt.iinfo(dtype)
    zero = operand(0.0, float32) if zero_point is None else _blocks(call, to_dtype(zero_point, float32), x)
    return quantised(x, units, zero, limits.min, limits.max, dtype)


def _dequantize(call: Call, x: Tensor, scale: Tensor, zero_point: Tensor | None = None) -> Tensor:
    units = _blocks(call, positive(to_dtype(scale, float32)), x)
    if zero_point is None:
        return to_dtype(to_dtype(x, float32) * units, scale.dtype)
    return to_dtype(dequantised(x, units, _blocks(call, to_dtype(zero_point, float32), x)), scale.dtype)


ROWS: dict[str, Row] = {
    "Conv": Row(_conv),
    "ConvInteger": Row(_conv_integer),
    "ConvTranspose": Row(_conv_transpose),
    "DequantizeLinear": Row(_dequantize, untrained=(1,)),
    "DynamicQuantizeLinear": Row(lambda call, x: _quantised_by_range(x)),
    "Einsum": Row(lambda call, *xs: mt.einsum(call["equation"], *xs)),
    "Gemm": Row(_gemm),
    "MatMul": Row(lambda call, a, b: mt.matmul(a, b)),
    "MatMulInteger": Row(_matmul_integer),
    "QuantizeLinear": Row(_quantize, untrained=(1,), types=("output_dtype",)),
}
