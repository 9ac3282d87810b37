"""Exercise 13, quantisation: scales, a round trip to repair, calibration, a product of integers, and a loss scaler."""

from __future__ import annotations

from .products import product
from .ranges import calibrate, per_channel, round_trip
from .scaling import scaler_step

TASKS = (per_channel, round_trip, calibrate, product, scaler_step)
