"""External data: arrays in files beside the model, named by a path that is never trusted.

Nothing outside the model's folder is read: the path is relative, goes nowhere up, and no part of it is a link. A file
with several names (hard links) may be one of another folder, and is refused, too, as the package `onnx` does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from minitorch_checkpoints import opening

from .limits import refuse, require

Array = np.ndarray[Any, Any]


@dataclass
class Files:
    """What has been read of the files of one model, so that together it is never more than their bytes.

    Attributes:
        folder: the model's; None if the model was not read from a file.
        arrays: by file, first byte, type and count: arrays that lie in one place are one array.
        used: bytes read of each file.
    """

    folder: Path | None
    arrays: dict[tuple[Path, int, str, int], Array] = field(default_factory=dict)
    used: dict[Path, int] = field(default_factory=dict)


def read(files: Files, name: str, entries: Mapping[str, str], dtype: np.dtype[Any], count: int) -> Array:
    """The elements of an array that lie in a file of their own.

    Args:
        files: those of the model.
        name: of the array, for messages.
        entries: what the model says of the place: `location`, `offset` and `length`.
        dtype: the type of the elements, of the machine's byte order.
        count: how many there are.

    Raises:
        OnnxError: for a path that leaves the folder, for a file that is not there or too short, and for arrays that
            share some of their bytes (``MT801``).
    """
    if files.folder is None:
        refuse(f"the array {name!r} lies in another file, and this model was not read from a folder")
    offset, length = _number(name, entries, "offset"), _number(name, entries, "length")
    size, start = count * dtype.itemsize, offset or 0
    text = "the array {!r} takes {} bytes, and its external data announces {}"
    require(length in (None, size), text, name, size, length)
    location = entries.get("location", "")
    try:
        path = _inside(files.folder, name, location)
        if (path, start, dtype.str, count) in files.arrays:
            return files.arrays[path, start, dtype.str, count]
        with opening.regular(path, follow_links=False) as file:
            found = os.fstat(file.fileno())
            if found.st_nlink > 1:
                refuse(f"the external data of {name!r}, {path.name}, is not a file of this folder alone", fix="copy it")
            text = "the array {!r} ends at byte {} of {}, which has {}"
            require(start + size <= found.st_size, text, name, start + size, path.name, found.st_size)
            files.used[path] = files.used.get(path, 0) + size
            text = "the array {!r} has bytes of {} that are another array's, too"
            require(files.used[path] <= found.st_size, text, name, path.name)
            array = np.fromfile(file, dtype.newbyteorder("<"), count, offset=start).astype(dtype, copy=False)
    except (OSError, MemoryError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        refuse(f"the external data of {name!r}, {size} bytes of {location[:100]!r}, cannot be read: {why}")
    files.arrays[path, start, dtype.str, count] = array
    return array


def _inside(folder: Path, name: str, location: str) -> Path:
    """The path of a file in the folder.

    Raises:
        OnnxError: for any other place, and if a part of the path is a link (``MT801``).
    """
    parts = PurePosixPath(location).parts
    is_plain = bool(parts) and not any(part in ("..", ".", "/") or set(part) & set(":\\/\0") for part in parts)
    if not is_plain:
        refuse(
            f"the array {name!r} has its data in {location!r}",
            why="external data lies in the model's own folder, or below it",
        )
    path = folder
    for part in parts:
        path = path / part
        if path.is_symlink():
            refuse(
                f"the external data of {name!r}, {location!r}, goes through a link", fix="copy the file in its place"
            )
    return path


def _number(name: str, entries: Mapping[str, str], key: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        refuse(f"the {key} of the external data of {name!r} is {text[:40]!r}, and not a number of bytes")
    return int(text)
