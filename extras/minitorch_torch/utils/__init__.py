"""`minitorch.utils`: `data` is `minitorch.data`; `checkpoint.checkpoint` recomputes instead of keeping values."""

from minitorch import data
from minitorch.functional import checkpoint

__all__ = ["checkpoint", "data"]
