"""Jobs on this machine: worker processes that do one submission after the other, and nothing of them is left.

`Answers` is all that the run of a course knows of where jobs are done; `cluster.client` gives the same.
"""

from __future__ import annotations

import os
import queue
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from ..sandbox import bubblewrap as sandbox
from ..submission.worker import Job, Worker
from .folders import Submission

Answers = Iterator[tuple[Submission, dict[str, Any]]]
"""Submissions as they are done, each with the answer of `Worker.do`."""


@contextmanager
def here(jobs: Mapping[Submission, Job], workers: int | None = None) -> Iterator[Answers]:
    """Do jobs in as many worker processes as asked for, by default one for each processor; slots are given here."""
    with ExitStack() as stack:
        count = max(1, min(workers or default_workers(), len(jobs)))
        free: queue.Queue[tuple[int, Worker]] = queue.Queue()
        if jobs:
            first = os.getpid() * sandbox.SLOTS
            for slot in range(first, first + count):
                free.put((slot, stack.enter_context(Worker())))
        pool = stack.enter_context(ThreadPoolExecutor(count))
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)

        def one(job: Job) -> dict[str, Any]:
            slot, worker = free.get()
            try:
                return worker.do(replace(job, slot=slot))
            finally:
                free.put((slot, worker))

        def each_as_it_comes() -> Answers:
            # Few are handed out at a time, so that an interruption finds none waiting. The next one is handed out
            # before an answer is given away: no worker waits while pages and points are written.
            waiting = iter(jobs.items())
            running = {pool.submit(one, job): each for each, job in islice(waiting, count)}
            while running:
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    each = running.pop(done)
                    running |= {pool.submit(one, job): after for after, job in islice(waiting, 1)}
                    yield each, done.result()

        yield each_as_it_comes()


def default_workers() -> int:
    """As many as there are processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
