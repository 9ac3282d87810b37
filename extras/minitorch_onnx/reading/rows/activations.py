"""Activation functions, and softmax over an axis."""

from __future__ import annotations

import math
from collections.abc import Callable

from minitorch.functional.arithmetic import mul
from minitorch.functional.comparison import eq, gt, lt
from minitorch.functional.creation import arange
from minitorch.functional.elementwise import expm1, sigmoid
from minitorch.functional.extremes import argmax
from minitorch.functional.operands import to_dtype, widened
from minitorch.functional.selection import clamp, maximum, minimum, where
from minitorch.functional.shaping import reshape, unsqueeze
from minitorch.nn import functional as F
from minitorch.tensor import Tensor

from ..limits import refuse
from ..program import Row
from ..running import Call
from .checks import dimension
from .table import plain


def _elu(call: Call, x: Tensor) -> Tensor:
    return F.elu(x, call["alpha"])


def _celu(call: Call, x: Tensor) -> Tensor:
    """``max(0, x) + min(0, alpha * (e**(x / alpha) - 1))`` (Barron, arXiv:1704.07483)."""
    alpha = call["alpha"]
    bent = widened(lambda each: expm1(each / alpha) * alpha)(minimum(x, 0.0))
    return maximum(x, 0.0) + minimum(bent, 0.0)


def _selu(call: Call, x: Tensor) -> Tensor:
    gamma: float = call["gamma"]
    return F.elu(x, call["alpha"]) * gamma


def _gelu(call: Call, x: Tensor) -> Tensor:
    return F.gelu(x, call["approximate"])


def _leaky_relu(call: Call, x: Tensor) -> Tensor:
    return F.leaky_relu(x, call["alpha"])


def _prelu(call: Call, x: Tensor, slope: Tensor) -> Tensor:
    return where(lt(x, 0), mul(x, slope), x)


def _thresholded_relu(call: Call, x: Tensor) -> Tensor:
    return where(gt(x, call["alpha"]), x, 0.0)


def _hard_sigmoid(call: Call, x: Tensor) -> Tensor:
    return clamp(x * call["alpha"] + call["beta"], 0.0, 1.0)


def _swish(call: Call, x: Tensor) -> Tensor:
    return F.silu(x) if call["alpha"] == 1 else x * sigmoid(x * call["alpha"])


def _shrink(call: Call, x: Tensor) -> Tensor:
    """Numbers within ``-lambd ... lambd`` become 0, others move towards it by ``bias``."""
    lambd, bias = call["lambd"], call["bias"]
    moved = where(gt(x, lambd), x - bias, 0) if bias else where(gt(x, lambd), x, 0)
    return to_dtype(where(lt(x, -lambd), x + bias if bias else x, moved), x.dtype)


def _normalized(function: Callable[[Tensor, int], Tensor]) -> Row:
    """Along an axis; before opset 13, along all axes from it on as one."""

    def apply(call: Call, x: Tensor) -> Tensor:
        if call.version >= 13:
            return function(x, dimension(call["axis"], x.ndim))
        axis = call["axis"] + x.ndim if call["axis"] < 0 else call["axis"]
        if not 0 <= axis <= x.ndim:
            refuse(f"{x.spec} has no axis {call['axis']}")
        flat = reshape(x, (*x.shape[:axis], math.prod(x.shape[axis:])))
        return reshape(function(flat, axis), x.shape)

    return Row(apply)


def _hardmax(x: Tensor, axis: int) -> Tensor:
    """1 for the first largest element along the axis, 0 elsewhere."""
    places = reshape(arange(x.shape[axis]), (-1, *(1,) * (x.ndim - axis - 1)))
    return to_dtype(eq(places, unsqueeze(argmax(x, axis), axis)), x.dtype)


ROWS: dict[str, Row] = {
    **plain({"HardSwish": F.hardswish, "Mish": F.mish, "Relu": F.relu, "Softplus": F.softplus, "Softsign": F.softsign}),
    "Celu": Row(_celu),
    "Elu": Row(_elu),
    "Gelu": Row(_gelu),
    "HardSigmoid": Row(_hard_sigmoid),
    "Hardmax": _normalized(_hardmax),
    "LeakyRelu": Row(_leaky_relu),
    "LogSoftmax": _normalized(F.log_softmax),
    "PRelu": Row(_prelu),
    "Selu": Row(_selu),
    "Shrink": Row(_shrink),
    "Softmax": _normalized(F.softmax),
    "Swish": Row(_swish),
    "ThresholdedRelu": Row(_thresholded_relu),
}
