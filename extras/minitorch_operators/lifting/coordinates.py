"""Where the elements of a moved value come from, as affine functions of its index: no element is looked at.

Each dimension is a list of *digits*, most significant first. A digit counts 0, 1, ... and moves the coordinate along
one axis of the source by its stride. Movements change the digits: a reshape joins them and takes them apart, windows
make two of one, padding lets a coordinate begin below 0. Some movements have no such form: gaps between elements, a
reshape across digits, or padding behind overlapping windows. They give None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from minitorch import primitives as P
from minitorch.ir import Node, Shape
from minitorch.primitives.movement import taken
from minitorch.sizes import larger, smaller


@dataclass(frozen=True)
class Digit:
    """One digit: it counts to `length`, and each step moves the coordinate along an axis of the source by `stride`."""

    axis: int
    stride: int
    length: int


Dim = tuple[Digit, ...]
MOVEMENTS = frozenset((P.reshape, P.permute, P.pad, P.unfold, P.slice_))


@dataclass(frozen=True)
class Coordinates:
    """For each element of a value, its coordinates in the source.

    Attributes:
        dims: the digits of each dimension.
        offsets: for each axis of the source, the coordinate of the first element.
        inside: for each axis, the first coordinate that is there and the one behind the last; others are padding.
    """

    dims: tuple[Dim, ...]
    offsets: Shape
    inside: tuple[tuple[int, int], ...]

    @staticmethod
    def of(shape: Shape) -> Coordinates:
        """The source itself."""
        dims = tuple([(Digit(axis, 1, length),) for axis, length in enumerate(shape)])
        return Coordinates(dims, (0,) * len(shape), tuple([(0, length) for length in shape]))

    def permuted(self, dims: Sequence[int]) -> Coordinates:
        """The dimensions in another order."""
        return replace(self, dims=tuple([self.dims[dim] for dim in dims]))

    def reshaped(self, shape: Sequence[int]) -> Coordinates | None:
        """The same elements under another shape; None if a dimension begins inside a digit that it does not divide."""
        digits = _joined([digit for dim in self.dims for digit in dim])
        found: list[Dim] = []
        for length in reversed(shape):
            dim: list[Digit] = []
            while length != 1:
                if not digits:
                    return None
                digit = digits.pop()
                if length % digit.length == 0:
                    dim.insert(0, digit)
                    length //= digit.length
                elif digit.length % length == 0:
                    dim.insert(0, replace(digit, length=length))
                    digits.append(Digit(digit.axis, digit.stride * length, digit.length // length))
                    length = 1
                else:
                    return None
            found.append(tuple(dim))
        return None if digits else replace(self, dims=tuple(reversed(found)))

    def single(self, dim: int) -> Digit | None:
        """The one digit of a dimension, if that is what it has."""
        digits = _joined(self.dims[dim]) or list(self.dims[dim][:1])
        return digits[0] if len(digits) == 1 else None

    def moved(self, node: Node) -> Coordinates | None:
        """After a movement: a reshape, permute, slice, pad or unfold."""
        params = node.params
        if node.primitive is P.reshape:
            return self.reshaped(params["shape"])
        if node.primitive is P.permute:
            return self.permuted(params["dims"])
        if node.primitive is P.unfold:
            digit = self.single(params["dim"])
            if digit is None:
                return None
            count, size = node.shape[params["dim"]], params["size"]
            places = self._with(params["dim"], Digit(digit.axis, digit.stride * params["step"], count))
            inside = Digit(digit.axis, digit.stride * params["dilation"], size)
            return replace(places, dims=(*places.dims, (inside,)))
        is_cut = node.primitive is P.slice_
        amounts = zip(params["start"], params["stop"], params["step"], strict=True) if is_cut else params["padding"]
        found: Coordinates | None = self
        for dim, each in enumerate(amounts):
            if each == ((0, node.inputs[0].shape[dim], 1) if is_cut else (0, 0, 0)):
                continue
            digit = self.single(dim)
            if digit is None or found is None:
                return None
            found = found._cut(dim, digit, *each) if is_cut else found._padded(dim, digit, *each)
        return found

    def _with(self, dim: int, digit: Digit, offset: int = 0) -> Coordinates:
        dims, offsets = list(self.dims), list(self.offsets)
        dims[dim] = (digit,)
        offsets[digit.axis] += offset
        return replace(self, dims=tuple(dims), offsets=tuple(offsets))

    def _cut(self, dim: int, digit: Digit, start: int, stop: int, step: int) -> Coordinates:
        length = taken(start, stop, step)
        return self._with(dim, Digit(digit.axis, digit.stride * step, length), start * digit.stride)

    def _padded(self, dim: int, digit: Digit, before: int, after: int, between: int) -> Coordinates | None:
        """More of a dimension: elements that were cut off, or lie beyond the source, are padding from now on."""
        axis = digit.axis
        others = [other for place, each in enumerate(self.dims) if place != dim for other in each if other.length != 1]
        if between or any(other.axis == axis for other in others):
            return None
        low, high = self.inside[axis]
        first = self.offsets[axis]
        inside = list(self.inside)
        inside[axis] = larger(low, first), smaller(high, first + digit.stride * (digit.length - 1) + 1)
        longer = Digit(axis, digit.stride, before + digit.length + after)
        return replace(self._with(dim, longer, -before * digit.stride), inside=tuple(inside))


def _joined(digits: Sequence[Digit]) -> list[Digit]:
    """Digits without those that do not count, and neighbours that count on as one."""
    found: list[Digit] = []
    for digit in digits:
        if digit.length == 1:
            continue
        last = found[-1] if found else None
        if last is not None and last.axis == digit.axis and last.stride == digit.stride * digit.length:
            found[-1] = Digit(digit.axis, digit.stride, last.length * digit.length)
        else:
            found.append(digit)
    return found


def coordinates(chain: Sequence[Node], shape: Shape | None = None) -> Coordinates | None:
    """Where the elements of the first node of a chain come from in the last one, if that has such a form.

    Args:
        chain: a node, and what it is moved from.
        shape: another one of the last node, with the same elements.
    """
    found: Coordinates | None = Coordinates.of(chain[-1].shape if shape is None else shape)
    if shape is not None and found is not None:
        found = found.reshaped(chain[-1].shape)
    for node in reversed(chain[:-1]):
        found = None if found is None else found.moved(node)
    return found


def chain_of(node: Node, value: float | None) -> list[Node]:
    """A node, and what it is moved from, as far as only movements are between; padding is of one value."""
    found = [node]
    while node.primitive in MOVEMENTS:
        if node.primitive is P.pad and (value is None or node.params["value"] != value):
            break
        (node,) = node.inputs
        found.append(node)
    return found
