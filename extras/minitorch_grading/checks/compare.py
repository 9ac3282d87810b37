"""Whether an answer is right: exact types, exact shapes, and numbers up to rounding. A sentence says why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..harness.plain import Array, Value, described


def wrong_tensor(answer: Any, right: Array, tolerance: float = 1e-5) -> str | None:
    """Why an answer is not this tensor; None if it is.

    Example:
        >>> import minitorch as mt
        >>> from minitorch.classroom.harness.plain import plain
        >>> right = np.array([1, 2], np.float32)
        >>> print(wrong_tensor(plain(mt.tensor([1.0, 2.0])), right))
        None
        >>> wrong_tensor(plain(mt.tensor([1.0, 3.0])), right)
        'element [1] is 3.0 and should be 2.0'
        >>> wrong_tensor(plain([1.0, 2.0]), right)
        'a tensor was expected, and it is [1.0, 2.0]'
    """
    if type(answer) is not Value or not answer.is_tensor:
        return f"a tensor was expected, and it is {described(answer)}"
    return wrong_array(answer, right, tolerance)


def wrong_array(answer: Any, right: Array, tolerance: float = 1e-5) -> str | None:
    """Why an answer is not an array, or tensor, with these elements; a tolerance of 0 asks for the bits."""
    if type(answer) is not Value:
        return f"an array was expected, and it is {described(answer)}"
    array = answer.array
    if array.shape != right.shape:
        return f"its shape is {list(array.shape)} and should be {list(right.shape)}"
    if array.dtype != right.dtype:
        return f"its type is {array.dtype} and should be {right.dtype}"
    return different(array, right, tolerance)


def off(found: Array, right: Array, near: Callable[[Array, Array], Array], **inputs: Array) -> str | None:
    """The first element that is not near the right one, as a sentence; None if there is none.

    Args:
        found: an array of floats.
        right: what it should be.
        near: which of the elements of two arrays are near each other.
        inputs: the elements that it was computed from, by name.

    Example:
        >>> off(np.array([1.0, 2.5]), np.array([1.0, 2.0]), np.isclose, x=np.array([3, 4]))
        'element [1], for x = 4, is 2.5 and should be 2'
    """
    if found.shape != right.shape:
        return f"its shape is {list(found.shape)} and should be {list(right.shape)}"
    if (close := near(found, right)).all():
        return None
    at = tuple(map(int, np.unravel_index(int(np.argmin(close)), right.shape)))
    given = ", ".join(f"{name} = {array[at]}" for name, array in inputs.items())
    return f"element {list(at)}{given and f', for {given},'} is {found[at]:.6g} and should be {right[at]:.6g}"


def different(array: Array, right: Array, tolerance: float) -> str | None:
    """The first element that is not as it should be, as a sentence; None if there is none. NaN is equal to NaN."""
    with np.errstate(all="ignore"):
        same = (array == right) | ((array != array) & (right != right))
        if not tolerance and array.dtype.kind == "f":
            same &= (np.signbit(array) == np.signbit(right)) | (array != array)
        if tolerance and right.dtype.kind not in "biu":  # whole numbers are exact
            wide, exact = array.astype(np.float64), right.astype(np.float64)
            near = np.abs(wide - exact) <= tolerance * np.maximum(1.0, np.abs(exact))
            same |= near & np.isfinite(exact)  # a share of infinity is infinite: anything would be near it
    if same.all():
        return None
    at = tuple(map(int, np.unravel_index(int(np.argmin(same)), array.shape))) if array.ndim else ()
    return (
        f"element {list(at)} is {array[at]} and should be {right[at]}" if at else f"it is {array} and should be {right}"
    )
