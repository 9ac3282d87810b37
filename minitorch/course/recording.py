"""`record`: what another program has told once, kept with the command and the versions that it was told by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "records"


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
