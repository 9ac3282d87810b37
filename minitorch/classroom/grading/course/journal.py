"""The journal of a grading run: an append-only file with a line for each graded submission.

A run that was killed goes on from it. A line counts only if it is whole, and only for the very files, checks and limits
that it was written for; the hidden seeds are in the first line, so that all students have the same ones however often
the run is resumed.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ....errors import CommandError
from ...checks import task as checks
from ..limits import Limits
from .private import opened

SEEDS = 3


class Journal:
    """The journal of a course; a context manager, since only one process may have it open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seeds: tuple[int, ...] = ()
        self._done: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}

    def __enter__(self) -> Self:
        self._file = os.fdopen(opened(self.path, os.O_RDWR | os.O_APPEND), "a+b")
        try:
            _lock(self._file.fileno())
            self._read()
        except OSError:
            self._file.close()
            raise CommandError(f"another process is grading this course (it has {self.path} open)") from None
        except CommandError:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):  # killed in the middle of a line
            self._file.truncate(whole)
        for line in content[:whole].splitlines():
            try:
                entry = json.loads(line)
                if "seeds" in entry:
                    self.seeds = tuple(entry["seeds"])
                else:
                    self._done[entry["student"], entry["exercise"]] = (entry["key"], entry["result"])
            except (ValueError, KeyError, TypeError):
                raise CommandError(f"{self.path} is damaged; move it away to grade everything again") from None
        if not self.seeds:
            self.seeds = tuple(1 + secrets.randbelow(2**31 - 1) for _ in range(SEEDS))
            self._write({"seeds": self.seeds})

    def done(self, student: str, exercise: str, key: str) -> dict[str, Any] | None:
        """The result of a submission, if exactly this one was graded."""
        known, result = self._done.get((student, exercise), ("", None))
        return result if known == key else None

    def add(self, student: str, exercise: str, key: str, result: dict[str, Any]) -> None:
        """Note that a submission is done; when this returns it is on the disk."""
        self._done[student, exercise] = (key, result)
        self._write({"student": student, "exercise": exercise, "key": key, "result": result})

    def _write(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _lock(file: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def key_of(folder: Path, release: Path, limits: Limits, safe: bool) -> str:
    """A digest of all that a result depends on: the submission, the release, the checks, and the limits."""
    digest = hashlib.sha256(json.dumps([limits.to_json(), safe], sort_keys=True).encode())
    checked = sorted(Path(checks.__file__).parent.rglob("*.py"))
    handed_in = sorted(path for path in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
    for path in [release, *checked, *handed_in]:
        digest.update(b"\0" + path.name.encode(errors="surrogateescape") + b"\0")
        with suppress(OSError):  # what cannot be read is not graded either
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    digest.update(file.read(limits.notebook + 1))
    return digest.hexdigest()
