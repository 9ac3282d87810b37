"""The rows of elementwise primitives. What ONNX has not, or defines otherwise, is composed of what it has."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from minitorch import dtypes
from minitorch.dtypes import DType
from minitorch.graph.values import is_splat
from minitorch.ir import Node
from minitorch.passes.intervals import interval

from ..common import NUMBERS
from .building import Building, Row


def operator(kind: str, of_bools: str = "") -> Row:
    """The row of a primitive that is one operator; of bools another one."""

    def row(b: Building, node: Node, operands: list[str]) -> str:
        dtype = node.inputs[0].dtype
        if of_bools and dtype is dtypes.bool_:
            return b.op(of_bools, *operands)
        return b.apply(kind, dtype, *operands)

    return row


def comparison(kind: str) -> Row:
    """The row of a comparison, whose result is a bool."""

    def row(b: Building, node: Node, operands: list[str]) -> str:
        dtype = node.inputs[0].dtype
        if dtype is dtypes.bool_ and kind != "Equal":  # False is below True
            one, other = operands
            inverse = b.op("Not", one)
            return b.op("And" if kind == "Less" else "Or", inverse, other)
        return b.apply(kind, dtype, *operands, gives=dtypes.bool_)

    return row


def in_type(compose: Callable[..., str]) -> Row:
    """The row of a composition ``(b, dtype, *operands)``; 16-bit floats are computed in float32."""

    def row(b: Building, node: Node, operands: list[str]) -> str:
        dtype = node.inputs[0].dtype
        narrow = dtype in (dtypes.float16, dtypes.bfloat16)
        wide = dtypes.float32 if narrow else dtype
        found = compose(b, wide, *[b.cast(each, dtype, wide) for each in operands])
        return b.cast(found, wide, dtype)

    return row


# Floats ---------------------------------------------------------------------------------------------------


def trunc(b: Building, dtype: DType, x: str) -> str:
    """Rounded towards zero: up below zero, down elsewhere."""
    return b.op("Where", b.op("Less", x, b.number(0, dtype)), b.op("Ceil", x), b.op("Floor", x))


def expm1(b: Building, dtype: DType, x: str) -> str:
    """``tanh(x / 2) * (e**x + 1)``, which keeps all digits near 0."""
    half = b.op("Tanh", b.op("Mul", x, b.number(0.5, dtype)))
    return b.op("Mul", half, b.op("Add", b.op("Exp", x), b.number(1, dtype)))


def log1p(b: Building, dtype: DType, x: str) -> str:
    """Kahan's formula: with u = 1 + x as rounded, ``log(u) * x / (u - 1)``; x itself where u is 1 or infinite."""
    one = b.number(1, dtype)
    u = b.op("Add", x, one)
    itself = b.op("Or", b.op("Equal", u, one), b.op("Equal", u, b.number(math.inf, dtype)))
    return b.op("Where", itself, x, b.op("Mul", b.op("Log", u), b.op("Div", x, b.op("Sub", u, one))))


def is_negative(b: Building, dtype: DType, x: str) -> str:
    """Whether a number has a minus sign, -0.0 included."""
    zero = b.number(0, dtype)
    signed = b.op("Where", b.op("Equal", x, zero), b.op("Div", b.number(1, dtype), x), x)
    return b.op("Less", signed, zero)


def atan2(b: Building, dtype: DType, y: str, x: str) -> str:
    """The arctangent of the smaller length over the larger, mirrored into the octant of the point."""
    zero = b.number(0, dtype)
    wide, high = b.op("Abs", x), b.op("Abs", y)
    steep = b.op("Less", wide, high)
    small, large = b.op("Where", steep, wide, high), b.op("Where", steep, high, wide)
    at_zero = b.op("Equal", large, zero)
    ratio = b.op("Div", small, b.op("Where", at_zero, b.number(1, dtype), large))
    infinity = b.number(math.inf, dtype)
    diagonal = b.op("And", b.op("Equal", small, infinity), b.op("Equal", large, infinity))
    ratio = b.op("Where", diagonal, b.number(1, dtype), ratio)
    angle = b.op("Atan", ratio)
    angle = b.op("Where", steep, b.op("Sub", b.number(math.pi / 2, dtype), angle), angle)
    angle = b.op("Where", is_negative(b, dtype, x), b.op("Sub", b.number(math.pi, dtype), angle), angle)
    return b.op("Where", is_negative(b, dtype, y), b.op("Neg", angle), angle)


def _float_parts(b: Building, dtype: DType, x: str, y: str) -> tuple[str, str, str]:
    """The remainder with the sign of y, the one of C, and whether they differ; as NumPy's `divmod`."""
    zero = b.number(0, dtype)
    rest = b.op("Mod", x, y, fmod=1)
    below, above = b.op("Less", rest, zero), b.op("Less", zero, rest)
    y_below, y_above = b.op("Less", y, zero), b.op("Less", zero, y)
    other = b.op("Or", b.op("And", below, y_above), b.op("And", above, y_below))
    signed_zero = b.op("Where", y_below, b.number(-0.0, dtype), zero)
    kept = b.op("Where", b.op("Equal", rest, zero), signed_zero, rest)
    return b.op("Where", other, b.op("Add", rest, y), kept), rest, other


def _floats_remainder(b: Building, dtype: DType, x: str, y: str) -> str:
    return _float_parts(b, dtype, x, y)[0]


def _floats_floor_divide(b: Building, dtype: DType, x: str, y: str) -> str:
    zero, one = b.number(0, dtype), b.number(1, dtype)
    _, rest, other = _float_parts(b, dtype, x, y)
    exact = b.op("Div", b.op("Sub", x, rest), y)
    exact = b.op("Where", other, b.op("Sub", exact, one), exact)
    down = b.op("Floor", exact)
    far = b.op("Less", b.number(0.5, dtype), b.op("Sub", exact, down))
    down = b.op("Where", far, b.op("Add", down, one), down)
    quotient = b.op("Div", x, y)
    signed = b.op("Where", is_negative(b, dtype, quotient), b.number(-0.0, dtype), zero)
    down = b.op("Where", b.op("Equal", exact, zero), signed, down)
    return b.op("Where", b.op("Equal", y, zero), quotient, down)


# Integers: ONNX does not say what a quotient by 0 is, and processors do not compute the lowest number by -1 -----


def _safe(b: Building, dtype: DType, y: str) -> tuple[str, str, str | None]:
    """A divisor that nothing is wrong with, where the divisor is 0, and where it is -1."""
    zero = b.op("Equal", y, b.number(0, dtype))
    minus = b.op("Equal", y, b.number(-1, dtype)) if dtype.is_signed else None
    wrong = b.op("Or", zero, minus) if minus else zero
    return b.op("Where", wrong, b.number(1, dtype), y), zero, minus


def _ints_floor_divide(b: Building, dtype: DType, x: str, y: str) -> str:
    divisor, at_zero, minus = _safe(b, dtype, y)
    quotient, zero = b.op("Div", x, divisor), b.number(0, dtype)
    if minus:
        rest = b.op("Sub", x, b.op("Mul", quotient, divisor))
        other = b.op("Xor", b.op("Less", rest, zero), b.op("Less", divisor, zero))
        inexact = b.op("Not", b.op("Equal", rest, zero))
        down = b.op("Sub", quotient, b.number(1, dtype))
        quotient = b.op("Where", b.op("And", inexact, other), down, quotient)
        quotient = b.op("Where", minus, b.op("Neg", x), quotient)
    return b.op("Where", at_zero, zero, quotient)


def _ints_remainder(b: Building, dtype: DType, x: str, y: str) -> str:
    return b.op("Mod", x, _safe(b, dtype, y)[0])


def _of_kind(floats: Callable[..., str], ints: Callable[..., str]) -> Row:
    def row(b: Building, node: Node, operands: list[str]) -> str:
        dtype = node.dtype
        if dtype.is_floating_point:
            return in_type(floats)(b, node, operands)
        wide = dtypes.int64 if dtype is dtypes.uint32 else dtype if dtype is dtypes.int64 else dtypes.int32
        return b.cast(ints(b, wide, *[b.cast(each, dtype, wide) for each in operands]), wide, dtype)

    return row


def _power(b: Building, node: Node, operands: list[str]) -> str:
    dtype = node.dtype
    if dtype.is_floating_point:
        return b.apply("Pow", dtype, *operands)
    wide = dtypes.int64
    base, exponent = (b.cast(each, dtype, wide) for each in operands)
    zero, one = b.number(0, wide), b.number(1, wide)
    bits = dtype.itemsize * 8 - dtype.is_signed
    given = node.inputs[1]
    if is_splat(given):
        bits = max(int(given.params["value"]), 0).bit_length()
    # Square and multiply: ONNX Runtime computes powers of integers in float64.
    result, square, rest = one, base, b.op("Max", exponent, zero)
    for bit in range(bits):
        half = b.op("Div", rest, b.number(2, wide))
        odd = b.op("Less", b.op("Mul", half, b.number(2, wide)), rest)
        result = b.op("Where", odd, b.op("Mul", result, square), result)
        if bit + 1 < bits:
            square, rest = b.op("Mul", square, square), half
    if dtype.is_signed:  # to a negative power, all but 1 and -1 are 0
        odd = b.op("Equal", b.op("Mod", exponent, b.number(2, wide)), one)
        unit = b.op("Equal", b.op("Abs", base), one)
        signed = b.op("Where", b.op("And", unit, odd), base, b.op("Where", unit, one, zero))
        result = b.op("Where", b.op("Less", exponent, zero), signed, result)
    full = b.op("Expand", result, b.vector(node.shape)) if bits == 0 else result
    return b.cast(full, wide, dtype)


# Bits -----------------------------------------------------------------------------------------------------


def _bitwise(kind: str, of_bools: str) -> Row:
    def row(b: Building, node: Node, operands: list[str]) -> str:
        if node.dtype is dtypes.bool_:
            return b.op(of_bools, *operands)
        if b.opset < 18:
            if kind == "BitwiseNot":  # -1 - x, or the largest number - x
                ones = b.number(np.iinfo(node.dtype.numpy).max if not node.dtype.is_signed else -1, node.dtype)
                wide = b.computed("Sub", node.dtype)
                return b.cast(
                    b.op("Sub", b.cast(ones, node.dtype, wide), b.cast(operands[0], node.dtype, wide)), wide, node.dtype
                )
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
    x, by = (b.cast(each, dtype, wide) for each in operands)
    zero, most = b.number(0, wide), b.number(bits if left else min(bits, 63), wide)
    far = b.op("Or", b.op("Less", by, zero), b.op("LessOrEqual", most, by))
    place = b.op("Where", far, zero, by)
    power = b.op("Gather", b.constant(_POWERS), place, axis=0)
    if left:
        return b.cast(b.op("Where", far, zero, b.op("Mul", x, power)), wide, dtype)
    below = b.op("Less", x, zero)
    minus = b.number(-1, wide)
    positive = b.op("Where", below, b.op("Sub", minus, x), x)  # its bits turned, if it is negative
    quotient = b.op("Where", far, zero, b.op("Div", positive, power))
    return b.cast(b.op("Where", below, b.op("Sub", minus, quotient), quotient), wide, dtype)


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
