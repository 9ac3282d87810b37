"""The journal of a grading run: an append-only file with a line for each graded submission.

A run that was killed goes on from it. A line counts only if it is whole, and only for the very files, checks and limits
that it was written for; the hidden seeds are in the first line, so that all students have the same ones however often
the run is resumed.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ....errors import CommandError
from ..results import Result
from .history import now
from .lines import Lines
from .marks import Who
from .private import opened
from .trouble import holder

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


class Journal:
    """The journal of a course: a context manager, since only one process may write it; `read` only looks at it.

    Attributes:
        seeds: of the hidden inputs.
        entries: the last of each submission.
        notes: which lines are damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seeds: tuple[int, ...] = ()
        self.entries: dict[Who, Entry] = {}
        self.notes: list[str] = []

    def read(self) -> Self:
        """Read the file, if it is there; a damaged line is passed over, and its submission is graded again."""
        self._lines = Lines(self.path, self._take)
        self.notes = self._lines.notes
        return self

    def _take(self, line: dict[str, Any]) -> None:
        if "seeds" in line:
            self.seeds = tuple(map(int, line["seeds"]))
            return
        line = {"conditions": line.get("key"), "work": line.get("key"), **line}  # an earlier version, graded again
        entry = Entry(line["conditions"], line["work"], line["result"], line.get("attempt", 1), line.get("at", ""))
        Result.from_json({"seconds": 0.0, **entry.result})  # which refuses what is none
        self.entries[line["student"], line["exercise"]] = entry

    def __enter__(self) -> Self:
        self._lock = opened(self.path, os.O_RDWR)
        try:
            _lock(self._lock)
            self.read()
            if not self.seeds:
                self.seeds = tuple(1 + secrets.randbelow(2**31 - 1) for _ in range(SEEDS))
                self._write({"seeds": self.seeds})
                if self.entries:
                    self.notes.append(
                        "The hidden seeds were lost with that line, and new ones are drawn: what is graded now meets "
                        "other inputs than what was graded before. `--again` grades all with the same."
                    )
        except BlockingIOError:
            os.close(self._lock)
            raise CommandError(
                f"another process is grading this course: {holder(self.path)} has {self.path} open"
            ) from None
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def add(self, who: Who, entry: Entry) -> None:
        """Note that a submission is done; when this returns it is on the disk."""
        student, exercise = who
        self.entries[who] = entry
        self._write({"student": student, "exercise": exercise, **vars(entry), "at": entry.at or now()})

    def _write(self, entry: dict[str, Any]) -> None:
        self._lines.add([entry])


def _lock(file: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
