"""Before a check: a look at what student code has changed in the drivers, which then are loaded from the image again.

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

ROOM = "minitorch_grading"
HARNESS = f"{ROOM}.harness"
OWN_HARNESS = "harness"  # beside an exercise's own checks
USED = ("isinstance", "type", "len", "sum", "all", "any", "zip", "map", "getattr", "AssertionError", "__import__")
MOST = 20  # changes that are named


def codes(holder: object, path: str) -> dict[str, CodeType]:
    """The code of all functions in a module, its classes and its drivers, by name."""
    found: dict[str, CodeType] = {}
    for name, value in list(vars(holder).items()):
        inner = f"{path}.{name}"
        if isinstance(value, FunctionType):
            found[inner] = value.__code__
        elif (isinstance(value, type) and value.__module__ == path) or type(value).__name__ == "Driver":
            found.update(codes(value, inner))
    return found


class Renewal:
    """The checks as they were loaded first.

    Args:
        shell: in which they are used.
        checks: the name of their module.
    """

    def __init__(self, shell: Any, checks: str) -> None:
        self._shell, self._name = shell, checks
        self._checks = importlib.import_module(checks)
        self._codes = self._codes_now()
        self.rest()

    def rest(self) -> None:
        """From now on, until `renew`, a check that a cell calls is given no case, and ends: it is not graded there."""
        importlib.import_module(HARNESS).answer_grader(lambda message: {"case": None})

    def renew(self, send: Callable[[object], Any]) -> list[str]:
        """Put the checks where the notebook has them, loaded again if they were changed, connected with the grader.

        Returns:
            What was changed, by name.
        """
        changes = [f"built-in {name}" for name in USED if isinstance(getattr(builtins, name, None), FunctionType)]
        if self._shell.ast_transformers:
            self._shell.ast_transformers.clear()
            changes.append("how cells are compiled")
        now = self._codes_now()
        replaced = sorted(path for path, code in self._codes.items() if code is not now.get(path))
        if replaced or sys.modules.get(self._name) is not self._checks:
            loaded = self._loaded()
            for name, module in list(sys.modules.items()):  # also under their public names
                if name in loaded or getattr(module, "__name__", None) in loaded:
                    del sys.modules[name]
            self._checks = importlib.import_module(self._name)
            self._codes = self._codes_now()
        self._shell.user_ns[self._name.rpartition(".")[2]] = self._checks
        importlib.import_module(HARNESS).answer_grader(send)
        return (changes + replaced)[:MOST]

    def _loaded(self) -> list[str]:
        """The modules of the drivers that are loaded."""
        return [name for name in sys.modules if name.startswith(ROOM) or name in (self._name, OWN_HARNESS)]

    def _codes_now(self) -> dict[str, CodeType]:
        """The code of all their functions, by name."""
        return {path: code for name in self._loaded() for path, code in codes(sys.modules[name], name).items()}
