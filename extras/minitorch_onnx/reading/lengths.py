"""Known values that are computed from shapes, while the sizes of a shape are symbolic.

ONNX computes shapes with Shape, Gather, Mul and Concat. Each known value that follows a size has an array of Python
numbers beside its own, computed by the same operators, so that it keeps how it was computed. A value that other
operators make of such ones, such as a Range, is recorded like any other: it is not the same for another size.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minitorch.dtypes import DType
from minitorch.sizes import hint_of, is_symbolic, larger, smaller

Array = np.ndarray[Any, Any]


class Sized(np.ndarray):
    """The numbers of an input, with those that remember how they were computed as `lengths`."""

    lengths: Array


def sized(array: Array, lengths: Array | None) -> Array:
    """An array with lengths, if there are any."""
    if lengths is None:
        return array
    found = array.view(Sized)
    found.lengths = lengths
    return found


def numbers(array: Array) -> list[Any]:
    """The numbers of an array, those that follow a size as they were computed."""
    found: list[Any] = getattr(array, "lengths", array).reshape(-1).tolist()
    return found


def of_shape(shape: Sequence[int]) -> Array | None:
    """A shape as an array, if it has a symbolic size."""
    if not any(map(is_symbolic, shape)):
        return None
    found = np.empty(len(shape), object)
    found[:] = shape
    return found


def computed(op: str, operands: Sequence[Array], result: Array, dtype: DType, axis: int | None) -> Array | None:
    """The result of an operator on Python numbers.

    Args:
        op: the operator.
        operands: numbers, as objects.
        result: the same, as it has been computed in plain numbers.
        dtype: of the result.
        axis: the operator's attribute.

    Returns:
        None if the result is not to be known: the operator is none of those that shapes are computed by.
    """
    row = _ROWS.get("Quotient" if op == "Div" and dtype.is_floating_point else op)
    if row is None:
        return None
    try:
        found = np.asarray(row(operands, result.shape, axis), object)
    except (TypeError, ValueError, ArithmeticError, IndexError):
        return None
    if found.shape != result.shape:
        return None
    same = all(hint_of(each) == plain for each, plain in zip(found.flat, result.flat, strict=True))
    return found if same else None


def _pointwise(function: Callable[..., Any], count: int = 2) -> Callable[..., Any]:
    """Element by element, of so many operands; of two, or of any number two by two."""
    each = np.frompyfunc(function, count, 1)
    return lambda operands, shape, axis: functools.reduce(each, operands) if count == 2 else each(*operands)


def _sliced(operands: Sequence[Array], shape: Any, axis: Any) -> Array:
    start, stop = (int(each.reshape(-1)[0]) for each in operands[1:3])
    step = int(operands[4].reshape(-1)[0]) if len(operands) > 4 else 1
    return operands[0][start:stop:step]


_PAIRS: dict[str, Callable[..., Any]] = {
    "Add": operator.add, "Div": operator.floordiv, "Equal": operator.eq, "Greater": operator.gt,
    "GreaterOrEqual": operator.ge, "Less": operator.lt, "LessOrEqual": operator.le, "Max": larger, "Min": smaller,
    "Mod": operator.mod, "Mul": operator.mul, "Quotient": operator.truediv, "Sub": operator.sub,
}  # fmt: skip
_ROWS: dict[str, Callable[..., Any]] = {
    **{name: _pointwise(function) for name, function in _PAIRS.items()},
    **dict.fromkeys(
        ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"),
        lambda operands, shape, axis: operands[0].reshape(shape),
    ),
    "Concat": lambda operands, shape, axis: np.concatenate(operands, axis),
    "Gather": lambda operands, shape, axis: np.take(operands[0], operands[1].astype(np.int64), axis),
    "Neg": _pointwise(operator.neg, 1),
    "Slice": _sliced,
    "Sqrt": _pointwise(lambda a: a**0.5, 1),
    "Where": _pointwise(lambda c, a, b: a if c else b, 3),
}
SHAPED = ("Reshape", "Slice", "Squeeze", "Unsqueeze", "Gather")  # by their further operands, which follow no size
