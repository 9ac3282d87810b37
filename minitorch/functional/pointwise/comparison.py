"""Comparisons, logic and bits: eq, lt, isnan, logical_and, bitwise_xor, shifts, and the Python operators for them.

Comparisons give bool tensors. `allclose` and `equal` give Python bools, so they need values and cannot be traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import primitives as P
from ...dtypes import bool_, float64
from ...errors import DTypeError
from ...interpreters import concrete
from ...tensor import Tensor
from ..families import member, operators
from ..operands import Operand, like, operand, promote, to_dtype
from ..options import equals

Binary = Callable[[Operand, Operand], Tensor]
Formula = Callable[..., Tensor]


def _binary(
    name: str, formula: Formula, meaning: str, arguments: str, result: str, prepared: Callable[..., Any] = promote
) -> Binary:
    """Return a function of two operands, which are prepared: given one type, unless told otherwise."""
    left, right = arguments.split(" and ")

    @member(name, meaning=meaning, left=left, right=right, result=result)
    def function(input: Operand, other: Operand) -> Tensor:
        """Return {meaning}, element by element.

        Example:
            >>> import minitorch as mt
            >>> mt.{name}(mt.tensor({left}), mt.tensor({right}))
            tensor({result})
        """
        return formula(*prepared(input, other))

    return function


# Comparisons ------------------------------------------------------------------------------------------------

_ONE_TWO = "[1.0, 2.0] and [1.0, 5.0]"
eq = _binary("eq", P.equal, "whether the operands are equal; NaN equals nothing", _ONE_TWO, "[ True, False]")
ne = _binary("ne", lambda a, b: P.bitwise_not(P.equal(a, b)), "whether they differ", _ONE_TWO, "[False,  True]")
lt = _binary("lt", P.less, "whether the first is smaller", _ONE_TWO, "[False,  True]")
le = _binary("le", P.less_equal, "whether the first is not larger", _ONE_TWO, "[True, True]")
gt = _binary("gt", lambda a, b: P.less(b, a), "whether the first is larger", _ONE_TWO, "[False, False]")
ge = _binary("ge", lambda a, b: P.less_equal(b, a), "whether the first is not smaller", _ONE_TWO, "[ True, False]")

# PyTorch's other names for the same functions.
not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge


def isnan(input: Tensor) -> Tensor:
    """Return whether each element is NaN, the only number that differs from itself.

    Example:
        >>> import minitorch as mt
        >>> mt.isnan(mt.tensor([1.0, float("nan")]))
        tensor([False,  True])
    """
    return ne(input, input)


def isinf(input: Tensor) -> Tensor:
    """Return whether each element is an infinity, of either sign.

    Example:
        >>> import minitorch as mt
        >>> mt.isinf(mt.tensor([1.0, -float("inf")]))
        tensor([False,  True])
    """
    x = operand(input)
    if not x.dtype.is_floating_point:
        return ne(x, x)
    return P.equal(P.absolute(x), like(math.inf, x))


def isfinite(input: Tensor) -> Tensor:
    """Return whether each element is neither NaN nor an infinity.

    Example:
        >>> import minitorch as mt
        >>> mt.isfinite(mt.tensor([1.0, float("nan"), float("inf")]))
        tensor([ True, False, False])
    """
    x = operand(input)
    return P.less(P.absolute(x), like(math.inf, x)) if x.dtype.is_floating_point else eq(x, x)


def isclose(input: Tensor, other: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Return whether elements are equal within a tolerance: ``|input - other| <= atol + rtol * |other|``.

    Example:
        >>> import minitorch as mt
        >>> mt.isclose(mt.tensor([1.0, 2.0]), mt.tensor([1.000001, 2.1]))
        tensor([ True, False])
    """
    a, b = promote(input, other)
    close = P.equal(a, b)
    if equal_nan:
        close = P.bitwise_or(close, P.bitwise_and(isnan(a), isnan(b)))
    if equals(rtol, 0) and equals(atol, 0):  # large integers that differ may be one float64
        return close
    if not a.dtype.is_floating_point:
        a, b = P.cast(a, dtype=float64), P.cast(b, dtype=float64)
    gap = P.absolute(P.sub(a, b))
    allowed = P.add(like(atol, a), P.mul(like(rtol, a), P.absolute(b)))
    return P.bitwise_or(close, P.bitwise_and(isfinite(gap), P.less_equal(gap, allowed)))


def allclose(input: Tensor, other: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether `isclose` holds everywhere, as a Python bool.

    Example:
        >>> import minitorch as mt
        >>> mt.allclose(mt.ones(2), mt.tensor([1.0, 1.000001]))
        True
    """
    return _everywhere(isclose(input, other, rtol, atol, equal_nan), "allclose")


def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and equal elements, as a Python bool.

    Example:
        >>> import minitorch as mt
        >>> mt.equal(mt.ones(2), mt.ones(2)), mt.equal(mt.ones(2), mt.ones(3))
        (True, False)
    """
    return input.shape == other.shape and _everywhere(eq(input, other), "equal")


def _everywhere(condition: Tensor, name: str) -> bool:
    fix = "use eq or isclose and all(), which give a tensor, and look at it outside"
    return bool(concrete(condition, f"{name}()", fix=fix).all())


# Logic: every number but zero counts as true. -----------------------------------------------------------------


def _truths(input: Operand, other: Operand) -> tuple[Tensor, Tensor]:
    return to_dtype(operand(input), bool_), to_dtype(operand(other), bool_)


def _logical(name: str, primitive: Formula, meaning: str, result: str) -> Binary:
    return _binary(name, primitive, f"whether {meaning} other than 0", "[0, 1, 2] and [1, 0, 3]", result, _truths)


logical_and = _logical("logical_and", P.bitwise_and, "both are", "[False, False,  True]")
logical_or = _logical("logical_or", P.bitwise_or, "one is", "[True, True, True]")
logical_xor = _logical("logical_xor", P.bitwise_xor, "only one is", "[ True,  True, False]")


def logical_not(input: Tensor) -> Tensor:
    """Return whether each element is 0.

    Example:
        >>> import minitorch as mt
        >>> mt.logical_not(mt.tensor([0, 1, 2]))
        tensor([ True, False, False])
    """
    return P.bitwise_not(to_dtype(operand(input), bool_))


# Bits: of integers, or of bools -----------------------------------------------------------------------------

_BITS = "[12, 1] and [10, 1]"
bitwise_and = _binary("bitwise_and", P.bitwise_and, "the bits that both operands have", _BITS, "[8, 1]")
bitwise_or = _binary("bitwise_or", P.bitwise_or, "the bits that one of the operands has", _BITS, "[14,  1]")
bitwise_xor = _binary("bitwise_xor", P.bitwise_xor, "the bits that only one of them has", _BITS, "[6, 0]")


def bitwise_not(input: Tensor) -> Tensor:
    """Invert all bits; of bools, return not.

    Example:
        >>> import minitorch as mt
        >>> ~mt.tensor([0, 1]), ~mt.tensor([True, False])
        (tensor([-1, -2]), tensor([False,  True]))
    """
    return P.bitwise_not(operand(input))


def _shift(name: str, primitive: P.Primitive, meaning: str, arguments: str, result: str) -> Binary:
    def formula(a: Tensor, b: Tensor) -> Tensor:
        if a.dtype.category != "int":
            raise DTypeError("MT202", f"{name} of {a.dtype.name} tensors", fix="convert them to integers first")
        return primitive(a, b)

    return _binary(name, formula, meaning, arguments, result)


bitwise_left_shift = _shift(
    "bitwise_left_shift", P.shift_left, "the first times 2 to the power of the second", "[1, 3] and [4, 1]", "[16,  6]"
)
bitwise_right_shift = _shift(
    "bitwise_right_shift",
    P.shift_right,
    "the first divided by 2 to the power of the second, rounded down",
    "[16, -3] and [4, 1]",
    "[ 1, -2]",
)


# Operators --------------------------------------------------------------------------------------------------


OPERATORS: dict[str, Callable[..., Any]] = {
    **operators(eq=eq, ne=ne, lt=lt, le=le, gt=gt, ge=ge),
    **operators(lshift=bitwise_left_shift, rshift=bitwise_right_shift, xor=bitwise_xor),
    **operators(**{"and": bitwise_and, "or": bitwise_or}),
    "__invert__": bitwise_not,
}
