"""Models for tests of mixed precision: an MLP, a CNN, a block of a transformer, and random networks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

import minitorch as mt
import minitorch.nn.functional as F


class Block(mt.nn.Module):
    """Attention and two linear layers, with residuals."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.rest_norm = mt.nn.LayerNorm(16), mt.nn.LayerNorm(16)
        self.mix, self.out = mt.nn.Linear(16, 48), mt.nn.Linear(16, 16)
        self.wide, self.narrow = mt.nn.Linear(16, 32), mt.nn.Linear(32, 16)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        """[batch, length, 16] to the same."""
        parts = self.mix(self.norm(x)).reshape(*x.shape[:-1], 3, 2, 8).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        x = x + self.out(mixed.transpose(1, 2).reshape(*x.shape))
        return x + self.narrow(F.gelu(self.wide(self.rest_norm(x))))


def mlp() -> mt.nn.Module:
    return mt.nn.Sequential(mt.nn.Linear(16, 32), mt.nn.ReLU(), mt.nn.Linear(32, 16), mt.nn.Tanh(), mt.nn.Linear(16, 4))


def cnn() -> mt.nn.Module:
    return mt.nn.Sequential(
        mt.nn.Conv2d(1, 4, 3, padding=1), mt.nn.BatchNorm2d(4), mt.nn.ReLU(), mt.nn.MaxPool2d(2),
        mt.nn.Conv2d(4, 8, 3, padding=1), mt.nn.ReLU(), mt.nn.Flatten(), mt.nn.Linear(128, 4),
    )  # fmt: skip


class Attentions(mt.nn.Module):
    """Attention of all kinds: causal, with a mask of bools and of floats, with a scale, of what no product made."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.out = mt.nn.Linear(16, 48), mt.nn.Linear(16, 16)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        """[batch, length, 16] to the same."""
        attend, length = F.scaled_dot_product_attention, x.shape[-2]
        q, k, v = self.mix(x).chunk(3, -1)
        allowed = mt.tensor([[(row + 2 * column) % 3 != 1 for column in range(length)] for row in range(length)])
        bias = mt.tensor([[0.1 * row - 0.3 * column for column in range(length)] for row in range(length)])
        y = attend(q, k, v, is_causal=True) + attend(q, k, mt.tanh(v), attn_mask=allowed, scale=0.3)
        return self.out(y) + attend(x, mt.sin(k), x, attn_mask=bias)


MODELS: dict[str, tuple[Callable[[], mt.nn.Module], tuple[int, ...]]] = {
    "mlp": (mlp, (5, 16)),
    "cnn": (cnn, (3, 1, 8, 8)),
    "block": (Block, (2, 6, 16)),
    "attentions": (Attentions, (2, 5, 16)),
}


def model_and_data(name: str) -> tuple[mt.nn.Module, mt.Tensor, mt.Tensor]:
    mt.manual_seed(0)
    make, shape = MODELS[name]
    model, x = make().eval(), mt.randn(*shape)
    for module in model.modules():  # as after training: neither ones nor zeros
        for each in (module.weight, module.bias) if isinstance(module, (mt.nn.LayerNorm, mt.nn.BatchNorm2d)) else ():
            assert each is not None
            each.detach().add_(0.1 * mt.randn(*each.shape))
    return model, x, mt.randn(*model(x).shape)


def random_network(seed: int) -> tuple[mt.nn.Module, mt.Tensor]:
    """Linear layers; between two of them, at most one function that rounds, and selections."""
    random = np.random.default_rng(seed)
    mt.manual_seed(seed)
    widths = [int(width) for width in random.integers(1, 20, 4)]
    layers: list[mt.nn.Module] = []
    for before, after in pairwise(widths):
        kinds = (mt.nn.GELU(), mt.nn.Tanh(), mt.nn.Sigmoid(), mt.nn.SiLU(), mt.nn.Softmax(-1), mt.nn.Identity())
        between = [mt.nn.ReLU(), kinds[random.integers(len(kinds))], mt.nn.ReLU6()]
        layers += [mt.nn.Linear(before, after, bias=bool(random.integers(2))), *between[random.integers(3) :]]
    layers.append(mt.nn.Linear(widths[-1], 3))
    lengths = tuple(int(length) for length in random.integers(1, 5, random.integers(1, 4)))
    return mt.nn.Sequential(*layers), mt.randn(*lengths, widths[0])
