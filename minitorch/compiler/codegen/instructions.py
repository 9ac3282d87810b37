"""Element types and primitives as LLVM instructions, on scalars and on vectors alike.

A value is *stored* in one form and *computed* in another: bool is a byte in memory and a bit in a register, float16 and
bfloat16 are two bytes in memory and a float in a register. Every table row works on a scalar or on a vector of them.

A value that is computed in two places has the same bits in both, whatever it is fused with, and whether it is in a lane
of a vector, in the masked rest of a row or a scalar. So no row depends on where it is used, and no instruction carries
a fast-math flag that leaves LLVM a choice: LLVM would choose for each copy. Arithmetic is that of IEEE 754 and of eager
mode, operation by operation. A product is fused with a sum only where the loops say so: in `multiply_add`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir

from ... import dtypes
from ...dtypes import DType
from ..loop_ir.loops import COMBINE
from ..target import Target
from .mathematics import FUNCTIONS, functions_for
from .mathematics.values import call_intrinsic, call_named, splat

BIT = ir.IntType(1)
I64 = ir.IntType(64)
FLOAT, DOUBLE, HALF = ir.FloatType(), ir.DoubleType(), ir.HalfType()
_WIDE = (dtypes.float16, dtypes.bfloat16)  # computed in float32


def stored_type(dtype: DType, target: Target) -> Any:
    """Return the type of an element in memory."""
    if dtype in _WIDE:
        return HALF if dtype is dtypes.float16 and target.float16 else ir.IntType(16)
    return ir.IntType(8) if dtype is dtypes.bool_ else computed_type(dtype)


def computed_type(dtype: DType) -> Any:
    """Return the type of an element in a register."""
    if dtype is dtypes.bool_:
        return BIT
    if dtype.is_floating_point:
        return DOUBLE if dtype is dtypes.float64 else FLOAT
    return ir.IntType(8 * dtype.itemsize)


def like(value: Any, element: Any) -> Any:
    """Return the type with `element` in the lanes of a value."""
    return ir.VectorType(element, value.type.count) if isinstance(value.type, ir.VectorType) else element


def constant(dtype: DType, number: Any, kind: Any) -> Any:
    """Return a Python number as a constant of a computed type, rounded as the element type rounds."""
    if dtype.is_floating_point:
        return splat(kind, float(dtype.numpy.type(number)))
    return splat(kind, int(number))


def _half() -> Any:
    from .mathematics import half

    return half


def after_load(builder: Any, value: Any, dtype: DType) -> Any:
    """Convert a value from memory's form to the register's."""
    if dtype is dtypes.bool_:
        return builder.icmp_unsigned("!=", value, splat(value.type, 0))
    if dtype is dtypes.float16:
        return builder.fpext(value, like(value, FLOAT)) if builder.target.float16 else _half().widened(builder, value)
    if dtype is dtypes.bfloat16:  # the upper half of a float
        wide = builder.zext(value, like(value, ir.IntType(32)))
        return builder.bitcast(builder.shl(wide, splat(wide.type, 16)), like(value, FLOAT))
    return value


def before_store(builder: Any, value: Any, dtype: DType) -> Any:
    """Convert a value from the register's form to memory's."""
    if dtype is dtypes.bool_:
        return builder.zext(value, like(value, ir.IntType(8)))
    if dtype is dtypes.float16:
        return builder.fptrunc(value, like(value, HALF)) if builder.target.float16 else _half().narrowed(builder, value)
    if dtype is dtypes.bfloat16:  # round to nearest, ties to even; NaN stays NaN
        bits = builder.bitcast(value, like(value, ir.IntType(32)))
        odd = builder.and_(builder.lshr(bits, splat(bits.type, 16)), splat(bits.type, 1))
        rounded = builder.add(bits, builder.add(odd, splat(bits.type, 0x7FFF)))
        quiet = builder.or_(bits, splat(bits.type, 1 << 22))
        chosen = builder.select(builder.fcmp_unordered("uno", value, value), quiet, rounded)
        return builder.trunc(builder.lshr(chosen, splat(bits.type, 16)), like(value, ir.IntType(16)))
    return value


# The primitives. Each row: (builder, dtype of the operands, *operands) -> value. --------------------------------


def _arithmetic(floats: str, integers: str, bools: str | None = None) -> Callable[..., Any]:
    def emit(builder: Any, dtype: DType, *operands: Any) -> Any:
        if dtype.is_floating_point:
            return getattr(builder, floats)(*operands)
        return getattr(builder, bools if dtype is dtypes.bool_ and bools else integers)(*operands)

    return emit


def _comparison(sign: str) -> Callable[..., Any]:
    def emit(builder: Any, dtype: DType, a: Any, b: Any) -> Any:
        if dtype.is_floating_point:
            return builder.fcmp_ordered(sign, a, b)
        return (builder.icmp_signed if dtype.is_signed else builder.icmp_unsigned)(sign, a, b)

    return emit


def _neg(builder: Any, dtype: DType, x: Any) -> Any:
    return builder.fneg(x) if dtype.is_floating_point else builder.sub(splat(x.type, 0), x)


def _maximum(builder: Any, dtype: DType, a: Any, b: Any) -> Any:
    if dtype.is_floating_point:
        return FUNCTIONS["maximum"](builder, a, b)
    return builder.select(_comparison("<")(builder, dtype, a, b), b, a)


def _abs(builder: Any, dtype: DType, x: Any) -> Any:
    if dtype.is_floating_point:
        return FUNCTIONS["abs"](builder, x)
    if not dtype.is_signed:
        return x
    return builder.select(builder.icmp_signed("<", x, splat(x.type, 0)), _neg(builder, dtype, x), x)


def _shift(left: bool) -> Callable[..., Any]:
    def emit(builder: Any, dtype: DType, a: Any, b: Any) -> Any:
        bits = 8 * dtype.itemsize
        fits = builder.icmp_unsigned("<", b, splat(b.type, bits))
        amount = builder.select(fits, b, splat(b.type, bits - 1))
        if not left and dtype.is_signed:
            return builder.ashr(a, amount)
        shifted = builder.shl(a, amount) if left else builder.lshr(a, amount)
        return builder.select(fits, shifted, splat(a.type, 0))

    return emit


def _floor_divide(builder: Any, dtype: DType, a: Any, b: Any) -> Any:
    """Divide and round down; integers give 0 for a divisor of 0, and do not trap if the quotient does not fit."""
    if dtype.is_floating_point:
        from .mathematics.remainder import floor_divide

        return floor_divide(builder, a, b)
    zero, one = splat(a.type, 0), splat(a.type, 1)
    missing = builder.icmp_unsigned("==", b, zero)
    if not dtype.is_signed:
        return builder.select(missing, zero, builder.udiv(a, builder.select(missing, one, b)))
    opposite = builder.icmp_signed("==", b, splat(a.type, -1))
    divisor = builder.select(builder.or_(missing, opposite), one, b)
    quotient = builder.sdiv(a, divisor)
    rest = builder.sub(a, builder.mul(quotient, divisor))
    below = builder.and_(
        builder.icmp_signed("!=", rest, zero),
        builder.icmp_signed("<", builder.xor(rest, divisor), zero),
    )
    quotient = builder.select(below, builder.sub(quotient, one), quotient)
    return builder.select(missing, zero, builder.select(opposite, builder.sub(zero, a), quotient))


def _remainder(builder: Any, dtype: DType, a: Any, b: Any) -> Any:
    if dtype.is_floating_point:
        from .mathematics.remainder import remainder

        return remainder(builder, a, b)
    quotient = _floor_divide(builder, dtype, a, b)
    rest = builder.sub(a, builder.mul(quotient, b))
    return builder.select(builder.icmp_unsigned("==", b, splat(b.type, 0)), splat(a.type, 0), rest)


def _function(name: str) -> Callable[..., Any]:
    def emit(builder: Any, dtype: DType, *operands: Any) -> Any:
        return functions_for(builder.target.features)[name](builder, *operands)

    return emit


def multiply_add(builder: Any, dtype: DType, a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c``, a step of a sum of products, rounded once where the processor can for all such sums."""
    if dtype in (dtypes.float32, dtypes.float64) and builder.target.fma:
        return call_intrinsic(builder, "fma", a, b, c)
    product = rounded(builder, PRIMITIVES["mul"](builder, dtype, a, b), dtype)
    return rounded(builder, PRIMITIVES["add"](builder, dtype, product, c), dtype)


PRIMITIVES: dict[str, Callable[..., Any]] = {
    **{name: _function(name) for name in FUNCTIONS},
    "add": _arithmetic("fadd", "add", "or_"),
    "sub": _arithmetic("fsub", "sub"),
    "mul": _arithmetic("fmul", "mul", "and_"),
    "div": _arithmetic("fdiv", "sdiv"),
    "multiply_add": multiply_add,  # of no graph: see `loops.Reduce`
    "neg": _neg,
    "abs": _abs,
    "maximum": _maximum,
    "less": _comparison("<"),
    "less_equal": _comparison("<="),
    "equal": _comparison("=="),
    "bitwise_not": lambda builder, dtype, x: builder.not_(x),
    "bitwise_and": lambda builder, dtype, a, b: builder.and_(a, b),
    "bitwise_or": lambda builder, dtype, a, b: builder.or_(a, b),
    "bitwise_xor": lambda builder, dtype, a, b: builder.xor(a, b),
    "shift_left": _shift(left=True),
    "shift_right": _shift(left=False),
    "floor_divide": _floor_divide,
    "remainder": _remainder,
}


def cast(builder: Any, x: Any, old: DType, new: DType) -> Any:
    """Convert a number of one element type to the nearest of another; from float to int towards zero."""
    target = like(x, computed_type(new))
    if new is dtypes.bool_:
        if old is dtypes.bool_:
            return x
        if old.is_floating_point:
            return builder.fcmp_unordered("!=", x, splat(x.type, 0.0))
        return builder.icmp_unsigned("!=", x, splat(x.type, 0))
    if old is dtypes.bool_:
        return builder.uitofp(x, target) if new.is_floating_point else builder.zext(x, target)
    if old.is_floating_point and new.is_floating_point:
        if old is dtypes.float64 and new is not dtypes.float64:
            x = builder.fptrunc(x, like(x, FLOAT))
        elif new is dtypes.float64 and old is not dtypes.float64:
            return builder.fpext(x, target)
        return x if old is new else rounded(builder, x, new)
    if old.is_floating_point:
        # Beyond the range of the type LLVM leaves the value open, and vectors give another one than scalars. So this
        # converts to a type that processors convert to, and takes the last bits, as NumPy and PyTorch do.
        through = like(x, ir.IntType(64 if new.itemsize == 8 or new is dtypes.uint32 else 32))
        whole = builder.fptosi(x, through)
        return whole if through == target else builder.trunc(whole, target)
    if new.is_floating_point:
        made = (builder.sitofp if old.is_signed else builder.uitofp)(x, target)
        return rounded(builder, made, new)
    if new.itemsize < old.itemsize:
        return builder.trunc(x, target)
    if new.itemsize > old.itemsize:
        return (builder.sext if old.is_signed else builder.zext)(x, target)
    return x


def nearest(builder: Any, x: Any, new: DType) -> Any:
    """Round a float32 to the nearest integer, ties to even: the last bits, if it fits into 32."""
    through = like(x, ir.IntType(32))
    lanes = f"v{x.type.count}" if isinstance(x.type, ir.VectorType) else ""
    name = f"llvm.lrint.{lanes}i32.{lanes}f32"
    whole, target = call_named(builder, name, through, [x]), like(x, computed_type(new))
    return whole if through == target else builder.trunc(whole, target)


def rounded(builder: Any, x: Any, dtype: DType) -> Any:
    """Round a float to a 16-bit type, and keep it a float: every operation rounds, as it does in eager mode."""
    if dtype not in _WIDE:
        return x
    return after_load(builder, before_store(builder, x, dtype), dtype)


UNSIGNED, WORDS = (dtypes.uint8, dtypes.int8), (dtypes.int16, dtypes.int16)
VNNI, BW = frozenset({"avx512vnni"}), frozenset({"avx512bw"})
BOTH_VNNI = VNNI | {"avxvnni"}
X86 = "llvm.x86"

# A dot product of groups of integers in 32-bit lanes: terms of a group, the types of their factors, lanes, and features
# of which one has to be there. Then LLVM's intrinsic. `vpdpbusd` adds to a total itself. The last ones add up pairs in
# 16 bits, where they fit, and another intrinsic multiplies these sums by ones and adds up pairs of them.
DOT_PRODUCTS: tuple[tuple[int, tuple[DType, DType], int, frozenset[str], str, str], ...] = (
    (4, UNSIGNED, 16, VNNI, f"{X86}.avx512.vpdpbusd.512", ""),
    (4, UNSIGNED, 8, BOTH_VNNI, f"{X86}.avx512.vpdpbusd.256", ""),
    (4, UNSIGNED, 4, BOTH_VNNI, f"{X86}.avx512.vpdpbusd.128", ""),
    (2, WORDS, 16, BW, f"{X86}.avx512.pmaddw.d.512", ""),
    (2, WORDS, 8, frozenset({"avx2"}), f"{X86}.avx2.pmadd.wd", ""),
    (2, WORDS, 4, frozenset({"sse2"}), f"{X86}.sse2.pmadd.wd", ""),
    (4, UNSIGNED, 16, BW, f"{X86}.avx512.pmaddubs.w.512", f"{X86}.avx512.pmaddw.d.512"),
    (4, UNSIGNED, 8, frozenset({"avx2"}), f"{X86}.avx2.pmadd.ub.sw", f"{X86}.avx2.pmadd.wd"),
    (4, UNSIGNED, 4, frozenset({"ssse3"}), f"{X86}.ssse3.pmadd.ub.sw.128", f"{X86}.sse2.pmadd.wd"),
)


def dot_product(
    builder: Any, size: int, kinds: tuple[DType, DType], lanes: int, in_pairs: bool = False
) -> Callable[[Any, Any, Any], Any] | None:
    """Return an instruction that adds the products of a group to each lane; None if the target has none.

    Args:
        builder: of the code.
        size: terms of a group.
        kinds: the types of both factors.
        lanes: of the totals.
        in_pairs: whether pairs of products fit into 16 bits, so that they may be added up there.

    Returns:
        A function of the totals and of both factors, which are words of `size` numbers of these kinds; a factor with
        fewer lanes than the totals is repeated in them.
    """
    for own, types, count, features, name, of_sums in DOT_PRODUCTS:
        if (own, count, bool(of_sums)) != (size, lanes, in_pairs) or builder.target.required.isdisjoint(features):
            continue
        if kinds in (types, types[::-1]):
            return partial(_dot_product, builder, types, 0 if kinds == types else 1, size, name, of_sums)
    return None


def _dot_product(
    builder: Any, types: tuple[DType, DType], first: int, size: int, name: str, of_sums: str, total: Any, *words: Any
) -> Any:
    """Add products to a total by the intrinsic `name`, and by another one of its sums in 16 bits, if there is one."""
    part = ir.VectorType(ir.IntType(8 * types[0].itemsize), total.type.count * size)
    operands = [builder.bitcast(words[side], part) for side in (first, 1 - first)]
    if "vpdpbusd" in name:
        return call_named(builder, name, total.type, [total, *operands])
    if not of_sums:
        return builder.add(total, call_named(builder, name, total.type, operands))
    halves = ir.VectorType(ir.IntType(16), 2 * total.type.count)
    sums = call_named(builder, name, halves, operands)
    return builder.add(total, call_named(builder, of_sums, total.type, (sums, ir.Constant(halves, [1] * halves.count))))


def combine(builder: Any, reduction: str, dtype: DType, a: Any, b: Any) -> Any:
    """Combine an accumulator and a value, one step of a reduction."""
    if reduction == "reduce_max" and dtype is dtypes.bool_:
        return builder.or_(a, b)
    if reduction == "reduce_max" and dtype.is_floating_point:
        # Which of two zeros is larger is left open: a maximum is computed in one place, and equal to both. In this
        # order, the test for NaN need not wait for the accumulator.
        return call_intrinsic(builder, "maximum", b, a, flags=("nsz",))
    return PRIMITIVES[COMBINE[reduction]](builder, dtype, a, b)
