"""Element types (dtypes) of tensors, and the rules of type promotion.

`DType` is one row: a name, the short name used in graph listings, and the NumPy type that stores it.
Promotion follows PyTorch: a table for two types (`promote_types`), and a priority between full tensors,
0-dimensional tensors and plain Python numbers (`result_type`, see `minitorch.functional`).

Nothing here knows about tensors, graphs or how anything is computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from .named import by_name


@dataclass(frozen=True, eq=False)
class DType:
    """One element type.

    Attributes:
        name: PyTorch's name, e.g. ``"float32"``.
        short: the name in graph listings, e.g. ``"f32"``.
        numpy: the NumPy type that stores it.
        category: ``"bool"``, ``"int"`` or ``"float"``; a higher category wins a promotion.

    Example:
        >>> import minitorch as mt
        >>> mt.float32.itemsize, mt.float32.is_floating_point
        (4, True)
    """

    name: str
    short: str
    numpy: np.dtype[Any]
    category: str

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return int(self.numpy.itemsize)

    @property
    def is_floating_point(self) -> bool:
        """Whether this is one of the float types."""
        return self.category == "float"

    @property
    def is_signed(self) -> bool:
        """Whether negative numbers can be stored."""
        return self.category == "float" or self.numpy.kind == "i"

    def __repr__(self) -> str:
        return f"minitorch.{self.name}"

    def __reduce__(self) -> Any:
        return by_name(self, __name__)


bool_ = DType("bool", "bool", np.dtype(np.bool_), "bool")
uint8 = DType("uint8", "u8", np.dtype(np.uint8), "int")
int8 = DType("int8", "i8", np.dtype(np.int8), "int")
int16 = DType("int16", "i16", np.dtype(np.int16), "int")
int32 = DType("int32", "i32", np.dtype(np.int32), "int")
int64 = DType("int64", "i64", np.dtype(np.int64), "int")
uint32 = DType("uint32", "u32", np.dtype(np.uint32), "int")
float16 = DType("float16", "f16", np.dtype(np.float16), "float")
bfloat16 = DType("bfloat16", "bf16", np.dtype(ml_dtypes.bfloat16), "float")
float32 = DType("float32", "f32", np.dtype(np.float32), "float")
float64 = DType("float64", "f64", np.dtype(np.float64), "float")

ALL = (bool_, uint8, int8, int16, int32, int64, uint32, float16, bfloat16, float32, float64)
BY_SHORT_NAME = {dtype.short: dtype for dtype in ALL}
BY_NAME = {dtype.name: dtype for dtype in ALL}
BY_NUMPY = {dtype.numpy: dtype for dtype in ALL}

DEFAULT_FLOAT = float32
DEFAULT_INT = int64

# Python's numbers: the default type of each.


class _ByType(dict[type, DType]):
    """A dict by type; a subclass, such as an enum of ints, is treated as its base."""

    def __missing__(self, kind: type) -> DType:
        return self[next(base for base in kind.__mro__[1:] if base in self)]


PYTHON_TYPES: dict[type, DType] = _ByType({bool: bool_, int: int64, float: float32})
PYTHON_NUMBERS = (bool, int, float)

_CATEGORY_ORDER = {"bool": 0, "int": 1, "float": 2}


def as_dtype(value: Any) -> DType:
    """Return the `DType` of a `DType`, a NumPy or Python type (`float` is float64, as in both libraries) or a name.

    Raises:
        TypeError: if it names no supported type.

    Example:
        >>> as_dtype("float32"), as_dtype(np.int64), as_dtype(float)
        (minitorch.float32, minitorch.int64, minitorch.float64)
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in BY_NAME:
        return BY_NAME[value]
    try:
        return BY_NUMPY[np.dtype(value)] if value is not None else BY_NAME["None"]  # NumPy takes None for float64
    except (TypeError, KeyError):
        names = ", ".join(dtype.name for dtype in ALL)
        raise TypeError(f"{value!r} is not an element type of minitorch; it has {names}") from None


def stored(value: bool | int | float, dtype: DType) -> bool | int | float:
    """Return `value` as stored in an element of type `dtype`, as a Python number.

    Raises:
        OverflowError: for a number that an integer type cannot hold.
        ValueError: for NaN in an integer type.

    Example:
        >>> stored(1, float32), stored(0.1, float32), stored(2, bool_), stored(2.0, int8)
        (1.0, 0.10000000149011612, True, 2)
    """
    if dtype.category == "float":
        if value != value:
            return math.nan  # of any sign and payload
        if -64 <= value <= 64 and value * 4 == int(value * 4):  # exact in every float type
            return float(value)
        if dtype is float64:
            return float(value)
        with np.errstate(all="ignore"):
            return float(np.asarray(float(value)).astype(dtype.numpy))
    if dtype.category == "bool":
        return bool(value)
    number = int(value)
    bounds = np.iinfo(dtype.numpy)
    if not bounds.min <= number <= bounds.max:
        raise OverflowError(f"{value} is out of range for {dtype.name} ({bounds.min} to {bounds.max})")
    return number


def _promote_pair(a: DType, b: DType) -> DType:
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda dtype: _CATEGORY_ORDER[dtype.category])
    if low.category != high.category:
        return high
    if {a, b} == {float16, bfloat16}:
        return float32
    # Within a category: the smallest type that holds both (NumPy's table; PyTorch agrees where it has one).
    return BY_NUMPY[np.promote_types(a.numpy, b.numpy)]


_PROMOTIONS = {(a, b): _promote_pair(a, b) for a in ALL for b in ALL}


def promote_types(type1: DType, type2: DType) -> DType:
    """Return the smallest type that both can be converted to, as `torch.promote_types`.

    ``uint32`` with a signed integer gives ``int64`` (PyTorch refuses the pair).

    Example:
        >>> promote_types(float16, bfloat16), promote_types(uint8, int8), promote_types(int64, float16)
        (minitorch.float32, minitorch.int16, minitorch.float16)
    """
    return _PROMOTIONS[type1, type2]


def combine(full: DType | None, scalar_tensor: DType | None, number: DType | None) -> DType:
    """Return the result type of operands in PyTorch's three priorities, each already promoted among its own.

    Args:
        full: the type of the operands with one or more dimensions, if there are any.
        scalar_tensor: the type of the 0-dimensional tensors, if there are any.
        number: the type of the plain Python numbers, if there are any.

    A lower priority changes the result only if its category (bool < int < float) is higher.

    Example:
        >>> combine(float32, float64, None), combine(int8, None, float32), combine(None, int8, int64)
        (minitorch.float32, minitorch.float32, minitorch.int8)
    """
    result: DType | None = None
    for dtype in (full, scalar_tensor, number):
        if dtype is None:
            continue
        if result is None:
            result = dtype
        elif _CATEGORY_ORDER[dtype.category] > _CATEGORY_ORDER[result.category]:
            result = _PROMOTIONS[result, dtype]
    if result is None:
        raise TypeError("result_type needs at least one operand")
    return result
