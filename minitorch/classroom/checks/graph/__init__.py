"""Exercise 03, the computation graph: an order to run it in, what a run needs, what it can forget, and the way back."""

from __future__ import annotations

from .gradients import backward
from .liveness import release
from .orders import order
from .session import run

__all__ = ["backward", "order", "release", "run"]
