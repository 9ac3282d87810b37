"""Tensors of a trace that are read from places and assigned to places, and are other objects in each call.

An assignment gives a place a new tensor, as in eager mode: other references to the earlier one keep its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from ...tensor import Tensor
from ...tree import Structure
from ..guards.kinds import How, Taken, exact, kind_of
from ..guards.watch import Watch
from .places import Change, Place, Places, apart

_assigned: WeakValueDictionary[int, Tensor] = WeakValueDictionary()  # by id: tensors that compiled calls have assigned


@dataclass
class _Variable:
    """Tensor that is looked up: where it is held, and the tensor that was found there last."""

    places: list[Place]
    tensor: Tensor
    is_own: bool  # whether the trace assigns to one of the places
    is_read: bool = False  # whether the graph depends on it


@dataclass
class _Slot:
    """Place to assign to, and the structure of its value when the function was traced."""

    place: Place
    structure: Structure
    leaves: list[Any]
    last: Any  # the value found there last
    containers: list[Any]  # the containers and objects in that
    is_fixed: bool = False  # whether there are none


class Assigned:
    """Tensors that a trace reads from places, and its assignments.

    Args:
        places: noted before the function was traced.
        changes: the assignments of the trace.
    """

    def __init__(self, places: Places | None = None, changes: Iterable[Change] = ()) -> None:
        self._places = places
        self._stirred: list[Watch] | None = None  # the watches on assigned places
        self._numbers: dict[int, int] = {}
        self._variables: list[_Variable] = []
        self.slots: list[_Slot] = []
        for change in changes:
            parts, structure = apart(change.before)
            self.slots.append(_Slot(change.place, structure, parts.leaves, change.before, parts.containers))
        self._own = [slot.place for slot in self.slots]
        for slot in self.slots:
            for leaf in slot.leaves:
                if isinstance(leaf, Tensor):
                    self.number(leaf)
            slot.leaves = [_kind(leaf) if isinstance(leaf, Tensor) else leaf for leaf in slot.leaves]

    def names(self) -> list[str]:
        """Return the places that are assigned to, as text."""
        return [str(slot.place) for slot in self.slots]

    def number(self, tensor: Tensor) -> int | None:
        """Return the number of a tensor from outside among those that are looked up; None if it cannot be looked up."""
        known = self._numbers.get(id(tensor))
        if known is not None or self._places is None:
            return known
        places = self._places.of(tensor)
        if not places:
            return None
        is_own = any(_is_within(place, own) for place in places for own in self._own)
        self._variables.append(_Variable(places, tensor, is_own))
        return self._numbers.setdefault(id(tensor), len(self._variables) - 1)

    def close(self, captured: Iterable[Tensor]) -> None:
        """End the trace.

        Args:
            captured: the tensors from outside that the graph reads.
        """
        for tensor in captured:
            number = self.number(tensor)
            if number is not None:
                self._variables[number].is_read = True
        for tensor in self._places.tensors() if self._places is not None else ():
            self.number(tensor)
        self._places, self._numbers = None, {}

    def tensors(self) -> list[Tensor]:
        """Return the present tensors, by number."""
        return [variable.tensor for variable in self._variables]

    def is_settled(self) -> bool:
        """Return whether all places that are assigned to hold the value found there last."""
        return all(slot.is_fixed and slot.place.get() is slot.last for slot in self.slots)

    def followed(self, watches: Iterable[Watch]) -> dict[int, Tensor] | None:
        """Take the tensors that are at the places now; return those that differ, by the `id` of the earlier ones.

        Return None if something else has changed, or the trace does not fit these tensors.

        Args:
            watches: of the trace.
        """
        moved = self._moved()
        failed = [watch for watch in watches if not watch.holds()] if moved is not None else []
        return None if moved is None else self._move(moved, failed)

    def put(self, values: Sequence[Any], watches: Iterable[Watch]) -> dict[int, Tensor] | None:
        """Assign new values, from which the next call starts; return the result of `followed`."""
        for slot, value in zip(self.slots, values, strict=True):
            slot.place.put(value)
            for leaf in apart(value)[0].leaves:
                if isinstance(leaf, Tensor):
                    _assigned[id(leaf)] = leaf
        if self._stirred is None:
            self._stirred = [watch for watch in watches if not watch.holds()]
        moved = self._moved()
        return None if moved is None else self._move(moved, self._stirred)

    def is_stirred(self, watch: Watch) -> bool:
        """Return whether a watch looks at an assigned place."""
        return watch in (self._stirred or ())

    def change(self) -> str:
        """Return the place that holds a value that does not fit the trace, as text; empty if there is none."""
        return f"{self.names()[0]} holds a value of another kind" if self.slots and self._moved() is None else ""

    def _move(self, moved: dict[int, Tensor], watches: Sequence[Watch]) -> dict[int, Tensor] | None:
        now = [(slot, apart(slot.place.get())[0].containers) for slot in self.slots]
        stands_for = {id(new): before for before, new in moved.items()}
        for slot, containers in now:  # containers that were assigned are others, too
            stands_for |= {id(new): id(old) for old, new in zip(slot.containers, containers, strict=True)}
        taken = Taken(stands_for)
        if not all(watch.holds(taken) for watch in watches):
            return None
        for variable in self._variables:
            variable.tensor = moved.get(id(variable.tensor), variable.tensor)
        for slot, containers in now:
            slot.containers, slot.last, slot.is_fixed = containers, slot.place.get(), not containers
        for watch in watches:
            watch.settle()
        return moved

    def _moved(self) -> dict[int, Tensor] | None:
        """Return the tensors replaced at all of their places, by `id`; None if the trace does not fit these."""
        for slot in self.slots:
            parts, structure = apart(slot.place.get())
            if structure != slot.structure or not all(map(_is_like, parts.leaves, slot.leaves)):
                return None
        moved: dict[int, Tensor] = {}
        for variable in self._variables:
            found = [place.get() for place in variable.places]
            now, is_one = found[0], all(each is found[0] for each in found)
            if now is variable.tensor and is_one:
                continue
            if is_one and _follows(now, variable):
                moved[id(variable.tensor)] = now
            elif variable.is_read or variable.is_own:
                return None
        here = [id(variable.tensor) for variable in self._variables if id(variable.tensor) not in moved]
        there = [id(tensor) for tensor in moved.values()]
        return moved if len({*here, *there}) == len(self._variables) else None


def _is_within(place: Place, own: Place) -> bool:
    if place.owner is not own.owner or place.key != own.key or len(place.steps) < len(own.steps):
        return False
    return all(one is other or _is_equal(one, other) for one, other in zip(place.steps, own.steps, strict=False))


def _kind(tensor: Tensor) -> Any:
    """Return the properties of a tensor at a place that a trace depends on."""
    return type(tensor), tensor.shape, tensor.dtype, tensor._requires_grad, tensor._entry is None


def _is_like(now: Any, before: Any) -> bool:
    if isinstance(now, Tensor):
        return bool(_kind(now) == before)
    return now is before or _is_equal(now, before)


def _is_equal(a: Any, b: Any) -> bool:
    return kind_of(a) is How.VALUE and exact(a) == exact(b)


def _follows(now: Any, variable: _Variable) -> bool:
    """Return whether a trace also fits another tensor in the place of a known one."""
    is_like = isinstance(now, Tensor) and _kind(now) == _kind(variable.tensor)
    return is_like and (variable.is_own or _assigned.get(id(now)) is now)
