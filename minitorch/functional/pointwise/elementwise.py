"""Elementwise mathematics of one operand: exp, sin, floor, abs, sigmoid, ...

A function is a row: a name, a formula and an example. Float functions convert integers to float32 first, as in PyTorch;
formulas of several steps are computed in float32 for the 16-bit types (`operands.widened`). The formulas are chosen
to keep all digits where the obvious ones lose them, and to have the right derivative everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import primitives as P
from ...packages import load
from ...tensor import Tensor
from ..families import member
from ..operands import as_float, like, operand, widened
from ..options import require_number
from . import complementary
from . import formulas as F
from .casting import finfo

Formula = Callable[[Tensor], Tensor]
Unary = Callable[[Tensor], Tensor]


def _unary(
    name: str, compute: Formula, prepared: Formula, note: str, *example: str, copies_integers: bool = False
) -> Unary:
    meaning, argument, result = example

    @member(name, meaning=meaning, note=note, argument=argument, result=result)
    def function(input: Tensor) -> Tensor:
        """Return {meaning}, for each element. {note}

        Example:
            >>> import minitorch as mt
            >>> mt.{name}(mt.tensor({argument}))
            tensor({result})
        """
        x = prepared(input)
        return P.cast(x, dtype=x.dtype) if copies_integers and not x.dtype.is_floating_point else compute(x)

    return function


def _float(name: str, formula: Formula, *example: str) -> Unary:
    """Return a float function: integers are converted to float32 first."""
    compute = formula if isinstance(formula, P.Primitive) else widened(formula)
    return _unary(name, compute, as_float, "Integers are converted to float32 first.", *example)


def _rounding(name: str, formula: Formula, *example: str) -> Unary:
    """Return a function whose results are whole numbers: integers are copied."""
    return _unary(name, formula, operand, "Integers stay as they are.", *example, copies_integers=True)


def _number(name: str, formula: Formula, *example: str) -> Unary:
    """Return a function of any numbers, in their own type."""
    return _unary(name, formula, operand, "The type stays.", *example)


def _gamma() -> Any:
    """Return the module of the formulas of lgamma and digamma, loaded when they are used."""
    return load("minitorch.functional.pointwise.gamma")


# Name, formula, meaning, argument and result of the example.
exp = _float("exp", P.exp, "e to the power x", "[0.0, 1.0]", "[1.0000, 2.7183]")
exp2 = _float("exp2", lambda x: P.power(like(2, x), x), "2 to the power x", "[-1.0, 10.0]", "[5.0000e-01, 1.0240e+03]")
expm1 = _float("expm1", P.expm1, "exp(x) - 1, exact near 0", "[0.0, 1.0]", "[0.0000, 1.7183]")
log = _float("log", P.log, "the natural logarithm", "[1.0, 10.0]", "[0.0000, 2.3026]")
log1p = _float("log1p", P.log1p, "log(1 + x), exact near 0", "[0.0, 1.0]", "[0.0000, 0.6931]")
log2 = _float("log2", F.logarithm(2), "the logarithm to base 2", "[1.0, 8.0]", "[0., 3.]")
log10 = _float("log10", F.logarithm(10), "the logarithm to base 10", "[1, 100]", "[0., 2.]")
sqrt = _float("sqrt", P.sqrt, "the square root, NaN below 0", "[4.0, 9.0]", "[2., 3.]")
rsqrt = _float("rsqrt", lambda x: P.div(like(1, x), P.sqrt(x)), "1 / sqrt(x)", "[4.0, 16.0]", "[0.5000, 0.2500]")
reciprocal = _float("reciprocal", lambda x: P.div(like(1, x), x), "1 / x", "[2, -4]", "[ 0.5000, -0.2500]")
sin = _float("sin", P.sin, "the sine of x radians", "[0.0, 1.0]", "[0.0000, 0.8415]")
cos = _float("cos", P.cos, "the cosine of x radians", "[0.0, 1.0]", "[1.0000, 0.5403]")
tan = _float("tan", lambda x: P.div(P.sin(x), P.cos(x)), "the tangent of x radians", "[0.0, 1.0]", "[0.0000, 1.5574]")
asin = _float("asin", F.asin, "the angle whose sine is x, NaN beyond 1", "[0.0, 1.0]", "[0.0000, 1.5708]")
acos = _float("acos", F.acos, "the angle whose cosine is x, NaN beyond 1", "[1.0, 0.0]", "[0.0000, 1.5708]")
atan = _float(
    "atan", lambda x: P.atan2(x, like(1, x)), "the angle whose tangent is x", "[0.0, 1.0]", "[0.0000, 0.7854]"
)
sinh = _float("sinh", F.sinh, "the hyperbolic sine", "[0.0, 1.0]", "[0.0000, 1.1752]")
cosh = _float("cosh", F.cosh, "the hyperbolic cosine", "[0.0, 1.0]", "[1.0000, 1.5431]")
tanh = _float("tanh", P.tanh, "the hyperbolic tangent", "[0.0, 1.0]", "[0.0000, 0.7616]")
asinh = _float("asinh", F.asinh, "the number whose hyperbolic sine is x", "[0.0, 1.0]", "[0.0000, 0.8814]")
acosh = _float(
    "acosh", F.acosh, "the number whose hyperbolic cosine is x, NaN below 1", "[1.0, 2.0]", "[0.0000, 1.3170]"
)
atanh = _float(
    "atanh", F.atanh, "the number whose hyperbolic tangent is x, NaN beyond 1", "[0.0, 0.5]", "[0.0000, 0.5493]"
)
erf = _float("erf", P.erf, "the error function", "[0.0, 1.0]", "[0.0000, 0.8427]")
erfc = _float("erfc", complementary.erfc, "1 - erf(x), exact also for large x", "[0.0, 1.0]", "[1.0000, 0.1573]")
lgamma = _float(
    "lgamma",
    lambda x: _gamma().lgamma(x),
    "log(|gamma(x)|)",
    "[1, 5]",
    "[0.0000, 3.1781]",
)
digamma = _float("digamma", lambda x: _gamma().digamma(x), "the derivative of lgamma", "[1, 5]", "[-0.5772,  1.5061]")
sigmoid = _float("sigmoid", F.sigmoid, "1 / (1 + exp(-x))", "[0.0, 2.0]", "[0.5000, 0.8808]")
deg2rad = _float("deg2rad", F.scaled(math.pi / 180), "degrees as radians", "[180.0, 90.0]", "[3.1416, 1.5708]")
rad2deg = _float("rad2deg", F.scaled(180 / math.pi), "radians as degrees", "[0.0, 1.0]", "[ 0.0000, 57.2958]")

floor = _rounding("floor", P.floor, "the largest whole number not above x", "[1.5, -1.5]", "[ 1., -2.]")
ceil = _rounding("ceil", F.ceil, "the smallest whole number not below x", "[1.5, -1.5]", "[ 2., -1.]")
trunc = _rounding("trunc", P.trunc, "x without its fraction", "[1.5, -1.5]", "[ 1., -1.]")

abs = _number("abs", F.absolute, "the absolute value", "[-1.5, 2.0]", "[1.5000, 2.0000]")
neg = _number("neg", P.neg, "minus x", "[1, -2]", "[-1,  2]")
square = _number("square", F.square, "x * x", "[3, -2]", "[9, 4]")
frac = _number("frac", F.frac, "the fraction of x, with its sign", "[1.5, -1.25]", "[ 0.5000, -0.2500]")
sign = _number("sign", F.sign, "1, 0 or -1; 0 for NaN", "[5, 0, -2]", "[ 1,  0, -1]")
signbit = _number("signbit", F.signbit, "whether the sign bit is set, also of -0.0", "[1.0, -0.0]", "[False,  True]")

# PyTorch's other names for the same functions.
absolute, negative, fix, sgn = abs, neg, trunc, sign
arcsin, arccos, arctan, arcsinh, arccosh, arctanh = asin, acos, atan, asinh, acosh, atanh


# Functions with further arguments ---------------------------------------------------------------------------


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Round to the nearest whole number, halves to the even one; or to the nearest multiple of 10**-decimals.

    Example:
        >>> import minitorch as mt
        >>> mt.round(mt.tensor([0.5, 1.5, -2.7])), mt.round(mt.tensor([1.23]), decimals=1)
        (tensor([ 0.,  2., -3.]), tensor([1.2000]))
    """
    x = operand(input)
    if not x.dtype.is_floating_point:
        return P.cast(x, dtype=x.dtype)
    if decimals == 0:
        return F.round_half_even(x)
    scale = like(10.0 ** max(decimals, -decimals), x)
    to_units, back = (P.mul, P.div) if decimals > 0 else (P.div, P.mul)
    return back(F.round_half_even(to_units(x, scale)), scale)


_logit = widened(F.logit)


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Return the inverse of `sigmoid`, log(x / (1 - x)); with `eps`, of x kept inside [eps, 1 - eps].

    Example:
        >>> import minitorch as mt
        >>> mt.logit(mt.tensor([0.5, 0.75]))
        tensor([0.0000, 1.0986])
    """
    x = as_float(input)
    if eps is not None:
        low, high = like(eps, x), like(1 - eps, x)
        x = P.where(P.less(x, low), low, P.where(P.less(high, x), high, x))
    return _logit(x)


def nan_to_num(input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replace NaN and infinities by numbers; infinities by default by the largest and smallest of the type.

    Example:
        >>> import minitorch as mt
        >>> mt.nan_to_num(mt.tensor([float("nan"), float("inf"), 1.0]), posinf=9.0)
        tensor([0., 9., 1.])
    """
    x = operand(input)
    if not x.dtype.is_floating_point:
        return P.cast(x, dtype=x.dtype)
    largest = float(finfo(x.dtype).max)
    x = P.where(P.equal(x, x), x, like(nan, x))
    x = P.where(P.equal(x, like(math.inf, x)), like(largest if posinf is None else posinf, x), x)
    return P.where(P.equal(x, like(-math.inf, x)), like(-largest if neginf is None else neginf, x), x)


def positive(input: Tensor) -> Tensor:
    """Return the tensor itself: Python's ``+x``. Not for bools.

    Example:
        >>> import minitorch as mt
        >>> mt.positive(mt.tensor([-1.0, 2.0]))
        tensor([-1.,  2.])
    """
    require_number(input, "positive")
    return input


OPERATORS = {"__neg__": neg, "__abs__": abs, "__pos__": positive}
