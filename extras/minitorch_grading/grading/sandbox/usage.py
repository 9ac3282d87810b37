"""What a submission uses, added up over all of its processes, as no limit of a single process does.

It is read from outside, in the namespace's own ``/proc``: there are the processes of this submission and no others.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from ..incidents import Incident
from ..limits import MIB, Limits

SECONDS = 0.25  # between two looks; raising it costs less, and lets a submission exceed a limit for longer
MAPPING = 320  # bytes of the kernel's records of a mapping that has a page (Linux 6.18: 235 of one that has none)
SHARE = 0.75  # of the limit of processes, at which a submission is stopped: before its own kernel cannot start a thread


def processes(first: int) -> list[str]:
    """The folders in ``/proc`` of the processes of a submission, the first one left out.

    Args:
        first: the first process, by its number here.
    """
    folder = f"/proc/{first}/root/proc"
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder) if name.isdigit() and name != "1"]
    except OSError:
        return []


def usage(first: int) -> Counter[str]:
    """What all processes of a submission use together: threads, open files, bytes of its own and of the kernel's."""
    found: Counter[str] = Counter()
    for folder in processes(first):
        with suppress(OSError, ValueError):  # it has ended
            # The first thread may have ended before the others, and then tells nothing.
            threads = [f"{folder}/task/{name}" for name in os.listdir(f"{folder}/task")]
            found["processes"] += 1
            found["threads"] += len(threads)
            tell = (
                (each, dict(line.split(":", 1) for line in _text(f"{each}/status").splitlines())) for each in threads
            )
            thread, about = next(((each, about) for each, about in tell if "VmRSS" in about), ("", {}))
            if thread:
                found["descriptors"] += _descriptors(thread, about)
                resident, swapped, tables = (int(about[name].split()[0]) << 10 for name in ("VmRSS", "VmSwap", "VmPTE"))
                found["resident"] += resident + swapped
                found["kernel"] += tables + MAPPING * _mappings(thread)
    return found


def _mappings(folder: str) -> int:
    with open(f"{folder}/maps", "rb") as file:
        return sum(part.count(b"\n") for part in iter(partial(file.read, 1 << 16), b""))


def _descriptors(folder: str, about: dict[str, str]) -> int:
    """Open files; of a process that has hidden them from everybody, the size of its table."""
    try:
        return len(os.listdir(f"{folder}/fd"))
    except PermissionError:
        return int(about["FDSize"])


def proportional(first: int) -> int:
    """Resident and swapped bytes, of which those that several processes share count once; slow to find."""
    total = 0
    for folder in processes(first):
        with suppress(OSError, ValueError):
            total += max(_share(f"{folder}/task/{name}") for name in os.listdir(f"{folder}/task"))
    return total


def _share(thread: str) -> int:
    with suppress(OSError):
        lines = _text(f"{thread}/smaps_rollup").splitlines()
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Pss:", "SwapPss:")))
    return 0  # it has ended


def excess(first: int, limits: Limits) -> Incident | None:
    """The limit that a submission exceeds, as an incident."""
    now = usage(first)
    most = SHARE * limits.processes
    if now["processes"] > most or now["threads"] > most:
        return Incident("processes", f"{max(now['processes'], now['threads'])} processes and threads")
    if now["descriptors"] > limits.descriptors:
        return Incident("files", f"{now['descriptors']} open files")
    most = limits.memory - now["kernel"]
    if now["resident"] > most and proportional(first) > most:
        return Incident("memory", f"more than {limits.memory // MIB} MiB")
    return None


def names(first: int) -> list[str]:
    """What the processes of a submission are called, but for its own shell, which is the first to have been started."""
    found = []
    for folder in sorted(processes(first), key=lambda folder: int(folder.rpartition("/")[2]))[1:]:
        with suppress(OSError):
            words = _text(f"{folder}/cmdline").split("\0")
            found.append(" ".join(words[:2]).strip() or _text(f"{folder}/comm").strip())
    return found


def waited(folder: str) -> float:
    """Return the seconds for which a process could run, and others had the processors; 0 where Linux does not say it.

    Args:
        folder: its folder in ``/proc``.
    """
    try:
        return int(_text(f"{folder}/schedstat").split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _text(path: str) -> str:
    with open(path, errors="replace") as file:
        return file.read(1 << 16)


class Watch(threading.Thread):
    """A thread that looks at a submission until `stop`; whoever exceeds a limit is named, and ended by `end`."""

    def __init__(self, first: int, limits: Limits, end: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.first, self.limits, self.end = first, limits, end
        self.incident: Incident | None = None
        self._stopped = threading.Event()

    def run(self) -> None:
        """Look, until there is nothing to look for any more."""
        while self.incident is None and not self._stopped.wait(SECONDS):
            self.incident = excess(self.first, self.limits)
        if self.incident is not None:
            self.end()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
