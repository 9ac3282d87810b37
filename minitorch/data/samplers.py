"""Samplers: the order in which a loader reads a dataset, under the names of `torch.utils.data`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from ..functional.creation.generator import Generator
from ..functional.creation.random import rand, randint, randperm
from ..tensor import Tensor


class Sampler:
    """Base class of samplers: define `__iter__`, which yields the numbers of samples, and if possible `__len__`.

    Example:
        >>> import minitorch as mt
        >>> class Backwards(mt.data.Sampler):
        ...     def __init__(self, count):
        ...         self.count = count
        ...     def __iter__(self):
        ...         return iter(range(self.count - 1, -1, -1))
        ...     def __len__(self):
        ...         return self.count
        >>> [x.tolist() for x in mt.data.DataLoader([5, 6, 7], batch_size=2, sampler=Backwards(3))]
        [[7, 6], [5]]
    """

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class SequentialSampler(Sampler):
    """Sampler of a dataset from the first sample to the last.

    Example:
        >>> import minitorch as mt
        >>> list(mt.data.SequentialSampler([5, 6, 7]))
        [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Sampler of a dataset in random order, or with replacement.

    Args:
        data_source: the dataset.
        replacement: whether a sample may come again.
        num_samples: samples in an epoch; by default as many as the dataset has.
        generator: the source of the random numbers; by default, the one seeded by `minitorch.manual_seed`.

    Example:
        >>> import minitorch as mt
        >>> sorted(mt.data.RandomSampler([5, 6, 7]))
        [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples

    def __iter__(self) -> Iterator[int]:
        count, wanted = len(self.data_source), len(self)
        if self.replacement:
            yield from randint(count, (wanted,), generator=self.generator).tolist()
            return
        for start in range(0, wanted, max(count, 1)):
            yield from randperm(count, generator=self.generator).tolist()[: wanted - start]

    def __len__(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples


class SubsetRandomSampler(Sampler):
    """Sampler of some samples, in random order.

    Args:
        indices: their numbers.
        generator: the source of the random numbers.

    Example:
        >>> import minitorch as mt
        >>> sorted(mt.data.SubsetRandomSampler([4, 2]))
        [2, 4]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[place] for place in randperm(len(self), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Sampler that draws each sample with a probability in proportion to its weight.

    Without replacement, the samples with the largest u**(1/weight) are drawn, u uniform (Efraimidis, Spirakis, 2006).

    Args:
        weights: of the samples, not negative.
        num_samples: samples in an epoch.
        replacement: whether a sample may come again.
        generator: the source of the random numbers.

    Raises:
        ValueError: if more samples are asked for, without replacement, than have a weight.

    Example:
        >>> import minitorch as mt
        >>> list(mt.data.WeightedRandomSampler([0.0, 1.0, 0.0], 3))
        [1, 1, 1]
    """

    def __init__(
        self,
        weights: Tensor | Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        self.weights = np.asarray(weights.tolist() if isinstance(weights, Tensor) else weights, np.float64)
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator
        if not replacement and num_samples > np.count_nonzero(self.weights):
            raise ValueError(f"there are not {num_samples} samples with a weight; draw with replacement")

    def __iter__(self) -> Iterator[int]:
        count = self.num_samples if self.replacement else len(self.weights)
        uniform = np.asarray(rand(count, generator=self.generator).tolist())
        if self.replacement:
            ends = np.cumsum(self.weights)
            drawn = np.searchsorted(ends, uniform * ends[-1], side="right")
        else:
            with np.errstate(divide="ignore"):
                drawn = np.argsort(np.log(uniform) / self.weights)[::-1][: self.num_samples]
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Sampler of lists of numbers: those of another sampler, by batches.

    Args:
        sampler: yields numbers of samples.
        batch_size: samples per batch.
        drop_last: leave out a last batch that is not full.

    Example:
        >>> import minitorch as mt
        >>> list(mt.data.BatchSampler(mt.data.SequentialSampler(range(5)), 2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        return batched(self.sampler, self.batch_size, self.drop_last)

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return full + (rest > 0 and not self.drop_last)


def batched(samples: Iterable[Any], size: int, drop_last: bool) -> Iterator[list[Any]]:
    """Yield lists of `size` samples; the last one may be shorter."""
    batch: list[Any] = []
    for sample in samples:
        batch.append(sample)
        if len(batch) == size:
            yield batch
            batch = []
    if batch and not drop_last:
        yield batch
