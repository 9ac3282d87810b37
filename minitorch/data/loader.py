"""`DataLoader`: batches of a dataset, in the order of a sampler, read here or by worker processes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, cast

import numpy as np

from ..functional.creation.data import as_tensor, tensor
from ..functional.creation.generator import Generator
from ..functional.creation.random import randint
from ..functional.movement.arranging import stack
from ..packages import load
from ..tensor import Tensor
from .dataset import Dataset, IterableDataset, Subset
from .samplers import BatchSampler, RandomSampler, SequentialSampler, batched


def default_collate(samples: Sequence[Any]) -> Any:
    """Return a batch of samples: numbers, arrays and tensors become a tensor with a dimension more.

    Tuples, lists and dicts of them become lists and dicts of batches; text stays a list.

    Example:
        >>> default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ['a', 'b']]
        >>> default_collate([{"x": 0.5}, {"x": 1.5}])
        {'x': tensor([0.5000, 1.5000])}
    """
    first = samples[0]
    if isinstance(first, Tensor):
        return stack(list(samples))
    if isinstance(first, (np.ndarray, np.generic)):
        return as_tensor(np.stack([np.asarray(sample) for sample in samples]))
    if isinstance(first, (bool, int, float)):
        return tensor(list(samples))
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in samples):
            raise ValueError("the samples of a batch have different lengths; give a collate_fn that pads them")
        parts = [default_collate(part) for part in zip(*samples, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    raise TypeError(f"a batch cannot be made of samples of {type(first).__name__}; give a collate_fn that knows how")


class DataLoader:
    """Iterator over a dataset in batches; every `for` loop is one epoch.

    Args:
        dataset: any object with `__len__` and `__getitem__`, or an `IterableDataset`.
        batch_size: samples per batch; None to get single samples.
        shuffle: draw a new order for every epoch.
        sampler: yields the numbers of samples, in place of `shuffle`.
        batch_sampler: yields lists of them, in place of the four options about batches.
        num_workers: processes that read batches while the program computes; 0 to read them in the program.
        collate_fn: makes a batch of a list of samples; `default_collate` if left out.
        drop_last: leave out a last batch that is not full.
        timeout: seconds to wait for a worker; 0 for ever.
        worker_init_fn: called in each worker process with its number.
        generator: the source of the random order; by default, the one seeded by `minitorch.manual_seed`.
        prefetch_factor: batches that each worker reads in advance; 2 by default.
        pin_memory, persistent_workers, multiprocessing_context, pin_memory_device, in_order: taken, and without effect.
        progress: show a progress bar (needs tqdm).

    Raises:
        ValueError: for options that exclude each other.

    Example:
        >>> import minitorch as mt
        >>> data = mt.data.TensorDataset(mt.arange(5), mt.arange(5) * 10)
        >>> for x, y in mt.data.DataLoader(data, batch_size=2):
        ...     print(x.tolist(), y.tolist())
        [0, 1] [0, 10]
        [2, 3] [20, 30]
        [4] [40]
    """

    def __init__(
        self,
        dataset: Dataset | IterableDataset | Sequence[Any],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        progress: bool = False,
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size is at least 1, not {batch_size}")
        is_iterable = isinstance(dataset, IterableDataset)
        if is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("an IterableDataset has its own order: leave out shuffle, sampler and batch_sampler")
        if shuffle and sampler is not None:
            raise ValueError("shuffle and sampler exclude each other")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("a batch_sampler excludes batch_size, shuffle, sampler and drop_last")
        if num_workers < 0:
            raise ValueError(f"num_workers cannot be negative: {num_workers}")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers, self.timeout, self.worker_init_fn = num_workers, timeout, worker_init_fn
        self.collate_fn, self.generator, self.progress = collate_fn, generator, progress
        self.prefetch_factor = prefetch_factor or 2
        if sampler is None and not is_iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)  # type: ignore[arg-type]
        self.sampler = sampler
        if batch_sampler is None and sampler is not None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler

    @property
    def _tasks(self) -> Iterable[Any] | None:
        """The numbers of the samples of each batch; None if the dataset is iterated."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        if self._tasks is not None:
            return len(self._tasks)  # type: ignore[arg-type]
        count = len(self.dataset)  # type: ignore[arg-type]
        return count if self.batch_size is None else len(BatchSampler(range(count), self.batch_size, self.drop_last))

    def __iter__(self) -> Iterator[Any]:
        batches = self._from_workers() if self.num_workers else self._read()
        return iter(_with_progress(batches, self)) if self.progress else batches

    def _read(self) -> Iterator[Any]:
        if self._tasks is not None:
            yield from map(self._batch, self._tasks)
        elif self.batch_size is None:
            yield from map(self.collate_fn or _as_it_is, cast(Iterable[Any], self.dataset))
        else:
            samples = cast(Iterable[Any], self.dataset)
            yield from map(self.collate_fn or default_collate, batched(samples, self.batch_size, self.drop_last))

    def _from_workers(self) -> Iterator[Any]:
        def following() -> Callable[[Any], Any]:
            batches = self._read()

            def following(task: Any) -> Any:
                for batch in batches:
                    return batch
                raise workers.EndError

            return following

        workers = load("minitorch.data.workers")
        tasks, fetch = (repeat(0), following) if self._tasks is None else (self._tasks, lambda: self._batch)
        seed = int(randint(2**31, (), generator=self.generator))
        options = self.num_workers, self.prefetch_factor, self.timeout, self.worker_init_fn, seed
        yield from workers.results(tasks, fetch, self.dataset, *options)

    def _batch(self, indices: Any) -> Any:
        dataset: Any = self.dataset
        if self.batch_sampler is None:
            return (self.collate_fn or _as_it_is)(dataset[indices])
        if self.collate_fn is None:
            while isinstance(dataset, Subset):  # down to the dataset of the samples
                dataset, indices = dataset.dataset, [dataset.indices[index] for index in indices]
            if hasattr(dataset, "batch"):
                return dataset.batch(indices)
        return (self.collate_fn or default_collate)([dataset[index] for index in indices])


def _as_it_is(sample: Any) -> Any:
    """Return a sample that is not batched; arrays become tensors, as in a batch."""
    return as_tensor(sample) if isinstance(sample, np.ndarray) else sample


def _with_progress(batches: Iterator[Any], loader: DataLoader) -> Any:
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "DataLoader(progress=True) shows its bar with tqdm, which is not installed: pip install tqdm"
        ) from None
    return tqdm(batches, total=operator.length_hint(loader) or None, unit="batch")
