"""The networks that are measured, and what their versions have in common: sizes, and the numbers of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

RESNET = [(64, 1)] * 2 + [(128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)]  # channels and stride of a block

EFFICIENTNET = [  # of each block: expansion, size of the filter, stride, channels
    (expand, size, stride if not number else 1, channels)
    for expand, size, stride, channels, count in (
        (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
        (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1),
    )
    for number in range(count)
]  # fmt: skip

RATE, MOMENTUM = 1e-3, 0.9  # of SGD


@dataclass(frozen=True)
class Network:
    """A row of the table.

    Attributes:
        model: of `models.MODELS` and of `in_jax.MODELS`.
        sizes, shape: of the network, and of its input; images have their channels second.
        trains: whether a call computes gradients.
        updates: whether it then updates parameters by SGD with momentum.
        tiny: sizes and shape for a test.
    """

    model: str
    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    tiny: tuple[tuple[int, ...], tuple[int, ...]]
    trains: bool = True
    updates: bool = True


IMAGE = (1, 3, 224, 224)
SMALL = (8, 3, 64, 64)

NETWORKS: dict[str, Network] = {
    "LSTM, 64 steps, gradient": Network("lstm", (128,), (32, 64, 128), ((4,), (2, 3, 4)), updates=False),
    "8 transformer blocks": Network("transformer", (256, 8, 8), (8, 128, 256), ((8, 2, 2), (2, 3, 8))),
    "ResNet-18": Network("resnet", (10,), SMALL, ((3,), (4, 3, 64, 64))),
    "ResNet-18, inference": Network("resnet", (1000,), IMAGE, ((3,), (1, 3, 64, 64)), trains=False),
    "EfficientNet-B0": Network("efficientnet", (10,), SMALL, ((3,), (4, 3, 64, 64))),
    "EfficientNet-B0, inference": Network("efficientnet", (1000,), IMAGE, ((3,), (1, 3, 64, 64)), trains=False),
    "U-Net": Network("unet", (16,), (2, 3, 128, 128), ((2,), (1, 3, 32, 32))),
}


def filled(shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return numbers of a size that layers keep, the same for any array of this shape."""
    size = int(np.prod(shape))
    numbers = np.cos(1.7 * np.arange(size) ** 1.1) * np.sqrt(2 * shape[0] / size)
    return numbers.reshape(shape).astype(np.float32)
