"""The notebooks in a download: a folder or a zip of them, in which students may have put zips of their own.

Nothing is unpacked. A name in a zip only tells whose a file is and never where anything is written; a notebook is read
into memory, up to the size that the grader opens. So a zip can neither escape nor fill the disk, and links are not
followed.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ....errors import CommandError
from ..course.names import visible
from ..limits import MIB, Limits
from ..submission.preflight import DamagedError, contents

FILES = 100_000  # in one download; 300 students with 3 exercises have some thousand
BYTES = 4096 * MIB  # of all notebooks in one zip, by its own account, which reading holds it to
DIRECTORY = 32 * MIB  # of a zip's table of contents, which is read as a whole; some 100 bytes for each file
OWN_FILES, OWN_BYTES, OWN_DIRECTORY = 1000, 64 * MIB, MIB  # the same for a student's own zip
DEPTH = 20  # folders within each other


@dataclass(frozen=True)
class Entry:
    """A file of a download.

    Attributes:
        parts: of its path.
        read: returns its content, or raises `DamagedError` if it is damaged or larger than the grader opens; None for a
            file that is not read.
        reason: why it is not read.
        owner: the login of whoever wrote it, if it is a file of this machine.
    """

    parts: tuple[str, ...]
    read: Callable[[], bytes] | None = None
    reason: str = ""
    owner: str = ""

    def __str__(self) -> str:
        return visible("/".join(self.parts))


def entries(source: Path) -> Iterator[Entry]:
    """The files of a download, and of the zips in it; notebooks and time stamps are to be read, at once.

    Raises:
        CommandError: if it is neither a folder nor a zip, or larger than any class's work.
    """
    if source.is_dir():
        yield from _in_folder(source)
        return
    if not source.is_file():
        raise CommandError(f"there is no folder and no zip {source}")
    try:
        with source.open("rb") as file:
            yield from _in_zip(file, (source.name,), FILES, BYTES, DIRECTORY, nested=True)
    except _RefusedError as error:
        raise CommandError(f"{source}: {error}") from None


def is_wanted(name: str) -> bool:
    """Whether a file of this name is read: notebooks, and nbgrader's time stamps."""
    return name.casefold().endswith(".ipynb") or name == "timestamp.txt"


def _is_noise(parts: tuple[str, ...]) -> bool:
    """Files that programs leave behind; nobody has handed them in."""
    return any(part in ("__MACOSX", ".ipynb_checkpoints", "__pycache__") or part.startswith(".") for part in parts)


def _in_folder(root: Path) -> Iterator[Entry]:
    count = 0
    for place, folders, files in os.walk(root):
        here = Path(place).relative_to(root).parts
        folders[:] = sorted(folders) if len(here) < DEPTH else []
        for name in list(folders):
            if Path(place, name).is_symlink():
                folders.remove(name)
                yield Entry((*here, name), reason="it is a link")
        for name in sorted(files):
            count += 1
            if count > FILES:
                raise CommandError(f"{root} holds more than {FILES} files: name the folder of the download")
            parts = (*here, name)
            if not _is_noise(parts):
                yield from _file(Path(place, name), parts)


def _file(path: Path, parts: tuple[str, ...]) -> Iterator[Entry]:
    if is_wanted(parts[-1]):
        yield Entry(parts, lambda: contents(path, Limits().notebook), owner=owner_of(path))
    elif not parts[-1].casefold().endswith(".zip"):
        yield Entry(parts, reason="it is no notebook")
    elif path.is_symlink() or not path.is_file():
        yield Entry(parts, reason="it is a link, or no file")
    else:
        try:
            with path.open("rb") as file:
                yield from _in_zip(file, parts, FILES, BYTES, DIRECTORY, nested=True)
        except (OSError, _RefusedError) as error:
            yield Entry(parts, reason=str(error))


def owner_of(path: Path) -> str:
    """The login of a file's owner; empty if nobody has that number, or logins have none, as on Windows."""
    try:
        import pwd

        return pwd.getpwuid(path.lstat().st_uid).pw_name
    except (ImportError, KeyError, OSError):
        return ""


class _RefusedError(Exception):
    """A zip that is not opened, or no zip; its argument is the reason."""


def _in_zip(
    file: io.BufferedIOBase | io.BufferedReader,
    above: tuple[str, ...],
    files: int,
    size: int,
    directory: int,
    nested: bool,
) -> Iterator[Entry]:
    """The entries of a zip. They can be read as long as the generator is not at its end."""
    with _opened(file, directory) as archive:
        members = archive.infolist()
        if len(members) > files:
            raise _RefusedError(f"it holds more than {files} files")
        if sum(member.file_size for member in members if is_wanted(member.filename)) > size:
            raise _RefusedError(f"its notebooks are larger than {size // MIB} MiB")
        for member in sorted(members, key=lambda member: member.filename):
            parts = (*above, *PurePosixPath(member.filename).parts)
            if member.is_dir() or (_is_noise(parts[len(above) :]) and ".." not in parts):
                continue
            if reason := _refused(member):
                yield Entry(parts, reason=reason)
            elif is_wanted(parts[-1]):
                yield Entry(parts, _reader(archive, member))
            elif parts[-1].casefold().endswith(".zip") and nested:
                yield from _own_zip(archive, member, parts)
            else:
                yield Entry(parts, reason="it is no notebook")


def _own_zip(archive: zipfile.ZipFile, member: zipfile.ZipInfo, parts: tuple[str, ...]) -> Iterator[Entry]:
    """The entries of a zip that a student has handed in."""
    try:
        if member.file_size > OWN_BYTES:
            raise _RefusedError(f"the zip is larger than {OWN_BYTES // MIB} MiB")
        content = io.BytesIO(_reader(archive, member, OWN_BYTES)())
        yield from _in_zip(content, parts, OWN_FILES, OWN_BYTES, OWN_DIRECTORY, nested=False)
    except (_RefusedError, DamagedError) as error:
        yield Entry(parts, reason=str(error) if isinstance(error, _RefusedError) else error.incident.text)


def _opened(file: io.BufferedIOBase | io.BufferedReader, directory: int) -> zipfile.ZipFile:
    """A zip whose table of contents is small enough to be read."""
    end = file.seek(0, io.SEEK_END)
    file.seek(max(0, end - 65_557))  # the record at the end has 22 bytes, and a comment of at most 65,535
    _, end_of_zip, record = file.read().rpartition(b"PK\x05\x06")
    if not end_of_zip:
        raise _RefusedError("it is no zip, or not all of one")
    size = int.from_bytes(record[8:12], "little")
    if size == 0xFFFFFFFF:
        raise _RefusedError("it is in the form for more than 4 GB; unpack it and name the folder")
    if size > directory:
        raise _RefusedError("it holds too many files")
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise _RefusedError(f"it cannot be read as a zip ({error})") from None


def _refused(member: zipfile.ZipInfo) -> str | None:
    name = member.filename
    if stat.S_ISLNK(member.external_attr >> 16):
        return "it is a link"
    if name.startswith(("/", "\\")) or ".." in PurePosixPath(name.replace("\\", "/")).parts or name[1:2] == ":":
        return "its path leads out of the zip"
    if member.flag_bits & 1:
        return "it is encrypted"
    return None


def _reader(archive: zipfile.ZipFile, member: zipfile.ZipInfo, largest: int | None = None) -> Callable[[], bytes]:
    largest = Limits().notebook if largest is None else largest

    def read() -> bytes:
        try:
            with archive.open(member) as file:
                content = file.read(largest + 1)
        except (
            zipfile.BadZipFile,
            zlib.error,
            OSError,
            EOFError,
            NotImplementedError,
            RuntimeError,
            ValueError,
        ) as error:
            raise DamagedError("not-json", f"the zip is damaged here: {error}"[:200]) from None
        if len(content) > largest:
            raise DamagedError("too-large", f"more than {largest / 1e6:.1f} MB")
        return content

    return read
