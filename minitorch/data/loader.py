"""`DataLoader`: batches of a dataset, in order or shuffled for every epoch, with an optional progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..functional.creation.data import as_tensor, tensor
from ..functional.creation.generator import Generator
from ..functional.creation.random import randperm
from ..functional.movement.arranging import stack
from ..tensor import Tensor
from .dataset import Dataset, Subset


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
        dataset: any object with `__len__` and `__getitem__`.
        batch_size: samples per batch.
        shuffle: draw a new order for every epoch.
        drop_last: leave out a last batch that is not full.
        collate_fn: makes a batch of a list of samples; `default_collate` if left out.
        generator: the source of the random order; by default, the one seeded by `minitorch.manual_seed`.
        progress: show a progress bar (needs tqdm).

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
        dataset: Dataset | Sequence[Any],
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        generator: Generator | None = None,
        progress: bool = False,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size is at least 1, not {batch_size}")
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.collate_fn, self.generator, self.progress = collate_fn, generator, progress

    def __len__(self) -> int:
        full, rest = divmod(len(self.dataset), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        count = len(self.dataset)
        order = randperm(count, generator=self.generator).tolist() if self.shuffle else range(count)
        starts = range(0, len(self) * self.batch_size, self.batch_size)
        for start in _with_progress(starts) if self.progress else starts:
            yield self._batch(order[start : start + self.batch_size])

    def _batch(self, indices: Sequence[int]) -> Any:
        dataset: Any = self.dataset
        if self.collate_fn is None:
            while isinstance(dataset, Subset):  # down to the dataset of the samples
                dataset, indices = dataset.dataset, [dataset.indices[index] for index in indices]
            if hasattr(dataset, "batch"):
                return dataset.batch(indices)
        return (self.collate_fn or default_collate)([dataset[index] for index in indices])


def _with_progress(starts: range) -> Any:
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "DataLoader(progress=True) shows its bar with tqdm, which is not installed: pip install tqdm"
        ) from None
    return tqdm(starts, unit="batch")
