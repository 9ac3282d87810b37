"""Differences of results, in units in the last place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.ir import Spec

Array = np.ndarray[Any, Any]


def ulps(a: Array, b: Array) -> Array:
    """The number of representable values between elements; NaN is next to NaN alone.

    Example:
        >>> ulps(np.float32([1, 0.0, np.nan]), np.float32([1 + 2**-22, -0.0, np.nan])).tolist()
        [2, 1, 0]
    """
    if a.dtype.kind in "biu":
        first, second = a.astype(np.uint64), b.astype(np.uint64)  # differences are right, even if they wrap around
        return np.where(a > b, first - second, second - first)
    both = np.isnan(a) & np.isnan(b)
    places = np.where(_place(a) > _place(b), _place(a) - _place(b), _place(b) - _place(a))
    one = np.isnan(a) ^ np.isnan(b)
    return np.asarray(np.where(both, np.uint64(0), np.where(one, np.uint64(2**63), places)))


def _place(array: Array) -> Array:
    """The rank of each number in the order of all numbers of its type."""
    bits = 8 * array.dtype.itemsize
    found = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(np.uint64).reshape(array.shape)
    sign = np.uint64(1 << (bits - 1))
    negative = (found & sign) != 0
    return np.asarray(np.where(negative, np.uint64(2 * int(sign) - 1) - found, found + sign))


@dataclass(frozen=True)
class Difference:
    """The difference of one output from its expected value.

    Attributes:
        name: which output.
        spec: its shape and type.
        ulp: the largest difference, in units in the last place; of integers the difference itself.
        index: of that element; None if there are no elements.
        expected, found: the two numbers there.
        within: whether rounding alone accounts for it.
    """

    name: str
    spec: Spec
    ulp: int
    index: tuple[int, ...] | None
    expected: Any
    found: Any
    within: bool

    def __str__(self) -> str:
        if self.index is None or not self.ulp:
            return f"{self.name} {self.spec}: equal"
        return (
            f"{self.name} {self.spec}: {self.ulp} ulp at {list(self.index)}, eager {self.expected}, "
            f"compiled {self.found}{'' if self.within else '  <- more than rounding'}"
        )


def are_equal(expected: Array, found: Array) -> bool:
    """Whether all elements are equal, with NaN equal to NaN, and 0 to -0."""
    return bool(((expected == found) | (ulps(expected, found) == 0)).all())


def difference(name: str, spec: Spec, expected: Array, found: Array, within: bool) -> Difference:
    """The largest difference of an output."""
    distances = ulps(expected, found)
    if not distances.size:
        return Difference(name, spec, 0, None, None, None, True)
    index = tuple(int(place) for place in np.unravel_index(int(distances.argmax()), distances.shape))
    return Difference(name, spec, int(distances[index]), index, expected[index].item(), found[index].item(), within)
