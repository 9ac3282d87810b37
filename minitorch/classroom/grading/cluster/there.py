"""A submission on a Dask worker: its files into a folder of their own, and the job to a worker process of ours.

One such process, with its sandbox, is kept for each thread of the Dask worker. It ends after a minute without work, and
with the Dask worker, however that ends. Only the functions `about` and `do` are called from elsewhere.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from ...parts import PACKAGE, sources
from ..sandbox import bubblewrap as sandbox
from ..submission.worker import Job, Worker
from .parcel import File, unpacked

REST = 60.0
"""Seconds after which a worker process without work ends; raising it keeps its memory for longer."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE)
"""Errors of the machine, which would befall every other submission, too."""


# --- is it the same? ---------------------------------------------------------------------------------------------


@cache
def digest() -> str:
    """A digest of the package `minitorch`: equal on two machines that grade alike."""
    found = hashlib.sha256()
    for path in sources():
        found.update(b"\0" + path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:12]


def about(safe: bool, dask_worker: Any = None) -> dict[str, str]:
    """What a client has to know of this machine: the package, and what is in the way of grading here.

    Args:
        safe: whether there has to be a sandbox.
        dask_worker: given by Dask, if this is one.
    """
    trouble = _trouble(Path(dask_worker.local_directory)) if safe and dask_worker is not None else ""
    return {"digest": digest(), "trouble": trouble}


def _trouble(folder: Path) -> str:
    if reason := sandbox.unavailable():
        return f"{reason}: {sandbox.remedy()}"
    if shown := sandbox.exposed(folder):
        return f"its folder {folder} is in {shown}, which student code can read: start it with --local-directory"
    return sandbox.copies([]) or ""


# --- doing it ----------------------------------------------------------------------------------------------------


def do(expected: str, job: str, release: bytes, files: Iterable[File]) -> bytes:
    """Grade a submission; the answer of a worker process, as JSON.

    Args:
        expected: the client's `digest`.
        job: a `Job` as JSON; its paths and slot are chosen here.
        release: the notebook that was handed out.
        files: of the submission, as `parcel.packed` gives them.
    """
    try:
        return json.dumps(_done(expected, Job.from_json(job), release, files)).encode()
    except OSError as error:
        kind = "fatal" if error.errno in FULL else "error"
        return json.dumps({kind: f"a worker of the cluster: {error}"[:500]}).encode()
    except Exception as error:
        return json.dumps({"error": f"a worker of the cluster: {type(error).__name__}: {error}"[:500]}).encode()


def _done(expected: str, job: Job, release: bytes, files: Iterable[File]) -> dict[str, Any]:
    from distributed import get_worker

    parent = Path(get_worker().local_directory)  # Dask clears it even after a worker that was killed
    if expected != digest():  # it has joined since the client asked
        return {"fatal": f"a worker that has joined the cluster has another minitorch: {digest()}, not {expected}"}
    if job.safe and (trouble := _trouble(parent)):
        return {"fatal": f"a worker that has joined the cluster cannot grade: {trouble}"}
    folder = Path(tempfile.mkdtemp(prefix="minitorch-", dir=parent))
    try:
        handed_out, work = folder / "release.ipynb", folder / "work"
        handed_out.write_bytes(release)
        work.mkdir()
        unpacked(files, work)
        slot, worker = _taken()
        try:
            here = replace(job, folder=str(work), release=str(handed_out), slot=slot, temporary=str(folder))
            return worker.do(here)
        finally:
            _rests(slot, worker)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- the processes -----------------------------------------------------------------------------------------------

_lock = threading.Lock()
_resting: dict[int, tuple[Worker, threading.Timer]] = {}  # by slot
_slots: set[int] = set()  # of those at work and those at rest


def _taken() -> tuple[int, Worker]:
    with _lock:
        if _resting:
            slot, (worker, timer) = _resting.popitem()
            timer.cancel()
            return slot, worker
        slot = next(each for each in count(os.getpid() * sandbox.SLOTS) if each not in _slots)
        _slots.add(slot)
    return slot, Worker().__enter__()


def _rests(slot: int, worker: Worker) -> None:
    timer = threading.Timer(REST, _end, [slot])
    timer.daemon = True
    with _lock:
        _resting[slot] = worker, timer
    timer.start()


def _end(slot: int) -> None:
    with _lock:
        if slot not in _resting:  # it was taken in this moment
            return
        worker, _ = _resting.pop(slot)
        _slots.discard(slot)
    worker.stop()
