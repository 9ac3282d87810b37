"""A student's folder in `submitted/`, made to hold one attempt and nothing else that would be graded."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from ..course.private import folder as make_folder
from ..course.private import replace as write
from .attempts import Attempt

STAMP = "timestamp.txt"


def notebooks_in(folder: Path) -> list[Path]:
    """The notebooks in a folder that are files; none if it is not there."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.glob("*.ipynb") if path.is_file() and not path.is_symlink())


def fill(folder: Path, source: Path, attempt: Attempt) -> bool:
    """Make the notebooks of a folder those of an attempt, each as a whole. Returns whether anything changed."""
    wanted = {path.name: path.read_bytes() for path in source.glob("*.ipynb")}
    changed = not folder.is_dir()
    make_folder(folder)
    for name, content in wanted.items():
        path = folder / name
        if path.is_symlink() or not path.is_file() or path.read_bytes() != content:
            _write(path, content)
            changed = True
    for path in folder.glob("*.ipynb"):
        if path.name not in wanted and not path.is_dir():
            path.unlink()
            changed = True
    return _stamp(folder / STAMP, attempt.first) or changed


def _stamp(path: Path, when: datetime | None) -> bool:
    """Write when it was handed in, as nbgrader does; nothing if nobody knows."""
    text = "" if when is None else f"{when:%Y-%m-%d %H:%M:%S} UTC"
    before = path.read_text(encoding="utf-8", errors="replace") if path.is_file() and not path.is_symlink() else ""
    if text == before:
        return False
    if text:
        write(path, text)
    else:
        path.unlink()
    return True


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)
