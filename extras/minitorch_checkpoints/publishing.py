"""Files that appear whole or not at all: written in a folder beside, flushed to the disk, then renamed into place.

A rename within one folder is one step (POSIX), so at any time a name stands for a complete file, old or new. Saves of
several threads and processes take turns, where the system has locks of folders: so what a killed save has left is
nobody's, and goes with the next one.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NEW = ".new-"  # what the names of folders begin with, in which files are written before they have their own names


@contextmanager
def beside(folder: Path, is_ours: Callable[[str], bool]) -> Iterator[Path]:
    """A new folder inside of another one, to write files in, and then `publish` them; it goes with the block.

    Nobody else is in such a block for the same folder, where the system can say so.

    Args:
        folder: where the files will be.
        is_ours: whether a file of this name is one that such a block writes: those of killed processes are removed.
    """
    with _alone(folder) as is_alone, tempfile.TemporaryDirectory(dir=folder, prefix=_NEW) as new:
        if is_alone:
            _remove_leftovers(folder, Path(new), is_ours)
        yield Path(new)


def apart(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """A new folder inside of another one, for a process that writes with others: one of them comes `beside` later."""
    return tempfile.TemporaryDirectory(dir=folder, prefix=_NEW)


def write(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file, and wait until the disk has it."""
    with open(path, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def mode_of(path: Path) -> int | None:
    """The permissions of a file; None if it is not there."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


def publish(path: Path, folder: Path, mode: int | None = None) -> None:
    """Move a file into a folder, in place of one of its name.

    Args:
        path: of the file.
        folder: where it will be.
        mode: its permissions; by default those of the file that it replaces.
    """
    mode = mode_of(folder / path.name) if mode is None else mode
    if mode is not None and mode != mode_of(path):
        path.chmod(mode)
    os.replace(path, folder / path.name)
    with suppress(OSError):  # such as on Windows, where a folder cannot be opened
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Wait until nobody else saves to a folder: cleaning up removes what another has written, and not named yet.

    Yields:
        Whether that is certain; without locks, nothing is known of others. The end of a process ends its lock.
    """
    try:
        import fcntl
    except ImportError:  # such as on Windows
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            is_alone = True
        except OSError:  # a file system may have none
            is_alone = False
        yield is_alone
    finally:
        os.close(descriptor)


def _remove_leftovers(folder: Path, own: Path, is_ours: Callable[[str], bool]) -> None:
    """Remove the folders of saves that were killed: of files with our names alone; what else is in one stays."""
    for left in folder.glob(f"{_NEW}*"):
        if left.name == own.name or left.is_symlink() or not left.is_dir():
            continue
        with suppress(OSError):  # somebody's files are in it, or it is somebody's
            for path in left.iterdir():
                if is_ours(path.name) and (path.is_symlink() or path.is_file()):
                    path.unlink()
            left.rmdir()
