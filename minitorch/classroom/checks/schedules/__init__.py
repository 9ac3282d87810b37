"""Exercise 08, schedules: places of elements in tiles, packing, and schedules graded by counted accesses."""

from __future__ import annotations

from .layouts import address, pack_rows
from .programs import chain_schedule, product_schedule, vector_schedule

__all__ = ["address", "chain_schedule", "pack_rows", "product_schedule", "vector_schedule"]
