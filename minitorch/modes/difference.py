"""How far two results are apart: in units in the last place, and beside what rounding alone can do.

Compiled code may contract ``a * b + c``, sum in another order and use other polynomials, so its last digits differ. How
much that makes in the end depends on the program: after a cancellation nothing may be left of the first digits. So
where the distance is above the tolerance of the type, it is compared with the *noise* of the program: how far results
go if every value on the way is moved by up to one unit in the last place (stochastic arithmetic, Vignes 1993), and
sums are done in double precision, or one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import Spec

Array = np.ndarray[Any, Any]

# Units in the last place that results may differ by; types that are not here have to be equal.
TOLERANCE = {"float64": 64, "float32": 64, "float16": 16, "bfloat16": 16}
TIMES_NOISE = 16
SAMPLES = 8  # of the noise


def ulps(a: Array, b: Array) -> Array:
    """How many numbers of their type lie between each two elements; NaN is next to NaN alone.

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
    """The place of each number in the order of all numbers of its type."""
    bits = 8 * array.dtype.itemsize
    found = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(np.uint64).reshape(array.shape)
    sign = np.uint64(1 << (bits - 1))
    negative = (found & sign) != 0
    return np.asarray(np.where(negative, np.uint64(2 * int(sign) - 1) - found, found + sign))


@dataclass(frozen=True)
class Difference:
    """How far one output is from what it should be.

    Attributes:
        name: which output.
        spec: its shape and type.
        ulp: the largest difference, in units in the last place; of integers the difference itself.
        index: where that is; None if there are no elements.
        expected, found: the two numbers there.
        within: whether it is within the tolerance of the type, or what rounding alone does.
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
            f"compiled {self.found}{'' if self.within else '  <- beyond the tolerance'}"
        )


def is_close(expected: Array, found: Array) -> bool:
    """Whether all elements are within the tolerance of their type."""
    return not (ulps(expected, found) > TOLERANCE.get(expected.dtype.name, 0)).any()


class Excess:
    """The elements of a result that are further apart than the tolerance; samples of the noise may account for them."""

    def __init__(self, expected: Array, found: Array) -> None:
        self._wrong = ulps(expected, found) > TOLERANCE.get(expected.dtype.name, 0)
        self._expected = expected[self._wrong].astype(np.float64)
        self._apart = _apart(self._expected, found[self._wrong].astype(np.float64))
        self._spread = np.zeros_like(self._apart)

    def __bool__(self) -> bool:
        """Whether there are any that the samples so far do not account for."""
        return bool((self._apart > TIMES_NOISE * self._spread).any())

    def add(self, sample: Array) -> None:
        """Take a sample of the same result into account."""
        moved = sample[self._wrong].astype(np.float64)
        self._spread = np.maximum(self._spread, _apart(self._expected, moved))


def _apart(a: Array, b: Array) -> Array:
    """The absolute difference; infinite where one of two is not finite and the other another one."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        distance = np.abs(a - b)
    return np.where(same, 0.0, np.where(np.isfinite(distance), distance, np.inf))


def difference(name: str, spec: Spec, expected: Array, found: Array, within: bool) -> Difference:
    """The largest difference of an output."""
    distances = ulps(expected, found)
    if not distances.size:
        return Difference(name, spec, 0, None, None, None, True)
    index = tuple(int(place) for place in np.unravel_index(int(distances.argmax()), distances.shape))
    return Difference(name, spec, int(distances[index]), index, expected[index].item(), found[index].item(), within)


class Noise:
    """Moves every float by up to one unit in the last place; zeros, infinities and NaN stay."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, array: Array) -> Array:
        """The array, moved."""
        if array.dtype.name not in TOLERANCE:
            return array
        step = np.spacing(np.abs(array)).astype(np.float64)
        with np.errstate(all="ignore"):
            moved = array.astype(np.float64) + step * self._random.uniform(-1, 1, array.shape)
            rounded = moved.astype(array.dtype)
        return np.where(np.isfinite(rounded) & (array != 0), rounded, array)


def noises() -> Iterable[Noise]:
    """The noise of each sample; the same ones every time."""
    return map(Noise, range(SAMPLES))


def _sum_widely(array: Array, axis: tuple[int, ...]) -> Array:
    """A sum in double precision: what is lost by adding up is gone."""
    return np.asarray(np.add.reduce(array, axis=axis, dtype=np.float64))


def _sum_in_a_row(array: Array, axis: tuple[int, ...]) -> Array:
    """A sum one by one: where terms are alike, all of the additions may round to the same side."""
    dtype = np.result_type(array.dtype, np.float32)  # as everywhere, the sums of 16-bit floats are in float32
    terms = np.moveaxis(array, axis, range(len(axis))).reshape(-1, *np.delete(array.shape, axis)).astype(dtype)
    return np.asarray(np.add.accumulate(terms, axis=0)[-1])


Summation = Callable[[Array, tuple[int, ...]], Array]

# Eager mode has one order of adding up, kernels have others. Noise on the terms does not show how much that makes.
SUMMATIONS: tuple[Summation, ...] = (_sum_widely, _sum_in_a_row)
