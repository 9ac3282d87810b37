"""Element by element: arithmetic, comparisons, bits, conversions between types, activations; softmax over an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import minitorch as mt
from minitorch.functional.movement.shaping import view
from minitorch.functional.operands import to_dtype, widened
from minitorch.nn import functional as F
from minitorch.tensor import Tensor

from ...common import TYPES
from ..decoding.limits import refuse
from ..program import Row
from ..running import Call
from .checks import dimension


def _plain(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Row]:
    """Rows of operators that are functions of their inputs, without attributes."""
    return {name: Row(_without_call(function)) for name, function in functions.items()}


def _without_call(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda call, *inputs: function(*inputs)


def _div(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """Divide; round integers towards zero."""
    return mt.div(a, b) if a.dtype.is_floating_point else mt.div(a, b, rounding_mode="trunc")


def _clip(call: Call, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """Bounds that were attributes before opset 11 are float32."""
    low, high = (None if each is None else to_dtype(each, x.dtype) for each in (low, high))
    return x if low is None and high is None else mt.clamp(x, low, high)


def _is_inf(call: Call, x: Tensor) -> Tensor:
    """An infinity, of one sign or of both."""
    found = mt.isinf(x)
    if not call["detect_negative"]:
        found = mt.logical_and(found, mt.gt(x, 0))
    if not call["detect_positive"]:
        found = mt.logical_and(found, mt.lt(x, 0))
    return found


def _several(function: Any) -> Row:
    """An operator of any number of operands."""
    return Row(lambda call, *xs: reduce(function, xs))


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


# Operators that are functions of the same name in small letters.
_SAME = (
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
    "IsNaN", "Log", "Mul", "Neg", "Reciprocal", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Sub", "Tan", "Tanh",
)  # fmt: skip

ROWS: dict[str, Row] = {
    **_plain({name: getattr(mt, name.lower()) for name in _SAME}),
    **_plain({
        "And": mt.logical_and, "BitwiseAnd": mt.bitwise_and, "BitwiseNot": mt.bitwise_not, "BitwiseOr": mt.bitwise_or,
        "BitwiseXor": mt.bitwise_xor, "Equal": mt.eq, "Greater": mt.gt, "GreaterOrEqual": mt.ge, "Less": mt.lt,
        "LessOrEqual": mt.le, "Not": mt.logical_not, "Or": mt.logical_or, "Xor": mt.logical_xor,
    }),
    "BitCast": Row(lambda call, x: view(x, TYPES[call["to"]]), types=("to",)),
    "BitShift": Row(lambda call, a, b: a << b if call["direction"] == "LEFT" else a >> b),
    "Cast": Row(lambda call, x: to_dtype(x, TYPES[call["to"]]), types=("to",)),
    "CastLike": Row(lambda call, x, like: to_dtype(x, like.dtype)),
    "Clip": Row(_clip),
    "Div": Row(_div),
    "IsInf": Row(_is_inf),
    "Max": _several(mt.maximum),
    "Mean": Row(lambda call, *xs: reduce(mt.add, xs) / len(xs)),
    "Min": _several(mt.minimum),
    "Mod": Row(lambda call, a, b: mt.fmod(a, b) if call["fmod"] else mt.remainder(a, b)),
    "Pow": Row(lambda call, a, b: to_dtype(mt.pow(a, b), a.dtype)),
    "Sum": _several(mt.add),
    "Where": Row(lambda call, condition, a, b: mt.where(to_dtype(condition, mt.bool), a, b)),
    **_plain({"HardSwish": F.hardswish, "Mish": F.mish, "Softplus": F.softplus, "Softsign": F.softsign}),
    "Celu": Row(_celu),
    "Elu": Row(lambda call, x: F.elu(x, call["alpha"])),
    "Gelu": Row(lambda call, x: F.gelu(x, call["approximate"])),
    "HardSigmoid": Row(lambda call, x: mt.clamp(x * call["alpha"] + call["beta"], 0.0, 1.0)),
    "Hardmax": _normalized(_hardmax),
    "LeakyRelu": Row(lambda call, x: F.leaky_relu(x, call["alpha"])),
    "LogSoftmax": _normalized(F.log_softmax),
    "Relu": Row(lambda call, x: F.relu(x)),
    "PRelu": Row(lambda call, x, slope: mt.where(mt.lt(x, 0), mt.mul(x, slope), x)),
    "Selu": Row(lambda call, x: F.elu(x, call["alpha"]) * call["gamma"]),
    "Shrink": Row(_shrink),
    "Softmax": _normalized(F.softmax),
    "Swish": Row(lambda call, x: F.silu(x) if call["alpha"] == 1 else x * mt.sigmoid(x * call["alpha"])),
    "ThresholdedRelu": Row(lambda call, x: mt.where(mt.gt(x, call["alpha"]), x, 0.0)),
}  # fmt: skip
