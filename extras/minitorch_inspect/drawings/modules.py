"""Modules in pictures: hooks note the module of each operation while a module is traced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from minitorch.interpreters import current_staging
from minitorch.ir import Node
from minitorch.nn import Module

Scope = tuple[str, str]  # an id for the call, and the name of the module


@contextmanager
def scopes_of(module: Module) -> Iterator[dict[Node, Scope]]:
    """Note the innermost submodule of each operation that is recorded inside the `with` block.

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
        if name:  # operations of no submodule stand outside
            handles += [child.register_forward_pre_hook(enter), child.register_forward_hook(leave(name))]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
