"""`Watch`: a variable or an attribute that was read during a trace; `Watches`: many, compared at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import is_
from typing import Any

import numpy as np

from ...errors import compose
from ...ir import warn_user
from ...tensor import Tensor
from ...tree import flatten, unflatten
from .kinds import How, Taken, is_traced, kind_of
from .ownership import MISSING

_SHOWN = 64  # plain values in a container that a message shows


def plain(value: Any) -> Any:
    """Return a copy of a plain value, or of a small list, tuple or dict of such, for messages; else `MISSING`."""
    if kind_of(value) is not How.VALUE and type(value) not in (list, tuple, dict):
        return MISSING
    leaves, structure = flatten(value)
    return unflatten(structure, leaves) if len(leaves) <= _SHOWN and all(map(_is_plain, leaves)) else MISSING


def _is_plain(value: Any) -> bool:
    return kind_of(value) is How.VALUE


class Watch:
    """Value from outside that the graph depends on, as it was, and how to read it again.

    Args:
        name: as one writes it, such as ``config.scale``.
        read: ``read(owner, key, MISSING)`` gives the value.
        is_written: whether the function assigns it, and does not read it: then the graph does not depend on it.

    Attributes:
        value: the value then, if it is plain or an array.
    """

    __slots__ = ("_is_tensor", "_taken", "_type", "_was", "is_written", "key", "name", "owner", "read", "value")

    def __init__(
        self, name: str, read: Callable[[Any, Any, Any], Any], owner: Any, key: Any, is_written: bool = False
    ) -> None:
        self.name, self.read, self.owner, self.key, self.is_written = name, read, owner, key, is_written
        self.settle()

    def look(self) -> Any:
        """Return the present value; `MISSING` if there is none."""
        try:
            return self.read(self.owner, self.key, MISSING)
        except (ValueError, AttributeError):  # a variable that was deleted
            return MISSING

    def holds(self, taken: Taken | None = None) -> bool:
        """Return whether it is unchanged."""
        return bool((taken or Taken()).of(self.look()) == self._was)

    @property
    def is_settled(self) -> bool:
        """Whether there was a value before the trace; a tensor that was being recorded does not count."""
        return self._was is not None

    @property
    def has_insides(self) -> bool:
        """Whether it can change without replacing the object."""
        return bool(self._taken.iterated or self._taken.elements)

    @property
    def too_large(self) -> Any:
        """A part of it that is too large to be compared."""
        return self._taken.too_large

    def settle(self) -> None:
        """Accept the present value."""
        now = self.look()
        self._taken = Taken()  # keeps the objects alive, so that their ids are theirs
        self._was = None if is_traced(now) else self._taken.of(now)
        self._type, self._is_tensor = type(now), isinstance(now, Tensor)
        self.value = now if isinstance(now, np.ndarray) else plain(now)

    def change(self) -> str:
        """Return the change, as text."""
        now = self.look()
        if now is MISSING or (self._type is object and self.value is MISSING):
            return "is not there any more" if now is MISSING else "was not there when it was traced"
        if self.value is not MISSING and not isinstance(self.value, np.ndarray) and plain(now) is not MISSING:
            return f"was {self.value!r:.40} when it was traced and is {plain(now)!r:.40} now"
        if type(now) is self._type and kind_of(now) in (How.ITEMS, How.ELEMENTS):
            return f"has other {'items' if kind_of(now) is How.ITEMS else 'elements'} now than when it was traced"
        return f"is another {type(now).__name__} now than when it was traced"

    def remedy(self) -> str:
        """Return the advice for allowing the change without another trace."""
        if self._is_tensor:
            return f"write into the tensor, {self.name}.copy_(...), or pass it as an argument"
        if type(self.value) in (int, float):
            return (
                f"keep it in a tensor, {self.name} = mt.tensor({self.value!r}), whose value is read at every run, "
                f"and change that in place, {self.name}.fill_(...)"
            )
        return "pass it as an argument"

    def __str__(self) -> str:
        return f"{self.name} {self.change()}"


class Watches(list[Watch]):
    """Watches that are compared at once, by identity first, without calling a Python function for each."""

    def __init__(self, watches: Iterable[Watch] = ()) -> None:
        super().__init__(watches)
        self._seen: Any = [(getattr, None, "", None)], [], [], [], []  # an attribute that is never found

    def hold(self) -> bool:
        """Return whether all are unchanged."""
        reads, iterated, lengths, items, elements = self._seen
        try:
            for read, owner, key, found in reads:
                if read(owner, key, MISSING) is not found:
                    break
            else:
                if (not iterated or _holds(iterated, lengths, items)) and (
                    not elements or all([read(array) == content for read, array, content in elements])  # noqa: C419
                ):
                    return True
        except (ValueError, RuntimeError, AttributeError):  # deleted, or changed by another thread meanwhile
            pass
        taken = Taken()
        if not all(watch.holds(taken) for watch in self):
            return False
        self._see(taken)
        return True

    def _see(self, taken: Taken) -> None:
        """Remember the objects that are found now."""
        reads = [(watch.read, watch.owner, watch.key, watch.look()) for watch in self]
        iterated = taken.iterated
        self._seen = reads, iterated, list(map(len, iterated)), list(chain.from_iterable(iterated)), taken.elements


def _holds(containers: Sequence[Any], lengths: Sequence[int], items: Sequence[Any]) -> bool:
    """Return whether the containers hold these very items."""
    same = list(map(len, containers)) == lengths
    return same and (not items or all(map(is_, chain.from_iterable(containers), items)))


def warn_of_change(name: str, watched: Watch) -> None:
    """Warn of a function that changes values it reads."""
    warn_user(
        compose(
            "MT105",
            f"{name} changes `{watched.name}` while it is traced: it {watched.change()}",
            why="the function runs once, while it is traced; later calls run the graph, and change nothing",
            fix=f"return the new value, and assign `{watched.name}` outside",
        )
    )


def warn_of_unknown(name: str, read: str, value: Any, place: str) -> None:
    """Warn of a function that reads a value of a kind that cannot be compared."""
    is_large = kind_of(value) in (How.ITEMS, How.ELEMENTS)
    why = "the graph has what it gave while the function was traced, and what is inside of it cannot be compared"
    if is_large:
        why = "its contents are too many to be compared at every call"
    tensor = f", or keep it in a tensor, {read} = mt.tensor({read})" if isinstance(value, np.ndarray) else ""
    warn_user(
        compose(
            "MT115",
            f"{name} reads `{read}`, a {'large ' if is_large else ''}{type(value).__name__}, and does not notice when "
            "that changes",
            where=place,
            why=why,
            fix=f"pass what `{read}` gives as an argument{tensor}",
        )
    )
