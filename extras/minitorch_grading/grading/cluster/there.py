"""A submission on a Dask worker: the job goes on to a worker process of ours, which has everything that it needs in it.

One such process, with its sandbox, is kept for each thread of the Dask worker, and ends with it, however it ends. Only
the functions `trouble` and `do` are called from elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import queue
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from ...dependencies import digest_of, sources
from ..sandbox import bubblewrap as sandbox
from ..submission.worker import Job, Worker


@cache
def digest() -> str:
    """A digest of the package `minitorch`: equal on two machines that grade alike."""
    return hashlib.sha256(digest_of(sources())).hexdigest()[:12]


def trouble(expected: str, safe: bool, dask_worker: Any = None) -> str:
    """Why this machine cannot grade for a client; empty if it can.

    Args:
        expected: the client's `digest`.
        safe: whether there has to be a sandbox.
        dask_worker: given by Dask.
    """
    if digest() != expected:
        return f"it has another minitorch ({digest()}, and here it is {expected}): install the same on every machine"
    if not safe:
        return ""
    if reason := sandbox.unavailable():
        return f"{reason}: {sandbox.remedy()}"
    folder = Path(dask_worker.local_directory)
    if shown := sandbox.exposed(folder):
        return f"its folder {folder} is in {shown}, which student code can read: start it with --local-directory"
    return sandbox.copies([]) or ""


def do(expected: str, job: Job) -> dict[str, Any]:
    """Grade a submission; the answer of a worker process. `expected` is the client's `digest`."""
    from distributed import get_worker

    try:
        if said := trouble(expected, job.safe, get_worker()):  # it may have joined since the client asked
            raise OSError(said)
        try:
            slot, worker = _resting.get_nowait()
        except queue.Empty:
            slot, worker = next(_slots), Worker().__enter__()
        try:
            return worker.do(replace(job, slot=slot))
        finally:
            _resting.put((slot, worker))
    except OSError as error:  # of this machine, and to the client it would look like one of the connection
        return {"fatal": f"the worker {get_worker().address} cannot grade: {error}"}


_resting: queue.SimpleQueue[tuple[int, Worker]] = queue.SimpleQueue()
_slots = count(os.getpid() * sandbox.SLOTS)
