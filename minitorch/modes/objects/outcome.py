"""Outcome of a traced call besides tensors: its result, and the containers among the arguments that it has changed.

A call has the same outcome as the function in eager mode: containers made inside are new in every call, those given
by the caller are changed in place, and those from elsewhere stay what they are.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import FunctionType
from typing import Any

import numpy as np

from ...errors import TracingError
from ...ir import user_source
from ...tensor import Tensor
from ...tree import Parts, Structure, Whole, attributes, row_of
from .places import PLAIN

_MOST_ITEMS = 10_000  # of an iterator among the results; raising it allows longer ones, and traces endless ones longer


@dataclass(frozen=True)
class Argument:
    """Result that is one of the arguments itself."""

    position: int


@dataclass(frozen=True)
class Output:
    """Computed result: its position among the graph's outputs."""

    position: int


@dataclass(frozen=True)
class Held:
    """Result that is a tensor from a place, by its number among the trace's."""

    position: int


@dataclass(frozen=True, eq=False)
class New:
    """Result that is made anew in every call, such as an array."""

    value: Any

    def made(self) -> Any:
        """Return a new copy, or the object itself if it cannot be copied."""
        try:
            return np.array(self.value) if isinstance(self.value, np.ndarray) else copy.copy(self.value)
        except Exception:
            return self.value


class Inside:
    """Test for objects that a call has made, as opposed to earlier ones: nothing else refers to them.

    Args:
        values: the values that the call has left, in a list that alone refers to them.
    """

    def __init__(self, values: list[Any]) -> None:
        self._inside: set[int] = set()
        self._kept: list[Any] = []
        self.look_into(values)

    def __call__(self, value: Any) -> bool:
        """Return whether the call has made a value."""
        return id(value) in self._inside

    def look_into(self, values: list[Any]) -> None:
        """Look into further values."""
        found, within = _objects(values)
        probe = object()
        found.append(probe)
        del probe
        ours = sys.getrefcount(found[-1])  # the references of the list and of this call
        for place in range(len(found) - 1):
            if sys.getrefcount(found[place]) - ours == within[place]:
                self._inside.add(id(found[place]))
        self._kept.append(found)  # so that ids stay unique

    def items(self, iterator: Any, function: str) -> list[Any]:
        """Return the items of an iterator, which is used up."""
        items = list(islice(iterator, _MOST_ITEMS + 1))
        if len(items) > _MOST_ITEMS:
            raise TracingError(
                "MT105",
                f"{function} returns a {type(iterator).__name__} of more than {_MOST_ITEMS:,} items",
                where=str(user_source()),
                why="the items of an iterator are computed by the call that returns it, all of them",
                fix="return a list, or an iterator that ends",
            )
        self.look_into(items)
        return items


def _objects(values: list[Any]) -> tuple[list[Any], list[int]]:
    """Return the objects in some values that can be changed, each once, and how often they occur there."""
    found: list[Any] = []
    places: dict[int, int] = {}
    within: list[int] = []
    pending = list(values)
    while pending:
        value = pending.pop()
        kind: Any = type(value)
        if kind in PLAIN or isinstance(value, (Tensor, FunctionType)):
            continue
        if id(value) in places:
            within[places[id(value)]] += 1
            continue
        places[id(value)] = len(found)
        found.append(value)
        within.append(1)
        if (row := row_of(kind, True)) is not None:
            pending += row.take(value)[1]
            pending += attributes(value).values()
    return found, within


def contents(containers: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return the present contents of some containers."""
    return [_content(container) for container in containers]


def _content(container: Any) -> tuple[Any, ...]:
    kind: Any = type(container)
    row = row_of(kind)
    assert row is not None
    keys, items, facts = row.take(container)
    held = attributes(container)
    return keys, tuple(items), facts, tuple(held), tuple(held.values())


def _is_unchanged(before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    for one, other in zip(before, now, strict=True):
        if len(one) != len(other) or any(a is not b for a, b in zip(one, other, strict=True)):
            return False
    return True


@dataclass
class Outcome:
    """Result of a call, and its effect on the caller's containers.

    Attributes:
        result: the structure of the result.
        leaves: of the result, then of everything else.
        changed: the containers that are changed, by number, with the structures of their contents.
        assigned: the structures of the values that are assigned to places outside.
        given: the number of containers among the arguments.
        results: the number of leaves of the result.
    """

    result: Structure
    leaves: list[Any]
    changed: list[tuple[int, Structure]] = field(default_factory=list)
    assigned: list[Structure] = field(default_factory=list)
    given: int = 0
    results: int = 0

    def carried_out(self, leaves: Sequence[Any], containers: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Change the containers of a call, and return its result and the values to assign."""
        whole = Whole(leaves, containers or [None] * self.given)  # there are none that it could reach
        result, values = whole.build(self.result), [whole.build(structure) for structure in self.assigned]
        for number, structure in self.changed:
            whole.fill(containers[number], structure)
        return result, values


def outcome_of(
    function: str,
    holder: list[Any],
    containers: Sequence[Any],
    before: Sequence[tuple[Any, ...]],
    leaf: Callable[[Any, bool], Any],
) -> Outcome:
    """Return the outcome of a function.

    Args:
        function: its name.
        holder: a list with the result and the values that are assigned, which nothing else refers to.
        containers: those among the arguments.
        before: their contents before the call.
        leaf: returns the note for a leaf, such as an `Output`, given whether the call has made the leaf.
    """
    pairs = zip(containers, before, strict=True)
    changed = [number for number, (container, was) in enumerate(pairs) if not _is_unchanged(was, _content(container))]
    count = len(holder)
    holder += [containers[number] for number in changed]
    inside = Inside(holder)
    parts = Parts(inside, lambda iterator: inside.items(iterator, function))
    for container in containers:
        parts.note(container)
    result = parts.add(holder[0])
    results = len(parts.leaves)
    assigned = [parts.add(value) for value in holder[1:count]]
    structures = [(number, parts.content(containers[number])) for number in changed]
    return Outcome(
        result, [leaf(each, inside(each)) for each in parts.leaves], structures, assigned, len(containers), results
    )
