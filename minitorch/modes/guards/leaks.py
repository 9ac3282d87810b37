"""Leaked tracers: traced tensors that are still referenced from outside when their trace is over.

A trace that ends warns of them.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from types import CellType, FrameType
from typing import Any

from ...errors import compose
from ...interpreters import made_by
from ...ir import Node, warn_user
from ...tensor import TapeEntry, Tensor, View
from ...tree import attributes


def warn_of_leaks(made: Sequence[weakref.ref[Tensor]], name: str) -> bool:
    """Warn of the first traced tensor that is still referenced; return whether there was one."""
    found = leak(made)
    if found is None:
        return False
    holder, tensor = found
    warn_user(
        compose(
            "MT105",
            f"{name} stores a traced value {tensor.spec} outside of itself, in {holder}",
            where=f"the value is {made_by(tensor._value)}",
            why="the function runs once, while it is traced; later calls run the graph, and store nothing",
            fix="return the value, in a tuple, list or dict if there are several, and store the result of the call",
        )
    )
    return True


def leak(made: Sequence[weakref.ref[Tensor]]) -> tuple[str, Tensor] | None:
    """Return the first traced tensor that is still referenced, and its holder, as text."""
    if not any(reference() is not None for reference in made):
        return None
    gc.collect()
    alive = [reference() for reference in made]
    held = [tensor for tensor in alive if tensor is not None and isinstance(tensor._value, Node)]
    del alive
    ours = {id(held), *map(id, held)}
    found = [(holder, tensor) for tensor in held if (holder := _holder(tensor, ours))]
    return next((pair for pair in found if pair[0] != _ENCLOSING), found[0]) if found else None


_ENCLOSING = "a variable of an enclosing function"  # or of a gradient rule, which a stored result references


def _holder(tensor: Tensor, ours: set[int]) -> str:
    """Return the object of the user's program that references a tensor, as text; nothing for the tape and views."""
    inside = {id(tensor), *ours}
    for holder in gc.get_referrers(tensor):
        if id(holder) in ours or isinstance(holder, (FrameType, TapeEntry, View, Tensor)):
            continue
        if isinstance(holder, tuple) and any(isinstance(at, TapeEntry) for at in gc.get_referrers(holder)):
            continue
        return _described(holder, tensor, inside)
    return ""


def _described(holder: Any, value: Any, inside: set[int]) -> str:
    if isinstance(holder, dict):
        keys = [key for key, item in holder.items() if item is value]
        if "__builtins__" in holder and "__name__" in holder:
            return f"the global variable `{keys[0]}`"
        for owner in gc.get_referrers(holder):
            if attributes(owner).get(keys[0]) is value:
                return f"the attribute `{keys[0]}` of a {type(owner).__name__}"
        return f"a dict, under {keys[0]!r}"
    if isinstance(holder, (list, set, tuple)):
        return f"a {type(holder).__name__}{_name_of(holder, inside)}"
    if isinstance(holder, CellType):
        return _ENCLOSING
    names = [name for name, item in attributes(holder).items() if item is value]
    return f"the attribute `{names[0]}` of a {type(holder).__name__}" if names else f"a {type(holder).__name__}"


def _name_of(holder: Any, inside: set[int]) -> str:
    """Return the name of a container that is a global variable or an attribute."""
    for owner in gc.get_referrers(holder):
        space = owner if isinstance(owner, dict) else attributes(owner)
        names = [name for name, item in space.items() if item is holder and isinstance(name, str)]
        if id(owner) not in inside and names and not isinstance(owner, FrameType):
            return f", `{names[0]}`"
    return ""
