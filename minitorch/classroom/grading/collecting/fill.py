"""A student's folder in `submitted/`, made to hold one attempt and nothing else that would be graded."""

from __future__ import annotations

import os
from pathlib import Path

from ..course.private import folder as make_folder
from .attempts import Attempt, notebooks_in
from .platforms import STAMP


def fill(folder: Path, source: Path, attempt: Attempt) -> bool:
    """Make the notebooks of a folder, and its time as nbgrader writes it, those of an attempt.

    Args:
        folder: the student's, for an exercise.
        source: that of the attempt.
        attempt: what is known of it.

    Returns:
        Whether anything changed.
    """
    wanted = {path.name: path.read_bytes() for path in notebooks_in(source)}
    if attempt.first is not None:
        wanted[STAMP] = f"{attempt.first:%Y-%m-%d %H:%M:%S} UTC".encode()
    changed = not folder.is_dir()
    make_folder(folder)
    for name, content in wanted.items():
        path = folder / name
        if path.is_symlink() or not path.is_file() or path.read_bytes() != content:
            unfinished = folder / f".{name}.part"
            unfinished.write_bytes(content)
            os.replace(unfinished, path)
            changed = True
    for path in (*folder.glob("*.ipynb"), folder / STAMP):
        if path.name not in wanted and (path.is_symlink() or path.is_file()):
            path.unlink()
            changed = True
    return changed
