"""Elementwise primitives: one number in from each operand, one number out.

A unary row is ``name, NumPy function, gradient``, a binary row the same with two operands. In the rules `g` is the
cotangent (the derivative of the loss by the output), `y` the output, `x` (or `a`, `b`) the inputs. They are written
with the primitives above them, so that eager executes them, a trace records them, and second derivatives need no
other rules.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import BY_NUMPY, DType, bool_, float16, uint32
from ..errors import DTypeError, ShapeError
from ..interpreters import number
from ..ir import PRIMITIVES, Primitive, Spec
from ..tensor import Tensor
from .declare import declare
from .erf import erf as _erf

Array = np.ndarray[Any, Any]

FLOATS = ("float",)
NUMBERS = ("int", "float")
BITS = ("bool", "int")
ANY = ("bool", "int", "float")


def scalar(value: float, like: Tensor) -> Tensor:
    """Return a 0-dimensional constant of the same type as another tensor; operands broadcast against it."""
    return number(value, like.dtype)


# The type of a result, inferred from the operands'. --------------------------------------------------------


def _check(name: str, accepts: tuple[str, ...], specs: tuple[Spec, ...]) -> Spec:
    """Check that the operands of an elementwise primitive have one shape and one type, of an accepted category."""
    first = specs[0]
    for spec in specs[1:]:
        if spec.shape != first.shape:
            raise ShapeError(
                "MT201",
                f"{name}: {' and '.join(map(str, specs))} have different shapes",
                why="operands of an elementwise primitive have one shape; broadcasting is an explicit expand",
                fix="expand them to a common shape first",
            )
        if spec.dtype is not first.dtype:
            raise DTypeError(
                "MT202",
                f"{name}: {' and '.join(map(str, specs))} have different types",
                fix="convert one of them first, e.g. with x.to(y.dtype)",
            )
    if first.dtype.category not in accepts:
        raise DTypeError(
            "MT202",
            f"{name} is not defined for {first.dtype.name}",
            why=f"it takes {' or '.join(accepts)} types",
            fix="convert the operand first, e.g. with x.float()",
        )
    return first


def _refused(accepts: tuple[str, ...]) -> str:
    """Return the kinds of NumPy types outside these categories."""
    return "".join(
        kinds for category, kinds in (("bool", "b"), ("int", "iu"), ("float", "fV")) if category not in accepts
    )


def unary(name: str, evaluate: Any, accepts: tuple[str, ...], rule: Any = None, **fields: Any) -> Primitive:
    """Declare a pointwise primitive of one operand, which accepts some categories of types; a rule is its gradient."""
    return declare(
        name,
        "unary",
        lambda x: _check(name, accepts, (x,)),
        evaluate,
        gradient=rule and (rule,),
        refuses=_refused(accepts),
        **fields,
    )


def binary(
    name: str,
    evaluate: Any,
    accepts: tuple[str, ...],
    rules: tuple[Any, ...] | None = None,
    result: DType | None = None,
    **fields: Any,
) -> Primitive:
    """Declare a pointwise primitive of two operands, with a rule for each; `result` is its type, if it has another."""

    def infer(a: Spec, b: Spec) -> Spec:
        spec = _check(name, accepts, (a, b))
        return Spec(spec.shape, result) if result else spec

    return declare(name, "binary", infer, evaluate, gradient=rules, refuses=_refused(accepts), **fields)


def _function(name: str, evaluate: Any, ulp: float, rule: Any, **fields: Any) -> Primitive:
    """Declare a transcendental function (or square root), which compiled code approximates within `ulp`."""
    fields.setdefault("element", f"np.{name}({{}})")
    return unary(name, evaluate, FLOATS, rule, work="function", ulp=ulp, **fields)


# NumPy functions that need a word more than their name. ----------------------------------------------------


def _pow(a: Array, b: Array) -> Any:
    if np.result_type(a).kind not in "iu":
        # NumPy takes the square root for one exponent 1/2, which differs from the power at -0.0 and -inf.
        is_root = np.size(b) == 1 and b == 0.5
        return np.where(np.equal(a, -np.inf), np.inf, np.sqrt(a) + 0).astype(a.dtype) if is_root else np.power(a, b)
    if not np.any(np.less(b, 0)):
        return np.power(a, b)
    # An integer to a negative power is 0, but for 1 and -1 (NumPy refuses the whole array).
    odd_sign = np.where(np.bitwise_and(b, 1), a, 1)
    inverse = np.where(np.abs(a) == 1, odd_sign, 0)
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0))).astype(a.dtype)


# The table. -------------------------------------------------------------------------------------------------

add: Primitive = binary(
    "add",
    np.add,
    ANY,
    (lambda g, y, a, b: g, lambda g, y, a, b: g),
    element="{} + {}",
    commutes=True,
    doc="a + b; of bools, or",
)
neg: Primitive = unary("neg", np.negative, NUMBERS, lambda g, y, x: neg(g), element="-{}", doc="-x")
sub: Primitive = binary(
    "sub", np.subtract, NUMBERS, (lambda g, y, a, b: g, lambda g, y, a, b: neg(g)), element="{} - {}", doc="a - b"
)
mul: Primitive = binary(
    "mul",
    np.multiply,
    ANY,
    (lambda g, y, a, b: mul(g, b), lambda g, y, a, b: mul(g, a)),
    saves=(0, 1),
    element="{} * {}",
    commutes=True,
    doc="a * b; of bools, and",
)
div: Primitive = binary(
    "div",
    np.true_divide,
    FLOATS,
    (lambda g, y, a, b: div(g, b), lambda g, y, a, b: neg(mul(g, div(y, b)))),
    saves=(1,),
    saves_output=True,
    element="{} / {}",
    work="division",
    doc="a / b",
)

less: Primitive = binary("less", np.less, ANY, result=bool_, element="{} < {}", doc="a < b")
less_equal: Primitive = binary("less_equal", np.less_equal, ANY, result=bool_, element="{} <= {}", doc="a <= b")
equal: Primitive = binary("equal", np.equal, ANY, result=bool_, element="{} == {}", commutes=True, doc="a == b")


def _infer_where(condition: Spec, a: Spec, b: Spec) -> Spec:
    if condition.dtype is not bool_:
        raise DTypeError("MT202", f"where: the condition is {condition}, not bool", fix="compare: x != 0")
    _check("where", ANY, (Spec(condition.shape, a.dtype), a, b))
    return a


def _where(condition: Array, a: Array, b: Array) -> Any:
    if a.dtype != b.dtype:
        raise TypeError("NumPy would bring them to one type")
    return np.where(condition, a, b)


where: Primitive = declare(
    "where",
    "ternary",
    _infer_where,
    _where,
    gradient=(
        None,
        lambda g, y, condition, a, b: where(condition, g, scalar(0, g)),
        lambda g, y, condition, a, b: where(condition, scalar(0, g), g),
    ),
    saves=(0,),
    refuses=_refused(("bool",)),
    doc="a where the condition holds, b elsewhere",
)


def _cast_evaluate(x: Array, *, dtype: DType) -> Array:
    if dtype is float16 and x.dtype == np.float64:
        x = x.astype(np.float32)  # PyTorch rounds twice
    if dtype is uint32 and BY_NUMPY[x.dtype].is_floating_point:
        x = x.astype(np.int64)  # beyond the range, NumPy's vectors would give other bits than its scalars
    return x.astype(dtype.numpy)


cast: Primitive = declare(
    "cast",
    "unary",
    lambda x, *, dtype: Spec(x.shape, dtype),
    _cast_evaluate,
    gradient=(lambda g, y, x, dtype: cast(g, dtype=x.dtype),),
    work="none",
    doc="the same number in another type; from float to int towards zero",
)


def _infer_bitcast(x: Spec, *, dtype: DType) -> Spec:
    if x.dtype.itemsize != dtype.itemsize or (dtype is bool_ and x.dtype is not bool_):
        raise DTypeError("MT202", f"bitcast: the bits of {x.dtype.name} are not always a {dtype.name}")
    return Spec(x.shape, dtype)


bitcast: Primitive = declare(
    "bitcast",
    "unary",
    _infer_bitcast,
    lambda x, *, dtype: x.view(dtype.numpy),
    is_view=True,
    work="none",
    doc="the same bits read as another type of the same size",
)


def _sign(x: Tensor) -> Tensor:
    zero = scalar(0, x)
    return sub(cast(less(zero, x), dtype=x.dtype), cast(less(x, zero), dtype=x.dtype))


def _zero(g: Tensor, y: Tensor, *inputs: Tensor) -> Tensor:
    """Return the gradient of a flat function: 0 even where the cotangent is NaN or infinite."""
    return PRIMITIVES["constant"](value=0, shape=g.shape, dtype=g.dtype)


absolute: Primitive = unary(
    "abs", np.abs, NUMBERS, lambda g, y, x: mul(g, _sign(x)), saves=(0,), element="np.abs({})", doc="|x|"
)
sqrt: Primitive = _function(
    "sqrt", np.sqrt, 0.5, lambda g, y, x: div(g, add(y, y)), saves_output=True, doc="the square root"
)
exp: Primitive = _function("exp", np.exp, 1.25, lambda g, y, x: mul(g, y), saves_output=True, doc="e**x")
expm1: Primitive = _function(
    "expm1",
    np.expm1,
    2.25,
    lambda g, y, x: mul(g, exp(x)),  # and not y + 1, of which little is left where y is almost -1
    saves=(0,),
    doc="e**x - 1, exact near 0",
)
log: Primitive = _function("log", np.log, 1.0, lambda g, y, x: div(g, x), saves=(0,), doc="the natural logarithm")
log1p: Primitive = _function(
    "log1p",
    np.log1p,
    1.0,
    lambda g, y, x: div(g, add(x, scalar(1, x))),
    saves=(0,),
    doc="log(1 + x), exact near 0",
)
sin: Primitive = _function("sin", np.sin, 2.0, lambda g, y, x: mul(g, cos(x)), saves=(0,), doc="the sine of x radians")
cos: Primitive = _function(
    "cos", np.cos, 2.0, lambda g, y, x: neg(mul(g, sin(x))), saves=(0,), doc="the cosine of x radians"
)
tanh: Primitive = _function(
    "tanh",
    np.tanh,
    3.0,
    lambda g, y, x: mul(g, sub(scalar(1, y), mul(y, y))),
    saves_output=True,
    doc="the hyperbolic tangent",
)
erf: Primitive = _function(
    "erf",
    _erf,
    2.0,
    lambda g, y, x: mul(g, mul(scalar(2 / math.sqrt(math.pi), x), exp(neg(mul(x, x))))),
    saves=(0,),
    element="erf({})",
    doc="the error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x",
)
floor: Primitive = unary(
    "floor", np.floor, FLOATS, _zero, element="np.floor({})", doc="the largest integer not above x"
)
trunc: Primitive = unary("trunc", np.trunc, FLOATS, _zero, element="np.trunc({})", doc="x without its fraction")

bitwise_not: Primitive = unary("bitwise_not", np.invert, BITS, element="~{}", doc="all bits turned; of bools, not")
bitwise_and: Primitive = binary("bitwise_and", np.bitwise_and, BITS, element="{} & {}", commutes=True, doc="a & b")
bitwise_or: Primitive = binary("bitwise_or", np.bitwise_or, BITS, element="{} | {}", commutes=True, doc="a | b")
bitwise_xor: Primitive = binary("bitwise_xor", np.bitwise_xor, BITS, element="{} ^ {}", commutes=True, doc="a ^ b")
shift_left: Primitive = binary(
    "shift_left", np.left_shift, ("int",), element="{} << {}", doc="a << b; 0 if b is the number of bits or more"
)
shift_right: Primitive = binary(
    "shift_right", np.right_shift, ("int",), element="{} >> {}", doc="a >> b, keeping the sign"
)


def _half_of_tie(g: Tensor, mine: Tensor, other: Tensor) -> Tensor:
    """Return the cotangent of the larger operand; equal ones share it, with a NaN both have it, as in PyTorch."""
    kept = where(equal(mine, other), mul(g, scalar(0.5, g)), g)
    return where(less(mine, other), scalar(0, g), kept)


maximum: Primitive = binary(
    "maximum",
    np.maximum,
    ANY,
    (lambda g, y, a, b: _half_of_tie(g, a, b), lambda g, y, a, b: _half_of_tie(g, b, a)),
    saves=(0, 1),
    element="np.maximum({}, {})",
    commutes=True,
    doc="the larger operand; NaN if either is NaN",
)
floor_divide: Primitive = binary(
    "floor_divide",
    np.floor_divide,
    NUMBERS,
    (_zero, _zero),
    element="{} // {}",
    work="division",
    doc="a / b rounded down; of integers divided by 0, 0",
)
remainder: Primitive = binary(
    "remainder",
    np.remainder,
    NUMBERS,
    (lambda g, y, a, b: g, lambda g, y, a, b: neg(mul(g, floor_divide(a, b)))),  # a / b may be rounded up
    saves=(0, 1),
    element="{} % {}",
    work="division",
    doc="a - b * floor(a / b), with the sign of b; of integers divided by 0, 0",
)
power: Primitive = binary(
    "pow",
    _pow,
    NUMBERS,
    (
        # 0 where b is 0, where a**(b-1) may be infinite; likewise 0 for the exponent where a is 0.
        lambda g, y, a, b: where(equal(b, scalar(0, b)), scalar(0, g), mul(g, mul(b, power(a, sub(b, scalar(1, b)))))),
        lambda g, y, a, b: where(
            bitwise_and(equal(a, scalar(0, a)), less_equal(scalar(0, b), b)),
            scalar(0, g),
            mul(g, mul(y, log(a))),
        ),
    ),
    saves=(0, 1),
    saves_output=True,
    element="np.power({}, {})",
    work="function",
    ulp=1.5,
    doc="a to the power b",
)


def _squared_length(a: Tensor, b: Tensor) -> Tensor:
    """Return the divisor of the gradient of an angle; 1 at (0, 0), so that the gradient there is 0."""
    square = add(mul(a, a), mul(b, b))
    return where(equal(square, scalar(0, square)), scalar(1, square), square)


atan2: Primitive = binary(
    "atan2",
    np.arctan2,
    FLOATS,
    (
        lambda g, y, a, b: div(mul(g, b), _squared_length(a, b)),
        lambda g, y, a, b: neg(div(mul(g, a), _squared_length(a, b))),
    ),
    saves=(0, 1),
    element="np.arctan2({}, {})",
    work="function",
    ulp=2.5,
    doc="the angle of the point (b, a) in radians",
)
