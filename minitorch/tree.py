"""Nested structures (pytrees): tuples, lists, dicts and named tuples, flattened into leaves and unflattened.

What is not a container is a leaf. A `Structure` is what remains without the leaves; it is hashable, so that `jit` can
tell by it whether two calls are alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Structure:
    """A nested container without its leaves: the kind, the keys of a dict, and the structures inside."""

    kind: Any  # tuple, list, dict, a named tuple's class, or None for a leaf
    keys: tuple[Any, ...]
    children: tuple[Structure, ...]


LEAF = Structure(None, (), ())


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """The leaves from left to right, and the structure that holds them.

    Example:
        >>> leaves, structure = flatten({"a": 1, "b": (2, [3])})
        >>> leaves, unflatten(structure, [10, 20, 30])
        ([1, 2, 3], {'a': 10, 'b': (20, [30])})
    """
    leaves: list[Any] = []
    return leaves, _take_apart(value, leaves)


def _take_apart(value: Any, leaves: list[Any]) -> Structure:
    kind = type(value)
    if kind is tuple or kind is list:
        return Structure(kind, (), tuple([_take_apart(item, leaves) for item in value]))
    if kind is dict:
        return Structure(dict, tuple(value), tuple([_take_apart(item, leaves) for item in value.values()]))
    if _is_namedtuple(value):
        return Structure(kind, (), tuple([_take_apart(item, leaves) for item in value]))
    leaves.append(value)
    return LEAF


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The inverse of `flatten`, with other leaves."""
    return _put_together(structure, iter(leaves))


def _put_together(structure: Structure, leaves: Iterator[Any]) -> Any:
    if structure.kind is None:
        return next(leaves)
    items = [_put_together(child, leaves) for child in structure.children]
    if structure.kind is dict:
        return dict(zip(structure.keys, items, strict=True))
    if structure.kind in (tuple, list):
        return structure.kind(items)
    return structure.kind(*items)


def paths(structure: Structure, prefix: str) -> list[str]:
    """A name for each leaf, as one would write it: ``batch['x'][0]``.

    Example:
        >>> paths(flatten({"a": 1, "b": (2, 3)})[1], "batch")
        ["batch['a']", "batch['b'][0]", "batch['b'][1]"]
    """
    if structure.kind is None:
        return [prefix]
    found: list[str] = []
    for position, child in enumerate(structure.children):
        if structure.kind is dict:
            name = f"{prefix}[{structure.keys[position]!r}]"
        elif structure.kind in (tuple, list):
            name = f"{prefix}[{position}]"
        else:
            fields: Any = structure.kind
            name = f"{prefix}.{fields._fields[position]}"
        found += paths(child, name)
    return found
