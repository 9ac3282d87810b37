"""Drivers of exercise 13: a call with arrays and numbers; a number of NumPy's in an answer is a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from .driver import Driver, call_purely
from .limit import Limited
from .needs import EAGER as NEEDS


def call_for_numbers(call: Limited, case: tuple[str, tuple[Any, ...]]) -> Any:
    """Call the student's function; of a tuple that it returns, scalars of NumPy become Python's numbers."""
    answer = call_purely(call, case)
    if type(answer) is not tuple:
        return answer
    return tuple([each.item() if isinstance(each, np.generic) else each for each in answer])


per_channel, round_trip, product = (
    Driver(f"quantization.{name}", call_purely, NEEDS) for name in ("per_channel", "round_trip", "product")
)
calibrate, scaler_step = (
    Driver(f"quantization.{name}", call_for_numbers, NEEDS) for name in ("calibrate", "scaler_step")
)
