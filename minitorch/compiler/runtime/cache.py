"""The cache of machine code: on disk for the next process, and in memory for this one.

An entry is a file, named after a digest of all that the code depends on. Only code that is exactly as it was written,
in a folder that only its owner can write to, is run. A disk error costs no more than a slower start.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import struct
import sys
import tempfile
import threading
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from weakref import WeakValueDictionary

import llvmlite

from ..codegen import machine
from ..codegen.host import host

MAGIC = b"minitorch object code 1\n"  # the number is the format's
HEADER = struct.Struct(f"<{len(MAGIC)}s32sQ32s")  # magic, key, length, SHA-256 of the code after it
NAME = re.compile(r"[0-9a-f]{64}\.o(\.[0-9a-z_]+\.tmp)?")  # the cache's own files, which it may remove

LIMIT = 256 << 20  # bytes on disk; raising it keeps more kernels
LOOKS = 1  # of 256 keys: how many have a process look through the folder; fewer exceed the limit by more, seldom by 1%
STALE = 3600  # seconds after which a temporary file is taken for abandoned

OWNED = hasattr(os, "geteuid")  # elsewhere the user's folders are protected by other means


def default_folder() -> Path:
    """Return the folder of entries: ``MINITORCH_CACHE_DIR``, or a folder in the user's cache folder."""
    if chosen := os.environ.get("MINITORCH_CACHE_DIR"):
        return Path(chosen).expanduser()
    home = Path(os.path.expanduser("~"))
    bases = {"darwin": home / "Library" / "Caches", "win32": Path(os.environ.get("LOCALAPPDATA") or home)}
    fallback = bases.get(sys.platform, home / ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or fallback) / "minitorch"


def key(text: str) -> bytes:
    """Return a digest of all that the machine code for `text` depends on."""
    from ... import __version__

    target = host()
    versions = MAGIC, __version__, llvmlite.__version__
    parts = (*versions, target.triple, target.cpu, target.features, machine.CODE_MODEL)
    return hashlib.sha256(f"{parts}\n{text}".encode()).digest()


class DiskCache:
    """The entries in one folder.

    Args:
        folder: made if it is not there, for its owner only. One that another user owns or may write to is not used.
        limit: bytes of all entries; those used longest ago go first. To add them up takes 0.1 s in a full folder, so
            few processes do. Keys are hashes, and some of them have the process that stores them look.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     disk = DiskCache(Path(folder))
        ...     disk.put(bytes(32), b"code")
        ...     disk.get(bytes(32)), disk.clear(), disk.get(bytes(32))
        (b'code', 1, None)
    """

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder, self.limit = folder, limit
        self._lock = threading.Lock()
        self._usable: bool | None = None  # not known yet

    def get(self, key: bytes) -> bytes | None:
        """Return the code under that key, or None unless it is exactly as it was written."""
        if not self._ready(create=False):
            return None
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        code = content[HEADER.size :]
        if content[: HEADER.size] != HEADER.pack(MAGIC, key, len(code), hashlib.sha256(code).digest()):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # "used now", for `_make_room`
        return code

    def put(self, key: bytes, code: bytes) -> None:
        """Keep code under that key; errors are ignored."""
        if not self._ready(create=True):
            return
        header = HEADER.pack(MAGIC, key, len(code), hashlib.sha256(code).digest())
        temporary = None
        try:
            descriptor, temporary = tempfile.mkstemp(prefix=f"{key.hex()}.o.", suffix=".tmp", dir=self.folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(header + code)
            os.replace(temporary, self._path(key))  # atomic: a reader sees the whole file or no file
        except OSError:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            return
        if key[0] < LOOKS:
            self._make_room()

    def clear(self) -> int:
        """Remove all entries; returns their number."""
        files = [file.path for file in self._files()] if self._ready(create=False) else []
        return sum(self._remove(path) for path in files)

    def sizes(self) -> list[int]:
        """Return the bytes of each entry."""
        found = []
        for file in self._files() if self._ready(create=False) else ():
            with contextlib.suppress(OSError):  # another process has removed it
                found.append(file.stat(follow_symlinks=False).st_size)
        return found

    # --- the folder ---

    def _ready(self, create: bool) -> bool:
        """Return whether the folder exists and is private. Warn once if it is not private."""
        with self._lock:
            if self._usable is None:
                try:
                    if create:
                        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                    complaint = _not_private(os.stat(self.folder))
                except OSError:
                    if create:
                        self._usable = False
                    return False
                self._usable = not complaint
                if complaint:
                    warnings.warn(
                        f"compiled code is not kept in {self.folder}, because it {complaint}: "
                        "set MINITORCH_CACHE_DIR to a folder of your own",
                        RuntimeWarning,
                        stacklevel=2,
                    )
            return self._usable

    def _path(self, key: bytes) -> Path:
        return self.folder / f"{key.hex()}.o"

    def _files(self) -> Iterator[os.DirEntry[str]]:
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            yield from (entry for entry in entries if NAME.fullmatch(entry.name))

    def _remove(self, path: str) -> bool:
        try:
            os.unlink(path)
        except OSError:  # another process was faster
            return False
        return True

    # --- entries ---

    def _make_room(self) -> None:
        """Keep to the limit by LRU eviction, down to three quarters of it."""
        found: list[tuple[float, int, str]] = []
        for file in self._files():
            with contextlib.suppress(OSError):
                status = file.stat(follow_symlinks=False)
                if file.name.endswith(".o"):
                    found.append((status.st_mtime, -(-status.st_size // 4096) * 4096, file.path))
                elif status.st_mtime < time.time() - STALE:
                    self._remove(file.path)
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found) if total > self.limit else ():
            if total <= self.limit * 3 // 4:
                break
            self._remove(path)
            total -= size


def _not_private(status: os.stat_result) -> str:
    """Return the fault of a file or folder that others could write; empty if there is none."""
    if not OWNED:
        return ""
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    return "can be written by other users" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


# --- text to loaded code ----------------------------------------------------------------------------------------------


@cache
def _disk(folder: Path) -> DiskCache:
    return DiskCache(folder)


def disk() -> DiskCache:
    """Return the disk cache of this environment."""
    return _disk(default_folder())


_loaded: WeakValueDictionary[tuple[bytes, tuple[str, ...]], machine.Library] = WeakValueDictionary()


def libraries(texts: Iterable[str], *names: str) -> list[machine.Library]:
    """Return the functions `names` of each text, compiled only if neither this process nor the disk has them.

    Equal texts share one library, for as long as it is referenced. Texts that are still being made are compiled one by
    one as they come.
    """
    keys: list[bytes] = []
    found: dict[bytes, machine.Library | None] = {}

    def missing() -> Iterator[str]:
        for text in texts:
            keys.append(digest := key(text))
            if digest not in found:
                found[digest] = _loaded.get((digest, names))
                if found[digest] is None and (code := disk().get(digest)) is not None:
                    found[digest] = _loaded.setdefault((digest, names), machine.load(code, *names))
                if found[digest] is None:
                    yield text

    codes = machine.compile_all(missing(), host(), host().cores)
    for digest, code in zip([digest for digest, library in found.items() if library is None], codes, strict=True):
        disk().put(digest, code)
        found[digest] = _loaded.setdefault((digest, names), machine.load(code, *names))
    return [library for digest in keys if (library := found[digest]) is not None]


def forget() -> None:
    """Find no code again that this process has loaded, in programs that are compiled from now on."""
    _loaded.clear()


# --- the command line -------------------------------------------------------------------------------------------------


def _info() -> str:
    sizes = disk().sizes()
    return f"{disk().folder}: {len(sizes)} entries, {sum(sizes):,} bytes of at most {disk().limit:,}"


ACTIONS: dict[str, Callable[[], str]] = {
    "info": _info,
    "clear": lambda: f"{disk().folder}: {disk().clear()} entries removed",
}


def cache_command(options: Namespace) -> None:
    """Run ``python -m minitorch cache clear|info``: `options.action` is a key of `ACTIONS`."""
    print(ACTIONS[options.action]())
