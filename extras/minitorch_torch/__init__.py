"""PyTorch's namespaces around the engine, so that its programs run with another import.

They say what is there (`cuda.is_available()` is False), and refuse the rest by name. `as_torch` puts minitorch in the
place of `torch` for programs and libraries that import that; ``python -m minitorch.run program.py`` runs a script so.
"""

from .standing_in import as_torch
from .tensor_types import (
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)

__all__ = [
    "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor",
    "ShortTensor", "as_torch",
]  # fmt: skip
