"""Numbers that a model hands to its operators: axes, lengths and counts are checked before anything is done with them.

An axis or a length may be an attribute, an initializer, or computed; so it is looked at where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.functional.movement.parts import part
from minitorch.sizes import is_symbolic
from minitorch.tensor import Tensor

from ..decoding.limits import MOST_DIMS, refuse, shape_of
from ..lengths import numbers
from ..running import Call

Array = np.ndarray[Any, Any]


def ints(array: Array) -> list[int]:
    """The numbers of an array of integers.

    Raises:
        OnnxError: if they are of another type (``MT801``).
    """
    if array.dtype.kind not in "iu":
        refuse(f"it takes integers, and is given {array.dtype.name}")
    return numbers(array)


def item(what: str, array: Array) -> Any:
    """The number of an array that has one.

    Raises:
        OnnxError: if it has none or several (``MT801``).
    """
    if array.size != 1:
        refuse(f"{what} is {array.size} numbers, and has to be one")
    return numbers(array)[0]


def whole(what: str, array: Array) -> int:
    """The number of an array that has one, as an int; a fraction is cut off.

    Raises:
        OnnxError: if it has none or several, or is infinite or NaN (``MT801``).
    """
    number = item(what, array)
    if not math.isfinite(number):
        refuse(f"{what} is {number}")
    return number if is_symbolic(number) else int(number)


def dimension(axis: int, ndim: int) -> int:
    """An axis counted from 0; negative ones count from the end. A tensor of no dimensions has none.

    Raises:
        OnnxError: if there is no such axis (``MT801``).

    Example:
        >>> dimension(-1, 2)
        1
    """
    if not -ndim <= axis < ndim:
        refuse(f"there is no axis {axis} in a tensor of {ndim} dimensions")
    return axis % ndim


def check_ndim(what: str, x: Tensor, least: int, most: int | None = None) -> None:
    """Compare the number of dimensions of a tensor with those that its operator takes.

    Args:
        what: the tensor, in messages.
        x: the tensor.
        least, most: how many it has; the same number by default.

    Raises:
        OnnxError: if it has fewer or more (``MT801``).
    """
    most = least if most is None else most
    if not least <= x.ndim <= most:
        count = f"{least}" if least == most else f"{least} or more" if most == MOST_DIMS else f"{least} to {most}"
        refuse(f"{what} is {x.spec}, and has to have {count} dimensions")


def padded(call: Call, x: Tensor, pairs: Sequence[tuple[int, int]], value: float = 0) -> Tensor:
    """The last dimensions padded; negative amounts cut off.

    Raises:
        OnnxError: if more is cut off than there is, or the result is too large (``MT801``).
    """
    lead = x.ndim - len(pairs)
    shape_of(call.op, [n + max(a, 0) + max(b, 0) for n, (a, b) in zip(x.shape[lead:], pairs, strict=True)])
    for dim, (before, after) in enumerate(pairs, lead):
        if min(before, after) < 0:
            first, last = max(-before, 0), x.shape[dim] - max(-after, 0)
            if first > last:
                refuse(f"{-before - after} elements are cut off of {x.spec}")
            x = part(x, dim, first, last)
    positive = [(max(before, 0), max(after, 0), 0) for before, after in pairs]
    if not any(before or after for before, after, _ in positive):
        return x
    return P.pad(x, padding=((0, 0, 0),) * lead + tuple(positive), value=value)
