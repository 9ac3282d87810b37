"""Jobs on a Dask cluster, as the process sees it that grades the course: what is sent, and what comes back.

Dask does a job again if the worker that had it dies, on another one and a few times only. If the scheduler ends or
restarts, or no worker is left, the run ends in a sentence: the journal has what is done. When this process ends,
however it ends, the scheduler drops what it had asked for.
"""

from __future__ import annotations

import json
import logging
import queue
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ....errors import CommandError
from ..course.folders import Submission
from ..course.local import Answers
from ..submission.worker import Job
from . import there
from .parcel import packed

CONNECT = 10.0
"""Seconds in which a scheduler must answer."""
AWAY = 60.0
"""Seconds for which a cluster may be without any worker in the middle of a run; raising it waits longer for one."""
GO_ON = "what is done is kept, and the same command goes on from there"


@contextmanager
def on_cluster(jobs: Mapping[Submission, Job], address: str, at_most: int | None = None) -> Iterator[Answers]:
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
        yield _Run(client, address, at_most).answers(jobs)
    finally:
        with suppress(Exception):
            client.close(timeout=5)


def _connected(address: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise CommandError("--scheduler needs the cluster extra: pip install 'minitorch[cluster]'") from None
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they complain of becomes a sentence here
    try:
        return distributed.Client(address, timeout=CONNECT, set_as_default=False, name="minitorch-grade")
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CommandError(f"no Dask scheduler answers at {address}: {reason}") from None


def _check(client: Any, address: str, safe: bool) -> None:
    """See that there are workers, and that all machines have this very package and a sandbox."""
    try:
        if not client.nthreads():
            raise CommandError(f"the cluster has no worker: start one with `dask worker {address}`")
        said = client.run(there.about, safe, on_error="return")
        scheduler: Any
        try:
            scheduler = client.run_on_scheduler(there.about, safe)
        except Exception as error:
            scheduler = error
    except OSError as error:
        raise _lost(address) from error
    for who, what in [("the scheduler", scheduler), *((f"the worker {each}", said[each]) for each in sorted(said))]:
        if isinstance(what, BaseException):
            raise CommandError(f"{who} cannot load this minitorch ({type(what).__name__}: {what}): install it there")
        if what["digest"] != there.digest():
            raise CommandError(
                f"{who} has another minitorch ({what['digest']}, and here it is {there.digest()}): "
                "install the same on every machine of the cluster"
            )
        if what["trouble"]:
            raise CommandError(f"{who} cannot grade: {what['trouble']}")


def _lost(address: str) -> CommandError:
    return CommandError(f"the scheduler at {address} ended or was restarted; {GO_ON}")


class _Run:
    """What is on its way."""

    def __init__(self, client: Any, address: str, at_most: int | None) -> None:
        self.client, self.address, self.at_most = client, address, at_most
        self.running: dict[str, tuple[Any, Submission]] = {}
        self.done: queue.Queue[Any] = queue.Queue()
        self.met = time.monotonic()  # when there was a worker for the last time

    def answers(self, jobs: Mapping[Submission, Job]) -> Answers:
        """The answers as they come. Few jobs are handed out at a time, so that an interruption finds few waiting."""
        waiting = iter(jobs.items())
        while True:
            room = self._room()
            while len(self.running) < room and (found := next(waiting, None)) is not None:
                each, job = found
                try:
                    self._send(each, job)
                except CommandError:
                    raise
                except Exception as error:  # whatever it is, it is this submission's alone
                    yield each, {"error": f"sending it: {type(error).__name__}: {error}"[:500]}
            if not self.running:
                return
            if (future := self._next()) is not None:
                _, each = self.running.pop(future.key)
                yield each, self._answer(future)

    def _room(self) -> int:
        """How many may be on their way: one for each thread, and one more for each worker, to begin with at once."""
        try:
            threads: dict[str, int] = self.client.nthreads()
        except (OSError, RuntimeError):
            raise _lost(self.address) from None
        if threads:
            self.met = time.monotonic()
        elif time.monotonic() > self.met + AWAY:
            raise CommandError(f"the cluster has been without a worker for {AWAY:g} s; {GO_ON}")
        room = sum(threads.values()) + len(threads)
        return max(1, min(room, self.at_most or room))

    def _send(self, each: Submission, job: Job) -> None:
        release = Path(job.release).read_bytes()
        files = packed(each.folder, each.exercise, job.limits.notebook)
        text = json.dumps(asdict(job))
        key = f"minitorch-grade-{uuid.uuid4().hex}"  # a dashboard shows it, so it names nobody
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Dask's opinion on large arguments
            future = self.client.submit(there.do, there.digest(), text, release, files, key=key, pure=False)
        future.add_done_callback(self.done.put)
        self.running[key] = future, each

    def _next(self) -> Any:
        """Something that is done; None if nothing is, so that it is time to look at the cluster again."""
        try:
            return self.done.get(timeout=5)
        except queue.Empty:
            if self.client.status != "running":
                raise _lost(self.address) from None
            return None

    def _answer(self, future: Any) -> dict[str, Any]:
        from distributed.scheduler import KilledWorker

        if future.status == "cancelled":
            raise _lost(self.address)
        try:
            answer: dict[str, Any] = json.loads(future.result())
            return answer
        except KilledWorker:
            return {"error": "the workers of the cluster died with it, one after the other"}
        except Exception as error:
            if future.status != "error":  # what was done could not be fetched
                raise _lost(self.address) from None
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            raise CommandError(f"the cluster cannot do it: {said[:300]}; {GO_ON}") from None
