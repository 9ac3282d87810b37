"""Errors in units in the last place, and numbers of all sizes to look for them at."""

from __future__ import annotations

import ml_dtypes
import numpy as np


def errors(result: np.ndarray, expected: np.ndarray, least: np.ndarray | float = 0.0) -> np.ndarray:
    """The distance in units in the last place; 0 for equal infinities and NaNs, inf for a wrong one.

    The unit is that of the expected number, or of `least` where that is larger.
    """
    dtype = result.dtype.type
    rounded = expected.astype(dtype)
    largest = dtype(ml_dtypes.finfo(dtype).max)
    unit = np.spacing(np.minimum(np.maximum(np.abs(rounded), np.abs(np.asarray(least)).astype(dtype)), largest))
    distance = np.abs(result.astype(expected.dtype) - expected) / unit.astype(expected.dtype)
    distance = np.where(np.isfinite(rounded) & np.isfinite(result), distance, np.inf)
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    return np.where(same & ~np.isfinite(rounded), 0, distance)


def bits(dtype: type, count: int, generator: np.random.Generator) -> np.ndarray:
    """Random patterns of bits: all exponents alike, both signs, a few infinities and NaNs."""
    return generator.integers(0, 256, count * np.dtype(dtype).itemsize, dtype=np.uint8).view(dtype)
