"""Exercise 11, memory: live ranges, writing in place, plans of an arena, and what to keep for the way back."""

from __future__ import annotations

from .keeping import checkpoints
from .lives import live_ranges, may_overwrite
from .plans import best_fit, plan

__all__ = ["best_fit", "checkpoints", "live_ranges", "may_overwrite", "plan"]
