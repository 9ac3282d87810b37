"""The Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import minitorch as mt

from .distribution import Distribution, either


class Bernoulli(Distribution):
    """1 with the probability `probs`, or that of `logits`, else 0.

    Example:
        >>> import minitorch as mt
        >>> mt.distributions.Bernoulli(probs=0.25).log_prob(mt.tensor([1.0, 0.0])).exp()
        tensor([0.2500, 0.7500])
    """

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        super().__init__(given=either(probs, logits))
        self.probs = self.given if logits is None else self.given.sigmoid()
        self.logits = self.given.logit(mt.finfo(self._dtype).eps) if logits is None else self.given
        self.mean, self.variance = self.probs, self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draw 0 and 1, as floats."""
        return mt.bernoulli(self.probs.detach().expand(*sample_shape, *self.batch_shape))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the probability of values."""
        return value * self.logits - mt.logaddexp(self.logits, 0 * self.logits)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return -(self.probs * self.log_prob(1.0) + (1 - self.probs) * self.log_prob(0.0))
