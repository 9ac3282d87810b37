"""Before each check: the checks as they are on the disk, and a look at what student code has changed.

It protects no points, since judging is done outside: it keeps a careless or curious change from spoiling the honest
answers, and names it.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

ROOM = "minitorch.classroom"
CHECKS = f"{ROOM}.checks"
USED = ("isinstance", "type", "len", "sum", "all", "any", "zip", "map", "getattr", "AssertionError", "__import__")
MOST = 20  # changes that are named


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
    modules = [(name, module) for name, module in list(sys.modules.items()) if name.startswith(CHECKS)]
    return {path: code for name, module in modules for path, code in codes(module, name).items()}


def renew(shell: Any, ask: Callable[[object], Any]) -> list[str]:
    """Load the checks again, put them where the notebook has them, and have them ask the grader for inputs.

    Returns:
        What was different from what is on the disk, by name.
    """
    changes = [f"built-in {name}" for name in USED if isinstance(getattr(builtins, name, None), FunctionType)]
    if shell.ast_transformers:
        shell.ast_transformers.clear()
        changes.append("how cells are compiled")
    before = of_checks()
    for name in [name for name in sys.modules if name.startswith(ROOM)]:
        del sys.modules[name]
    checks = importlib.import_module(CHECKS)
    after = of_checks()
    shell.user_ns["checks"] = checks
    checks.ask_grader(ask)
    return (changes + sorted(path for path in before if before[path] != after.get(path)))[:MOST]
