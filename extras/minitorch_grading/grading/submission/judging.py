"""Judging answers outside of the student's process: a submission must neither hold it up nor fill its memory.

Answers are data, but whoever made them may have made them so that judging takes for ever, or all memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil

from ...checks import Score, Task
from ..incidents import Incident
from ..limits import MIB
from .outcomes import faults

JUDGE_SECONDS = 60  # for one task
JUDGE_BYTES = 1024 * MIB  # more than there is when judging begins


class TooLateError(BaseException):
    """The time is over. Not an `Exception`, so that nothing on the way takes it for a fault of the answers."""


class Examination:
    """A task that a submission is asked about: the judge's side of the dialogue, within limits.

    Args:
        task: the task.
        seeds: from which its inputs are made.
        seconds: for judging all answers together.

    Attributes:
        verdict: the score, or what kept the answers from being judged; None while there is neither.
        faults: the kinds of incident that the answers tell of.
    """

    def __init__(self, task: Task, seeds: Sequence[int], seconds: float = JUDGE_SECONDS) -> None:
        self.task = task.name
        self.verdict: Score | Incident | None = None
        self.faults: dict[str, None] = {}
        self._seconds = seconds
        self._dialogue = task.examine(seeds)

    def next(self, answer: object) -> Any:
        """The next case, given the answer to the one before (None at first); None when there are no more."""
        began = time.monotonic()
        try:
            with deadline(max(self._seconds, 0.01)), less_memory(JUDGE_BYTES):
                self.faults |= dict.fromkeys(faults(answer))
                return self._dialogue.send(answer)
        except StopIteration as end:
            self.verdict = end.value
        except TooLateError:
            self.verdict = Incident("not-judged", f"{self.task}: judging took more than {JUDGE_SECONDS} s")
        except MemoryError:
            self.verdict = Incident("not-judged", f"{self.task}: judging took more than {JUDGE_BYTES // MIB} MiB")
        except Exception as error:
            self.verdict = Incident("grader", f"judging {self.task}: {type(error).__name__}: {error}"[:300])
        finally:
            self._seconds -= time.monotonic() - began
        return None


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
