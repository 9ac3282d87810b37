"""The files of a download: a folder, or a zip, and the zips that students have handed in.

Nothing is unpacked. A name in a zip only tells whose a file is and never where anything is written. A file is read into
memory, up to a bound; whatever goes wrong then is a fault of this file alone.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from minitorch.errors import CommandError

from ..course.names import visible
from ..limits import MIB

FILES = 100_000  # in one download; 300 students with 3 exercises have some thousand
OWN_FILES = 1000  # in a student's own zip
BYTES = 48 * MIB  # of all that a student hands in together, and what is read in zips; as JSON, up to 24 times that
DEPTH = 20  # folders within each other
CHUNK = 4096  # bytes of compressed data that are unpacked at a time: of bzip2 they can become 90 MB


class FaultError(Exception):
    """A file that cannot be read; the argument is the reason."""


@dataclass(frozen=True)
class Entry:
    """A file of a download.

    Attributes:
        above: the parts of the path of the download.
        parts: those of the path in it.
        open: opens it; may raise anything.
        reason: why it is not opened.
        path: where it is, if it is no member of a zip.
    """

    above: tuple[str, ...]
    parts: tuple[str, ...]
    open: Callable[[], IO[bytes]]
    reason: str = ""
    path: Path | None = None

    def __str__(self) -> str:
        return visible("/".join((*self.above, *self.parts))[-200:])

    def has_suffix(self, suffix: str) -> bool:
        """Whether its name ends like this, in any case."""
        return self.parts[-1].casefold().endswith(suffix)

    def read(self, largest: int) -> bytes:
        """Return its content.

        Raises:
            FaultError: if it is damaged, or larger than `largest` bytes.
        """
        content = bytearray()
        try:
            if not self.reason:
                with self.open() as file:
                    while len(content) <= largest and (more := file.read(CHUNK)):
                        content += more
        except Exception as error:  # zipfile and its decompressors raise a dozen kinds
            raise FaultError(f"it is damaged: {in_words(error)}") from None
        if self.reason or len(content) > largest:
            raise FaultError(self.reason or f"with it, there are more than {BYTES // MIB} MiB")
        return bytes(content)


def in_words(error: Exception) -> str:
    """An exception of a library's in a line."""
    return visible(f"{error}"[:200]) or type(error).__name__


def entries(source: Path, stack: ExitStack) -> Iterator[Entry]:
    """The files of a download, in order; they can be read as long as the stack is open.

    Raises:
        CommandError: if it is neither a folder nor a zip, or larger than any class's work.
    """
    name = source.resolve().name
    if source.is_dir():
        return _in_folder(source, name)
    if not source.is_file():
        raise CommandError(f"there is no folder and no zip {source}")
    try:
        return iter(members(stack.enter_context(source.open("rb")), (name,), FILES))
    except FaultError as error:
        raise CommandError(f"{source}: {error}") from None


def _in_folder(root: Path, name: str) -> Iterator[Entry]:
    closed: list[OSError] = []
    count = 0
    for place, folders, files in os.walk(root, onerror=closed.append):
        here = Path(place).relative_to(root).parts
        links = [each for each in folders if Path(place, each).is_symlink()]
        folders[:] = sorted(folders) if len(here) < DEPTH else []
        count += len(files)
        if count > FILES:
            raise CommandError(f"{root} holds more than {FILES} files: name the folder of the download")
        for each in sorted(links + files):
            path, parts = Path(place, each), (*here, each)
            if not _is_noise(parts):
                reason = "" if path.is_file() and not path.is_symlink() else "it is a link, or no file"
                yield Entry((name,), parts, partial(_opened, path), reason, path)
    for error in closed:
        path = Path(error.filename)
        yield Entry(
            (name,), (*path.relative_to(root).parts, "its files"), partial(_opened, path), f"{error.strerror}", path
        )


def _opened(path: Path) -> IO[bytes]:
    """A file that is no link and no pipe, even if it has become one a moment ago."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags))


def owner_of(path: Path) -> str:
    """The login of a file's owner; empty if there is none, as on Windows."""
    try:
        return path.owner()
    except (KeyError, OSError, NotImplementedError):
        return ""


def _is_noise(parts: tuple[str, ...]) -> bool:
    """Whether programs leave such a file behind; nobody has handed it in."""
    return ".." not in parts and any(part in ("__MACOSX", "__pycache__") or part.startswith(".") for part in parts)


def members(file: IO[bytes], above: tuple[str, ...], most: int) -> list[Entry]:
    """Return the files in a zip, in order; they can be read as long as it is open.

    Raises:
        FaultError: if it cannot be read as a zip, or holds more than `most` files.
    """
    try:
        archive = zipfile.ZipFile(file)
        found = sorted(archive.infolist(), key=lambda member: member.filename)
    except Exception as error:
        raise FaultError(f"it cannot be read as a zip: {in_words(error)}") from None
    if len(found) > most:
        raise FaultError(f"it holds more than {most} files")
    paths = [(member, PurePosixPath(member.filename).parts or ("a file without a name",)) for member in found]
    return [
        Entry(above, parts, partial(archive.open, member), _refused(member))
        for member, parts in paths
        if not member.filename.endswith("/") and not _is_noise(parts)
    ]


def _refused(member: zipfile.ZipInfo) -> str:
    """Why a member is not opened; empty if it is."""
    parts = member.filename.replace("\\", "/").split("/")
    if stat.S_ISLNK(member.external_attr >> 16):
        return "it is a link"
    if not parts[0] or ".." in parts or member.filename[1:2] == ":":
        return "its path leads out of the zip, or is empty"
    return "it is encrypted" if member.flag_bits & 1 else ""
