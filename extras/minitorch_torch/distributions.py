"""Probability distributions, as `minitorch.distributions`: Normal, Uniform, Bernoulli and Categorical."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import minitorch as mt
from minitorch.autograd import no_grad
from minitorch.functional.operands import as_float
from minitorch.tensor import Tensor


class Distribution:
    """Base class: the parameters as tensors of one shape, and drawing without a gradient.

    Args:
        **parameters: numbers or tensors, by their names.
    """

    loc: Any
    scale: Any
    low: Any
    high: Any
    given: Any

    def __init__(self, **parameters: Any) -> None:
        tensors = mt.broadcast_tensors(*map(as_float, parameters.values()))
        vars(self).update(zip(parameters, tensors, strict=True))
        self.batch_shape, self._dtype = tensors[0].shape, tensors[0].dtype

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draw, with gradients by the parameters, where the distribution has such draws."""
        raise NotImplementedError(f"{type(self).__name__} has no draws with gradients; use sample() and log_prob()")

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draw numbers, of the shape `sample_shape` before that of the parameters."""
        with no_grad():
            return self.rsample(sample_shape)


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


def _parameter(probs: Any, logits: Any) -> Any:
    if (probs is None) == (logits is None):
        raise ValueError("give either probs or logits, not both")
    return probs if logits is None else logits


class Bernoulli(Distribution):
    """1 with the probability `probs`, or that of `logits`, else 0.

    Example:
        >>> import minitorch as mt
        >>> mt.distributions.Bernoulli(probs=0.25).log_prob(mt.tensor([1.0, 0.0])).exp()
        tensor([0.2500, 0.7500])
    """

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        super().__init__(given=_parameter(probs, logits))
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


class Categorical(Distribution):
    """Positions along the last dimension, with the probabilities in `probs`, or those of `logits`.

    Example:
        >>> import minitorch as mt
        >>> chosen = mt.distributions.Categorical(logits=mt.zeros(2, 4))
        >>> chosen.log_prob(mt.tensor([3, 0])).exp(), chosen.entropy().exp()
        (tensor([0.2500, 0.2500]), tensor([4., 4.]))
    """

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        super().__init__(given=_parameter(probs, logits))
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


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """Return the Kullback-Leibler divergence of two distributions of one kind.

    Example:
        >>> import minitorch as mt
        >>> a, b = (mt.distributions.Normal(mean, 1.0) for mean in (0.0, 1.0))
        >>> mt.distributions.kl_divergence(a, b)
        tensor(0.5000)
    """
    if isinstance(p, Normal) and isinstance(q, Normal):
        ratio = (p.scale / q.scale) ** 2
        return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())
    if isinstance(p, Uniform) and isinstance(q, Uniform):
        inside = (q.low <= p.low) & (p.high <= q.high)
        return mt.where(inside, ((q.high - q.low) / (p.high - p.low)).log(), math.inf)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        one, zero = (p.log_prob(x) - q.log_prob(x) for x in (1.0, 0.0))
        return p.probs * one + (1 - p.probs) * zero
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return (p.probs * (p.logits - q.logits)).sum(-1)
    kinds = f"{type(p).__name__} and {type(q).__name__}"
    raise NotImplementedError(f"kl_divergence of {kinds}: average p.log_prob(x) - q.log_prob(x) over draws of p")
