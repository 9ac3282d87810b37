"""Conversions between element types (`to`, `float`, `long`, ... and `clone`), and facts known without any number.

They are methods, since a tensor that has the type already returns itself. Conversions to Python and NumPy are in
`conversion`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ... import dtypes, interpreters
from ... import primitives as P
from ...dtypes import DType
from ...tensor import Tensor
from ..devices import is_device, on_cpu
from ..families import member
from ..operands import to_dtype

__all__ = [
    "can_cast", "clone", "contiguous", "finfo", "get_default_dtype", "iinfo", "is_contiguous", "is_floating_point",
    "is_tensor", "nelement", "numel", "to", "type", "type_as",
]  # fmt: skip

# Methods that convert, and the types they convert to.
_CONVERSIONS: dict[str, DType] = {
    "bool": dtypes.bool_,
    "byte": dtypes.uint8,
    "char": dtypes.int8,
    "short": dtypes.int16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "float": dtypes.float32,
    "double": dtypes.float64,
}


def clone(input: Tensor) -> Tensor:
    """Return a copy with its own memory, contiguous like all results; gradients flow through it.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([1.0, 2.0])
        >>> y = x.clone()
        >>> y[0] = 5
        >>> x
        tensor([1., 2.])
    """
    return P.cast(input, dtype=input.dtype)


def own(result: Tensor) -> Tensor:
    """Return the tensor, or a copy if it is a view: for functions that promise memory of their own."""
    return result if result._view is None else clone(result)


def contiguous(self: Tensor) -> Tensor:
    """Return the tensor itself if its elements lie in memory in order; otherwise a copy in which they do.

    Example:
        >>> import minitorch as mt
        >>> x = mt.zeros(2, 3, 4).transpose(1, 2)
        >>> x.is_contiguous()
        False
        >>> x.contiguous().view(2, 12).shape
        (2, 12)
    """
    return self if is_contiguous(self) else clone(self)


def is_contiguous(self: Tensor) -> bool:
    """Return whether the elements lie in memory in order, the last dimension next to each other.

    Computed tensors do, in every mode; a view may not. For a value that is being recorded, this is its layout in
    eager mode.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2, 3).T.is_contiguous()
        False
    """
    return interpreters.is_contiguous(self)


def to(
    self: Tensor,
    *target: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
) -> Tensor:
    """Convert the tensor to another type; return itself if it has that type, unless a copy is asked for.

    Args:
        input: the tensor.
        target: an element type, a tensor of the wanted type, or a device, or a device and an element type.
        dtype: the element type, by name.
        device: the CPU, if it is given at all.
        non_blocking: ignored, since nothing is sent anywhere.
        copy: whether to copy in any case.

    Raises:
        DeviceError: for any other device (``MT203``).

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1.7, -1.7]).to(mt.int64)
        tensor([ 1, -1])
    """
    on_cpu(device)
    wanted = wanted_type(*target, dtype) or self.dtype
    return P.cast(self, dtype=wanted) if copy else to_dtype(self, wanted)


def wanted_type(*given: Any) -> DType | None:
    """Return the element type among the targets of `to`; the devices among them have to be the CPU."""
    found = None
    for each in given:
        if is_device(each):
            on_cpu(each)
        elif each is not None and found is None:
            found = each.dtype if isinstance(each, Tensor) else dtypes.as_dtype(each)
    return found


_BY_KIND = {
    "byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64", "half": "float16",
    "float": "float32", "double": "float64",
}  # fmt: skip


def type(self: Tensor, dtype: Any = None) -> Any:
    """Convert the tensor to another type, or without an argument return the name of its type.

    Example:
        >>> import minitorch as mt
        >>> mt.ones(1).type(), mt.ones(1).type(mt.int8)
        ('minitorch.float32', tensor([1], dtype=minitorch.int8))
    """
    if isinstance(dtype, str) and dtype.endswith("Tensor"):  # PyTorch's names, such as "torch.FloatTensor"
        *modules, kind = dtype.removesuffix("Tensor").lower().split(".")
        on_cpu("cuda" if "cuda" in modules else "cpu")
        dtype = _BY_KIND.get(kind, kind)
    if dtype is None:
        return repr(self.dtype)
    of = getattr(dtype, "dtype", None)  # of a class such as `FloatTensor`
    return to_dtype(self, of if isinstance(of, DType) else dtypes.as_dtype(dtype))


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert the tensor to another one's type."""
    return to_dtype(self, other.dtype)


def finfo(dtype: Any) -> Any:
    """Return the limits of a float type: ``max``, ``min``, ``eps``, ``tiny``, ``bits``.

    Example:
        >>> import minitorch as mt
        >>> float(mt.finfo(mt.float16).max), float(mt.finfo(mt.bfloat16).eps)
        (65504.0, 0.0078125)
    """
    return ml_dtypes.finfo(dtypes.as_dtype(dtype).numpy)  # type: ignore[no-untyped-call]


def iinfo(dtype: Any) -> Any:
    """Return the limits of an integer type: ``max``, ``min``, ``bits``.

    Raises:
        TypeError: for another type.

    Example:
        >>> import minitorch as mt
        >>> mt.iinfo(mt.int8).min, mt.iinfo(mt.uint32).max
        (-128, 4294967295)
    """
    kind = dtypes.as_dtype(dtype)
    if kind.category != "int":
        raise TypeError(f"iinfo: {kind.name} is no integer type")
    return np.iinfo(kind.numpy)


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


def _conversion(name: str, dtype: DType) -> Callable[[Tensor], Tensor]:
    @member(name, dtype=dtype.name)
    def convert(input: Tensor) -> Tensor:
        """Convert the tensor to {dtype}; return itself if it has that type."""
        return to_dtype(input, dtype)

    return convert


# Not under their own names in this module: `float` is Python's here.
OPERATORS = {name: _conversion(name, dtype) for name, dtype in _CONVERSIONS.items()}
