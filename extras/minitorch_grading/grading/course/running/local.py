"""Jobs on this machine: worker processes that do one submission after the other, and nothing of them is left.

`Answers` is all that the run of a course knows of where jobs are done; `cluster.client` hands them out in the same way.
"""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from ...sandbox import bubblewrap as sandbox
from ...submission.worker import Job, Worker
from ..gradebook.marks import Who
from .keys import work_of

# Submissions as they are done, each with the answer of `Worker.do`, and a digest of its `work`.
Answers = Iterator[tuple[Who, dict[str, Any]]]
LOOK_SECONDS = 5.0  # between two looks at the room there is, if nothing is done meanwhile


def handed_out(
    jobs: Mapping[Who, Job],
    room: Callable[[], int],
    submit: Callable[[Job], Future[Any]],
    answer: Callable[[Future[Any]], dict[str, Any]] = Future.result,
) -> Answers:
    """Hand jobs out, and yield the answers as they come.

    Few are on their way at a time, so that an interruption finds few waiting. The next one is handed out before an
    answer is given away: no worker waits while pages and points are written. Each answer says of which `work` it is:
    what lies in the folder when its turn comes.
    """
    waiting = iter(jobs.items())
    running: dict[Future[Any], tuple[Who, str]] = {}
    done: list[tuple[Who, str, Future[Any]]] = []
    while True:
        for each, job in islice(waiting, max(0, room() - len(running))):
            try:
                loaded = job.loaded()
                running[submit(loaded)] = each, work_of(loaded.files)
            except OSError as error:
                yield each, {"error": f"reading it: {error}"[:500]}
        if done:
            each, work, future = done.pop()
            yield each, {"work": work, **answer(future)}
        elif running:
            found = wait(running, LOOK_SECONDS, FIRST_COMPLETED).done
            done += [(*running.pop(future), future) for future in found]
        else:
            return


@contextmanager
def here(jobs: Mapping[Who, Job], workers: int | None = None) -> Iterator[Answers]:
    """Do jobs in as many worker processes as asked for, by default one for each processor; slots are given here."""
    with ExitStack() as stack:
        count = max(1, min(workers or default_workers(), len(jobs)))
        free: queue.SimpleQueue[tuple[int, Worker]] = queue.SimpleQueue()
        workers_here = [stack.enter_context(Worker()) for _ in range(count if jobs else 0)]
        for slot, worker in enumerate(workers_here):
            free.put((os.getpid() * sandbox.SLOTS + slot, worker))
        pool = stack.enter_context(ThreadPoolExecutor(count))
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)

        def one(job: Job) -> dict[str, Any]:
            slot, worker = free.get()
            try:
                return worker.do(replace(job, slot=slot))
            finally:
                free.put((slot, worker))

        try:
            yield handed_out(jobs, lambda: count, lambda job: pool.submit(one, job))
        except KeyboardInterrupt:  # what runs is graded again by the next run, so nobody waits for its end
            for worker in workers_here:
                worker.process.kill()
            raise


def default_workers() -> int:
    """As many as there are processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
