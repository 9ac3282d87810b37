"""Arithmetic of two operands, add, div, remainder, pow, ..., and Python's operators for it.

Operands are promoted to a common type (`operands.promote`) and broadcast. Larger and smaller are in `selection`,
comparisons and bits in `comparison`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import primitives as P
from ...dtypes import PYTHON_NUMBERS, DType, bool_
from ...errors import DTypeError
from ...tensor import Tensor
from ..families import operators
from ..operands import Number, Operand, fitting, like, number, promote, promote_floats, result_type, to_dtype, widened
from ..options import equals, require_number
from .elementwise import reciprocal, rsqrt, sqrt, square
from .formulas import unit_sign, with_derivative

# The four operations ----------------------------------------------------------------------------------------


def _scaled(name: str, other: Operand, alpha: Number, dtype: DType) -> Operand:
    if dtype.category != "float" and isinstance(alpha, float):
        raise DTypeError("MT202", f"{name}: alpha={alpha} is no integer, and the operands are {dtype.name}")
    return mul(other, number(fitting(name, alpha, dtype), dtype))


def add(input: Operand, other: Operand, *, alpha: Number = 1) -> Tensor:
    """Return the sum of two tensors or numbers, the second times `alpha`; of two bools, their or.

    Raises:
        ShapeError: ``MT201`` if the shapes do not broadcast.

    Example:
        >>> import minitorch as mt
        >>> mt.add(mt.tensor([1, 2]), 0.5)
        tensor([1.5000, 2.5000])
    """
    a, b = promote(input, other)
    return P.add(a, b) if equals(alpha, 1) else P.add(*promote(a, _scaled("add", b, alpha, a.dtype)))


def _is_bool(value: Operand) -> bool:
    return value.dtype is bool_ if isinstance(value, Tensor) else isinstance(value, bool)


def sub(input: Operand, other: Operand, *, alpha: Number = 1) -> Tensor:
    """Return the difference of two tensors or numbers, the second times `alpha`.

    Raises:
        DTypeError: ``MT202`` if either is a bool.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1, 2]) - mt.tensor([[1], [2]])
        tensor([[ 0,  1],
                [-1,  0]])
    """
    if _is_bool(input) or _is_bool(other):
        raise DTypeError(
            "MT202",
            "sub: subtraction with a bool is not supported",
            why="what the difference of two truths would be is not agreed on",
            fix="~mask to invert a mask, a ^ b for where two of them differ, or convert it: mask.int()",
        )
    a, b = promote(input, other)
    return P.sub(a, b) if equals(alpha, 1) else P.sub(*promote(a, _scaled("sub", b, alpha, a.dtype)))


def mul(input: Operand, other: Operand) -> Tensor:
    """Return the product of two tensors or numbers; of two bools, their and.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1, 2]) * mt.tensor([3.0, 4.0])
        tensor([3., 8.])
    """
    return P.mul(*promote(input, other))


def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """Return the quotient of two tensors or numbers; a float, unless it is rounded.

    Args:
        input: the dividend.
        other: the divisor.
        rounding_mode: None, ``"trunc"`` (towards zero, as in C) or ``"floor"`` (down, as Python's ``//``).

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([-7, 7])
        >>> x / 2, mt.div(x, 2, rounding_mode="trunc"), mt.div(x, 2, rounding_mode="floor")
        (tensor([-3.5000,  3.5000]), tensor([-3,  3]), tensor([-4,  3]))
    """
    if rounding_mode is None:
        return P.div(*promote_floats(input, other))
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise ValueError(f"div: rounding_mode is None, 'trunc' or 'floor', not {rounding_mode!r}")
    a, b = promote(input, other)
    if a.dtype.is_floating_point:
        return _trunc_divide(a, b)
    down = floor_divide(a, b)
    too_low = P.bitwise_and(P.less(down, like(0, a)), P.bitwise_not(P.equal(P.mul(down, b), a)))
    return P.add(down, P.cast(too_low, dtype=a.dtype))


_trunc_divide = with_derivative("trunc_divide", lambda a, b: P.trunc(P.div(a, b)), None, None)


def floor_divide(input: Operand, other: Operand) -> Tensor:
    """Return the quotient rounded down, as Python's ``//``.

    Of integers divided by zero it is 0, where PyTorch raises: a compiled graph cannot stop in the middle.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([7, -7]) // 2, mt.tensor([7.5]) // 2
        (tensor([ 3, -4]), tensor([3.]))
    """
    a, b = promote(input, other)
    require_number(a, "floor_divide")
    return P.floor_divide(a, b)


def remainder(input: Operand, other: Operand) -> Tensor:
    """Return the remainder of `floor_divide`, with the divisor's sign, as Python's ``%``; of integers modulo zero, 0.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([7, -7]) % 3
        tensor([1, 2])
    """
    a, b = promote(input, other)
    require_number(a, "remainder")
    return P.remainder(a, b)


def fmod(input: Operand, other: Operand) -> Tensor:
    """Return the remainder of truncating division, with the sign of the dividend, as in C.

    Example:
        >>> import minitorch as mt
        >>> mt.fmod(mt.tensor([7, -7]), 3)
        tensor([ 1, -1])
    """
    a, b = promote(input, other)
    require_number(a, "fmod")
    if a.dtype.is_floating_point:  # exact: of two numbers >= 0, both remainders are the same
        s = unit_sign(a)
        return P.mul(s, P.remainder(P.mul(s, a), P.mul(unit_sign(b), b)))
    rest = P.remainder(a, b)
    zero = like(0, a)
    apart = P.bitwise_xor(P.less(rest, zero), P.less(a, zero))
    return P.where(P.bitwise_and(apart, P.bitwise_not(P.equal(rest, zero))), P.sub(rest, b), rest)


# Powers -----------------------------------------------------------------------------------------------------

# Exponents with a shorter way (the ones that PyTorch has one for): cheaper, and with a simpler gradient.
_SHORT_POWERS: dict[Number, Callable[[Tensor], Tensor]] = {
    2: square,
    3: widened(lambda x: P.mul(square(x), x)),
    0.5: sqrt,
    -0.5: rsqrt,
    -1: reciprocal,
}


def pow(input: Operand, exponent: Operand) -> Tensor:
    """Return the first operand to the power of the second, as Python's ``**``.

    Raises:
        ValueError: for integers to the power of a negative Python integer (the results are fractions).

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1.0, 2.0, 3.0]) ** 2, 2 ** mt.tensor([1, 2, 3])
        (tensor([1., 4., 9.]), tensor([2, 4, 8]))
    """
    if isinstance(input, Tensor) and isinstance(exponent, PYTHON_NUMBERS):
        if input.dtype is bool_ and isinstance(exponent, bool):
            return P.bitwise_or(input, like(not exponent, input))
        x = to_dtype(input, result_type(input, exponent))
        if exponent < 0 and not x.dtype.is_floating_point:
            raise ValueError(f"integers to the power {exponent} are fractions; use x.float() ** {exponent}")
        if not (x.dtype.is_floating_point and x.dtype.itemsize > 2):
            exponent = fitting("pow", exponent, x.dtype)
        if exponent in _SHORT_POWERS:
            return _SHORT_POWERS[exponent](x)
    a, b = promote(input, exponent)
    require_number(a, "pow")
    return P.power(a, b)


# PyTorch's other names for the same functions.
multiply, subtract, divide, true_divide = mul, sub, div, div


# Operators --------------------------------------------------------------------------------------------------


OPERATORS: dict[str, Callable[..., Any]] = {
    **operators(P.add, add=add),
    **operators(P.sub, sub=sub),
    **operators(P.mul, mul=mul),
    **operators(truediv=div, floordiv=floor_divide, mod=remainder, pow=pow),
}
