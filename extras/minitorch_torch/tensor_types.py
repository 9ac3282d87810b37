"""PyTorch's older constructors by element type: `FloatTensor`, `LongTensor` and the like."""

from __future__ import annotations

from typing import Any

import minitorch as mt
from minitorch.dtypes import DType


class TensorType(type):
    """Class of an element type: makes tensors of data or of sizes; tensors of that type are its instances.

    Example:
        >>> import minitorch as mt
        >>> mt.LongTensor([1, 2]), mt.FloatTensor(2, 3).shape, mt.FloatTensor()
        (tensor([1, 2]), (2, 3), tensor([]))
        >>> isinstance(mt.ones(2), mt.FloatTensor), isinstance(mt.ones(2), mt.LongTensor)
        (True, False)
        >>> mt.ones(2).type(mt.LongTensor)
        tensor([1, 1])
    """

    dtype: DType

    def __call__(cls, *data: Any) -> mt.Tensor:
        """Return a tensor of data, or one of these sizes with any values."""
        if all(type(each) is int for each in data):
            return mt.empty(*data or (0,), dtype=cls.dtype)
        (given,) = data
        return mt.tensor(given, dtype=cls.dtype)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, mt.Tensor) and value.dtype is cls.dtype


class BoolTensor(metaclass=TensorType):
    """Tensors of bool: ``minitorch.BoolTensor([1, 2])``, or of sizes, ``minitorch.BoolTensor(2, 3)``."""

    dtype = mt.bool


class ByteTensor(metaclass=TensorType):
    """Tensors of uint8: ``minitorch.ByteTensor([1, 2])``, or of sizes, ``minitorch.ByteTensor(2, 3)``."""

    dtype = mt.uint8


class CharTensor(metaclass=TensorType):
    """Tensors of int8: ``minitorch.CharTensor([1, 2])``, or of sizes, ``minitorch.CharTensor(2, 3)``."""

    dtype = mt.int8


class DoubleTensor(metaclass=TensorType):
    """Tensors of float64: ``minitorch.DoubleTensor([1, 2])``, or of sizes, ``minitorch.DoubleTensor(2, 3)``."""

    dtype = mt.float64


class FloatTensor(metaclass=TensorType):
    """Tensors of float32: ``minitorch.FloatTensor([1, 2])``, or of sizes, ``minitorch.FloatTensor(2, 3)``."""

    dtype = mt.float32


class HalfTensor(metaclass=TensorType):
    """Tensors of float16: ``minitorch.HalfTensor([1, 2])``, or of sizes, ``minitorch.HalfTensor(2, 3)``."""

    dtype = mt.float16


class IntTensor(metaclass=TensorType):
    """Tensors of int32: ``minitorch.IntTensor([1, 2])``, or of sizes, ``minitorch.IntTensor(2, 3)``."""

    dtype = mt.int32


class LongTensor(metaclass=TensorType):
    """Tensors of int64: ``minitorch.LongTensor([1, 2])``, or of sizes, ``minitorch.LongTensor(2, 3)``."""

    dtype = mt.int64


class ShortTensor(metaclass=TensorType):
    """Tensors of int16: ``minitorch.ShortTensor([1, 2])``, or of sizes, ``minitorch.ShortTensor(2, 3)``."""

    dtype = mt.int16
