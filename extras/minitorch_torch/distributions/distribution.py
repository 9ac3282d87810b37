"""`Distribution`: parameters of one shape, and drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import minitorch as mt
from minitorch.autograd import no_grad
from minitorch.functional.operands import as_float


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


def either(probs: Any, logits: Any) -> Any:
    """Return the one of two parameters that is given."""
    if (probs is None) == (logits is None):
        raise ValueError("give either probs or logits, not both")
    return probs if logits is None else logits
