"""The clerk: a process for one submission alone, in which everything of it is looked at that is not run.

Finding the notebook, mending it, judging its answers and writing its page all read what a student has made. Whatever
that does to the clerk, to its memory or to its time, the clerk ends, the submission has an incident, and the next one
has a clerk of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from .judging import less_memory

MEMORY = 2 << 30  # bytes of addresses that a clerk may take besides those that it begins with
LARGEST = 256 << 20  # bytes of a result


class LostError(Exception):
    """A clerk that gave no result; the text says why."""


class AbandonedError(BaseException):
    """Whoever asked for the result is gone."""


def by_a_clerk(work: Callable[[], bytes], seconds: float, leash: int | None = None) -> bytes:
    """The result of `work`, which runs in a copy of this process.

    Args:
        work: what is to be done.
        seconds: how long it may take.
        leash: a descriptor that must not be closed at the other end before it is done; nothing is sent on it.

    Raises:
        LostError: if it has not come to its end.
        AbandonedError: if the leash was closed.
    """
    reading, writing = Pipe(duplex=False)
    clerk = os.fork()
    if clerk == 0:
        reading.close()
        _work(work, writing)
    writing.close()
    sources: list[Any] = [reading] if leash is None else [reading, leash]
    try:
        ready = wait(sources, seconds)
        if leash in ready:
            raise AbandonedError
        if not ready:
            raise LostError("it took too long")
        return reading.recv_bytes(LARGEST)
    except (EOFError, OSError):
        raise LostError(_ended(clerk)) from None
    finally:
        reading.close()
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(clerk, signal.SIGKILL)
            os.waitpid(clerk, 0)


def _work(work: Callable[[], bytes], writing: Connection) -> NoReturn:
    try:
        if sys.platform == "linux":
            from ..sandbox.inside import linux  # which no other system can import

            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)  # die with the parent
        with less_memory(MEMORY):
            writing.send_bytes(work())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


def _ended(clerk: int) -> str:
    """How it ended, in words."""
    _, status = os.waitpid(clerk, 0)
    if os.WIFSIGNALED(status):
        return f"its process ended with {signal.Signals(os.WTERMSIG(status)).name}"
    return "its process ended without a result"
