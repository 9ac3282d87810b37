"""`minitorch.distributed`: one process. Programs for many devices are written with `minitorch.sharding`.

Example:
    >>> import minitorch as mt
    >>> mt.distributed.is_initialized(), mt.distributed.get_rank(), mt.distributed.get_world_size()
    (False, 0, 1)
"""

from __future__ import annotations

from typing import Any, NoReturn


def is_available() -> bool:
    """Return False: a program is one process."""
    return False


def is_initialized() -> bool:
    """Return False."""
    return False


def get_rank(group: Any = None) -> int:
    """Return the number of this process: 0."""
    return 0


def get_world_size(group: Any = None) -> int:
    """Return the number of processes: 1."""
    return 1


def barrier(group: Any = None) -> None:
    """Wait for all processes: there is one."""


def destroy_process_group(group: Any = None) -> None:
    """Part from the other processes: there are none."""


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse to form a group of processes.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("minitorch is one process; mt.sharding runs one program on many devices, in one process")
