"""`minitorch.cuda`: there are no GPUs. Questions are answered so, and seeds for GPUs change nothing, as in PyTorch.

Example:
    >>> import minitorch as mt
    >>> mt.device("cuda" if mt.cuda.is_available() else "cpu"), mt.cuda.device_count()
    (device(type='cpu'), 0)
"""

from __future__ import annotations

from typing import Any

from minitorch.functional.devices import on_cpu
from minitorch.packages import names_from

__getattr__, __dir__ = names_from(__name__, {"amp": f"{__name__}.amp"})


def is_available() -> bool:
    """Return False: minitorch computes on the CPU alone."""
    return False


def is_initialized() -> bool:
    """Return False."""
    return False


def is_bf16_supported() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def memory_allocated(device: Any = None) -> int:
    """Return the bytes of tensors on GPUs: 0. `minitorch.profile` counts those of the CPU."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def manual_seed(seed: int) -> None:
    """Seed the GPUs, of which there are none; `minitorch.manual_seed` seeds the CPU."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Release the memory of GPUs: there is none."""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forget the most memory that was used on GPUs: there was none."""


def synchronize(device: Any = None) -> None:
    """Refuse to wait for a GPU, or to name one. Programs ask `is_available` first.

    Raises:
        DeviceError: ``MT203``.
    """
    on_cpu("cuda")


current_device = set_device = get_device_name = get_device_properties = synchronize
