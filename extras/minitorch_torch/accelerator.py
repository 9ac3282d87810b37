"""`minitorch.accelerator`, `minitorch.mps`, `minitorch.xpu`: there is no device beside the CPU.

Example:
    >>> import minitorch as mt
    >>> mt.accelerator.is_available(), mt.accelerator.current_accelerator(), mt.backends.mps.is_available()
    (False, None, False)
"""

from __future__ import annotations

from .cuda import device_count, empty_cache, is_available, manual_seed, synchronize

__all__ = [
    "current_accelerator",
    "device_count",
    "empty_cache",
    "is_available",
    "is_built",
    "manual_seed",
    "synchronize",
]


def is_built() -> bool:
    """Return False: minitorch computes on the CPU alone."""
    return False


def current_accelerator(check_available: bool = False) -> None:
    """Return None: there is none."""
