"""Numbers that a model hands to its operators: axes, lengths and counts are checked before anything is done with them.

An axis or a length may be an attribute, an initializer, or computed; so it is looked at where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minitorch.nn.functional import pooling
from minitorch.sizes import is_symbolic
from minitorch.tensor import Tensor

from ..decoding.limits import MOST_DIMS, require
from ..lengths import numbers

Array = np.ndarray[Any, Any]


def ints(array: Array) -> list[int]:
    """Return the numbers of an array of integers.

    Raises:
        OnnxError: if they are of another type (``MT801``).
    """
    require(array.dtype.kind in "iu", "it takes integers, and is given {}", array.dtype.name)
    return numbers(array)


def item(what: str, array: Array) -> Any:
    """Return the number of an array that has one.

    Raises:
        OnnxError: if it has none or several (``MT801``).
    """
    require(array.size == 1, "{} is {} numbers, and has to be one", what, array.size)
    return numbers(array)[0]


def whole(what: str, array: Array) -> int:
    """Return the number of an array that has one, as an int; a fraction is cut off.

    Raises:
        OnnxError: if it has none or several, or is infinite or NaN (``MT801``).
    """
    number = item(what, array)
    require(math.isfinite(number), "{} is {}", what, number)
    return number if is_symbolic(number) else int(number)


def dimension(axis: int, ndim: int) -> int:
    """Return an axis counted from 0; negative ones count from the end. A tensor of no dimensions has none.

    Raises:
        OnnxError: if there is no such axis (``MT801``).

    Example:
        >>> dimension(-1, 2)
        1
    """
    require(-ndim <= axis < ndim, "there is no axis {} in a tensor of {} dimensions", axis, ndim)
    return axis % ndim


def dimensions(axes: Sequence[int] | None, ndim: int) -> list[int]:
    """Return different axes counted from 0; by default, all that there are.

    Raises:
        OnnxError: if there is no such axis, or it comes twice (``MT801``).
    """
    dims = [dimension(axis, ndim) for axis in (range(ndim) if axes is None else axes)]
    require(len(set(dims)) == len(dims), "an axis comes twice among {}", dims)
    return dims


def check_ndim(what: str, x: Tensor, least: int, most: int = MOST_DIMS) -> None:
    """Compare the number of dimensions of a tensor with those that its operator takes.

    Raises:
        OnnxError: if it has fewer or more (``MT801``).
    """
    count = f"{least} or more" if most == MOST_DIMS else f"{least} to {most}"
    require(least <= x.ndim <= most, "{} is {}, and has to have {} dimensions", what, x.spec, count)


def padded(x: Tensor, pairs: Sequence[tuple[int, int]], value: float = 0) -> Tensor:
    """Pad the last dimensions; negative amounts cut off.

    Raises:
        OnnxError: if more is cut off than there is (``MT801``).
    """
    for length, (before, after) in zip(x.shape[x.ndim - len(pairs) :], pairs, strict=True):
        cut = max(-before, 0) + max(-after, 0)
        require(cut <= length, "{} elements are cut off of {}", cut, x.spec)
    return pooling.padded(x, pairs, value)
