"""Judging answers in the grader's own process, which a submission must neither hold up nor fill.

Answers are data, but whoever made them may have made them so that judging takes for ever, or all memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psutil

from ...checks import Score, Task
from ..incidents import Incident
from ..limits import MIB

JUDGE_SECONDS = 60  # for one task
JUDGE_BYTES = 1024 * MIB  # more than there is when judging begins


class TooLateError(BaseException):
    """The time is over. Not an `Exception`, so that nothing on the way takes it for a fault of the answers."""


def judged(task: Task, answers: object, seeds: Sequence[int], seconds: float = JUDGE_SECONDS) -> Score | Incident:
    """The score, or what kept the answers from being judged."""
    try:
        with deadline(seconds), less_memory(JUDGE_BYTES):
            return task.assess(answers, seeds)
    except TooLateError:
        return Incident("not-judged", f"{task.name}: judging took more than {seconds:g} s")
    except MemoryError:
        return Incident("not-judged", f"{task.name}: judging took more than {JUDGE_BYTES // MIB} MiB")
    except Exception as error:
        return Incident("grader", f"judging {task.name}: {type(error).__name__}: {error}"[:300])


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise `TooLateError` after `seconds`, and again every second, where the system can (not on Windows)."""
    import signal

    if not hasattr(signal, "setitimer"):
        yield
        return

    def late(*_: object) -> None:
        raise TooLateError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def less_memory(size: int) -> Iterator[None]:
    """Let this process have `size` bytes more than it has, where the system can (on Linux)."""
    try:
        import resource
    except ImportError:  # Windows
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + size
    if before[0] != resource.RLIM_INFINITY:
        most = min(most, before[0])
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
