"""The categorical distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import minitorch as mt
from minitorch.tensor import Tensor

from .distribution import Distribution, either


class Categorical(Distribution):
    """Positions along the last dimension, with the probabilities in `probs`, or those of `logits`.

    Example:
        >>> import minitorch as mt
        >>> chosen = mt.distributions.Categorical(logits=mt.zeros(2, 4))
        >>> chosen.log_prob(mt.tensor([3, 0])).exp(), chosen.entropy().exp()
        (tensor([0.2500, 0.2500]), tensor([4., 4.]))
    """

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        super().__init__(given=either(probs, logits))
        tiny = mt.finfo(self._dtype).eps
        shares = self.given / self.given.sum(-1, keepdim=True) if logits is None else self.given.softmax(-1)
        self.probs, self.batch_shape = shares, self.batch_shape[:-1]
        self.logits = shares.clamp(tiny, 1 - tiny).log() if logits is None else self.given.log_softmax(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draw positions."""
        rows = self.probs.detach().reshape(-1, self.probs.shape[-1])
        return mt.multinomial(rows, math.prod(sample_shape), True).T.reshape(*sample_shape, *self.batch_shape)

    def log_prob(self, value: Tensor) -> Any:
        """Return the logarithm of the probability of positions."""
        shape = mt.broadcast_shapes(value.shape, self.batch_shape)
        places, logits = value.long().expand(shape), self.logits.expand(*shape, self.logits.shape[-1])
        return logits.gather(-1, places.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return -(self.probs * self.logits.clamp(min=mt.finfo(self._dtype).min)).sum(-1)
