"""Exercise 09, reductions: stable sums of exponentials, one pass, partial results, and attention for a row."""

from __future__ import annotations

from .kernels import attention_row, largest_and_total, logsumexp, softmax, variance
from .moments import merge_moments

__all__ = ["attention_row", "largest_and_total", "logsumexp", "merge_moments", "softmax", "variance"]
