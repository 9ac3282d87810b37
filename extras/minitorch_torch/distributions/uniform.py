"""The uniform distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import minitorch as mt

from .distribution import Distribution


class Uniform(Distribution):
    """Uniform distribution from `low` up to `high`.

    Example:
        >>> import minitorch as mt
        >>> mt.distributions.Uniform(0.0, 4.0).log_prob(mt.tensor([1.0, 5.0])).exp()
        tensor([0.2500, 0.0000])
    """

    def __init__(self, low: Any, high: Any) -> None:
        super().__init__(low=low, high=high)
        self.mean, self.variance = (self.low + self.high) / 2, (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draw, with gradients by the parameters."""
        return self.low + (self.high - self.low) * mt.rand(*sample_shape, *self.batch_shape, dtype=self._dtype)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        inside = (self.low <= value) & (value < self.high)
        return inside.to(self._dtype).log() - (self.high - self.low).log()

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return (self.high - self.low).log()
