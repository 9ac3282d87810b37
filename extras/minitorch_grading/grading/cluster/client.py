"""Jobs on a Dask cluster, as the process sees it that grades the course: what is sent, and what comes back.

Dask does a job again if the worker that had it dies, on another one and a few times only. If the scheduler ends or
restarts, or no worker is left, the run ends in a sentence: the journal has what is done. When this process ends,
however it ends, the scheduler drops what it had asked for.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from minitorch.errors import CommandError

from ..course.gradebook.marks import Who
from ..course.running.local import Answers, handed_out
from ..submission.worker import Job
from . import there

CONNECT = 10.0  # seconds in which a scheduler must answer
# Seconds for which a cluster may be without any worker in the middle of a run; raising it waits longer for one.
AWAY = 60.0
GO_ON = "what is done is kept, and the same command goes on from there"


@contextmanager
def on_cluster(jobs: Mapping[Who, Job], address: str, at_most: int | None = None) -> Iterator[Answers]:
    """Do jobs on a cluster.

    Args:
        jobs: of each submission; slots do not matter.
        address: of the scheduler, such as ``tcp://grader:8786``.
        at_most: number of submissions at a time; all threads of the cluster by default.

    Raises:
        CommandError: if the cluster cannot be reached or cannot do it, also later.
    """
    if not jobs:
        yield iter(())
        return
    client = _connected(address)
    try:
        _check(client, address, all(job.safe for job in jobs.values()))
        yield _answers(client, jobs, address, at_most)
    finally:
        with suppress(Exception):
            client.close(timeout=5)


def _connected(address: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise CommandError("--scheduler needs Dask, which is not installed: pip install 'dask[distributed]'") from None
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they complain of becomes a sentence here
    try:
        return distributed.Client(address, timeout=CONNECT, set_as_default=False, name="minitorch-grade")
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CommandError(f"no Dask scheduler answers at {address}: {reason}") from None


def _check(client: Any, address: str, safe: bool) -> None:
    """See that there are workers, and that all of them have this very package and a sandbox."""
    try:
        if not client.nthreads():
            raise CommandError(f"the cluster has no worker: start one with `dask worker {address}`")
        said = client.run(there.trouble, there.digest(), safe, on_error="return")
    except OSError as error:
        raise _lost(address) from error
    for worker, what in sorted(said.items()):
        if isinstance(what, BaseException):
            what = f"it cannot load this minitorch ({type(what).__name__}: {what}): install it there"
        if what:
            raise CommandError(f"the worker {worker} cannot grade: {what}")


def _lost(address: str) -> CommandError:
    return CommandError(f"the scheduler at {address} ended or was restarted; {GO_ON}")


def _answers(client: Any, jobs: Mapping[Who, Job], address: str, at_most: int | None) -> Answers:
    from distributed.scheduler import KilledWorker

    executor = client.get_executor(pure=False)
    met = time.monotonic()  # when there was a worker for the last time

    def room() -> int:
        """How many may be on their way: one for each thread, and one more for each worker, to begin with at once."""
        nonlocal met
        try:
            threads: dict[str, int] = client.nthreads()
        except (OSError, RuntimeError):
            raise _lost(address) from None
        if client.status != "running":
            raise _lost(address)
        if threads:
            met = time.monotonic()
        elif time.monotonic() > met + AWAY:
            raise CommandError(f"the cluster has been without a worker for {AWAY:g} s; {GO_ON}")
        most = sum(threads.values()) + len(threads)
        return max(1, min(most, at_most or most))

    def submit(job: Job) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Dask's opinion on large arguments
            return executor.submit(there.do, there.digest(), job)

    def answer(future: Any) -> dict[str, Any]:
        try:
            found: dict[str, Any] = future.result()
            return found
        except KilledWorker:
            return {"error": "the workers of the cluster died with it, one after the other"}
        except (CancelledError, OSError):
            raise _lost(address) from None
        except Exception as error:
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            raise CommandError(f"the cluster cannot do it: {said[:300]}; {GO_ON}") from None

    return handed_out(jobs, room, submit, answer)
