"""Data for training: datasets, and batches of them, under the names of `torch.utils.data`; digits and sentences."""

from .dataset import Dataset, Subset, TensorDataset, random_split
from .digits import load_digits
from .loader import DataLoader, default_collate
from .sentences import is_sentence, load_sentences, sentence_entropy

__all__ = [
    "DataLoader",
    "Dataset",
    "Subset",
    "TensorDataset",
    "default_collate",
    "is_sentence",
    "load_digits",
    "load_sentences",
    "random_split",
    "sentence_entropy",
]
