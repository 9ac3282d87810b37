"""Lists and dicts that count their changes, as modules do: compiled functions notice that an optimiser has others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ..nn.module import Module

_CHANGES = (
    "__delitem__", "__iadd__", "__ior__", "__setitem__", "append", "clear", "extend", "insert", "pop", "popitem",
    "remove", "setdefault", "update",
)  # fmt: skip


class Members(list[Any]):
    """Groups of an optimiser, or parameters of a group."""


class Entries(dict[str, Any]):
    """State of a parameter."""


class States(defaultdict[Any, Any]):
    """States of all parameters."""


def _counted(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        Module.changes += 1
        return method(self, *args, **kwargs)

    return call


for _kind in (Members, Entries, States):
    for _name in _CHANGES:
        if hasattr(_kind, _name):
            setattr(_kind, _name, _counted(getattr(_kind, _name)))
