"""Exercise 07, operator fusion: what a kernel moves, which operations share one, and how one is written."""

from __future__ import annotations

from .generate import generate
from .kernels import kernel_bytes
from .online import merge, online_softmax
from .partitions import partition

__all__ = ["generate", "kernel_bytes", "merge", "online_softmax", "partition"]
