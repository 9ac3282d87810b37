"""Nested structures (pytrees): containers and dataclasses, flattened into leaves and unflattened.

Any value but a container is a leaf. A `Structure` is the container without its leaves; it is hashable, so that `jit`
can compare two calls by it. A container that occurs twice is noted once, so that sharing is kept. `_ROWS` is the table
of the kinds of containers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .packages import is_own

Built = tuple[Any, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Structure:
    """A nested container without its leaves.

    Attributes:
        kind: the class, None for a leaf, or `Again`.
        keys: of a dict, the keys; of `Again`, the number of the container that occurs again.
        children: the structures of the items, then of the attributes.
        names: of the attributes, of a container that has some.
        extra: further facts of the kind, and the exact types of keys that may be equal to others.
    """

    kind: Any
    keys: tuple[Any, ...]
    children: tuple[Structure, ...]
    names: tuple[str, ...] = ()
    extra: tuple[Any, ...] = ()


class Again:
    """The kind of a container that occurs again."""


LEAF = Structure(None, (), ())


class Row(NamedTuple):
    """A kind of container.

    Attributes:
        take: gives the keys, the items, and further facts.
        make: makes an empty one of a class; None for immutable kinds.
        fill: replaces the content, given the keys, the items and the facts; for immutable kinds, makes one of a class.
    """

    take: Callable[[Any], tuple[Built, Iterable[Any], Built]]
    make: Callable[[Any], Any] | None
    fill: Callable[[Any, Built, list[Any], Built], Any]


def exact(key: Any) -> Any:
    """Return a key for a plain value that differs from those of other types or signs."""
    if type(key) is tuple:
        return tuple([exact(item) for item in key])
    return type(key), repr(key) if isinstance(key, (float, complex)) else key


def _take_dict(value: Any) -> tuple[Built, Iterable[Any], Built]:
    keys = tuple(value)
    facts = () if all(type(key) is str for key in keys) else tuple([exact(key) for key in keys])
    return keys, value.values(), facts


def _fill_dict(base: Any, target: Any, keys: Built, items: list[Any], facts: Built) -> None:
    base.clear(target)
    for key, item in zip(keys, items, strict=True):
        base.__setitem__(target, key, item)


def _fill_default(target: Any, keys: Built, items: list[Any], facts: Built) -> None:
    _fill_dict(dict, target, keys, items, facts)
    target.default_factory = facts[0]


def _fill_set(target: Any, keys: Built, items: list[Any], facts: Built) -> None:
    set.clear(target)
    set.update(target, items)


_ROWS: dict[type, Row] = {  # the first base of a value's class counts
    tuple: Row(lambda value: ((), value, ()), None, lambda kind, keys, items, facts: tuple.__new__(kind, items)),
    frozenset: Row(lambda value: ((), value, ()), None, lambda kind, keys, items, facts: kind(items)),
    list: Row(
        lambda value: ((), value, ()),
        list.__new__,
        lambda target, keys, items, facts: list.__setitem__(target, slice(None), items),
    ),
    defaultdict: Row(
        lambda value: (tuple(value), value.values(), (value.default_factory, *map(exact, value))),
        defaultdict.__new__,
        _fill_default,
    ),
    OrderedDict: Row(_take_dict, OrderedDict.__new__, functools.partial(_fill_dict, OrderedDict)),
    dict: Row(_take_dict, dict.__new__, functools.partial(_fill_dict, dict)),
    set: Row(lambda value: ((), value, ()), set.__new__, _fill_set),
    deque: Row(
        lambda value: ((), value, (value.maxlen,)),
        deque.__new__,
        lambda target, keys, items, facts: deque.__init__(target, items, facts[0]),
    ),
    types.SimpleNamespace: Row(
        lambda value: ((), (), ()), types.SimpleNamespace.__new__, lambda target, keys, items, facts: None
    ),
}
_OBJECT = Row(lambda value: ((), (), ()), object.__new__, lambda target, keys, items, facts: None)
_EXACT = frozenset(_ROWS) - {types.SimpleNamespace}
_IN_C = types.GetSetDescriptorType, types.MemberDescriptorType  # made by the interpreter, or by a class in C
_ITERATORS: dict[type, Callable[[list[Any]], Any]] = {  # used up when flattened
    **dict.fromkeys((map, filter, zip, enumerate, reversed, type(iter([])), type(iter(())), type(iter({}))), iter),
    types.GeneratorType: lambda items: (item for item in items),
    type({}.keys()): lambda items: dict.fromkeys(items).keys(),
    type({}.values()): lambda items: dict(enumerate(items)).values(),
    type({}.items()): lambda items: dict(items).items(),
}


@functools.lru_cache(maxsize=4096)
def row_of(kind: Any, objects: bool = False) -> Row | None:
    """Return the row of a class, if its instances are containers.

    Args:
        objects: whether plain objects of the user's classes count.
    """
    for base in _ROWS:
        if issubclass(kind, base) and (base is not tuple or kind is tuple or hasattr(kind, "_fields")):
            return _ROWS[base]
    if is_own(kind.__module__) or any("__call__" in vars(ancestor) for ancestor in kind.__mro__):
        return None
    if dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__"):
        return _OBJECT
    own = all(getattr(kind, name) is getattr(object, name) for name in ("__reduce_ex__", "__reduce__"))
    own = own and not hasattr(kind, "__setstate__") and not issubclass(kind, (types.ModuleType, type, BaseException))
    return _OBJECT if objects and own and getattr(kind, "__flags__", 0) & 1 << 9 else None  # a class of Python


@functools.lru_cache(maxsize=4096)
def _slots(kind: Any) -> dict[str, Any]:
    """Return the descriptors of a class's slots by attribute name: `_A__x` for `__x` of a class `A`."""
    slotted = [vars(ancestor) for ancestor in kind.__mro__ if "__slots__" in vars(ancestor)]
    return {
        name: slot
        for space in reversed(slotted)
        for name, slot in space.items()
        if isinstance(slot, types.MemberDescriptorType)
    }


def _own(value: Any) -> dict[str, Any]:
    """Return the dict of an object's attributes, even if its class overrides `__dict__`."""
    spaces = (vars(ancestor).get("__dict__") for ancestor in type(value).__mro__)
    space = next((each for each in spaces if isinstance(each, _IN_C)), None)
    return {} if space is None else space.__get__(value)


def attributes(value: Any) -> dict[str, Any]:
    """Return an object's attributes by name, slots first. No code of its class runs: no property, no `__getattr__`.

    Example:
        >>> class Lazy:
        ...     __slots__ = ("known", "computed")
        ...
        ...     def __getattr__(self, name):
        ...         raise RuntimeError("too early")
        >>> lazy = Lazy()
        >>> lazy.known = 1
        >>> attributes(lazy)
        {'known': 1}
    """
    kind: Any = type(value)
    if kind in _EXACT:
        return {}
    found = {}
    for name, slot in _slots(kind).items():
        with contextlib.suppress(AttributeError):  # an empty slot
            found[name] = slot.__get__(value)
    return {**found, **_own(value)}


class Parts:
    """The flattening of values, one after the other.

    Args:
        is_inside: whether to flatten a container or another object; by default, all containers.
        items: returns the items of an iterator, which is then flattened.

    Attributes:
        leaves: from left to right.
        containers: the mutable ones, in the order of their occurrence.
    """

    def __init__(
        self, is_inside: Callable[[Any], bool] | None = None, items: Callable[[Any], list[Any]] | None = None
    ) -> None:
        self.leaves: list[Any] = []
        self.containers: list[Any] = []
        self._is_inside, self._items = is_inside, items
        self._known: dict[int, int] = {}

    def note(self, container: Any) -> None:
        """Note a container, so that later occurrences refer to it."""
        self._known[id(container)] = len(self.containers)
        self.containers.append(container)

    def add(self, value: Any) -> Structure:
        """Return the structure of a value."""
        kind: Any = type(value)
        row = row_of(kind, self._is_inside is not None)
        if row is None:
            if self._items is not None and kind in _ITERATORS:
                return Structure(kind, (), tuple([self.add(item) for item in self._items(value)]))
            self.leaves.append(value)
            return LEAF
        if row.make is not None:
            if id(value) in self._known:
                return Structure(Again, (self._known[id(value)],), ())
            if self._is_inside is not None and not self._is_inside(value):
                self.leaves.append(value)
                return LEAF
            self.note(value)
        return self.content(value, row)

    def content(self, value: Any, row: Row | None = None) -> Structure:
        """Return the structure of a container, also if it is known."""
        kind: Any = type(value)
        row = row or row_of(kind, self._is_inside is not None)
        assert row is not None
        keys, items, facts = row.take(value)
        held = attributes(value)
        children = [self.add(item) for item in (*items, *held.values())]
        return Structure(kind, keys, tuple(children), tuple(held), facts)


class Whole:
    """The unflattening of structures, one after the other: the inverse of `Parts`.

    Args:
        leaves: of all structures.
        containers: the known ones.
    """

    def __init__(self, leaves: Iterable[Any], containers: Iterable[Any] = ()) -> None:
        self._leaves = iter(leaves)
        self.containers = list(containers)

    def build(self, structure: Structure) -> Any:
        """Build the next value."""
        kind = structure.kind
        if kind is None:
            return next(self._leaves)
        if kind is Again:
            return self.containers[structure.keys[0]]
        if kind in _ITERATORS:
            return _ITERATORS[kind]([self.build(child) for child in structure.children])
        row = row_of(kind, True)
        assert row is not None
        if row.make is None:
            items = [self.build(child) for child in structure.children]
            return row.fill(kind, structure.keys, items, structure.extra)
        target = row.make(kind)
        self.containers.append(target)
        self.fill(target, structure)
        return target

    def fill(self, target: Any, structure: Structure) -> None:
        """Give a container the next content."""
        row = row_of(structure.kind, True)
        assert row is not None
        items = [self.build(child) for child in structure.children]
        count = len(items) - len(structure.names)
        row.fill(target, structure.keys, items[:count], structure.extra)
        held = dict(zip(structure.names, items[count:], strict=True))
        kind: Any = type(target)
        slots, own = _slots(kind), _own(target)
        for name in attributes(target).keys() - held:
            slots[name].__delete__(target) if name in slots else own.pop(name)
        for name, item in held.items():
            slots[name].__set__(target, item) if name in slots else own.update({name: item})


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """Return the leaves from left to right, and the structure that holds them.

    Example:
        >>> leaves, structure = flatten({"a": 1, "b": (2, [3])})
        >>> leaves, unflatten(structure, [10, 20, 30])
        ([1, 2, 3], {'a': 10, 'b': (20, [30])})
    """
    parts = Parts()
    structure = parts.add(value)
    return parts.leaves, structure


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """Rebuild the container of a structure with other leaves: the inverse of `flatten`."""
    return Whole(leaves).build(structure)


def paths(structure: Structure, prefix: str) -> list[str]:
    """Return a name for each leaf, as written in Python: ``batch['x'][0]``.

    Example:
        >>> paths(flatten({"a": 1, "b": (2, 3)})[1], "batch")
        ["batch['a']", "batch['b'][0]", "batch['b'][1]"]
    """
    if structure.kind is None:
        return [prefix]
    found: list[str] = []
    fields = getattr(structure.kind, "_fields", ())
    count = len(structure.children) - len(structure.names)
    for position, child in enumerate(structure.children):
        if position >= count:
            name = f"{prefix}.{structure.names[position - count]}"
        elif structure.keys:
            name = f"{prefix}[{structure.keys[position]!r}]"
        elif fields:
            name = f"{prefix}.{fields[position]}"
        else:
            name = f"{prefix}[{position}]"
        found += paths(child, name)
    return found
