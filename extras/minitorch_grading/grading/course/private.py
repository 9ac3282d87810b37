"""Files for their owner alone: the journal with its hidden seeds, points, and what students have written.

A file is written as a whole or not at all, and nobody else can read it, even where one that everybody could read was
there before.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

FILE, FOLDER = 0o600, 0o700
OTHERS = 0o077


def replace(path: Path, content: str | bytes) -> None:
    """Write a file as a whole or not at all."""
    folder(path.parent)
    unfinished = path.with_name(f".{path.name}.part")
    with os.fdopen(opened(unfinished, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        file.write(content.encode(errors="replace") if isinstance(content, str) else content)
    os.replace(unfinished, path)


def opened(path: Path, flags: int) -> int:
    """The descriptor of a file that is made if it is not there; in both cases it is its owner's alone."""
    handle = os.open(path, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), FILE)
    try:
        if os.name == "posix" and stat.S_IMODE(os.fstat(handle).st_mode) & OTHERS:
            os.fchmod(handle, FILE)
    except OSError:
        os.close(handle)
        raise
    return handle


def lock(handle: int) -> None:
    """Keep other processes from locking the same file or folder, as long as it is open.

    Raises:
        BlockingIOError: if another one has it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which goes with the process, killed or not


def folder(path: Path) -> None:
    """See that a folder is there; those that are made are their owner's alone."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for each in reversed(missing):
        each.mkdir(mode=FOLDER, exist_ok=True)


def tighten(*paths: Path) -> list[Path]:
    """Take from everybody else the rights to files, and to folders with all that is in them.

    Returns:
        What others can still read, because it belongs to them.
    """
    kept = []
    for path in (each for top in paths if not top.is_symlink() for each in (top, *top.rglob("*"))):  # goes into no link
        try:
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & OTHERS:
                path.chmod(stat.S_IMODE(mode) & ~OTHERS)
        except FileNotFoundError:
            continue
        except OSError:
            kept.append(path)
    return kept
