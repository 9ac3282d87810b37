"""The journal of a grading run: an append-only file with a line for each graded submission.

A run that was killed goes on from it. A line counts only if it is whole, and only for the very files, checks and limits
that it was written for; the hidden seeds are in the first line, so that all students have the same ones however often
the run is resumed.
"""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from minitorch.errors import CommandError

from ...results import Result
from ..gradebook.marks import Who
from ..gradebook.trouble import holder
from ..private import lock, opened
from .history import now
from .lines import Lines

SEEDS = 3
SEED_BITS = 128  # of each; fewer could be guessed by whoever tries out what inputs they make
ATTEMPTS = 2  # how often a submission is graded when the grader itself fails; then a person has to look at it


@dataclass(frozen=True)
class Entry:
    """One line: the result of a submission.

    Attributes:
        conditions: a digest of the release, the checks and the limits.
        work: a digest of what was handed in.
        result: the points, reasons and incidents.
        attempt: the number of times that exactly this was tried.
        at: when, in UTC.
    """

    conditions: str
    work: str
    result: Result
    attempt: int = 1
    at: str = ""

    @property
    def is_final(self) -> bool:
        """Whether it is not tried again by itself."""
        return not self.result.failed or self.attempt >= ATTEMPTS


class Journal(ExitStack):
    """The journal of a course: a context manager, since only one process may write it; `read` only looks at it.

    Attributes:
        seeds: of the hidden inputs.
        entries: the last of each student and exercise, the latest last.
        by_work: the last of each work that was ever graded, by student, exercise and `keys.work_of`.
        notes: which lines are damaged.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.seeds: tuple[int, ...] = ()
        self.entries: dict[Who, Entry] = {}
        self.by_work: dict[tuple[str, str, str], Entry] = {}
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
        result = Result.from_json({"seconds": 0.0, **line["result"]})
        about = {name: line[name] for name in ("conditions", "work", "attempt", "at") if name in line}
        # A line of an earlier version has other digests, or none, and is graded again.
        entry = Entry(**{"conditions": "", "work": "", **about}, result=result)
        self.entries.pop((line["student"], line["exercise"]), None)
        self.entries[line["student"], line["exercise"]] = entry
        if not result.failed:
            self.by_work[line["student"], line["exercise"], entry.work] = entry

    def __enter__(self) -> Self:
        handle = opened(self.path, os.O_RDWR)
        with ExitStack() as stack:
            stack.callback(os.close, handle)
            try:
                lock(handle)
            except BlockingIOError:
                who = holder(self.path)
                raise CommandError(f"another process is grading this course: {who} has {self.path} open") from None
            self.read()
            if not self.seeds:
                self._write({"seeds": [secrets.randbits(SEED_BITS) for _ in range(SEEDS)]})
                if self.entries:
                    self.notes.append(
                        "The hidden seeds were lost with that line, and new ones are drawn: what is graded now meets "
                        "other inputs than what was graded before. `--again` grades all with the same."
                    )
            self.push(stack.pop_all())
        return self

    def add(self, who: Who, entry: Entry) -> None:
        """Note that a submission is done; when this returns it is on the disk."""
        about = {**vars(entry), "result": entry.result.to_json(), "at": entry.at or now()}
        self._write({"student": who[0], "exercise": who[1], **about})

    def _write(self, line: dict[str, Any]) -> None:
        self._lines.add([line])
        self._take(line)
