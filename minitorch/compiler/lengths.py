"""Lengths that a call gives: kernels that are compiled once, for all sizes up to a bound.

In a graph with symbolic sizes (`minitorch.sizes`), each of them becomes a `Length`: an int, the largest length that the
code is made for, with the formula of the length in a call. Memory is laid out, and schedules are chosen, for the bound.
A loop over such a dimension has its bound, too, and a guard, ``if i0 < n0``, around its body. A schedule treats this
guard like that of an uneven split, and the emitter makes it the end of the loop.

The lengths of a call are one more input of the graph, an array; ``n0`` is its first number. XLA's bounded dynamic
shapes are the same idea, with padded arrays in place of guards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from math import gcd, prod
from typing import Any

import numpy as np

from ..dtypes import int64
from ..graph.build import input_node
from ..ir import Node, Spec
from ..polynomials import Atom, Polynomial, constant_of, text_of
from ..sizes import Guards, Size, is_symbolic, key_of, value_at

MOST = 64  # different lengths in a program
NAME = "lengths"  # of the input


class UnboundedError(Exception):
    """The error for a program whose kernels cannot run with other lengths than those that they are made for."""


class Lengths:
    """The lengths of a program.

    Args:
        most: the largest value of each symbol.

    Attributes:
        node: the input that gives them to the kernels, in the order of `formulas`.
        formulas: symbolic sizes.
    """

    def __init__(self, most: Mapping[str, int]) -> None:
        self.most = dict(most)
        self.node: Node = input_node(NAME, Spec((MOST,), int64))
        self.formulas: list[Any] = []

    def of(self, size: Any) -> Any:
        """Return a symbolic size as a `Length`; a plain number unchanged.

        Raises:
            UnboundedError: for a number that is no integer, or has no bound.
        """
        if not is_symbolic(size):
            return size
        if type(size) is not Size:
            raise UnboundedError(f"{size} is no integer")
        return Length(size, self._most_of(size.polynomial), self)

    def _most_of(self, polynomial: Polynomial) -> int:
        """Return a bound of a formula, by the bounds of what it is made of.

        Raises:
            UnboundedError: for a formula that need not be largest where these are, such as a remainder.
        """
        total = 0
        for monomial, factor in polynomial:
            if monomial and factor < 0:
                raise UnboundedError(f"{text_of(polynomial)} is not bounded by the bounds of its symbols")
            total += factor * prod(map(self._most_of_atom, monomial))
        return total

    def _most_of_atom(self, atom: Atom) -> int:
        if not atom.sides:
            return self.most[atom.kind]
        left, right = atom.sides
        if atom.kind == "//":
            if not (divisor := constant_of(right)) or divisor < 0:
                raise UnboundedError(f"a length is divided by {text_of(right)}")
            return self._most_of(left) // int(divisor)
        return (min if atom.kind == "min" else max)(self._most_of(left), self._most_of(right))

    def place(self, formula: Any) -> int:
        """Return the place of a formula among the lengths."""
        keys = [key_of(known) for known in self.formulas]
        if key_of(formula) not in keys:
            self.formulas.append(formula)
            keys.append(key_of(formula))
            if len(keys) > MOST:
                raise UnboundedError(f"more than {MOST} lengths")
        return keys.index(key_of(formula))

    def values(self, sizes: Mapping[str, int]) -> np.ndarray[Any, Any]:
        """Return the input for the values of the symbols in a call."""
        found = np.zeros(MOST, np.int64)
        for place, formula in enumerate(self.formulas):
            found[place] = value_at(formula, sizes)
        return found


class Length(int):
    """The bound of a length that a call gives. It is equal to lengths of the same formula in the same program alone.

    Attributes:
        size: the formula.
        lengths: of the program.
    """

    size: Size
    lengths: Lengths

    def __new__(cls, size: Size, bound: int, lengths: Lengths) -> Length:
        self = super().__new__(cls, bound)
        self.size, self.lengths = size, lengths
        return self

    @property
    def parts(self) -> tuple[int, int, int]:
        """The place of a formula among the lengths of a call; by what it is multiplied, and what is added to it.

        Raises:
            UnboundedError: for a formula that need not be largest where its symbols are.
        """
        self.lengths.of(self.size)
        terms = dict(self.size.polynomial)
        added = terms.pop((), 0)
        factor = reduce(gcd, map(int, terms.values()))
        alone = Size(frozenset((each, by // factor) for each, by in terms.items()), 0, Guards())
        return self.lengths.place(alone), factor, added

    def at(self, values: Any) -> int:
        """Return the length in a call that gives these."""
        return int(values[self.lengths.place(self.size)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Length) or self.lengths is not other.lengths:
            return False
        return self.size.polynomial == other.size.polynomial

    def __ne__(self, other: object) -> bool:  # an int has its own
        return not self == other

    def __hash__(self) -> int:
        return hash(self.size.polynomial)

    def __reduce__(self) -> Any:
        return int, (int(self),)


def _method(name: str) -> Callable[[Length, Any], Any]:
    def method(self: Length, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        formula = getattr(self.size, name)(other.size if isinstance(other, Length) else other)
        if not is_symbolic(formula):
            return formula
        try:
            return self.lengths.of(formula)
        except UnboundedError:  # a difference of costs: no index and no loop has it, see `parts`
            return Length(formula, value_at(formula, self.lengths.most), self.lengths)

    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul"):
    setattr(Length, f"__{_name}__", _method(f"__{_name}__"))


def at_lengths(found: Any, values: Any) -> Any:
    """Return a shape or a parameter with the lengths of a call."""
    if isinstance(found, Length):
        return found.at(values)
    return tuple([at_lengths(each, values) for each in found]) if type(found) is tuple else found


def lengths_in(found: Any) -> Iterator[Length]:
    """Yield the lengths that vary in a shape or a parameter."""
    if isinstance(found, Length):
        yield found
    elif type(found) is tuple:
        for each in found:
            yield from lengths_in(each)


def within_one(shape: tuple[int, ...]) -> bool:
    """Return whether dimensions joined to one are a beginning of it in every call: only the first length varies."""
    longer = [length for length in shape if length != 1]
    return not any(isinstance(length, Length) for length in longer[1:])


def in_memory(shape: tuple[int, ...], values: Any) -> tuple[int, ...]:
    """Return the shape of the memory of an array: that of its bound, unless its elements are the first ones there."""
    return at_lengths(shape, values) if within_one(shape) else tuple(map(int, shape))


def padded(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an array laid out as its bound is; what is beyond its own elements is never used."""
    whole = np.empty(tuple(map(int, shape)), array.dtype)
    whole[tuple(map(slice, array.shape))] = array
    return whole


def same_layout(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether elements that a reshape from one shape to the other relates have the same place in memory."""
    longer = ([length for length in each if length != 1] for each in (shape, other))
    return next(longer) == next(longer) or (within_one(shape) and within_one(other))


def require_within_one(shape: tuple[int, ...]) -> None:
    """Require that dimensions can be joined to one.

    Raises:
        UnboundedError: if a length that varies is not the first.
    """
    if not within_one(shape):
        raise UnboundedError(f"dimensions {shape} are joined, and a length that varies is not the first of them")
