"""`with_devices`: a function that needs eight devices runs on virtual ones, and is shown as recorded without JAX.

The devices are the processor, divided by JAX. Only counts are shown, so the record is the same on every
machine. ``python -m tests.course.test_devices_recorded`` makes it, from the notebook as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minitorch_xla.sharding import use_virtual_devices

from .records import FOLDER, ran, recalled

DEVICES = 8
RECORD = FOLDER / "devices.json"


def with_devices(function: Callable[[], Any]) -> Any:
    """Call a function that shards values among eight virtual devices, and show what it prints.

    Where JAX is not installed, what was recorded for a function of this name is shown instead.

    Args:
        function: takes nothing. It prints, and returns what JSON can hold.

    Returns:
        What the function returned, here or when it was recorded.

    Raises:
        ShardingError: if JAX has begun with another number of devices (``MT204``).
        LookupError: if JAX is not installed, and there is no record of this function.
    """
    try:
        use_virtual_devices(DEVICES)
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        return recalled(function, "JAX", RECORD)
    return ran(function)
