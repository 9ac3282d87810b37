"""Data for training: datasets, and batches of them, under the names of `torch.utils.data`; digits and sentences."""

from typing import TYPE_CHECKING

from ..packages import names_from
from .dataset import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split
from .digits import load_digits
from .loader import DataLoader, default_collate
from .samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .sentences import is_sentence, load_sentences, sentence_entropy

if TYPE_CHECKING:
    from .workers import get_worker_info
else:
    __getattr__, __dir__ = names_from(__name__, {"get_worker_info": f"{__name__}.workers"})

__all__ = [
    "BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler",
    "SequentialSampler", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "default_collate",
    "get_worker_info", "is_sentence", "load_digits", "load_sentences", "random_split", "sentence_entropy",
]  # fmt: skip
