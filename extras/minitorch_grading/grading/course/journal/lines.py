"""Append-only files of JSON, a value on each line: the journal and the history.

Half a line at the end is that of a program that was killed, and does not count. A line that is damaged is passed over
and named: it concerns one submission, and the others go on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..names import visible
from ..private import opened


class Lines:
    """The lines of a file; `notes` names those that are damaged.

    Args:
        path: the file, which need not be there.
        take: is given the value of each line; a `ValueError`, `KeyError` or `TypeError` says that it is damaged.

    Raises:
        OSError: if the file is there and cannot be read.
    """

    def __init__(self, path: Path, take: Callable[[dict[str, Any]], None]) -> None:
        self.path = path
        self.notes: list[str] = []
        content = path.read_bytes() if path.exists() else b""
        self._whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[: self._whole].split(b"\n")[:-1], 1):
            try:
                take(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                said = visible(line[:40].decode(errors="replace"))
                self.notes.append(
                    f"Line {number} of {path} is damaged and was passed over (`{said}`). Remove it, or put the file "
                    "back from a copy."
                )

    def add(self, values: Iterable[dict[str, Any]]) -> None:
        """Write values down; when this returns they are on the disk."""
        text = "".join(f"{json.dumps(value)}\n" for value in values).encode()
        if not text:
            return
        with os.fdopen(opened(self.path, os.O_RDWR), "r+b") as file:
            file.seek(self._whole)
            file.truncate()
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            self._whole = file.tell()
