"""Element by element: arithmetic, comparisons, bits, and conversions between types."""

from __future__ import annotations

from functools import reduce
from typing import Any

import minitorch as mt
from minitorch.functional.operands import to_dtype
from minitorch.functional.shaping import view
from minitorch.tensor import Tensor

from ...common import TYPES
from ..program import Row
from ..running import Call
from .table import plain


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


# Operators that are functions of the same name in small letters.
_SAME = (
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor",
    "IsNaN", "Log", "Mul", "Neg", "Reciprocal", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Sub", "Tan", "Tanh",
)  # fmt: skip

ROWS: dict[str, Row] = {
    **plain({name: getattr(mt, name.lower()) for name in _SAME}),
    **plain({
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
}  # fmt: skip
