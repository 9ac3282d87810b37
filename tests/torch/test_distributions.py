"""Laws of distributions: probabilities add up to 1, and entropies and divergences are their sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.distributions import Bernoulli, Categorical, Normal, Uniform, kl_divergence

GRID = mt.linspace(-30, 30, 60001, dtype=mt.float64)


def wide(*numbers):
    return mt.tensor(numbers, dtype=mt.float64)


# Two distributions of a kind, all values of them, and the width that each stands for.
KINDS: dict[str, Any] = {
    "normal": (Normal(wide(0.5), wide(1.5)), Normal(wide(0.0), wide(2.0)), GRID, 1e-3),
    "uniform": (Uniform(wide(-1.0), wide(2.0)), Uniform(wide(-3.0), wide(2.5)), GRID, 1e-3),
    "bernoulli": (Bernoulli(wide(0.3)), Bernoulli(logits=wide(0.7)), wide(0.0, 1.0), 1),
    "categorical": (Categorical(wide(1.0, 2.0, 5.0)), Categorical(logits=wide(0.0, 1.0, -1.0)), mt.arange(3), 1),
}


@pytest.mark.parametrize("name", KINDS)
def test_entropy_and_divergence_are_sums_over_all_values(name):
    p, q, values, width = KINDS[name]
    ours, others = p.log_prob(values), q.log_prob(values)
    shares = ours.exp() * width
    drawn = shares > 0
    assert shares.sum().item() == pytest.approx(1, abs=1e-3)
    entropy = -(shares * ours)[drawn].sum().item()
    assert p.entropy().sum().item() == pytest.approx(entropy, abs=2e-3)
    divergence = (shares * (ours - others))[drawn].sum().item()
    assert kl_divergence(p, q).sum().item() == pytest.approx(divergence, abs=2e-3)
    assert kl_divergence(p, p).sum().item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("compiled", [False, True])
def test_samples_are_as_likely_as_is_said(name, compiled):
    p, *_ = KINDS[name]
    draw = mt.jit(lambda: p.sample((20000,))) if compiled else lambda: p.sample((20000,))
    mt.manual_seed(0)
    sample = draw().double()
    assert sample.shape == (20000, *p.batch_shape) and not sample.requires_grad
    mean = p.mean.item() if name != "categorical" else (p.probs * mt.arange(3)).sum().item()
    assert sample.mean().item() == pytest.approx(mean, abs=0.04)


def test_gradients_reach_the_parameters():
    loc, scale = mt.zeros(3, requires_grad=True), mt.ones(3, requires_grad=True)
    drawn = Normal(loc, scale).rsample((4,))
    drawn.sum().backward()
    assert loc.grad.tolist() == [4, 4, 4]
    np.testing.assert_allclose(scale.grad.numpy(), drawn.detach().sum(0).numpy(), rtol=1e-6)
    logits = mt.zeros(2, 3, requires_grad=True)
    Categorical(logits=logits).log_prob(mt.tensor([0, 2])).sum().backward()
    np.testing.assert_allclose(logits.grad.numpy(), [[2 / 3, -1 / 3, -1 / 3], [-1 / 3, -1 / 3, 2 / 3]], rtol=1e-6)
    with pytest.raises(NotImplementedError, match="no draws with gradients"):
        Bernoulli(0.5).rsample()
    with pytest.raises(NotImplementedError, match="Normal and Uniform"):
        kl_divergence(Normal(0.0, 1.0), Uniform(0.0, 1.0))
    with pytest.raises(ValueError, match="either probs or logits"):
        Categorical()
