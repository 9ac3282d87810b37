"""Facts known without any number, as Python values: how many elements, of which type.

They are available while a graph is recorded, too. Functions that need the numbers themselves are in `conversion`.
"""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..dtypes import DType
from ..tensor import Tensor


def numel(input: Tensor) -> int:
    """Return the number of elements.

    Example:
        >>> import minitorch as mt
        >>> mt.numel(mt.zeros(2, 3))
        6
    """
    return input.numel()


def nelement(self: Tensor) -> int:
    """Return the number of elements: another name of `numel`."""
    return self.numel()


def is_tensor(obj: object) -> bool:
    """Return whether something is a tensor.

    Example:
        >>> import minitorch as mt
        >>> mt.is_tensor(mt.ones(1)), mt.is_tensor([1.0])
        (True, False)
    """
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Return whether the element type is one of the floats.

    Example:
        >>> import minitorch as mt
        >>> mt.is_floating_point(mt.ones(1)), mt.is_floating_point(mt.arange(1))
        (True, False)
    """
    return input.dtype.is_floating_point


def can_cast(from_: Any, to: Any) -> bool:
    """Return whether an in-place operation may keep a result of the first type in a tensor of the second.

    A type can be kept in any of its own category, or of a higher one (bool < int < float).

    Example:
        >>> import minitorch as mt
        >>> mt.can_cast(mt.float64, mt.float16), mt.can_cast(mt.float32, mt.int64)
        (True, False)
    """
    order = ("bool", "int", "float")
    categories = [dtypes.as_dtype(dtype).category for dtype in (from_, to)]
    return order.index(categories[0]) <= order.index(categories[1])


def get_default_dtype() -> DType:
    """Return the type of floats without an explicit type; it cannot be changed.

    Example:
        >>> import minitorch as mt
        >>> mt.get_default_dtype()
        minitorch.float32
    """
    return dtypes.DEFAULT_FLOAT
