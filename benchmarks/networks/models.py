"""The networks in PyTorch's vocabulary: `torch` is PyTorch, or minitorch in its place (`mt.as_torch`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .table import EFFICIENTNET, MOMENTUM, RATE, RESNET, Network, filled


def block(inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1, act: Any = nn.ReLU) -> Any:
    """Return a convolution and a batch normalisation, with an activation unless `act` is None."""
    layers = [nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([] if act is None else [act(inplace=True)]))


class Basic(nn.Module):
    """Two convolutions and a shortcut (He and others, arXiv:1512.03385)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(block(inputs, outputs, stride=stride), block(outputs, outputs, act=None))
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = block(inputs, outputs, 1, stride, act=None)

    def forward(self, x: Any) -> Any:
        out = self.body(x)
        out += self.shortcut(x)
        return F.relu(out)


def resnet(classes: int) -> Any:
    layers: list[Any] = [block(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs, stride in RESNET:
        layers.append(Basic(inputs, outputs, stride))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Squeeze(nn.Module):
    """Scale channels by a function of their means (Hu and others, arXiv:1709.01507)."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, hidden, 1), nn.Conv2d(hidden, channels, 1)

    def forward(self, x: Any) -> Any:
        return x * torch.sigmoid(self.fc2(F.silu(self.fc1(F.adaptive_avg_pool2d(x, 1)))))


class Inverted(nn.Module):
    """An inverted residual block (Tan and Le, arXiv:1905.11946), without stochastic depth."""

    def __init__(self, inputs: int, outputs: int, expand: int, size: int, stride: int) -> None:
        super().__init__()
        hidden = inputs * expand
        layers = [block(inputs, hidden, 1, act=nn.SiLU)] if expand != 1 else []
        layers += [block(hidden, hidden, size, stride, hidden, nn.SiLU), Squeeze(hidden, inputs // 4)]
        self.body = nn.Sequential(*layers, block(hidden, outputs, 1, act=None))
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: Any) -> Any:
        return x + self.body(x) if self.is_residual else self.body(x)


def efficientnet(classes: int) -> Any:
    layers, inputs = [block(3, 32, 3, 2, act=nn.SiLU)], 32
    for expand, size, stride, outputs in EFFICIENTNET:
        layers.append(Inverted(inputs, outputs, expand, size, stride))
        inputs = outputs
    layers.append(block(inputs, 1280, 1, act=nn.SiLU))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, classes))


class UNet(nn.Module):
    """Four levels, transposed convolutions on the way up (Ronneberger and others, arXiv:1505.04597)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        widths = [width << level for level in range(5)]
        self.pool = nn.MaxPool2d(2)
        self.down = nn.ModuleList([self.twice(*pair) for pair in zip([3, *widths], widths, strict=False)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * each, each, 2, 2) for each in widths[:-1]])
        self.join = nn.ModuleList([self.twice(2 * each, each) for each in widths[:-1]])
        self.last = nn.Conv2d(width, 1, 1)

    @staticmethod
    def twice(inputs: int, outputs: int) -> Any:
        return nn.Sequential(block(inputs, outputs), block(outputs, outputs))

    def forward(self, x: Any) -> Any:
        seen = []
        for level, layer in enumerate(self.down):
            x = layer(self.pool(x) if level else x)
            seen.append(x)
        for level in reversed(range(4)):
            x = self.join[level](torch.cat([seen[level], self.up[level](x)], 1))
        return self.last(x)


class Block(nn.Module):
    """A transformer block with the norms before the layers, as in GPT-2."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


def transformer(width: int, blocks: int, heads: int) -> Any:
    return nn.Sequential(*[Block(width, heads) for _ in range(blocks)])


class Last(nn.Module):
    """The state of an LSTM after the last step."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.lstm(x)[0][:, -1]


MODELS: dict[str, Callable[..., Any]] = {
    "lstm": Last,
    "transformer": transformer,
    "resnet": resnet,
    "efficientnet": efficientnet,
    "unet": UNet,
}


def prepared(network: Network, sizes: Sequence[int], shape: Sequence[int]) -> Callable[[], Any]:
    """Return the call that is measured: a prediction, or a training step that returns the loss.

    Args:
        network: a row of the table.
        sizes: of the network.
        shape: of its input.
    """
    model = MODELS[network.model](*sizes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(
                torch.tensor(filled(parameter.shape)) if parameter.ndim > 1 else torch.zeros(parameter.shape)
            )
        for module in model.modules():
            if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)):
                module.weight.fill_(1.0)
    x = torch.tensor(filled(shape))
    if not network.trains:
        model.eval()

        def predict(x: Any) -> Any:
            with torch.no_grad():
                return model(x)

        predict = compiled(predict)
        return lambda: predict(x)
    optimizer = torch.optim.SGD(model.parameters(), RATE, MOMENTUM) if network.updates else None

    def step(x: Any) -> Any:
        model.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        return loss

    step = compiled(step)
    return lambda: step(x)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled by minitorch; in PyTorch as it is."""
    return function if torch.__name__ == "torch" else torch.jit(function)


def value(result: Any) -> Any:
    """Return a result as an array."""
    return np.asarray(result.detach().numpy())
