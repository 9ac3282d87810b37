"""A thread beside a running submission that looks for what no limit of a single process shows.

Many processes may each stay below their own limit. So their number and their memory are added up four times a second,
with the folder that is shared with the grader; whoever exceeds what a submission may use is named, and killed as a
whole.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

import psutil

from ..incidents import Incident
from ..limits import MIB, Limits

SECONDS = 0.25
SHARED_BYTES = MIB  # what the shared folder may hold: five sockets and a file of 300 bytes


class Watch:
    """Watches the process `pid` and its descendants; `incident` is what it has found."""

    def __init__(self, pid: int, folder: Path, limits: Limits) -> None:
        self.pid, self.folder, self.limits = pid, folder, limits
        self.incident: Incident | None = None
        self._own: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin; the processes that there are now are the kernel's own."""
        self._own = {process.pid for process in self._family()}
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def others(self) -> list[str]:
        """Names of the processes that were not there at the start."""
        names = []
        for process in self._family():
            if process.pid not in self._own:
                with contextlib.suppress(psutil.Error):
                    names.append(" ".join(process.cmdline()[:2]) or process.name())
        return names

    def _family(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(self.pid)
            return [root, *root.children(recursive=True)]
        return []

    def _run(self) -> None:
        while not self._stop.wait(SECONDS):
            family = self._family()
            found = self._look(family)
            if found is not None:
                self.incident = found
                for process in family:  # the first is bubblewrap, with which everything inside ends at once
                    with contextlib.suppress(psutil.Error):
                        process.kill()
                return

    def _look(self, family: list[psutil.Process]) -> Incident | None:
        most = 0.75 * self.limits.processes  # before the limit itself stops the kernel's own threads
        if len(family) > most or sum(number(process.num_threads, "real") for process in family) > most:
            return Incident("processes", f"{len(family)} processes")
        # Shared memory counts for each process in `rss`, and once in `pss`, which is slow to read.
        memory = sum(number(process.memory_info, "rss") for process in family)
        if memory > self.limits.memory:
            memory = sum(number(process.memory_full_info, "pss") for process in family)
        if memory > self.limits.memory:
            return Incident("memory", f"more than {self.limits.memory // MIB} MiB")
        with contextlib.suppress(OSError):
            if sum(path.lstat().st_size for path in self.folder.iterdir()) > SHARED_BYTES:
                return Incident("disk", "files in the folder of the kernel's connection")
        return None


def number(question: Callable[[], object], part: str) -> int:
    """One part of what a process answers, or 0 if it is no more."""
    try:
        return int(getattr(question(), part))
    except psutil.Error:
        return 0
