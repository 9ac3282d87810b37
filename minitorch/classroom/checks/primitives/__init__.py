"""Exercise 10, operators from primitives: their values, their gradients, their kernels, and how many they take."""

from __future__ import annotations

from .functions import asinh, hard_swish, layer_norm, lengths, mish

__all__ = ["asinh", "hard_swish", "layer_norm", "lengths", "mish"]
