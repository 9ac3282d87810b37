"""The journal of a grading run: an append-only file with a line for each graded submission.

A run that was killed goes on from it. A line counts only if it is whole, and only for the very files, checks and limits
that it was written for; the hidden seeds are in the first line, so that all students have the same ones however often
the run is resumed.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ....errors import CommandError
from .history import now
from .ledger import Who
from .private import opened

SEEDS = 3
ATTEMPTS = 2
"""How often a submission is graded when the grader itself fails; then a person has to look at it."""


@dataclass(frozen=True)
class Entry:
    """One line: the result of a submission.

    Attributes:
        conditions: a digest of the release, the checks and the limits.
        work: a digest of what was handed in.
        result: as `Result.to_json` gives it.
        attempt: the number of times that exactly this was tried.
        at: when, in UTC.
    """

    conditions: str
    work: str
    result: dict[str, Any]
    attempt: int = 1
    at: str = ""

    @property
    def failed(self) -> bool:
        """Whether the grader itself failed."""
        return any(each["kind"] == "grader" for each in self.result["incidents"])

    @property
    def is_final(self) -> bool:
        """Whether it is not tried again by itself."""
        return not self.failed or self.attempt >= ATTEMPTS


def read(content: bytes, path: Path) -> tuple[tuple[int, ...], dict[Who, Entry]]:
    """The hidden seeds and the last entry of each submission; half a line at the end does not count.

    Raises:
        CommandError: if it is damaged.
    """
    seeds: tuple[int, ...] = ()
    entries: dict[Who, Entry] = {}
    for line in content[: content.rfind(b"\n") + 1].splitlines():
        try:
            data = json.loads(line)
            if "seeds" in data:
                seeds = tuple(data["seeds"])
                continue
            if "key" in data:  # of an earlier version, which is graded again
                data = {**data, "conditions": data["key"], "work": data["key"]}
            entry = Entry(data["conditions"], data["work"], data["result"], data.get("attempt", 1), data.get("at", ""))
            entries[data["student"], data["exercise"]] = entry
        except (ValueError, KeyError, TypeError):
            raise CommandError(f"{path} is damaged; move it away to grade everything again") from None
    return seeds, entries


class Journal:
    """The journal of a course; a context manager, since only one process may have it open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seeds: tuple[int, ...] = ()
        self.entries: dict[Who, Entry] = {}

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
        self.seeds, self.entries = read(content, self.path)
        whole = content.rfind(b"\n") + 1
        if whole < len(content):  # killed in the middle of a line
            self._file.truncate(whole)
        if not self.seeds:
            self.seeds = tuple(1 + secrets.randbelow(2**31 - 1) for _ in range(SEEDS))
            self._write({"seeds": self.seeds})

    def add(self, who: Who, entry: Entry) -> None:
        """Note that a submission is done; when this returns it is on the disk."""
        student, exercise = who
        self.entries[who] = entry
        self._write({"student": student, "exercise": exercise, **vars(entry), "at": entry.at or now()})

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
