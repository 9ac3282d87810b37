"""Activations that are composed of comparisons and selections, as operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from .declaring import Array
from .functions import pointwise


def _elu(x: Array, *, alpha: float, gamma: float) -> Array:
    found: Array = gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))
    return found


def _softplus(x: Array) -> Array:
    found: Array = np.logaddexp(x.dtype.type(0), x)
    return found


def _gate(x: Array) -> Array:
    found: Array = np.clip(x + 3, 0, 6) / 6
    return found


def _clip(x: Array, *, low: float, high: float) -> Any:
    return np.minimum(np.maximum(x, low), high)


clip = pointwise("clip", _clip, "the nearest number from low to high")
elu = pointwise("elu", _elu, "gamma * x above 0, and below it gamma * alpha * (e**x - 1)")
hardsigmoid = pointwise("hardsigmoid", _gate, "clip(x + 3, 0, 6) / 6")
hardswish = pointwise("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, "x * hardsigmoid(x)")
leaky_relu = pointwise(
    "leaky_relu", lambda x, *, slope: np.where(x > 0, x, x * x.dtype.type(slope)), "x above 0, and slope * x below it"
)
mish = pointwise("mish", lambda x: x * np.tanh(_softplus(x)), "x * tanh(softplus(x))")
softplus = pointwise("softplus", _softplus, "log(1 + e**x)")
softsign = pointwise("softsign", lambda x: x / (1 + np.abs(x)), "x / (1 + |x|)")
