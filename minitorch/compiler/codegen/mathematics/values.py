"""Arithmetic on LLVM values: operators that emit instructions.

A `Value` wraps one ``float``, ``double``, vector of these, or the integers and truth values that belong to them. Its
operators emit instructions, so that a formula is written once for scalars and vectors, and a table per width holds what
differs between float32 and float64. Nothing branches. No instruction carries a fast-math flag: what is written is what
is computed. Nothing here knows a function of mathematics.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from llvmlite import ir

T = TypeVar("T")


@dataclass(frozen=True)
class Format:
    """A binary format of IEEE 754: its width, the stored bits of its fraction, and the bias of its exponent."""

    width: int
    fraction: int
    bias: int
    type: Any  # of llvmlite, like the next two
    integer: Any
    code: str  # of `struct`

    def pattern(self, number: float) -> int:
        """Return the bits of a number, as an unsigned integer.

        Example:
            >>> hex(FLOAT32.pattern(1.0))
            '0x3f800000'
        """
        return int.from_bytes(struct.pack("<" + self.code, number), "little")


FLOAT32 = Format(32, 23, 127, ir.FloatType(), ir.IntType(32), "f")
FLOAT64 = Format(64, 52, 1023, ir.DoubleType(), ir.IntType(64), "d")
_FORMATS = {form.type: form for form in (FLOAT32, FLOAT64)} | {form.integer: form for form in (FLOAT32, FLOAT64)}


def with_lanes_of(shape: Any, element: Any) -> Any:
    """Return the type with `element` in the places of `shape`: a vector of as many, or the scalar."""
    return ir.VectorType(element, shape.count) if isinstance(shape, ir.VectorType) else element


def splat(kind: Any, number: Any) -> Any:
    """Return a constant of a type: the number, in every lane if it is a vector."""
    if not isinstance(kind, ir.VectorType):
        return ir.Constant(kind, number)
    # "splat" keeps the text, and so its parsing, short.
    constant = ir.FormattedConstant(kind.element, f"splat ({ir.Constant(kind.element, number)})")
    constant.type = kind
    return constant


def call_intrinsic(builder: Any, name: str, *operands: Any, flags: Sequence[str] = ()) -> Any:
    """Call ``llvm.<name>`` on operands of one type, scalar or vector.

    It is declared as a plain function of the module: `declare_intrinsic` does not know vectors.
    """
    kind = operands[0].type
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    lanes = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
    full = f"llvm.{name}.{lanes}{element.intrinsic_name}"
    return call_named(builder, full, kind, operands, flags)


def call_named(builder: Any, name: str, result: Any, operands: Sequence[Any], flags: Sequence[str] = ()) -> Any:
    """Call a function that LLVM knows by its name; a module declares it once."""
    module, kind = builder.module, ir.FunctionType(result, [each.type for each in operands])
    return builder.call(module.globals.get(name) or ir.Function(module, kind, name), operands, fastmath=flags)


class Value:
    """A number in a register, or one in each lane of a vector register."""

    __slots__ = ("builder", "ir")

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.ir = value

    @property
    def element(self) -> Any:
        """The type of one lane."""
        return self.ir.type.element if isinstance(self.ir.type, ir.VectorType) else self.ir.type

    @property
    def format(self) -> Format:
        """The float format of this width."""
        return _FORMATS[self.element]

    def pick(self, table: Mapping[int, T]) -> T:
        """Return the row of a table for this width, 32 or 64."""
        return table[self.format.width]

    def constant(self, number: float) -> Value:
        """Return a number in the type of this value, rounded to it once."""
        return Value(self.builder, splat(self.ir.type, number))

    def _operand(self, other: Value | float) -> Value:
        return other if isinstance(other, Value) else self.constant(other)

    def _emit(self, instruction: str, other: Value | float) -> Value:
        return Value(self.builder, getattr(self.builder, instruction)(self.ir, self._operand(other).ir))

    def _compare(self, sign: str, other: Value | float) -> Value:
        return Value(self.builder, self.builder.fcmp_ordered(sign, self.ir, self._operand(other).ir))

    def __add__(self, other: Value | float) -> Value:
        return self._emit("fadd" if self.element is self.format.type else "add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self._emit("fsub" if self.element is self.format.type else "sub", other)

    def __rsub__(self, other: float) -> Value:
        return self.constant(other) - self

    def __mul__(self, other: Value | float) -> Value:
        return self._emit("fmul", other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __truediv__(self, other: Value | float) -> Value:
        return self._emit("fdiv", other)

    def __neg__(self) -> Value:
        return Value(self.builder, self.builder.fneg(self.ir))

    def __abs__(self) -> Value:
        return intrinsic("fabs", self)

    def __lt__(self, other: Value | float) -> Value:
        return self._compare("<", other)

    def __le__(self, other: Value | float) -> Value:
        return self._compare("<=", other)

    def __gt__(self, other: Value | float) -> Value:
        return self._compare(">", other)

    def __ge__(self, other: Value | float) -> Value:
        return self._compare(">=", other)

    def equals(self, other: Value | float) -> Value:
        """Return whether the numbers are equal; a NaN equals nothing."""
        return self._compare("==", other)

    def differs(self, other: Value | float) -> Value:
        """Return whether the numbers differ; a NaN does not."""
        return self._compare("!=", other)

    # Of integers and truth values.

    def __and__(self, other: Value | int) -> Value:
        return self._emit("and_", other)

    def __or__(self, other: Value | int) -> Value:
        return self._emit("or_", other)

    def __xor__(self, other: Value | int) -> Value:
        return self._emit("xor", other)

    def __lshift__(self, places: int) -> Value:
        return self._emit("shl", places)

    def __rshift__(self, places: int) -> Value:
        return self._emit("lshr", places)

    def is_odd(self) -> Value:
        """Return whether an integer's lowest bit is set."""
        truth = with_lanes_of(self.ir.type, ir.IntType(1))
        return Value(self.builder, self.builder.trunc(self.ir, truth))

    def bits(self) -> Value:
        """Return the bits of a float as an integer."""
        return Value(self.builder, self.builder.bitcast(self.ir, with_lanes_of(self.ir.type, self.format.integer)))

    def from_bits(self) -> Value:
        """Return the float with these bits."""
        return Value(self.builder, self.builder.bitcast(self.ir, with_lanes_of(self.ir.type, self.format.type)))

    def resize(self, instruction: str, element: Any) -> Value:
        """Convert by ``fpext``, ``fptrunc`` or ``trunc`` to another element type."""
        return Value(self.builder, getattr(self.builder, instruction)(self.ir, with_lanes_of(self.ir.type, element)))


def intrinsic(name: str, *operands: Value) -> Value:
    """Call ``llvm.<name>``."""
    builder = operands[0].builder
    return Value(builder, call_intrinsic(builder, name, *(operand.ir for operand in operands)))


def copysign(size: Value, sign: Value) -> Value:
    """Return the number of that size with the sign of another, bit by bit.

    Through ``llvm.copysign`` LLVM 22 looks at the sign's source: to take the sign of a float64 that was
    rounded to float16, it calls a library function that does not exist.
    """
    top = 1 << (sign.format.width - 1)
    return ((size.bits() & (top - 1)) | (sign.bits() & top)).from_bits()


def fma(a: Value, b: Value | float, c: Value | float) -> Value:
    """Return ``a * b + c``, rounded once."""
    return intrinsic("fma", a, a._operand(b), a._operand(c))


def where(condition: Value, a: Value | float, b: Value | float) -> Value:
    """Return `a` where the condition holds, `b` elsewhere; one of them is a `Value`."""
    like = a if isinstance(a, Value) else b
    assert isinstance(like, Value)
    picked = condition.builder.select(condition.ir, like._operand(a).ir, like._operand(b).ir)
    return Value(condition.builder, picked)


def at_most(x: Value, high: float) -> Value:
    """Return the smaller of two numbers; a NaN stays."""
    return where(x > high, high, x)


def clamp(x: Value, low: float, high: float) -> Value:
    """Clamp `x` to ``[low, high]``; a NaN stays."""
    below = at_most(x, high)
    return where(below < low, low, below)


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Evaluate the polynomial with these coefficients, in rising powers of `x`, by Horner's rule."""
    *rest, last = coefficients
    total = x.constant(last)
    for coefficient in reversed(rest):
        total = fma(total, x, coefficient)
    return total


def fast_two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """Return ``a + b`` and its rounding error, where ``|a| >= |b|`` or ``a == 0`` (Dekker 1971)."""
    total = a + b
    return total, b - (total - a)


def two_sum(a: Value, b: Value | float) -> tuple[Value, Value]:
    """Return ``a + b`` and its rounding error (Knuth, The Art of Computer Programming 2, 4.2.2)."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def two_product(a: Value, b: Value | float) -> tuple[Value, Value]:
    """Return ``a * b`` and its rounding error."""
    product = a * b
    return product, fma(a, b, -product)
