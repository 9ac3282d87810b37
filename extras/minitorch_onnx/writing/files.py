"""Models as files, the arrays of large ones in a second file: replaced in one step."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

from minitorch_checkpoints import publishing

from ..common import package

SMALL = 1 << 10  # bytes of an array that stays in the model, whose data lies in another file
ALIGNMENT = 1 << 12  # bytes: arrays begin at pages, so that they can be mapped into memory


def write(model: Any, path: str | os.PathLike[str], external_data: bool | int) -> None:
    """Write a model to a file, and its large arrays to another one beside it, if asked for.

    The model of before, with its arrays, is replaced in one step. So the new arrays have another file's name than its
    own, ``path + ".data"`` or ``path + ".1.data"``, and those of before go last.

    Args:
        external_data: True or False, or the bytes from which on the arrays of a model have a file of their own.
    """
    place = Path(path)
    if not place.name:
        raise ValueError(f"path={os.fspath(path)!r} names no file")
    total = sum(len(each.raw_data) for each in model.graph.initializer)
    apart = total >= external_data if type(external_data) is int else bool(external_data)
    names = [f"{place.name}.data", f"{place.name}.1.data"]
    with publishing.beside(place.parent, lambda name: name in (place.name, *names)) as new:
        used = [name for name in names if _refers(place, name)]
        content = model.SerializeToString() if not apart else None
        if content is None:
            data = next((name for name in names if name not in used), names[0])
            content = _apart(model, new / data)
            publishing.publish(new / data, place.parent)
        publishing.write(new / place.name, [content])
        publishing.publish(new / place.name, place.parent)
        for name in used:
            Path(place.parent, name).unlink(missing_ok=True)


def _refers(place: Path, name: str) -> bool:
    """Whether the model of a file, if there is one, has arrays in a file of this name."""
    if not place.is_file() or not place.stat().st_size:
        return False
    with open(place, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(name.encode()) >= 0


def _apart(model: Any, file: Path) -> bytes:
    """Write the large arrays of a model to a file; the bytes of the model that refers to it."""
    onnx = package()
    large = [each for each in model.graph.initializer if len(each.raw_data) >= SMALL]
    arrays = [each.raw_data for each in large]
    chunks, end = [], 0
    try:
        for tensor, array in zip(large, arrays, strict=True):
            chunks += [b"\0" * (-end % ALIGNMENT), array]
            begin = end + len(chunks[-2])
            end = begin + len(array)
            onnx.external_data_helper.set_external_data(tensor, file.name, begin, len(array))
            tensor.ClearField("raw_data")
        found: bytes = model.SerializeToString()
    finally:
        for tensor, array in zip(large, arrays, strict=True):  # the model that the caller has keeps its arrays
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = array
    publishing.write(file, chunks)
    return found
