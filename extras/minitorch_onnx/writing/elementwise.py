"""The rows of elementwise primitives. What ONNX has not, or defines otherwise, is composed of what it has."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from minitorch import dtypes
from minitorch.graph.values import is_splat
from minitorch.ir import Node
from minitorch.passes.intervals import interval

from ..common import NUMBERS
from .building import Building, Row, operator
from .terms import Term, in_type


def comparison(kind: str) -> Row:
    """The row of a comparison, whose result is a bool."""

    def row(b: Building, node: Node, operands: list[str]) -> str:
        dtype = node.inputs[0].dtype
        if dtype is dtypes.bool_ and kind != "Equal":  # False is below True
            one, other = operands
            inverse = b.op("Not", one)
            return b.op("And" if kind == "Less" else "Or", inverse, other)
        return b.apply(kind, dtype, *operands, gives=True)

    return row


# Floats ---------------------------------------------------------------------------------------------------


def trunc(x: Term) -> Term:
    """Rounded towards zero: up below zero, down elsewhere."""
    return (x < 0).where(x.Ceil(), x.Floor())


def expm1(x: Term) -> Term:
    """``tanh(x / 2) * (e**x + 1)``, which keeps all digits near 0."""
    return (x * 0.5).Tanh() * (x.Exp() + 1)


def log1p(x: Term) -> Term:
    """Kahan's formula: with u = 1 + x as rounded, ``log(u) * x / (u - 1)``; x itself where u is 1 or infinite."""
    u = x + 1
    itself = u.Equal(1) | u.Equal(math.inf)
    return itself.where(x, u.Log() * (x / (u - 1)))


def is_negative(x: Term) -> Term:
    """Whether a number has a minus sign, -0.0 included."""
    return x.Equal(0).where(1 / x, x) < 0


def atan2(y: Term, x: Term) -> Term:
    """The arctangent of the smaller length over the larger, mirrored into the octant of the point."""
    wide, high = x.Abs(), y.Abs()
    steep = wide < high
    small, large = steep.where(wide, high), steep.where(high, wide)
    ratio = small / large.Equal(0).where(1, large)
    ratio = (small.Equal(math.inf) & large.Equal(math.inf)).where(1, ratio)
    angle = ratio.Atan()
    angle = steep.where(math.pi / 2 - angle, angle)
    angle = is_negative(x).where(math.pi - angle, angle)
    return is_negative(y).where(-angle, angle)


def _float_parts(x: Term, y: Term) -> tuple[Term, Term, Term]:
    """The remainder with the sign of y, the one of C, and whether they differ; as NumPy's `divmod`."""
    rest = x.Mod(y, fmod=1)
    other = ((rest < 0) & (y > 0)) | ((rest > 0) & (y < 0))
    kept = rest.Equal(0).where((y < 0).where(-0.0, 0), rest)
    return other.where(rest + y, kept), rest, other


def _floats_remainder(x: Term, y: Term) -> Term:
    return _float_parts(x, y)[0]


def _floats_floor_divide(x: Term, y: Term) -> Term:
    _, rest, other = _float_parts(x, y)
    exact = (x - rest) / y
    exact = other.where(exact - 1, exact)
    down = exact.Floor()
    down = (exact - down > 0.5).where(down + 1, down)
    quotient = x / y
    down = exact.Equal(0).where(is_negative(quotient).where(-0.0, 0), down)
    return y.Equal(0).where(quotient, down)


# Integers: ONNX does not say what a quotient by 0 is, and processors do not compute the lowest number by -1 -----


def _safe(y: Term) -> tuple[Term, Term, Term | None]:
    """A divisor that nothing is wrong with, where the divisor is 0, and where it is -1."""
    zero = y.Equal(0)
    minus = y.Equal(-1) if y.dtype.is_signed else None
    return (zero | minus if minus else zero).where(1, y), zero, minus


def _ints_floor_divide(x: Term, y: Term) -> Term:
    divisor, at_zero, minus = _safe(y)
    quotient = x / divisor
    if minus:
        rest = x - quotient * divisor
        inexact = ~rest.Equal(0) & ((rest < 0) ^ (divisor < 0))
        quotient = minus.where(-x, inexact.where(quotient - 1, quotient))
    return at_zero.where(0, quotient)


def _ints_remainder(x: Term, y: Term) -> Term:
    return x % _safe(y)[0]


def _of_kind(floats: Callable[..., Term], ints: Callable[..., Term]) -> Row:
    def row(b: Building, node: Node, operands: list[str]) -> str:
        dtype = node.dtype
        if dtype.is_floating_point:
            return in_type(floats)(b, node, operands)
        wide = dtypes.int64 if dtype is dtypes.uint32 else dtype if dtype is dtypes.int64 else dtypes.int32
        found = ints(*[Term(b, wide, b.cast(each, dtype, wide)) for each in operands])
        return b.cast(found.name, wide, dtype)

    return row


def _power(b: Building, node: Node, operands: list[str]) -> str:
    dtype = node.dtype
    if dtype.is_floating_point:
        return b.apply("Pow", dtype, *operands)
    wide = dtypes.int64
    base, exponent = (Term(b, wide, b.cast(each, dtype, wide)) for each in operands)
    bits = dtype.itemsize * 8 - dtype.is_signed
    given = node.inputs[1]
    if is_splat(given):
        bits = max(int(given.params["value"]), 0).bit_length()
    # Square and multiply: ONNX Runtime computes powers of integers in float64.
    result, square, rest = Term(b, wide, b.number(1, wide)), base, exponent.Max(0)
    for bit in range(bits):
        half = rest / 2
        result = (half * 2 < rest).where(result * square, result)
        if bit + 1 < bits:
            square, rest = square * square, half
    if dtype.is_signed:  # to a negative power, all but 1 and -1 are 0
        odd, unit = (exponent % 2).Equal(1), base.Abs().Equal(1)
        signed = (unit & odd).where(base, unit.where(1, 0))
        result = (exponent < 0).where(signed, result)
    full = b.op("Expand", result.name, b.vector(node.shape)) if bits == 0 else result.name
    return b.cast(full, wide, dtype)


# Bits -----------------------------------------------------------------------------------------------------


def _bitwise(kind: str, of_bools: str) -> Row:
    def row(b: Building, node: Node, operands: list[str]) -> str:
        if node.dtype is dtypes.bool_:
            return b.op(of_bools, *operands)
        if b.opset < 18:
            if kind == "BitwiseNot":  # -1 - x, or the largest number - x
                ones = b.number(np.iinfo(node.dtype.numpy).max if not node.dtype.is_signed else -1, node.dtype)
                return b.apply("Sub", node.dtype, ones, *operands)
            b.refuse("an operation on the bits of integers", f"{kind} is an operator from opset 18 on", newer=18)
        return b.op(kind, *operands)

    return row


_POWERS = np.array([1 << bit for bit in range(63)] + [-(1 << 63)], np.int64)
_UNSIGNED = {dtypes.int32: dtypes.uint32, dtypes.uint32: dtypes.uint32, dtypes.uint8: dtypes.uint8}


def _shift(b: Building, node: Node, operands: list[str]) -> str:
    """A product with a power of two, or a quotient by one: ONNX has shifts of unsigned integers alone.

    The bits of an integer that cannot be negative are those of an unsigned one, if it is known how far they move.
    """
    dtype, wide, bits = node.dtype, dtypes.int64, node.dtype.itemsize * 8
    left = node.primitive.name == "shift_left"
    if not left and dtype in _UNSIGNED and _moves_down(node):
        moved = [b.cast(each, dtype, _UNSIGNED[dtype]) for each in operands]
        return b.cast(b.op("BitShift", *moved, direction="RIGHT"), _UNSIGNED[dtype], dtype)
    x, by = (Term(b, wide, b.cast(each, dtype, wide)) for each in operands)
    far = (by < 0) | (by >= (bits if left else min(bits, 63)))
    power = Term(b, wide, b.op("Gather", b.constant(_POWERS), far.where(0, by).name, axis=0))
    if left:
        return b.cast(far.where(0, x * power).name, wide, dtype)
    below = x < 0
    positive = below.where(-1 - x, x)  # its bits turned, if it is negative
    quotient = far.where(0, positive / power)
    return b.cast(below.where(-1 - quotient, quotient).name, wide, dtype)


def _moves_down(node: Node) -> bool:
    """Whether a shift to the right is one of a number that is not negative, by fewer bits than it has."""
    (least, _), (nearest, farthest) = (interval(each) for each in node.inputs)
    return least >= 0 and 0 <= nearest <= farthest < node.dtype.itemsize * 8


def _bitcast(b: Building, node: Node, operands: list[str]) -> str:
    old, new = node.inputs[0].dtype, node.dtype
    if old is new:
        return b.op("Identity", *operands)
    if old is dtypes.bool_ or old.category == new.category == "int":  # a bool is 0 or 1
        return b.cast(operands[0], old, new)
    if b.opset < 26:
        b.refuse("the bits of floats as integers", "BitCast is an operator from opset 26 on", newer=26)
    return b.op("BitCast", *operands, to=NUMBERS[new])


# Others ---------------------------------------------------------------------------------------------------


def _cast(b: Building, node: Node, operands: list[str]) -> str:
    old, new, name = node.inputs[0].dtype, node.dtype, operands[0]
    if old is dtypes.float64 and new in (dtypes.float16, dtypes.bfloat16):  # rounded twice, as in PyTorch
        name, old = b.cast(name, old, dtypes.float32), dtypes.float32
    return b.op("Identity", name) if old is new else b.cast(name, old, new)


def _where(b: Building, node: Node, operands: list[str]) -> str:
    condition, one, other = operands
    dtype = node.dtype
    if dtype is dtypes.bool_:
        return b.op("Or", b.op("And", condition, one), b.op("And", b.op("Not", condition), other))
    wide = b.computed("Where", dtype)
    found = b.op("Where", condition, b.cast(one, dtype, wide), b.cast(other, dtype, wide))
    return b.cast(found, wide, dtype)


ROWS: dict[str, Row] = {
    "abs": operator("Abs"),
    "add": operator("Add", "Or"),
    "atan2": in_type(atan2),
    "bitcast": _bitcast,
    "bitwise_and": _bitwise("BitwiseAnd", "And"),
    "bitwise_not": _bitwise("BitwiseNot", "Not"),
    "bitwise_or": _bitwise("BitwiseOr", "Or"),
    "bitwise_xor": _bitwise("BitwiseXor", "Xor"),
    "cast": _cast,
    "cos": operator("Cos"),
    "div": operator("Div"),
    "equal": comparison("Equal"),
    "erf": operator("Erf"),
    "exp": operator("Exp"),
    "expm1": in_type(expm1),
    "floor": operator("Floor"),
    "floor_divide": _of_kind(_floats_floor_divide, _ints_floor_divide),
    "less": comparison("Less"),
    "less_equal": comparison("LessOrEqual"),
    "log": operator("Log"),
    "log1p": in_type(log1p),
    "maximum": operator("Max", "Or"),
    "mul": operator("Mul", "And"),
    "neg": operator("Neg"),
    "pow": _power,
    "remainder": _of_kind(_floats_remainder, _ints_remainder),
    "shift_left": _shift,
    "shift_right": _shift,
    "sin": operator("Sin"),
    "sqrt": operator("Sqrt"),
    "sub": operator("Sub"),
    "tanh": operator("Tanh"),
    "trunc": in_type(trunc),
    "where": _where,
}
