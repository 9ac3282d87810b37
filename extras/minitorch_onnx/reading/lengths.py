"""Known values that are computed from shapes, while the sizes of a shape are symbolic.

ONNX computes shapes with Shape, Gather, Mul and Concat. Each known value that follows a size has an array of Python
numbers beside its own, computed by the same operators, so that it keeps how it was computed. A value that other
operators make of such ones, such as a Range, is recorded like any other: it is not the same for another size.
"""

from __future__ import annotations

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


def is_tracked(number: Any) -> bool:
    """Whether a number is symbolic."""
    return is_symbolic(number)


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


def _pointwise(function: Callable[..., Any]) -> Callable[..., Any]:
    each = np.frompyfunc(function, function.__code__.co_argcount, 1)
    return lambda operands, shape, axis: each(*operands)


def _folded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of any number of operands, two by two."""
    each = np.frompyfunc(function, 2, 1)

    def apply(operands: Sequence[Array], shape: Any, axis: Any) -> Any:
        found = operands[0]
        for operand in operands[1:]:
            found = each(found, operand)
        return found

    return apply


def _reshaped(operands: Sequence[Array], shape: tuple[int, ...], axis: Any) -> Array:
    return operands[0].reshape(shape)


def _gathered(operands: Sequence[Array], shape: Any, axis: int) -> Array:
    return np.take(operands[0], operands[1].astype(np.int64), axis)


def _sliced(operands: Sequence[Array], shape: Any, axis: Any) -> Array:
    start, stop = (int(each.reshape(-1)[0]) for each in operands[1:3])
    step = int(operands[4].reshape(-1)[0]) if len(operands) > 4 else 1
    return operands[0][start:stop:step]


_ROWS: dict[str, Callable[..., Any]] = {
    "Add": _pointwise(lambda a, b: a + b),
    "Cast": _reshaped,
    "Concat": lambda operands, shape, axis: np.concatenate(operands, axis),
    "Div": _pointwise(lambda a, b: a // b),
    "Equal": _pointwise(lambda a, b: a == b),
    "Gather": _gathered,
    "Greater": _pointwise(lambda a, b: a > b),
    "GreaterOrEqual": _pointwise(lambda a, b: a >= b),
    "Identity": _reshaped,
    "Less": _pointwise(lambda a, b: a < b),
    "LessOrEqual": _pointwise(lambda a, b: a <= b),
    "Max": _folded(larger),
    "Min": _folded(smaller),
    "Mod": _pointwise(lambda a, b: a % b),
    "Mul": _pointwise(lambda a, b: a * b),
    "Neg": _pointwise(lambda a: -a),
    "Quotient": _pointwise(lambda a, b: a / b),
    "Reshape": _reshaped,
    "Slice": _sliced,
    "Sqrt": _pointwise(lambda a: a**0.5),
    "Squeeze": _reshaped,
    "Sub": _pointwise(lambda a, b: a - b),
    "Unsqueeze": _reshaped,
    "Where": _pointwise(lambda c, a, b: a if c else b),
}
SHAPED = ("Reshape", "Slice", "Squeeze", "Unsqueeze", "Gather")  # by their further operands, which follow no size
