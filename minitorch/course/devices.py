"""`with_devices`: a function that needs eight devices runs on virtual ones, and is shown as recorded without JAX.

The devices are the processor, divided by JAX. What is shown are counts, and losses in a few digits, so the record is
the same on every machine. ``python -m tests.test_devices_recorded`` makes it, from the notebook as it is.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from typing import Any

from ..sharding import use_virtual_devices
from .catching import in_cells
from .recording import FOLDER

DEVICES = 8
RAN: dict[str, tuple[str, Any]] = {}
"""What functions have printed and returned in this process, by name: what a record is made of."""
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
        record = json.loads(RECORD.read_text(encoding="utf-8"))
        if function.__name__ not in record["functions"]:
            raise LookupError(f"JAX is not installed, and there is no record of {function.__name__}") from None
        print(f"── JAX is not installed; recorded with {record['where']} ──")
        found = record["functions"][function.__name__]
        print("\n".join(found["output"]))
        return found["value"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        value = function()
    text = in_cells(printed.getvalue()).rstrip("\n")
    RAN[function.__name__] = text, value
    print(text)
    return value
