"""What PyTorch answers, in `tests/recorded/`, so that tests compare with it where it is not installed.

The files `test_torch_….py` compare the records with the installed PyTorch, and write them again as scripts.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "recorded"


def read(name: str) -> dict[str, Any]:
    """A record by its name."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def write(name: str, rows: Mapping[str, Any]) -> None:
    """Write a record, with a line for each row."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in rows.items()]
    (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
