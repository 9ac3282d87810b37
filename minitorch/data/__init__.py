"""Data for training: datasets, and batches of them, under the names of `torch.utils.data`."""

from .dataset import Dataset, Subset, TensorDataset, random_split
from .digits import load_digits
from .loader import DataLoader, default_collate

__all__ = [
    "DataLoader",
    "Dataset",
    "Subset",
    "TensorDataset",
    "default_collate",
    "load_digits",
    "random_split",
]
