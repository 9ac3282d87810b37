"""Run inside the kernel before each check: new checks, and a look at what student code has changed.

The text of this file is sent to the kernel and executed there, so it imports nothing of the grader. It protects no
points, since judging is done outside: it keeps a careless or curious change from spoiling the honest answers, and
names it.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

MIME = "application/vnd.minitorch.guard+json"
ROOM = "minitorch.classroom"
USED = ("isinstance", "type", "len", "sum", "all", "any", "zip", "map", "getattr", "AssertionError", "__import__")


def codes(holder: object, path: str) -> dict[str, CodeType]:
    """The code of all functions in a module, its classes and its tasks, by name."""
    found: dict[str, CodeType] = {}
    for name, value in list(vars(holder).items()):
        inner = f"{path}.{name}"
        if isinstance(value, FunctionType):
            found[inner] = value.__code__
        elif (isinstance(value, type) and value.__module__ == path) or type(value).__name__ == "Task":
            found.update(codes(value, inner))
    return found


def of_checks() -> dict[str, CodeType]:
    """The same for all modules of the checks that are loaded."""
    modules = [(name, module) for name, module in list(sys.modules.items()) if name.startswith(f"{ROOM}.checks")]
    return {path: code for name, module in modules for path, code in codes(module, name).items()}


def renew() -> tuple[Any, list[str]]:
    """Load the checks again, from the disk: the module, and what was different from it."""
    before = of_checks()
    for name in [name for name in sys.modules if name.startswith(ROOM)]:
        del sys.modules[name]
    checks = importlib.import_module(f"{ROOM}.checks")
    after = of_checks()
    return checks, sorted(path for path in before if before[path] != after.get(path))


def guard(seeds: Sequence[int]) -> None:
    """Show what was changed, put new checks where the notebook has them, and have them answer for `seeds`."""
    from IPython import get_ipython
    from IPython.display import display

    shell: Any = get_ipython()
    changes = [f"built-in {name}" for name in USED if isinstance(getattr(builtins, name, None), FunctionType)]
    if shell.ast_transformers:
        shell.ast_transformers.clear()
        changes.append("how cells are compiled")
    checks, replaced = renew()
    display({MIME: (changes + replaced)[:20]}, raw=True)  # type: ignore[no-untyped-call]
    shell.user_ns["checks"] = checks
    checks.answer_for(seeds)
