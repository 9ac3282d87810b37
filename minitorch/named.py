"""Constants of modules, to which copies and pickles refer by name: element types, primitives, passes, rows."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def by_name(value: object, *modules: str) -> tuple[Any, ...] | None:
    """Return the result of `__reduce__` for a constant of a module, or of a dict in one; None for any other object."""
    for module in modules:
        for name, found in vars(import_module(module)).items():
            if found is value:
                return _constant, (module, name)
            if isinstance(found, dict) and not name.startswith("__"):
                for key, row in found.items():
                    if row is value:
                        return _constant, (module, name, key)
    return None


def _constant(module: str, name: str, *keys: Any) -> Any:
    found = getattr(import_module(module), name)
    for key in keys:
        found = found[key]
    return found
