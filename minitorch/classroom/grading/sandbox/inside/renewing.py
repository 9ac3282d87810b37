"""Before each check: a look at what student code has changed in the checks, which are then loaded from the disk again.

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


class Renewal:
    """The checks as they were loaded first.

    Args:
        shell: in which they are used.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._checks = sys.modules.get(CHECKS)
        self._codes = of_checks()

    def renew(self, ask: Callable[[object], Any]) -> list[str]:
        """Put the checks where the notebook has them, loaded again if they were changed, and let them ask the grader.

        Returns:
            What was changed, by name.
        """
        changes = [f"built-in {name}" for name in USED if isinstance(getattr(builtins, name, None), FunctionType)]
        if self._shell.ast_transformers:
            self._shell.ast_transformers.clear()
            changes.append("how cells are compiled")
        now = of_checks()
        replaced = sorted(path for path, code in self._codes.items() if code is not now.get(path))
        if replaced or sys.modules.get(CHECKS) is not self._checks:
            for name in [name for name in sys.modules if name.startswith(ROOM)]:
                del sys.modules[name]
            self._checks = importlib.import_module(CHECKS)
            self._codes = of_checks()
        if self._checks is not None:
            self._shell.user_ns["checks"] = self._checks
            self._checks.ask_grader(ask)
        return (changes + replaced)[:MOST]
