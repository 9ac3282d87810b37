"""Tensors of given data: `tensor` copies it, `as_tensor` if it must, `from_numpy` never. In a trace it is a literal."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ... import primitives as P
from ...autograd import no_grad
from ...dtypes import DType
from ...tensor import Batched, Tensor, with_value
from ..devices import on_cpu
from ..operands import from_array, operand, result_type, to_dtype
from ..options import require_tensor

__all__ = ["as_tensor", "from_numpy", "tensor"]


def factory(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Give a function of a parameter `dtype` PyTorch's options of new tensors: `dtype`, `device`, `requires_grad`.

    The function computes in the type that its parameter has by default, unless another one is asked for.

    Example:
        >>> import minitorch as mt
        >>> @factory
        ... def two(*, dtype=mt.float32):
        ...     return mt.full((), 2, dtype=dtype)
        >>> two(), two(dtype="int64"), two(requires_grad=True)
        (tensor(2.), tensor(2), tensor(2., requires_grad=True))
    """

    first, kind = next((each.name, each.annotation) for each in inspect.signature(function).parameters.values())

    def make(*args: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **options: Any) -> Tensor:
        if dtype is not None:
            options["dtype"] = dtypes.as_dtype(dtype)
        if device is not None:
            on_cpu(device)
        model = args[0] if args else options.get(first)
        if kind == "Tensor" and (args or first in options):
            require_tensor(function.__name__, first, model)
        result = function(*args, **options)
        if isinstance(model, Tensor) and isinstance(model._value, Batched):
            result = model._value.layer.own(result, model)
        return result.requires_grad_() if requires_grad else result

    own, added = inspect.signature(function), [*inspect.signature(make).parameters.values()][1:-1]
    parameters, at = [*own.parameters.values()], [*own.parameters].index("dtype")
    functools.update_wrapper(make, function)
    make.__signature__ = own.replace(parameters=[*parameters[:at], *added, *parameters[at + 1 :]])  # type: ignore[attr-defined]
    return make


@factory
def tensor(data: Any, *, dtype: DType | None = None) -> Tensor:
    """Return a new tensor that holds a copy of data, without history.

    Args:
        data: a number, a nested list or tuple of numbers, a NumPy array, a tensor, or a list of tensors to stack.
        dtype: the element type. By default bool, int64 or float32 for Python numbers; arrays and tensors keep theirs.
        device: the CPU, if it is given at all.
        requires_grad: whether `backward` computes a gradient for the tensor.

    Raises:
        ValueError: if the lists are ragged, or a number does not fit the type.
        TypeError: if the data is not numbers.
        DeviceError: for any other device (``MT203``).

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
        >>> mt.tensor([1, 2], dtype=mt.float32, requires_grad=True)
        tensor([1., 2.], requires_grad=True)
    """
    if not _holds_tensor(data):
        return from_array(_array(data, dtype))
    with no_grad():
        stacked = _stack(data)
        return P.cast(stacked, dtype=dtype or stacked.dtype)


# The types of Python's bools, ints and floats, by NumPy's letter.
_DEFAULTS = {"b": dtypes.bool_, "i": dtypes.DEFAULT_INT, "f": dtypes.DEFAULT_FLOAT}


def _array(data: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    """Return a fresh NumPy array of data, in the type that PyTorch would give it."""
    try:
        array = np.array(data, order="C")
    except ValueError:
        text = "the lists are ragged: all lists of one level must have one length, and hold things of one shape"
        raise ValueError(text) from None
    if array.dtype.kind in "OuU" and array.dtype not in dtypes.BY_NUMPY:
        for each in array.flat:
            if not isinstance(each, (*dtypes.PYTHON_NUMBERS, np.number)):
                raise TypeError(f"tensor: a tensor holds numbers, not {type(each).__name__}: {each!r}")
        if dtype is None or not dtype.is_floating_point:
            worst = max(array.flat, key=abs)
            raise ValueError(f"tensor: {worst} does not fit {'int64' if dtype is None else dtype.name}")
        array = array.astype(np.float64)
    if dtype is None:
        dtype = dtypes.as_dtype(array.dtype.newbyteorder("="))
        if type(_first_number(data)) in dtypes.PYTHON_TYPES or isinstance(_first_number(data), Sequence):
            dtype = _DEFAULTS[array.dtype.kind]
    elif dtype.category == "int" and array.dtype.kind in "if" and not isinstance(data, np.ndarray) and array.size:
        bounds, low, high = np.iinfo(dtype.numpy), array.min().item(), array.max().item()
        # PyTorch takes -1 for uint8, but not -1.0; in a list of both, each number counts for itself.
        wraps = low < bounds.min == 0 and all(
            isinstance(each, (int, np.integer)) for each in np.array(data, dtype=object).flat if each < 0
        )
        if not (low >= (-bounds.max if wraps else bounds.min) and high <= bounds.max):
            worst = high if high > bounds.max else low
            text = f"{worst} does not fit {dtype.name}: its numbers go from {bounds.min} to {bounds.max}"
            raise ValueError(text)
        array = array.astype(np.int64) if wraps else array  # of a negative float, undefined in C
    with np.errstate(all="ignore"):
        return array.astype(dtype.numpy, copy=False)


def _first_number(data: Any) -> Any:
    while isinstance(data, Sequence) and len(data) and not isinstance(data, str):
        data = data[0]
    return data


def _holds_tensor(data: Any) -> bool:
    if isinstance(data, Tensor):
        return True
    return isinstance(data, (list, tuple)) and any(_holds_tensor(each) for each in data)


def _stack(data: Any) -> Tensor:
    """Stack nested lists that contain tensors into one tensor of their common type."""
    if not isinstance(data, (list, tuple)):
        return operand(data)
    parts = [_stack(each) for each in data]
    if len({part.shape for part in parts}) > 1:
        specs = ", ".join(str(part.spec) for part in parts)
        raise ValueError(f"a list of tensors of different shapes: {specs}")
    dtype = result_type(*parts)
    return P.concatenate(*[P.reshape(to_dtype(part, dtype), shape=(1, *part.shape)) for part in parts], dim=0)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Convert data to a tensor: return a tensor of the right type as it is; share the memory of an array of that type.

    Example:
        >>> import minitorch as mt
        >>> x = mt.ones(2)
        >>> mt.as_tensor(x) is x, mt.as_tensor([1, 2]).dtype
        (True, minitorch.int64)
    """
    on_cpu(device)
    if isinstance(data, Tensor):
        return data if dtype is None else to_dtype(data, dtypes.as_dtype(dtype))
    if isinstance(data, np.ndarray) and (dtype is None or data.dtype == dtypes.as_dtype(dtype).numpy):
        return from_numpy(data)
    return tensor(data, dtype=dtype)


def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor:
    """Return a tensor that shares an array's memory: a write to one is seen in the other.

    Raises:
        TypeError: if it is not an array, or of a type that tensors do not have.

    Example:
        >>> import minitorch as mt, numpy as np
        >>> array = np.zeros(2, np.float32)
        >>> x = mt.from_numpy(array)
        >>> array[0] = 7
        >>> x
        tensor([7., 0.])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy takes a NumPy array, not {type(ndarray).__name__}")
    dtypes.as_dtype(ndarray.dtype)
    if not ndarray.dtype.isnative:
        raise TypeError("from_numpy: the array is not in this machine's byte order; use array.astype(...) first")
    return with_value(ndarray)
