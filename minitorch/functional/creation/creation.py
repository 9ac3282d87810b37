"""Creation of tensors: `zeros`, `full`, `arange`, `eye`, ...

They go through primitives, so that a trace records them. Tensors of given data are made in `data`, random ones in
`random`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ... import primitives as P
from ...dtypes import DType
from ...errors import DTypeError
from ...interpreters import concrete
from ...sizes import hint_of, larger
from ...tensor import Tensor
from ..families import member
from ..operands import Number, fitting, number, to_dtype
from ..options import as_int, as_shape, real, whole
from .data import factory, tensor

# One number everywhere --------------------------------------------------------------------------------------


@factory
def full(size: int | Sequence[int], fill_value: Any, *, dtype: DType | None = None) -> Tensor:
    """Return a tensor with one number (or the value of a 0-dimensional tensor) in every element.

    Raises:
        DTypeError: ``MT202`` if the number does not fit the type.

    Example:
        >>> import minitorch as mt
        >>> mt.full((2, 2), 3.5)
        tensor([[3.5000, 3.5000],
                [3.5000, 3.5000]])
    """
    shape = as_shape("full", (size,))
    if isinstance(fill_value, Tensor):  # the cast makes it dense
        return P.cast(P.expand(fill_value, shape=shape), dtype=dtype or fill_value.dtype)
    value = fill_value.item() if isinstance(fill_value, np.generic) else fill_value
    if not isinstance(value, dtypes.PYTHON_NUMBERS):
        raise TypeError(
            f"full: the value is a number or a 0-dimensional tensor, not {type(value).__name__}: {value!r:.60}"
        )
    dtype = dtype or dtypes.PYTHON_TYPES[type(hint_of(value))]
    return P.constant(value=fitting("full", value, dtype), shape=shape, dtype=dtype)


def _filled(name: str, value: int, what: str) -> tuple[Callable[..., Tensor], ...]:
    """Return a function such as `zeros`, and the ones like it: `zeros_like`, and the method `new_zeros`."""
    words = {"what": what, "number": value}

    @factory
    @member(name, **words)
    def create(*lengths: Any, size: Any = None, dtype: DType = dtypes.DEFAULT_FLOAT) -> Tensor:
        """Return a tensor {what}, float32 unless `dtype` says otherwise.

        The size is given as ints or as one tuple.

        Example:
            >>> import minitorch as mt
            >>> mt.{name}(2, 3), mt.{name}((0,)).shape
            (tensor([[{number}., {number}., {number}.],
                    [{number}., {number}., {number}.]]), (0,))
        """
        return P.constant(value=value, shape=as_shape(name, lengths if size is None else (size,)), dtype=dtype)

    @factory
    @member(f"{name}_like", **words)
    def create_like(input: Tensor, *, dtype: DType | None = None) -> Tensor:
        """Return a tensor {what}, with the shape and type of another one.

        Example:
            >>> import minitorch as mt
            >>> mt.{name}(mt.tensor([[1, 2]])).dtype
            minitorch.int64
        """
        return P.constant(value=value, shape=input.shape, dtype=dtype or input.dtype)

    @factory
    @member(f"new_{name}", **words)
    def create_new(self: Tensor, *lengths: Any, size: Any = None, dtype: DType | None = None) -> Tensor:
        """Return a tensor {what}, in this tensor's type."""
        return create(*lengths, size=size, dtype=dtype or self.dtype)

    return create, create_like, create_new


zeros, zeros_like, new_zeros = _filled("zeros", 0, "of zeros")
ones, ones_like, new_ones = _filled("ones", 1, "of ones")
# Every mode computes the same numbers, so there is no uninitialised memory to show.
empty, empty_like, new_empty = _filled("empty", 0, "to be written (it holds zeros)")


@factory
def full_like(input: Tensor, fill_value: Any, *, dtype: DType | None = None) -> Tensor:
    """Return a tensor with one number in every element, with the shape and type of another one.

    Example:
        >>> import minitorch as mt
        >>> mt.full_like(mt.zeros(2), 7)
        tensor([7., 7.])
    """
    return full(input.shape, fill_value, dtype=dtype or input.dtype)


# Sequences --------------------------------------------------------------------------------------------------


@factory
def arange(start: Any = None, end: Any = None, step: Any = 1, *, dtype: DType | None = None) -> Tensor:
    """Return numbers from `start` up to, but not including, `end`; ``arange(end)`` starts from 0.

    The type is int64 if all numbers are ints, else float32; numbers are computed in float64 and rounded once.

    Raises:
        TypeError: for anything but numbers.
        ValueError: if the step is 0, or leads away from the end; for NaN and infinities.
        DTypeError: ``MT202`` for the type bool, and for integers of more than 64 bits.

    Example:
        >>> import minitorch as mt
        >>> mt.arange(5), mt.arange(1, 2, 0.25)
        (tensor([0, 1, 2, 3, 4]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))
    """
    if end is None:
        start, end = 0, start
    if end is None:
        raise TypeError("arange: where to end is missing")
    start, end, step = (
        concrete(value, "the length of arange", "MT103").item() if isinstance(value, Tensor) else value
        for value in (0 if start is None else start, end, step)
    )
    ints = all(isinstance(value, (int, np.integer)) for value in (start, end, step))
    if not ints and not all(math.isfinite(real("arange: each bound", value)) for value in (start, end, step)):
        raise ValueError(f"arange: the bounds and the step have to be finite, not {start}, {end} and {step}")
    kind = dtype or (dtypes.DEFAULT_INT if ints else dtypes.DEFAULT_FLOAT)
    if kind is dtypes.bool_:
        raise DTypeError("MT202", "arange counts, and a bool does not", fix="compare: mt.arange(n) > 0")
    if step == 0 or (end - start) * step < 0:
        raise ValueError(f"arange: the step {step} does not lead from {start} to {end}")
    count = -(-(end - start) // step) if ints else math.ceil((end - start) / step)
    inner = dtypes.int64 if ints or kind.category == "int" else dtypes.float64
    if inner is dtypes.int64:
        start, step = (fitting("arange", value, inner) for value in (start, step))
    x = P.iota(size=as_int(count), dtype=inner)
    if step != 1:
        x = P.mul(x, number(step, inner))
    if start != 0:
        x = P.add(x, number(start, inner))
    return to_dtype(x, kind)


@factory
def linspace(start: Number, end: Number, steps: int, *, dtype: DType = dtypes.DEFAULT_FLOAT) -> Tensor:
    """Return a number of evenly spaced values from `start` to `end`, both included.

    They are computed in float64 from the nearer end, so that both ends are exact.

    Raises:
        TypeError: if the number of values is not an int.
        ValueError: if it is negative.

    Example:
        >>> import minitorch as mt
        >>> mt.linspace(0, 1, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    steps = whole("linspace: the number of steps", steps)
    inner = dtypes.float64
    for value in (start, end) if dtype.category == "int" else ():
        fitting("linspace", value, dtype)
    step = number((end - start) / larger(steps - 1, 1), inner)
    index = P.iota(size=steps, dtype=inner)
    from_start = P.add(number(float(start), inner), P.mul(step, index))
    to_end = P.sub(number(float(end), inner), P.mul(step, P.sub(number(steps - 1, inner), index)))
    near_start = P.less(index, number(larger(steps / 2, 1), inner))
    return to_dtype(P.where(near_start, from_start, to_end), dtype)


@factory
def logspace(
    start: Number, end: Number, steps: int, base: float = 10.0, *, dtype: DType = dtypes.DEFAULT_FLOAT
) -> Tensor:
    """Return `base` to the power of evenly spaced numbers from `start` to `end`, both included, computed in float64.

    Example:
        >>> import minitorch as mt
        >>> mt.logspace(0, 3, 4)
        tensor([   1.,   10.,  100., 1000.])
    """
    exponents = linspace(start, end, steps, dtype=dtypes.float64)
    return to_dtype(P.power(number(float(base), dtypes.float64), exponents), dtype)


@factory
def eye(n: int, m: int | None = None, *, dtype: DType = dtypes.DEFAULT_FLOAT) -> Tensor:
    """Return a matrix with ones on the diagonal and zeros elsewhere, n by n or n by m.

    Example:
        >>> import minitorch as mt
        >>> mt.eye(2, 3)
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    rows, columns = as_shape("eye", (n, n if m is None else m))
    row = P.reshape(P.iota(size=rows, dtype=dtypes.int64), shape=(rows, 1))
    return P.cast(P.equal(row, P.iota(size=columns, dtype=dtypes.int64)), dtype=dtype)


# Methods: like this tensor, but ... -------------------------------------------------------------------------


@factory
def new_tensor(self: Tensor, data: Any, *, dtype: DType | None = None) -> Tensor:
    """Return a tensor of data, in this tensor's type."""
    return tensor(data, dtype=dtype or self.dtype)


@factory
def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: DType | None = None) -> Tensor:
    """Return a tensor of one number, in this tensor's type."""
    return full(size, fill_value, dtype=dtype or self.dtype)
