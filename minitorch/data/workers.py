"""Worker processes of a loader: each reads batches of the dataset while the program computes.

A worker is a fork of the program, so that the dataset need not be picklable; batches come back through a pipe. Batches
are asked of the workers in turns, some in advance, and come back in order. A worker computes on one thread.
"""

from __future__ import annotations

import multiprocessing
import random
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..functional.creation.generator import default_generator
from ..packages import load

Fetch = Callable[[Any], Any]


@dataclass(frozen=True)
class WorkerInfo:
    """The worker that this process is.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: the seed of its random numbers.
        dataset: its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return what is known of this worker process of a `DataLoader`; None in the program itself.

    An `IterableDataset` reads it to yield its own part of the data only.

    Example:
        >>> import minitorch as mt
        >>> class Stream(mt.data.IterableDataset):
        ...     def __iter__(self):
        ...         info = mt.data.get_worker_info()
        ...         return iter(range(6)) if info is None else iter(range(info.id, 6, info.num_workers))
        >>> sorted(mt.data.DataLoader(Stream(), batch_size=None, num_workers=2))
        [0, 1, 2, 3, 4, 5]
    """
    return _info


class EndError(Exception):
    """A worker has no more batches."""


def _work(pipe: Any, info: WorkerInfo, fetch: Callable[[], Fetch], worker_init_fn: Callable[[int], Any] | None) -> None:
    global _info
    _info = info
    load("minitorch.backends").set_num_threads(1)
    default_generator.manual_seed(info.seed)
    random.seed(info.seed)
    np.random.seed(info.seed % 2**32)  # noqa: NPY002  the dataset's own code may draw from it
    try:
        if worker_init_fn is not None:
            worker_init_fn(info.id)
        fetched = fetch()
        while (task := pipe.recv()) is not None:
            try:
                pipe.send((fetched(task), None))
            except Exception as error:
                error.add_note(f"in worker {info.id} of a DataLoader:\n{traceback.format_exc()}")
                pipe.send((None, error))
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        pass  # the program has stopped
    except Exception as error:
        pipe.recv()
        pipe.send((None, error))


def results(
    tasks: Iterable[Any],
    fetch: Callable[[], Fetch],
    dataset: Any,
    count: int,
    ahead: int,
    timeout: float,
    worker_init_fn: Callable[[int], Any] | None,
    seed: int,
) -> Iterator[Any]:
    """Yield what `count` workers fetch for the tasks, in order.

    Args:
        tasks: of a batch each; sent to the workers in turns.
        fetch: returns the function of a task, in the worker; it raises `EndError` if a worker has no more.
        dataset: for `get_worker_info`.
        count: the number of workers.
        ahead: tasks that a worker has in advance.
        timeout: seconds to wait for a batch; 0 for ever.
        worker_init_fn: called in each worker with its number.
        seed: of the workers' random numbers; each adds its number.

    Raises:
        RuntimeError: if a worker dies, or a batch takes longer than the timeout.
    """
    context = multiprocessing.get_context("fork")
    pipes, processes = [], []
    try:
        for number in range(count):
            own, its = context.Pipe()
            info = WorkerInfo(number, count, seed + number, dataset)
            process = context.Process(target=_work, args=(its, info, fetch, worker_init_fn), daemon=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of forks beside threads, Python's and JAX's: a worker uses none
                process.start()
            its.close()
            pipes.append(own)
            processes.append(process)
        rest, turns = iter(tasks), deque[int]()
        alive, ask = deque([*range(count)] * ahead), True
        while True:
            while ask and alive:
                task = next(rest, EndError)
                if task is EndError:
                    ask = False
                    break
                number = alive.popleft()
                pipes[number].send(task)
                turns.append(number)
            if not turns:
                return
            number = turns.popleft()
            try:
                if timeout and not pipes[number].poll(timeout):
                    raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
                value, error = pipes[number].recv()
            except (EOFError, ConnectionResetError):
                processes[number].join(1)
                code = processes[number].exitcode
                raise RuntimeError(f"worker {number} of the DataLoader died, with exit code {code}") from None
            if isinstance(error, EndError):
                continue  # it is asked no more
            if error is not None:
                raise error
            alive.append(number)
            yield value
    finally:
        for process in processes:
            process.terminate()
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.join()
