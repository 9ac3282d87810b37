"""How far a run is: one line that is written over in a terminal, a line for each submission otherwise."""

from __future__ import annotations

import time
from typing import TextIO


class Progress:
    """Counts submissions."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self._overwrite = out.isatty()

    def begin(self, total: int, before: int) -> None:
        """There are so many submissions, of which some were done before this run."""
        self.total, self.before, self.done = total, before, before
        self._began = time.monotonic()
        if before:
            print(f"{before} of {total} were graded before, and are kept", file=self.out, flush=True)

    def step(self, what: str, alert: bool) -> None:
        """One more is done: `what` says what came of it; with `alert` it stays on the screen."""
        self.done += 1
        width = len(str(self.total))
        line = f"[{self.done:>{width}}/{self.total}] {what}"
        if not self._overwrite:
            print(f"{line}{self._ahead()}", file=self.out, flush=True)
            return
        if alert:
            self._clear()
            print(line, file=self.out)
        self._clear()
        last = self.done == self.total
        print(f"{line[:70]}{self._ahead()}", end="\n" if last else "", file=self.out, flush=True)

    def _clear(self) -> None:
        print("\r\x1b[2K", end="", file=self.out)

    def _ahead(self) -> str:
        left = self.total - self.done
        if not left:
            return ""
        return f"  ·  {duration((time.monotonic() - self._began) / (self.done - self.before) * left)} left"


def duration(seconds: float) -> str:
    """A time in the unit in which people think of it.

    >>> duration(8), duration(100), duration(4000)
    ('8 s', '2 min', '1 h 7 min')
    """
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
