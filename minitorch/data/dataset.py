"""Datasets: objects with a length and numbered samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..functional.creation.data import as_tensor
from ..functional.creation.generator import Generator
from ..functional.creation.random import randperm
from ..tensor import Tensor


class Dataset:
    """Base class of datasets: define `__len__` and `__getitem__`.

    A dataset may also define ``batch(indices)``, which returns many samples at once, already collated, and which
    `DataLoader` then uses.

    Example:
        >>> import minitorch as mt
        >>> class Squares(mt.data.Dataset):
        ...     def __len__(self):
        ...         return 3
        ...     def __getitem__(self, index):
        ...         return index**2
        >>> [batch.tolist() for batch in mt.data.DataLoader(Squares(), batch_size=2)]
        [[0, 1], [4]]
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no __len__")

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")


class IterableDataset:
    """Base class of datasets without numbers: define `__iter__`, and `__len__` if the length is known.

    With several workers, each iterates a copy; see `get_worker_info`.

    Example:
        >>> import minitorch as mt
        >>> class Countdown(mt.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(3, 0, -1))
        >>> [batch.tolist() for batch in mt.data.DataLoader(Countdown(), batch_size=2)]
        [[3, 2], [1]]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class ConcatDataset(Dataset):
    """Dataset of the samples of several, one after the other.

    Example:
        >>> import minitorch as mt
        >>> data = mt.data.ConcatDataset([[1, 2], [3]])
        >>> len(data), data[2], data[-1]
        (3, 3, 3)
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __len__(self) -> int:
        return sum(map(len, self.datasets))

    def __getitem__(self, index: int) -> Any:
        place = index + len(self) if index < 0 else index
        for dataset in self.datasets:
            if 0 <= place < len(dataset):
                return dataset[place]
            place -= len(dataset)
        raise IndexError(f"there is no sample {index} of {len(self)}")


class TensorDataset(Dataset):
    """Dataset whose samples are the rows of tensors of one length.

    Example:
        >>> import minitorch as mt
        >>> data = mt.data.TensorDataset(mt.tensor([[1.0], [2.0]]), mt.tensor([0, 1]))
        >>> len(data), data[1]
        (2, (tensor([2.]), tensor(1)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        lengths = {len(tensor) for tensor in tensors}
        if len(lengths) != 1:
            raise ValueError(f"a TensorDataset takes tensors of one length, not of lengths {sorted(lengths)}")
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, ...]:
        """Return many samples at once."""
        return self[as_tensor(list(indices))]


class Subset(Dataset):
    """Subset of another dataset.

    Example:
        >>> import minitorch as mt
        >>> data = mt.data.Subset(mt.data.TensorDataset(mt.tensor([5, 6, 7])), [2, 0])
        >>> len(data), data[0]
        (2, (tensor(7),))
    """

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]


def random_split(dataset: Dataset, lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset]:
    """Return subsets of given lengths, drawn at random and disjoint.

    Args:
        dataset: the dataset to divide.
        lengths: numbers of samples, or fractions that add up to 1.
        generator: the source of the random numbers.

    Raises:
        ValueError: if the lengths do not add up to that of the dataset.

    Example:
        >>> import minitorch as mt
        >>> data = mt.data.TensorDataset(mt.arange(10))
        >>> [len(part) for part in mt.data.random_split(data, [0.75, 0.25])]
        [8, 2]
    """
    total = len(dataset)
    counts = list(lengths)
    if any(isinstance(length, float) for length in lengths) and math.isclose(sum(lengths), 1):
        counts = [math.floor(total * length) for length in lengths]
        for position in range(total - int(sum(counts))):  # the remainder of rounding, one by one
            counts[position % len(counts)] += 1
    if sum(counts) != total or any(not isinstance(count, int) for count in counts):
        raise ValueError(f"the lengths {list(lengths)} do not add up to the {total} samples of the dataset, nor to 1")
    order = randperm(total, generator=generator).tolist()
    ends = [sum(counts[: number + 1]) for number in range(len(counts))]
    return [Subset(dataset, order[int(end - count) : int(end)]) for count, end in zip(counts, ends, strict=True)]
