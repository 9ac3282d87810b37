"""The files of a submission for another machine: those that preflight would open, and no others.

There is no common file system, so their contents travel. A path that is not opened for what it is (a link, a folder,
a file that is too large) travels as a stand-in, on which preflight comes to the same end.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..limits import MIB
from ..submission.preflight import DamagedError, notebooks, read_stripped

BYTES = 64 * MIB
"""Of a submission's notebooks together; raising it lets students send more over the network."""

File = tuple[bytes, bytes | int | None]
"""A path in the folder; its content, or the size of a file that is too large, or None for what is no file."""


class TooMuchError(Exception):
    """A folder with more notebooks than are sent."""


def packed(folder: Path, exercise: str, largest: int) -> list[File]:
    """What has to be sent of a student's folder.

    Args:
        folder: the student's files for the exercise.
        exercise: its name, which its notebook should have.
        largest: number of bytes of the largest notebook that is graded.

    Raises:
        TooMuchError: if none has that name, and the others are more than `BYTES`.
    """
    right = folder / f"{exercise}.ipynb"
    found: list[File] = []
    left = BYTES
    for path in [right] if os.path.lexists(right) else notebooks(folder):
        what = _what(path, largest)
        left -= len(what) if isinstance(what, bytes) else 0
        if left < 0:
            raise TooMuchError(
                f"no {right.name}, and more than {BYTES // MIB} MiB of other notebooks; they are not sent"
            )
        found.append((os.fsencode(path.relative_to(folder)), what))
    return found


def _what(path: Path, largest: int) -> bytes | int | None:
    try:
        return read_stripped(path, largest)
    except DamagedError as damaged:
        return path.lstat().st_size if damaged.incident.kind == "too-large" else None


def unpacked(files: Iterable[File], folder: Path) -> None:
    """Write them into a folder that is there and empty."""
    for name, what in files:
        path = folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if what is None:
            path.mkdir()
        elif isinstance(what, int):
            with path.open("xb") as file:
                file.truncate(what)  # which takes no room
        else:
            path.write_bytes(what)
