"""`minitorch.backends.cudnn`: switches of a library for GPUs. They may be set, and change nothing."""

from __future__ import annotations

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Return False: minitorch computes on the CPU alone."""
    return False


def version() -> None:
    """Return None: there is no such library."""
