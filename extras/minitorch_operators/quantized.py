"""Quantise and dequantise as operators: ONNX's QuantizeLinear and DequantizeLinear.

    quantize    clamp(round(x / scale) + zero_point), to the nearest, of two equally near ones to the even integer
    dequantize  (q - zero_point) * scale

The scale and the zero point are scalars, or vectors along a dimension.
"""

from __future__ import annotations

import numpy as np

from minitorch import dtypes
from minitorch.ir import Spec

from .declaring import Array, declare, refuse

_INTEGERS = (dtypes.int8, dtypes.uint8, dtypes.int32)


def _check(name: str, x: Spec, scale: Spec, zero: Spec, dim: int) -> None:
    fits = scale.shape == () or (0 <= dim < x.ndim and scale.shape == x.shape[dim : dim + 1])
    if not fits or zero.shape != scale.shape or scale.dtype is not dtypes.float32 or zero.dtype not in _INTEGERS:
        refuse(name, x, scale, zero)


def _infer_quantize(x: Spec, scale: Spec, zero: Spec, *, dim: int) -> Spec:
    _check("quantize", x, scale, zero, dim)
    return Spec(x.shape, zero.dtype)


def _infer_dequantize(x: Spec, scale: Spec, zero: Spec, *, dim: int) -> Spec:
    _check("dequantize", x, scale, zero, dim)
    if x.dtype is not zero.dtype:
        refuse("dequantize", x, zero)
    return Spec(x.shape, dtypes.float32)


def _along(values: Array, x: Array, dim: int) -> Array:
    return values.reshape(-1, *(1,) * (x.ndim - dim - 1)) if values.ndim else values


def _quantize(x: Array, scale: Array, zero: Array, *, dim: int) -> Array:
    ends = np.iinfo(zero.dtype)
    units = np.rint(x * (np.float32(1) / _along(scale, x, dim))) + _along(zero, x, dim).astype(np.float32)
    found: Array = np.clip(np.nan_to_num(units, nan=float(ends.max)), ends.min, ends.max).astype(zero.dtype)
    return found


def _dequantize(x: Array, scale: Array, zero: Array, *, dim: int) -> Array:
    centered = x.astype(np.float32) - _along(zero, x, dim).astype(np.float32)
    return np.asarray(centered * _along(scale, x, dim), np.float32)


quantize = declare("quantize", _infer_quantize, _quantize, "floats as integers, by a scale and a zero point")
dequantize = declare("dequantize", _infer_dequantize, _dequantize, "the floats that integers stand for")
