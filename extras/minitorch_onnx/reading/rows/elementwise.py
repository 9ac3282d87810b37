"""Element by element: arithmetic, comparisons, bits, conversions between types, activations; softmax over an axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import minitorch as mt
from minitorch.functional.movement.shaping import view
from minitorch.functional.operands import to_dtype, widened
from minitorch.nn import functional as F
from minitorch.tensor import Tensor

from ..program import Row
from ..running import Call
from .checks import dimension
from .movement import Flatten


def Clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """Bounds that were attributes before opset 11 are float32."""
    low, high = (None if each is None else to_dtype(each, x.dtype) for each in (low, high))
    return x if low is None and high is None else mt.clamp(x, low, high)


def IsInf(x: Tensor, detect_negative: int, detect_positive: int) -> Tensor:
    """Find an infinity, of one sign or of both."""
    found = mt.isinf(x)
    found = found if detect_negative else mt.logical_and(found, mt.gt(x, 0))
    return found if detect_positive else mt.logical_and(found, mt.lt(x, 0))


def _several(function: Any) -> Callable[..., Tensor]:
    """Return an operator of any number of operands."""
    return lambda *xs: reduce(function, xs)


def Celu(x: Tensor, alpha: float) -> Tensor:
    """``max(0, x) + min(0, alpha * (e**(x / alpha) - 1))`` (Barron, arXiv:1704.07483)."""
    bent = widened(lambda each: mt.expm1(each / alpha) * alpha)(mt.minimum(x, 0.0))
    return mt.maximum(x, 0.0) + mt.minimum(bent, 0.0)


def Shrink(x: Tensor, lambd: float, bias: float) -> Tensor:
    """Numbers within ``-lambd ... lambd`` become 0, others move towards it by ``bias``."""
    moved = x - mt.sign(x) * bias if bias else x
    return to_dtype(mt.where(mt.logical_or(mt.gt(x, lambd), mt.lt(x, -lambd)), moved, 0), x.dtype)


def _normalized(function: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    """Along an axis; before opset 13, along all axes from it on as one."""

    def apply(x: Tensor, *, axis: int, call: Call) -> Tensor:
        if call.version >= 13:
            return function(x, dimension(axis, x.ndim))
        return mt.reshape(function(Flatten(x, axis), 1), x.shape)

    return apply


def _hardmax(x: Tensor, axis: int) -> Tensor:
    """1 for the first largest element along the axis, 0 elsewhere."""
    places = mt.reshape(mt.arange(x.shape[axis]), (-1, *(1,) * (x.ndim - axis - 1)))
    return to_dtype(mt.eq(places, mt.argmax(x, axis, True)), x.dtype)


# Operators that are functions of the same name in small letters.
_SAME = (
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Det", "Erf", "Exp",
    "Floor", "IsNaN", "Log", "MatMul", "Mul", "Neg", "Reciprocal", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt",
    "Sub", "Tan", "Tanh",
)  # fmt: skip

ROWS: dict[str, Row | Callable[..., Any]] = {
    **{name: getattr(mt, name.lower()) for name in _SAME},
    "And": mt.logical_and, "BitwiseAnd": mt.bitwise_and, "BitwiseNot": mt.bitwise_not, "BitwiseOr": mt.bitwise_or,
    "BitwiseXor": mt.bitwise_xor, "Equal": mt.eq, "Greater": mt.gt, "GreaterOrEqual": mt.ge, "Less": mt.lt,
    "LessOrEqual": mt.le, "Not": mt.logical_not, "Or": mt.logical_or, "Xor": mt.logical_xor,
    "BitCast": lambda x, to: view(x, to),
    "BitShift": lambda a, b, direction: a << b if direction == "LEFT" else a >> b,
    "Cast": lambda x, to: to_dtype(x, to),
    "CastLike": lambda x, like: to_dtype(x, like.dtype),
    "Div": lambda a, b: mt.div(a, b, rounding_mode=None if a.dtype.is_floating_point else "trunc"),
    "Max": _several(mt.maximum),
    "Mean": lambda *xs: reduce(mt.add, xs) / len(xs),
    "Min": _several(mt.minimum),
    "Mod": lambda a, b, fmod: mt.fmod(a, b) if fmod else mt.remainder(a, b),
    "Pow": lambda a, b: to_dtype(mt.pow(a, b), a.dtype),
    "Sum": _several(mt.add),
    "Where": lambda condition, a, b: mt.where(to_dtype(condition, mt.bool), a, b),
    "Elu": F.elu, "Gelu": F.gelu, "HardSwish": F.hardswish, "Mish": F.mish, "Relu": F.relu,
    "Softplus": F.softplus, "Softsign": F.softsign,
    "HardSigmoid": lambda x, alpha, beta: mt.clamp(x * alpha + beta, 0.0, 1.0),
    "Hardmax": _normalized(_hardmax),
    "LeakyRelu": lambda x, alpha: F.leaky_relu(x, alpha),
    "LogSoftmax": _normalized(F.log_softmax),
    "PRelu": lambda x, slope: mt.where(mt.lt(x, 0), mt.mul(x, slope), x),
    "Selu": lambda x, alpha, gamma: F.elu(x, alpha) * gamma,
    "Softmax": _normalized(F.softmax),
    "Swish": lambda x, alpha: F.silu(x) if alpha == 1 else x * mt.sigmoid(x * alpha),
    "ThresholdedRelu": lambda x, alpha: mt.where(mt.gt(x, alpha), x, 0.0),
}  # fmt: skip
