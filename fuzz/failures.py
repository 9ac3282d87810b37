"""Errors: which are the engine's own, and which are raw: somebody else's words about something inside the engine."""

from __future__ import annotations

import linecache
import traceback
from pathlib import Path

import minitorch as mt
from minitorch.errors import MinitorchError

PACKAGE = str(Path(mt.__file__).parent)
NEVER_OWN = (
    KeyError,
    ZeroDivisionError,
    AttributeError,
    UnboundLocalError,
    AssertionError,
    RecursionError,
    SystemError,
)


def is_raw(error: BaseException) -> bool:
    """Whether an error is not one that minitorch raises on purpose, in its own words.

    Example:
        >>> try:
        ...     mt.ones(2) + mt.ones(3)
        ... except Exception as error:
        ...     is_raw(error)
        False
    """
    if isinstance(error, MinitorchError):
        return False
    if isinstance(error, NEVER_OWN):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return False
    last = frames[-1]
    if not last.filename.startswith(PACKAGE):
        # called with arguments that do not fit the signature, or raised by NumPy or LLVM
        return last.filename != "program.py"
    line = linecache.getline(last.filename, last.lineno or 0).strip()
    return not line.startswith(("raise", "as_int", "return int(", "dim, start, length")) and "raise " not in line


def place_of(error: BaseException) -> str:
    """The file and function of the engine in which an error was raised, for telling errors apart."""
    inside = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(PACKAGE)]
    if not inside:
        return ""
    return f"{Path(inside[-1].filename).relative_to(PACKAGE)}:{inside[-1].name}"
