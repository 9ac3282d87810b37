"""Which module each operation of a recording belongs to: noted by hooks while a module is traced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..interpreters import current_staging
from ..ir import Node
from ..nn import Module

Scope = tuple[str, str]  # an id for the call, and what was called


@contextmanager
def scopes_of(module: Module) -> Iterator[dict[Node, Scope]]:
    """Note what the modules below this one record inside the `with` block, each operation with the innermost of them.

    A module that is called twice has two scopes.
    """
    found: dict[Node, Scope] = {}
    begins: list[int] = []
    calls = 0

    def enter(called: Module, args: Any) -> None:
        staging = current_staging()
        begins.append(0 if staging is None else len(staging.nodes))

    def leave(name: str) -> Any:
        def done(called: Module, args: Any, result: Any) -> None:
            nonlocal calls
            begin, staging = begins.pop(), current_staging()
            calls += 1
            for node in () if staging is None else staging.nodes[begin:]:
                found.setdefault(node, (f"m{calls}", f"{name} · {type(called).__name__}"))

        return done

    handles = []
    for name, child in module.named_modules():
        if name:  # what belongs to none of its parts stands outside
            handles += [child.register_forward_pre_hook(enter), child.register_forward_hook(leave(name))]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
