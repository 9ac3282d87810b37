"""`Watch`: a value from outside that became a constant of a graph, and a check that it is unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...nn import Module
from ...optim import Optimizer
from ...tensor import Tensor
from ...tree import flatten, unflatten

PLAIN = (bool, int, float, complex, str, bytes, type(None))  # compared by value
OBJECTS = (Tensor, Module, Optimizer, np.ndarray)  # compared by identity: their tensors are inputs of the graph
CONTAINERS = (list, tuple, dict)  # compared item by item
SIMPLE = (*PLAIN, *CONTAINERS)

_MOST_ITEMS = 256  # items of a container; raising it watches larger ones, and slows every call


def can_be_watched(value: Any) -> bool:
    """Whether a value can be a constant of a graph, and a change of it can be noticed."""
    if isinstance(value, (*PLAIN, *OBJECTS)):
        return True
    if type(value) not in CONTAINERS:
        return False
    leaves, _ = flatten(value)
    return len(leaves) <= _MOST_ITEMS and all(isinstance(leaf, (*PLAIN, *OBJECTS)) for leaf in leaves)


def snapshot(value: Any) -> Any:
    """A value as it is now: containers are copied, their items are not."""
    if type(value) not in CONTAINERS:
        return value
    leaves, structure = flatten(value)
    return unflatten(structure, leaves)


def _same(a: Any, b: Any) -> bool:
    """Whether a value is unchanged: plain values by value, objects by identity, containers item by item."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in PLAIN:
        return bool(a == b)
    if isinstance(a, tuple) or type(a) is list:
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is dict and tuple(a) == tuple(b) and all(map(_same, a.values(), b.values()))


class Watch:
    """A constant from outside: its value when traced, and a way to read it again."""

    __slots__ = ("expected", "look", "name")

    def __init__(self, variable: str, look: Callable[[], Any], expected: Any) -> None:
        self.name = variable
        self.look = look
        self.expected = expected

    def holds(self) -> bool:
        """Whether it is unchanged."""
        return _same(self.look(), self.expected)

    def settle(self) -> None:
        """Accept the present value."""
        self.expected = snapshot(self.look())

    def change(self) -> str:
        """The change, as text."""
        now = self.look()
        if type(now) in SIMPLE and type(self.expected) in SIMPLE:
            return f"was {self.expected!r:.40} when it was traced and is {now!r:.40} now"
        return f"is another {type(now).__name__} now than when it was traced"

    def remedy(self) -> str:
        """The advice for letting it change without another trace."""
        if isinstance(self.expected, Tensor):
            return f"write into the tensor, {self.name}.copy_(...), or pass it as an argument"
        if type(self.expected) in (int, float):
            return (
                f"keep it in a tensor, {self.name} = mt.tensor({self.expected!r}), whose value is read at every run, "
                f"and change that in place, {self.name}.fill_(...)"
            )
        return "pass it as an argument"

    def __str__(self) -> str:
        return f"{self.name} {self.change()}"


_MOST_BYTES = 4096  # elements of an array; raising it watches larger ones, and slows every call


class ArrayWatch(Watch):
    """A small NumPy array, which may also be written in place."""

    __slots__ = ("content",)

    def __init__(self, variable: str, look: Callable[[], Any], expected: Any) -> None:
        super().__init__(variable, look, expected)
        self.content = expected.tobytes()

    def holds(self) -> bool:
        """Whether it is the same array with the same elements."""
        return self.look() is self.expected and self.expected.tobytes() == self.content

    def settle(self) -> None:
        """Accept the present array."""
        super().settle()
        self.content = self.expected.tobytes() if isinstance(self.expected, np.ndarray) else b""

    def change(self) -> str:
        """The change, as text."""
        if self.look() is self.expected:
            return "has other elements now than when it was traced"
        return super().change()


def watch(variable: str, look: Callable[[], Any], value: Any) -> Watch:
    """The watch for a value that can be watched."""
    if isinstance(value, np.ndarray) and value.nbytes <= _MOST_BYTES:
        return ArrayWatch(variable, look, value)
    return Watch(variable, look, snapshot(value))
