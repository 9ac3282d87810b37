"""Element by element: arithmetic, comparisons, bits, and conversions between types."""

from __future__ import annotations

from functools import reduce
from typing import Any

from minitorch.dtypes import bool_
from minitorch.functional import elementwise as E
from minitorch.functional.arithmetic import add, div, fmod, mul, pow, remainder, sub
from minitorch.functional.comparison import (
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    eq,
    ge,
    gt,
    isinf,
    isnan,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
)
from minitorch.functional.operands import to_dtype
from minitorch.functional.selection import clamp, maximum, minimum, where
from minitorch.functional.shaping import view
from minitorch.tensor import Tensor

from ...common import TYPES
from ..program import Row
from ..running import Call
from .table import plain


def _div(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """Of integers, rounded towards zero."""
    return div(a, b) if a.dtype.is_floating_point else div(a, b, rounding_mode="trunc")


def _mod(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """The sign is that of the dividend with ``fmod=1``, else that of the divisor."""
    return fmod(a, b) if call["fmod"] else remainder(a, b)


def _pow(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """In the type of the base; integers to a power of a float type are computed in that."""
    return to_dtype(pow(a, b), a.dtype)


def _mean(call: Call, *xs: Tensor) -> Tensor:
    return reduce(add, xs) / len(xs)


def _clip(call: Call, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """Bounds that were attributes before opset 11 are float32."""
    low, high = (None if each is None else to_dtype(each, x.dtype) for each in (low, high))
    return x if low is None and high is None else clamp(x, low, high)


def _shift(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return (bitwise_left_shift if call["direction"] == "LEFT" else bitwise_right_shift)(a, b)


def _is_inf(call: Call, x: Tensor) -> Tensor:
    """An infinity, of one sign or of both."""
    found = isinf(x)
    if not call["detect_negative"]:
        found = logical_and(found, gt(x, 0))
    if not call["detect_positive"]:
        found = logical_and(found, lt(x, 0))
    return found


def _cast(call: Call, x: Tensor) -> Tensor:
    return to_dtype(x, TYPES[call["to"]])


def _cast_like(call: Call, x: Tensor, like: Tensor) -> Tensor:
    return to_dtype(x, like.dtype)


def _bit_cast(call: Call, x: Tensor) -> Tensor:
    return view(x, TYPES[call["to"]])


def _where(call: Call, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return where(to_dtype(condition, bool_), a, b)


def _several(function: Any) -> Row:
    """An operator of any number of operands."""
    return Row(lambda call, *xs: reduce(function, xs))


ROWS: dict[str, Row] = {
    **plain(
        {
            "Abs": E.abs,
            "Acos": E.acos,
            "Acosh": E.acosh,
            "Add": add,
            "And": logical_and,
            "Asin": E.asin,
            "Asinh": E.asinh,
            "Atan": E.atan,
            "Atanh": E.atanh,
            "BitwiseAnd": bitwise_and,
            "BitwiseNot": bitwise_not,
            "BitwiseOr": bitwise_or,
            "BitwiseXor": bitwise_xor,
            "Ceil": E.ceil,
            "Cos": E.cos,
            "Cosh": E.cosh,
            "Equal": eq,
            "Erf": E.erf,
            "Exp": E.exp,
            "Floor": E.floor,
            "Greater": gt,
            "GreaterOrEqual": ge,
            "IsNaN": isnan,
            "Less": lt,
            "LessOrEqual": le,
            "Log": E.log,
            "Mul": mul,
            "Neg": E.neg,
            "Not": logical_not,
            "Or": logical_or,
            "Reciprocal": E.reciprocal,
            "Round": E.round,
            "Sigmoid": E.sigmoid,
            "Sign": E.sign,
            "Sin": E.sin,
            "Sinh": E.sinh,
            "Sqrt": E.sqrt,
            "Sub": sub,
            "Tan": E.tan,
            "Tanh": E.tanh,
            "Xor": logical_xor,
        }
    ),
    "BitCast": Row(_bit_cast, types=("to",)),
    "BitShift": Row(_shift),
    "Cast": Row(_cast, types=("to",)),
    "CastLike": Row(_cast_like),
    "Clip": Row(_clip),
    "Div": Row(_div),
    "IsInf": Row(_is_inf),
    "Max": _several(maximum),
    "Mean": Row(_mean),
    "Min": _several(minimum),
    "Mod": Row(_mod),
    "Pow": Row(_pow),
    "Sum": _several(add),
    "Where": Row(_where),
}
