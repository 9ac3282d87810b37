"""`check`: the primitive with which a composition restricts its values; an element out of range is an error.

Its result is its operand, so the error is raised in every mode: compiled kernels note such an element as they note an
index out of range, and NumPy then says which one it is (`minitorch.backends.interpret`). An unused value is not
computed, and not checked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir import Primitive, Spec
from .declare import declare

Array = np.ndarray[Any, Any]

ERRORS = {"IndexError": IndexError, "ValueError": ValueError}


def _refused(value: object, low: float, high: float, what: str, error: str) -> Exception:
    bounds = f"from {low} to {high}" if math.isfinite(high) else f"at least {low}"
    return ERRORS[error](f"{what} has {value}, and every element has to be {bounds}")


def _infer_check(x: Spec, *, low: float, high: float, what: str, error: str) -> Spec:
    if low > high and x.size:
        raise ERRORS[error](f"{what} is {x}, and no element is from {low} to {high}")
    return x


def _evaluate_check(x: Array, *, low: float, high: float, what: str, error: str) -> Array:
    if x.size and not (low <= x.min() and x.max() <= high):  # neither holds of NaN
        raise _refused(x[~((low <= x) & (x <= high))].flat[0], low, high, what, error)
    return x


check: Primitive = declare(
    "check",
    "unary",
    _infer_check,
    _evaluate_check,
    gradient=(lambda g, y, x, **params: g,),
    doc="x, or an error if an element is not from low to high",
)
