"""Algebraic simplification: laws that hold for every value of every type, bit for bit.

Floats have NaN, infinities and two zeros, and round; integers wrap around. A law of the real numbers that fails for
one of these stays out, or is guarded by a condition on the type. `minitorch.passes.rejected` lists the tempting ones
that stay out, each with a counterexample. A law may change only the bits inside a NaN.
"""

from __future__ import annotations

import math

import numpy as np

from ..dtypes import ALL, DType, bfloat16, bool_, float16, float32, float64
from ..graph.values import is_splat
from ..ir import Node, Spec
from ..primitives import cast, mul
from ..primitives.reductions import lowest
from .patterns import Match, number, op, param, wildcard
from .pipeline import table_pass
from .rewrite import Rule, Rules, floats, integers, signed

# Significant bits and the range of exponents (of a fraction in [0.5, 1)).
_FLOATS = {float16: (11, -13, 16), bfloat16: (8, -125, 128), float32: (24, -125, 128), float64: (53, -1021, 1024)}


def _is_exact(source: DType, target: DType) -> bool:
    if source is target or source is bool_:
        return True
    if target is bool_:
        return False
    if source.is_floating_point:
        return target.is_floating_point and all(
            (low <= high for low, high in zip(_FLOATS[source][::2], _FLOATS[target][::2], strict=True))
        )
    numbers = np.iinfo(source.numpy)
    if target.is_floating_point:
        return numbers.bits - source.is_signed <= _FLOATS[target][0]
    return np.iinfo(target.numpy).min <= numbers.min and numbers.max <= np.iinfo(target.numpy).max


# The pairs of types in which the second holds every value of the first.
EXACT = frozenset((source, target) for source in ALL for target in ALL if _is_exact(source, target))


def _all_ones(spec: Spec) -> bool | int:
    if spec.dtype is bool_:
        return True
    return -1 if spec.dtype.is_signed else int(np.iinfo(spec.dtype.numpy).max)


def _times_reciprocal(match: Match) -> Node | None:
    """Multiply by the reciprocal of a power of two, which is exact unless it overflows or is subnormal."""
    divisor = float(match["n"].params["value"])
    fraction, exponent = math.frexp(divisor)
    _, low, high = _FLOATS[match.node.dtype]
    if abs(fraction) != 0.5 or not low <= 2 - exponent <= high or not low <= exponent <= high:
        return None
    return match.apply(mul, match["x"], match.literal(1 / divisor))


def _straight_cast(match: Match) -> Node | None:
    """Return a cast without the intermediate type, if that holds every value and the conversions agree."""
    source, between, target = match["x"].dtype, match["a"], match["b"]
    if (source, between) not in EXACT:
        return None
    # A float beyond the range of an integer type has no defined value there; an integer wraps around.
    same_kind = source.category == between.category == "int" or source is bool_
    if target.category == "int" and not same_kind and (source, target) not in EXACT:
        return None
    return match.apply(cast, match["x"], dtype=target)


def _is_unsigned(match: Match) -> bool:
    return not match["x"].dtype.is_signed


def _to_own_type(match: Match) -> bool:
    return bool(match["x"].dtype is match["a"])


def _varying_integers(match: Match) -> bool:
    """Return whether `x` is integer and no constant: with three constants, the law would apply endlessly."""
    return match["x"].dtype.category != "float" and not is_splat(match["x"])


x, y, z, c = wildcard("x"), wildcard("y"), wildcard("z"), wildcard("c")
n, m = number("n"), number("m")  # any constants
ones = number("ones", _all_ones)  # every bit set
least = number("least", lambda spec: lowest(spec.dtype))  # below everything else
a, b = param("a"), param("b")

# In an integer type, -0.0 is 0: one row serves both.
SUMS = Rules(
    Rule(x + -0.0, x),  # x + 0.0 makes a 0.0 of -0.0
    Rule(x - 0, x),
    Rule(-0.0 - x, -x),
    Rule(x + -y, x - y),
    Rule(x - -y, x + y),
    Rule(op.neg(-x), x),
    Rule(x - x, 0, where=integers("x")),
    Rule(x + -x, 0, where=integers("x")),
    Rule((x + n) + m, x + (n + m), where=_varying_integers),  # wraps around alike in any order
)
PRODUCTS = Rules(
    Rule(x * 1, x),
    Rule(x / 1, x),
    Rule(x * -1, -x),
    Rule(x / -1, -x),
    Rule((-x) * (-y), x * y),
    Rule((-x) / (-y), x / y),
    Rule(x * 0, 0, where=integers("x")),
    Rule((x * n) * m, x * (n * m), where=_varying_integers),
    Rule(op.floor_divide(x, 1), x, where=integers("x")),
    Rule(op.remainder(x, 1), 0, where=integers("x")),
    Rule(x**0, 1),  # NaN to the power 0 is 1, says IEEE 754
    Rule(x**1, x),
    Rule(x**2, x * x),
    Rule(x**-1, 1 / x, where=floats("x")),
    Rule(op.reduce_max(x, dims=()), x),
    Rule(op.reduce_prod(x, dims=()), x),
)
SIZES = Rules(
    Rule(abs(abs(x)), abs(x)),
    Rule(abs(-x), abs(x), where=signed("x")),  # also of the lowest integer, which is its own negative
    Rule(abs(x), x, where=_is_unsigned),
    Rule(op.maximum(x, x), x),
    Rule(op.maximum(x, least), x),  # NaN is kept by maximum
    Rule(op.floor(op.floor(x)), op.floor(x)),
    Rule(op.floor(op.trunc(x)), op.trunc(x)),
    Rule(op.trunc(op.floor(x)), op.floor(x)),
    Rule(op.trunc(op.trunc(x)), op.trunc(x)),
)
CONDITIONS = Rules(
    Rule(op.where(True, x, y), x),
    Rule(op.where(False, x, y), y),
    Rule(op.where(c, x, x), x),
    Rule(op.where(~c, x, y), op.where(c, y, x)),
    Rule(op.where(c, True, False), c),
    Rule(op.where(c, False, True), ~c),
    Rule(op.where(c, op.where(c, x, y), z), op.where(c, x, z)),
    Rule(op.where(c, x, op.where(c, y, z)), op.where(c, x, z)),
    Rule(op.less(x, x), False),  # also of NaN
    Rule(op.equal(x, x), True, where=integers("x")),
    Rule(op.less_equal(x, x), True, where=integers("x")),
    Rule(op.equal(x, True), x),
    Rule(op.equal(x, False), ~x),
    Rule(~op.less(x, y), op.less_equal(y, x), where=integers("x")),
    Rule(~op.less_equal(x, y), op.less(y, x), where=integers("x")),
)
RECIPROCALS = Rules(
    Rule(x / n, _times_reciprocal, name="x / n -> x * (1 / n) if n is a power of two"),
)
BITS = Rules(
    Rule(~~x, x),
    Rule(x & x, x),
    Rule(x & 0, 0),
    Rule(x & ones, x),
    Rule(x | x, x),
    Rule(x | 0, x),
    Rule(x | ones, ones),
    Rule(x ^ x, 0),
    Rule(x ^ 0, x),
    Rule(x ^ ones, ~x),
    Rule(x << 0, x),
    Rule(x >> 0, x),
)
TYPES = Rules(
    Rule(op.cast(x, dtype=a), x, where=_to_own_type, name="cast(x) -> x of its own type"),
    Rule(op.cast(op.cast(x, dtype=a), dtype=b), _straight_cast, name="cast(cast(x)) -> cast(x) without loss"),
    Rule(op.bitcast(x, dtype=a), x, where=_to_own_type, name="bitcast(x) -> x of its own type"),
    Rule(op.bitcast(op.bitcast(x, dtype=a), dtype=b), op.bitcast(x, dtype=b)),
)

LAWS = SUMS + PRODUCTS + RECIPROCALS + SIZES + CONDITIONS + BITS + TYPES

ALGEBRA = table_pass("algebra", LAWS, "Apply laws of arithmetic that hold for every value of every type.")
