"""Records: what functions have told once, kept with the command and the versions that they were told by."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..catching import in_cells, wrapped

FOLDER = Path(__file__).parents[1] / "records"
# What functions have printed and returned in this process, by name: what a record is made of.
RAN: dict[str, tuple[str, Any]] = {}


def record(name: str) -> dict[str, Any]:
    """A record, for readers who have not installed what it was made with.

    Args:
        name: of a file in `records`, without its ending.

    Raises:
        FileNotFoundError: if there is no such record.

    Example:
        >>> operators = record("pytorch-operators")
        >>> operators["command"], operators["overloads"] > operators["names"]
        ('python -m tools.operators', True)
    """
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def ran(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, show what it prints and its warnings, and note both with its result in `RAN`.

    Logs, and what it writes to stderr, are left out: they repeat what errors and warnings say.
    """
    printed = io.StringIO()
    logged = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(record=True) as found,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("always")
            value = function(*arguments)
    finally:
        logging.disable(logged)
    told = dict.fromkeys(f"{each.category.__name__}: {str(each.message).strip()}" for each in found)
    text = "\n".join([in_cells(printed.getvalue()).strip("\n"), *(wrapped(in_cells(each)) for each in told)])
    RAN[function.__name__] = text, value
    print(text)
    return value


def recalled(function: Callable[..., Any], title: str, recorded: Path) -> Any:
    """Show what a function printed when it was recorded, and return what it returned.

    Args:
        function: it is not called.
        title: of what is not installed here.
        recorded: the file of the record.

    Raises:
        LookupError: if there is no record of a function of this name.
    """
    kept = json.loads(recorded.read_text(encoding="utf-8"))
    if function.__name__ not in kept["functions"]:
        raise LookupError(f"{title} is not installed, and there is no record of {function.__name__}")
    print(f"── {title} is not installed; recorded with {kept['where']} ──")
    found = kept["functions"][function.__name__]
    print("\n".join(found["output"]))
    return found["value"]
