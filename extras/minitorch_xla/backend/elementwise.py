"""Pointwise primitives in `jax.lax`: what XLA defines in another way is written out.

XLA's division of integers by 0 gives -1 (ours 0), a float becomes the nearest integer that a type has (ours: the last
bits of a larger one), its `abs` knows no unsigned integers, and it has no `trunc`, no division that rounds down, and no
power of integers. Everything else is an operation of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from minitorch.dtypes import DType, bool_, float16, uint32

Rule = Callable[..., Any]


def full(x: Any, value: float) -> Any:
    """A number in every element, in the type of another array."""
    return lax.full_like(x, value)


def _is_float(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def _is_bool(x: Any) -> bool:
    return bool(x.dtype == jnp.bool_)


def _absolute(x: Any) -> Any:
    return x if jnp.issubdtype(x.dtype, jnp.unsignedinteger) else lax.abs(x)


def trunc(x: Any) -> Any:
    """The number without its fraction, with its sign."""
    return lax.select(lax.lt(x, full(x, 0)), lax.ceil(x), lax.floor(x))


def _cast(x: Any, *, dtype: DType) -> Any:
    if dtype is float16 and x.dtype == jnp.float64:
        x = lax.convert_element_type(x, jnp.float32)  # rounded twice, as eager mode does
    if dtype is bool_:
        return lax.ne(x, full(x, 0))
    if (
        _is_bool(x) and dtype.is_floating_point
    ):  # XLA takes a product with a converted bool for a selection: 0 * inf is 0
        return lax.select(x, lax.full(x.shape, 1, dtype.numpy), lax.full(x.shape, 0, dtype.numpy))
    if _is_float(x) and not dtype.is_floating_point:
        x = _whole(x, np.int64 if dtype.itemsize == 8 or dtype is uint32 else np.int32)
    return lax.convert_element_type(x, dtype.numpy)


def _whole(x: Any, dtype: type[np.signedinteger[Any]]) -> Any:
    """A float without its fraction; the smallest integer for NaN and beyond the range, as processors give it."""
    bounds = np.iinfo(dtype)
    x = lax.convert_element_type(x, jnp.promote_types(x.dtype, jnp.float32))
    fits = lax.lt(x, full(x, -float(bounds.min)))  # below the range XLA gives the smallest itself
    return lax.select(fits, lax.convert_element_type(x, dtype), lax.full(x.shape, bounds.min, dtype))


def _bitcast(x: Any, *, dtype: DType) -> Any:
    return x if x.dtype == dtype.numpy else lax.bitcast_convert_type(x, dtype.numpy)


def _divided(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Of integers: which divisors are 0, and quotient and rest towards zero with 1 in their place."""
    nothing = lax.eq(b, full(b, 0))
    divisor = lax.select(nothing, full(b, 1), b)
    return nothing, lax.div(a, divisor), lax.rem(a, divisor)


def _other_sign(rest: Any, b: Any) -> Any:
    """Whether a rest is not 0 and has not the sign of the divisor."""
    negative = lax.ne(lax.lt(rest, full(rest, 0)), lax.lt(b, full(b, 0)))
    return lax.bitwise_and(lax.ne(rest, full(rest, 0)), negative)


def _remainder(a: Any, b: Any) -> Any:
    if _is_float(a):
        rest = lax.rem(a, b)
        rest = lax.select(_other_sign(rest, b), lax.add(rest, b), rest)
        signed_zero = lax.select(lax.lt(b, full(b, 0)), full(b, -0.0), full(b, 0.0))
        return lax.select(lax.eq(rest, full(rest, 0)), signed_zero, rest)
    nothing, _, rest = _divided(a, b)
    rest = lax.select(_other_sign(rest, b), lax.add(rest, b), rest)
    return lax.select(nothing, full(rest, 0), rest)


def _floor_divide(a: Any, b: Any) -> Any:
    if not _is_float(a):
        nothing, quotient, rest = _divided(a, b)
        quotient = lax.select(_other_sign(rest, b), lax.sub(quotient, full(quotient, 1)), quotient)
        return lax.select(nothing, full(quotient, 0), quotient)
    # NumPy's: from the exact rest, so that the quotient is not rounded up to the next whole number.
    rest = lax.rem(a, b)
    exact = lax.div(lax.sub(a, rest), b)
    exact = lax.select(_other_sign(rest, b), lax.sub(exact, full(exact, 1)), exact)
    down = lax.floor(exact)
    down = lax.select(lax.gt(lax.sub(exact, down), full(down, 0.5)), lax.add(down, full(down, 1)), down)
    ratio = lax.div(a, b)
    signed_zero = lax.mul(full(ratio, 0), lax.sign(ratio))
    down = lax.select(lax.eq(exact, full(exact, 0)), signed_zero, down)
    return lax.select(lax.eq(b, full(b, 0)), ratio, down)


def _power(a: Any, b: Any) -> Any:
    if _is_float(a):
        return lax.pow(a, b)
    bits = a.dtype.itemsize * 8
    one = full(a, 1)

    def step(_: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        result, base, rest = state
        odd = lax.ne(lax.bitwise_and(rest, one), full(rest, 0))
        result = lax.select(odd, lax.mul(result, base), result)
        return result, lax.mul(base, base), lax.shift_right_logical(rest, one)

    power, _, _ = lax.fori_loop(0, bits, step, (one, a, b))
    if jnp.issubdtype(a.dtype, jnp.unsignedinteger):
        return power
    # To a negative power: 0, but for 1 and -1.
    odd = lax.ne(lax.bitwise_and(b, one), full(b, 0))
    inverse = lax.select(lax.eq(lax.abs(a), one), lax.select(odd, a, one), full(a, 0))
    return lax.select(lax.lt(b, full(b, 0)), inverse, power)


def _shift_right(a: Any, b: Any) -> Any:
    unsigned = jnp.issubdtype(a.dtype, jnp.unsignedinteger)
    return (lax.shift_right_logical if unsigned else lax.shift_right_arithmetic)(a, b)


def _log1p(x: Any) -> Any:
    """Of small numbers in float64 with a step of Newton's method: XLA's own is wrong by a hundred last places."""
    found = lax.log1p(x)
    if x.dtype != jnp.float64:
        return found
    nearer = lax.sub(found, lax.div(lax.sub(lax.expm1(found), x), lax.add(full(x, 1), x)))
    return lax.select(lax.lt(lax.abs(x), full(x, 0.5)), nearer, found)


def _of_bools(of_numbers: Rule, of_bools: Rule) -> Rule:
    return lambda a, b: (of_bools if _is_bool(a) else of_numbers)(a, b)


def in_float32(rule: Rule) -> Rule:
    """A rule that computes 16-bit floats in float32 and rounds once, as eager mode does."""

    def computed(*operands: Any, **params: Any) -> Any:
        dtype = operands[0].dtype
        if dtype not in (jnp.float16, jnp.bfloat16):
            return rule(*operands, **params)
        wide = [lax.convert_element_type(each, jnp.float32) for each in operands]
        return lax.convert_element_type(rule(*wide, **params), dtype)

    return computed


RULES: dict[str, Rule] = {
    "add": _of_bools(lax.add, lax.bitwise_or),
    "sub": lax.sub,
    "mul": _of_bools(lax.mul, lax.bitwise_and),
    "div": in_float32(lax.div),
    "neg": lax.neg,
    "abs": _absolute,
    "less": lax.lt,
    "less_equal": lax.le,
    "equal": lax.eq,
    "where": lax.select,
    "cast": _cast,
    "bitcast": _bitcast,
    "check": lambda x, **params: x,  # see `indices`
    "sqrt": in_float32(lax.sqrt),
    "exp": in_float32(lax.exp),
    "expm1": in_float32(lax.expm1),
    "log": in_float32(lax.log),
    "log1p": in_float32(_log1p),
    "sin": in_float32(lax.sin),
    "cos": in_float32(lax.cos),
    "tanh": in_float32(lax.tanh),
    "erf": in_float32(lax.erf),
    "floor": lax.floor,
    "trunc": trunc,
    "bitwise_not": lax.bitwise_not,
    "bitwise_and": lax.bitwise_and,
    "bitwise_or": lax.bitwise_or,
    "bitwise_xor": lax.bitwise_xor,
    "shift_left": lax.shift_left,
    "shift_right": _shift_right,
    "maximum": lax.max,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "pow": in_float32(_power),
    "atan2": in_float32(lax.atan2),
    "barrier": jax.lax.optimization_barrier,
}
