"""Probability distributions, as `minitorch.distributions`: Normal, Uniform, Bernoulli and Categorical.

The files have the names of PyTorch's, so that ``from torch.distributions.normal import Normal`` finds them.
"""

from .bernoulli import Bernoulli
from .categorical import Categorical
from .distribution import Distribution
from .kl import kl_divergence
from .normal import Normal
from .uniform import Uniform

__all__ = ["Bernoulli", "Categorical", "Distribution", "Normal", "Uniform", "kl_divergence"]
