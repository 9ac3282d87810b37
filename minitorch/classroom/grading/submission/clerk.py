"""The clerk: a process for one submission alone, in which everything of it is looked at that is not run.

Finding the notebook, mending it, judging its answers and writing its page all read what a student has made. Whatever
that does to the clerk, to its memory or to its time, the clerk ends, the submission has an incident, and the next one
has a clerk of its own.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence

MEMORY = 2 << 30  # bytes of addresses that a clerk may take besides those that it begins with
LARGEST = 256 << 20  # bytes of a result


class LostError(Exception):
    """A clerk that gave no result; the text says why."""


class AbandonedError(BaseException):
    """Whoever asked for the result is gone."""


def by_a_clerk(work: Callable[[], bytes], seconds: float, leashes: Sequence[int] = ()) -> bytes:
    """The result of `work`, which runs in a copy of this process.

    Args:
        work: what is to be done.
        seconds: how long it may take.
        leashes: descriptors of which none may be closed at the other end before it is done.

    Raises:
        LostError: if it has not come to its end.
        AbandonedError: if a leash was closed.
    """
    reading, writing = os.pipe()
    clerk = os.fork()
    if clerk == 0:
        os.close(reading)
        _work(work, writing)
    os.close(writing)
    try:
        return _collected(reading, time.monotonic() + seconds, leashes)
    except LostError as lost:
        raise LostError(str(lost) or _ended(clerk)) from None
    finally:
        os.close(reading)
        try:
            os.kill(clerk, signal.SIGKILL)
            os.waitpid(clerk, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def _work(work: Callable[[], bytes], writing: int) -> None:
    try:
        _limit()
        content = work()
        if len(content) <= LARGEST:
            view = memoryview(len(content).to_bytes(8) + content)
            while view:
                view = view[os.write(writing, view) :]
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


def _limit() -> None:
    """Die with the parent, and take no more memory than a clerk needs."""
    if sys.platform != "linux":
        return
    import resource

    from ..sandbox.inside import linux

    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))


def _collected(reading: int, end: float, leashes: Sequence[int]) -> bytes:
    found = bytearray()
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise LostError("it took too long")
        ready, _, _ = select.select([reading, *leashes], [], [], left)
        if any(leash in ready and not os.read(leash, 1 << 16) for leash in leashes):
            raise AbandonedError
        if reading in ready:
            part = os.read(reading, 1 << 20)
            found += part
            if not part:
                size = int.from_bytes(found[:8])
                if len(found) < 8 or len(found) != size + 8:
                    raise LostError
                return bytes(found[8:])


def _ended(clerk: int) -> str:
    """How it ended, in words."""
    try:
        _, status = os.waitpid(clerk, 0)
    except ChildProcessError:
        return "its process is gone"
    if os.WIFSIGNALED(status):
        return f"its process ended with {signal.Signals(os.WTERMSIG(status)).name}"
    return "its process ended without a result"
