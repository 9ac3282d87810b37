"""Operand preparation: numbers and arrays as tensors, and tensors of one type (promotion).

Promotion follows PyTorch's three priorities (tensors with dimensions, 0-dimensional tensors, Python numbers). Shapes
are not touched here: broadcasting happens in one place for all primitives, `minitorch.interpreters`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from .. import dtypes, interpreters
from ..dtypes import DType
from ..errors import DTypeError
from ..interpreters import current_staging
from ..primitives import Literal, cast, constant
from ..sizes import is_symbolic
from ..tensor import Tensor, fetched, with_value
from .options import is_traced

__all__ = ["promote_types", "result_type"]

Number = bool | int | float
Operand = Tensor | Number | np.ndarray[Any, Any] | np.generic

promote_types = dtypes.promote_types


# Making tensors ---------------------------------------------------------------------------------------------


def number(value: Number, dtype: DType) -> Tensor:
    """Return a Python number as a 0-dimensional constant, for arithmetic: an integer that does not fit wraps around.

    So do PyTorch's operators. A number that is written or chosen unchanged has to fit, see `fitting`.

    Raises:
        DTypeError: ``MT202`` for an integer of more than 64 bits.
    """
    if dtype.category == "int" and not (is_traced(value) or is_symbolic(value)) and not 0 <= value < 128:
        if not -(2**63) <= value < 2**64:
            raise DTypeError("MT202", f"{value} has more than 64 bits, which no element type does")
        value = wrapped(int(value), dtype)
    return interpreters.number(value, dtype)


def fitting(name: str, value: Number, dtype: DType) -> Number:
    """Convert a number to write, choose or bound by to the value a type stores; an integer type cuts off fractions.

    An unsigned type takes the integer -1 for its largest number, and so on, as in PyTorch and C.

    Raises:
        DTypeError: ``MT202`` if it is beyond the range of the type; an infinity, of a float type, is not.
    """
    given: Any = value
    if isinstance(given, Tensor):
        if is_traced(given):
            return value
        value = fetched(given).item()
    if dtype.category == "bool":
        return bool(value)
    if is_symbolic(value):
        return value
    if dtype.category == "float":
        high = float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]
        low, fits = -high, abs(value) <= high or not math.isfinite(value)
    else:
        low, high = np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max
        least = -high if low == 0 and isinstance(value, int) else low
        fits = least <= value < high + 1  # false for NaN
    if not fits:
        raise DTypeError(
            "MT202",
            f"{name}: {value} does not fit {dtype.name}",
            why=f"its numbers go from {low} to {high}",
            fix="use a number of that range, or convert the tensor to a larger type first",
        )
    return float(value) if dtype.category == "float" else wrapped(int(value), dtype)


def like(value: Number, x: Tensor) -> Tensor:
    """Return a Python number as a 0-dimensional constant of a tensor's type."""
    return number(value, x.dtype)


def wrapped(value: int, dtype: DType) -> int:
    """Return an integer modulo 2**bits, as a type of that many bits holds it."""
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.is_signed and value >> (bits - 1) else value


def from_array(array: np.ndarray[Any, Any]) -> Tensor:
    """Return a NumPy array as a tensor: its own memory in eager, a literal in a trace.

    Raises:
        TypeError: if the array's type is not one of ours.
    """
    native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    dtype = dtypes.as_dtype(native.dtype)
    if current_staging() is None:
        return with_value(native)
    return constant(value=Literal(native), shape=native.shape, dtype=dtype)


def operand(value: Operand, dtype: DType | None = None) -> Tensor:
    """Return a tensor, number or NumPy array as a tensor; `dtype` is the type of a number (default: its own).

    Raises:
        TypeError: for anything else; PyTorch takes no lists here either.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        return from_array(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dtypes.PYTHON_NUMBERS):
        return number(value, dtype or dtypes.PYTHON_TYPES[value.__class__])
    raise TypeError(
        f"a tensor or a number is needed here, not {type(value).__name__}: {value!r:.60}; "
        "make a tensor with minitorch.tensor(...)"
    )


def is_operand(value: object) -> bool:
    """Return whether an operator can work with a value; if not, Python asks the other operand."""
    return isinstance(value, (Tensor, bool, int, float, np.ndarray, np.generic))


def fitting_or_infinite(name: str, value: Number, dtype: DType) -> Number:
    """Convert as `fitting`, but make a 16-bit float infinite beyond its range, where PyTorch chooses or assigns."""
    return float(value) if _is_short_float(dtype) else fitting(name, value, dtype)


# Promotion --------------------------------------------------------------------------------------------------


def result_type(*operands: Operand) -> DType:
    """Return the type that an operation on these tensors and numbers computes in, as `torch.result_type`.

    Tensors with dimensions decide; 0-dimensional tensors, and after them Python numbers, change the result only if
    their category (bool < int < float) is higher.

    Example:
        >>> import minitorch as mt
        >>> mt.result_type(mt.ones(2, dtype=mt.int8), 1.5), mt.result_type(mt.ones(2, dtype=mt.float16), 1.5)
        (minitorch.float32, minitorch.float16)
    """
    priorities: list[DType | None] = [None, None, None]
    for value in operands:
        if isinstance(value, Tensor):
            dtype, priority = value.dtype, 0 if value.ndim else 1
        elif isinstance(value, np.ndarray):
            dtype, priority = dtypes.as_dtype(value.dtype), 0 if value.ndim else 1
        else:
            value = value.item() if isinstance(value, np.generic) else value
            if not isinstance(value, dtypes.PYTHON_NUMBERS):
                raise TypeError(f"a tensor or a number is needed here, not {type(value).__name__}: {value!r:.60}")
            dtype, priority = dtypes.PYTHON_TYPES[value.__class__], 2
        known = priorities[priority]
        priorities[priority] = dtype if known is None else dtypes.promote_types(known, dtype)
    return dtypes.combine(*priorities)


def to_dtype(x: Tensor, dtype: DType) -> Tensor:
    """Return the tensor itself if it has the type, else converted."""
    return x if x.dtype is dtype else cast(x, dtype=dtype)


def promote(a: Operand, b: Operand) -> tuple[Tensor, Tensor]:
    """Return two operands as tensors of their common type."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a._value.dtype is b._value.dtype:
            return a, b
    elif isinstance(a, Tensor) and _is_absorbed(b, a):
        return a, number(b, a.dtype)  # type: ignore[arg-type]
    elif isinstance(b, Tensor) and _is_absorbed(a, b):
        return number(a, b.dtype), b  # type: ignore[arg-type]
    return promote_all(a, b)  # type: ignore[return-value]


def _is_absorbed(value: Operand, x: Tensor) -> bool:
    """Return whether a value is a Python number that does not change the type of a tensor; the common case, fast."""
    category = x.dtype.category
    return (category == "float" and type(value) in dtypes.PYTHON_TYPES) or (category == "int" and type(value) is int)


def promote_all(*operands: Operand) -> tuple[Tensor, ...]:
    """Return any number of operands as tensors of their common type."""
    dtype = result_type(*operands)
    return tuple([to_dtype(operand(value, dtype), dtype) for value in operands])


def stored_alike(name: str, *operands: Operand, infinite: bool = False) -> tuple[Tensor, ...]:
    """Return operands that appear unchanged in the result, in their common type, which the numbers have to fit.

    Args:
        name: the name of the function.
        operands: tensors and numbers.
        infinite: whether a number beyond the range of a 16-bit float becomes an infinity (`fitting_or_infinite`).

    Raises:
        DTypeError: ``MT202`` if a number does not fit.
    """
    dtype = result_type(*operands)
    fit = fitting_or_infinite if infinite else fitting
    values = [fit(name, x, dtype) if isinstance(x, dtypes.PYTHON_NUMBERS) else x for x in operands]
    return tuple([to_dtype(operand(x, dtype), dtype) for x in values])


def as_float(x: Operand) -> Tensor:
    """Return an operand of a float function: integers and bools become the default float type, as in PyTorch."""
    x = operand(x)
    return x if x.dtype.category == "float" else cast(x, dtype=dtypes.DEFAULT_FLOAT)


def promote_floats(*operands: Operand) -> tuple[Tensor, ...]:
    """Return operands of a float function of several, in their common type, which is float32 for integers.

    The type is decided before anything is converted: a number takes part as a float, and never wraps around in a small
    integer type on the way (``int8 / 1000``).
    """
    if len(operands) == 2 and any(isinstance(x, Tensor) and x.dtype.category == "float" for x in operands):
        return promote(*operands)  # the usual case, which has shorter ways
    dtype = result_type(*operands)
    if dtype.category != "float":
        dtype = dtypes.DEFAULT_FLOAT
    return tuple([to_dtype(operand(value, dtype), dtype) for value in operands])


def widened(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a formula of several steps on tensors of one type: 16-bit floats compute in float32, rounded once.

    PyTorch's kernels do the same. Rounding every step would lose digits, and a square overflows float16 at 256.
    Integers are not widened: their arithmetic is exact modulo ``2**bits``, and a float32 would not hold it.
    """

    @functools.wraps(formula)
    def wide(input: Tensor, *others: Any, **options: Any) -> Tensor:
        dtype = input.dtype
        if not _is_short_float(dtype):
            return formula(input, *others, **options)
        alike = [cast(x, dtype=dtypes.float32) if getattr(x, "dtype", None) is dtype else x for x in others]
        return cast(formula(cast(input, dtype=dtypes.float32), *alike, **options), dtype=dtype)

    return wide


def widen(x: Tensor) -> Tensor:
    """Return a tensor of a 16-bit float type in float32, any other one as it is."""
    return to_dtype(x, wide(x.dtype))


def wide(dtype: DType) -> DType:
    """Return the type that a formula of several steps is computed in: float32 for a 16-bit float."""
    return dtypes.float32 if _is_short_float(dtype) else dtype


def _is_short_float(dtype: DType) -> bool:
    return dtype.category == "float" and dtype.itemsize == 2
