"""The normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import minitorch as mt

from .distribution import Distribution


class Normal(Distribution):
    """Normal distribution of a mean `loc` and a deviation `scale`.

    Example:
        >>> import minitorch as mt
        >>> mt.distributions.Normal(0.0, 2.0).log_prob(mt.tensor(2.0))
        tensor(-2.1121)
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        super().__init__(loc=loc, scale=scale)
        self.mean, self.stddev, self.variance = self.loc, self.scale, self.scale**2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draw, with gradients by the parameters."""
        return self.loc + self.scale * mt.randn(*sample_shape, *self.batch_shape, dtype=self._dtype)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - math.log(2 * math.pi) / 2

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return 0.5 + math.log(2 * math.pi) / 2 + self.scale.log()
