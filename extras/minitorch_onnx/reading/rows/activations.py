"""Activation functions, and softmax over an axis."""

from __future__ import annotations

import math
from collections.abc import Callable

import minitorch as mt
from minitorch.functional.operands import to_dtype, widened
from minitorch.nn import functional as F
from minitorch.tensor import Tensor

from ..limits import refuse
from ..program import Row
from ..running import Call
from .checks import dimension
from .table import plain


def _celu(call: Call, x: Tensor) -> Tensor:
    """``max(0, x) + min(0, alpha * (e**(x / alpha) - 1))`` (Barron, arXiv:1704.07483)."""
    alpha = call["alpha"]
    bent = widened(lambda each: mt.expm1(each / alpha) * alpha)(mt.minimum(x, 0.0))
    return mt.maximum(x, 0.0) + mt.minimum(bent, 0.0)


def _shrink(call: Call, x: Tensor) -> Tensor:
    """Numbers within ``-lambd ... lambd`` become 0, others move towards it by ``bias``."""
    lambd, bias = call["lambd"], call["bias"]
    moved = mt.where(mt.gt(x, lambd), x - bias, 0) if bias else mt.where(mt.gt(x, lambd), x, 0)
    return to_dtype(mt.where(mt.lt(x, -lambd), x + bias if bias else x, moved), x.dtype)


def _normalized(function: Callable[[Tensor, int], Tensor]) -> Row:
    """Along an axis; before opset 13, along all axes from it on as one."""

    def apply(call: Call, x: Tensor) -> Tensor:
        if call.version >= 13:
            return function(x, dimension(call["axis"], x.ndim))
        axis = call["axis"] + x.ndim if call["axis"] < 0 else call["axis"]
        if not 0 <= axis <= x.ndim:
            refuse(f"{x.spec} has no axis {call['axis']}")
        flat = mt.reshape(x, (*x.shape[:axis], math.prod(x.shape[axis:])))
        return mt.reshape(function(flat, axis), x.shape)

    return Row(apply)


def _hardmax(x: Tensor, axis: int) -> Tensor:
    """1 for the first largest element along the axis, 0 elsewhere."""
    places = mt.reshape(mt.arange(x.shape[axis]), (-1, *(1,) * (x.ndim - axis - 1)))
    return to_dtype(mt.eq(places, mt.unsqueeze(mt.argmax(x, axis), axis)), x.dtype)


ROWS: dict[str, Row] = {
    **plain({"HardSwish": F.hardswish, "Mish": F.mish, "Relu": F.relu, "Softplus": F.softplus, "Softsign": F.softsign}),
    "Celu": Row(_celu),
    "Elu": Row(lambda call, x: F.elu(x, call["alpha"])),
    "Gelu": Row(lambda call, x: F.gelu(x, call["approximate"])),
    "HardSigmoid": Row(lambda call, x: mt.clamp(x * call["alpha"] + call["beta"], 0.0, 1.0)),
    "Hardmax": _normalized(_hardmax),
    "LeakyRelu": Row(lambda call, x: F.leaky_relu(x, call["alpha"])),
    "LogSoftmax": _normalized(F.log_softmax),
    "PRelu": Row(lambda call, x, slope: mt.where(mt.lt(x, 0), mt.mul(x, slope), x)),
    "Selu": Row(lambda call, x: F.elu(x, call["alpha"]) * call["gamma"]),
    "Shrink": Row(_shrink),
    "Softmax": _normalized(F.softmax),
    "Swish": Row(lambda call, x: F.silu(x) if call["alpha"] == 1 else x * mt.sigmoid(x * call["alpha"])),
    "ThresholdedRelu": Row(lambda call, x: mt.where(mt.gt(x, call["alpha"]), x, 0.0)),
}
