"""`peak_memory`: what the system says of this process's memory, beside what the engine counts."""

from __future__ import annotations

import sys
from typing import Any


def peak_memory() -> int:
    """The most bytes of physical memory that this process has had at one time: its peak resident set.

    It does not fall when memory is freed, so what a step needs is seen in a process that has needed less before. The
    system counts in pages, and may be off by some.

    Raises:
        ModuleNotFoundError: on Windows, if psutil is not installed.

    Example:
        >>> from minitorch import course
        >>> course.peak_memory() > 1_000_000
        True
    """
    system: str = sys.platform  # as a plain text, or mypy reads one branch only
    if system == "linux":  # of `getrusage`, a new process has the peak of the one that started it
        with open("/proc/self/status", encoding="utf-8") as lines:
            return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    if system == "win32":
        import psutil

        information: Any = psutil.Process().memory_info()
        return int(information.peak_wset)
    import resource

    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # in bytes on macOS
