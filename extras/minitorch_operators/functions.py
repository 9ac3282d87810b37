"""Activations and normalisations as operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.ir import Primitive, Spec
from minitorch.primitives.erf import erf

from .declaring import Array, declare, refuse, widened


def _same(x: Spec, **params: Any) -> Spec:
    if not x.dtype.is_floating_point:
        refuse("an operator of floats", x)
    return x


def pointwise(name: str, formula: Any, doc: str) -> Primitive:
    """Declare a function of floats, element by element; 16-bit floats are computed in float32."""

    def evaluate(x: Array, **params: Any) -> Any:
        return np.asarray(formula(widened(x), **params)).astype(x.dtype)

    return declare(name, _same, evaluate, doc)


def logistic(x: Array) -> Array:
    """1 / (1 + e**-x)."""
    z = np.exp(-np.abs(x))
    found: Array = np.where(x < 0, z, 1) / (1 + z)
    return found


def _gelu(x: Array, *, approximate: str) -> Array:
    if approximate == "tanh":
        bent = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
    else:
        bent = erf(x * x.dtype.type(math.sqrt(0.5)))
    found: Array = x * 0.5 * (1 + bent)
    return found


def _softmax(x: Array, *, dim: int) -> Array:
    z = np.exp(x - np.max(x, axis=dim, keepdims=True))
    found: Array = z / np.sum(z, axis=dim, keepdims=True)
    return found


def _log_softmax(x: Array, *, dim: int) -> Array:
    shifted = x - np.max(x, axis=dim, keepdims=True)
    found: Array = shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))
    return found


relu = declare("relu", _same, lambda x: np.where(x <= 0, x.dtype.type(0), x), "the larger of x and 0")
sigmoid = pointwise("sigmoid", logistic, "1 / (1 + e**-x)")
silu = pointwise("silu", lambda x: x * logistic(x), "x * sigmoid(x)")
gelu = pointwise("gelu", _gelu, "x times the probability that a normal variable is below x")
softmax = pointwise("softmax", _softmax, "e**x, divided by its sum over a dimension")
log_softmax = pointwise("log_softmax", _log_softmax, "the logarithm of softmax")
signbit = declare(
    "signbit", lambda x: Spec(_same(x).shape, dtypes.bool_), np.signbit, "whether a number, or a zero, has a minus sign"
)


# Normalisations -------------------------------------------------------------------------------------------


def _infer_last(name: str) -> Any:
    def infer(x: Spec, *parameters: Spec, last: int, eps: float) -> Spec:
        if not 1 <= last <= x.ndim or any(each.shape != x.shape[-last:] for each in parameters):
            refuse(name, x, *parameters)
        return x

    return infer


def _layer_norm(x: Array, *parameters: Array, last: int, eps: float) -> Array:
    over, wide = tuple(range(-last, 0)), widened(x)
    centered = wide - np.mean(wide, axis=over, keepdims=True)
    found = centered / np.sqrt(np.mean(centered * centered, axis=over, keepdims=True) + wide.dtype.type(eps))
    for apply, each in zip((np.multiply, np.add), parameters, strict=False):
        found = apply(found, each)
    return np.asarray(found).astype(x.dtype)


def _rms_norm(x: Array, *parameters: Array, last: int, eps: float) -> Array:
    over, wide = tuple(range(-last, 0)), widened(x)
    found = wide / np.sqrt(np.mean(wide * wide, axis=over, keepdims=True) + wide.dtype.type(eps))
    for each in parameters:
        found = found * each
    return np.asarray(found).astype(x.dtype)


layer_norm = declare(
    "layer_norm",
    _infer_last("layer_norm"),
    _layer_norm,
    "mean 0 and variance 1 over so many last dimensions; then * weight, and + bias",
)
rms_norm = declare(
    "rms_norm", _infer_last("rms_norm"), _rms_norm, "mean square 1 over so many last dimensions; then * weight"
)


def _infer_group_norm(x: Spec, *parameters: Spec, groups: int, eps: float) -> Spec:
    if x.ndim < 2 or groups < 1 or x.shape[1] % groups or any(each.shape != x.shape[1:2] for each in parameters):
        refuse("group_norm", x, *parameters)
    return x


def _group_norm(x: Array, weight: Array, bias: Array, *, groups: int, eps: float) -> Array:
    grouped = _layer_norm(widened(x).reshape(x.shape[0], groups, -1), last=1, eps=eps).reshape(x.shape)
    along = (-1, *(1,) * (x.ndim - 2))
    return np.asarray(grouped * weight.reshape(along) + bias.reshape(along)).astype(x.dtype)


group_norm = declare(
    "group_norm",
    _infer_group_norm,
    _group_norm,
    "mean 0 and variance 1 over groups of channels; then * weight + bias for each channel",
)


def _infer_batch_norm(x: Spec, *parameters: Spec, eps: float) -> Spec:
    if x.ndim < 2 or len(parameters) != 4 or any(each.shape != x.shape[1:2] for each in parameters):
        refuse("batch_norm", x, *parameters)
    return x


def _batch_norm(x: Array, *parameters: Array, eps: float) -> Array:
    weight, bias, mean, var = (each.reshape(-1, *(1,) * (x.ndim - 2)) for each in parameters)
    found = (x - mean) / np.sqrt(var + var.dtype.type(eps)) * weight + bias
    return np.asarray(found).astype(x.dtype)


batch_norm = declare(
    "batch_norm",
    _infer_batch_norm,
    _batch_norm,
    "(x - mean) / sqrt(var + eps) * weight + bias for each channel; operands x, weight, bias, mean, var",
)
