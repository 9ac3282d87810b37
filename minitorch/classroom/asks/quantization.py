"""How the tasks of exercise 13 ask: a call with arrays and numbers; a number of NumPy's in an answer is a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from .ask import asks, call_with_arguments
from .limit import Limited
from .needs import Needs

NEEDS = Needs(engine=("interpreters", "primitives", "tensor"))


def call_for_numbers(call: Limited, case: tuple[str, tuple[Any, ...]]) -> Any:
    """Call the student's function; of a tuple that it returns, scalars of NumPy become Python's numbers."""
    answer = call_with_arguments(call, case)
    if type(answer) is not tuple:
        return answer
    return tuple([each.item() if isinstance(each, np.generic) else each for each in answer])


per_channel = asks("quantization.per_channel", NEEDS)(call_with_arguments)
round_trip = asks("quantization.round_trip", NEEDS)(call_with_arguments)
calibrate = asks("quantization.calibrate", NEEDS)(call_for_numbers)
product = asks("quantization.product", NEEDS)(call_with_arguments)
scaler_step = asks("quantization.scaler_step", NEEDS)(call_for_numbers)
