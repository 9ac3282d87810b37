"""Exercise 01, eager execution: what one operation costs, and what goes wrong between two of them."""

from __future__ import annotations

from .broadcasts import unbroadcast
from .dispatches import observe
from .loss import mean_squared_error
from .nonfinite import first_bad

__all__ = ["first_bad", "mean_squared_error", "observe", "unbroadcast"]
