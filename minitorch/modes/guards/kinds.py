"""Comparison of values, by kind, in one table; and snapshots of values (`Taken`).

A value that was read while a function was traced is compared at every later call. So are its contents where they can
change without replacing the object (the items of a list, the elements of an array, the defaults of a function). A
kind that is not in the table is compared by identity, with a warning.
"""

from __future__ import annotations

import abc
import array
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import logging
import operator
import pathlib
import re
import threading
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...ir import Node
from ...nn.module import Module, Stateful
from ...packages import ENGINE, is_own
from ...tensor import Tensor


class How(enum.Enum):
    """Way of comparing a kind of value."""

    VALUE = "by type and value"
    IDENTITY = "by identity: it does not change, or its values are inputs of the graph"
    ITEMS = "item by item"
    ELEMENTS = "by its bytes"
    PARTS = "by identity, and by the attributes in `_PARTS`"
    OBJECT = "by identity; of its attributes, those that are read are compared"
    UNKNOWN = "by identity, with a warning"


_LOCKS: tuple[type, ...] = (type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Event)
_LOCKS += (threading.Barrier, threading.Semaphore, threading.Thread)
_BUILTIN = types.BuiltinFunctionType
# The first row with a class of the value decides.
_TABLE: tuple[tuple[How, tuple[type, ...]], ...] = (
    (How.VALUE, (bool, int, float, complex, str, bytes, type(None), type(...), range, slice, np.generic, np.dtype)),
    (How.ITEMS, (list, tuple, OrderedDict, dict, set, frozenset, deque, types.MappingProxyType)),
    (How.ELEMENTS, (np.ndarray, bytearray, array.array, memoryview)),
    (How.PARTS, (types.FunctionType, types.MethodType, functools.partial, functools.partialmethod, _BUILTIN)),
    (How.PARTS, (staticmethod, classmethod, property, functools._lru_cache_wrapper, functools.cached_property)),
    (How.OBJECT, (Module, types.SimpleNamespace)),
    (How.IDENTITY, (Tensor, Stateful, type, types.ModuleType, enum.Enum, type(NotImplemented), BaseException)),
    (How.IDENTITY, (types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType)),
    (How.IDENTITY, (types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType)),
    (How.IDENTITY, (types.CodeType, types.GenericAlias, types.UnionType, np.ufunc, re.Pattern, pathlib.PurePath)),
    (How.IDENTITY, (decimal.Decimal, fractions.Fraction, datetime.date, datetime.time, datetime.timedelta)),
    (How.IDENTITY, (logging.Logger, logging.LoggerAdapter, weakref.ReferenceType, *_LOCKS)),
    (How.IDENTITY, (type(vars(abc.ABC)["_abc_impl"]),)),  # the cache of `isinstance`
    (How.IDENTITY, (operator.attrgetter, operator.methodcaller, operator.itemgetter)),
)
_SCHEDULERS = f"{ENGINE}.optim.lr_scheduler"  # objects of the engine that are compared as those of users
_PARTS: dict[type, tuple[str, ...]] = {
    types.FunctionType: ("__defaults__", "__kwdefaults__"),
    types.MethodType: ("__self__", "__func__"),
    functools.partial: ("func", "args", "keywords"),
    functools.partialmethod: ("func", "args", "keywords"),
    _BUILTIN: ("__self__",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget",),
    functools.cached_property: ("func",),
    functools._lru_cache_wrapper: ("__wrapped__",),
}


def kind_of(value: Any) -> How:
    """Return how a value is compared.

    Example:
        >>> kind_of([1]).value, kind_of(iter([1])).value
        ('item by item', 'by identity, with a warning')
    """
    kind: Any = type(value)
    return _how(kind)


@functools.cache
def _how(kind: Any) -> How:
    for how, kinds in _TABLE:
        if issubclass(kind, kinds):
            iterates = how is How.ITEMS and next(vars(base)["__iter__"] for base in kind.__mro__ if base in kinds)
            return How.UNKNOWN if iterates and kind.__iter__ is not iterates else how
    if is_own(kind.__module__) and not kind.__module__.startswith(_SCHEDULERS):
        return How.IDENTITY
    if not _has_hidden_state(kind):
        return How.OBJECT
    if kind.__hash__ not in (None, object.__hash__) and kind.__eq__ is not object.__eq__:
        return How.VALUE  # a class with its own hash is immutable
    return How.IDENTITY if hasattr(kind, "__get__") else How.UNKNOWN  # functions and fields of classes made in C


def _has_hidden_state(kind: type) -> bool:
    """Return whether instances hold more than attributes: a class made in C, or one derived from it."""
    slots = sum(isinstance(value, types.MemberDescriptorType) for base in kind.__mro__ for value in vars(base).values())
    most = object.__basicsize__ + object().__sizeof__() // 2 * (
        2 + slots
    )  # a pointer each, to a dict and weak references
    made_in_c = any(not base.__flags__ & 1 << 9 for base in kind.__mro__ if base is not object)
    return kind is not object and (made_in_c or kind.__basicsize__ > most)


def parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes by which a function, a partial or the like is compared."""
    for kind, names in _PARTS.items():
        if isinstance(value, kind):
            for name in names:
                part = getattr(value, name, None)
                if not (name == "__self__" and isinstance(part, (type(None), types.ModuleType, type))):
                    yield name, part
            return


def items_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a container, named as one writes them; the keys of a dict are among them."""
    if isinstance(value, (dict, types.MappingProxyType)):
        for key, item in _class_of(value).items(value):
            yield "", key
            yield f"[{key!r}]" if kind_of(key) is How.VALUE else "[...]", item
    else:
        is_set = isinstance(value, (set, frozenset))
        yield from (("" if is_set else f"[{place}]", item) for place, item in enumerate(value))


def _class_of(value: Any) -> Any:
    """Return the class whose methods give the items of a dict, whatever its own class overrides."""
    return next(kind for kind in (OrderedDict, dict, types.MappingProxyType) if isinstance(value, kind))


def is_traced(value: Any) -> bool:
    """Return whether a value is a tensor that is being recorded."""
    return isinstance(value, Tensor) and isinstance(value._value, Node)


MOST_ITEMS = 10_000  # of a container, nested ones included; raising it compares larger ones, and slows every call
MOST_BYTES = 1 << 16  # of an array; likewise
_LAYOUT = operator.attrgetter("shape", "dtype", "strides")


class Taken:
    """Snapshot of some values: `of` gives what to compare by `==`.

    Args:
        stands_for: replacements, from the `id` of an object to that of the object it is taken for.

    Attributes:
        iterated: the containers, and views of dicts.
        elements: arrays, with a function that gives their content, and that content.
        too_large: the first container or array that is too large to be compared at every call.
    """

    def __init__(self, stands_for: Mapping[int, int] = types.MappingProxyType({})) -> None:
        self._stands_for = stands_for
        self.iterated: list[Any] = []
        self.elements: list[tuple[Callable[[Any], Any], Any, Any]] = []
        self.too_large: Any = None
        self._known: dict[int, Any] = {}
        self._kept: list[Any] = []
        self._items = 0

    def of(self, value: Any) -> Any:
        """Return a key for a value: equal for values that a graph cannot tell apart."""
        how = kind_of(value)
        if how is How.VALUE:
            return type(value), _exact(value)
        key = id(value)
        if key not in self._known:
            self._known[key] = key
            if not is_traced(value):
                self._kept.append(value)  # so that no other object has its id
            self._known[key] = self._inside(value, how)
        return self._known[key]

    def _inside(self, value: Any, how: How) -> Any:
        if how is How.ITEMS:
            return self._container(value)
        if how is How.ELEMENTS:
            return self._array(value)
        if how is not How.PARTS or isinstance(value, types.FunctionType):
            return self._stands_for.get(id(value), id(value))
        found = list(parts_of(value))
        is_made = isinstance(value, types.MethodType) or (isinstance(value, _BUILTIN) and bool(found))  # as it is read
        return (value.__name__ if is_made else id(value), *[self.of(part) for _, part in found])

    def _container(self, value: Any) -> Any:
        self._items += len(value)
        if self._items > MOST_ITEMS:
            self.too_large = value if self.too_large is None else self.too_large
            return id(value)
        if isinstance(value, (dict, types.MappingProxyType)):
            self.iterated += [value, _class_of(value).values(value)]
        elif not isinstance(value, (tuple, frozenset)):
            self.iterated.append(value)
        items = [self.of(item) for _, item in items_of(value)]
        return type(value), frozenset(items) if isinstance(value, (set, frozenset)) else tuple(items)

    def _array(self, value: Any) -> Any:
        is_array = isinstance(value, np.ndarray)
        if (value.nbytes if is_array else len(value) * getattr(value, "itemsize", 1)) > MOST_BYTES:
            self.too_large = value if self.too_large is None else self.too_large
            return id(value)
        reads = (np.ndarray.tobytes, _LAYOUT) if is_array else (bytes,)
        found = [read(value) for read in reads]
        self.elements += zip(reads, itertools.repeat(value), found)
        return (id(value), *found)


def exact(value: Any) -> Any:
    """Return a hashable value as a key for `==` that tells apart the types of the plain values inside it."""
    if kind_of(value) is How.VALUE:
        return type(value), _exact(value)
    if isinstance(value, (tuple, frozenset)):
        return type(value), (frozenset if isinstance(value, frozenset) else tuple)(map(exact, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if field.compare]
        return value, tuple([exact(getattr(value, name)) for name in fields])
    return type(value), value


def _exact(value: Any) -> Any:
    """Return a plain value as a key for `==`: 0.0 and -0.0 differ, and NaN equals itself."""
    if isinstance(value, np.generic):
        return value.dtype, value.tobytes()
    return repr(value) if isinstance(value, (float, complex, slice, range, np.dtype)) else value
