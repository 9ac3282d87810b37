"""Assigned state: tensors in attributes, items and variables that a traced function replaces.

``self.mean = 0.9 * self.mean + 0.1 * x.mean(0)`` replaces a tensor by another one. The *places* that a function can
reach are noted before it is traced, and compared afterwards. Its assignments are undone, and done again after every
run with the tensors of that run (`assigned`).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ...nn import Module
from ...packages import ENGINE, is_own
from ...tensor import Tensor
from ...tree import Parts, Structure, attributes
from ..guards.ownership import MISSING
from ..guards.reads import codes

_MOST_OBJECTS = 20_000  # objects searched; raising it finds state further away, and makes tracing slower
_MOST_ITEMS = 4096  # items searched in a container; likewise
_MOST_WAYS = 8  # ways to one object; objects with more are not followed
_ENTERED = tuple(f"{ENGINE}.{room}" for room in ("nn", "optim", "amp"))  # rooms whose objects have state
_FIXED = sys.stdlib_module_names | {"numpy", "llvmlite", "ml_dtypes"}
_HOLDERS = ("types.SimpleNamespace", "argparse.Namespace", "collections.UserDict", "collections.UserList")
_BUILTIN = (list, tuple, dict, deque)
PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Name(str):
    """Name of an attribute, among keys of containers."""

    __slots__ = ()


class Place(NamedTuple):
    """Place that can hold a tensor.

    Attributes:
        owner: an object, a module, the cell of a variable, or the global variables of a file.
        key: the name of the attribute or variable.
        steps: keys from there into containers, and names of attributes of objects.
    """

    owner: Any
    key: str
    steps: tuple[Any, ...] = ()

    def get(self) -> Any:
        """Return the present value."""
        if isinstance(self.owner, dict):
            value = self.owner.get(self.key, MISSING)
        else:
            try:
                value = getattr(self.owner, self.key, MISSING)
            except ValueError:  # an empty cell
                return MISSING
        for step in self.steps:
            if isinstance(step, Name):
                value = getattr(value, step, MISSING)
                continue
            try:
                value = value[step] if isinstance(value, _BUILTIN) else MISSING
            except (LookupError, TypeError):
                return MISSING
        return value

    def put(self, value: Any) -> None:
        """Assign a value."""
        if self.steps:
            container = self._replace(steps=self.steps[:-1]).get()
            _put(container, self.steps[-1], value)
        else:
            _put(self.owner, self.key, value)

    def __str__(self) -> str:
        inside = "".join(f".{step}" if isinstance(step, Name) else f"[{step!r}]" for step in self.steps)
        if isinstance(self.owner, dict):
            return f"the global variable `{self.key}{inside}`"
        if isinstance(self.owner, CellType):
            return f"a variable of an enclosing function{inside}"
        kind = "class" if isinstance(self.owner, type) else type(self.owner).__name__
        return f"the attribute `{self.key}{inside}` of a {kind}"


def _put(owner: Any, key: Any, value: Any) -> None:
    if isinstance(owner, (list, dict, deque)):
        if value is MISSING:
            del owner[key]
        else:
            owner[key] = value
        return
    change, key = type if isinstance(owner, type) else object, str(key)
    if value is MISSING:
        change.__delattr__(owner, key)
    else:
        change.__setattr__(owner, key, value)
    if isinstance(owner, Module):
        Module.changes += 1


class Change(NamedTuple):
    """Place that holds something else than before.

    Attributes:
        place: the place.
        before, now: its values.
    """

    place: Place
    before: Any
    now: Any


class Places:
    """Places that a function can reach, with their values.

    Args:
        function: the function about to be traced.
        values: objects passed to it.
    """

    def __init__(self, function: Any, values: Iterable[Any] = ()) -> None:
        self._noted: dict[int, tuple[Any, dict[Any, Any]]] = {}  # by id: an owner or container, and its contents
        self._parents: dict[int, list[tuple[Any, Any]]] = {}  # of tensors and containers: their holders and keys
        self._globals: dict[int, set[str]] = {}  # by id of the global variables of a file: the names that are used
        self._pending: list[Any] = [function, *values]
        self._roots = set(map(id, self._pending))  # reached by other ways than attributes, items and variables
        self._seen: set[int] = set()
        self._changed: list[tuple[Any, Any, Any]] = []
        while self._pending and len(self._noted) < _MOST_OBJECTS:
            self._visit(self._pending.pop())
        self._pending.clear()

    def _visit(self, value: Any) -> None:
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, (FunctionType, MethodType, partial, staticmethod, classmethod, property)):
            self._visit_function(value)
        elif str(type(value).__module__).startswith(f"{ENGINE}.modes"):  # made by `jit`
            self._pending.append(getattr(value, "function", None))
        elif isinstance(value, CellType) or (_is_entered(value) and not _is_large(value)):
            self._note(value, _items(value))
            kinds = (value if isinstance(value, type) else type(value)).__mro__
            self._pending += [kind for kind in kinds if not _is_fixed(kind.__module__)]

    def _note(self, owner: Any, found: dict[Any, Any], new: dict[Any, Any] | None = None) -> None:
        self._noted[id(owner)] = owner, found
        for key, value in (found if new is None else new).items():
            if isinstance(value, Tensor) or _is_replaceable(value):
                self._parents.setdefault(id(value), []).append((owner, key))
            if not isinstance(value, (Tensor, *PLAIN)):
                self._pending.append(value)

    def _visit_function(self, value: Any) -> None:
        if isinstance(value, (MethodType, partial)):
            if isinstance(value, MethodType):
                held = [value.__self__, value.__func__]
            else:
                held = [value.func, *value.args, *value.keywords.values()]
            self._roots |= set(map(id, held))
            self._pending += held
        elif isinstance(value, property):
            self._pending += [value.fget]
        elif not isinstance(value, FunctionType):
            self._pending += [value.__func__]
        elif not (_is_fixed(value.__module__) or is_own(value.__module__)):
            defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
            self._roots |= set(map(id, defaults))
            self._pending += [*(value.__closure__ or ()), *defaults]
            self._pending += [getattr(value, "__wrapped__", None)]
            space, names = value.__globals__, {name for code in codes(value.__code__) for name in code.co_names}
            self._add_globals(space, names)

    def _add_globals(self, space: dict[str, Any], names: set[str]) -> None:
        known = self._globals.setdefault(id(space), set())
        new = names - known
        known |= new
        values = {name: space[name] for name in new if name in space}
        self._note(space, {**self._noted.get(id(space), (space, {}))[1], **values}, values)
        for found in values.values():
            if isinstance(found, ModuleType) and not _is_fixed(found.__name__):
                self._add_globals(vars(found), names)

    # After the trace ------------------------------------------------------------------------------------

    def changes(self) -> list[Change]:
        """Return the places whose tensors have been replaced."""
        found: list[tuple[Any, Any, Any, Any]] = []
        for owner, before in self._noted.values():
            if isinstance(owner, tuple):
                continue
            now = self._now(owner, before)
            if isinstance(owner, (list, deque)) and len(now) != len(before):
                continue
            for key in {**before, **now}:
                was, is_ = before.get(key, MISSING), now.get(key, MISSING)
                if was is not is_ and (_has_tensors(was) or _has_tensors(is_)):
                    found.append((owner, key, was, is_))
        self._changed = [(owner, key, was) for owner, key, was, _ in found]
        replaced = {(id(owner), key) for owner, key, *_ in found}
        changes = []
        for owner, key, was, is_ in found:
            if self._is_root(owner):
                changes.append(Change(Place(owner, key), was, is_))
                continue
            ways = [way for way in self.of(owner) or () if not _passes(way, replaced)]
            if ways:
                step = key if isinstance(owner, _BUILTIN) else Name(key)
                changes.append(Change(ways[0]._replace(steps=(*ways[0].steps, step)), was, is_))
        return changes

    def _now(self, owner: Any, before: dict[Any, Any]) -> dict[Any, Any]:
        if id(owner) in self._globals:
            return {name: owner[name] for name in self._globals[id(owner)] if name in owner}
        return _items(owner)

    def restore(self) -> None:
        """Undo the changes."""
        for owner, key, was in self._changed:
            _put(owner, key, was)

    def undo(self) -> None:
        """Restore all contents, also those without tensors."""
        for owner, before in self._noted.values():
            if isinstance(owner, (list, deque)):
                owner.clear()
                owner.extend(before.values())
            elif not isinstance(owner, tuple):
                now = self._now(owner, before)
                for key in {**before, **now}:
                    if now.get(key, MISSING) is not before.get(key, MISSING):
                        _put(owner, key, before.get(key, MISSING))

    def _is_root(self, owner: Any) -> bool:
        return id(owner) in self._globals or id(owner) in self._roots or not _is_replaceable(owner)

    def tensors(self) -> list[Tensor]:
        """Return all tensors found."""
        held = [value for _, found in self._noted.values() for value in found.values() if isinstance(value, Tensor)]
        return list({id(tensor): tensor for tensor in held}.values())

    def of(self, value: Any, depth: int = 0) -> list[Place] | None:
        """Return the places that held a tensor or container; None if not all of them can be looked up."""
        found: list[Place] = []
        for owner, key in self._parents.get(id(value), ()):
            if self._is_root(owner):
                found.append(Place(owner, key))
                continue
            above = self.of(owner, depth + 1) if depth < _MOST_WAYS else None
            if above is None:
                return None
            step = key if isinstance(owner, _BUILTIN) else Name(key)
            found += [way._replace(steps=(*way.steps, step)) for way in above]
        return found if len(found) <= _MOST_WAYS else None


def _passes(way: Place, replaced: set[tuple[int, Any]]) -> bool:
    """Return whether a way leads through a place that holds something else now."""
    if (id(way.owner), way.key) in replaced:
        return True
    return any(
        (id(way._replace(steps=way.steps[:count]).get()), step) in replaced for count, step in enumerate(way.steps)
    )


def apart(value: Any) -> tuple[Parts, Structure]:
    """Return a value that a place holds, taken apart: containers and objects of the user's classes."""
    parts = Parts(_is_replaceable)
    return parts, parts.add(value)


def _has_tensors(value: Any) -> bool:
    return value is not MISSING and any(isinstance(leaf, Tensor) for leaf in apart(value)[0].leaves)


def _items(value: Any) -> dict[Any, Any]:
    """Return the contents of an object, by name, key or position."""
    if isinstance(value, CellType):
        try:
            return {"cell_contents": value.cell_contents}
        except ValueError:
            return {}
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (list, tuple, deque)):
        return dict(enumerate(value))
    if isinstance(value, type):
        return {name: each for name, each in vars(value).items() if not name.startswith("__")}
    return attributes(value)


def _is_entered(value: Any) -> bool:
    """Return whether an object is searched: containers, objects and classes of the user, and objects with state."""
    if isinstance(value, _BUILTIN):
        return True
    kind = value if isinstance(value, type) else type(value)
    if f"{kind.__module__}.{kind.__name__}" in _HOLDERS:
        return True
    if isinstance(value, (Tensor, ModuleType)) or _is_fixed(kind.__module__):
        return False
    return not is_own(kind.__module__) or (not isinstance(value, type) and str(kind.__module__).startswith(_ENTERED))


def _is_large(value: Any) -> bool:
    return isinstance(value, _BUILTIN) and len(value) > _MOST_ITEMS


def _is_replaceable(value: Any) -> bool:
    """Return whether an object is state itself, so that another one may replace it: no module, variable or class."""
    return not isinstance(value, (Module, CellType, type)) and _is_entered(value)


def _is_fixed(module: object) -> bool:
    return str(module).partition(".")[0] in _FIXED
