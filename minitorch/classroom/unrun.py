"""A check that stops because a cell above it did not run: which one, and why. The check's own line says only a name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

EXAMPLE = "example"
"""The tag of a cell that shows what the engine does, and is not run when work is graded: what it uses is not there."""


@dataclass(frozen=True)
class Stopped:
    """A cell that did not come to its end.

    Attributes:
        name: what to call it.
        source: what is in it.
        reason: what stopped it.
    """

    name: str
    source: str
    reason: str


def why_missing(kind: str, text: str, stopped: Iterable[Stopped]) -> str | None:
    """The cause of a check's `NameError`; None for other errors.

    Args:
        kind, text: the error's class and message.
        stopped: the cells before the check that did not come to their end.

    Example:
        >>> cell = Stopped("merge", "def merge(a, b): return a +", "SyntaxError: invalid syntax")
        >>> print(why_missing("NameError", "name 'merge' is not defined", [cell]))
        the cell `merge` above did not run (SyntaxError: invalid syntax), and `merge` is missing: mend and run it first
        >>> print(why_missing("NameError", "name 'cost' is not defined", [cell]))
        no cell above defines `cost` (NameError): has it another name, or was its cell deleted?
    """
    found = re.match(r"name '(\w+)' is not defined", text)
    if kind != "NameError" or found is None:
        return None
    name = found[1]
    for cell in stopped:
        if defines(cell.source, name):
            why = f"the cell `{cell.name}` above did not run ({cell.reason})"
            return f"{why}, and `{name}` is missing: mend and run it first"
    return f"no cell above defines `{name}` (NameError): has it another name, or was its cell deleted?"


def defines(source: str, name: str) -> bool:
    """Whether a cell's source defines a name; it may be a cell that Python cannot read."""
    definition = rf"(?:async\s+)?(?:def|class)\s+{name}\b|{name}\s*[:=]|(?:from|import)\b.*\b{name}\b"
    return re.search(rf"^[ \t]*(?:{definition})", source, re.MULTILINE) is not None
